"""Windows that are continued: what stands for the rows of a tumbling window that came before the rows of a scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa


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
