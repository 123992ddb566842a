"""The input as one source: reads a split of any file in the columns and types of one common schema, through steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..windowing.errors import InputError, did_you_mean
from ..windowing.language.enrichment import WindowsFrom
from ..windowing.ports import Batch, Condition, InputFile, Split, Step, StreamInfo
from ..windowing.support.value_table import SharedValues, value_table
from .files.file import Located, check_all
from .formats.split_rows import FormatReader, ReadRequest, SplitRows, rejects_table
from .values.casts import convert
from .values.types import ColumnType, is_text

_NUMBER = r"^\s*([-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|NaN|inf|Infinity))\s*$"
_TIME = r"^\s*\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?)?\s*$"
_ZONED = r"^\s*\d{4}-\d\d-\d\d[T ]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?(Z|[-+]\d\d(:?\d\d)?)\s*$"
_EMPTY, _OTHER, _IS_NUMBER, _IS_TIME, _IS_ZONED = range(5)
_HEAD = 1 << 20  # bytes at the beginning of a file, by which its first values are known


@dataclass(frozen=True, slots=True)
class FileKind:
    """What files of an input have in common; most inputs have one kind.

    ``names``: the names of their columns, in their order.
    ``formats``: the timestamp format of columns that are declared with one, by column.
    ``of_folders``: the columns whose value comes from the folder of the file.
    ``stored``: the names in the files, by column, where these are others; no other column is there.
    """

    reader: FormatReader
    names: tuple[str, ...]
    formats: Mapping[str, str | None]
    of_folders: frozenset[str]
    stored: Mapping[str, str] | None = None

    def own(self, columns: Iterable[str]) -> dict[str, str]:
        """Return those columns that the files have, each with its name there."""
        own = {name: name for name in columns} if self.stored is None else self.stored
        return {name: own[name] for name in columns if own.get(name) in self.names and name not in self.of_folders}


class WindowSource(NamedTuple):
    """A table of windows that a job reads beside its input."""

    request: WindowsFrom
    table: FileSource


@dataclass(frozen=True, slots=True)
class FileSource:
    """A `windowing.ports.Source`: files, each with its reader, and the steps that their rows go through.

    ``stored``: the columns of the files, with one type each.
    ``files``: the files in arrival order, as the manifest lists them.
    ``splits``: the splits of all files, in arrival order.
    ``stream``: how a result of wincli is read back as a stream; None for other inputs.
    ``kinds``: of what kind each file is, by file index.
    ``places``: where each file is, by file index.
    ``constants``: the columns whose value comes from the folder of a file: by column, one value for each file.
    ``text_at``: the index of the split whose values made the type of a column string, by column.
    ``names``: the name of each file relative to the path that the user gave, by file index.
    ``skipped``: the unreadable paths that were skipped, each with its reason.
    ``type_places``: by column, the file, or what else it is, that made its type what it is, for messages.
    ``is_cut``: whether the input has more rows than are read.
    ``windows``: the tables of windows that the job reads beside it.
    ``rights``: the right sides of joins, by the name of the join; rows of that of the first stage are among its own.
    ``whole``: the last split as the reader knows it, where only its first rows are read; else None.
    ``shift``, ``steps``, ``schema``: as `windowing.ports.Source` has them.
    """

    stored: pa.Schema
    files: Sequence[InputFile]
    splits: Sequence[Split]
    stream: StreamInfo | None
    kinds: SharedValues
    places: Sequence[Located]
    constants: Mapping[str, pa.Array]
    text_at: Mapping[str, int]
    names: Sequence[str] = ()
    skipped: tuple[str, ...] = ()
    type_places: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False
    whole: Split | None = None
    windows: tuple[WindowSource, ...] = ()
    rights: Mapping[str, FileSource] = field(default_factory=dict)
    shift: int = 0
    steps: tuple[Step, ...] = ()
    schema: pa.Schema = field(init=False)  # folded once: it is asked for at each reading of a split

    def __post_init__(self) -> None:
        schema = reduce(lambda before, step: step.schema_after(before), self.steps, self.stored)
        object.__setattr__(self, "schema", schema)

    @property
    def columnar(self) -> bool:
        return all(kind.reader.columnar for kind in self.kinds.distinct)

    def with_steps(self, steps: Iterable[Step]) -> FileSource:
        return replace(self, steps=tuple(steps))

    def moved(self, by: int) -> FileSource:
        splits = value_table(Split, (replace(split, base=split.base + by) for split in self.splits))
        return replace(self, splits=splits, shift=self.shift + by)

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read ``columns`` of one split, and its rejects: from its file, through the steps.

        Text columns that are also in ``dictionary`` are dictionary encoded with int32 codes. A columnar format that
        stores such a column plain, because few values repeat, leaves it plain.
        Raises `InputError` naming the file where it cannot be read, and for an unknown column.
        """
        if not self.steps:
            return self._read_file(split, columns, dictionary)
        *before, last = self.steps
        return last.read(self.with_steps(before), split, columns, dictionary)

    def _read_file(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        for name in columns:
            if name not in self.stored.names:
                raise InputError(f"no file has a column {name!r}", did_you_mean(name, self.stored.names))
        kind = self.kinds[split.file]
        there = kind.own(columns)
        want = {own: ColumnType(self.stored.field(name).type, kind.formats.get(own)) for name, own in there.items()}
        encoded = [name for name in dictionary if name in columns and is_text(self.stored.field(name).type)]
        request = ReadRequest(kind.names, want, tuple(there.get(name, name) for name in encoded))
        own = self._as_read(split)
        found = kind.reader.read(self.places[split.file], own, request)
        if kind.stored is not None:
            names = {own: name for name, own in there.items()}
            found = replace(found, table=found.table.rename_columns([names[own] for own in found.table.column_names]))
        if own is not split:  # only its first rows are of the input
            count = int(np.searchsorted(found.offsets, split.rows))
            rejects = tuple(each for each in found.rejects if each.offset < split.rows)
            found = SplitRows(found.table.slice(0, count), found.offsets[:count], rejects)
        table = self._shaped(found, columns, split.file, encoded)
        pos = found.offsets
        pos += split.base  # in place: nothing else refers to this new array
        return Batch(table, pos, rejects_table(self.files[split.file].path, found.rejects))

    def check_unchanged(self) -> None:
        """Raise `InputError` naming a file that has changed since it was listed."""
        check_all(self.places)

    def parts_of(self, split: Split) -> Sequence[Split]:
        return [split] if self._is_cut(split) else self._reader(split).parts_of(self.places[split.file], split)

    def pieces_of(self, split: Split, nbytes: int) -> Iterable[Split]:
        """Return splits that a split is made of, in order: of text of about ``nbytes`` bytes, else as `parts_of` does.

        Those of text are found when they are asked for, which may raise `InputError`.
        """
        return [split] if self._is_cut(split) else self._reader(split).pieces_of(self.places[split.file], split, nbytes)

    def looks_of(self, split: Split) -> Sequence[Split]:
        enough = ("all", "columnar") if self.columnar else ("all",)
        if self._is_cut(split) or not all(step.looks in enough for step in self.steps):
            return [split]
        return self._reader(split).looks_of(self.places[split.file], split)

    def parts_with(self, split: Split, condition: Condition) -> Sequence[Split]:
        is_known = all(name in self.stored.names for name in condition.columns)  # of others nothing is stored
        if self._is_cut(split) or not is_known or not all(step.skips for step in self.steps):
            return [split]
        of_folders = self.kinds[split.file].of_folders
        types = {name: self.stored.field(name).type for name in condition.columns if name not in of_folders}
        return self._reader(split).parts_with(self.places[split.file], split, condition, types)

    def is_local(self, split: Split) -> bool:
        return self.places[split.file].is_local

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        offsets, back = np.unique(np.asarray(pos, np.int64) - split.base, return_inverse=True)
        lines = self._reader(split).lines(self.places[split.file], self._as_read(split), offsets)
        return lines[back]

    def file_name(self, split: Split) -> str:
        return self.names[split.file]

    def explain_type(self, column: str) -> str | None:
        """Say which value made a column's type string, as ``in/x.csv has '-' at line 17``; None if no value did."""
        if column not in self.text_at:
            return None
        split = self.splits[self.text_at[column]]
        batch = self._read_file(split, [column])
        sorts = _sorts(batch.rows[column])
        odd = sorts == _OTHER
        if not odd.any():
            pieces = (part for own in self.splits if own.file == split.file for part in self.pieces_of(own, _HEAD))
            found = (_sorts(self._read_file(part, [column]).rows[column]) for part in pieces if part.rows)
            known = (each[each != _EMPTY] for each in found)
            first = next((int(each[0]) for each in known if len(each)), _EMPTY)
            odd = (sorts != _EMPTY) & (sorts != first)
        if not odd.any():
            return None
        at = int(odd.argmax())
        line = int(self.line_numbers(split, batch.pos[at : at + 1])[0])
        return f"{self.files[split.file].path} has {batch.rows[column][at].as_py()!r} at line {line}"

    def _reader(self, split: Split) -> FormatReader:
        reader: FormatReader = self.kinds[split.file].reader
        return reader

    def _is_cut(self, split: Split) -> bool:
        return self.whole is not None and split.index == self.whole.index

    def _as_read(self, split: Split) -> Split:
        return self.whole if self.whole is not None and self._is_cut(split) else split

    def _shaped(self, found: SplitRows, columns: Sequence[str], file: int, encoded: Sequence[str]) -> pa.Table:
        """Return the columns in the given order; columns that the file lacks are constants of its folder, or null."""
        rows, of_folders = len(found.offsets), self.kinds[file].of_folders
        shaped = []
        for name in columns:
            kind = self.stored.field(name).type
            if name in of_folders:
                value = self.constants[name][file].as_py()
                column = pa.chunked_array([pa.repeat(pa.scalar(value, kind), rows)])
            elif name in found.table.column_names:
                column = found.table[name]
            else:
                column = pa.chunked_array([pa.nulls(rows, kind)])
            # Where it knows the column, the reader has already decided on a dictionary.
            knows = self.kinds[file].reader.columnar and name in found.table.column_names
            is_left = name not in encoded or (knows and not pa.types.is_dictionary(column.type))
            if not is_left:
                wanted = pa.dictionary(pa.int32(), kind)
                column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
                column = (column if column.type == wanted else column.cast(wanted)).unify_dictionaries()
            shaped.append(column)
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
