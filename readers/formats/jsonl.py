"""Read JSON Lines (one object per line): byte ranges of lines, or whole files if they are compressed."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.errors import InputError
from ...windowing.ports import Executor, Split
from ..files.byte_ranges import WHOLE, Range, buffers_of, last_line_end, line_start, without_bom
from ..files.file import BadContentError, Located
from ..files.walk import ListedFile
from ..options import ReadOptions
from ..values.json_fields import (
    FALSE,
    NUMBER,
    STRING,
    TRUE,
    Fields,
    JsonLines,
    count_names,
    fields_of,
    good_lines,
    is_utf8,
    kinds_of_lines,
    parse_lines,
    warm,
)
from ..values.kinds import BOOL, FLOAT, INT, NOTHING, TEXT, Kind, infer, join, kind_of, kind_of_texts
from ..values.record_bounds import Records, locate_lines
from ..values.types import ColumnType
from ..values.value_kinds import UNSURE
from .split_rows import ReadRequest, SplitPlan, SplitRows, converted, without_rows
from .text_splits import ScannedRange, TextReader, plan_text_files, text_rejects

# Parse JSON values one by one, for the few lines that Arrow's parser refuses; numbers keep their text.


_INT64 = range(-(2**63), 2**63)


class Number(str):
    """The text of a number, as it is in the file."""

    __slots__ = ()


def _kind_of_value(value: Any) -> Kind:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, Number):
        return INT if value.lstrip("-").isdigit() and int(value) in _INT64 else FLOAT
    if isinstance(value, str):
        return kind_of_texts(pa.chunked_array([pa.array([value])]))
    try:
        kind = kind_of(parse_lines(_dumps({"x": value}).encode(), {}, others=True)["x"].type)
    except pa.ArrowInvalid:  # a list or struct of mixed kinds
        return TEXT
    return NOTHING if kind is None else kind  # not ``kind or NOTHING``: an empty struct type is falsy


def _dumps(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return json.loads(value) if isinstance(value, Number) else value


def texts_of(values: list[Any]) -> pa.ChunkedArray:
    """Return the values as texts: strings and numbers unchanged, other values as JSON."""
    texts = [value if value is None or isinstance(value, str) else _dumps(value) for value in values]
    return pa.chunked_array([pa.array(texts, pa.string())])


# Parse many JSON lines at once to kinds, or to columns of given types.
#
# One call parses all lines. Where that fails because a column holds values of several kinds, the lines are bisected;
# only batches of at most 64 lines are then read value by value.


_HEAD = 64 << 10
_SMALL = 64
_MOST_CELLS_AT_ONCE = 1 << 24


def infer_plain(data: bytes) -> tuple[dict[str, Kind], int, int] | None:
    """Return the kinds of all columns where all lines are plain objects, without a parser; else None.

    Also returns the number of these lines, and of line ends.
    """
    found = kinds_of_lines(data) if is_utf8(data) else None
    if found is None:
        return None
    each, rows, line_ends = found
    kinds: dict[str, Kind] = {name: TEXT if kind & TEXT else kind for name, kind in each.items()}
    unsure = [name for name, kind in each.items() if kind & (UNSURE | TEXT) == UNSURE]
    fields = fields_of(data, unsure) if unsure else None
    for name in unsure:
        assert fields is not None, "plain lines are plain whatever columns are asked for"
        is_mixed = not fields.has_only(name, STRING)
        kinds[name] = TEXT if is_mixed else kind_of_texts(pa.chunked_array([fields.texts(data, name)]))
    return kinds, rows, line_ends


def infer_lines(lines: JsonLines, start: int, stop: int) -> dict[str, Kind]:
    """Return the kinds of all columns, in order of first appearance. Each of lines ``[start, stop)`` is one object."""
    if start == stop:
        return {}
    if stop - start <= _SMALL or not _is_wide(lines, start, stop):
        try:
            return _infer_whole(lines, start, stop)
        except pa.ArrowInvalid:
            if stop - start <= _SMALL:
                rows = _objects(lines, start, stop)
                each = [{name: _kind_of_value(value) for name, value in row.items()} for row in rows]
                return reduce(_join_kinds, each, {})
    half = (start + stop) // 2
    return _join_kinds(infer_lines(lines, start, half), infer_lines(lines, half, stop))


def _is_wide(lines: JsonLines, start: int, stop: int) -> bool:
    return count_names(lines.bytes_of(start, stop)) * (stop - start) > _MOST_CELLS_AT_ONCE


def _infer_whole(lines: JsonLines, start: int, stop: int) -> dict[str, Kind]:
    beginning = int(np.searchsorted(lines.records.stops[start:stop], lines.records.starts[start] + _HEAD))

    def parse(
        types: Mapping[str, pa.DataType],
        *,
        others: bool = True,
        drop: Collection[str] = (),  # noqa: ARG001 - leaving columns out would hide new ones
        head: bool = False,
    ) -> pa.Table:
        end = start + max(beginning, 1) if head else stop
        table = parse_lines(lines.bytes_of(start, end), types, others=others)
        if len(table) != end - start:
            raise pa.ArrowInvalid("lines that are not one object each")
        return table

    return infer(parse)


def _join_kinds(a: dict[str, Kind], b: dict[str, Kind]) -> dict[str, Kind]:
    return {name: join(a.get(name, NOTHING), b.get(name, NOTHING)) for name in {**a, **b}}


def _read_plain(data: bytes, want: Mapping[str, ColumnType]) -> tuple[pa.Table, dict[int, str], int] | None:
    """Read lines that are plain objects, without a parser; None where one is not, or a value is of another sort.

    Also returns what does not fit, by row, and the number of line ends.
    """
    fields = fields_of(data, list(want)) if want else None
    if fields is None:
        return None
    columns: dict[str, pa.ChunkedArray] = {}
    for name, kind in want.items():
        column = _plain_column(fields, data, name, kind)
        if column is None:
            return None
        columns[name] = pa.chunked_array([column])
    return *converted(columns, want), fields.line_ends


def _plain_column(fields: Fields, data: bytes, name: str, kind: ColumnType) -> pa.Array | None:
    """Return a column as the parser would for `_parse_as`; None where that is not sure."""
    if kind.unix_digits is not None or pa.types.is_duration(kind.type):
        return None
    wanted = _parse_as(kind)
    if pa.types.is_string(wanted):
        return fields.texts(data, name) if fields.has_only(name, STRING) else None
    if pa.types.is_boolean(wanted):
        return fields.booleans(name) if fields.has_only(name, TRUE, FALSE) else None
    is_whole = pa.types.is_int64(wanted) and not fields.kinds[fields.names.index(name)] & FLOAT
    if (is_whole or pa.types.is_float64(wanted)) and fields.has_only(name, NUMBER):
        return pc.cast(fields.texts(data, name), wanted)
    return None


def _read_range(
    lines: JsonLines, start: int, stop: int, want: Mapping[str, ColumnType]
) -> tuple[pa.Table, dict[int, str]]:
    """Parse lines ``[start, stop)`` to exactly the wanted types; also say what does not fit, by row among all lines."""
    raw: Mapping[str, pa.ChunkedArray] | pa.Table
    try:
        types = {name: _parse_as(kind) for name, kind in want.items()}
        raw = parse_lines(lines.bytes_of(start, stop), types, others=False)
        if len(raw) != stop - start:
            raise pa.ArrowInvalid("lines that are not one object each")
    except pa.ArrowInvalid:
        if stop - start > _SMALL:
            half = (start + stop) // 2
            (first, some), (second, more) = (_read_range(lines, *ends, want) for ends in ((start, half), (half, stop)))
            return pa.concat_tables([first, second]), some | more
        rows = _objects(lines, start, stop)
        raw = {name: texts_of([row.get(name) for row in rows]) for name in want}
    table, details = converted(raw, want)
    return table, {start + row: detail for row, detail in details.items()}


def _parse_as(kind: ColumnType) -> pa.DataType:
    """Return the type that the parser gets: text for times, because the parser ignores their zones."""
    if pa.types.is_duration(kind.type):
        return pa.int64()
    if kind.unix_digits is not None:
        return pa.decimal128(38, kind.unix_digits)  # keeps all digits, of numbers and of texts
    texts = (pa.types.is_temporal, pa.types.is_binary)
    return pa.string() if any(matches(kind.type) for matches in texts) else kind.type


def _objects(lines: JsonLines, start: int, stop: int) -> list[dict[str, Any]]:
    texts = (lines.bytes_of(row, row + 1).decode(errors="replace") for row in range(start, stop))
    parse = partial(json.loads, parse_int=Number, parse_float=Number, parse_constant=Number, strict=False)
    return [parse(text) for text in texts]


_LOOKED_AT = 1 << 16
_MOST_NAMES = 20_000  # of one range; of more, all are surely values that stand where names should
_MOST_CELLS = 1 << 26  # of one split, values and nulls
_ARRAY = re.compile(rb"\[\s*(\{|$)")


def plan_input(
    files: Sequence[ListedFile], options: ReadOptions, given: Mapping[str, ColumnType], executor: Executor
) -> tuple[JsonReader, SplitPlan]:
    """Scan the files once and divide them into splits of whole lines. Raises `InputError` naming a file."""
    reader = JsonReader()
    warm()
    return reader, plan_text_files(reader, files, options, given, executor)


@dataclass(frozen=True, slots=True)
class JsonReader(TextReader):
    """The `FormatReader` of JSON Lines."""

    columnar: ClassVar[bool] = False

    def as_stream(self, place: Located) -> bool:
        return place.compression is not None

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:
        # Raise `InputError` where most lines lack most columns, so that nulls would take more memory than the lines.
        columns = sum(_leaves(kind.type) for kind in request.types.values())
        if split.rows * columns > _MOST_CELLS:
            raise InputError(
                f"{place.shown}: {split.rows:,} rows of {columns:,} columns are more than {_MOST_CELLS:,} values",
                "give tasks fewer rows: --split-size; or emit aggregates in place of rows",
            )
        return TextReader.read(self, place, split, request)

    def scan_range(self, byte_range: Range) -> ScannedRange:
        start, stop = 0, WHOLE
        if byte_range.stop != WHOLE:
            with byte_range.place.open_file() as file:
                size = file.size()
                start, stop = (line_start(file, at, size, cr_ends=False) for at in (byte_range.start, byte_range.stop))
        rows, bad, lines, nbytes, kinds, first = 0, 0, 0, 0, dict[str, Kind](), b""
        for data in self.buffers(byte_range.place, start, stop):
            count, torn, line_ends, found = _survey(data)
            if torn and not (start or nbytes):
                first = data[:_LOOKED_AT].lstrip().split(b"\n", 1)[0].rstrip()
            rows, bad, lines, nbytes = rows + count, bad + torn, lines + line_ends, nbytes + len(data)
            kinds = _join_kinds(kinds, found)
            if sum(1 if isinstance(kind, int) else _leaves(kind) for kind in kinds.values()) > _MOST_NAMES:
                what = f"has more than {_MOST_NAMES:,} different names in {rows:,} rows"
                raise BadContentError(what, "are they values? Put them into a column: a list of {name, value} objects")
        # An array that ends on its own line is the whole file only if the file has no other line.
        if _ARRAY.match(first) and (rows == 1 or not first.endswith(b"]")):
            what = "is one JSON array, and is read as JSON Lines, which has one object in each line"
            raise BadContentError(what, "convert it, or pipe it through jq -c '.[]'")
        return ScannedRange(byte_range.file, start, stop, rows, bad, lines, nbytes=nbytes, kinds=kinds)

    def buffers(self, place: Located, start: int, stop: int) -> Iterator[bytes]:
        for at, data in enumerate(buffers_of(place, start, stop, partial(last_line_end, cr_ends=False))):
            yield without_bom(data) if at == 0 and start == 0 else data

    def locate(self, place: Located, data: bytes) -> tuple[Records, int]:  # noqa: ARG002 - all files are alike
        return locate_lines(data)

    def read_buffer(
        self,
        place: Located,  # noqa: ARG002 - all files are alike
        data: bytes,
        line: int,
        request: ReadRequest,
        has_bad: bool,
    ) -> tuple[SplitRows, int, int]:
        plain = None if has_bad else _read_plain(data, request.types)
        if plain is not None and not plain[1]:
            rows = plain[0].num_rows
            return SplitRows(plain[0], np.arange(rows, dtype=np.int64)), rows, plain[2]
        records, line_ends = locate_lines(data)
        total = len(records.starts)
        lines = good = JsonLines(data, records)
        no_objects = np.empty(0, np.int64)
        if has_bad or not lines.are_objects().all():
            good, no_objects = good_lines(lines)
            plain = _read_plain(good.data, request.types)
        if plain is not None:
            table, misfits, _ = plain
        elif len(good) and request.types:
            table, misfits = _read_range(good, 0, len(good), request.types)
        else:
            table, misfits = request.schema.empty_table(), {}
        kept = np.delete(np.arange(total, dtype=np.int64), no_objects)
        details = dict(zip(no_objects.tolist(), lines.why_none(no_objects), strict=True))
        details |= {int(kept[at]): detail for at, detail in misfits.items()}
        table, kept = without_rows(table, kept, misfits)
        return SplitRows(table, kept, text_rejects(data, records, line, details)), total, line_ends


def _leaves(kind: pa.DataType) -> int:
    inner = [kind.field(at).type for at in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return sum(map(_leaves, inner)) if inner else 1


def _survey(data: bytes) -> tuple[int, int, int, dict[str, Kind]]:
    plain = infer_plain(data)
    if plain is not None:
        return plain[1], 0, plain[2], plain[0]
    records, line_ends = locate_lines(data)
    lines = JsonLines(data, records)
    if len(lines) and is_utf8(data) and lines.are_objects().all() and not _is_wide(lines, 0, len(lines)):
        with suppress(pa.ArrowInvalid):  # a line is no object, or a column has several kinds
            return len(lines), 0, line_ends, _infer_whole(lines, 0, len(lines))
    good, torn = good_lines(lines)
    return len(lines), len(torn), line_ends, infer_lines(good, 0, len(good))
