"""Parse many JSON lines at once to kinds, or to columns of given types.

One call parses all lines. Where that fails because a column holds values of several kinds, the lines are bisected; only
batches of at most 64 lines are then read value by value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..schema.infer import infer
from ..schema.kinds import FLOAT, NOTHING, TEXT, Kind, join, kind_of_texts
from ..schema.types import ColumnType
from ..text.fields import FALSE, NUMBER, STRING, TRUE, Fields
from ..text.json_fields import LineKinds, count_names, fields_of, kinds_of_lines
from ..text.json_lines import JsonLines, is_utf8, parse_lines
from ..text.value_kinds import UNSURE
from ..values.casts import convert
from .json_values import kinds_of_object, parse_object, texts_of
from .split_rows import TypeErrors, first_detail

_HEAD = 64 << 10
_SMALL = 64
_MOST_CELLS = 1 << 24

_Parsed: TypeAlias = "tuple[int, pa.Table, list[TypeErrors]]"


def infer_lines(lines: JsonLines) -> dict[str, Kind]:
    """Return the kinds of all columns, in order of first appearance. Every line must be one object."""
    return _infer_range(lines, 0, len(lines)) if len(lines) else {}


def infer_plain(data: bytes) -> tuple[dict[str, Kind], LineKinds] | None:
    """Return the same where all lines are plain objects, without a parser, and the counts of these; else None."""
    found = kinds_of_lines(data) if is_utf8(data) else None
    if found is None:
        return None
    each = dict(zip(found.names, found.kinds.tolist(), strict=True))
    kinds: dict[str, Kind] = {name: TEXT if kind & TEXT else kind for name, kind in each.items()}
    unsure = [name for name, kind in each.items() if kind & (UNSURE | TEXT) == UNSURE]
    fields = fields_of(data, unsure) if unsure else None
    for name in unsure:
        assert fields is not None, "plain lines are plain whatever columns are asked for"
        is_mixed = not fields.has_only(name, STRING)
        kinds[name] = TEXT if is_mixed else kind_of_texts(pa.chunked_array([fields.texts(data, name)]))
    return kinds, found


def infer_quickly(lines: JsonLines) -> dict[str, Kind] | None:
    """Return the same from one call of the parser; None where a line is no object or a column has several kinds."""
    if not (len(lines) and is_utf8(lines.data) and lines.are_objects().all()):
        return None
    try:
        return None if _is_wide(lines, 0, len(lines)) else _infer_whole(lines, 0, len(lines))
    except pa.ArrowInvalid:
        return None


def _infer_range(lines: JsonLines, start: int, stop: int) -> dict[str, Kind]:
    if stop - start <= _SMALL or not _is_wide(lines, start, stop):
        try:
            return _infer_whole(lines, start, stop)
        except pa.ArrowInvalid:
            if stop - start <= _SMALL:
                return reduce(_join_kinds, [kinds_of_object(row) for row in _objects(lines, start, stop)], {})
    half = (start + stop) // 2
    return _join_kinds(_infer_range(lines, start, half), _infer_range(lines, half, stop))


def _is_wide(lines: JsonLines, start: int, stop: int) -> bool:
    """Whether the parser would make a cell of each name for each line where most lines have few of the names."""
    return count_names(lines.bytes_of(start, stop)) * (stop - start) > _MOST_CELLS


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


def read_plain(data: bytes, want: Mapping[str, ColumnType]) -> tuple[pa.Table, int] | None:
    """Return the wanted columns of lines, and the number of line ends, where all lines are plain and all values fit."""
    fields = fields_of(data, list(want)) if want else None
    columns = _plain_columns(fields, data, want) if fields is not None else None
    if fields is None or columns is None:
        return None
    table, type_errors = _converted(columns, want)
    return None if type_errors else (table, fields.line_ends)


def read_typed(lines: JsonLines, want: Mapping[str, ColumnType]) -> tuple[pa.Table, dict[int, str]]:
    """Parse to exactly the wanted types; also return, by row index, what is wrong with rows that do not fit."""
    parsed = _read_plain(lines.data, want) if len(lines) and want else []
    if parsed is None:
        parsed = _read_range(lines, 0, len(lines), want)
    bad = {
        start + int(row): first_detail(type_errors, int(row))
        for start, _, type_errors in parsed
        if type_errors
        for row in np.flatnonzero(np.logical_or.reduce([m.mask for m in type_errors]))
    }
    empty = pa.schema([(name, kind.type) for name, kind in want.items()]).empty_table()
    return pa.concat_tables([table for _, table, _ in parsed] or [empty]), bad


def _read_plain(data: bytes, want: Mapping[str, ColumnType]) -> list[_Parsed] | None:
    """Read lines that are plain objects, without a parser; None where one is not, or a value is of another sort."""
    fields = fields_of(data, list(want))
    columns = _plain_columns(fields, data, want) if fields is not None else None
    return None if columns is None else [(0, *_converted(columns, want))]


def _plain_columns(fields: Fields, data: bytes, want: Mapping[str, ColumnType]) -> dict[str, pa.ChunkedArray] | None:
    columns: dict[str, pa.ChunkedArray] = {}
    for name, kind in want.items():
        column = _plain_column(fields, data, name, kind)
        if column is None:
            return None
        columns[name] = pa.chunked_array([column])
    return columns


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


def _read_range(lines: JsonLines, start: int, stop: int, want: Mapping[str, ColumnType]) -> list[_Parsed]:
    try:
        raw = _quick(lines, start, stop, want)
    except pa.ArrowInvalid:
        if stop - start > _SMALL:
            half = (start + stop) // 2
            return _read_range(lines, start, half, want) + _read_range(lines, half, stop, want)
        raw = _slow(lines, start, stop, want)
    return [(start, *_converted(raw, want))]


def _converted(
    raw: Mapping[str, pa.ChunkedArray] | pa.Table, want: Mapping[str, ColumnType]
) -> tuple[pa.Table, list[TypeErrors]]:
    columns, type_errors = {}, []
    for name, kind in want.items():
        columns[name], mask = convert(raw[name], kind)
        if mask is not None:
            type_errors.append(TypeErrors(name, kind, raw[name], mask))
    return pa.table(columns), type_errors


def _quick(lines: JsonLines, start: int, stop: int, want: Mapping[str, ColumnType]) -> pa.Table:
    table = parse_lines(
        lines.bytes_of(start, stop), {name: _parse_as(kind) for name, kind in want.items()}, others=False
    )
    if len(table) != stop - start:
        raise pa.ArrowInvalid("lines that are not one object each")
    return table


def _parse_as(kind: ColumnType) -> pa.DataType:
    """Return the type that the parser gets: text for times, because the parser ignores their zones."""
    if pa.types.is_duration(kind.type):
        return pa.int64()
    if kind.unix_digits is not None:
        return pa.decimal128(38, kind.unix_digits)  # keeps all digits, of numbers and of texts
    texts = (pa.types.is_temporal, pa.types.is_binary)
    return pa.string() if any(matches(kind.type) for matches in texts) else kind.type


def _slow(lines: JsonLines, start: int, stop: int, want: Mapping[str, ColumnType]) -> dict[str, pa.ChunkedArray]:
    rows = _objects(lines, start, stop)
    return {name: texts_of([row.get(name) for row in rows]) for name in want}


def _objects(lines: JsonLines, start: int, stop: int) -> list[dict[str, Any]]:
    return [parse_object(lines.bytes_of(row, row + 1).decode(errors="replace")) for row in range(start, stop)]
