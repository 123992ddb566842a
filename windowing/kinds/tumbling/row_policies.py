"""The policies that rows and marks decide: what each needs, which rows end its windows, and why, in words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import (
    Ints,
    Mask,
    amounts_in,
    combined,
    is_amount,
    is_measurable,
    measures,
    scale_of,
)
from ...columns.sort_keys import as_values, is_sortable
from ...errors import ConfigError
from ...expressions.syntax import Expression
from ...language import programs as terms
from ...language.operands import operand_column
from ...language.programs import looks_at_window, term_of
from ...language.row_policies import Change
from ...language.spec import Changing, Count, Delta, From, Gap, Punct, Reaches, Split, When, While
from ...rows.sequence import Sequences, measures_and_amount
from ..facts import Amount, Fact, KeyPane, amount_text, apart_of, exact_text
from ..needs import Explain, Needs, check_measured
from ..rules.compiler import is_previous_number
from ..rules.gather import Gathered, tell_gap
from .policy import Told, TumblingPolicy
from .window_policies import ByWindow, ConditionPolicy


class CountPolicy(TumblingPolicy):
    """``count(n)``: windows of n rows."""

    value: Count

    why: ClassVar[str] = "count"
    ends_with: ClassVar[bool] = True

    @property
    def needs(self) -> Needs:
        return Needs()

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        rules.counts.append((rule, self.value.n))

    def most_rows(self) -> int:
        return self.value.n

    def explain(self, pane: KeyPane, row: int) -> Told:
        return _full(pane, row, Fraction(self.value.n))

    def near(self, pane: KeyPane, ended: bool) -> Iterator[Fact]:
        following = _next_in_line(pane) if ended else None
        if following is not None:
            yield following
        elif not ended:
            held, most = len(pane.rows), self.value.n
            yield Fact("near", f"it holds {held:,} of {most:,} rows", None, "count", {"missing": str(most - held)})


def _full(pane: KeyPane, row: int, most: Amount | None) -> Told:
    """Say that a window is full. ``most``: None where the window before says it."""
    says = "" if most is None else f"; count is {amount_text(pa.int64(), most)}"
    count = len(pane.rows)
    text = f"{pane.name(row)} was its row number {count:,}{says}"
    return Told(text, {"rows": str(count)}, most is not None and count + 1 > most)


def _next_in_line(pane: KeyPane) -> Fact | None:
    if pane.next_row is None:
        return None
    text = f"{pane.name(pane.next_row)} is next in line: with one more row allowed it is in it, too"
    return Fact("near", text, pane.pos(pane.next_row), "count")


class _RisePolicy(TumblingPolicy):
    """A policy under which a window ends before a row that rises by more than an amount."""

    value: Delta | Gap

    @property
    def needs(self) -> Needs:
        names = (self.value.attribute,)
        return Needs(names, names, names)

    def check(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        check_measured(self.value, name, dtype, explain)

    def explain(self, pane: KeyPane, row: int) -> Told:
        return _risen(pane, self.value, row, self.value.amount)

    def near(self, pane: KeyPane, ended: bool) -> Iterator[Fact]:
        yield from _near_rise(pane, self.value, ended)


class DeltaPolicy(_RisePolicy):
    """``delta(attribute, amount)``: until a row that is more than an amount above the first row of the window."""

    value: Delta

    why: ClassVar[str] = "delta"
    is_known_by_sample: ClassVar[bool] = True

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        rules.rises_from_first_row(rule, values, amount)


class GapPolicy(_RisePolicy):
    """``gap(attribute, amount)``: until a row that is more than an amount above the row before it."""

    value: Gap

    why: ClassVar[str] = "gap"
    neighbours_decide: ClassVar[bool] = True

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        values, amount = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        tell_gap(rule, rules, sequences, values, amount)


def _risen(pane: KeyPane, value: Delta | Gap | Changing, row: int, limit: Amount | None) -> Told:
    """Say how far a row is above the first row of a window, or its last. ``limit``: None: the window before says it."""
    name, word = value.attribute, value.word
    assert name is not None
    other, what = (pane.rows[0], "the window's first row") if word == "delta" else (pane.rows[-1], "the row before it")
    kind, apart = pane.column(name).type, pane.distance(name, row, int(other))
    how = "after" if pa.types.is_temporal(kind) else "above"
    text = f"{pane.value_text(name, row)} is {amount_text(kind, apart)} {how} {what}, "
    known = f"the {word} follows from the window before" if limit is None else f"{word} is {amount_text(kind, limit)}"
    text += f"{pane.value_text(name, int(other))}; {known}"
    numbers = {"distance": exact_text(apart), **({} if limit is None else {"limit": exact_text(limit)})}
    return Told(text, numbers, limit is not None and apart > limit)


def _near_rise(pane: KeyPane, value: Delta | Gap | Changing, ended: bool) -> Iterator[Fact]:
    """Yield the row inside with which a smaller amount would end the window, and with which amount it would go on."""
    name, word, is_delta = value.attribute, value.word, value.word == "delta"
    assert name is not None
    kind = pane.column(name).type
    if (highest := pane.highest(name, from_first=is_delta)) is not None:
        row, apart = highest
        what, amount = pane.name(row), amount_text(kind, apart)
        text = f"the widest gap inside is {amount}, before {what}: with a smaller one the window ends there"
        if is_delta:
            text = f"{what} is farthest from the first row, by {amount}: with a smaller delta it is in the next window"
        yield pane.near(text, row, word, apart)
    if ended and pane.cause_row is not None:
        apart = pane.distance(name, pane.cause_row, int(pane.rows[0 if is_delta else -1]))
        text = f"with a {word} of {amount_text(kind, apart)} or more {pane.name(pane.cause_row)} is in it, too"
        yield pane.near(text, pane.cause_row, word, apart)


class ChangePolicy(TumblingPolicy):
    """``change(column, ..)``: until a row whose value is distinct from that of the key's row before it."""

    value: Change

    why: ClassVar[str] = "change"
    neighbours_decide: ClassVar[bool] = True

    @property
    def needs(self) -> Needs:
        """Its columns, of which none must hold a value: null is a value like others, and so is NaN."""
        return Needs(tuple(map(operand_column, self.value.columns)))

    def check(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        if not is_sortable(dtype):
            raise ConfigError(f"column {name!r} is {dtype}, whose values cannot be compared", "name another column")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        flags = np.zeros(len(sequences), np.bool_)
        if rules.has_holes:  # the row before may have been rejected: it is the last of the window that counts
            for operand in self.value.columns:
                rules.programs.changes(rule, combined(sequences.rows.column(operand_column(operand))))
            return
        for operand in self.value.columns:
            flags[1:] |= _distinct(combined(sequences.rows.column(operand_column(operand))))
        rules.ends_before(rule, flags)

    def explain(self, pane: KeyPane, row: int) -> Told:
        last = int(pane.rows[-1])
        columns = [(operand, operand_column(operand)) for operand in self.value.columns]
        changes = [
            f"{operand} goes from {pane.text(name, last)} to {pane.text(name, row)}"
            for operand, name in columns
            if _distinct(pane.column(name).take(pa.array([last, row])))[0]
        ]
        return Told(f"in {pane.name(row)} {' and '.join(changes)}", is_shown=bool(changes))


def _distinct(column: pa.Array) -> Mask:
    """Return where a column's value is distinct from the one before: null equals null, NaN NaN, and 0.0 equals -0.0."""
    if pa.types.is_null(column.type) or len(column) < 2:
        return np.zeros(max(len(column) - 1, 0), np.bool_)
    column = as_values(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    new, old = column.slice(1), column.slice(0, len(column) - 1)
    distinct = pc.not_equal(new, old)
    if column.null_count:
        distinct = pc.if_else(distinct.is_valid(), distinct, pc.xor(new.is_null(), old.is_null()))
    if pa.types.is_floating(column.type):
        both = pc.and_(pc.is_nan(new), pc.is_nan(old)).fill_null(False)
        distinct = pc.and_(distinct, pc.invert(both))
    return distinct.to_numpy(zero_copy_only=False)


class MarkPolicy(TumblingPolicy):
    """``punct()``: until a window mark."""

    why: ClassVar[str] = "punct"
    ends_with: ClassVar[bool] = True
    neighbours_decide: ClassVar[bool] = True

    @property
    def needs(self) -> Needs:
        return Needs(marks=True)


def condition_policy(value: Punct | Split | When | While | From) -> TumblingPolicy:
    """Return the policy of ``punct()``, or of one with conditions."""
    if isinstance(value, Punct) and value.column is None:
        return MarkPolicy(value)
    found = ConditionPolicy(value)
    return found if found.ending is None or not looks_at_window(found.ending) else ByWindow(value)


class ReachesPolicy(TumblingPolicy):
    """``reaches(AGG(x), v)``: until an aggregate over the window's rows so far is at least a value."""

    value: Reaches

    why: ClassVar[str] = "reaches"
    ends_with: ClassVar[bool] = True

    @property
    def needs(self) -> Needs:
        """Its argument, which need not hold a value: aggregates skip nulls. What is added or compared fits 64 bit."""
        names = () if self.value.argument is None else (operand_column(self.value.argument),)
        return Needs(names, measured=() if self.value.function == "count" else names)

    def check(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        if self.value.function == "count":
            return
        is_number = not pa.types.is_temporal(dtype) or pa.types.is_duration(dtype)
        if is_measurable(dtype) and (is_number or self.value.function == "range"):
            return
        because = explain(name)
        raise ConfigError(
            f"{self.value} needs a number, and {name!r} is {dtype}" + (f": {because}" if because else ""),
            "name another column, or cast it",
        )

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        value = self.value
        rules.reaches(rule, value.function, value.argument, value.amount, sequences)

    def explain(self, pane: KeyPane, row: int) -> Told:
        now, before = self._reached(pane, pane.rows), self._reached(pane, pane.rows[:-1])
        what = str(self.value).removeprefix("reaches(").rpartition(", ")[0]
        was = f", and {self._text(pane, before)} before it" if len(pane.rows) > 1 else ""
        limit = self._text(pane, self.value.amount)
        text = f"with {pane.name(row)} {what} is {self._text(pane, now)}{was}; it closes at {limit}"
        numbers = {"limit": exact_text(self.value.amount), **({} if now is None else {"reached": exact_text(now)})}
        return Told(text, numbers, (now or 0) >= self.value.amount)

    def _text(self, pane: KeyPane, amount: Amount | None) -> str:
        """Return a value of the aggregate as text; the range of times is in seconds."""
        if amount is None:
            return "-"
        if self.value.argument is None or self.value.function != "range":
            return amount_text(pa.float64(), amount)
        return amount_text(pane.column(operand_column(self.value.argument)).type, amount)

    def _reached(self, pane: KeyPane, rows: Ints) -> Amount | None:
        """Return the aggregate over rows, the range of times in seconds; None: of no value."""
        if self.value.argument is None:
            return Fraction(len(rows))
        column = pane.column(operand_column(self.value.argument)).take(pa.array(rows))
        if self.value.function == "range":
            ends = pc.min_max(column)
            pair = pa.concat_arrays([pa.repeat(ends[name], 1) for name in ("max", "min")])
            return apart_of(pair) if ends["max"].is_valid else None
        found = {"sum": pc.sum, "min": pc.min, "max": pc.max, "count": pc.count}[self.value.function](column).as_py()
        return found if found is None or isinstance(found, float) else Fraction(found)


_MOST_ROWS = np.uint64(2**63 - 1)


class _AmountPolicy(TumblingPolicy):
    """A policy whose amount is an expression; a ``count`` compares no attribute with it."""

    value: Changing

    @property
    def why(self) -> str:  # type: ignore[override]
        return self.value.word

    @property
    def ends_with(self) -> bool:  # type: ignore[override]
        return self.value.word == "count"

    @property
    def _measured(self) -> tuple[str, ...]:
        return () if self.value.attribute is None else (self.value.attribute,)

    def check(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        if name == self.value.attribute:
            check_measured(Gap(name, 0), name, dtype, explain)  # type: ignore[arg-type]
        self._check_amount(name, dtype)

    def near(self, pane: KeyPane, ended: bool) -> Iterator[Fact]:
        if self.value.attribute is not None:
            yield from _near_rise(pane, self.value, ended)
        elif ended and (following := _next_in_line(pane)) is not None:
            yield following

    @abstractmethod
    def _check_amount(self, name: str, dtype: pa.DataType) -> None:
        """Raise `ConfigError` where an amount cannot have the type of an attribute."""


class ChangingPolicy(_AmountPolicy):
    """``delta(a, E)``, ``gap(a, E)`` or ``count(E)``: amounts that rows say (semantics section 13)."""

    value: Changing

    @property
    def neighbours_decide(self) -> bool:  # type: ignore[override]
        return self.value.word == "gap"

    @property
    def needs(self) -> Needs:
        amounts = (operand_column(self.value.amount),)
        names = tuple(dict.fromkeys([*self._measured, *amounts]))
        return Needs(names, names, self._measured, amounts)

    def _check_amount(self, name: str, dtype: pa.DataType) -> None:
        if name == operand_column(self.value.amount) and not is_amount(dtype):
            raise ConfigError(f"{self.value} needs a number as amount, and {self.value.amount} is {dtype}", "cast it")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        amounts = combined(sequences.rows.column(operand_column(self.value.amount)))
        if self.value.attribute is None:
            rules.counts.append((rule, np.minimum(amounts_in(pa.int64(), amounts), _MOST_ROWS).astype(np.int64)))
            return
        attribute = combined(sequences.rows.column(self.value.attribute))
        values, amount = measures(attribute), amounts_in(attribute.type, amounts)
        if self.value.word == "delta":
            rules.rises_from_first_row(rule, values, amount)
        else:
            is_float = values.dtype.kind == "f" and not rules.has_holes
            tell_gap(rule, rules, sequences, values, amount.astype(values.dtype) if is_float else amount)

    def explain(self, pane: KeyPane, row: int) -> Told:
        says = int(pane.rows[-1] if self.value.word == "gap" else pane.rows[0])
        amounts = pane.column(operand_column(self.value.amount)).slice(says, 1)
        if self.value.attribute is None:
            return _full(pane, row, Fraction(str(amounts[0].as_py())))
        kind = pane.column(self.value.attribute).type
        found, per_second = amounts_in(kind, amounts)[0], scale_of(kind).per_second
        limit = float(found) if per_second is None else Fraction(int(found)) / per_second
        return _risen(pane, self.value, row, limit)


class PreviousPolicy(_AmountPolicy):
    """``delta(a, E)``, ``gap(a, E)`` or ``count(E)`` whose amount asks for the window before, with ``previous``."""

    value: Changing

    def leaves_holes(self, sequences: Sequences) -> bool:
        """Whether each row of a window has an amount of its own, so that it may be rejected."""
        return self.value.word == "gap"

    @property
    def _amount(self) -> Expression:
        assert isinstance(self.value.amount, Expression)
        return self.value.amount

    @property
    def needs(self) -> Needs:
        """What is compared, and operands; no single row says whether an amount is negative."""
        measured, parts = self._measured, list(terms.terms(term_of(self._amount, True)))
        values = [operand_column(each.operand) for each in parts if isinstance(each, terms.Value)]
        names = dict.fromkeys([*measured, *map(operand_column, self.value.operands)])
        is_smoothed = any(isinstance(each, terms.Previous) and each.share for each in parts)
        return Needs(
            tuple(names),
            tuple(dict.fromkeys([*measured, *values])),
            measured,
            window_before=True,
            baseline=pa.list_(pa.float64()) if is_smoothed else None,
        )

    def _check_amount(self, name: str, dtype: pa.DataType) -> None:
        # what is counted need not be a number
        for each in terms.terms(term_of(self._amount, True)):
            is_value = isinstance(each, terms.Value)
            counts = isinstance(each, terms.Aggregate) and each.function == "count"
            operand = each.operand if isinstance(each, terms.Value) else getattr(each, "argument", None)
            if (
                (is_value or not counts)
                and operand is not None
                and operand_column(operand) == name
                and not is_previous_number(dtype)
            ):
                raise ConfigError(f"{self.value} needs integers or floats, and {operand} is {dtype}", "cast it")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        attribute, moves = self.value.attribute, self.value.word == "gap"
        rules.amount_of_window_before(rule, self._amount, attribute, moves, sequences, str(self.value))

    def explain(self, pane: KeyPane, row: int) -> Told:
        if self.value.attribute is None:
            return _full(pane, row, None)
        return _risen(pane, self.value, row, None)


def changing_policy(value: Changing) -> TumblingPolicy:
    """Return the policy of an amount that rows say, or rows and the window before."""
    return PreviousPolicy(value) if value.looks_at_window_before else ChangingPolicy(value)


ROW_POLICIES: Final[Mapping[type, Callable[[Any], TumblingPolicy]]] = {
    Count: CountPolicy,
    Delta: DeltaPolicy,
    Gap: GapPolicy,
    **dict.fromkeys((Punct, Split, When, While, From), condition_policy),
    Change: ChangePolicy,
    Changing: changing_policy,
    Reaches: ReachesPolicy,
}
"""The policies of this module by the type of their value in the language."""
