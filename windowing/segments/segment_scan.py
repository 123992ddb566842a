"""A piece of a sequence scanned on from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask
from ..kinds.sliding.kernels import comparable
from ..language.spec import Delta, Sliding, Tumbling
from ..planning.plan import Plan, panes_only
from ..scan.scan import Bounds, Scanned, scan
from ..scan.signals import Signals
from ..sequences.attribute_distance import measured
from ..sequences.sequence import Sequences, one_batch, taken
from ..state.window_state import Flags, Past, fresh, no_flags
from .delta_chains import End, follow
from .overlapping import dead_at, lookback_entries, lookback_summary, still_held
from .summary import Entry, Follow, Summary
from .tumbling import tumbling_entries, tumbling_summary


def summarise(plan: Plan, piece: Sequences, signals: Signals) -> tuple[Summary, Ints]:
    """Summarise a piece of one key that is not empty.

    Also return which of its rows pieces behind it may show, as far as these rows tell: int64, ascending; empty where
    the entries name them.
    """
    if isinstance(plan.spec, Tumbling):
        return tumbling_summary(plan, plan.spec, piece, signals.marks), np.empty(0, np.int64)
    return lookback_summary(plan, piece, signals)


def entries(plan: Plan, pieces: Sequence[Summary], follow: Follow) -> list[Entry]:
    """Compose the summaries of the pieces of one key, in order."""
    if isinstance(plan.spec, Tumbling):
        return tumbling_entries(plan, pieces, follow)
    return lookback_entries(pieces, follow)


def chain_through(plan: Plan, piece: Sequences, value: Any) -> End:
    """Follow the chain of a start value of a ``delta`` through a piece, None: that of its first row."""
    assert isinstance(plan.spec, Tumbling | Sliding)
    policy = plan.spec.policy if isinstance(plan.spec, Tumbling) else plan.spec.trigger
    assert isinstance(policy, Delta)
    values, too_much = measured(piece, policy.attribute, policy.amount)
    return follow(comparable(values), value, too_much, plan.is_sorted_by(policy.attribute))


@dataclass(frozen=True, slots=True)
class Before:
    """What a piece sees of those before it: ``rows`` of its key, in order.

    ``rank``: int64, how many rows of the key came before each. ``shown``: which of them a pane has shown.
    ``baseline``: what a ``delta`` trigger compares with, of length 1; None where nothing has set it.
    """

    rows: Sequences
    rank: Ints
    shown: Mask
    baseline: pa.Array | None = None


def scan_piece(
    plan: Plan, entry: Entry, before: Before, piece: Sequences, signals: Signals, bounds: Bounds, is_last: bool
) -> Scanned:
    """Scan a piece. ``signals``: those that stand before the piece behind it. ``bounds``: as of the whole run.

    Where it is not the last one, rows that pieces behind it may show are left to these, and in no account.
    """
    if not entry.tells:
        return Scanned(iter(()), 0, 0, 0, 0, 0, 0, np.empty(0, np.int64), None)
    rows, past = _joined(plan, entry, before, piece)
    if not is_last:
        plan = replace(plan, options=replace(plan.options, at_end="hold"))
        bounds = replace(bounds, clock=None, keeps=True, dead=dead_at(plan, signals, len(signals)))
    scanned = scan(plan, rows, signals, replace(bounds, since=entry.since), past)
    return replace(scanned, held=0)


def count_piece(plan: Plan, entry: Entry, before: Before, piece: Sequences, signals: Signals) -> tuple[int, Ints]:
    """Return how many windows come out in a piece that is not the last, and which rows that pieces behind it may show
    it has shown: their arrival positions, int64."""
    scanned = scan_piece(panes_only(plan), entry, before, piece, signals, Bounds(), False)
    assert scanned.carry is not None
    return scanned.windows, scanned.carry.sequences.pos[scanned.carry.flags.shown]


def held_before(
    plan: Plan, entry: Entry, parts: Sequence[Sequences], rank: Ints, signals: Signals, piece: Sequences
) -> Before:
    """Return what is still held where a piece begins, of all that the pieces before it hold each; none of it shown."""
    rows = joined([*parts, _none_of(piece)])
    picks = np.flatnonzero(still_held(plan, rows, entry.since, dead_at(plan, signals, entry.signals)))
    held = replace(rows, bounds=np.array([0, len(picks)]), rows=taken(rows.rows, picks), pos=rows.pos[picks])
    return Before(held, rank[picks], np.zeros(len(picks), np.bool_))


def joined(parts: Sequence[Sequences]) -> Sequences:
    """Return rows of one key as one sequence."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return (filled or parts)[-1]
    rows = one_batch(pa.Table.from_batches([part.rows for part in parts]))
    pos = np.concatenate([part.pos for part in parts])
    return replace(parts[-1], bounds=np.array([0, len(pos)]), rows=rows, pos=pos)


def begun_before(parts: Sequence[Sequences], piece: Sequences) -> Before:
    """Return the rows of the tumbling window that is open where a piece begins."""
    rows = joined([*parts, _none_of(piece)])
    return Before(rows, np.arange(len(rows)), np.zeros(len(rows), np.bool_))


def _none_of(piece: Sequences) -> Sequences:
    return replace(piece, bounds=np.zeros(2, np.int64), rows=piece.rows.slice(0, 0), pos=piece.pos[:0])


def _joined(plan: Plan, entry: Entry, before: Before, piece: Sequences) -> tuple[Sequences, Past]:
    held, registers = len(before.rows), fresh(plan.spec, piece.rows, 1)
    rows = joined([before.rows, piece])
    flags = Flags(np.append(before.shown, np.zeros(len(piece), np.bool_)), no_flags(len(rows)).last)
    count = held
    if not isinstance(plan.spec, Tumbling):  # no window that tumbles looks at ranks
        count = entry.rows
        rows = replace(rows, rank=np.append(before.rank, entry.rows + np.arange(len(piece))))
    if before.baseline is not None:
        registers = replace(registers, baseline=before.baseline)
    windows, full = np.array([entry.windows]), np.array([entry.full])
    registers = replace(registers, rows=np.array([count]), windows=windows, full=full)
    return rows, Past(np.array([held]), registers, flags, entry.signals, entry.since)
