"""A small enrich table that every task looks rows up in: written once, mapped or read by each process once."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import combined, view_of
from ..ports import Sink, Split
from .binding import BoundEnrichment
from .key_index import KeyIndex, Words
from .table import EnrichTable, taken_by

_WORDS, _ORDER, _ROW = "words", "__order", "__row"
_PROCESS_KEEPS = 8  # tables; a range runs unit after unit in one process


@dataclass(frozen=True, slots=True)
class StoredTable:
    """`Matches` over an `EnrichTable` in scratch files. It pickles, and a process reads the files once.

    ``token``: the beginning of their names, which no other table has.
    ``bound``: the enrichment.
    ``sink``: where the files are.
    """

    token: str
    bound: BoundEnrichment = field(compare=False)
    sink: Sink = field(compare=False)

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the input that a look-up needs."""
        return self.bound.left

    def values(
        self,
        split: Split,  # noqa: ARG002 - as `Matches` has it
        rows: pa.Table,
        pos: npt.NDArray[np.int64],  # noqa: ARG002
        columns: Sequence[str],
        encoded: Sequence[str],
    ) -> list[pa.Array]:
        """Look rows up, as `Matches.values` says."""
        loaded = _load(self)
        found = loaded.table.match(rows)
        return [taken_by(loaded.column(name, name in encoded), found) for name in columns]


def store(table: EnrichTable, sink: Sink) -> StoredTable:
    """Write a table for the tasks of a run. Raises `OutputError` as the sink does."""
    token = f"enrich-{uuid.uuid4().hex}"
    order = [] if table.order is None else [(_ORDER, pa.array(table.order))]
    columns = [(f"{i}", column) for i, column in enumerate(table.columns)]
    _write(sink, f"{token}-rows", [*columns, (_ROW, pa.array(table.row)), *order])
    _write(sink, f"{token}-starts", [("starts", pa.array(table.starts))])
    for at, known in enumerate([*table.index.columns, *([table.index.tuples] if table.index.tuples else [])]):
        named = (_WORDS, pa.array(known.words)) if isinstance(known, Words) else ("values", known)
        _write(sink, f"{token}-{at}", [named])
    return StoredTable(token, table.bound, sink)


@dataclass(slots=True)
class _Loaded:
    """A table in this process, and those of its columns that were dictionary encoded, by name."""

    table: EnrichTable
    dictionaries: dict[str, pa.Array]

    def column(self, name: str, is_encoded: bool) -> pa.Array:
        column = self.table.columns[self.table.bound.taken.index(name)]
        if not is_encoded:
            return column
        if name not in self.dictionaries:
            self.dictionaries[name] = column.dictionary_encode()
        return self.dictionaries[name]


@lru_cache(maxsize=_PROCESS_KEEPS)
def _load(stored: StoredTable) -> _Loaded:
    sink, token, bound = stored.sink, stored.token, stored.bound
    rows = sink.read_scratch(f"{token}-rows")
    count = len(bound.keys)
    known = [_known(sink.read_scratch(f"{token}-{at}")) for at in range(count + (count > 1))]
    tuples = known[count] if count > 1 else None
    assert tuples is None or isinstance(tuples, Words)
    starts = view_of(sink.read_scratch(f"{token}-starts").column(0), np.int64)
    order = None
    if bound.asof is not None:
        order = view_of(rows.column(_ORDER), rows.column(_ORDER).type.to_pandas_dtype())
    columns = tuple(rows.column(f"{i}") for i in range(len(bound.taken)))
    row = view_of(rows.column(_ROW), np.int64)
    return _Loaded(EnrichTable(bound, KeyIndex(tuple(known[:count]), tuples), starts, order, columns, row), {})


def _known(batch: pa.RecordBatch) -> Words | pa.Array:
    column = batch.column(0)
    return Words.of(view_of(column, np.int64)) if batch.schema.names[0] == _WORDS else column


def _write(sink: Sink, name: str, columns: Sequence[tuple[str, pa.Array]]) -> None:
    arrays = [combined(column) for _, column in columns]
    sink.write_scratch(name, pa.RecordBatch.from_arrays(arrays, names=[each for each, _ in columns]))
