"""One window computed once more: from where the window before it ended, or else from the first row of its key on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.clock.interval_grid import clock_values
from ....windowing.columns.arrays import ClockValue, combined
from ....windowing.columns.sort_keys import sort_keys
from ....windowing.errors import ConfigError, InputError, did_you_mean
from ....windowing.language.clock_policies import Time
from ....windowing.language.conditions import When
from ....windowing.language.parser import looks_at_window_before
from ....windowing.language.row_policies import Count
from ....windowing.language.spec import Batched, Sliding, Tumbling
from ....windowing.planning.plan import Plan
from ....windowing.planning.result_schema import MARK, POS
from ....windowing.rows.sequence import Sequences
from ..results.result import StoredRows
from ..results.shown_rows import value_of
from .panes_of_key import (
    AFTER,
    CLOCK,
    KeyCondition,
    KeyPane,
    KeyRows,
    Span,
    is_of_key,
    matching,
    only_panes,
    pane_at,
    panes_of,
    read_key,
    scalar_text,
)
from .recorded import RecordedStage

# The window that a user names, found in the result: what the result says of it and of those next to it.


WINDOW = "window"
Row = Mapping[str, pa.Scalar]


@dataclass(frozen=True, slots=True)
class Sought:
    """The window that a user names.

    ``key``: value by key column, in the types of the result; empty without a key.
    ``window``: its number; None: ``at`` says which.
    ``at``: an order value in it; None: ``window`` says which.
    """

    key: Mapping[str, pa.Scalar]
    window: int | None
    at: pa.Scalar | None = None

    @property
    def words(self) -> str:
        """The window in words: ``window 7``, ``window at 2026-11-01 10:00:00``."""
        return f"window {self.window}" if self.at is None else f"window at {scalar_text(self.at)}"


@dataclass(frozen=True, slots=True)
class FoundWindow:
    """What a result says of a window.

    ``number``: its number.
    ``row``: its row by column, or the first of its rows.
    ``before``, ``after``: the rows of the windows with the numbers before and after it; None: the result has none.
    ``also``: the numbers of other windows that hold the order value that the user named.
    """

    number: int
    row: Mapping[str, pa.Scalar]
    before: Mapping[str, pa.Scalar] | None = None
    after: Mapping[str, pa.Scalar] | None = None
    also: tuple[int, ...] = ()


def sought_window(plan: Plan, schema: pa.Schema, only: Mapping[str, str], window: int | None, at: str | None) -> Sought:
    """Return the window that a user names. ``only``: texts by column.

    Raises `ConfigError` where they are not exactly the key columns, values of other types, or not one of window and at.
    """
    for name in only:
        if name not in plan.key:
            hint = did_you_mean(name, plan.key) if plan.key else "leave --only out"
            raise ConfigError(f"--only: {name!r} is no key column of this result", hint)
    if missing := [name for name in plan.key if name not in only]:
        says = " ".join(f"--only {name}=.." for name in missing)
        raise ConfigError(f"windows of this result have a key: {', '.join(plan.key)}", f"say whose window, {says}")
    if (window is None) == (at is None):
        raise ConfigError("why needs one window", "say --window NUMBER, or --at TIME")
    key = {name: value_of(only[name], schema.field(name).type, f"--only {name}") for name in plan.key}
    if at is None:
        return Sought(key, window)
    kind = schema.field("window_start").type
    if not plan.order.columns and plan.options.event_time is None:
        raise ConfigError("--at: rows of this result are in arrival order", "say --window NUMBER")
    return Sought(key, None, value_of(at, kind, "--at"))


def find_window(rows: StoredRows, sought: Sought) -> FoundWindow | None:
    """Return what a result says of a window; None where it has no such window."""
    number, also = sought.window, list[int]()
    if number is None:  # the windows whose bounds hold the value; both bounds count
        holding: set[int] = set()
        names = [*sought.key, WINDOW, "window_start", "window_end"]
        for table in _rows_of(rows, sought.key, None, None, names):
            start, end = table["window_start"], table["window_end"]
            holds = pc.and_(pc.less_equal(start, sought.at), pc.greater_equal(end, sought.at)).fill_null(False)
            holding.update(table.filter(holds)[WINDOW].to_pylist())
        if not holding:
            return None
        number, *also = sorted(holding)
    near = pa.concat_tables(_rows_of(rows, sought.key, number - 1, number + 1))
    found: list[Row | None] = []
    for each in (number, number - 1, number + 1):
        mine = near.filter(pc.equal(near[WINDOW], each))
        found.append({name: combined(mine[name])[0] for name in mine.column_names} if mine.num_rows else None)
    return None if found[0] is None else FoundWindow(number, found[0], found[1], found[2], tuple(also))


def count_windows(rows: StoredRows, key: Mapping[str, pa.Scalar]) -> int:
    """Return how many windows of a key a result has."""
    numbers = (table[WINDOW].unique() for table in _rows_of(rows, key, None, None, [*key, WINDOW]))
    return len(pa.chunked_array(list(numbers), pa.int64()).unique())


def _rows_of(
    rows: StoredRows,
    key: Mapping[str, pa.Scalar],
    low: int | None,
    high: int | None,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of a key whose window has a number in a range, inclusive, of row groups that may have any."""
    names = list(columns or rows.schema.names)
    yield pa.schema([rows.schema.field(name) for name in names]).empty_table()
    bounds = (None if each is None else pa.scalar(each, pa.int64()) for each in (low, high))
    condition = KeyCondition(key, WINDOW, Span(*bounds), rows.schema)
    for split in rows.source.splits:
        for part in rows.source.parts_with(split, condition):
            table = rows.source.read(part, names).rows
            numbers = combined(table[WINDOW])
            mask = is_of_key(table, key) & numbers.is_valid().to_numpy(zero_copy_only=False)
            if MARK in table.column_names:
                mask &= ~pc.equal(combined(table[MARK]), "only").fill_null(False).to_numpy(zero_copy_only=False)
            values = numbers.fill_null(-1).to_numpy(zero_copy_only=False)
            mask &= (True if low is None else values >= low) & (True if high is None else values <= high)
            yield table.filter(pa.array(mask))


_AT = "_at"
_NUMBER = frozenset({"window"})


def compute_window(recorded: RecordedStage, key: Mapping[str, pa.Scalar], found: FoundWindow) -> KeyPane:
    """Compute a window that a result has once more.

    Where windows follow one another, only the rows between the window before and the window after are read; where a
    pane depends on no row before its oldest, and that of the pane before, the rows from there on. The outcome must be
    what the result says, else all rows of the key are read. Raises `InputError` where the input does not give this
    window.
    """
    plan = only_panes(recorded.stage.plan)
    quick = _from_window_before(recorded, plan, key, found) or _from_oldest_row(recorded, plan, key, found)
    if quick is not None:
        return quick
    panes = panes_of(read_key(plan, recorded.source, recorded.stage.marks, key, Span()))
    numbers = panes.panes.number
    alike = matching(panes.head, found.row)
    if not len(alike):  # a later unit keeps its numbers where an earlier one was corrected
        others = matching(panes.head, found.row, _NUMBER)
        alike = others if len(others) == 1 else alike
    if not len(alike):
        what = f"the files of the manifest do not give window {found.number} of this key any more"
        raise InputError(what, "the result may be older than they are; run the job again")
    at = int(alike[0])
    before = np.flatnonzero(numbers == numbers[at] - 1)
    return pane_at(panes, at, panes.closed_by(int(before[0])) if len(before) else None)


def _from_window_before(
    recorded: RecordedStage, plan: Plan, key: Mapping[str, pa.Scalar], found: FoundWindow
) -> KeyPane | None:
    """Compute a tumbling window from the end of the one before it; None where that does not give what the result says.

    The end of a tumbling window leaves nothing behind that the next one depends on, unless its amounts or expressions
    look at rows before.
    """
    span = _span(plan, found)
    if span is None:
        return None
    rows = read_key(plan, recorded.source, recorded.stage.marks, key, span)
    sequences = rows.sequences
    if found.before is not None and len(sequences):
        first = _first_behind(plan, sequences, found.before)
        bounds, own, pos = np.array([0, len(sequences) - first], np.int64), sequences.rows, sequences.pos
        rows = replace(rows, sequences=replace(sequences, bounds=bounds, rows=own.slice(first), pos=pos[first:]))
    panes = panes_of(rows, _clock(plan, rows, found.row))
    before = None if found.before is None else str(found.before["closed_by"])
    return next((pane_at(panes, int(at), before) for at in matching(panes.head, found.row, _NUMBER)), None)


def _from_oldest_row(
    recorded: RecordedStage, plan: Plan, key: Mapping[str, pa.Scalar], found: FoundWindow
) -> KeyPane | None:
    """Compute a pane from its oldest row on; None where that does not give what the result says.

    What a policy evicts depends on the rows behind alone. So does whether a pane comes out, where each row or the clock
    triggers; whether the window has been full does not, but both panes have come out. The pane before is computed, too,
    for what has changed since.
    """
    before = found.before
    if before is None or not _forgets(plan) or _AT not in found.row or str(found.row["closed_by"]) == "end":
        return None
    starts = [each["window_start"] for each in (before, found.row)]
    if not all(each.is_valid for each in (*starts, found.row[_AT], before[_AT])):
        return None
    span = Span(pc.min(_array(starts)), found.row[_AT])
    partial = replace(plan, options=replace(plan.options, partial=True)) if isinstance(plan.spec, Sliding) else plan
    rows = read_key(partial, recorded.source, recorded.stage.marks, key, span)
    panes = panes_of(rows, _clock(plan, rows, found.row))
    mine, ahead = (matching(panes.head, row, _NUMBER) for row in (found.row, before))
    both = np.intersect1d(mine, ahead + 1)
    return next((pane_at(panes, int(at), str(before["closed_by"])) for at in both), None)


def _forgets(plan: Plan) -> bool:
    if len(plan.sort) != 1 or not plan.order.columns or plan.lag_columns or plan.options.emit != "aggregates":
        return False
    match plan.spec:
        case Sliding(trigger=trigger, eviction=None):
            return trigger == Count(1) or isinstance(trigger, Time | When)
        case Batched(every=None, retain_all=False):
            return not plan.spec.partition_by
        case _:
            return False


def _span(plan: Plan, found: FoundWindow) -> Span | None:
    """Return the order values, or arrival positions, between the windows next to a window; None: all rows matter."""
    spec = plan.spec
    stands_alone = (
        isinstance(spec, Tumbling)
        and spec.eviction is None
        and not looks_at_window_before(spec.policy)
        and not plan.takes_marks
        and not plan.lag_columns
        and plan.options.empty == "skip"
        and len(plan.sort) <= 1
    )
    if not stands_alone or _AT not in found.row or (found.number and found.before is None):
        return None
    if found.before is not None and not found.before[_AT].is_valid:
        return None
    name = _AT if plan.sort else POS
    low = found.before[name] if found.before is not None else found.row["window_start"] if plan.sort else None
    ends = [found.row[name], *([found.row["window_end"]] if plan.sort else [])]
    ends += [found.after["window_start" if plan.sort else POS]] if found.after is not None else []
    known = [each for each in ends if each.is_valid]
    return Span(low, None if str(found.row["closed_by"]) == "end" or not known else pc.max(_array(known)))


def _array(values: list[pa.Scalar]) -> pa.Array:
    return pa.concat_arrays([pa.repeat(each.cast(values[0].type), 1) for each in values])


def _first_behind(plan: Plan, sequences: Sequences, before: Row) -> int:
    """Return the first row that is not in the window before.

    A tick ends a window before the rows of its instant, or behind them where the right side is closed; a row ends the
    window that it is in, or the one before it.
    """
    pos, why = before[POS].as_py(), str(before["closed_by"])
    column = sequences.rows.column(plan.sort[0]) if plan.sort else None
    if column is None:
        return int(np.searchsorted(sequences.pos, pos, side="right" if why in AFTER else "left"))
    at = before[_AT].cast(column.type)
    words = sort_keys(pa.concat_arrays([column, pa.repeat(at, 1)]))
    own, bound = words[:-1], words[-1]
    if pos == -1 or why in CLOCK:
        return int(np.searchsorted(own, bound, side="right" if plan.options.closed == "right" else "left"))
    is_behind = (own > bound) | ((own == bound) & (sequences.pos > pos if why in AFTER else sequences.pos >= pos))
    return int(np.argmax(is_behind)) if is_behind.any() else len(sequences)


def _clock(plan: Plan, rows: KeyRows, row: Row) -> ClockValue | None:
    if not plan.kind.needs.clock or not plan.sort or not row[_AT].is_valid:
        return rows.clock
    kind = rows.sequences.rows.schema.field(plan.sort[0]).type
    found = clock_values(pa.repeat(row[_AT].cast(kind, safe=False), 1), plan.sort[0])[0].item()
    return found if rows.clock is None else max(found, rows.clock)
