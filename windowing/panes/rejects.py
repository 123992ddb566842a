"""Rows that a scan rejects: only the order of rows, or a window, shows that no window can take them (section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints


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
        """How many rows have each reason."""
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
