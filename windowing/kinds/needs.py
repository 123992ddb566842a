"""What a window needs of its input: the columns that it names, the clock, and the options that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import pyarrow as pa

from ..clock.interval_grid import clock_values
from ..clock.tick_grid import Grid
from ..columns.arrays import is_measurable
from ..errors import ClockError, ConfigError
from ..expressions.syntax import Expression
from ..expressions.types import type_text
from ..language.operands import Operand, operand_column
from ..language.spec import PartitionEviction, Policy

Option = Literal["empty", "origin", "closed", "ends", "partial", "event time", "emit evicted", "changes", "left"]
"""What only some windows take: empty windows, a grid of ticks, the side on which windows are closed, rows that last,
panes before they are full, a watermark, the windows of evicted keys, rows that entered or left, and rows that left."""

Explain = Callable[[str], str | None]
"""Returns which value made a column text, or None, for messages."""


Causes = Literal["rows", "ticks", "both"]
"""What triggers panes, apart from the end of the data: rows (and marks), the clock, or both."""


Step = Literal["evicts", "comes in", "is in"]
"""The steps of a row at which a sliding window can become full: it has evicted rows, it comes in next, it is in."""


@dataclass(frozen=True, slots=True)
class PaneTimes:
    """The times that panes have on one clock column.

    ``bounds``: type of interval bounds; None where the bounds are values of rows.
    ``instants``: type of the instants at which the clock triggers panes; None where it triggers none.
    ``grid``: the only grid of these instants; None where there is none, or they are found one by one.
    """

    bounds: pa.DataType | None = None
    instants: pa.DataType | None = None
    grid: Grid | None = None

    def to_instants(self, column: pa.Array, name: str) -> pa.Array:
        """Return clock values in the type of ``instants``, bit for bit as bounds have the same instant."""
        if self.grid is not None:
            return self.grid.to_arrow(self.grid.instants(clock_values(column, name)))
        return column if self.instants is None else column.cast(self.instants, safe=False)


@dataclass(frozen=True, slots=True)
class PanesByCount:
    """Panes that the number of rows so far decides: at each ``step``-th row the last ``most`` rows, from ``least`` on.

    ``least``: how many rows make a window full.
    """

    most: int
    step: int
    least: int = 0

    def rows_out(self, rows: int, flushes: bool) -> int:
        """Return how many rows all panes of ``rows`` rows of a key show.

        ``flushes``: whether the last row also triggers, if it has not done so.
        """
        first, last = max(1, -(-self.least // self.step)), rows // self.step  # triggers, counted from 1
        growing = min(last, self.most // self.step)  # triggers that find at most ``most`` rows so far
        found = 0
        if growing >= first:
            found += self.step * (first + growing) * (growing - first + 1) // 2
        found += self.most * max(0, last - max(growing, first - 1))
        if flushes and rows % self.step and rows >= self.least:
            found += min(rows, self.most)
        return found


@dataclass(frozen=True, slots=True)
class Needs:
    """What a window, or one of its policies, needs of the input and of what runs it: all that follows from the spec.

    Of the columns:

    ``attributes``: those that it names, without repeats, in the order of its canonical text.
    ``required``: those of them that must hold a value: rows with null or NaN there are rejected.
    ``measured``: those whose values are subtracted.
    ``amounts``: those that are amounts: rows with a negative one are rejected.
    ``operands``: conditions and amounts: those of ``attributes`` that may be expressions, and may look at rows before.
    ``watched``: the one whose decreases are counted; None: none.
    ``baseline``: what `KeyState.baseline` holds: values of the one with which a ``delta`` trigger compares; of the type
        of smoothed values of the windows before; None: nothing.

    Of time and events:

    ``clock``: whether the order column must be read in seconds (section 1).
    ``ends``: the attribute that says until when a row lasts (section 18); None: rows are instants.
    ``dated``: whether windows begin at dates, so that rows beyond the years 1 to 9999 are in none.
    ``zones``: the time zones that it names.
    ``marks``: whether window marks end windows.
    ``watermark``: whether a watermark completes panes; then signals are its advances, and rows may be late.
    ``causes``: what triggers panes.
    ``window_before``: whether a window depends on the one before it of its key (section 13).
    ``waits``: whether rows at the instant of a tick enter at that tick, so that it comes when the clock has passed it.

    Of keys:

    ``partitioned``: whether the spec says that a key is required.
    ``eviction``: which keys are evicted (section 4).

    Of what runs it:

    ``options``: which options it takes.
    ``unfit``: those that it does not take for one word of it, by the option.
    ``go_on``: whether the windows of a key follow one another, so that a value may go on from one to the next.
    ``overlaps``: whether a row may be in several panes; then segments show rows of earlier segments.
    ``cells``: whether rows share cells: sets of neighbouring rows of a key that are in the same panes, if none is late.
    ``can_cut``: whether keys may be cut into segments.
    ``run_through``: of tumbling windows, whether segments of a key are run through, one after the other: what is open
        before one decides what happens in it.
    ``in_turn``: whether what came out before a cut decides what windows retain or show: then the segments of a key are
        scanned one after the other, to know with what each begins.
    ``pane_columns``: the columns that rows have in a pane alone, with their types: then a pane has rows of its own,
        a row once for each pane that shows it.
    ``changes_of_groups``: whether a pane emits only the groups that differ from the pane before it.
    ``sum_of_nothing``: the sum of a pane without values (section 9).
    ``full_when``: the step at which a window is full for the first time; None: windows are always full.
    ``by_count``: the panes, where nothing but the number of rows of a key decides them; else None.
    ``rows_out_per_row``: about how many rows of the result a row causes, where that may be many; else 0.
    ``counted_rows``: how the number of rows of a key so far decides its panes: by its remainder by the one, up to the
        other.
    """

    attributes: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    watched: str | None = None
    baseline: str | pa.DataType | None = None
    clock: bool = False
    ends: str | None = None
    dated: bool = False
    zones: tuple[str, ...] = ()
    marks: bool = False
    watermark: bool = False
    causes: Causes = "rows"
    window_before: bool = False
    waits: bool = False
    partitioned: bool = False
    eviction: PartitionEviction | None = None
    options: frozenset[Option] = frozenset()
    unfit: Mapping[Option, str] = field(default_factory=dict)
    go_on: bool = True
    overlaps: bool = True
    cells: bool = False
    can_cut: bool = True
    run_through: bool = False
    in_turn: bool = False
    pane_columns: Mapping[str, pa.DataType] = field(default_factory=dict)
    changes_of_groups: bool = False
    sum_of_nothing: int | None = None
    full_when: Step | None = None
    by_count: PanesByCount | None = None
    rows_out_per_row: Fraction = Fraction(0)
    counted_rows: tuple[int, int] = (1, 0)

    @property
    def expressions(self) -> Mapping[str, Expression]:
        """Those of ``operands`` that are expressions, by the column that holds their values."""
        return {operand_column(each): each for each in self.operands if not isinstance(each, str)}

    @property
    def is_chained(self) -> bool:
        """Whether segments begin with a window state, as units of a range do; else summaries say how they begin."""
        return self.overlaps or self.in_turn

    @property
    def shares_rows(self) -> bool:
        """Whether panes share rows, and what is computed of them: then the number of rows before has a say."""
        return self.overlaps and not self.pane_columns


def joined(parts: Sequence[Needs]) -> Needs:
    """Return what several policies of one window need together."""

    def names(of: Callable[[Needs], tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in parts for name in of(part)))

    return Needs(
        names(lambda part: part.attributes),
        names(lambda part: part.required),
        names(lambda part: part.measured),
        names(lambda part: part.amounts),
        clock=any(part.clock for part in parts),
        dated=any(part.dated for part in parts),
        marks=any(part.marks for part in parts),
        window_before=any(part.window_before for part in parts),
        can_cut=all(part.can_cut for part in parts),
        baseline=next((part.baseline for part in parts if part.baseline is not None), None),
        options=frozenset(option for part in parts for option in part.options),
    )


# Attributes that are compared by an amount: ``delta`` and ``gap``, in tumbling and sliding windows.


def check_measured(policy: Policy, name: str, dtype: pa.DataType, explain: Explain) -> None:
    """Raise `ClockError` where an attribute has no values that can be subtracted."""
    if is_measurable(dtype):
        return
    because = explain(name)
    raise ClockError(
        f"{policy} needs a number, a timestamp or a date, and column {name!r} is {dtype}"
        + (f": {because}" if because else ""),
        f'with --schema "{name}:timestamp" (or int64, float64) such rows are rejected'
        if because
        else "name another column, or cast it",
        name,
    )


# Conditions of windows: columns or expressions that must be boolean, in tumbling and sliding windows.


def check_condition(word: str, operand: Operand, dtype: pa.DataType) -> None:
    """Raise `ConfigError` or `SpecError` where an operand of the policy called ``word`` is no condition."""
    if pa.types.is_boolean(dtype):
        return
    if isinstance(operand, str):
        raise ConfigError(f"{word}({operand}) needs a boolean column, and {operand!r} is {dtype}", "use another column")
    what = f"{word} needs a condition, and {operand} is {type_text(dtype)}"
    raise operand.error(what, operand.root.span, "compare it with something")
