"""Panes: the output of every kind of window, and the only input that aggregates and results take from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, Mask
from ..language.parser import POLICIES
from .membership import Membership, part, shown, take
from .pairs import Pairs

# Windows that are continued: what stands for the rows of a tumbling window that came before the rows of a scan.


@dataclass(frozen=True, slots=True)
class ContinuedWindow:
    """The earlier rows of a tumbling window that goes on: the first row of the scan stands for all of them.

    ``rows``: how many they are.
    ``edges``: the first and the last of them, a batch of two rows.
    ``partials``: their partial aggregates, as rows for the second phase of the aggregates, in the order of the rows.
    ``value``: what the policy keeps of the window, where the row that stands for the others does not say it.
    """

    rows: int
    edges: pa.RecordBatch
    partials: pa.RecordBatch
    value: Any = None


# Rows that a scan rejects: only the order of rows, or a window, shows that no window can take them (section 8).


@dataclass(frozen=True, slots=True)
class ScanRejects:
    """Rows that are in no window, and are counted as rejected.

    ``pos``: int64 (r,), their arrival positions, each once, in any order.
    ``reason``: string (r,), the reason of each, such as ``expression_error``.
    ``detail``: string (r,), what it comes from; null where the reason says all.
    ``row``: int64 (r,), their places in the sequences that were scanned; positions may repeat in these.
    """

    pos: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    reason: pa.Array = field(default_factory=lambda: pa.nulls(0, pa.string()))
    detail: pa.Array = field(default_factory=lambda: pa.nulls(0, pa.string()))
    row: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.pos)

    def __add__(self, other: ScanRejects) -> ScanRejects:
        return concatenate([self, other])

    @property
    def by_reason(self) -> dict[str, int]:
        return {entry["values"]: entry["counts"] for entry in self.reason.value_counts().to_pylist()}

    def take(self, picks: Ints) -> ScanRejects:
        """Return the rejects at ``picks``."""
        texts = (self.reason.take(pa.array(picks)), self.detail.take(pa.array(picks)))
        return ScanRejects(self.pos[picks], *texts, self.row[picks])

    def to_rows(self) -> pa.RecordBatch:
        """Return a batch with a column for each field."""
        return pa.RecordBatch.from_arrays(
            [pa.array(self.pos), self.reason, self.detail], names=["pos", "reason", "why"]
        )


NO_REJECTS: Final = ScanRejects()


def reject_rows(pos: Ints, reason: str, detail: str | None = None, row: Ints | None = None) -> ScanRejects:
    """Reject rows for one reason. ``pos``, ``row``: as of `ScanRejects`; ``detail``: the same for all."""
    row = np.full(len(pos), -1) if row is None else row
    reasons = pa.repeat(pa.scalar(reason), len(pos))
    return ScanRejects(pos, reasons, pa.repeat(pa.scalar(detail, pa.string()), len(pos)), row)


def concatenate(parts: Sequence[ScanRejects]) -> ScanRejects:
    """Return rejects as one."""
    pos, row = (np.concatenate([getattr(part, name) for part in parts]) for name in ("pos", "row"))
    reason, detail = (pa.concat_arrays([getattr(part, name) for part in parts]) for name in ("reason", "detail"))
    return ScanRejects(pos, reason, detail, row)


def rejects_from(rows: pa.RecordBatch) -> ScanRejects:
    """Return the rejects of a batch that `ScanRejects.to_rows` has made; their places are no longer known, -1."""
    pos, reason, detail = rows.columns
    return ScanRejects(pos.to_numpy(zero_copy_only=False), reason, detail, np.full(len(pos), -1))


_REASONS = (
    "count", "delta", "gap", "time", "punct", "trigger", "watermark", "late", "batch", "expiry", "evicted", "end",
)  # fmt: skip
_BEHIND = ("table", "match", "within")
CLOSED_BY: tuple[str, ...] = tuple(dict.fromkeys([*_REASONS, *(rule.reason for rule in POLICIES.values()), *_BEHIND]))
"""Close reasons, also those of tumbling policies (semantics section 1); `Panes.closed_by` holds indices into this."""

TIMING: tuple[str, ...] = ("on_time", "late")
"""Timings of event-time panes (semantics section 5); `Outputs.timing` holds indices into this."""

AT_END = -1
"""Cause of a pane that only the end of the data emitted."""
BY_TICK = -2
"""Cause of a pane that the clock emitted, at the instant in ``at``."""


def reason(name: str) -> int:
    """Return the index of a close reason in `CLOSED_BY`."""
    return CLOSED_BY.index(name)


@dataclass(frozen=True, slots=True)
class MarkOnly:
    """Marks that are emitted without a row.

    ``cause``: int64, as in `Panes`.
    ``at``: instants, as in `Panes`.
    """

    cause: Ints
    at: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """Timing and number of the outputs of event-time panes (semantics section 5).

    ``timing``: int8 (P,), indices into `TIMING`.
    ``index``: int64 (P,), how often the pane was emitted before.
    """

    timing: npt.NDArray[np.int8]
    index: Ints


@dataclass(frozen=True, slots=True)
class Panes:
    """P panes over the n rows of some sequences, key after key, within a key in the order that ``membership`` needs.

    ``key``: int64 (P,), index of the key, ascending.
    ``number``: int64 (P,), window number: 0, 1, 2, .. for each key, in emission order, which for most kinds is
        the order of the panes here.
    ``membership``: the rows of each pane.
    ``cause``: int64 (P,), the row that emitted the pane; ``n + m`` for mark m; `AT_END`; `BY_TICK`.
    ``closed_by``: int8 (P,), indices into `CLOSED_BY`.
    ``start``: array of P inclusive interval bounds, or None if the kind has none; the result then takes the order value
        of the first row.
    ``end``: array of P exclusive interval bounds, or None; the result then takes the order value of the last row.
    ``at``: array of P instants of the panes caused `BY_TICK`, arbitrary for others; None where no tick emits panes.
    ``marks_only``: marks without a row, where the kind of window knows them; else None.
    ``outputs``: timing of event-time panes; None for other kinds.
    ``left``: what goes on behind the panes of each key, (K,), beside rows: `KeyState.baseline`; None: nothing.
    ``rejects``: rows in no pane that the window rejects, all of this run; None: none.
    ``continued``: the earlier rows of the first pane, for which its first row stands; None: it has none.
    ``source``: int64 (P,), the row of the table of windows that each pane is, or the pane of ``whole``; -1: none; None
        where there are neither.
    ``matched``: dictionary of strings, by entry of ``membership``: the symbol as which a row pattern takes the row, any
        for rows that no pane shows; None: the kind has none. Then ``membership`` is ranges.
    ``values``: P rows with the aggregates that depend on panes before; None: there are none.
    ``pairs``: the pairs of each pane of a join, which it shows; None: it shows the rows of ``membership``.
    ``turn``: int8 (P,), of a pane caused `BY_TICK` whether it comes before the rows of the instant, 0, or after them,
        2; None: before them.
    ``whole``: the panes of the one window that both sides of a join are in, of which these show pairs; None: there is
        none.
    """

    key: Ints
    number: Ints
    membership: Membership
    cause: Ints
    closed_by: npt.NDArray[np.int8]
    start: pa.Array | None = None
    end: pa.Array | None = None
    at: pa.Array | None = None
    marks_only: MarkOnly | None = None
    outputs: Outputs | None = None
    rejects: ScanRejects | None = None
    left: pa.Array | None = None
    continued: ContinuedWindow | None = None
    source: Ints | None = None
    matched: pa.DictionaryArray | None = None
    values: pa.Table | None = None
    pairs: Pairs | None = None
    turn: npt.NDArray[np.int8] | None = None
    whole: Panes | None = None

    def __len__(self) -> int:
        return len(self.key)

    def take(self, picks: Ints) -> Panes:
        """Return the panes at ``picks``, which must ascend. Their numbers do not change."""
        has_first = bool(len(picks) and picks[0] == 0)
        return self._chosen(picks, lambda array: array.take(pa.array(picks)), take(self.membership, picks), has_first)

    def in_turn(self, turn: Ints, membership: Membership) -> Panes:
        """Return the panes in another order. ``membership``: of them, in that order."""
        return self._chosen(turn, lambda array: array.take(pa.array(turn)), membership, False)

    def part(self, first: int, stop: int) -> Panes:
        """Return the panes ``[first, stop)``, whose membership must be ranges, without copying."""
        members = part(self.membership, first, stop)
        return self._chosen(slice(first, stop), lambda array: array.slice(first, stop - first), members, first == 0)

    def _chosen(self, at: Ints | slice, choose: Callable[[Any], Any], membership: Membership, has_first: bool) -> Panes:
        start, end, when = (None if a is None else choose(a) for a in (self.start, self.end, self.at))
        return replace(
            self,
            key=self.key[at],
            number=self.number[at],
            membership=membership,
            cause=self.cause[at],
            closed_by=self.closed_by[at],
            start=start,
            end=end,
            at=when,
            outputs=self.outputs and Outputs(self.outputs.timing[at], self.outputs.index[at]),
            continued=self.continued if has_first else None,
            source=None if self.source is None else self.source[at],
            values=None if self.values is None else choose(self.values),
            pairs=None if self.pairs is None else self.pairs.chosen(at),
            turn=None if self.turn is None else self.turn[at],
        )


def rows_shown(panes: Panes, rows: int) -> Mask:
    """Return which of ``rows`` rows at least one pane shows, bool (rows,): in its pairs, where it has pairs."""
    pairs = panes.pairs
    if pairs is None:
        return shown(panes.membership, rows)
    out = np.zeros(rows, np.bool_)
    out[pairs.left[pairs.left >= 0]] = True
    # by how many ranges each right row is in: a sum over their ends, whatever their order
    begin, end = (np.bincount(each, minlength=len(pairs.right) + 1) for each in (pairs.lo, pairs.hi))
    out[pairs.right[np.cumsum(begin - end)[:-1] > 0]] = True
    return out
