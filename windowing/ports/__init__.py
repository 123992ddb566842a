"""The ports of the engine: protocols of readers, writers, states and executors, which the engine never imports.

Only plain values cross a port, all of them pickled: readers know nothing of windows, the engine nothing of formats.

Imports `windowing.tables`. Imported by `cli`, `readers`, `windowing.engine`, `windowing.enrichment`,
`windowing.local_executor`, `windowing.planning`, `windowing.projection`, `windowing.spark`, `windowing.streaming`,
`writers`.
"""

from .account import ChunkAccount, Counts, joined_span
from .executor import Broadcast, Executor
from .inputs import (
    OWN,
    REJECT_FIELDS,
    Batch,
    ColumnRange,
    Condition,
    Failures,
    InputFile,
    Source,
    Split,
    StreamInfo,
)
from .outputs import CheckedPart, Part, ResultPart, RowCheck, Sink, StateFiles

__all__ = [
    "OWN",
    "REJECT_FIELDS",
    "Batch",
    "Broadcast",
    "CheckedPart",
    "ChunkAccount",
    "ColumnRange",
    "Condition",
    "Counts",
    "Executor",
    "Failures",
    "InputFile",
    "Part",
    "ResultPart",
    "RowCheck",
    "Sink",
    "Source",
    "Split",
    "StateFiles",
    "StreamInfo",
    "joined_span",
]
