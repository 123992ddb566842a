"""Policies of conditions: of a row, or of the open window or the window before (section 12).

The loop asks a condition that looks at windows of each row that comes while a window is open. The commonest ones say
what `delta`, `gap` and `reaches` say: these take their road, where no row of these has a null, a NaN, or is too far
from another.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import Ints, combined, measures, scale_of, truth
from ...expressions.nodes import canonical
from ...expressions.syntax import Expression
from ...language import programs as terms
from ...language.operands import Operand, operand_column, operand_text
from ...language.programs import Term, parts_of, term_of, uses_previous
from ...language.spec import From, Punct, Split, When, While
from ...rows.sequence import Sequences, take_rows
from ..facts import KeyPane
from ..needs import Explain, Needs, check_condition
from ..rules.compiler import Compiler, typed_column
from ..rules.gather import Gathered, tell_gap
from ..rules.programs import Programs
from ..rules.walk import walk
from .policy import Told, TumblingPolicy

_FARTHEST = 2**63 - 1
_MOST_WINDOWS = 10_000  # before one, of which a smoothed value is told
_MOST = Fraction(np.finfo(np.float64).max)


class _Rise(NamedTuple):
    """What is compared with the first or the last row of a window: more than ``amount`` above it."""

    of: str
    values: Any
    amount: Any


_WHY: Final = {Punct: "punct", Split: "split", When: "when", While: "while", From: "until"}


class ConditionPolicy(TumblingPolicy):
    """``punct(E)``, ``split(E)``, ``when(E)``, ``while(E)`` or ``from(E, until=U)``, in which null is not true."""

    value: Punct | Split | When | While | From

    @property
    def why(self) -> str:  # type: ignore[override]
        return _WHY[type(self.value)]

    @property
    def ends_with(self) -> bool:  # type: ignore[override]
        return isinstance(self.value, Punct | From)

    @property
    def opens(self) -> bool:  # type: ignore[override]
        return isinstance(self.value, When | While | From)

    @property
    def neighbours_decide(self) -> bool:  # type: ignore[override]
        return isinstance(self.value, Punct | Split)

    @property
    def ending(self) -> Operand | None:
        """The condition that ends windows; of ``while``, where it is not true."""
        value = self.value
        return value.column if isinstance(value, Punct) else value.until if isinstance(value, From) else value.condition

    @property
    def needs(self) -> Needs:
        """Its conditions, of which none must hold a value."""
        return Needs(tuple(dict.fromkeys(map(operand_column, self.value.operands))))

    def check(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        for operand in self.value.operands:
            if operand_column(operand) == name:
                check_condition(type(self.value).__name__.lower(), operand, dtype)

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        value, ending = self.value, self.ending
        found = None if ending is None else truth(sequences.rows, operand_column(ending))
        if isinstance(value, From):
            rules.opens = truth(sequences.rows, operand_column(value.condition))
        elif self.opens:
            rules.opens = found
        if found is not None and self.ends_with:
            rules.ends_with(rule, found)
        elif found is not None:
            rules.ends_before(rule, ~found if isinstance(value, While) else found)

    def explain(self, pane: KeyPane, row: int) -> Told:
        ending, name = self.ending, pane.name(row)
        assert ending is not None
        if isinstance(self.value, While):
            return Told(f"{ending} is not true for {name}")
        which = "its last row" if self.ends_with else "which opens the next window"
        is_shown = not self.neighbours_decide or pane.column(operand_column(ending))[row].as_py() is True
        return Told(f"{ending} is true for {name}, {which}", is_shown=is_shown)


class ByWindow(ConditionPolicy):
    """A policy whose last condition looks at windows; asked with the row in, where that `ends_with` its windows."""

    neighbours_decide: ClassVar[bool] = False

    @property
    def expression(self) -> Expression:
        """The condition."""
        assert isinstance(self.ending, Expression)
        return self.ending

    @property
    def _opener(self) -> Operand | None:
        return self.value.condition if isinstance(self.value, From) else None

    @property
    def needs(self) -> Needs:
        """Its parts, none of which must hold a value: null is not true. Decimals of them must fit 64 bits."""
        names = tuple(map(operand_column, parts_of(self.expression)))
        smoothed = [each for each in terms.terms(self._term) if isinstance(each, terms.Previous) and each.share]
        return Needs(
            names if self._opener is None else tuple(dict.fromkeys([operand_column(self._opener), *names])),
            measured=names,
            window_before=uses_previous(self.expression),
            baseline=pa.list_(pa.float64()) if smoothed else None,
            can_cut=False,  # what is kept of a window is no row
        )

    def check(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        if self._opener is not None and name == operand_column(self._opener):
            check_condition("from", self._opener, dtype)

    @property
    def _term(self) -> Term:
        return term_of(self.expression)

    def _compiled(self, schema: pa.Schema) -> Compiler:
        compiler = Compiler(lambda name: schema.field(name).type)
        compiler.add(self.expression, self._term)
        return compiler

    def check_types(self, schema: pa.Schema) -> None:
        self._compiled(schema)

    def leaves_holes(self, sequences: Sequences) -> bool:
        may_fail = self._compiled(sequences.rows.schema).may_fail
        return may_fail and self._rise(sequences) is None and self._reached(sequences) is None

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        if self._opener is not None:
            rules.opens = truth(sequences.rows, operand_column(self._opener))
        self._ask(rule, rules, sequences)

    def _ask(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        rise, reached = self._rise(sequences), self._reached(sequences)
        if reached is not None:
            rules.reaches(rule, reached.function, reached.argument, self._sides()[1].value, sequences)
        elif rise is None:
            asked = rules.programs.afters if self.ends_with else rules.programs.befores
            asked.append((rule, self.expression))
        elif rise.of == "first":
            rules.rises_from_first_row(rule, rise.values, rise.amount)
        else:
            tell_gap(rule, rules, sequences, rise.values, rise.amount)

    def _sides(self) -> tuple[Any, Any, str]:
        """Return what is compared with a number, the number, and the sign between them; else the sign is empty."""
        match self._term:
            case terms.Operation(sign=">" | ">=" as sign, operands=(left, terms.Literal() as right)):
                return left, right, sign
            case terms.Operation(sign="<" | "<=" as sign, operands=(terms.Literal() as left, right)):
                return right, left, ">" if sign == "<" else ">="
        return None, None, ""

    def _rise(self, sequences: Sequences) -> _Rise | None:  # noqa: PLR0911 - what else it may be
        """Return ``a - first(a) > d`` or ``a - last(a) > d``, where `delta` or `gap` say the same of these rows."""
        left, limit, sign = self._sides()
        match left:
            case terms.Operation(sign="-", operands=(terms.Value(operand=a), terms.Aggregate(argument=b) as other)):
                if self.ends_with or a != b or other.function not in {"first", "last"} or limit.value < 0:
                    return None
            case _:
                return None
        column = combined(sequences.rows.column(operand_column(a)))
        typed = typed_column(column.type, limit.node)
        if typed is None or typed.kind in {"rank", "unsigned", "truth", "nothing"} or column.null_count:
            return None
        values, scale = measures(column), scale_of(column.type).per_second
        if scale is None:
            if not np.isfinite(values).all():
                return None
            with np.errstate(over="ignore"):
                amount = values.dtype.type(min(limit.value, _MOST))
            amount = np.nextafter(amount, values.dtype.type(-1)) if sign == ">=" else amount
            return _Rise(other.function, values, amount)
        ticks = limit.value * scale
        most = ticks.__floor__() if sign == ">" else ticks.__ceil__() - 1
        if most < 0 or _span(values) > _FARTHEST:
            return None
        return _Rise(other.function, values, np.uint64(min(most, 2**64 - 1)))

    def _reached(self, sequences: Sequences) -> terms.Aggregate | None:  # noqa: PLR0911 - what else it may be
        """Return the aggregate of ``A >= v``, where `reaches` says the same of these rows."""
        found, _, sign = self._sides()
        if not self.ends_with or sign != ">=" or not isinstance(found, terms.Aggregate):
            return None
        if found.argument is None or found.function == "count":
            return found
        if found.function not in {"sum", "min", "max", "range"}:
            return None
        column = combined(sequences.rows.column(operand_column(found.argument)))
        typed = typed_column(column.type, found.node)
        if typed is None or typed.kind not in {"number", "float", "span", "time"} or typed.is_narrow:
            return None
        if typed.kind == "time" and found.function != "range":
            return None
        values = measures(column)[column.is_valid().to_numpy(zero_copy_only=False)]
        if typed.kind == "float":
            return found if np.isfinite(values).all() else None
        largest = max(abs(int(values.min(initial=0))), int(values.max(initial=0)))
        return found if largest * max(2, len(values)) <= _FARTHEST else None

    def explain(self, pane: KeyPane, row: int) -> Told:
        """Say what the condition saw when it was asked of a row."""
        numbers: dict[str, str] = {}
        for term in _seen(self._term):
            if isinstance(term, terms.Value) and not _is_constant(term.operand):
                numbers[operand_text(term.operand)] = pane.text(operand_column(term.operand), row)
            elif isinstance(term, terms.Aggregate):
                numbers[_name(term)] = _text(pane, _aggregated(pane, pane.rows, term))
            elif isinstance(term, terms.Previous) and (text := _of_windows_before(pane, term)) is not None:
                numbers[_name(term)] = text
        saw = ", ".join(f"{name} is {text}" for name, text in numbers.items())
        which = "which opens the next window" if not self.ends_with else "its last row"
        of = "" if not saw else f"; {saw}"
        told = f"{operand_text(self.expression)} is true for {pane.name(row)}, {which}{of}"
        return Told(told, numbers, uses_previous(self.expression) or self._is_shown(pane, row))

    def _is_shown(self, pane: KeyPane, row: int) -> bool:
        """Whether its rows alone, and this one, end the window there."""
        rows = np.append(pane.rows, row) if not self.ends_with else pane.rows
        own = pane.sequences
        alone = Sequences(None, np.array([0, len(rows)]), take_rows(own.rows, rows), own.pos[rows], own.order)
        rules = Gathered(len(rows), Programs(alone))
        self._ask(0, rules, alone)
        nothing = np.empty(0, np.int16)
        said = rules.said(nothing, np.empty(0, np.int64), np.zeros(2, np.int8))
        found = walk(alone.bounds, np.zeros(1, np.int64), *said)
        return bool(found.hi[0] == len(pane.rows) and found.cause[0] == len(rows) - 1)


def _span(values: Any) -> int:
    return int(values.max(initial=values[0])) - int(values.min(initial=values[0])) if len(values) else 0


def _is_constant(operand: Operand) -> bool:
    return not isinstance(operand, str) and not operand.columns


def _seen(term: Term) -> Iterator[Term]:
    """Yield what a condition sees: values of the row, and aggregates of a window."""
    if isinstance(term, terms.Operation):
        for each in term.operands:
            yield from _seen(each)
    else:
        yield term


def _name(term: terms.Aggregate | terms.Previous) -> str:
    return canonical(term.node)


def _of_windows_before(pane: KeyPane, term: terms.Previous) -> str | None:
    """Return an aggregate of the window before, or its smoothed value, as text; None: there is none, or too many."""
    at = pane.at
    if not 0 < at <= _MOST_WINDOWS or pane.panes.number[0] != 0:
        return None
    if term.share is None:
        found = _aggregated(pane, pane.rows_of(at - 1), term.of)
        if found is None:
            return None
        return _text(pane, pc.abs(found) if term.is_absolute else found)
    assert isinstance(term.default, terms.Literal)
    default = smoothed = float(term.default.value)
    for before in range(at):
        one = _aggregated(pane, pane.rows_of(before), term.of)
        value = default if one is None else float(one.as_py())
        smoothed = (
            term.share * (abs(value) if term.is_absolute and one is not None else value) + (1.0 - term.share) * smoothed
        )
    return _text(pane, pa.scalar(smoothed))


def _text(pane: KeyPane, value: pa.Scalar | None) -> str:
    return "-" if value is None else str(pane.texts(pa.repeat(value, 1))[0])


def _aggregated(pane: KeyPane, rows: Ints, term: terms.Aggregate) -> pa.Scalar | None:  # noqa: PLR0911 - one of each
    """Return an aggregate of the rows of a window; None: it is null."""
    if term.argument is None:
        return pa.scalar(len(rows))
    column = pane.column(operand_column(term.argument)).take(pa.array(rows)).drop_null()
    if term.function == "count":
        return pa.scalar(len(column))
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type) and term.function in {"min", "max", "range"}:
        column = column.filter(pc.invert(pc.is_nan(column)))
    if not len(column):
        return None
    if term.function in {"first", "last"}:
        return column[0 if term.function == "first" else len(column) - 1]
    if term.function == "range":
        return pc.subtract(pc.max(column), pc.min(column))
    if term.function == "mean" and pa.types.is_decimal(column.type):
        return pa.scalar(float(Fraction(pc.sum(column).as_py()) / len(column)))
    return {"sum": pc.sum, "mean": pc.mean, "min": pc.min, "max": pc.max}[term.function](column)
