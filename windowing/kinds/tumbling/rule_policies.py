"""``when(E)``, ``while(E)`` and ``from(E, until=U)``: windows that begin at rows for which a condition is true."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask, Measures, amounts_in, combined, is_amount, is_measurable, measures, truth
from ...errors import ConfigError
from ...language.conditions import Operand, Previous, Step, Value, operand_column, operands_of, steps_of
from ...language.spec import Changing, From, Gap, PartitionEviction, Reaches, When, While
from ...rows.marks import Marks, no_marks
from ...rows.membership import with_filter
from ...rows.panes import AT_END, Panes, reason
from ...rows.sequence import Sequences, one_batch, rises, take_rows
from ...support.jit import kernel
from ..context import WindowContext
from ..contract import Explain, Option, check_measured
from ..delta import Exit
from ..evictions import Evictions, total_order
from ..rules.events import Events, RowRules, Ticks, evictions_by_rules, instants_type, no_events, with_marks, with_ticks
from ..rules.gather import Gathered, delta_rule, is_previous_number, reach_rule
from ..rules.previous import FINE, Earlier
from ..rules.reach import SUM, no_sums
from ..rules.reach import Reaches as ReachRules
from ..rules.walk import AFTER, EVENT, NEVER, Counts, Deltas, Window, Windows, no_window, walk
from ..segment_summary import RunThrough, SegmentSummary, WindowPosition
from .clock_policies import ClockPolicy
from .policy import ConditionPolicy, Passage, RulePolicy, TumblingPolicy, ranges


@dataclass(frozen=True, slots=True)
class OpenerPolicy(ConditionPolicy, RulePolicy):
    """``when(E)`` and ``while(E)``.

    ``value``: as in the spec.
    """

    value: When | While

    ends_before: ClassVar[bool] = True
    opens: ClassVar[bool] = True

    @property
    def why(self) -> str:  # type: ignore[override]
        """The close reason: the name of the policy."""
        return "when" if isinstance(self.value, When) else "while"

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.value.condition,)

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say which rows may begin a window, and which end one: the same under ``when``, the others under ``while``."""
        rules.opens = truth(sequences.rows, operand_column(self.value.condition))
        rules.ends_before(rule, rules.opens if isinstance(self.value, When) else ~rules.opens)


@dataclass(frozen=True, slots=True)
class FromPolicy(ConditionPolicy, RulePolicy):
    """``from(E, until=U)``.

    ``value``: as in the spec.
    """

    value: From

    why: ClassVar[str] = "until"
    opens: ClassVar[bool] = True

    @property
    def word(self) -> str:
        """The name of the policy: its windows end by the other condition."""
        return "from"

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.value.condition, self.value.until)

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        rules.opens = truth(sequences.rows, operand_column(self.value.condition))
        rules.ends_with(rule, truth(sequences.rows, operand_column(self.value.until)))


# ``reaches(AGG(x), v)``: until an aggregate over the window's rows so far is at least a value.


@dataclass(frozen=True, slots=True)
class ReachesPolicy(RulePolicy):
    """``reaches(AGG(x), v)``.

    ``value``: as in the spec.
    """

    value: Reaches

    why: ClassVar[str] = "reaches"

    @property
    def attributes(self) -> tuple[str, ...]:
        return () if self.value.argument is None else (operand_column(self.value.argument),)

    @property
    def required(self) -> tuple[str, ...]:
        """None: aggregates skip nulls."""
        return ()

    @property
    def measured(self) -> tuple[str, ...]:
        """What is added or compared: it must fit 64 bit."""
        return () if self.value.function == "count" else self.attributes

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        if self.value.function == "count" or name not in self.attributes:
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
        rules.sums.append(reach_rule(rule, value.function, value.argument, value.amount, sequences))


# ``delta(a, E)``, ``gap(a, E)`` and ``count(E)``: amounts that rows say (semantics section 13).


_MOST_ROWS = np.uint64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class ChangingPolicy(RulePolicy):
    """``delta(a, E)``, ``gap(a, E)`` or ``count(E)``.

    ``value``: as in the spec.
    """

    value: Changing

    @property
    def why(self) -> str:  # type: ignore[override]
        """The close reason: the name of the policy."""
        return self.value.word

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.measured, *self.amounts]))

    @property
    def measured(self) -> tuple[str, ...]:
        return () if self.value.attribute is None else (self.value.attribute,)

    @property
    def amounts(self) -> tuple[str, ...]:
        return (operand_column(self.value.amount),)

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        if name in self.measured:
            check_measured(Gap(name, 0), name, dtype, explain)  # type: ignore[arg-type]
        if name in self.amounts and not is_amount(dtype):
            raise ConfigError(f"{self.value} needs a number as amount, and {self.value.amount} is {dtype}", "cast it")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        amounts = combined(sequences.rows.column(self.amounts[0]))
        if self.value.attribute is None:
            rules.counts.append((rule, np.minimum(amounts_in(pa.int64(), amounts), _MOST_ROWS).astype(np.int64)))
            return
        attribute = combined(sequences.rows.column(self.value.attribute))
        values, amount = self._compared(attribute, amounts)
        if self.value.word == "delta":
            rules.deltas.append(delta_rule(rule, values, amount))
        elif rules.has_holes:
            rules.rises_from_last_row(rule, values, amount, sequences)
        else:
            wide = amount.astype(values.dtype) if values.dtype.kind == "f" else amount
            rules.ends_before(rule, _gap_flags(values, wide))

    def _compared(self, attribute: pa.Array, amounts: pa.Array) -> tuple[Measures, Any]:
        values = measures(attribute)
        return values, amounts_in(attribute.type, amounts)


@dataclass(frozen=True, slots=True)
class PreviousPolicy(ChangingPolicy):
    """A `ChangingPolicy` whose amount asks for the window before, with ``previous``."""

    @property
    def looks_at_window_before(self) -> bool:
        return True

    @property
    def leaves_holes(self) -> bool:
        """Whether each row of a window has an amount of its own, so that it may be rejected."""
        return self.value.word == "gap"

    @property
    def _steps(self) -> tuple[Step, ...]:
        assert not isinstance(self.value.amount, str)
        return steps_of(self.value.amount)

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.measured, *map(operand_column, self.value.operands)]))

    @property
    def required(self) -> tuple[str, ...]:
        values = [operand_column(step.operand) for step in self._steps if isinstance(step, Value)]
        return tuple(dict.fromkeys([*self.measured, *values]))

    @property
    def amounts(self) -> tuple[str, ...]:
        """None: no single row says whether an amount is negative."""
        return ()

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        ChangingPolicy.check_attribute(self, name, dtype, explain)  # super() knows no dataclass with slots
        for operand in self._numbers:
            if operand_column(operand) == name and not is_previous_number(dtype):
                raise ConfigError(f"{self.value} needs integers or floats, and {operand} is {dtype}", "cast it")

    @property
    def _numbers(self) -> list[Operand]:
        """What must be a number: all but what is counted."""
        is_counted = [isinstance(step, Previous) and step.function == "count" for step in self._steps]
        return [*operands_of(tuple(step for step, out in zip(self._steps, is_counted, strict=True) if not out))]

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        attribute, moves = self.value.attribute, self.value.word == "gap"
        rules.amount_of_window_before(rule, self._steps, attribute, moves, sequences, str(self.value))


def changing_policy(value: Changing) -> ChangingPolicy:
    """Return the policy of an amount that rows say, or rows and the window before."""
    return PreviousPolicy(value) if value.looks_at_window_before else ChangingPolicy(value)


@kernel
def _gap_flags(values: Measures, amount: Any) -> Mask:
    flags = np.zeros(len(values), np.bool_)
    for i in range(1, len(values)):
        flags[i] = rises(values[i], values[i - 1], amount[i - 1])
    return flags


# ``P or Q or ..``: windows that end where the first of several policies says so (semantics section 12).


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """What a segment leaves to the next: the window that is open behind it.

    ``before``: the last row of the segment, as a sequence.
    ``window``: what the loop keeps of the window; None: no window is open.
    """

    before: Sequences
    window: Window | None


@dataclass(frozen=True, slots=True)
class AnyOfPolicy(TumblingPolicy):
    """``P or Q or ..``, and single policies that are only rules.

    ``policies``: those of the spec, in its order.
    """

    policies: tuple[TumblingPolicy, ...]

    @property
    def needs_clock(self) -> bool:  # type: ignore[override]
        return any(policy.needs_clock for policy in self.policies)

    @property
    def is_dated(self) -> bool:
        return any(policy.is_dated for policy in self.policies)

    @property
    def options(self) -> frozenset[Option]:  # type: ignore[override]
        """A grid of ticks where time is one of the policies; windows without rows have no bounds."""
        return frozenset().union(*(policy.options for policy in self.policies)) - {"empty"}

    @property
    def takes_marks(self) -> bool:
        return any(policy.takes_marks for policy in self.policies)

    @property
    def skips_rows(self) -> bool:
        return self.looks_at_window_before or any(getattr(policy, "opens", False) for policy in self.policies)

    @property
    def attributes(self) -> tuple[str, ...]:
        return _distinct(policy.attributes for policy in self.policies)

    @property
    def required(self) -> tuple[str, ...]:
        """The attributes that must hold a value for one of the policies."""
        return _distinct(policy.required for policy in self.policies)

    @property
    def measured(self) -> tuple[str, ...]:
        return _distinct(policy.measured for policy in self.policies)

    @property
    def amounts(self) -> tuple[str, ...]:
        return _distinct(policy.amounts for policy in self.policies)

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        for policy in self.policies:
            if name in policy.attributes:
                policy.check_attribute(name, dtype, explain)

    @property
    def has_cells(self) -> bool:
        """No: rows of one tick may be in several windows."""
        return False

    @property
    def may_cut(self) -> bool:
        """Whether no marks end windows: a segment is run through without them, and knows no window before its own."""
        return not (self.takes_marks or self.looks_at_window_before)

    @property
    def looks_at_window_before(self) -> bool:
        return any(policy.looks_at_window_before for policy in self.policies)

    def instants_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        """Return the type of ticks; bounds are values of rows."""
        types = [found for policy in self.policies if (found := policy.instants_type(clock, origin)) is not None]
        return instants_type(types) if types else None

    def to_tick_type(self, column: pa.Array, name: str, origin: Fraction) -> pa.Array:  # noqa: ARG002
        return column.cast(self.instants_type(column.type, origin) or column.type, safe=False)

    # --- panes

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:
        events = self._events(sequences, marks, context)
        rules = self._gathered(sequences)
        earlier = None if rules.earlier is None else rules.earlier.earlier()
        continued = None if context.restored is None else context.restored.continued
        if continued is not None:
            found = _continue(sequences, rules, events, continued.value)
        else:
            found, _ = _walk(sequences, rules, events, _first_new(sequences, context), earlier=earlier)
        key = np.searchsorted(sequences.bounds, found.lo, side="right") - 1
        number = np.arange(len(key)) - np.searchsorted(key, key)
        last = found.hi - 1
        cause = np.select(
            [found.how == NEVER, found.how == EVENT, found.how == AFTER],
            [np.full(len(last), AT_END), events.cause[last], last],
            found.hi,
        )
        reasons = np.array([*(reason(policy.why) for policy in self.policies), reason("end")], np.int8)
        at = None if events.at is None else events.at.take(pa.array(last))
        panes = Panes(key, number, ranges(found.lo, found.hi), cause, reasons[found.rule], at=at)
        if rules.earlier is None or earlier is None or not earlier.problem.any():
            return panes
        membership = with_filter(panes.membership, earlier.problem == FINE)
        return replace(panes, membership=membership, rejects=rules.earlier.rejects(earlier))

    def _events(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Events:
        events = no_events(len(sequences))
        ticking = [(rule, each) for rule, each in enumerate(self.policies) if isinstance(each, ClockPolicy)]
        if ticking:
            clock = sequences.rows.schema.field(sequences.order[0]).type
            dtype = cast(pa.DataType, self.instants_type(clock, context.origin))
            for rule, policy in ticking:
                values, grid = policy.values_and_grid(sequences, context)
                events = with_ticks(events, rule, sequences.bounds, Ticks(values, grid, context.clock, dtype))
        for rule, other in enumerate(self.policies):
            if other.takes_marks:
                events = with_marks(events, rule, sequences, marks, context.closed == "right")
        return events

    def _gathered(self, sequences: Sequences) -> Gathered:
        """Return what the rules say of the rows; marks and ticks are events."""
        rules = Gathered(len(sequences), any(policy.leaves_holes for policy in self.policies))
        for rule, policy in enumerate(self.policies):
            if not isinstance(policy, ClockPolicy) and not policy.takes_marks:
                policy.tell(rule, rules, sequences)
        return rules

    # --- partition eviction

    def evictions(
        self, eviction: PartitionEviction, sequences: Sequences, marks: Marks, context: WindowContext
    ) -> Evictions:
        """Return all partition evictions; ``sequences`` hold all rows of all keys."""
        order = total_order(sequences, context.restored)
        rules = self._gathered(sequences)
        deltas, counts, reaches = rules.delta_rules(), rules.count_rules(), rules.reach_rules()
        window = _empty_window(deltas, counts, reaches)
        flags = rules.flags(np.full(len(sequences), -1, np.int16))
        said = RowRules(flags, deltas, counts, reaches, window, np.zeros(window.sums.limbs.shape[1], np.int64))
        events = None
        if self.needs_clock or self.takes_marks:
            rows = take_rows(sequences.rows.select(list(sequences.order)), order.row)
            as_one = replace(sequences, keys=None, bounds=np.array([0, len(order.row)]), rows=rows, rank=None,
                             pos=sequences.pos[order.row])  # fmt: skip
            events = self._events(as_one, marks, context)
        return evictions_by_rules(eviction, order, sequences, marks, said, events)

    # --- segments

    def outline(self, segment: Sequences, marks: Marks, context: WindowContext) -> None:
        """Return nothing: the window that is open before a segment decides what is in it."""

    def pass_through(
        self,
        position: WindowPosition,
        index: int,
        segment: SegmentSummary,  # noqa: ARG002
        run_through: RunThrough,
        context: WindowContext,  # noqa: ARG002
    ) -> Passage:
        found = run_through(index, position.value)
        left, skips = found.value
        return Passage(Exit(found.starts, found.last, None), left.window is None, left, skips)

    def run_through(self, segment: Sequences, value: Any, context: WindowContext) -> Exit:
        """Return the exit of a segment; its value is the `OpenWindow` behind it, and whether rows are in no window."""
        before: OpenWindow | None = value
        rows, begin, window = segment, 0, None
        if before is not None:
            rows, begin, window = _behind(before.before, segment), 1, _copy(before.window)
        resumed = window is not None
        events = self._events(rows, no_marks(rows.rows, rows.order), context)
        found, left = _walk(rows, self._gathered(rows), events, np.array([begin]), window)
        last = int(found.lo[-1]) - begin if len(found.lo) > resumed else -1
        row = replace(
            segment,
            bounds=np.array([0, 1]),
            rows=take_rows(segment.rows, np.array([len(segment) - 1])),
            pos=segment.pos[-1:],
            rank=None,
        )
        open_window = OpenWindow(row, left if left.held[0] else None)
        return Exit(len(found.lo) - resumed, last, (open_window, found.skipped > 0))


def _empty_window(deltas: Deltas, counts: Counts, reaches: ReachRules) -> Window:
    sums_floats = bool((reaches.floating & (reaches.function == SUM)).any())
    return no_window(deltas, counts, no_sums(len(reaches.rule), sums_floats))


def _walk(
    sequences: Sequences,
    rules: Gathered,
    events: Events,
    begin: Ints,
    window: Window | None = None,
    earlier: Earlier | None = None,
) -> tuple[Windows, Window]:
    """Return the windows, and the one that the last row leaves open; ``window`` as in `walk`, None: none is."""
    deltas, counts, reaches = rules.delta_rules(), rules.count_rules(), rules.reach_rules()
    if window is None:
        window = _empty_window(deltas, counts, reaches)
    flags, begin = rules.flags(events.rule), np.ascontiguousarray(begin)
    asked = reaches if len(reaches.rule) else None
    return walk(sequences.bounds, begin, flags, deltas, counts, asked, window, earlier), window


def _continue(sequences: Sequences, rules: Gathered, events: Events, value: OpenWindow) -> Windows:
    if len(sequences) == 1:  # no row follows
        fired = events.rule[:1]
        return Windows(
            np.zeros(1, np.int64), np.ones(1, np.int64), fired, np.where(fired < 0, NEVER, EVENT).astype(np.int8), 0
        )
    found, _ = _walk(sequences, rules, events, np.ones(1, np.int64), _copy(value.window))
    found.lo[0] = 0
    return found


def _first_new(sequences: Sequences, context: WindowContext) -> Ints:
    """Return the first row of each key that may be in a window: restored rows before it are only looked back at."""
    begin = sequences.bounds[:-1]
    if context.restored is None or not context.restored.row_state.shown.any():
        return begin
    total = np.concatenate([[0], np.cumsum(context.restored.row_state.shown)])
    return begin + total[sequences.bounds[1:]] - total[begin]


def _behind(before: Sequences, segment: Sequences) -> Sequences:
    rows = one_batch(pa.Table.from_batches([before.rows, segment.rows.select(before.rows.schema.names)]))
    pos = np.concatenate([before.pos, segment.pos])
    return replace(segment, bounds=np.array([0, len(pos)]), rows=rows, pos=pos, rank=None)


def _copy(window: Window | None) -> Window | None:
    """Return a window that the loop may write to: a value that comes from another segment may be read once more."""
    if window is None:
        return None
    return copy.deepcopy(window)


def _distinct(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))
