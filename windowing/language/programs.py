"""Conditions and amounts that look at windows: aggregates of the open window, of the window before, of a match.

Sections 12, 13 and 15 of the semantics.

What such an expression says of single rows is an operand, as in any policy. What is left is a tree of a few signs over
these operands, numbers and aggregates, which the loop over the rows computes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from ..errors import SpecError
from ..expressions.nodes import Node, transform, walk
from ..expressions.syntax import Expression, expression_of
from ..expressions.tokens import Token, quoted
from .aggregate_names import AGGREGATES
from .operands import Operand, operand_of, read_operand, read_placed
from .tokens import Cursor

KEPT: Final = ("count", "sum", "min", "max", "mean", "first", "last", "range")
"""The aggregates that are kept while a window is open, and that are taken of the window before."""
MOST_STEPS: Final = 1000
"""The most parts of a condition or an amount that looks at windows."""
MOST_BACK: Final = 1000
"""The most matched rows that ``nth`` looks back at: each way through a pattern keeps as many values."""

_FORM: Final = "write it like previous(mean(latency), 30)"
_IN_CONDITIONS: Final = (
    "around an aggregate of the window there may be numbers, columns, + - * /, abs, least, greatest, coalesce, "
    "comparisons, AND, OR, NOT"
)
_IN_MATCHES: Final = (
    "around an aggregate of matched rows there may be numbers, columns, + - * /, abs, least, greatest, coalesce, "
    "comparisons, IN, BETWEEN, AND, OR, NOT"
)
_IN_AMOUNTS: Final = "around previous there may be numbers, columns, + - * /, abs, least and greatest"


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, exact.

    ``is_span``: whether it was written as a duration, in seconds.
    ``is_float``: whether it was written with a point or an exponent.
    """

    value: Fraction
    is_span: bool
    is_float: bool
    node: Node


@dataclass(frozen=True, slots=True)
class Value:
    """The value of an operand in the row that is asked."""

    operand: Operand
    node: Node


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of the open window, or of the rows matched so far.

    ``function``: one of `KEPT`; of a match ``nth``, too.
    ``argument``: what it aggregates; None: ``count()``.
    ``symbol``: the symbol as which the rows are matched that it reads; None: all rows.
    ``number``: of ``nth`` which value it is, from 0 on; negative from the newest, which is -1.
    """

    function: str
    argument: Operand | None
    node: Node
    symbol: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Previous:
    """An aggregate of the window before.

    ``of``: the aggregate.
    ``default``: what counts where there is no window before, or its aggregate is null.
    ``share``: the share of the last window in a smoothed value; None: the last window alone counts.
    ``is_absolute``: whether the aggregate counts without its sign.
    """

    of: Aggregate
    default: Term
    share: float | None
    is_absolute: bool
    node: Node


@dataclass(frozen=True, slots=True)
class Operation:
    """A sign over its operands: arithmetic, a comparison, a condition, or the name of a function."""

    sign: str
    operands: tuple[Term, ...]
    node: Node


Term: TypeAlias = Literal | Value | Aggregate | Previous | Operation


def uses_previous(operand: Operand) -> bool:
    """Whether an expression asks for the window before."""
    return not isinstance(operand, str) and "previous" in operand.calls


def looks_at_window(operand: Operand) -> bool:
    """Whether a condition asks for the open window or for the one before."""
    return not isinstance(operand, str) and any(map(_asks_itself, walk(operand.root)))


def read_amount(cursor: Cursor, token: Token, do: str) -> Operand:
    """Return an amount, which may ask for the window before. Raises `SpecError` with the place in the whole text."""
    amount = read_operand(cursor, token, do)
    if not isinstance(amount, str) and uses_previous(amount):
        read_placed(cursor, token.span.start, lambda: term_of(amount, True))
    return amount


def read_condition(cursor: Cursor, token: Token, do: str) -> Operand:
    """Return a condition that may look at windows. Raises `SpecError` with the place in the whole text."""
    condition = read_operand(cursor, token, do)
    if not isinstance(condition, str) and looks_at_window(condition):
        read_placed(cursor, token.span.start, lambda: term_of(condition))
    return condition


def parts_of(operand: Operand, is_amount: bool = False) -> tuple[Operand, ...]:
    """Return what an operand needs of single rows: itself, or its parts where it looks at windows, each once."""
    looks = uses_previous(operand) if is_amount else looks_at_window(operand)
    if isinstance(operand, str) or not looks:
        return (operand,)
    return parts_of_term(term_of(operand, is_amount))


def parts_of_term(term: Term) -> tuple[Operand, ...]:
    """Return what a tree needs of single rows, each once."""
    found: dict[Operand, None] = {}
    for each in terms(term):
        part = each.operand if isinstance(each, Value) else each.argument if isinstance(each, Aggregate) else None
        if part is not None:
            found[part] = None
    return tuple(found)


def terms(term: Term) -> Iterator[Term]:
    """Yield a term and all below it."""
    yield term
    below = (term.of, term.default) if isinstance(term, Previous) else getattr(term, "operands", ())
    for each in below:
        yield from terms(each)


def refuse_window(operand: Operand) -> None:
    """Raise `SpecError` for a condition that looks at a window, of a policy whose rows may be in none."""
    if isinstance(operand, str):
        return
    for node in walk(operand.root):
        if _asks_itself(node):
            name = node.value[0]
            what = f"{name}({'..' if node.operands else ''}) looks at the window, and here the row may be in none"
            raise operand.error(what, node.span, "use it in split, punct or until")


def has_duration(node: Node) -> bool:
    """Whether a part of an amount that asks for the window before is a sum, or another sign, of some duration."""
    is_single = not _asks(node)  # of which the type of its column says whether it is a duration
    return node.kind == "interval" if is_single else any(map(has_duration, node.operands))


@lru_cache(maxsize=256)
def term_of(expression: Expression, is_amount: bool = False) -> Term:
    """Return an expression that looks at windows as a tree.

    ``is_amount``: of numbers, that asks for the window before alone. Raises `SpecError` with the span at fault.
    """
    _check_steps(expression)
    if "lag" in expression.calls and uses_previous(expression):
        raise expression.error("lag does not go with previous", expression.root.span, "leave one of them out")
    return _Reader(expression, is_amount).term(expression.root)


@lru_cache(maxsize=256)
def matched_term(expression: Expression, symbols: tuple[str, ...]) -> Term:
    """Return a condition that reads the rows matched so far as a tree.

    ``symbols``: those of the pattern. Raises `SpecError` with the span at fault.
    """
    _check_steps(expression)
    return _Reader(expression, False, symbols).term(expression.root)


def _check_steps(expression: Expression) -> None:
    if sum(1 for _ in walk(expression.root)) > MOST_STEPS:
        raise expression.error(
            f"at most {MOST_STEPS} steps may look at windows", expression.root.span, "write it shorter"
        )


def of_symbol(expression: Expression, symbols: Collection[str]) -> tuple[str | None, Expression]:
    """Return as what the rows are matched that an argument of an aggregate reads, and the argument without that.

    ``a.x + a.y`` reads ``x + y`` of rows matched as a; without a symbol rows are all rows of the match: None. Raises
    `SpecError` where it reads rows of one symbol and others, and for a symbol that stands alone.
    """
    found: dict[str | None, Node] = {}

    def change(node: Node) -> Node | None:
        if is_of_symbol(node, symbols):
            found.setdefault(node.operands[0].value[0], node)
            return Node("column", node.value, (), node.span)
        if node.kind == "column":
            if node.value[0] in symbols:
                name = node.value[0]
                raise expression.error(f"{name!r} is a symbol, and no column", node.span, f"write {name}.COLUMN")
            found.setdefault(None, node)
        return None

    root = transform(expression.root, change)
    if len(found) > 1:
        one, other = (expression.source[each.span.start : each.span.stop] for each in [*found.values()][:2])
        what = f"an aggregate reads rows of one symbol, or of all, and this one reads {one} and {other}"
        raise expression.error(what, [*found.values()][1].span, "write two aggregates")
    return next(iter(found), None), expression_of(root, expression.source)


def is_of_symbol(node: Node, symbols: Collection[str]) -> bool:
    """Whether a node is a column of rows matched as a symbol: ``a.x``."""
    return node.kind == "field" and node.operands[0].kind == "column" and node.operands[0].value[0] in symbols


def refuse_symbols(expression: Expression, symbols: Collection[str], do: str | None = None) -> None:
    """Raise `SpecError` where a condition names a symbol outside of an aggregate.

    ``do``: the advice, in which ``{}`` stands for the symbol as a text; None: its own.
    """
    nodes = [expression.root]
    while nodes:
        node = nodes.pop()
        if is_of_symbol(node, symbols):
            text = expression.source[node.span.start : node.span.stop]
            what = f"{text} does not say of which of the rows matched as {node.operands[0].value[0]}"
            advice = do and do.format(quoted(node.operands[0].value[0], "'"))
            raise expression.error(what, node.span, advice or f"write for example last({text})")
        if node.kind == "column" and node.value[0] in symbols:
            other = f"write count({node.value[0]}), or give the symbol another name than the column"
            advice = do and do.format(quoted(node.value[0], "'"))
            raise expression.error(f"{node.value[0]!r} is a symbol of the pattern", node.span, advice or other)
        nodes += () if _asks_itself(node) else reversed(node.operands)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the nodes of one expression.

    ``is_amount``: whether it is an amount, which asks for the window before alone.
    ``symbols``: those of a pattern, whose matched rows are read; None: rows of the open window are.
    """

    expression: Expression
    is_amount: bool
    symbols: tuple[str, ...] | None = None

    def error(self, what: str, node: Node, do: str) -> SpecError:
        return self.expression.error(what, node.span, do)

    def term(self, node: Node) -> Term:
        literal = _literal(node)
        if literal is not None:
            return literal
        if not _asks(node):
            return Value(self.operand(node), node)
        if node.kind == "call" and node.value[0] == "previous" and self.symbols is None:
            return self.previous(node)
        if _asks_itself(node):
            return self.aggregate(node)
        if self.symbols is not None and node.kind in {"in", "between"}:
            return self.tests(node)
        return self.operation(node)

    def tests(self, node: Node) -> Term:
        """Return ``IN`` and ``BETWEEN`` as the comparisons that they are."""
        value, *others = map(self.term, node.operands)
        signs, joint = ((">=", "<="), "and") if node.kind == "between" else (("=",) * len(others), "or")
        found, *rest = (Operation(sign, (value, each), node) for sign, each in zip(signs, others, strict=True))
        for each in rest:
            found = Operation(joint, (found, each), node)
        return Operation("not", (found,), node) if node.value[0] else found

    def operation(self, node: Node) -> Term:
        match node.kind:
            case "sum" | "product" if "%" not in node.value:
                signs: tuple[str, ...] = node.value
            case "call" if node.value[0] in self.functions:
                signs = node.value * max(1, len(node.operands) - 1)
            case "and" | "or" if not self.is_amount:
                signs = (node.kind,) * (len(node.operands) - 1)
            case "not" | "compare" if not self.is_amount:
                signs = node.value or ("not",)
            case "is null" if not self.is_amount:
                signs = ("is not null" if node.value[0] else "is null",)
            case "negate":
                signs = ("negate",)
            case _:
                of_rows = "of the open window" if self.symbols is None else "of matched rows"
                which = "of the window before" if self.is_amount else of_rows
                raise self.error(f"this cannot be computed {which}", node, self.around)
        operands = tuple(map(self.term, node.operands))
        if len(operands) == 1 or node.kind == "compare":
            return Operation(signs[0], operands, node)
        found = operands[0]
        for sign, other in zip(signs, operands[1:], strict=True):
            found = Operation(sign, (found, other), node)
        return found

    @property
    def functions(self) -> tuple[str, ...]:
        return ("abs", "least", "greatest", *(() if self.is_amount else ("coalesce",)))

    @property
    def around(self) -> str:
        return _IN_AMOUNTS if self.is_amount else _IN_CONDITIONS if self.symbols is None else _IN_MATCHES

    def aggregate(self, node: Node) -> Aggregate:
        if self.is_amount:
            raise self.error(f"{node.value[0]} looks at no window here", node, _FORM)
        if self.symbols is not None:
            return self.matched(node, self.symbols)
        if node.value[0] not in KEPT:
            raise self.error(f"{node.value[0]} is not kept while a window is open", node, f"one of {', '.join(KEPT)}")
        return self.call(node, f"write it like {node.value[0]}(price)")

    def matched(self, node: Node, symbols: tuple[str, ...]) -> Aggregate:
        name, arguments = node.value[0], node.operands
        if name not in KEPT and name != "nth":
            do = f"one of {', '.join(KEPT)}, nth"
            raise self.error(f"{name} is not kept while a match is open", node, do)
        number, do = 0, f"write it like {name}(price)"
        if name == "nth":
            do = "write it like nth(price, -2)"
            if len(arguments) != 2:
                raise self.error("nth takes a column and a number", node, do)
            number = self.place(arguments[1], do)
            arguments = arguments[:1]
        only = arguments[0] if len(arguments) == 1 else None
        if name == "count" and only is not None and only.kind == "column" and only.value[0] in symbols:
            return Aggregate(name, None, node, only.value[0])
        found = self.call(replace(node, operands=arguments), do)
        if found.argument is None:
            return found
        assert only is not None
        symbol, argument = of_symbol(expression_of(only, self.expression.source), symbols)
        return Aggregate(name, operand_of(argument), node, symbol, number)

    def place(self, node: Node, do: str) -> int:
        literal = _literal(node)
        if literal is None or literal.is_span or literal.value.denominator != 1 or abs(literal.value) >= 2**31:
            raise self.error("the second argument of nth is a whole number", node, do)
        if literal.value < -MOST_BACK:
            raise self.error(f"nth looks back at {MOST_BACK:,} matched rows at most", node, do)
        return int(literal.value)

    def previous(self, node: Node) -> Previous:
        if len(node.operands) not in {2, 3}:
            raise self.error("previous takes an aggregate and a default", node, _FORM)
        call, default, *rest = node.operands
        share = self.share(rest[0]) if rest else None
        if _asks(default):
            raise self.error("the default of previous cannot ask for the window before", default, _FORM)
        if share is not None and _literal(default) is None:
            raise self.error(
                "the default of a smoothed value is a number", default, "write it like previous(sum(x), 4, 0.1)"
            )
        is_absolute = call.kind == "call" and call.value[0] == "abs" and len(call.operands) == 1
        inner = call.operands[0] if is_absolute else call
        if inner.kind != "call" or inner.value[0] not in KEPT or len(inner.operands) > 1:
            raise self.error(f"expected one of {', '.join(KEPT)} of a column", call, _FORM)
        return Previous(self.call(inner, _FORM), self.term(default), share, is_absolute, node)

    def call(self, node: Node, do: str) -> Aggregate:
        name, arguments = node.value[0], node.operands
        if len(arguments) > 1:
            raise self.error(f"{name} takes one column", node, do)
        if not arguments and name != "count":
            raise self.error(f"{name} needs a column", node, do)
        if arguments and _asks(arguments[0]):
            is_previous = any(each.value[:1] == ("previous",) for each in walk(arguments[0]) if each.kind == "call")
            what = (
                "previous cannot stand inside of previous" if is_previous else f"{name} is of rows, not of aggregates"
            )
            raise self.error(what, arguments[0], do)
        return Aggregate(name, self.operand(arguments[0]) if arguments else None, node)

    def share(self, node: Node) -> float | None:
        exact = Fraction(node.value[0]) if node.kind == "number" else None
        if exact is None or not 0 < exact <= 1:
            text = self.expression.source[node.span.start : node.span.stop]
            raise self.error(f"the share of the last window is above 0 and at most 1, and this is {text}", node, _FORM)
        return None if exact == 1 else float(exact)

    def operand(self, node: Node) -> Operand:
        return operand_of(expression_of(node, self.expression.source))


def _asks(node: Node) -> bool:
    return any(map(_asks_itself, walk(node)))


def _asks_itself(node: Node) -> bool:
    return node.kind == "call" and (node.value[0] == "previous" or node.value[0] in AGGREGATES)


def _literal(node: Node) -> Literal | None:
    """Return the number that a node is, seconds of a duration; None where it is another thing."""
    if node.kind == "interval" and node.value[0] == "0":
        return Literal(Fraction(node.value[1]) / 10**9, True, False, node)
    if node.kind != "number":
        return None
    return Literal(Fraction(node.value[0]), False, not node.value[0].removeprefix("-").isdecimal(), node)
