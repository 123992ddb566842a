"""Every case of ``tests/cases/spl_windows.json``, against the reference and against the library.

A case is a stream of events (rows, marks, watermarks, the clock) and what the original C++ windows put out after
which event. The three with NaN run against the kernels: the library rejects such rows before.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import wincli
from references import tumbling as reference
from references.event_time import intervals
from references.sliding import sliding
from support.spl_cases import (
    ALL,
    TYPES,
    Case,
    Emitted,
    Output,
    check,
    has_nan,
    in_seconds,
    order_of,
    outputs,
    pair_of,
    read,
    records,
    table_of,
)
from wincli.windowing.kinds.context import Signals, WindowContext
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language import spec
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.membership import gathered
from wincli.windowing.rows.panes import AT_END
from wincli.windowing.rows.sequence import build, one_batch

# --- the reference ------------------------------------------------------------------------------------------------


def policy_of(policy: spec.Policy) -> reference.Policy:
    """A policy as the reference writes it."""
    match policy:
        case spec.Count(n):
            return reference.Count(n)
        case spec.Delta(name, amount):
            return reference.Delta(name, amount, TYPES[name])
        case spec.Time(seconds):
            return reference.Time(seconds, TYPES["at"], empty="mark")
    assert policy == spec.Punct()
    return reference.Punct()


def watermarks_of(case: Case) -> list[tuple[int, Fraction]]:
    """Watermarks as both sides take them: how many rows stand before each, and its seconds."""
    return [(case.rows_before(index), seconds) for index, seconds in case.watermarks.items()]


def by_reference(case: Case) -> Counter[Output]:
    rows = reference.read(table_of(case))
    panes = panes_of(case, rows)
    if case.group_by:
        panes = reference.grouped(panes, rows, [case.group_by])
    return outputs(case, [emitted_of(pane, rows) for pane in panes])


def panes_of(case: Case, rows: dict[int, reference.Row]) -> list[reference.Pane]:
    both: dict[str, Any] = {"key": [case.key] if case.key else [], "order": order_of(case), "at_end": "drop"}
    kind = TYPES["at"] if both["order"] else None
    match case.spec:
        case spec.TimeInterval(duration, period, age, offset):
            where: dict[str, Any] = {"event_time": "et", "kind": TYPES["et"], "watermarks": watermarks_of(case)}
            return intervals(rows, duration, period, age, offset, **where, **both)[0]
        case spec.Sliding(evict, trigger, _, eviction):
            more: dict[str, Any] = {"clock": case.clock, "since": 0.0, "kind": kind, "eviction": pair_of(eviction)}
            policies: Any = policy_of(evict), policy_of(trigger)
            return sliding(rows, *policies, partial=case.partial, **more, **both)
        case spec.Tumbling(policy, _, eviction):
            marks = [case.rows_before(index) for index in case.marks]
            more = {"eviction": pair_of(eviction), "emit": case.emit_evicted, "kind": kind, "clock": case.clock}
            return reference.tumbling(rows, policy_of(policy), marks=marks, **more, **both).panes
    raise AssertionError(case.window)


def emitted_of(pane: reference.Pane, rows: dict[int, reference.Row]) -> Emitted:
    return Emitted(
        pane.key[0] if pane.key else None,
        pane.at[0] if pane.at else None,
        -1 if pane.pos is None else pane.pos,
        None if pane.mark == "only" else [rows[pos]["id"] for pos in pane.rows],
        pane.closed_by,
        mark=pane.mark is not None,
        group=pane.group[0] if pane.group else None,
        interval=in_seconds(pane.start, pane.end) if pane.timing else None,
        timing=pane.timing,
        index=pane.index,
    )


# --- the library --------------------------------------------------------------------------------------------------


def by_library(case: Case) -> Counter[Output]:
    result = wincli.aggregate(
        table_of(case),
        case.window,
        key=[case.key] if case.key else [],
        order_by=order_of(case) or "arrival",
        aggregates=["ids=collect(id)"],
        at_end="drop",
        **options(case),
    )
    return outputs(case, [read(case, record) for record in records(result)])


def options(case: Case) -> dict[str, Any]:
    """What only some kinds of windows are asked."""
    group_by = {"group_by": [case.group_by]} if case.group_by else {}
    match case.spec:
        case spec.TimeInterval():
            return group_by | {"event_time": "et", "watermarks": watermarks_of(case), "rejected": "drop"}
        case spec.Sliding(_, trigger):
            since = {"since": 0.0} if isinstance(trigger, spec.Time) else {}
            return group_by | since | {"clock": case.clock, "partial": case.partial}
    marks = [case.rows_before(index) for index in case.marks] if case.marks else None
    evicted = {"emit_evicted": True} if case.emit_evicted else {}
    empty = "mark" if "time" in case.words else "skip"
    return group_by | evicted | {"clock": case.clock, "marks": marks, "empty": empty}


# --- outputs and events -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_reference_conforms(case: Case) -> None:
    got = by_reference(case)
    check(case, got)


@pytest.mark.parametrize("case", [case for case in ALL if not has_nan(case)], ids=lambda case: case.name)
def test_library_conforms(case: Case) -> None:
    got = by_library(case)
    check(case, got)


@pytest.mark.parametrize("case", [case for case in ALL if has_nan(case)], ids=lambda case: case.name)
def test_kernels_conform_where_nan_compares_false(case: Case) -> None:
    """The library rejects rows with NaN before kernels see them."""
    rows = one_batch(table_of(case))
    key = [case.key] if case.key else []
    sequences = build(rows, np.arange(rows.num_rows), key, order_of(case), rows.schema.names)
    signals = Signals(no_marks(rows, order_of(case)))
    panes, _ = kind_of(case.spec).panes(sequences, signals, WindowContext(partial=case.partial))
    panes = panes.take(np.flatnonzero(panes.cause != AT_END))
    shown, bounds = gathered(panes.membership, 0, len(panes))
    ids = sequences.rows.column("id").to_numpy()[shown].tolist()
    got = Counter(
        Output(case.rows[cause], None, None, tuple(ids[start:stop]), mark=True)
        for cause, (start, stop) in zip(panes.cause.tolist(), pairwise(bounds.tolist()), strict=True)
    )
    check(case, got)


def test_no_case_is_left_out() -> None:
    assert len(ALL) == 53
    assert sum(map(has_nan, ALL)) == 2
