"""A plan: a window bound to the columns of its input, and the schema of its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from ..aggregates.inputs import plain_type
from ..aggregates.table import Bound, bind, columns_of, reads_rows
from ..enrichment.window_table import GivenTable, WindowTable, bind_windows, no_windows
from ..errors import ConfigError, Span, naming_option
from ..expressions.binding import bind as bind_expression
from ..expressions.binding import bind_condition
from ..expressions.lags import check_no_lag
from ..expressions.nodes import Node, moved, walk
from ..expressions.syntax import Expression, expression_of, parse_expression
from ..kinds.context import WindowContext
from ..kinds.contract import WindowKind
from ..kinds.needs import Causes, Explain, PaneTimes
from ..kinds.registry import kind_of
from ..language.joins import SIDE, Around, At
from ..language.options import Options, SortKey, sort_key
from ..language.spec import (
    HIDDEN,
    AggregateCall,
    AggregateExpression,
    Argument,
    Column,
    Joined,
    Lasting,
    TableWindows,
    WindowSpec,
)
from ..language.tokens import column_text
from ..operator import load, output_fields
from ..ports import StreamInfo
from ..rows.lag_columns import NUMBER, LagColumn, among, inputs_of
from ..rows.pairs import PairColumns, PairCondition
from ..rows.projection import ComputedColumn, Projection, RowExpressions, make_projection
from .join_rules import check_join
from .matched_calls import check_symbols, gives_steps, matched_calls, steps_of
from .one_sequence import OneSequence, chosen, one_sequence
from .pane_columns import apart, bind_late, reads_panes
from .result_schema import FIXED, MARK, OUTPUTS, POS, ROW, STEP, TURN, head_fields, numbered, result_schema
from .row_order import Order, OrderBy, choose_event_time, choose_order, time_columns
from .validation import (
    Look,
    check_lasting,
    check_options,
    check_order_known,
    check_over_time,
    check_units,
    check_window,
    field_of,
    lasting,
    no_look,
)

# Lowering: aggregates with expressions become plain calls over columns, and expressions over their results.
#
# An argument that is an expression becomes a hidden column of the input. A filter becomes part of the arguments: all
# built-in aggregates skip nulls, so they look at the rows where it is true (section 11). A user function looks at all
# rows that it is given, so for it the filter stays, as a column.


@dataclass(frozen=True, slots=True)
class LoweredAggregates:
    """Aggregates as plain calls.

    ``calls``: the calls, each once; their arguments are columns and literals.
    ``filters``: the column of the filter of a user function, by the name of the call.
    ``columns``: the hidden columns of the input that they read, by name.
    ``results``: the columns of the result in order, each with its expression over the calls; None: it is a call.
    """

    calls: tuple[AggregateCall, ...] = ()
    filters: dict[str, str] = field(default_factory=dict)
    columns: dict[str, Expression] = field(default_factory=dict)
    results: tuple[tuple[str, Expression | None], ...] = ()


def lower(items: Sequence[AggregateCall | AggregateExpression], names: Iterable[str]) -> LoweredAggregates:
    """Lower aggregates; ``names``: the columns of the input, and those of ``--let``."""
    known = frozenset(names)
    lowered = LoweredAggregates()
    calls: dict[str, AggregateCall] = {}
    results: list[tuple[str, Expression | None]] = []
    for item in items:
        results.append((item.name, item.expression if isinstance(item, AggregateExpression) else None))
        for call in item.calls:
            calls.setdefault(str(call), _lower(call, known, lowered))
    return replace(lowered, calls=tuple(calls.values()), results=tuple(results))


def _lower(call: AggregateCall, known: frozenset[str], lowered: LoweredAggregates) -> AggregateCall:
    def column(expression: Expression) -> Column:
        name = HIDDEN + str(expression)
        lowered.columns[name] = expression
        return Column(name)

    arguments = call.arguments
    if call.where is not None and (":" in call.function or reads_rows(call)):
        lowered.filters[call.name] = column(call.where).name
    elif call.where is not None:
        arguments = tuple(_where_true(each, call.where) for each in arguments or (parse_expression("TRUE"),))
    plain: list[Argument] = []
    for each in arguments:
        if isinstance(each, Expression):
            plain.append(column(each))
        elif isinstance(each, Column) and each.name not in known and each.name.partition(".")[0] in known:
            plain.append(column(parse_expression(each.name)))  # a field of a column
        else:
            plain.append(each)
    return AggregateCall(call.name, call.function, tuple(plain), fills=call.fills)


def _where_true(argument: Argument, where: Expression) -> Argument:
    """Return an argument that is null where the filter is not true; a literal stays."""
    if not isinstance(argument, Column | Expression):
        return argument
    source = where.source
    if isinstance(argument, Expression) and argument.source == source:
        value = argument.root
    else:
        # The tree of a text that has no place in a source: a mistake in it shows the source as a whole.
        value = moved(parse_expression(str(argument)).root, lambda at: at and len(source))
    return expression_of(Node("case", ("", ""), (where.root, value), Span(0, len(source))), source)


# The values of a result that expressions compute: arithmetic over aggregates, and the condition of ``--having``.


def result_columns(lowered: LoweredAggregates, aggregates: Sequence[Bound]) -> tuple[ComputedColumn, ...]:
    """Bind the expressions over aggregates. Raises `ConfigError` or `SpecError` where types do not fit."""
    schema = pa.schema([(bound.name, bound.type) for bound in aggregates])
    computed = [(name, each) for name, each in lowered.results if each is not None]
    for name, each in computed:
        check_no_lag(each, f"--agg {name}")
        for node in walk(each.root):
            if node.kind == "column" and node.value[0] not in schema.names:
                what = f"{node.value[0]!r} is in no aggregate, and here each column must be in one"
                raise each.error(what, node.span, f"write for example last({column_text(node.value[0])})")
    return tuple(ComputedColumn(name, bind_expression(each, schema), f"--agg {name}") for name, each in computed)


def _having(condition: Expression | None, schema: pa.Schema) -> ComputedColumn | None:
    if condition is None:
        return None
    check_no_lag(condition, "--having")
    with naming_option("--having"):
        return ComputedColumn("--having", bind_condition(condition, schema), "--having")


_MOST_ROWS_OUT = Fraction(100)  # for each row of the input: larger estimates would make too many slices


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a scan needs besides the rows.

    ``order``: the order columns of the user, and why they were chosen.
    ``sort``: the columns that sort rows, with ties in arrival order; more than ``order`` where the input is a stream.
    ``at``: the sort columns that are written as ``_at``, ``_at_2``, ...
    ``pos``: the column that is written as ``_pos``; None: the arrival position.
    ``ties``: the other sort columns, written as ``_tie``, ``_tie_2``, ... so that the next stage can use the order.
    ``aggregates``: the aggregates, bound to their columns.
    ``rows``: the columns that are written unchanged where panes emit rows, or that an operator receives.
    ``sort_rows``: the sort keys of these rows within a pane.
    ``schema``: the schema of the result, including stream columns unless ``plain``.
    ``of_panes``: the computed columns that depend on the window that shows a row.
    ``pane_schema``: the schema of those that rows have in their windows (`Needs.pane_columns`), then of these; empty
        where nothing reads them.
    ``carried``: further columns that sequences hold, though no window looks at them.
    ``weight``: the column that says how many rows of the input a row represents; None: one each.
    ``projection``: the columns and rows of the input that the window sees.
    ``results``: the result columns that expressions compute of others.
    ``having``: which rows of the result are written; None: all.
    ``windows``: the windows of a table; None where windows are of no table.
    ``pairs``: the columns of pairs of rows of a join; None where windows show rows.
    ``match``: the condition of pairs; None: all match.
    ``of_left``: the columns of the left row that a pane is of.
    """

    spec: WindowSpec
    key: tuple[str, ...]
    order: Order
    sort: tuple[str, ...]
    at: tuple[str, ...]
    pos: str | None
    ties: tuple[str, ...]
    aggregates: tuple[Bound, ...]
    rows: tuple[str, ...]
    sort_rows: tuple[SortKey, ...]
    options: Options
    schema: pa.Schema
    weight: str | None = None
    projection: Projection = Projection(pa.schema([]))  # noqa: RUF009 - frozen
    results: tuple[ComputedColumn, ...] = ()
    having: ComputedColumn | None = None
    of_panes: tuple[ComputedColumn, ...] = ()
    pane_schema: pa.Schema = pa.schema([])  # noqa: RUF009 - frozen
    carried: tuple[str, ...] = ()
    windows: WindowTable | None = None
    pairs: PairColumns | None = None
    match: PairCondition | None = None
    of_left: tuple[str, ...] = ()

    @property
    def kind(self) -> WindowKind:
        return kind_of(self.spec)

    @property
    def context(self) -> WindowContext:
        options = self.options
        return WindowContext(
            **{**{each.name: getattr(options, each.name) for each in fields(options)}, "match": self.match},
            sort=self.sort,
            in_event_order=bool(self.order.columns),
            windows=self.windows,
        )

    def times(self, clock: pa.DataType) -> PaneTimes:
        """Return the times of panes on a clock column of this type: windows of a table have those of the table."""
        if self.windows is not None:
            return PaneTimes(self.windows.bound.type, self.windows.bound.type)
        return self.kind.times(clock, self.options.origin)

    @property
    def lets_vote(self) -> bool:
        """Whether rows ahead of their time vote on the watermark; where rows have an order, they are rejected."""
        return self.options.max_ahead is not None and self.kind.needs.watermark and not self.order.columns

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.key, *self.read_values]))

    @property
    def lag_columns(self) -> tuple[LagColumn, ...]:
        return among(self.projection.lags, self.values) if self.projection.lags else ()

    @property
    def read_values(self) -> tuple[str, ...]:
        names = {column.name for column in self.lag_columns}
        return tuple(dict.fromkeys([*(name for name in self.values if name not in names), *self.looked_at]))

    @property
    def looks_back(self) -> bool:
        """Whether rows of its key before a row decide what windows see of it: by ``lag``, or as its duplicates."""
        return bool(self.lag_columns) or self.options.distinct is not None

    @property
    def looked_at(self) -> tuple[str, ...]:
        """The columns that a row looks at in rows before."""
        distinct, names = self.options.distinct, inputs_of(self.lag_columns)
        if distinct is not None:
            names = (*names, *distinct.columns, *(self.sort[:1] if distinct.within is not None else ()))
        return tuple(dict.fromkeys(names))

    @property
    def looked_back(self) -> pa.Schema:
        """What a state keeps of rows that others look back at."""
        distinct, own = self.options.distinct, [self.projection.schema.field(name) for name in self.looked_at]
        counts = distinct is not None and distinct.count is not None
        return pa.schema([*own, *([(NUMBER, pa.int64())] if counts else [])])

    @property
    def uses_clock(self) -> bool:
        """Whether the order column must be read in seconds: the window does, or ``--distinct`` says ``within``."""
        distinct = self.options.distinct
        return self.kind.needs.clock or (distinct is not None and distinct.within is not None)

    @property
    def values(self) -> tuple[str, ...]:
        """The columns that sequences hold, without repeats: a key column only where it has another use as well."""
        late = set(self.pane_schema.names)
        used = [name for name in self._used if name not in late]
        if self.pairs is not None:
            for each in (self.pair_columns, *([] if self.match is None else [self.match.columns])):
                used += [*each.key, *each.left, *(stored for _, stored in each.right)]
            used.append(SIDE)
        return tuple(dict.fromkeys(used))

    @property
    def _used(self) -> list[str]:
        event_time = [self.options.event_time] if self.options.event_time else []
        used = [*self.sort, *self.kind.needs.attributes, *event_time, *self.options.group_by, *self.rows]
        used += [*self.carried, *(key.name for key in self.sort_rows)] + ([self.weight] if self.weight else [])
        used += [b.filter for b in self.aggregates if b.filter is not None]
        used += [*(c for b in self.aggregates for c in b.columns), *(c for p in self.of_panes for c in p.value.columns)]
        return [*used, *self.of_left]

    @property
    def only_shown(self) -> list[str]:
        """The columns of sequences that rows of the result show, and nothing else reads."""
        if self.options.operator is not None:
            return []
        reads = Counter([*self._used, *self.key, *(() if self.match is None else self.match.value.columns)])
        stored = dict(() if self.pairs is None else self.pairs.right)
        others = {stored.get(name, name) for name, uses in reads.items() if uses > 1 or name not in self.rows}
        found = dict.fromkeys(stored.get(name, name) for name in self.rows)
        return [name for name in found if name in self.values and name not in {*others, *self.looked_at}]

    @property
    def pair_columns(self) -> PairColumns:
        """The columns of pairs that something reads, where there are pairs."""
        assert self.pairs is not None
        return chosen(self.pairs, self._used)

    @property
    def over_time(self) -> tuple[Bound, ...]:
        """The aggregates that depend on what their key had before."""
        return tuple(bound for bound in self.aggregates if bound.carries)

    @property
    def ongoing(self) -> Mapping[str, pa.DataType]:
        """What a state holds of each key for ``over_time``, values that hold and values that fill: names and types."""
        types, found = self.projection.schema, dict[str, pa.DataType]()
        for bound in self.over_time:
            found |= {bound.call.unfilled: plain_type(types.field(bound.columns[0]).type)} if bound.holds_on else {}
            found |= {bound.text: bound.type} if bound.call.fills else {}
        return found

    @property
    def emits_rows(self) -> bool:
        return self.options.emit != "aggregates" or self.options.operator is not None

    @property
    def causes(self) -> Causes:
        """What triggers panes; with an operator, also what triggers the rows between them."""
        return "both" if self.options.operator and self.kind.needs.causes == "ticks" else self.kind.needs.causes

    @property
    def at_names(self) -> tuple[str, ...]:
        count = 1 if not self.at or self.causes == "ticks" else len(self.at)
        return tuple(numbered("_at", i) for i in range(count))

    @property
    def rows_out_per_row(self) -> Fraction:
        """About how many rows of the result a row causes, where that may be many: an estimate of a task's memory."""
        return min(self.kind.needs.rows_out_per_row, _MOST_ROWS_OUT)

    @property
    def reads_result(self) -> bool:
        return self.pos is not None

    @property
    def takes_marks(self) -> bool:
        """Whether the window uses incoming marks: only ``punct()`` does."""
        return self.kind.needs.marks

    @property
    def pair_ties(self) -> dict[str, str | None]:
        """The stream columns that put panes of pairs of `Around` at one instant in the one order: of the left first.

        Each with the column of the one sequence that it shows, of a row of the pane; None: its arrival position.
        ``_at``: the instant at which a pane would have come out that the end of the data brings out.
        """
        window = self.spec.window if isinstance(self.spec, Joined) else None
        shown: list[str | None] = []
        if isinstance(window, Around | At):  # panes of others come by window and key, as ever
            shown = ["_at", SIDE, *self.order.columns[1:], None]
        return {numbered("_tie", i): name for i, name in enumerate(shown)}

    @property
    def stream_names(self) -> tuple[str, ...]:
        in_order = [*self.at_names, POS]
        if self.pairs is not None:
            return (in_order[0], TURN, *in_order[1:], *self.pair_ties)
        if self.ties:
            names = {name: numbered("_tie", i) for i, name in enumerate(self.ties)}
            names |= {POS: POS} | {name: numbered("_at", i) for i, name in enumerate(self.at)}
            in_order = list(dict.fromkeys([*(names[name] for name in self.sort), POS]))
        if self.causes == "both" and (len(self.at) > 1 or self.ties):
            in_order.insert(1, TURN)
        return tuple(in_order)

    @property
    def place_names(self) -> tuple[str, ...]:
        return (STEP, ROW) if self.options.operator else (ROW,) if self.emits_rows else ()

    @property
    def clock(self) -> str | None:
        return self.options.event_time or (self.sort[0] if self.sort else None)

    @property
    def watches_falls(self) -> str | None:
        """The attribute whose decreases deserve a note: a number that a tumbling window compares in arrival order."""
        return None if self.order.columns else self.kind.needs.watched


def make_plan(
    spec: WindowSpec,
    schema: pa.Schema,
    key: Sequence[str] = (),
    order_by: OrderBy = None,
    calls: Sequence[AggregateCall | AggregateExpression] | None = None,
    options: Options = Options(),  # noqa: B008 - frozen
    stream: StreamInfo | None = None,
    explain: Explain = lambda _: None,
    look: Look = no_look,
    of_folders: Collection[str] = (),
    tables: Sequence[GivenTable] = (),
) -> Plan:
    """Bind a window to the columns of ``schema``.

    ``calls``: the aggregates; None for ``count()``. ``stream``: the emission order of the input, where it is an earlier
    result. ``explain``: a function that returns which value made a column text, or None, for messages. ``look``: a
    function that looks at values of a column, where a time meets numbers. ``of_folders``: the columns whose values are
    in names of folders. ``tables``: those that may have the windows.

    Raises `ConfigError` for columns that are missing or have the wrong type, options that cannot be combined, and
    output names that clash.
    """
    sides = _sides(spec, schema, key, order_by, calls, options, stream)
    if sides is not None:
        spec, key, order_by, options = sides.spec, sides.key, sides.order_by, sides.options
    spec, known = lasting(spec, options, order_by), (*schema.names, *(name for name, _ in options.let))
    if calls is None and gives_steps(spec, options):  # they name the order column, which is chosen first
        others = (replace(options, having=None), stream, explain, look, of_folders, tables)
        calls = steps_of(spec, make_plan(spec, schema, key, order_by, (), *others).order.columns[0])
    items = (AggregateCall("count", "count"),) if calls is None else matched_calls(calls, spec)
    check_symbols(spec, items, known)
    lowered, late, named = _divided(spec, items, known, sides)
    projection = _projection(spec, schema, [*key, *named], order_by, lowered, options, sides)
    times = [name for name in time_columns(projection.schema, schema, key, of_folders) if name != options.ends]
    schema = projection.schema
    if options.ends is not None:
        field_of(schema, options.ends, "--ends")
    check_order_known(projection, spec, key, order_by or (), options)
    check_window(spec, schema, key, explain)
    if kind_of(spec).needs.watermark:
        options = replace(options, event_time=choose_event_time(spec, schema, options.event_time, times))
    order = choose_order(spec, schema, order_by, times)
    check_options(spec, schema if sides is None else sides.named(late, schema), key, order, options, len(calls or ()))
    check_lasting(spec, schema, order, options)
    check_units(spec, schema, options.event_time or next(iter(order.columns), None), options, look)
    rows: tuple[str, ...] = ()
    if options.emit != "aggregates" or options.operator is not None:  # without what the stage before has added
        left_out = {*projection.hidden, *key, *(stream.own if stream else ())}
        rows = tuple(name for name in schema.names if name not in left_out) if sides is None else sides.rows
    emission = stream.order if stream else ()
    sort = tuple(dict.fromkeys([*order.columns, *emission]))
    windows = _windows(spec, schema, key, sort, options, tables)
    schema, rows, of_panes = _beyond_rows(spec, schema, order, options, windows, lowered, late, rows, sides)
    clock = options.event_time or next(iter(sort), None)
    aggregates = () if rows else tuple(_bound(call, schema, lowered, clock) for call in lowered.calls)
    check_over_time(spec, aggregates, options)
    at = tuple(dict.fromkeys([*order.columns, *(stream.at if stream else ())]))
    pos = POS if stream else None
    by_clock = kind_of(spec).needs.causes == "ticks" and options.operator is None
    ties = () if by_clock else tuple(name for name in sort if name not in (*at, pos))
    sort_rows = tuple(sort_key(text, schema.names) for text in options.sort_by)
    plan = Plan(spec, tuple(key), order, sort, at, pos, ties, aggregates, rows, sort_rows, options, schema)
    plan = replace(plan, windows=windows, **of_panes)
    plan = replace(plan, projection=projection, results=() if rows else result_columns(lowered, aggregates))
    types = {each.name: each.type for each in aggregates} | {each.name: each.value.type for each in plan.results}
    values = [] if rows else [pa.field(name, types[name]) for name, _ in lowered.results]
    plan = replace(plan, schema=_result_schema(plan, schema, values))
    return replace(plan, having=_having(options.having, plan.schema))


def stream_of(plan: Plan) -> StreamInfo:
    """Return how the result of a plan is read back as a stream: in the order of the rows that caused its panes."""
    step, row = ((STEP,) if plan.options.operator else ()), ((ROW,) if plan.emits_rows else ())
    own_columns = (*FIXED, *(OUTPUTS if plan.options.event_time else ()), *plan.stream_names, *plan.place_names, MARK)
    order = (*plan.stream_names, *step, "window", *plan.key, *plan.options.group_by, *row)
    return StreamInfo(order, plan.at_names, own_columns)


def panes_only(plan: Plan) -> Plan:
    """Return the plan of the same window with no output but the columns that describe its panes."""
    options = replace(plan.options, emit="aggregates", group_by=(), sort_by=(), operator=None)
    kept = {*plan.key, *FIXED, *(OUTPUTS if options.event_time else ()), *plan.stream_names, MARK}
    head = [field for field in plan.schema if field.name in kept]
    kept_rows = replace(plan, aggregates=(), rows=(), sort_rows=(), results=(), having=None, of_panes=())
    return replace(kept_rows, options=options, schema=pa.schema(head))


def _sides(
    spec: WindowSpec,
    schema: pa.Schema,
    key: Sequence[str],
    order_by: OrderBy,
    calls: Sequence[AggregateCall | AggregateExpression] | None,
    options: Options,
    stream: StreamInfo | None,
) -> OneSequence | None:
    """Return what there is of a join; None: there is none."""
    spec = spec.window if isinstance(spec, Joined) else spec
    check_join(spec, options, calls, schema.names)
    return None if options.join is None else one_sequence(spec, schema, key, order_by, calls, options, stream)


def _divided(
    spec: WindowSpec,
    items: Sequence[AggregateCall | AggregateExpression],
    known: Iterable[str],
    sides: OneSequence | None,
) -> tuple[LoweredAggregates, dict[str, Expression], list[str]]:
    """Lower aggregates. Their hidden columns are those that rows decide; those that panes decide are returned beside.

    Also return what these read of rows.
    """
    lowered = lower(items, known if sides is None else sides.known)
    if sides is None or not sides.has_pairs:
        columns, late = apart(lowered.calls, lowered.columns, known, kind_of(spec).needs.pane_columns)
        return replace(lowered, columns=columns), late, [name for each in late.values() for name in each.columns]
    if sides.makes_pairs:
        return replace(lowered, columns={}), {**sides.late, **lowered.columns}, []
    calls, columns = sides.of_right_rows(lowered.calls, lowered.columns)
    return replace(lowered, calls=calls, columns=columns), {}, []


def _beyond_rows(
    spec: WindowSpec,
    schema: pa.Schema,
    order: Order,
    options: Options,
    windows: WindowTable | None,
    lowered: LoweredAggregates,
    late: Mapping[str, Expression],
    rows: tuple[str, ...],
    sides: OneSequence | None,
) -> tuple[pa.Schema, tuple[str, ...], dict[str, Any]]:
    """Return all columns that rows have in panes, those of results that show rows, and the fields of the plan for it.

    ``late``: the columns that panes decide. ``rows``: the columns that results show of rows alone.
    """
    in_panes = kind_of(spec).needs.pane_columns
    shown = in_panes if rows and options.operator is None else {}
    if sides is not None and sides.has_pairs:
        return sides.beyond_rows(late, schema, rows)
    if options.ends is not None or late or shown or reads_panes(lowered.calls, in_panes):
        bounds = _bounds(spec, schema, order, options, windows) if options.ends is not None else None
        pane_schema, of_panes = bind_late(late, schema, in_panes, bounds)
        own = {"pane_schema": pane_schema, "of_panes": of_panes}
        return pa.schema([*schema, *pane_schema]), (*rows, *shown), own
    return schema, rows, {}


def _windows(
    spec: WindowSpec, schema: pa.Schema, key: Sequence[str], sort: Sequence[str], options: Options,
    tables: Sequence[GivenTable],
) -> WindowTable | None:  # fmt: skip
    """Return the windows of a table, which are not read yet. Raises `ConfigError` where there is no such table."""
    spec = spec.window if isinstance(spec, Lasting) else spec
    if not isinstance(spec, TableWindows):
        return None
    found = next((each for each in tables if each.request.name == spec.name), None)
    if found is None:
        do = f'--windows "{spec.name}=PATH [on KEY] from START to END"'
        raise ConfigError(f"{spec} needs its windows", do)
    is_right, with_empty = options.closed == "right", options.empty == "row"
    sides = (found.request, found.schema, schema, key, sort[0])
    return no_windows(bind_windows(*sides, is_right=is_right, with_empty=with_empty, own=found.own), found.schema)


def _bounds(
    spec: WindowSpec, schema: pa.Schema, order: Order, options: Options, windows: WindowTable | None
) -> pa.DataType:
    """Return the type of the bounds of windows over rows that last."""
    bounds = kind_of(spec).times(schema.field(order.columns[0]).type, options.origin).bounds
    return (bounds if windows is None else windows.bound.type) or pa.int64()


def _projection(
    spec: WindowSpec,
    schema: pa.Schema,
    key: Sequence[str],
    order_by: OrderBy,
    lowered: LoweredAggregates,
    options: Options,
    sides: OneSequence | None,
) -> Projection:
    """Bind the expressions over rows; any name in the window, its key, order or options may be a virtual column."""
    named = [*key, *(order_by or ()), *kind_of(spec).needs.attributes, *options.group_by, *options.sort_by]
    named += options.distinct.columns if options.distinct is not None else ()
    named += [options.event_time or "", *(name for call in lowered.calls for name in columns_of(call))]
    of_window = kind_of(spec).needs.expressions
    derived = {**lowered.columns, **(of_window if sides is None else sides.of_window(of_window))}
    expressions = RowExpressions(options.let, options.where) if sides is None else sides.expressions
    return make_projection(schema, expressions, derived, named)


def _bound(call: AggregateCall, schema: pa.Schema, lowered: LoweredAggregates, clock: str | None) -> Bound:
    for name in columns_of(call):
        field_of(schema, name, call.text if call.name.startswith(HIDDEN) else str(call))
    return replace(bind(call, schema, clock), filter=lowered.filters.get(call.name))


def _result_schema(plan: Plan, schema: pa.Schema, values: Sequence[pa.Field]) -> pa.Schema:
    first = schema.field(plan.at[0]).type if plan.at else pa.int64()
    clock = schema.field(plan.clock).type if plan.clock else first
    times = plan.times(clock)
    head = [schema.field(name) for name in (*plan.key, *plan.options.group_by)]
    if plan.options.operator is not None:
        values = output_fields(load(plan.options.operator))
    elif plan.rows:
        values = [schema.field(name) for name in plan.rows]
    types = dict(zip(plan.at_names, [schema.field(name).type for name in plan.at] or [pa.int64()], strict=False))
    types["_at"] = times.instants or first
    types |= {POS: pa.int64(), TURN: pa.int8()}
    types |= {numbered("_tie", i): schema.field(name).type for i, name in enumerate(plan.ties)}
    of_rows = {None: pa.int64(), SIDE: pa.int8(), "_at": types["_at"]}
    types |= {tie: of_rows.get(name) or schema.field(name).type for tie, name in plan.pair_ties.items()}
    stamps = [pa.field(name, types[name]) for name in plan.stream_names]
    outputs = plan.kind.needs.watermark
    attributes = [] if plan.windows is None else list(plan.windows.bound.fields)
    attributes += [schema.field(name) for name in plan.of_left]
    return result_schema(
        [*head_fields(head, times.bounds or first, outputs), *attributes],
        values,
        stamps,
        plan.place_names,
        plan.options.plain,
    )
