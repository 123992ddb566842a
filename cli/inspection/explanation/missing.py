"""Where the rows of a key went that has no such window: filtered, rejected, in other windows, dropped, or held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from ....windowing.panes.membership import shown, take
from ....windowing.planning.plan import Plan
from ....windowing.ports import Source
from ....windowing.projection.source import ProjectionSource
from ...console.amounts import WORDS
from ..results.result import ResultFolder
from .explanation import MissingWindow
from .facts.fact import Fact
from .windows.key_rows import KeyCondition, Span, is_of_key, only_panes, parts_with, read_key
from .windows.panes_of_key import KeyPanes, panes_of
from .windows.recorded_stage import RecordedStage
from .windows.row_values import scalar_text
from .windows.sought import Sought, count_windows


def missing_window(result: ResultFolder, recorded: RecordedStage, sought: Sought) -> MissingWindow:
    """Say where the rows of a key went. All of its rows are read."""
    plan = only_panes(recorded.stage.plan)
    rows = read_key(plan, recorded.source, recorded.stage.marks, sought.key, Span())
    panes = panes_of(rows)
    total = _count(plan, recorded.source, sought.key)
    rejected = Counter(rows.rejected)
    if recorded.late is not None:
        late = read_key(plan, recorded.late, recorded.stage.marks, sought.key, Span())
        rejected.update({**late.rejected, "late": late.rejected.get("late", 0) + len(late.sequences)})
        total += _count(plan, recorded.late, sought.key)
    if panes.panes.rejects is not None:
        rejected.update(panes.panes.rejects.by_reason)
    counts = _counts(panes, total, rejected)
    windows = len(panes.came_out)
    on_state = result.manifest["job"].get("state") is not None
    facts = tuple(_facts(panes, count_windows(result.rows, sought.key), on_state))
    key = tuple((name, scalar_text(value)) for name, value in sought.key.items())
    return MissingWindow(result.shown, str(plan.spec), key, sought.words, total, windows, counts, facts)


def _counts(panes: KeyPanes, total: int, rejected: Mapping[str, int]) -> dict[str, int]:
    """Return how many rows went where, without zeros, in the words of the row accounting."""
    every, rows = panes.panes, len(panes.sequences)
    out = int(np.count_nonzero(shown(take(every.membership, panes.came_out), rows)))
    placed = int(np.count_nonzero(shown(every.membership, rows)))
    end = WORDS["dropped_at_end" if panes.plan.options.at_end == "drop" else "held"]
    scanned = 0 if every.rejects is None else len(every.rejects)
    counts = {
        WORDS["windowed"]: out,
        end: placed - out,
        "in no window": rows - placed - scanned,
        "left out by --where": total - rows - (sum(rejected.values()) - scanned),
        **{f"rejected, {reason}": count for reason, count in sorted(rejected.items())},
    }
    return {what: count for what, count in counts.items() if count}


def _count(plan: Plan, source: Source, key: Mapping[str, pa.Scalar]) -> int:
    """Count the rows of a key that the input has."""
    if not key:
        return sum(split.rows for split in source.splits)
    condition = KeyCondition(key, None, Span(), source.schema)
    reading = source if plan.projection.is_trivial else ProjectionSource(source, plan.projection, tuple(key))
    parts = (part for split in source.splits for part in parts_with(source, split, condition))
    return sum(int(np.count_nonzero(is_of_key(reading.read(part, list(key)).rows, key))) for part in parts)


def _facts(panes: KeyPanes, there: int, on_state: bool) -> Iterator[Fact]:
    """Say which windows the key has, and whether the result hides some; ``on_state``: it is of one unit of them all."""
    came = panes.came_out
    if len(panes.sequences) == 0:
        yield Fact("other", "no row of this key reached a window")
        return
    if len(came):
        numbers = panes.panes.number[came]
        head = panes.head.take(pa.array(came))
        ends = [scalar_text(head.column(name)[at]) for name, at in (("window_start", 0), ("window_end", -1))]
        text = f"its windows have the numbers {int(numbers.min())} to {int(numbers.max())}, from {ends[0]} to {ends[1]}"
        yield Fact("other", text)
    if there < len(came):
        why = "the others came out in other units" if on_state else "--having, or --partition-by, leaves out the others"
        yield Fact("other", f"the result has {there:,} of them: {why}")
    held = len(panes.panes) - len(came)
    if held:
        yield Fact("other", f"{held:,} more of its windows were open at the end, and --at-end did not flush them")
