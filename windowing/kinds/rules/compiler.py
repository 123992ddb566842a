"""From conditions and amounts that look at windows to the steps of the machine: types are decided here (section 12).

Integers stay integers, of 64 bits, until they meet a float or are divided. Decimals, times and spans of time are
integers with a scale, exact; a plain number that meets a time or a span is seconds. Texts, and all else that is
only compared, are ranks among the values of these rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ...columns.arrays import scale_of
from ...columns.sort_keys import is_sortable
from ...errors import SpecError
from ...expressions.nodes import Node
from ...expressions.syntax import Expression
from ...expressions.types import plain_type, type_text
from ...language import programs as terms
from ...language.operands import Operand, operand_column, operand_text
from ...language.programs import Term
from . import machine
from .machine import OF_FLOATS

Types: TypeAlias = Callable[[str], pa.DataType]
"""Returns the type of a column."""
Kind: TypeAlias = Literal["number", "float", "time", "span", "truth", "rank", "unsigned", "nothing"]

_BINARY: Final = {
    "+": machine.ADD, "-": machine.SUBTRACT, "*": machine.MULTIPLY, "/": machine.DIVIDE, "least": machine.LEAST,
    "greatest": machine.GREATEST, "coalesce": machine.COALESCE,
}  # fmt: skip
_IN_AMOUNTS: Final = {"least": machine.LEAST_IN_AMOUNTS, "greatest": machine.GREATEST_IN_AMOUNTS}
_WORDS: Final = {"+": "added", "-": "subtracted", "*": "multiplied", "/": "divided"}
_COMPARED: Final = {
    "=": (machine.EQUAL, False, False), "<>": (machine.EQUAL, False, True),
    "<": (machine.LESS, False, False), ">": (machine.LESS, True, False),
    "<=": (machine.AT_MOST, False, False), ">=": (machine.AT_MOST, True, False),
    "is distinct from": (machine.DISTINCT, False, False), "is not distinct from": (machine.DISTINCT, False, True),
}  # fmt: skip
"""The step of a comparison, whether its sides change places, and whether its result is negated."""
_MIRRORED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_ONE: Final = Fraction(1)
_SHIFT: Final = 2**63
"""Unsigned integers of 64 bits are in registers as so much less, which fits and keeps their order."""
_NOWHERE: Final = Node("constant")


@dataclass(frozen=True, slots=True)
class Typed:
    """A value with its type.

    ``at``: its register; -1: a literal that has none yet.
    ``scale``: ticks of a unit of a number, or of a second; 1 for floats.
    ``is_narrow``: whether it is a float of 32 bits.
    ``family``: what ranks and times are of; others do not compare with them.
    ``literal``: its value, where it was written as a number; ``is_float``: whether with a point.
    """

    at: int
    kind: Kind
    node: Node
    shown: str
    scale: Fraction = _ONE
    is_narrow: bool = False
    family: str = ""
    literal: Fraction | None = None
    is_float: bool = False


def typed_column(dtype: pa.DataType, node: Node) -> Typed | None:
    """Return what values of a column are, without a register; None where they cannot be compared."""
    dtype, t = plain_type(dtype), pa.types
    shown = type_text(dtype)
    if t.is_null(dtype):
        return Typed(-1, "nothing", node, shown)
    if t.is_boolean(dtype):
        return Typed(-1, "truth", node, shown)
    if t.is_floating(dtype):
        return Typed(-1, "float", node, shown, is_narrow=not t.is_float64(dtype))
    if t.is_integer(dtype) or t.is_decimal128(dtype):
        scale, is_unsigned = Fraction(scale_of(dtype).per_second or 1), t.is_uint64(dtype)
        return Typed(-1, "unsigned" if is_unsigned else "number", node, shown, scale, family=shown * is_unsigned)
    if t.is_duration(dtype) or t.is_timestamp(dtype) or t.is_date(dtype) or t.is_time(dtype):
        family = "" if t.is_duration(dtype) else "time of day" if t.is_time(dtype) else "instant"
        return Typed(-1, "time" if family else "span", node, shown, scale_of(dtype).per_second or _ONE, family=family)
    return Typed(-1, "rank", node, shown, family=shown) if is_sortable(dtype) else None


class Taken(NamedTuple):
    """An aggregate of rows of a window. ``source``: the type of what it is of, where it looks at that.

    ``symbol``, ``number``: as `programs.Aggregate` has them.
    """

    function: str
    argument: str | None
    source: Typed
    symbol: str | None = None
    number: int = 0

    @property
    def is_float(self) -> bool:
        return self.source.kind == "float"

    @property
    def lacks(self) -> int:
        """What values in registers lack, in units of 2**32."""
        return _SHIFT >> 32 if self.source.kind == "unsigned" else 0

    @property
    def digits(self) -> int:
        """The digits behind the point of a decimal, whose values are integers in registers; else 0."""
        return len(str(self.source.scale.numerator)) - 1 if self.source.kind == "number" else 0


class Before(NamedTuple):
    """An aggregate of the window before, as `Previous` has it. ``share``: 0: it is not smoothed."""

    taken: Taken
    is_absolute: bool
    share: float
    default: float


@dataclass(slots=True)
class Compiler:
    """Programs as they are compiled, one after the other.

    ``types``: of the columns. ``registers``: how many there are; ``constants``: value of each that has one.
    ``columns``: the number of each column among integers or floats. ``kept``: the aggregates of the open window, each
    with its number; ``before``: those of the window before, each with its register; ``matched``: those of matched rows,
    each with its register; None: aggregates are of the open window. ``asked``: pairs of one of ``before``, or of
    ``matched``, and a program that asks for it. ``may_fail``: whether an integer may not fit 64 bits.
    """

    types: Types
    code: list[tuple[int, int, int, int]] = field(default_factory=list)
    start: list[int] = field(default_factory=lambda: [0])
    results: list[Typed] = field(default_factory=list)
    registers: int = 1  # the first is null for ever
    constants: dict[int, int | float] = field(default_factory=dict)
    columns: dict[tuple[str, Kind], int] = field(default_factory=dict)
    kept: dict[Taken, int] = field(default_factory=dict)
    before: dict[Before, Typed] = field(default_factory=dict)
    asked: set[tuple[int, int]] = field(default_factory=set)
    may_fail: bool = False
    matched: dict[Taken, Typed] | None = None
    expression: Expression | None = None
    is_amount: bool = False
    _known: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def add(self, expression: Expression, term: Term, is_amount: bool = False) -> Typed:
        """Add a program. Raises `SpecError` where types do not go together."""
        self.expression, self.is_amount, self._known = expression, is_amount, {}
        found = self._placed(self.term(term))
        if not is_amount and found.kind not in {"truth", "nothing"}:
            what = f"a condition is wanted, and {expression} is {found.shown}"
            raise self._error(what, expression.root, "compare it with something")
        self.start.append(len(self.code))
        self.results.append(found)
        return found

    def skip(self) -> None:
        """Add a program of no step, whose result nobody asks for."""
        self.start.append(len(self.code))
        self.results.append(Typed(0, "number", _NOWHERE, ""))

    def _error(self, what: str, node: Node, do: str | None = None) -> SpecError:
        assert self.expression is not None
        return self.expression.error(what, node.span, do)

    # --- leaves

    def term(self, term: Term) -> Typed:
        match term:
            case terms.Literal():
                is_span = term.is_span and not self.is_amount
                shown = "INTERVAL" if is_span else "DECIMAL" if term.is_float else "INTEGER"
                is_float = term.is_float or (is_span != term.is_span and not _is_whole(term.value))
                kind: Kind = "span" if is_span else "number"
                return Typed(-1, kind, term.node, shown, literal=term.value, is_float=is_float)
            case terms.Value():
                return self._value(term)
            case terms.Aggregate():
                return self._aggregate(term)
            case terms.Previous():
                return self._previous(term)
        return self._operation(term)

    def _column(self, operand: Operand, node: Node) -> Typed:
        if node.kind == "constant" and node.value == ("null",):
            return Typed(-1, "nothing", node, "NULL")
        name = operand_column(operand)
        found = typed_column(self.types(name), node)
        if found is None:
            raise self._error(f"{operand_text(operand)} is {self.types(name)}, whose values cannot be compared", node)
        return found

    def column(self, operand: Operand, kind: Kind) -> int:
        """Return the number of a column among those of integers or of floats."""
        name, is_float = operand_column(operand), kind == "float"
        alike = [each for each in self.columns if (each[1] == "float") == is_float]
        return self.columns.setdefault((name, kind), len(alike))

    def _value(self, term: terms.Value) -> Typed:
        found = self._column(term.operand, term.node)
        if found.kind == "nothing":
            return replace(found, at=0)
        step = machine.LOAD_FLOAT if found.kind == "float" else machine.LOAD
        return replace(found, at=self._step(step, self.column(term.operand, found.kind)))

    def _aggregate(self, term: terms.Aggregate) -> Typed:
        found = self._aggregated(term)
        if found.kind == "nothing":
            return replace(found, at=0)
        if self.matched is not None:
            taken = self._taken(term)
            if taken not in self.matched:
                self.matched[taken] = replace(found, at=self._register())
            self.asked.add((list(self.matched).index(taken), len(self.results)))
            return replace(self.matched[taken], node=term.node)
        number = self.kept.setdefault(self._taken(term), len(self.kept))
        self.may_fail |= term.function in {"sum", "range"} and found.kind != "float"
        return replace(found, at=self._step(machine.FETCH_FLOAT if found.kind == "float" else machine.FETCH, number))

    def _aggregated(self, term: terms.Aggregate) -> Typed:
        if term.function == "count" or term.argument is None:
            return Typed(-1, "number", term.node, "BIGINT")
        found, function = self._column(term.argument, term.node), term.function
        if found.kind == "nothing" or function in {"first", "last", "nth", "min", "max"}:
            return found
        if function == "range" and found.kind == "time":
            return replace(found, kind="span", family="", shown="INTERVAL")
        if found.kind in {"rank", "time"} or (function == "range" and found.kind == "truth"):
            raise self._no_number(term, function, found)
        if function == "mean":
            if found.kind == "span" or found.scale < 1:
                raise self._no_number(term, function, found)
            return Typed(-1, "float", term.node, "DOUBLE")
        if function == "sum" and found.kind == "float":
            return replace(found, is_narrow=False, shown="DOUBLE")
        is_counted = found.kind in {"truth", "unsigned"}
        return replace(found, kind="number", shown="BIGINT", family="") if is_counted else found

    def _no_number(self, term: terms.Aggregate, function: str, found: Typed) -> SpecError:
        """Return (not raise) the error of an aggregate of numbers that is of other values, or of too wide ones."""
        text = operand_text(term.argument or "")
        if found.shown.startswith("DECIMAL"):
            what = f"{function} is computed here of decimals of up to 38 digits, and {text} is {found.shown}"
            return self._error(what, term.node, f"write {function}(CAST({text} AS DOUBLE))")
        do = "take another column, or cast it"
        return self._error(f"{function} needs a number, and {text} is {found.shown}", term.node, do)

    def _taken(self, term: terms.Aggregate) -> Taken:
        """Return what an aggregate is of; its column is among those of the machine."""
        if term.argument is None or term.function == "count":
            argument = None if term.argument is None else operand_column(term.argument)
            return Taken(term.function, argument, Typed(-1, "truth", _NOWHERE, ""), term.symbol)
        source = replace(self._column(term.argument, _NOWHERE), node=_NOWHERE)
        self.column(term.argument, source.kind)
        return Taken(term.function, operand_column(term.argument), source, term.symbol, term.number)

    def place_of(self, taken: Taken) -> int:
        """Return the number of the column of an aggregate; 0 where it counts rows."""
        return self.columns.get((taken.argument or "", taken.source.kind), 0)

    def _previous(self, term: terms.Previous) -> Typed:
        aggregate = term.of
        if aggregate.argument is not None and aggregate.function != "count":
            dtype = self.types(operand_column(aggregate.argument))
            if not is_previous_number(dtype):
                what = f"previous needs integers or floats, and {operand_text(aggregate.argument)} is {dtype}"
                raise self._error(what, term.node, "cast it")
        found = self._aggregated(aggregate)
        if found.kind == "nothing":
            found = Typed(-1, "number", term.node, "BIGINT")
        if term.share is not None:
            found = Typed(-1, "float", term.node, "DOUBLE")
        default = float(term.default.value) if isinstance(term.default, terms.Literal) and term.share else 0.0
        key = Before(self._taken(aggregate), term.is_absolute, term.share or 0.0, default)
        if key not in self.before:
            self.before[key] = replace(found, at=self._register())
        self.asked.add((list(self.before).index(key), len(self.results)))
        found = replace(self.before[key], node=term.node)
        return found if term.share else self._extreme("coalesce", found, self.term(term.default), term.node)

    # --- registers

    def _register(self) -> int:
        self.registers += 1
        return self.registers - 1

    def _step(self, step: int, a: int, b: int | None = None) -> int:
        """Return the register of a step's result; equal steps of a program are one."""
        b = a if b is None else b
        if (step, a, b) not in self._known:
            self._known[step, a, b] = self._register()
            self.code.append((step, self._known[step, a, b], a, b))
        return self._known[step, a, b]

    def _constant(self, value: float) -> int:
        for at, known in self.constants.items():
            if type(known) is type(value) and known == value:
                return at
        self.constants[at := self._register()] = value
        return at

    def _placed(self, value: Typed) -> Typed:
        """Return a value in a register."""
        if value.at >= 0:
            return value
        assert value.literal is not None
        if value.kind == "span":
            scale = Fraction(value.literal.denominator)
            return self._scaled(value, scale)
        is_float = value.is_float or not _is_whole(value.literal)
        return self._as_float(value, False) if is_float else self._scaled(value, _ONE)

    def _scaled(self, value: Typed, scale: Fraction) -> Typed:
        """Return a number, a time or a span as ticks of a scale, of which its own is a part."""
        if value.literal is not None:
            ticks = value.literal * scale
            if ticks.denominator != 1 or not machine.LEAST_WORD <= ticks <= machine.MOST_WORD:
                raise self._error("this number does not fit 64 bits", value.node)
            return replace(value, at=self._constant(int(ticks)), scale=scale, literal=None)
        if value.scale == scale:
            return value
        self.may_fail = True
        factor = self._constant(int(scale / value.scale))
        return replace(value, at=self._step(machine.MULTIPLY, value.at, factor), scale=scale)

    def _as_float(self, value: Typed, narrow: bool) -> Typed:
        """Return a number or a span, in seconds, as a float."""
        if value.literal is not None:
            number = _nearest(value.literal)
            at = self._constant(float(np.float32(number)) if narrow else number)
        elif value.kind == "float":
            at = value.at
        else:
            at = self._step(machine.TO_FLOAT, value.at)
            if value.scale != 1:
                at = self._step(machine.DIVIDE + OF_FLOATS, at, self._constant(float(value.scale)))
            at = self._step(machine.NARROW, at) if narrow else at
        return Typed(at, "float", value.node, "FLOAT" if narrow else "DOUBLE", is_narrow=narrow)

    # --- signs

    def _operation(self, term: terms.Operation) -> Typed:
        sign, node = term.sign, term.node
        operands = [self.term(each) for each in term.operands]
        if sign in {"and", "or", "not"}:
            for each in operands:
                if each.kind not in {"truth", "nothing"}:
                    raise self._error(f"{sign.upper()} needs a condition, and this is {each.shown}", each.node)
            steps = {"and": machine.AND, "or": machine.OR, "not": machine.NOT}
            return self._truth(self._step(steps[sign], *(each.at for each in operands)), node)
        if sign in {"is null", "is not null"}:
            found = self._step(machine.IS_NULL, self._placed(operands[0]).at)
            return self._truth(found if sign == "is null" else self._step(machine.NOT, found), node)
        if sign in _COMPARED:
            return self._comparison(sign, operands[0], operands[1], node)
        if sign in {"abs", "negate"}:
            return self._signed(sign, operands[0], node)
        if sign in {"least", "greatest", "coalesce"}:
            return operands[0] if len(operands) == 1 else self._extreme(sign, operands[0], operands[1], node)
        return self._arithmetic(sign, operands[0], operands[1], node)

    def _truth(self, at: int, node: Node) -> Typed:
        return Typed(at, "truth", node, "BOOLEAN")

    def _signed(self, sign: str, value: Typed, node: Node) -> Typed:
        if value.literal is not None:
            return replace(value, literal=abs(value.literal) if sign == "abs" else -value.literal, node=node)
        if value.kind not in {"number", "float", "span", "nothing"}:
            raise self._error(f"{value.shown} has no sign", node)
        if value.kind == "nothing":
            return value
        is_float = value.kind == "float"
        self.may_fail |= not is_float
        step = (machine.ABS if sign == "abs" else machine.NEGATE) + OF_FLOATS * is_float
        return replace(value, at=self._step(step, value.at), node=node)

    def _arithmetic(self, sign: str, left: Typed, right: Typed, node: Node) -> Typed:
        if "nothing" in {left.kind, right.kind}:
            return left if left.kind == "nothing" else right
        kinds = (left.kind, right.kind)
        if not {"truth", "rank", "unsigned"}.isdisjoint(kinds) or (sign in "+-" and not self._go_together(left, right)):
            raise self._no_sign(sign, left, right, node)
        if left.literal is not None and right.literal is not None and (sign != "/" or right.literal):
            value = _folded(sign, left.literal, right.literal)
            is_span = "span" in kinds if sign != "/" else kinds == ("span", "number")
            is_float = left.is_float or right.is_float or sign == "/"
            return replace(left, kind="span" if is_span else "number", node=node, literal=value, is_float=is_float)
        if "time" in kinds:
            return self._of_times(sign, left, right, node)
        if sign in "*/":
            return self._product(sign, left, right, node)
        if "float" in kinds or self._becomes_float(left, right):
            return self._of_floats(sign, left, right, node)
        return self._of_ticks(sign, left, right, "span" if "span" in kinds else "number", node)

    def _go_together(self, left: Typed, right: Typed) -> bool:
        """Whether no time that was written with a unit meets integers, which have none."""
        for one, other in ((left, right), (right, left)):
            if one.literal is not None and one.kind == "span" and other.literal is None:
                return not (other.kind == "number" and other.scale == 1)
        return True

    def _no_sign(self, sign: str, left: Typed, right: Typed, node: Node) -> SpecError:
        do = "read the numbers as times" if not self._go_together(left, right) else "convert one of them with CAST"
        for each in (left, right):
            if each.kind == "unsigned":
                do = "write CAST(COLUMN AS BIGINT): rows that do not fit are rejected"
        return self._error(f"{left.shown} and {right.shown} cannot be {_WORDS.get(sign, 'compared')}", node, do)

    def _becomes_float(self, left: Typed, right: Typed) -> bool:
        """Whether a number with a point meets integers without one."""
        for one, other in ((left, right), (right, left)):
            if one.literal is not None and one.kind == "number" and (one.is_float or not _is_whole(one.literal)):
                return other.kind == "number" and other.scale == 1
        return False

    def _of_times(self, sign: str, left: Typed, right: Typed, node: Node) -> Typed:
        both = left.kind == right.kind == "time"
        fits = (sign == "-" and both and left.family == right.family) or (
            not both
            and (sign == "+" or (sign == "-" and left.kind == "time"))
            and "float" not in {left.kind, right.kind}
        )
        if not fits:
            raise self._no_sign(sign, left, right, node)
        found = self._of_ticks(sign, left, right, "span" if both else "time", node)
        return found if both else replace(found, family=left.family or right.family)

    def _product(self, sign: str, left: Typed, right: Typed, node: Node) -> Typed:
        for each in (left, right):
            if each.kind == "number" and each.literal is None and each.scale != 1:
                what = f"{each.shown} cannot be {_WORDS[sign]} around an aggregate of the window"
                raise self._error(what, each.node, "cast it to DOUBLE")
        whole = [
            each.kind != "float" and (each.literal is None or (_is_whole(each.literal) and not each.is_float))
            for each in (left, right)
        ]
        if sign == "/" or not all(whole) or left.kind == right.kind == "span":
            return self._of_floats(sign, left, right, node)
        left, right = self._placed(left), self._placed(right)
        self.may_fail = True
        span = left if left.kind == "span" else right
        kind: Kind = "span" if span.kind == "span" else "number"
        at = self._step(machine.MULTIPLY, left.at, right.at)
        return Typed(at, kind, node, "INTERVAL" if kind == "span" else "BIGINT", span.scale)

    def _of_floats(self, sign: str, left: Typed, right: Typed, node: Node) -> Typed:
        narrow = _is_narrow(left, right)
        one, other = self._as_float(left, narrow), self._as_float(right, narrow)
        step = _IN_AMOUNTS.get(sign, _BINARY[sign]) if self.is_amount else _BINARY[sign]
        at = self._step(step + OF_FLOATS, one.at, other.at)
        if narrow and sign in "+-*/":
            at = self._step(machine.NARROW, at)
        return Typed(at, "float", node, "FLOAT" if narrow else "DOUBLE", is_narrow=narrow)

    def _of_ticks(self, sign: str, left: Typed, right: Typed, kind: Kind, node: Node) -> Typed:
        scale = _common_scale(left, right)
        one, other = self._scaled(left, scale), self._scaled(right, scale)
        self.may_fail |= sign in "+-"
        shown = left.shown if left.literal is None else right.shown
        return Typed(
            self._step(_BINARY[sign], one.at, other.at), kind, node, "INTERVAL" if kind == "span" else shown, scale
        )

    def _meet(self, left: Typed, right: Typed, node: Node) -> Kind:
        """Return the kind in which two values are compared. Raises `SpecError` where there is none."""
        kinds = {left.kind, right.kind}
        if "nothing" in kinds:
            return left.kind if right.kind == "nothing" else right.kind
        if kinds <= {"number", "float", "span"} and self._go_together(left, right):
            return "float" if "float" in kinds else "span" if "span" in kinds else "number"
        if len(kinds) > 1 or left.kind in {"number", "span"} or left.family != right.family:
            raise self._no_sign("", left, right, node)
        return left.kind

    def _extreme(self, sign: str, left: Typed, right: Typed, node: Node) -> Typed:
        """Return the least, the greatest, or the first that is not null, of two values."""
        kind = self._meet(left, right, node)
        if left.kind == "nothing" or right.kind == "nothing":
            return replace(self._placed(right if left.kind == "nothing" else left), node=node)
        if kind == "float" or self._becomes_float(left, right):
            return self._of_floats(sign, left, right, node)
        family = left.family or right.family
        if kind in {"truth", "rank", "unsigned"}:
            return replace(left, at=self._step(_BINARY[sign], left.at, right.at), node=node)
        return replace(self._of_ticks(sign, left, right, kind, node), family=family)

    def _comparison(self, sign: str, left: Typed, right: Typed, node: Node) -> Typed:
        is_unsigned = self._is_unsigned(left, right) or self._is_unsigned(right, left)
        kind = "number" if is_unsigned else self._meet(left, right, node)
        if left.literal is not None and right.literal is None:
            left, right, sign = right, left, _MIRRORED.get(sign, sign)
        if kind == "float":
            narrow = _is_narrow(left, right)
            left, right = (each if each.kind == "nothing" else self._as_float(each, narrow) for each in (left, right))
        elif right.literal is not None and left.literal is None and left.kind != "nothing":
            ticks = right.literal * left.scale - _SHIFT * is_unsigned
            if not _is_whole(ticks):
                return self._between(sign, left, math.floor(ticks), node)
            right = self._scaled(replace(right, literal=ticks), _ONE)
        elif kind in {"number", "span", "time"} and "nothing" not in {left.kind, right.kind}:
            scale = _common_scale(left, right)
            left, right = self._scaled(left, scale), self._scaled(right, scale)
        step, swaps, negates = _COMPARED[sign]
        one, other = self._placed(left).at, self._placed(right).at
        one, other = (other, one) if swaps else (one, other)
        at = self._step(step + OF_FLOATS * (kind == "float"), one, other)
        return self._truth(self._step(machine.NOT, at) if negates else at, node)

    def _is_unsigned(self, value: Typed, literal: Typed) -> bool:
        """Whether an unsigned integer of 64 bits meets a number that was written."""
        return value.kind == "unsigned" and literal.kind == "number" and literal.literal is not None

    def _between(self, sign: str, left: Typed, below: int, node: Node) -> Typed:
        """Compare with a number between two integers, of which the lower is ``below``, or beyond all of 64 bits."""
        least = self._constant(machine.LEAST_WORD)
        never, always = (machine.LESS, left.at, least), (machine.AT_MOST, least, left.at)
        if sign.startswith("is"):
            return self._truth(self._constant(int(sign == "is distinct from")), node)
        if sign in {"=", "<>"}:
            found = never if sign == "=" else always
        elif not machine.LEAST_WORD <= below < machine.MOST_WORD:
            found = always if (below > 0) == (sign[0] == "<") else never
        elif sign[0] == ">":
            found = (machine.AT_MOST, self._constant(below + 1), left.at)
        else:
            found = (machine.AT_MOST, left.at, self._constant(below))
        return self._truth(self._step(*found), node)


def is_previous_number(dtype: pa.DataType) -> bool:
    """Whether values of a type go into an amount with ``previous``: integers of at most 64 signed bits, and floats."""
    types = pa.types
    fits = types.is_integer(dtype) and not types.is_uint64(dtype)
    return bool(fits or types.is_float32(dtype) or types.is_float64(dtype) or types.is_null(dtype))


def _is_whole(value: Fraction) -> bool:
    """Whether a number is an integer of 64 bits."""
    return value.denominator == 1 and machine.LEAST_WORD <= value <= machine.MOST_WORD


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _folded(sign: str, left: Fraction, right: Fraction) -> Fraction:
    found = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right, "/": lambda: left / right}
    return found[sign]()


def _is_narrow(*values: Typed) -> bool:
    floats = [each.is_narrow for each in values if each.kind == "float"]
    return bool(floats) and all(floats)


def _common_scale(left: Typed, right: Typed) -> Fraction:
    """Return the coarsest scale that has whole ticks for both."""
    scales = [each.scale if each.literal is None else Fraction(each.literal.denominator) for each in (left, right)]
    one, other = scales
    return Fraction(math.lcm(one.numerator, other.numerator), math.gcd(one.denominator, other.denominator))
