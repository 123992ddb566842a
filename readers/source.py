"""The input as a whole: every file in the shape of one schema, split by split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..windowing.errors import InputError
from ..windowing.ports import Batch, InputFile, Split, StreamInfo
from ..windowing.support.suggest import did_you_mean
from .files.file import Located, check_all
from .formats.parquet import ParquetReader
from .formats.split_rows import FormatReader, ReadRequest, SplitRows, rejects_table
from .schema.types import ColumnType

_NUMBER_OR_TIME = (
    r"^\s*([-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|NaN|inf|Infinity)"
    r"|\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?(Z|[-+]\d\d(:?\d\d)?)?)?)\s*$"
)


@dataclass(frozen=True, slots=True)
class FileSource:
    """Implements `windowing.ports.Source` over files of one format.

    ``places`` and ``layouts``: by file, where it is and which columns it has. ``constants``: by file, the columns
    whose value its folder gives. ``formats``: the layouts of columns given as text in a format of their own.
    ``text_at``: by column that is text because of its values, the split that made it so. ``skipped``: what was passed
    over since it cannot be read, and why.
    """

    schema: pa.Schema
    files: tuple[InputFile, ...]
    splits: tuple[Split, ...]
    stream: StreamInfo | None
    reader: FormatReader
    places: tuple[Located, ...]
    layouts: tuple[tuple[str, ...], ...]
    constants: tuple[dict[str, Any], ...]
    formats: Mapping[str, str | None]
    text_at: Mapping[str, int]
    skipped: tuple[str, ...] = ()

    @property
    def columnar(self) -> bool:
        """Whether a few columns of a split can be read without going through all of its bytes."""
        return isinstance(self.reader, ParquetReader)

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read only ``columns`` of one split; those of text also in ``dictionary`` come dictionary encoded (int32).

        Where a columnar format stores them plain, for hardly a value repeats, they come so.
        Raises `InputError` naming the file where it cannot be read, and for a column that is not there.
        """
        self._check(columns)
        constants, layout = self.constants[split.file], self.layouts[split.file]
        want = {name: self._type(name) for name in columns if name in layout and name not in constants}
        encoded = [name for name in dictionary if name in columns and _is_text(self.schema.field(name).type)]
        portion = self.reader.read(self.places[split.file], split, ReadRequest(layout, want, tuple(encoded)))
        table = self._shaped(portion, columns, constants, encoded)
        rejects = rejects_table(self.files[split.file].path, portion.rejects)
        pos = portion.offsets
        pos += split.base  # in place: the array is new, and nobody else's
        return Batch(table, pos, rejects)

    def check_unchanged(self) -> None:
        """Raise `InputError` naming a file that is not what it was when it was listed."""
        check_all(self.places)

    def parts_of(self, split: Split) -> Sequence[Split]:
        """Return the smallest splits that a split can be read in, in order."""
        if not isinstance(self.reader, ParquetReader):
            return [split]
        return self.reader.row_groups(self.places[split.file], split) or [split]

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """1-based line (text formats) or row (Parquet) in its file of the given arrival positions of a split."""
        offsets, back = np.unique(np.asarray(pos, np.int64) - split.base, return_inverse=True)
        lines = self.reader.lines(self.places[split.file], split, offsets)
        return lines[back]

    def explain_type(self, column: str) -> str | None:
        """Say which value made a column text, as ``in/x.csv has '-' at line 17``, or None where none did."""
        if column not in self.text_at:
            return None
        split = self.splits[self.text_at[column]]
        batch = self.read(split, [column])
        texts = batch.rows[column]
        odd = pc.and_(
            pc.not_equal(pc.fill_null(texts, ""), ""),
            pc.invert(pc.match_substring_regex(pc.fill_null(texts, ""), _NUMBER_OR_TIME)),
        )
        at = pc.index(odd, True).as_py()
        if at < 0:
            return None
        line = int(self.line_numbers(split, batch.pos[at : at + 1])[0])
        return f"{self.files[split.file].path} has {texts[at].as_py()!r} at line {line}"

    def _check(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name not in self.schema.names:
                raise InputError(f"no file has a column {name!r}", did_you_mean(name, self.schema.names))

    def _type(self, name: str) -> ColumnType:
        return ColumnType(self.schema.field(name).type, self.formats.get(name))

    def _shaped(
        self, portion: SplitRows, columns: Sequence[str], constants: Mapping[str, Any], encoded: Sequence[str]
    ) -> pa.Table:
        """Return the columns in order, with what the file itself has not: constants, and nulls."""
        rows = len(portion.offsets)
        shaped = []
        for name in columns:
            kind = self.schema.field(name).type
            if name in constants:
                column = pa.chunked_array([pa.repeat(pa.scalar(constants[name], kind), rows)])
            elif name in portion.table.column_names:
                column = portion.table[name]
            else:
                column = pa.chunked_array([pa.nulls(rows, kind)])
            knows = self.columnar and name in portion.table.column_names  # such a format says itself what repeats
            is_left = name not in encoded or (knows and not pa.types.is_dictionary(column.type))
            shaped.append(column if is_left else _encoded(column, kind))
        return pa.table(shaped, names=list(columns))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _encoded(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column of text dictionary encoded, all chunks over one dictionary."""
    wanted = pa.dictionary(pa.int32(), kind)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.type != wanted:
        column = column.cast(wanted)
    return column.unify_dictionaries()
