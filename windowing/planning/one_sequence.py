"""What a plan makes of the expressions of a join: some are computed of rows of one side, others of pairs (section 16).

Both sides stand in one sequence, and no side sees the rows of the other. So an expression over rows is guarded by the
side of the row; there a row of the other side can neither have a value nor fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from ..enrichment.binding import bind_taken
from ..errors import ConfigError, Span, naming_option
from ..expressions.binding import bind, bind_condition
from ..expressions.nodes import Node, transform
from ..expressions.syntax import Expression, parse_expression
from ..kinds.registry import kind_of
from ..language.joins import BOTH, LEFT, RIGHT, SIDE, Join
from ..language.options import Options
from ..language.spec import (
    HIDDEN,
    AggregateCall,
    AggregateExpression,
    Argument,
    Around,
    At,
    Column,
    Joined,
    SideWindows,
    WindowSpec,
)
from ..ports import StreamInfo
from ..rows.pairs import PairColumns, PairCondition
from ..rows.projection import ComputedColumn, RowExpressions
from .row_order import OrderBy
from .sides import SIDES, join_keys, join_order, joined

Calls = Sequence[AggregateCall | AggregateExpression] | None
_TRUE, _FALSE = Node("constant", ("true",)), Node("constant", ("false",))
_IS_LEFT: Final = {False: f"{SIDE} <> {RIGHT}", True: f"{SIDE} = 'left'"}
"""By whether sides have names: under ``union``."""
_IS_RIGHT: Final = f"{SIDE} >= {RIGHT}"


@dataclass(frozen=True, slots=True)
class OneSequence:
    """The columns of both sides of a join in the one sequence, and the expressions over its rows.

    ``spec``, ``key``, ``order_by``, ``options``: on which the job and its join agree; ``options.emit`` as it comes out.
    ``join``: the request.
    ``pairs``: which side of a pair each column is of; ``left`` has the early ones of ``--let``, too. Under ``union``
        nothing is a pair.
    ``own``: columns that the left has as a stream of wincli, which results do not repeat.
    ``expressions``: those that rows decide, guarded by their side.
    ``late``: the columns of ``--let`` that pairs decide, by name.
    ``makes_pairs``: whether what comes out depends on pairs, and not on right rows alone.
    """

    spec: WindowSpec
    key: tuple[str, ...]
    order_by: OrderBy
    options: Options
    join: Join
    pairs: PairColumns
    own: frozenset[str]
    expressions: RowExpressions
    late: Mapping[str, Expression] = field(default_factory=dict)
    makes_pairs: bool = True

    @property
    def has_pairs(self) -> bool:
        return isinstance(self.spec, Joined)

    @property
    def known(self) -> tuple[str, ...]:
        """The names that aggregates may use."""
        right = (name for name, _ in self.pairs.right)
        return (*self.pairs.key, *self.pairs.left, *right, *self.late, *([] if self.has_pairs else [SIDE]))

    @property
    def of_left(self) -> tuple[str, ...]:
        """The columns of the left row that a pane of aggregates is of, where it is of one."""
        is_around = isinstance(self.spec, Joined) and isinstance(self.spec.window, Around)
        return tuple(name for name in self.pairs.left if name not in self.own) if is_around else ()

    @property
    def rows(self) -> tuple[str, ...]:
        """The columns of the result where it shows pairs; under ``union`` those of rows."""
        left, right = (name for name in self.pairs.left if name not in self.own), (name for name, _ in self.pairs.right)
        if not self.has_pairs:
            return (SIDE, *left, *right)
        return (*left, *(each.name for each in self._offset), *right, *self.late)

    def beyond_rows(
        self, late: Mapping[str, Expression], schema: pa.Schema, rows: tuple[str, ...]
    ) -> tuple[pa.Schema, tuple[str, ...], dict[str, Any]]:
        """Return the columns of pairs, those that results show, and the fields of a plan for it.

        ``late``: the columns that pairs decide. ``schema``: those of the one sequence; where no pairs are made they are
        all. Raises `ConfigError` or `SpecError` where an expression over pairs does not fit.
        """
        own: dict[str, Any] = {
            "pairs": self.pairs,
            "match": self._condition(schema),
            "of_left": () if rows else self.of_left,
        }
        if not self.makes_pairs:
            return schema, rows, own
        left, beyond, computed = self._left(schema), [*self._offset, *self._right(schema)], list[ComputedColumn]()
        for name, each in late.items():
            value = bind(each, pa.schema([*left, *beyond]))
            computed.append(ComputedColumn(name, value, str(each)))
            beyond.append(pa.field(name, value.type))
        own |= {"pane_schema": pa.schema(beyond), "of_panes": tuple(computed)}
        return pa.schema([*left, *beyond]), rows, own

    def named(self, late: Mapping[str, Expression], schema: pa.Schema) -> pa.Schema:
        """Return the columns that options may name. Arguments and errors are as of `beyond_rows`."""
        return self.beyond_rows(late, schema, ())[0] if self.has_pairs else schema

    def _condition(self, rows: pa.Schema) -> PairCondition | None:
        if self.options.match is None:
            return None
        match = _inlined(self.options.match, self.late)
        with naming_option("--match"):
            value = bind_condition(match, pa.schema([*self._left(rows), *self._right(rows)]))
        return PairCondition(value, chosen(self.pairs, value.columns))

    def of_right_rows(
        self, calls: Sequence[AggregateCall], columns: Mapping[str, Expression]
    ) -> tuple[tuple[AggregateCall, ...], dict[str, Expression]]:
        """Return aggregates over the right rows of panes, as these are stored, with the columns of their arguments."""
        stored = dict(self.pairs.right)
        guard = parse_expression(_IS_RIGHT).root
        early = {name: _guarded(_renamed(each, stored), guard) for name, each in columns.items()}

        def argument(given: Argument) -> Argument:
            return Column(stored.get(given.name, given.name)) if isinstance(given, Column) else given

        return tuple(replace(call, arguments=tuple(map(argument, call.arguments))) for call in calls), early

    def of_window(self, conditions: Mapping[str, Expression]) -> Mapping[str, Expression]:
        """Return conditions of a window over both sides: right rows have no value in columns of the left.

        With a path they are stored so; in one log a row has the values of its columns on whichever side it is.
        """
        if not self.has_pairs or self.join.path is not None:
            return conditions
        order = self.order_by or ()
        of_left = {name for name in self.pairs.left if name not in order}
        guard = parse_expression(_IS_LEFT[False]).root

        def change(node: Node) -> Node | None:
            if node.kind != "column" or node.value[0] not in of_left:
                return None
            return Node("case", ("", ""), (_placed(guard, ""), node), node.span)

        return {
            name: Expression(each.text, transform(each.root, change), each.source) for name, each in conditions.items()
        }

    @property
    def _offset(self) -> list[pa.Field]:
        """The column with the offset of each pair, in seconds or units of a number."""
        window = self.spec.window if isinstance(self.spec, Joined) else None
        if not isinstance(window, At):
            return []
        whole = all(each.denominator == 1 for each in window.offsets)
        return [pa.field(f"{self.join.name}_offset", pa.int64() if whole else pa.float64())]

    def _left(self, rows: pa.Schema) -> list[pa.Field]:
        return [rows.field(name) for name in (*self.pairs.key, *self.pairs.left)]

    def _right(self, rows: pa.Schema) -> list[pa.Field]:
        return [pa.field(name, rows.field(stored).type) for name, stored in self.pairs.right]


def chosen(pairs: PairColumns, names: Iterable[str]) -> PairColumns:
    """Return those of the columns of pairs that ``names`` has."""
    names = set(names)
    key, left = (tuple(name for name in group if name in names) for group in (pairs.key, pairs.left))
    return PairColumns(key, left, tuple(pair for pair in pairs.right if pair[0] in names))


def one_sequence(
    spec: WindowSpec,
    schema: pa.Schema,
    key: Sequence[str],
    order_by: OrderBy,
    calls: Calls,
    options: Options,
    stream: StreamInfo | None,
) -> OneSequence:
    """Bring a job and its join together, and divide the expressions by what decides them.

    ``schema``: as `windowing.planning.sides.bind_sides` merges it; of one log that of the log. The others are as in
    `make_plan`. Raises `ConfigError` where the job and the join disagree, and for columns that are not there, or are
    there already.
    """
    join = options.join
    assert join is not None
    own_key, order_by = _agreed(join, key, order_by)
    if calls is None and options.emit == "aggregates" and options.operator is None:
        options = replace(options, emit="entered" if isinstance(spec, SideWindows) else "rows")
    left, right = _columns(join, schema)
    of_pairs = set[str]() if join.how == "union" else {name for name, _ in right}
    late, early = dict[str, Expression](), list[tuple[str, Expression]]()
    for name, each in options.let:
        if of_pairs.union(late).intersection(each.columns):
            late[name] = each
        else:
            early.append((name, each))
    pairs = PairColumns(own_key, tuple(n for n in (*left, *(n for n, _ in early)) if n not in own_key), right)
    own = frozenset(() if stream is None else stream.own)
    if join.path is None:
        expressions = _of_one_log(join, early, options.where)
    else:
        expressions = _of_two(join, early, options.where, {name for name, _ in right})
    if order_by and order_by != "arrival" and kind_of(joined(spec, join)).needs.watermark:
        options = replace(options, event_time=options.event_time or order_by[0])
    found = OneSequence(joined(spec, join), own_key, order_by, options, join, pairs, own, expressions, late)
    return replace(found, makes_pairs=not _reads_right_alone(found, calls))


def _agreed(join: Join, key: Sequence[str], order_by: OrderBy) -> tuple[tuple[str, ...], OrderBy]:
    who, keys = f"--join {join.name}", join_keys(join, key)
    if join.path is None:
        for pair in (*keys, *join.orders):
            if pair.left != pair.right:
                what = f"{who}: {pair} says two columns, and a row of one log has one place"
                raise ConfigError(what, f"read the log twice: {join.name}=PATH, with the path of the input")
    return tuple(pair.left for pair in keys), join_order(join, order_by)


def _columns(join: Join, schema: pa.Schema) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return the columns of the left, and those of the right by their names in pairs, each with that where it is."""
    who = f"--join {join.name}"
    if join.path is None:
        if join.where is not None:
            with naming_option(who):
                bind_condition(join.where, schema)
        if join.how == "union":  # rows as they are: their columns have no second name
            return tuple(schema.names), ()
        given = [(own, name) for name, own in join.columns(schema.names).items()]
        _, fields = bind_taken(who, join.name, given, [*schema.names, SIDE], schema)
        return tuple(schema.names), tuple((each.name, own) for each, (own, _) in zip(fields, given, strict=True))
    if SIDE not in schema.names:
        do = "here give the table of the right side, or say NAME alone for the rows themselves"
        raise ConfigError(f"{who}: the rows of {join.path} are not there", do)
    at = schema.names.index(SIDE)
    if join.take is None:
        right = tuple((name, name) for name in schema.names[:at])
    else:
        right = tuple((name, join.stored(own)) for name, own in join.columns(()).items())
    left = tuple(name for name in schema.names[at + 1 :] if not name.startswith(HIDDEN))
    if join.how == "union":
        return left, right
    # the order of a right row stands in that of the left, too: where it has the same type it is read once
    again = {join.stored(pair.right): pair.left for pair in join.orders}
    types = dict(zip(schema.names, schema.types, strict=True))
    again = {own: name for own, name in again.items() if types.get(own) == types[name]}
    return left, tuple((name, again.get(stored, stored)) for name, stored in right)


def _reads_right_alone(sides: OneSequence, calls: Calls) -> bool:
    """Whether what comes out are aggregates over right rows alone, of panes that are ranges of these."""
    spec, options = sides.spec, sides.options
    if not isinstance(spec, Joined) or not isinstance(spec.window, Around) or spec.join.how not in ("inner", "left"):
        return False
    if options.match is not None or options.group_by or options.emit != "aggregates":
        return False
    right = {*sides.key, *(name for name, _ in sides.pairs.right)}
    return {name for item in calls or () for call in item.calls for name in _named(call)} <= right


def _named(call: AggregateCall) -> tuple[str, ...]:
    where = () if call.where is None else call.where.columns
    columns = [each.name for each in call.arguments if isinstance(each, Column)]
    return (*where, *columns, *(n for each in call.arguments if isinstance(each, Expression) for n in each.columns))


# Expressions over rows of one side, in the one sequence.


def _of_two(
    join: Join, let: Sequence[tuple[str, Expression]], where: Expression | None, right: set[str]
) -> RowExpressions:
    guard = parse_expression(_IS_LEFT[join.how == "union"]).root
    # one that reads the right, under ``union``, sees every row
    guarded = tuple((name, each if right.intersection(each.columns) else _guarded(each, guard)) for name, each in let)
    if where is None and join.where is None:
        return RowExpressions(guarded)
    source = "" if where is None else where.source
    own = _TRUE if where is None else _truth(where.root)
    stored = {} if join.where is None else {name: join.stored(name) for name in join.where.columns}
    other = _TRUE if join.where is None else _truth(_placed(_renamed(join.where, stored).root, source))
    root = Node("case", ("", "else"), (_placed(guard, source), own, other), Span(0, len(source)))
    return RowExpressions(guarded, Expression(_text(join, where), root, source))


def _of_one_log(join: Join, let: Sequence[tuple[str, Expression]], where: Expression | None) -> RowExpressions:
    """Return expressions over one log, whose rows get a side: those of neither are left out.

    Under ``union`` a row of both comes once, as one of the left, and all rows have the columns of ``--let``.
    """
    conditions = [each for each in (where, join.where) if each is not None]
    wanted = {name for each in conditions for name in each.columns}
    for name, each in reversed(let):
        wanted |= set(each.columns) if name in wanted else set()
    source = "" if where is None else where.source
    own = _TRUE if where is None else where.root
    other = _TRUE if join.where is None else _placed(join.where.root, source)
    both = Node("case", ("", "else"), (other, _number(BOTH), _number(LEFT)))
    side = Node("case", ("", ""), (own, both, other, _number(RIGHT)))
    root = Node("cast", ("cast", "tinyint"), (side,), Span(0, len(source)))
    guard = parse_expression(_IS_LEFT[False]).root
    if join.how == "union":
        root, guard = Node("case", ("", ""), (own, _named_side(LEFT), other, _named_side(RIGHT))), _TRUE
    first = [(name, each) for name, each in let if name in wanted]
    then = [(name, _guarded(each, guard)) for name, each in let if name not in wanted]
    columns = (*first, (SIDE, Expression(_text(join, where) or SIDE, root, source)), *then)
    return RowExpressions(columns, parse_expression(f"{SIDE} IS NOT NULL") if len(conditions) == 2 else None)


def _text(join: Join, where: Expression | None) -> str:
    return "; ".join(str(each) for each in (where, join.where) if each is not None)


def _number(value: int) -> Node:
    return Node("number", (str(value),))


def _named_side(side: int) -> Node:
    return Node("text", (SIDES[side],))


def _truth(root: Node) -> Node:
    """Return a condition that is never null of whatever can be one."""
    return Node("case", ("", "else"), (root, _TRUE, _FALSE), root.span)


def _placed(root: Node, source: str) -> Node:
    """Return a tree that has no place in a source: a mistake in it shows the source as a whole."""
    return replace(root, operands=tuple(_placed(each, source) for each in root.operands), span=Span(0, len(source)))


def _guarded(expression: Expression, guard: Node) -> Expression:
    """Return an expression that is null, and cannot fail, where ``guard`` is not true; it keeps its text."""
    source = expression.source
    root = Node("case", ("", ""), (_placed(guard, source), expression.root), Span(0, len(source)))
    return Expression(expression.text, root, source)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    def change(node: Node) -> Node | None:
        return replace(node, value=(names.get(node.value[0], node.value[0]),)) if node.kind == "column" else None

    return Expression(expression.text, transform(expression.root, change), expression.source)


def _inlined(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Return an expression with the columns that pairs decide written out in it."""

    def change(node: Node) -> Node | None:
        if node.kind != "column" or node.value[0] not in columns:
            return None
        return _placed(_inlined(columns[node.value[0]], columns).root, expression.source)

    return Expression(expression.text, transform(expression.root, change), expression.source)
