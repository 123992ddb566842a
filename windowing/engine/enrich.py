"""The enrich tables of a run, read before its windows: a small one whole by every task, a large one by an exchange."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, combined, view_of
from ..enrichment.binding import BoundEnrichment
from ..enrichment.key_index import is_key, partitions_of
from ..enrichment.step import Matches, enrichments_of, without_enrichments
from ..enrichment.table import (
    DuplicateKeyError,
    EnrichTable,
    as_seen,
    compared,
    enrich_table,
    last_rows,
    located,
    read_all,
    read_rows,
    store,
    table_of,
    taken_by,
)
from ..ports import Executor, Part, Sink, Source, Split, StateFiles
from ..rows.sequence import take_rows
from .blocks import BlockRef, Fill, Transport, open_blocks, release, through_files, through_shuffle, write_message
from .task import row_width, slice_count

# The exchange of a large enrich table: its rows and those of the input meet by key, before any window runs.
#
# Only keys, order and positions of the input travel. A task matches the rows of its partition and writes the taken
# columns of each split's rows to scratch files, from which the reading of that split takes them later. So the window
# sees the columns as if they were the input's, whatever its own key and order are.


Side: TypeAlias = Literal["input", "table", "before"]
_POS, _HEAD = "__pos", b"enrich"
_FEW = 1 << 16
S = TypeVar("S", bound=Source)


@dataclass(frozen=True, slots=True)
class ExchangedTable:
    """`windowing.enrichment.step.Matches` over what the tasks of an exchange have found. It pickles.

    ``sink``: where the files are.
    ``token``: the beginning of their names, which no other table has.
    ``partitions``: for each split of the input, the partitions that have found something for it.
    """

    bound: BoundEnrichment
    sink: Sink
    token: str
    partitions: tuple[tuple[int, ...], ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return ()  # of the input: its rows are known by their positions

    def values(
        self,
        split: Split,
        rows: pa.Table,  # noqa: ARG002 - as `Matches` has it
        pos: npt.NDArray[np.int64],
        columns: Sequence[str],
        encoded: Sequence[str],
    ) -> list[pa.Array]:
        names = [_POS, *(f"{self.bound.taken.index(name)}" for name in columns)]
        found = [
            pa.Table.from_batches([self.sink.read_scratch(_name(self.token, partition, split.index))]).select(names)
            for partition in self.partitions[split.index]
        ]
        if not found:
            types = [self.bound.fields[self.bound.taken.index(name)].type for name in columns]
            nulls = [pa.nulls(len(pos), kind) for kind in types]
            return [_encoded(column, name in encoded) for name, column in zip(columns, nulls, strict=True)]
        table = pa.concat_tables(found)
        at = combined(table.column(_POS)).to_numpy()
        place, there = _places(pos, at)
        rows_found = np.full(len(pos), -1, np.int64)
        rows_found[place[there]] = there
        taken = [taken_by(combined(table.column(i + 1)), rows_found) for i in range(len(columns))]
        return [_encoded(column, name in encoded) for name, column in zip(columns, taken, strict=True)]


def _places(pos: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    if len(pos) and int(pos[-1]) - int(pos[0]) == len(pos) - 1:  # no row was rejected: no search
        place = wanted - pos[0]
        return place, np.flatnonzero((place >= 0) & (place < len(pos)))
    place = np.searchsorted(pos, wanted)
    is_there = pos.take(place, mode="clip") == wanted if len(pos) else np.zeros(len(wanted), np.bool_)
    return place, np.flatnonzero((place < len(pos)) & is_there)


@dataclass(frozen=True, slots=True)
class _Item:
    """A piece of one side: a split, or a part of what earlier runs have seen; ``index``: its place there."""

    side: Side
    index: int
    piece: Split | Part


@dataclass(frozen=True, slots=True)
class _Pass:
    """What the tasks of an exchange are given.

    ``bound``, ``sink``, ``token``: as in `ExchangedTable`.
    ``source``, ``table``: the two sides.
    ``before``, ``files``: where earlier runs have left the last row of each key, and where this one leaves it.
    """

    bound: BoundEnrichment
    sink: Sink
    token: str
    source: Source
    table: Source
    before: StateFiles | None
    files: StateFiles | None
    count: int


def exchange_table(
    bound: BoundEnrichment,
    source: Source,
    table: Source,
    sink: Sink,
    before: tuple[StateFiles, Sequence[Part]] | None,
    files: StateFiles | None,
    executor: Executor,
    count: int,
) -> tuple[ExchangedTable, tuple[Part, ...]]:
    """Match all rows of ``source`` with those of ``table`` in ``count`` partitions.

    ``before``: the files of the run before, and those of them with rows that it has seen; None without them.
    ``files``: where the last row of each key is left for the next run; None without a state.
    Returns what finds the values, and the files left. Raises as `table_of` and the readers of rows do.
    """
    work = _Pass(bound, sink, f"enrich-{uuid.uuid4().hex}", source, table, before[0] if before else None, files, count)
    items = [_Item("before", i, part) for i, part in enumerate(before[1] if before else ())]
    items += [_Item("table", split.index, split) for split in table.splits]
    items += [_Item("input", split.index, split) for split in source.splits]
    with executor.shared_folders() as folders:
        transport: Transport = partial(through_files, folders) if folders else through_shuffle
        send, receive = partial(_send, work, transport), partial(_receive, work)
        reports = executor.shuffle(f"enrich {bound.enrichment.name}", send, receive, items, count) if items else []
    twice = [report for report in reports if isinstance(report, DuplicateKeyError)]
    if twice:
        raise located(min(twice, key=lambda error: error.positions[1]), table)
    partitions: list[list[int]] = [[] for _ in source.splits]
    for report in reports:
        if isinstance(report, tuple):
            partitions[report[1]].append(report[0])
    found = ExchangedTable(bound, sink, work.token, tuple(map(tuple, partitions)))
    return found, tuple(report for report in reports if isinstance(report, Part))


def _send(work: _Pass, transport: Transport, items: Iterator[_Item]) -> Iterator[tuple[int, BlockRef]]:
    for item in items:
        yield from transport(_blocks(work, item))


def _blocks(work: _Pass, item: _Item) -> Iterator[tuple[int, Fill]]:
    rows, pos = _read(work, item)
    pairs = [(pair.left if item.side == "input" else pair.right, pair) for pair in work.bound.keys]
    keys = [compared(rows.column(name), pair) for name, pair in pairs]
    kept = np.flatnonzero(np.logical_and.reduce([is_key(key) for key in keys]))
    partitions = partitions_of(keys, work.count)[kept]
    if work.count <= _FEW:
        partitions = partitions.astype(np.uint16)  # which numpy sorts by radix
    order = np.argsort(partitions, kind="stable")  # stable: rows of a partition stay in the order of arrival
    bounds = np.concatenate([[0], np.cumsum(np.bincount(partitions, minlength=work.count))])
    picks = kept[order]
    named = [(name, _sent(combined(rows.column(name)), work.count)) for name in rows.column_names]
    columns = [*named, (_POS, pa.array(pos))]
    batch = pa.RecordBatch.from_arrays([column for _, column in columns], names=[name for name, _ in columns])
    batch = take_rows(batch, picks)
    head = {_HEAD: json.dumps([item.side, item.index]).encode()}
    for partition in range(work.count):
        low, high = int(bounds[partition]), int(bounds[partition + 1])
        if low < high:
            yield partition, partial(write_message, batch.slice(low, high - low).replace_schema_metadata(head))


def _read(work: _Pass, item: _Item) -> tuple[pa.Table, Ints]:
    if isinstance(item.piece, Part):
        assert work.before is not None
        schema = pa.schema([work.table.schema.field(name) for name in work.bound.right])
        rows = as_seen(work.bound, work.before.read_part(item.piece), schema)
        return rows, np.full(rows.num_rows, -1, np.int64)
    if item.side == "table":
        return read_rows(work.bound, work.table, item.piece)
    left = work.bound.left
    texts = [name for name in left if pa.types.is_string(work.source.schema.field(name).type)]
    batch = work.source.read(item.piece, left, texts)
    return batch.rows, batch.pos


def _receive(work: _Pass, partition: int, pairs: Iterator[tuple[int, BlockRef]]) -> Iterator[Any]:
    """Match the rows of a partition; yield (partition, split) for each split with a match, and the file left."""
    refs = [ref for _, ref in pairs]
    buffers = open_blocks(refs)
    heads = [pa.ipc.open_stream(pa.BufferReader(data)).schema.metadata[_HEAD] for data in buffers]
    blocks: list[tuple[pa.Buffer, Side, int]] = [
        (data, *json.loads(head)) for data, head in zip(buffers, heads, strict=True)
    ]
    rank = {"before": 0, "table": 1}
    ours = sorted((block for block in blocks if block[1] in rank), key=lambda block: (rank[block[1]], block[2]))
    schema = pa.schema([work.table.schema.field(name) for name in work.bound.right])
    empty = schema.append(pa.field(_POS, pa.int64())).empty_table()
    rows = pa.concat_tables([empty, *(_table(data) for data, _, _ in ours)])
    try:
        table = enrich_table(work.bound, rows.select(schema.names), view_of(combined(rows.column(_POS)), np.int64))
    except DuplicateKeyError as error:
        yield error
        return
    for data, side, index in blocks:
        if side == "input" and _match(work, table, _table(data), _name(work.token, partition, index)):
            yield partition, index
    if work.files is not None:
        name = f"{state_name(work.bound.enrichment.name)}{partition:05d}"
        yield work.files.write_table(name, last_rows(table, rows.select(schema.names)))
    release(refs)


def _match(work: _Pass, table: EnrichTable, rows: pa.Table, name: str) -> bool:
    """Write what rows of the input get; return whether any of them gets something."""
    found = table.match(rows)
    there = np.flatnonzero(found >= 0)
    if not len(there):
        return False
    columns = [column.take(pa.array(found[there])) for column in table.columns]
    pos = combined(rows.column(_POS)).take(pa.array(there))
    names = [_POS, *(f"{i}" for i in range(len(columns)))]
    work.sink.write_scratch(name, pa.RecordBatch.from_arrays([pos, *columns], names=names))
    return True


def state_name(name: str) -> str:
    """Return the beginning of the names of the tables in a state with the rows that were seen last."""
    return f"table-{name}-"


def _table(data: pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(pa.BufferReader(data)).read_all().replace_schema_metadata()


def _name(token: str, partition: int, split: int) -> str:
    return f"{token}-{partition}-{split}"


def _sent(column: pa.Array, blocks: int) -> pa.Array:
    """Return a column as blocks have it: a dictionary goes along with each of them, so it must be small."""
    is_large = pa.types.is_dictionary(column.type) and len(column.dictionary) * blocks > len(column)
    return column.dictionary_decode() if is_large else column


def _encoded(column: pa.Array, is_encoded: bool) -> pa.Array:
    return column.dictionary_encode() if is_encoded else column


SMALL_TABLE = 64 << 20
"""The bytes of needed columns up to which every task reads a table whole."""


@dataclass(frozen=True, slots=True)
class TableState:
    """Where the rows that were seen last are kept from run to run.

    ``before``: the files of the run before; None for the first.
    ``files``: the files for the next run.
    """

    before: StateFiles | None
    files: StateFiles


def load_tables(
    source: S, sink: Sink, executor: Executor, state: TableState | None, slice_bytes: int
) -> tuple[S, tuple[Part, ...]]:
    """Read the tables of a source, one after the other.

    ``sink``: keeps what tasks share until `Sink.drop_scratch`. ``executor``: used only for a table of more than
    `SMALL_TABLE` bytes. ``slice_bytes``: bound on the bytes of a table that one task gets. Returns the source with
    columns that can be read, and what its tables have left in a state; only as-of tables that look back leave rows.
    Raises as `table_of` and the readers of rows do.
    """
    loaded, parts = without_enrichments(source), list[Part]()
    for one in enrichments_of(source):
        bound, table = one.bound, one.table
        name = state_name(bound.enrichment.name)
        before = state.before if state is not None and bound.is_carried else None
        files = state.files if state is not None and bound.is_carried else None
        seen = before.tables(name) if before is not None else ()
        width = row_width(table.schema, table.splits, bound.right)
        nbytes = width * sum(split.rows for split in table.splits) + width * sum(part.rows for part in seen)
        matches: Matches
        if nbytes > SMALL_TABLE:
            count = slice_count(nbytes, slice_bytes, executor.parallelism)
            earlier = (before, seen) if before is not None else None
            matches, left = exchange_table(bound, loaded, table, sink, earlier, files, executor, count)
            parts += left
        else:
            carried = [before.read_part(part) for part in seen] if before is not None else []
            rows, pos = read_all(bound, table, pa.concat_tables(carried) if carried else None)
            found = table_of(bound, table, rows, pos)
            # compiles its kernels
            found.match(pa.schema([loaded.schema.field(left) for left in bound.left]).empty_table())
            parts += [files.write_table(f"{name}00000", last_rows(found, rows))] if files is not None else []
            matches = store(found, sink)
        loaded = loaded.with_steps((*loaded.steps, replace(one, matches=matches)))
    return loaded, tuple(parts)
