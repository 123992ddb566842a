"""An enrich table in memory, sorted by key and order, and the search for the row that a row of the input gets."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, Mask, Measures, combined, measures, view_of
from ..errors import DataError, InputError
from ..ports import Sink, Source, Split
from ..rows.sequence import arrange, bounds_of
from .binding import BoundEnrichment, ComparedPair
from .key_index import KeyIndex, Words, index_keys, is_key, neighbours


@dataclass(frozen=True, slots=True)
class EnrichTable:
    """The rows of an enrich table that can match, sorted by key, order and arrival.

    ``index``: the distinct keys.
    ``starts``: int64 (keys + 1,), where the rows of each key begin.
    ``order``: int64 ticks or float64 (rows,); None for a plain lookup.
    ``columns``: the taken columns (rows,), in the order of ``bound.taken``.
    ``row``: int64 (rows,), the place of each row in the table as it was read.
    """

    bound: BoundEnrichment
    index: KeyIndex
    starts: Ints
    order: Measures | None
    columns: tuple[pa.Array, ...]
    row: Ints

    def match(self, rows: pa.Table) -> Ints:
        """Return, for each row of the input, the row of this table that it gets, -1 for none: int64 (n,).

        ``rows``: a table with the columns ``bound.left``.
        """
        keys = [compared(rows.column(pair.left), pair) for pair in self.bound.keys]
        codes = self.index.codes(keys)
        if self.bound.order is None:
            return codes
        assert self.order is not None
        column = compared(rows.column(self.bound.order.left), self.bound.order)
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        at = order_values(column)
        sides = [
            neighbours(codes, at, self.starts, self.order, self.bound.strict, is_after)
            for is_after, without in ((False, "forward"), (True, "backward"))
            if self.bound.direction != without
        ]
        found = sides[0] if len(sides) == 1 else _nearer(sides[0], sides[1], at, self.order)
        if self.bound.within is not None:
            found[_is_too_far(found, at, self.order, self.bound.within)] = -1
        return found


def enrich_table(bound: BoundEnrichment, rows: pa.Table, pos: Ints) -> EnrichTable:
    """Sort the rows of an enrich table. Rows with a null or NaN in a key or in the order match nothing: left out.

    ``rows``: the columns ``bound.right``, in arrival order. ``pos``: their arrival positions, int64 (n,).
    Raises `DuplicateKeyError` where a plain lookup has a key twice.
    """
    parts = [compared(rows.column(pair.right), pair) for pair in bound.compared]
    row = np.flatnonzero(np.logical_and.reduce([is_key(part) for part in parts]))
    if len(row) < rows.num_rows:
        parts = [part.take(pa.array(row)) for part in parts]
    index, codes = index_keys(parts[: len(bound.keys)])
    starts = bounds_of(codes.astype(np.int32), index.size)
    permutation = arrange(codes.astype(np.int32), starts, parts[len(bound.keys) :])
    if permutation is not None:
        parts, row = [part.take(pa.array(permutation)) for part in parts], row[permutation]
    twice = np.flatnonzero(np.diff(starts) > 1)
    if bound.order is None and len(twice):
        arrived, firsts = pos[row], starts[twice]
        at = int(firsts[np.argmin(arrived[firsts + 1])])  # the one that a reader of the files finds first
        values = [part.slice(at, 1) for part in parts]
        plain = [each.cast(pa.string()) if pa.types.is_temporal(each.type) else each for each in values]
        key = ", ".join(repr(each[0].as_py()) for each in plain)
        raise DuplicateKeyError(f"--enrich {bound.enrichment.name}", key, (int(arrived[at]), int(arrived[at + 1])))
    order = order_values(parts[-1]) if bound.order is not None else None
    columns = tuple(combined(rows.column(name)).take(pa.array(row)) for name in bound.taken)
    starts.flags.writeable = False
    return EnrichTable(bound, index, starts, order, columns, row)


def last_rows(table: EnrichTable, rows: pa.Table) -> pa.Table:
    """Return the last row of each key, of the ``rows`` that a table was made of."""
    return rows.take(pa.array(table.row[table.starts[1:] - 1]))


class DuplicateKeyError(DataError):
    """A key that two rows of a lookup table have.

    ``positions``: the arrival positions of the two rows.
    """

    def __init__(self, who: str, key: str, positions: tuple[int, int]) -> None:
        super().__init__(f"{who}: key {key} is there twice", "keep one row for each key, or say asof and an order")
        self._arguments = (who, key, positions)
        self.positions = positions

    def __reduce__(self) -> tuple[type[DuplicateKeyError], tuple[str, str, tuple[int, int]]]:
        return DuplicateKeyError, self._arguments


def compared(column: pa.ChunkedArray | pa.Array, pair: ComparedPair) -> pa.Array:
    """Return a column in the type in which it is compared; dictionary encoded text stays so.

    Raises `DataError` for a value that this type does not hold.
    """
    array = combined(column)
    if pa.types.is_dictionary(array.type):
        if pa.types.is_large_string(pair.type) or array.type.value_type == pair.type:
            return array
        array = array.dictionary_decode()
    if array.type == pair.type or (pa.types.is_string(array.type) and pa.types.is_large_string(pair.type)):
        return array if array.type == pair.type else array.cast(pair.type)
    try:
        return array.cast(pair.type)
    except pa.ArrowInvalid as error:
        what = f"--enrich: a value of {pair.left!r} or {pair.right!r} does not fit {pair.type}: {error}"
        raise DataError(what, "give both columns one type before") from error


def order_values(column: pa.Array) -> Measures:
    """Return order values as int64 ticks or float64 (n,), read-only; those of nulls are arbitrary."""
    values = measures(column)
    values = np.asarray(values, np.float64 if values.dtype.kind == "f" else np.int64)
    values.flags.writeable = False
    return values


def _nearer(before: Ints, after: Ints, at: Measures, order: Measures) -> Ints:
    """Return the nearer one of two matches of each row, the one before of equally far ones, int64 (n,)."""
    if not len(order):
        return before
    is_after = _distances(after, at, order) < _distances(before, at, order)
    return np.where((before < 0) | ((after >= 0) & is_after), after, before)


def _is_too_far(found: Ints, at: Measures, order: Measures, within: int | float) -> Mask:
    """Return which matches are further away than the tolerance, bool (n,); arbitrary where there is no match."""
    if not len(order):
        return np.zeros(len(found), np.bool_)
    return np.asarray(
        _distances(found, at, order) > (within if order.dtype.kind == "f" else np.uint64(within)), np.bool_
    )


def _distances(found: Ints, at: Measures, order: Measures) -> npt.NDArray[Any]:
    """Return how far each match is from its row, float64 or uint64 (n,); arbitrary where there is no match."""
    there = order[found]
    if order.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # an infinite time less itself
            return np.abs(at - there)
    # As unsigned numbers: the distance of two int64 may need 64 bits.
    near, far = np.minimum(at, there).view(np.uint64), np.maximum(at, there).view(np.uint64)
    return np.asarray(far - near)


def taken_by(column: pa.Array, found: Ints) -> pa.Array:
    """Return the values of a column at the rows that were found, null at -1: (n,)."""
    return column.take(pa.array(found, mask=found < 0))


# The rows of an enrich table, read whole or split by split; a row that cannot be read is an error, never a gap.


class Needed(Protocol):
    """What says which columns of a table are read, ``right``, and for which option, ``who``."""

    @property
    def who(self) -> str: ...

    @property
    def right(self) -> tuple[str, ...]: ...


def read_rows(bound: Needed, source: Source, split: Split) -> tuple[pa.Table, Ints]:
    """Read the columns of a table that are needed, and the arrival positions, from one split.

    Raises `InputError` naming the first row that cannot be read.
    """
    batch = source.read(split, bound.right)
    if batch.rejects is not None and batch.rejects.num_rows:
        bad: dict[str, Any] = batch.rejects.slice(0, 1).to_pylist()[0]
        why = bad["_detail"] or bad["_reason"]
        what = f"{bound.who}: row {bad['_row']} of {bad['_file']} cannot be read: {why}"
        raise InputError(what, "correct it, for rows that look something up there would silently get nothing")
    return batch.rows, batch.pos


def read_all(bound: Needed, source: Source, before: pa.Table | None) -> tuple[pa.Table, Ints]:
    """Read a whole table: its rows, and their arrival positions, int64 (n,).

    ``before``: rows that earlier runs have seen, which come before all others, at -1; or None. Raises as `read_rows`.
    """
    schema = pa.schema([source.schema.field(name) for name in bound.right])
    found = [read_rows(bound, source, split) for split in source.splits]
    if before is not None:
        found.insert(0, (as_seen(bound, before, schema), np.full(before.num_rows, -1, np.int64)))
    rows = pa.concat_tables([schema.empty_table(), *(rows for rows, _ in found)])
    return rows, np.concatenate([np.empty(0, np.int64), *(pos for _, pos in found)])


def as_seen(bound: Needed, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows that earlier runs have seen in the types of now. Raises `DataError` where these cannot hold them."""
    try:
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as error:
        what = f"{bound.who}: its table has other columns or types than in the run before: {error}"
        raise DataError(
            what, "give the columns of the table the types that they had, as --schema does for text"
        ) from error


def table_of(bound: BoundEnrichment, source: Source, rows: pa.Table, pos: Ints) -> EnrichTable:
    """Sort what `read_all` has read. Raises `DataError` for a key that a lookup table has twice, with both places."""
    try:
        return enrich_table(bound, rows, pos)
    except DuplicateKeyError as error:
        raise located(error, source) from None


def located(error: DuplicateKeyError, source: Source) -> DataError:
    """Return the error of a key that is there twice with the places of both rows."""
    places = [f"{path} (row {line})" for path, line in (place_of(source, each) for each in error.positions)]
    return DataError(f"{error.what}: in {places[0]} and in {places[1]}", error.do)


def place_of(source: Source, position: int) -> tuple[str, int]:
    """Return the file and the number of the row at an arrival position."""
    splits: Sequence[Split] = source.splits
    split = splits[bisect_right([each.base for each in splits], position) - 1]
    return source.files[split.file].path, int(source.line_numbers(split, np.array([position]))[0])


# A small enrich table that every task looks rows up in: written once, mapped or read by each process once.


_WORDS, _ORDER, _ROW = "words", "__order", "__row"
_PROCESS_KEEPS = 8  # tables; a range runs unit after unit in one process


@dataclass(frozen=True, slots=True)
class StoredTable:
    """`Matches` over an `EnrichTable` in scratch files. It pickles, and a process reads the files once.

    ``token``: the beginning of their names, which no other table has.
    ``sink``: where the files are.
    """

    token: str
    bound: BoundEnrichment = field(compare=False)
    sink: Sink = field(compare=False)

    @property
    def needs(self) -> tuple[str, ...]:
        return self.bound.left

    def values(
        self,
        split: Split,  # noqa: ARG002 - as `Matches` has it
        rows: pa.Table,
        pos: npt.NDArray[np.int64],  # noqa: ARG002
        columns: Sequence[str],
        encoded: Sequence[str],
    ) -> list[pa.Array]:
        table, dictionaries = _load(self)
        found = table.match(rows)
        values = []
        for name in columns:
            column = table.columns[self.bound.taken.index(name)]
            if name in encoded:
                if name not in dictionaries:
                    dictionaries[name] = column.dictionary_encode()
                column = dictionaries[name]
            values.append(taken_by(column, found))
        return values


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


@lru_cache(maxsize=_PROCESS_KEEPS)
def _load(stored: StoredTable) -> tuple[EnrichTable, dict[str, pa.Array]]:
    """Return a table in this process, and where those of its columns are kept that are asked for as dictionaries."""
    sink, token, bound = stored.sink, stored.token, stored.bound
    rows = sink.read_scratch(f"{token}-rows")
    count = len(bound.keys)
    known: list[Words | pa.Array] = []
    for at in range(count + (count > 1)):
        batch = sink.read_scratch(f"{token}-{at}")
        column = batch.column(0)
        known.append(Words.of(view_of(column, np.int64)) if batch.schema.names[0] == _WORDS else column)
    tuples = known[count] if count > 1 else None
    assert tuples is None or isinstance(tuples, Words)
    starts = view_of(sink.read_scratch(f"{token}-starts").column(0), np.int64)
    order = None
    if bound.order is not None:
        order = view_of(rows.column(_ORDER), rows.column(_ORDER).type.to_pandas_dtype())
    columns = tuple(rows.column(f"{i}") for i in range(len(bound.taken)))
    row = view_of(rows.column(_ROW), np.int64)
    return EnrichTable(bound, KeyIndex(tuple(known[:count]), tuples), starts, order, columns, row), {}


def _write(sink: Sink, name: str, columns: Sequence[tuple[str, pa.Array]]) -> None:
    arrays = [combined(column) for _, column in columns]
    sink.write_scratch(name, pa.RecordBatch.from_arrays(arrays, names=[each for each, _ in columns]))
