"""Read CSV: byte ranges of lines, or whole files where a task cannot enter a file in the middle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from ...windowing.ports import Executor
from ..files.byte_ranges import (
    MAX_RECORD,
    STEP,
    WHOLE,
    Range,
    bom_size,
    buffers_of,
    last_line_end,
    line_start,
    range_buffers,
)
from ..files.file import BadContentError, Located
from ..files.walk import ListedFile
from ..options import ReadOptions
from ..values.casts import caster
from ..values.kinds import INT, NOTHING, TEXT, Kind, infer, join
from ..values.record_bounds import Dialect, Records, Tally, count_line_ends, locate, tally, warm
from ..values.types import ColumnType, Int64s, is_text
from ..values.value_kinds import UNSURE
from .split_rows import ReadRequest, SplitPlan, SplitRows, converted, without_rows
from .text_splits import ScannedRange, TextReader, plan_text_files, text_rejects

# The header of a CSV file: the first record, which names the columns.


_WINDOW = 64 << 10


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a CSV file.

    ``size``: the bytes before the first data record, a byte order mark included.
    ``lines``: the line ends among these bytes.
    """

    names: tuple[str, ...]
    size: int
    lines: int


def read_header(load: Callable[[int], bytes], dialect: Dialect) -> Header | None:
    """Read the header of a file, None if the file has no record.

    ``load(n)`` returns the first n bytes of the file, or all if it has fewer. An unnamed column is called ``_c0``,
    ``_c1``, .. by its index. Raises `BadContentError` for two columns of one name, for a header that ends inside
    quotes, and for one that a crash has padded.
    """
    window = _WINDOW
    while True:
        data = load(window)
        at_end = len(data) < window
        records = _first(data, dialect, at_end=at_end)
        if records is not None or at_end:
            break
        window *= 8
    bom = bom_size(data)
    if records is None or not len(records.starts):
        return None
    if not records.fields[0]:
        raise BadContentError("has NUL bytes in its header", "a crash has cut it short: leave it out, or restore it")
    body = data[bom:]
    stop = int(records.stops[0])
    size = stop + (2 if body[stop : stop + 2] == b"\r\n" else 1 if stop < len(body) else 0)
    names = _names(body[records.starts[0] : stop], dialect)
    return Header(names, bom + size, tally(body[:size], dialect, 0).lines)


def _first(data: bytes, dialect: Dialect, *, at_end: bool) -> Records | None:
    """Return the records in the first bytes of a file, None if the first record is not complete in them."""
    body = data[bom_size(data) :]
    line = body[: body.find(b"\n") + 1]
    records = locate(line, dialect)
    if len(records.starts) and tally(line, dialect, 0).torn < 0:  # nearly always
        return records
    if not at_end:
        body = body[: tally(body.removesuffix(b"\r"), dialect, 0).whole]
        if len(data) > MAX_RECORD:
            raise BadContentError("has no line end in its first part", "is it of another format?")
    records = locate(body, dialect)
    if not at_end and not len(records.starts):
        return None
    if tally(body[: int(records.stops[0])] if len(records.stops) else b"", dialect, 0).torn >= 0:
        raise BadContentError("line 1: a quoted field runs over the end of the line", "--multiline reads it")
    return records


@lru_cache(maxsize=16)  # thousands of files may have one header
def _names(text: bytes, dialect: Dialect) -> tuple[str, ...]:
    fields = int(locate(text, dialect).fields[0])
    try:
        table = pcsv.read_csv(
            pa.BufferReader(text + b"\n"),
            pcsv.ReadOptions(use_threads=False, autogenerate_column_names=True, block_size=len(text) + 2),
            pcsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=dialect.multiline),
            pcsv.ConvertOptions(column_types={f"f{i}": pa.string() for i in range(fields)}),
        )
    except pa.ArrowInvalid as error:
        raise BadContentError(f"has a header that cannot be read: {error}", "is it CSV in UTF-8?") from error
    names = tuple(str(column[0].as_py() or f"_c{i}") for i, column in enumerate(table.columns))
    for name, times in Counter(names).items():
        if times > 1:
            raise BadContentError(f"has {times} columns named {name!r}", "give each a name of its own")
    return names


# Parse CSV records to columns of given types, and find the rows that do not fit.


_TRUE = ["true", "True", "TRUE"]
_FALSE = ["false", "False", "FALSE"]
_MAX_BLOCK = 2**31 - 1
_HEAD = 64 << 10


def parse_csv(
    data: bytes,
    dialect: Dialect,
    names: Sequence[str],
    types: Mapping[str, pa.DataType],
    only: Sequence[str],
    *,
    quoted_nulls: bool = False,
) -> pa.Table:
    """Parse records that all have as many fields as ``names``.

    ``types``: the types by column; other types are inferred. ``only``: the columns to return. An empty field is null; a
    quoted empty field is an empty text, or with ``quoted_nulls`` also null.
    Raises `pa.ArrowInvalid` where a value does not fit its type.
    """
    if not data:
        return pa.table({name: pa.array([], types.get(name, pa.null())) for name in only})
    bools = ([], []) if quoted_nulls else (["1"], ["0"])  # inference must not take 0 and 1 for booleans
    return pcsv.read_csv(
        pa.BufferReader(data),
        pcsv.ReadOptions(use_threads=False, column_names=list(names), block_size=min(len(data) + 1, _MAX_BLOCK)),
        pcsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=dialect.multiline),
        pcsv.ConvertOptions(
            column_types={name: types[name] for name in only if name in types},
            include_columns=list(only),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=quoted_nulls,
            true_values=_TRUE + bools[0],
            false_values=_FALSE + bools[1],
        ),
    )


def infer_csv(data: bytes, dialect: Dialect, names: Sequence[str], wanted: Sequence[str]) -> dict[str, Kind]:
    """Return the kinds of the ``wanted`` columns of a buffer; quoted empty fields count as nulls."""
    beginning = data[: tally(data[:_HEAD].removesuffix(b"\r"), dialect, 0).whole] if len(data) > _HEAD else b""

    def parse(
        types: Mapping[str, pa.DataType], *, others: bool = True, drop: Collection[str] = (), head: bool = False
    ) -> pa.Table:
        only = [name for name in wanted if name not in drop and (others or name in types)]
        text = (beginning or data) if head else data
        return parse_csv(text, dialect, names, types, only, quoted_nulls=True) if only else pa.table({})

    kinds = infer(parse)
    whole = [name for name, kind in kinds.items() if kind == INT]
    if whole and (b"0x" in data or b"0X" in data):  # the parser reads 0x1F as an integer, but not next to 1.5
        texts = parse(dict.fromkeys(whole, pa.string()), others=False)
        for name in whole:
            if pc.any(pc.match_substring_regex(texts[name], "^[ \t]*-?0[xX]")).as_py():
                kinds[name] = TEXT
    return kinds


def read_typed(
    data: bytes, dialect: Dialect, names: Sequence[str], want: Mapping[str, ColumnType]
) -> tuple[pa.Table, dict[int, str]]:
    """Parse to exactly the wanted types; a value that does not fit is null in the table, and told by its row."""
    if not want:
        return pa.table({}), {}
    try:
        table = _quick(data, dialect, names, want)
        raw = {name: table[name] for name in want}
    except pa.ArrowInvalid:
        raw = {}
        for name in want:
            try:
                raw[name] = parse_csv(data, dialect, names, {name: pa.string()}, [name])[name]
            except pa.ArrowInvalid:
                raw[name] = parse_csv(data, dialect, names, {name: pa.binary()}, [name])[name]
    for name, kind in want.items():
        if pa.types.is_string(raw[name].type) and not is_text(kind.type):
            raw[name] = pc.if_else(pc.equal(raw[name], ""), pa.scalar(None, pa.string()), raw[name])
    return converted(raw, want)


def _quick(data: bytes, dialect: Dialect, names: Sequence[str], want: Mapping[str, ColumnType]) -> pa.Table:
    """Parse directly to the types; on failure try again with quoted empty fields as null where the type is not text.

    Raises `pa.ArrowInvalid` where that fails, too.
    """
    # As text, where the parser does not know the wanted type or format.
    as_text = {name for name, kind in want.items() if kind.format is not None or caster(kind.type) is not None}
    types = {name: pa.string() if name in as_text else kind.type for name, kind in want.items()}
    try:
        return parse_csv(data, dialect, names, types, list(want))
    except pa.ArrowInvalid:
        texts = [name for name, kind in types.items() if pa.types.is_string(kind)]
        others = [name for name in types if name not in texts]
        if not others or b'""' not in data:
            raise
        table = parse_csv(data, dialect, names, types, others, quoted_nulls=True)
        if texts:
            strings = parse_csv(data, dialect, names, types, texts)
            table = pa.table({name: (strings if name in texts else table)[name] for name in want})
        return table


_NOTHING = Header((), 0, 0)


def plan_input(
    files: Sequence[ListedFile], options: ReadOptions, given: Mapping[str, ColumnType], executor: Executor
) -> tuple[CsvReader, SplitPlan]:
    """Scan the files once and divide them into splits of whole lines. Raises `InputError` naming a file."""
    reader = CsvReader(options.delimiter, options.multiline, frozenset(given))
    warm()
    return reader, plan_text_files(reader, files, options, given, executor)


@dataclass(frozen=True, slots=True)
class CsvReader(TextReader):
    """The `FormatReader` of CSV.

    ``delimiter``: one ASCII character.
    ``multiline``: whether a quoted field may contain line ends.
    ``typed``: the columns whose types are declared, and not inferred.
    """

    delimiter: str
    multiline: bool
    typed: frozenset[str]

    columnar: ClassVar[bool] = False

    def as_stream(self, place: Located) -> bool:
        return self.multiline or place.compression is not None

    def dialect(self, place: Located) -> Dialect:
        """Return the dialect of a file; ``.tsv`` files have tabs unless the user chose a delimiter."""
        name = place.path.lower().removesuffix("." + place.path.rpartition(".")[2]) if place.compression else place.path
        tabs = self.delimiter == "," and name.lower().endswith(".tsv")
        return Dialect("\t" if tabs else self.delimiter, self.multiline)

    def scan_range(self, byte_range: Range) -> ScannedRange:
        dialect = self.dialect(byte_range.place)
        if byte_range.stop == WHOLE:
            header, buffers = _body(byte_range.place, dialect)
            return self._scanned(byte_range.file, (0, WHOLE), header, buffers, dialect)
        with byte_range.place.open_file() as file:
            size = file.size()
            if byte_range.start == 0 and size <= byte_range.stop <= STEP:  # so a small file is read once
                data = file.read_at(size, 0)
                header = read_header(lambda nbytes: data[:nbytes], dialect) or _NOTHING
                rest = data[header.size :]
                return self._scanned(
                    byte_range.file, (min(header.size, size), size), header, [rest] if rest else [], dialect
                )
            header = read_header(lambda nbytes: bytes(file.read_at(nbytes, 0)), dialect) or _NOTHING
            start, stop = (
                max(line_start(file, at, size, cr_ends=True), header.size) for at in (byte_range.start, byte_range.stop)
            )
            buffers = range_buffers(file, start, stop, partial(_whole, dialect))
            return self._scanned(byte_range.file, (start, stop), header, buffers, dialect)

    def _scanned(
        self, file: int, place: tuple[int, int], header: Header, buffers: Iterable[bytes], dialect: Dialect
    ) -> ScannedRange:
        counts, kinds, nbytes = Tally(0, 0, 0, -1, 0), dict[str, Kind](), 0
        for data in buffers:
            more, found = self._survey(data, dialect, header.names)
            torn = counts.torn if counts.torn >= 0 else counts.lines + more.torn if more.torn >= 0 else -1
            counts = Tally(counts.rows + more.rows, counts.wrong + more.wrong, counts.lines + more.lines, torn, 0)
            kinds = {name: join(kinds.get(name, NOTHING), kind) for name, kind in found.items()} or kinds
            nbytes += len(data)
        told = counts.rows, counts.wrong, counts.lines, header.lines, nbytes, counts.torn
        return ScannedRange(file, *place, *told, header.names, kinds)

    def _survey(self, data: bytes, dialect: Dialect, names: Sequence[str]) -> tuple[Tally, dict[str, Kind]]:
        wanted = [name for name in names if name not in self.typed]
        seen = np.array([TEXT if name in self.typed else NOTHING for name in names], np.int64)
        counts = tally(data, dialect, len(names), seen)
        if counts.torn >= 0 or counts.rows == counts.wrong or not wanted:
            return counts, {}
        if counts.wrong:
            clean = _well_formed(data, locate(data, dialect), len(names))[0]
            return counts, infer_csv(clean, dialect, names, wanted)
        kinds: dict[str, Kind] = dict(zip(names, seen.tolist(), strict=True))
        unsure = [name for name in wanted if seen[names.index(name)] & (UNSURE | TEXT) == UNSURE]
        kinds |= infer_csv(data, dialect, names, unsure) if unsure else {}
        return counts, {name: TEXT if kinds[name] & TEXT else kinds[name] for name in wanted}

    def buffers(self, place: Located, start: int, stop: int) -> Iterator[bytes]:
        dialect = self.dialect(place)
        if stop == WHOLE:
            return _body(place, dialect)[1]
        return buffers_of(place, start, stop, partial(_whole, dialect))

    def locate(self, place: Located, data: bytes) -> tuple[Records, int]:
        return locate(data, self.dialect(place)), count_line_ends(data)

    def read_buffer(
        self, place: Located, data: bytes, line: int, request: ReadRequest, has_bad: bool
    ) -> tuple[SplitRows, int, int]:
        dialect, width, clean, details = self.dialect(place), len(request.names), data, dict[int, str]()
        records = locate(data, dialect) if has_bad else None
        if records is not None:
            clean, rows = _well_formed(data, records, width)
            for row in np.flatnonzero(records.fields != width):
                few = f"{records.fields[row]} fields where the header has {width}"
                details[int(row)] = few if records.fields[row] else "the record begins or ends with NUL bytes"
        table, misfits = read_typed(clean, dialect, request.names, request.types)
        if records is None:
            rows = np.arange(table.num_rows, dtype=np.int64)
        total = table.num_rows if records is None else len(records.starts)
        details |= {int(rows[at]): detail for at, detail in misfits.items()}
        table, rows = without_rows(table, rows, misfits)
        rejects = text_rejects(data, records or locate(data, dialect), line, details) if details else ()
        return SplitRows(table, rows, rejects), total, count_line_ends(data)


def _body(place: Located, dialect: Dialect) -> tuple[Header, Iterator[bytes]]:
    """Return the header of a file that is read as a stream, and the buffers behind it."""
    buffers = buffers_of(place, 0, WHOLE, partial(_whole, dialect))
    start = b""
    for buffer in buffers:
        start += buffer
        header = read_header(partial(_slice, start), dialect)
        if header is not None:
            rest = start[header.size :]
            return header, chain([rest] if rest else [], buffers)
    return _NOTHING, iter(())


def _slice(data: bytes, size: int) -> bytes:
    return data[:size]


def _whole(dialect: Dialect, data: bytes) -> int:
    if not dialect.multiline:
        return last_line_end(data, cr_ends=True)
    return tally(data.removesuffix(b"\r"), dialect, 0).whole


def _well_formed(data: bytes, records: Records, width: int) -> tuple[bytes, Int64s]:
    """Return the text of the records with ``width`` fields, and their indices among all records, int64."""
    right = records.fields == width
    return records.without(data, np.flatnonzero(~right)), np.flatnonzero(right)
