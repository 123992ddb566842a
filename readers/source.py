"""The input as one source: reads a split of any file in the columns and types of one common schema."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..windowing.columns.sort_keys import sorts_before
from ..windowing.errors import InputError, did_you_mean
from ..windowing.ports import Batch, Condition, InputFile, Source, Split, StreamInfo
from ..windowing.rows.projection import ProjectionSource, RowExpressions, make_projection
from ..windowing.rows.sequence import one_batch
from ..windowing.support.value_table import value_table
from .files.file import Located, check_all
from .formats.split_rows import FormatReader, ReadRequest, SplitRows, first_of, rejects_table
from .values.casts import convert
from .values.types import ColumnType, Mask, is_text, unify

_NUMBER = r"^\s*([-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|NaN|inf|Infinity))\s*$"
_TIME = r"^\s*\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?)?\s*$"
_ZONED = r"^\s*\d{4}-\d\d-\d\d[T ]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?(Z|[-+]\d\d(:?\d\d)?)\s*$"
_EMPTY, _OTHER, _IS_NUMBER, _IS_TIME, _IS_ZONED = range(5)
_HEAD = 1 << 20  # bytes at the beginning of a file, by which its first values are known


@dataclass(frozen=True, slots=True)
class FileSource:
    """A `windowing.ports.Source` over files of one format.

    ``schema``: the columns of the input, with one type each.
    ``files``: the files in arrival order, as the manifest lists them.
    ``splits``: the splits of all files, in arrival order.
    ``stream``: how a result of wincli is read back as a stream; None for other inputs.
    ``reader``: the reader of the file format.
    ``places``: where each file is, by file index.
    ``layouts``: the names of the columns of each file, by file index.
    ``constants``: the columns whose value comes from the folder of a file: by column, one value for each file.
    ``formats``: the timestamp format of columns that are declared with one, by column.
    ``text_at``: the index of the split whose values made the type of a column string, by column.
    ``names``: the name of each file relative to the path that the user gave, by file index.
    ``skipped``: the unreadable paths that were skipped, each with its reason.
    ``type_places``: by column, the file, or what else it is, that made its type what it is, for messages.
    ``is_cut``: whether the input has more rows than are read.
    ``whole``: the last split as the reader knows it, where only its first rows are read; else None.
    """

    schema: pa.Schema
    files: Sequence[InputFile]
    splits: Sequence[Split]
    stream: StreamInfo | None
    reader: FormatReader
    places: Sequence[Located]
    layouts: Sequence[tuple[str, ...]]
    constants: Mapping[str, pa.Array]
    formats: Mapping[str, str | None]
    text_at: Mapping[str, int]
    names: Sequence[str] = ()
    skipped: tuple[str, ...] = ()
    type_places: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False
    whole: Split | None = None

    @property
    def columnar(self) -> bool:
        return self.reader.columnar

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read ``columns`` of one split, and its rejects.

        Text columns that are also in ``dictionary`` are dictionary encoded with int32 codes. A columnar format that
        stores such a column plain, because few values repeat, leaves it plain.
        Raises `InputError` naming the file where it cannot be read, and for an unknown column.
        """
        self._check(columns)
        layout = self.layouts[split.file]
        want = {name: self._type(name) for name in columns if name in layout and name not in self.constants}
        encoded = [name for name in dictionary if name in columns and is_text(self.schema.field(name).type)]
        own = self._as_read(split)
        found = self.reader.read(self.places[split.file], own, ReadRequest(layout, want, tuple(encoded)))
        if own is not split:
            found = first_of(found, split.rows)
        table = self._shaped(found, columns, split.file, encoded)
        rejects = rejects_table(self.files[split.file].path, found.rejects)
        pos = found.offsets
        pos += split.base  # in place: nothing else refers to this new array
        return Batch(table, pos, rejects)

    def check_unchanged(self) -> None:
        """Raise `InputError` naming a file that has changed since it was listed."""
        check_all(self.places)

    def parts_of(self, split: Split) -> Sequence[Split]:
        return [split] if self._is_cut(split) else self.reader.parts_of(self.places[split.file], split)

    def pieces_of(self, split: Split, nbytes: int) -> Iterable[Split]:
        """Return splits that a split is made of, in order: of text of about ``nbytes`` bytes, else as `parts_of` does.

        Those of text are found when they are asked for, which may raise `InputError`.
        """
        return [split] if self._is_cut(split) else self.reader.pieces_of(self.places[split.file], split, nbytes)

    def looks_of(self, split: Split) -> Sequence[Split]:
        """Return small parts that stand for a split, in order; of text their positions are estimates."""
        return [split] if self._is_cut(split) else self.reader.looks_of(self.places[split.file], split)

    def is_local(self, split: Split) -> bool:
        return self.places[split.file].is_local

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return where rows of a split are in their file: 1-based lines (text formats) or rows (Parquet).

        ``pos``: arrival positions, int64 (N,). The result has the same shape.
        """
        offsets, back = np.unique(np.asarray(pos, np.int64) - split.base, return_inverse=True)
        lines = self.reader.lines(self.places[split.file], self._as_read(split), offsets)
        return lines[back]

    def parts_with(self, split: Split, condition: Condition) -> Sequence[Split]:
        if self._is_cut(split):
            return [split]
        types = {name: self.schema.field(name).type for name in condition.columns if name not in self.constants}
        return self.reader.parts_with(self.places[split.file], split, condition, types)

    def file_name(self, split: Split) -> str:
        return self.names[split.file]

    def explain_type(self, column: str) -> str | None:
        """Say which value made a column's type string, as ``in/x.csv has '-' at line 17``; None if no value did."""
        if column not in self.text_at:
            return None
        split = self.splits[self.text_at[column]]
        batch = self.read(split, [column])
        sorts = _sorts(batch.rows[column])
        odd = sorts == _OTHER
        if not odd.any():
            first = self._first_sort(split.file, column)
            odd = (sorts != _EMPTY) & (sorts != first)
        if not odd.any():
            return None
        at = int(odd.argmax())
        line = int(self.line_numbers(split, batch.pos[at : at + 1])[0])
        return f"{self.files[split.file].path} has {batch.rows[column][at].as_py()!r} at line {line}"

    def _first_sort(self, file: int, column: str) -> int:
        pieces = (part for split in self.splits if split.file == file for part in self.pieces_of(split, _HEAD))
        found = (_sorts(self.read(part, [column]).rows[column]) for part in pieces if part.rows)
        return next((int(sorts[sorts != _EMPTY][0]) for sorts in found if (sorts != _EMPTY).any()), _EMPTY)

    def _is_cut(self, split: Split) -> bool:
        return self.whole is not None and split.index == self.whole.index

    def _as_read(self, split: Split) -> Split:
        return self.whole if self.whole is not None and split.index == self.whole.index else split

    def _check(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name not in self.schema.names:
                raise InputError(f"no file has a column {name!r}", did_you_mean(name, self.schema.names))

    def _type(self, name: str) -> ColumnType:
        return ColumnType(self.schema.field(name).type, self.formats.get(name))

    def _shaped(self, found: SplitRows, columns: Sequence[str], file: int, encoded: Sequence[str]) -> pa.Table:
        """Return the columns in the given order; columns that the file lacks are constants of its folder, or null."""
        rows = len(found.offsets)
        shaped = []
        for name in columns:
            kind = self.schema.field(name).type
            if name in self.constants:
                value = self.constants[name][file].as_py()
                column = pa.chunked_array([pa.repeat(pa.scalar(value, kind), rows)])
            elif name in found.table.column_names:
                column = found.table[name]
            else:
                column = pa.chunked_array([pa.nulls(rows, kind)])
            knows = self.columnar and name in found.table.column_names  # the reader has already decided on a dictionary
            is_left = name not in encoded or (knows and not pa.types.is_dictionary(column.type))
            shaped.append(column if is_left else _encoded(column, kind))
        return pa.table(shaped, names=list(columns))


def _sorts(texts: pa.ChunkedArray) -> npt.NDArray[np.int8]:
    """Return of what sort texts are, by which inference gives a column its type: int8 (N,), `_OTHER` for plain texts.

    A text that is written like a time and is none, such as ``2026-02-30``, is a plain text.
    """
    filled = pc.fill_null(texts, "")
    sorts = np.where(np.array(pc.equal(filled, "")), _EMPTY, _OTHER).astype(np.int8)
    sorts[np.array(pc.match_substring_regex(filled, _NUMBER))] = _IS_NUMBER
    for sort, pattern, kind in ((_IS_TIME, _TIME, pa.timestamp("us")), (_IS_ZONED, _ZONED, pa.timestamp("us", "UTC"))):
        like = pc.if_else(pc.match_substring_regex(filled, pattern), pc.utf8_trim_whitespace(filled), None)
        times, bad = convert(pc.replace_substring_regex(like, r"(\.\d{6})\d+", r"\1"), ColumnType(kind))
        sorts[np.array(times.is_valid()) if bad is None else np.array(times.is_valid()) & ~bad] = sort
    return sorts


def _encoded(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    wanted = pa.dictionary(pa.int32(), kind)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.type != wanted:
        column = column.cast(wanted)
    return column.unify_dictionaries()


# Merge ranges of several inputs into one source: late rows of a later input beside the rows of an earlier one.
#
# A `SourceRange` is a half-open range of order values, so adjacent ranges of one input hold each of its rows exactly
# once. Rows keep the arrival positions of their own input, plus a constant shift for each range.


def columns_of_folders(source: Source) -> frozenset[str]:
    """Return the columns of an input whose values are in names of folders, such as ``dt=2026-11-01``."""
    if isinstance(source, MergedSource):
        return frozenset().union(*(columns_of_folders(each.source) for each in source.ranges))
    return frozenset(source.constants) if isinstance(source, FileSource) else frozenset()


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The rows of one source whose order values are in ``[after, before)``.

    ``source``: the input that holds the rows.
    ``shift``: the number that is added to all arrival positions.
    ``after``: the inclusive lower bound, one row of order columns; None for no bound.
    ``before``: the exclusive upper bound, one row of order columns; None for no bound. Only a range without this bound
        holds the rows that have no place in the order, and the rejects.
    ``expressions``: the expressions over rows of the job: order columns may be among their columns.
    """

    source: FileSource
    shift: int = 0
    after: pa.Table | None = None
    before: pa.Table | None = None
    expressions: RowExpressions = RowExpressions()  # noqa: RUF009 - frozen

    def read_order(self, split: Split, order: Sequence[str]) -> pa.Table:
        """Read the order columns of a split, whether the files have them or expressions compute them."""
        return with_expressions(self.source, self.expressions, order).read(split, order).rows


@dataclass(frozen=True, slots=True)
class MergedSource:
    """A `windowing.ports.Source` over several `SourceRange`; `merge` makes it.

    ``schema``: the unified columns of all ranges.
    ``files``: the files of all ranges, range after range.
    ``splits``: the splits of all ranges. ``rows`` of a split counts all rows in the file; `read` returns only those of
        the range.
    ``ranges``: the ranges, in the order of their shifts.
    ``stream``: always None: a merged source is never read as a result stream.
    ``is_cut``: always False: all rows of its ranges are read.
    """

    schema: pa.Schema
    files: Sequence[InputFile]
    splits: Sequence[Split]
    ranges: tuple[SourceRange, ...]
    stream: None = None
    is_cut: bool = False

    @property
    def columnar(self) -> bool:
        return all(source_range.source.columnar for source_range in self.ranges)

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read ``columns`` of the rows of one split that are in its range, as `FileSource.read` does.

        The batch counts the rows of the split that are outside the range.
        """
        source_range, own = self._origin(split)
        bounds = [bound for bound in (source_range.after, source_range.before) if bound is not None]
        if not bounds:
            return source_range.source.read(own, columns, dictionary)
        order = bounds[0].column_names
        is_stored = all(name in source_range.source.schema.names for name in order)
        names = list(dict.fromkeys([*columns, *order])) if is_stored else columns
        batch = source_range.source.read(own, names, dictionary)
        places = batch.rows.select(order) if is_stored else source_range.read_order(own, order)
        kept = _in_range(source_range, places)
        rows = batch.rows.select(list(columns)).filter(pa.array(kept))
        elsewhere = len(kept) - rows.num_rows
        if source_range.before is None or batch.rejects is None:
            return Batch(rows, batch.pos[kept], batch.rejects, elsewhere)
        return Batch(rows, batch.pos[kept], None, elsewhere + batch.rejects.num_rows)

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for source_range in self.ranges for text in source_range.source.skipped))

    def check_unchanged(self) -> None:
        """Raise `InputError` naming a file that has changed since it was listed."""
        for source_range in self.ranges:
            source_range.source.check_unchanged()

    def parts_of(self, split: Split) -> Sequence[Split]:
        return [split]

    def looks_of(self, split: Split) -> Sequence[Split]:
        return [split]

    def is_local(self, split: Split) -> bool:
        source_range, own = self._origin(split)
        return source_range.source.is_local(own)

    def parts_with(self, split: Split, condition: Condition) -> Sequence[Split]:  # noqa: ARG002
        """Return the split: its rows are divided between units, and each must be counted."""
        return [split]

    def file_name(self, split: Split) -> str:
        source_range, own = self._origin(split)
        return source_range.source.file_name(own)

    def explain_type(self, column: str) -> str | None:
        """Say which value made the type of a column string; None where no value did."""
        explanations = (source_range.source.explain_type(column) for source_range in self.ranges)
        return next((text for text in explanations if text is not None), None)

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return where rows of a split are in their file: 1-based lines (text formats) or rows (Parquet).

        ``pos``: arrival positions, int64 (N,). The result has the same shape.
        """
        source_range, own = self._origin(split)
        return source_range.source.line_numbers(own, pos)

    def _origin(self, split: Split) -> tuple[SourceRange, Split]:
        """Return the range that a split belongs to, and the split with the file index of that range's source.

        Arrival positions stay those of the merged source.
        """
        firsts = [0, *accumulate(len(source_range.source.files) for source_range in self.ranges[:-1])]
        which = bisect_right(firsts, split.file) - 1
        return self.ranges[which], replace(split, file=split.file - firsts[which])


def merge(ranges: Sequence[SourceRange]) -> MergedSource:
    """Concatenate ranges, whose shifts must ascend, into one source.

    Raises `InputError` where a column has types that no common type can hold.
    """
    named = [(source_range.source.files[0].path, source_range.source.schema) for source_range in ranges]
    schema = unify(named, {}).schema
    splits: list[Split] = []
    first = 0
    for source_range in ranges:
        for split in source_range.source.splits:
            moved = replace(split, index=len(splits), file=split.file + first, base=split.base + source_range.shift)
            splits.append(moved)
        first += len(source_range.source.files)
    typed = tuple(replace(source_range, source=replace(source_range.source, schema=schema)) for source_range in ranges)
    return MergedSource(
        schema,
        value_table(InputFile, (file for each in typed for file in each.source.files)),
        value_table(Split, splits),
        typed,
    )


def with_expressions(source: FileSource, expressions: RowExpressions, names: Sequence[str]) -> ProjectionSource:
    """Return a source that has the columns ``names``, which may be among those of expressions, and their condition."""
    return ProjectionSource(source, make_projection(source.schema, expressions, names=names))


def count_before(source: Source, bounds: Sequence[pa.Table], split: Split) -> list[int]:
    """Count the rows of a split that sort before each bound; those that a condition leaves out do not count.

    ``bounds``: ascending, one row of order columns each.
    """
    batch = source.read(split, bounds[0].column_names)
    rows = one_batch(batch.rows if batch.kept is None else batch.rows.filter(pa.array(batch.kept)))
    counts = []
    # From the largest bound down: the rows before a bound contain the rows before each smaller one.
    for bound in reversed(bounds):
        rows = rows.filter(pa.array(sorts_before(rows, bound)))
        counts.append(rows.num_rows)
    return counts[::-1]


def _in_range(source_range: SourceRange, order: pa.Table) -> Mask:
    rows = one_batch(pa.table([_plain(column) for column in order.columns], names=order.column_names))
    kept: Mask = np.ones(rows.num_rows, np.bool_)
    if source_range.after is not None:
        kept &= ~sorts_before(rows, source_range.after)
    if source_range.before is not None:
        kept &= sorts_before(rows, source_range.before)
    return kept


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
