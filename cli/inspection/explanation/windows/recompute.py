"""One window computed once more: from where the window before it ended, or else from the first row of its key on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....windowing.clock.values import clock_values
from .....windowing.columns.arrays import ClockValue
from .....windowing.columns.sort_keys import sort_keys
from .....windowing.errors import InputError
from .....windowing.language.clock_policies import Time
from .....windowing.language.conditions.policies import When
from .....windowing.language.policies import looks_at_window_before
from .....windowing.language.row_policies import Count
from .....windowing.language.spec import Batched, Sliding, Tumbling
from .....windowing.planning.plan import Plan
from .....windowing.planning.result_schema import POS
from .....windowing.sequences.sequence import Sequences
from .key_rows import KeyRows, Span, only_panes, read_key
from .panes_of_key import AFTER, CLOCK, KeyPane, matching, pane_at, panes_of
from .recorded_stage import RecordedStage
from .sought import FoundWindow

_AT = "_at"
_NUMBER = frozenset({"window"})
Row = Mapping[str, pa.Scalar]


def compute_window(recorded: RecordedStage, key: Mapping[str, pa.Scalar], found: FoundWindow) -> KeyPane:
    """Compute a window that a result has once more.

    Where windows follow one another, only the rows between the window before and the window after are read; where a
    pane depends on no row before its oldest, and that of the pane before, the rows from there on. The outcome must be
    what the result says, else all rows of the key are read. Raises `InputError` where the input does not give this
    window.
    """
    plan = only_panes(recorded.stage.plan)
    quick = _from_window_before(recorded, plan, key, found) or _from_oldest_row(recorded, plan, key, found)
    return quick or _from_first_row(recorded, plan, key, found)


def _from_first_row(recorded: RecordedStage, plan: Plan, key: Mapping[str, pa.Scalar], found: FoundWindow) -> KeyPane:
    panes = panes_of(read_key(plan, recorded.source, recorded.stage.marks, key, Span()))
    numbers = panes.panes.number
    alike = matching(panes.head, found.row)
    if not len(alike):  # a later unit keeps its numbers where an earlier one was corrected
        others = matching(panes.head, found.row, _NUMBER)
        alike = others if len(others) == 1 else alike
    for at in map(int, alike[:1]):
        before = np.flatnonzero(numbers == numbers[at] - 1)
        return pane_at(panes, at, panes.closed_by(int(before[0])) if len(before) else None)
    what = f"the files of the manifest do not give window {found.number} of this key any more"
    raise InputError(what, "the result may be older than they are; run the job again")


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
    rows = replace(rows, sequences=_behind(plan, rows.sequences, found.before))
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
    """Whether a pane depends on no row before its oldest one."""
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
    if not _stands_alone(plan) or _AT not in found.row or (found.number and found.before is None):
        return None
    if found.before is not None and not found.before[_AT].is_valid:
        return None
    name = _AT if plan.sort else POS
    low = found.before[name] if found.before is not None else found.row["window_start"] if plan.sort else None
    ends = [found.row[name], *([found.row["window_end"]] if plan.sort else []), *_after(plan, found)]
    known = [each for each in ends if each.is_valid]
    return Span(low, None if str(found.row["closed_by"]) == "end" or not known else pc.max(_array(known)))


def _array(values: list[pa.Scalar]) -> pa.Array:
    return pa.concat_arrays([pa.repeat(each.cast(values[0].type), 1) for each in values])


def _after(plan: Plan, found: FoundWindow) -> list[pa.Scalar]:
    """Return where the row next in line is at the latest."""
    if found.after is None:
        return []
    return [found.after["window_start"] if plan.sort else found.after[POS]]


def _stands_alone(plan: Plan) -> bool:
    """Whether a window depends on nothing before its own rows, and each row is in one window."""
    spec = plan.spec
    return (
        isinstance(spec, Tumbling)
        and spec.eviction is None
        and not looks_at_window_before(spec.policy)
        and not plan.takes_marks
        and not plan.lag_columns
        and plan.options.empty == "skip"
        and len(plan.sort) <= 1
    )


def _behind(plan: Plan, sequences: Sequences, before: Row | None) -> Sequences:
    """Return the rows behind the end of the window before."""
    if before is None or not len(sequences):
        return sequences
    first = _first_behind(plan, sequences, before)
    bounds = np.array([0, len(sequences) - first], np.int64)
    return replace(sequences, bounds=bounds, rows=sequences.rows.slice(first), pos=sequences.pos[first:])


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
    """Return a time of the clock at which the window had come out, if a tick brought it out."""
    if not plan.kind.needs_clock or not plan.sort or not row[_AT].is_valid:
        return rows.clock
    kind = rows.sequences.rows.schema.field(plan.sort[0]).type
    found = clock_values(pa.repeat(row[_AT].cast(kind, safe=False), 1), plan.sort[0])[0].item()
    return found if rows.clock is None else max(found, rows.clock)
