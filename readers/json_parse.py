"""Lines of JSON to columns of given types, and the lines that are no rows.

The parser takes a block of lines at once. Where it refuses a block, the lines that are no objects are found
by halving; where a column holds values of several kinds, blocks are halved until they are small, and only
those are gone through value by value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.json as pjson

from readers.casts import convert
from readers.infer import infer
from readers.kinds import BOOL, FLOAT, INT, NOTHING, TEXT, Kind, join, kind_of, kind_of_texts
from readers.portions import Misfits, first_detail
from readers.records import Int64s, Records, locate_lines
from readers.types import ColumnType

_MAX_BLOCK = 2**31 - 1
_HEAD = 64 << 10
_SMALL = 64
_NO_COLUMN = "_wincli_no_column"
_INT64 = range(-(2**63), 2**63)

_Block: TypeAlias = "tuple[int, pa.Table, list[Misfits]]"


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of JSON, none of them blank, and where each is."""

    data: bytes
    records: Records

    def __len__(self) -> int:
        return len(self.records.starts)

    def block(self, start: int, stop: int) -> bytes:
        """Return the bytes of lines ``[start, stop)``."""
        return self.data[self.records.starts[start] : self.records.stops[stop - 1]]


def good_lines(lines: Lines) -> tuple[Lines, Int64s]:
    """Return the lines that are one JSON object each, and the rows of the others, ascending, among all."""
    bad: list[int] = []
    _halve(lines, 0, len(lines), bad)
    torn = np.array(bad, np.int64)
    clean = lines.records.without(lines.data, torn)
    return Lines(clean, locate_lines(clean)[0]), torn


def _halve(lines: Lines, start: int, stop: int, bad: list[int]) -> None:
    if start == stop or _is_rows(lines.block(start, stop), stop - start):
        return
    if stop - start == 1:
        bad.append(start)
        return
    half = (start + stop) // 2
    _halve(lines, start, half, bad)
    _halve(lines, half, stop, bad)


def _is_rows(block: bytes, rows: int) -> bool:
    """Whether every line is one object; what its values are does not matter, for no column is looked at."""
    try:
        return is_utf8(block) and len(_parse(block, {_NO_COLUMN: pa.null()}, others=False)) == rows
    except pa.ArrowInvalid:
        return False


def is_utf8(data: bytes) -> bool:
    """Whether all text is UTF-8, which the parser does not check."""
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parse(block: bytes, types: Mapping[str, pa.DataType], *, others: bool) -> pa.Table:
    """Parse lines; columns that are not in ``types`` are inferred, or left out. A column nobody has is null."""
    return pjson.read_json(
        pa.BufferReader(block),
        pjson.ReadOptions(use_threads=False, block_size=min(len(block) + 1, _MAX_BLOCK)),
        pjson.ParseOptions(
            explicit_schema=pa.schema(list(types.items())) if types else None,
            unexpected_field_behavior="infer" if others else "ignore",
        ),
    )


def infer_lines(lines: Lines) -> dict[str, Kind]:
    """Return the kinds of all columns, in order of first appearance. Every line must be an object."""
    return _infer_block(lines, 0, len(lines)) if len(lines) else {}


def infer_quickly(lines: Lines) -> dict[str, Kind] | None:
    """Return the same at once, None where a line is no object or a column holds several kinds of values."""
    try:
        return _infer_whole(lines, 0, len(lines)) if len(lines) and is_utf8(lines.data) else None
    except pa.ArrowInvalid:
        return None


def _infer_block(lines: Lines, start: int, stop: int) -> dict[str, Kind]:
    try:
        return _infer_whole(lines, start, stop)
    except pa.ArrowInvalid:
        if stop - start <= _SMALL:
            return reduce(_joined, [_kinds_of_object(row) for row in _objects(lines, start, stop)], {})
    half = (start + stop) // 2
    return _joined(_infer_block(lines, start, half), _infer_block(lines, half, stop))


def _infer_whole(lines: Lines, start: int, stop: int) -> dict[str, Kind]:
    beginning = int(np.searchsorted(lines.records.stops[start:stop], lines.records.starts[start] + _HEAD))

    def parse(
        types: Mapping[str, pa.DataType],
        *,
        others: bool = True,
        drop: Collection[str] = (),  # noqa: ARG001 - leaving columns out would hide new ones
        head: bool = False,
    ) -> pa.Table:
        end = start + max(beginning, 1) if head else stop
        table = _parse(lines.block(start, end), types, others=others)
        if len(table) != end - start:
            raise pa.ArrowInvalid("lines that are not one object each")
        return table

    return infer(parse)


def _joined(a: dict[str, Kind], b: dict[str, Kind]) -> dict[str, Kind]:
    return {name: join(a.get(name, NOTHING), b.get(name, NOTHING)) for name in {**a, **b}}


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _objects(lines: Lines, start: int, stop: int) -> list[dict[str, Any]]:
    return [_object(lines.block(row, row + 1).decode(errors="replace")) for row in range(start, stop)]


def _object(text: str) -> dict[str, Any]:
    row = json.loads(text.lstrip("\ufeff"), parse_int=_Number, parse_float=_Number, parse_constant=_Number, strict=False)
    return row if isinstance(row, dict) else {}  # a line ``null`` is a row of nulls


def _kinds_of_object(row: dict[str, Any]) -> dict[str, Kind]:
    return {name: _kind_of_value(value) for name, value in row.items()}


def _kind_of_value(value: Any) -> Kind:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, _Number):
        return INT if value.lstrip("-").isdigit() and int(value) in _INT64 else FLOAT
    if isinstance(value, str):
        return kind_of_texts(pa.chunked_array([pa.array([value])]))
    try:
        return kind_of(_parse(_dumps({"x": value}).encode(), {}, others=True)["x"].type) or NOTHING
    except pa.ArrowInvalid:  # kinds that are mixed inside
        return TEXT


def _dumps(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value with its numbers as numbers."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return json.loads(value) if isinstance(value, _Number) else value


def read_typed(lines: Lines, want: Mapping[str, ColumnType]) -> tuple[pa.Table, dict[int, str]]:
    """Parse to exactly the wanted types; rows with a value that does not fit are named with what is wrong."""
    blocks = _read_block(lines, 0, len(lines), want) if len(lines) else []
    bad = {
        start + int(row): first_detail(misfits, row)
        for start, _, misfits in blocks
        if misfits
        for row in np.flatnonzero(np.logical_or.reduce([m.mask for m in misfits]))
    }
    empty = pa.schema([(name, kind.type) for name, kind in want.items()]).empty_table()
    return pa.concat_tables([table for _, table, _ in blocks] or [empty]), bad


def _read_block(lines: Lines, start: int, stop: int, want: Mapping[str, ColumnType]) -> list[_Block]:
    try:
        raw = _quick(lines, start, stop, want)
    except pa.ArrowInvalid:
        if stop - start > _SMALL:
            half = (start + stop) // 2
            return _read_block(lines, start, half, want) + _read_block(lines, half, stop, want)
        raw = _slow(lines, start, stop, want)
    columns, misfits = {}, []
    for name, kind in want.items():
        columns[name], mask = convert(raw[name], kind)
        if mask is not None:
            misfits.append(Misfits(name, kind, raw[name], mask))
    return [(start, pa.table(columns), misfits)]


def _quick(lines: Lines, start: int, stop: int, want: Mapping[str, ColumnType]) -> pa.Table:
    table = _parse(lines.block(start, stop), {name: _parsed_as(kind) for name, kind in want.items()}, others=False)
    if len(table) != stop - start:
        raise pa.ArrowInvalid("lines that are not one object each")
    return table


def _parsed_as(kind: ColumnType) -> pa.DataType:
    """Return what the parser is asked for: text for times, whose zones it would pass over."""
    times = (pa.types.is_temporal, pa.types.is_binary)
    return pa.string() if any(matches(kind.type) for matches in times) else kind.type


def _slow(lines: Lines, start: int, stop: int, want: Mapping[str, ColumnType]) -> dict[str, pa.ChunkedArray]:
    rows = _objects(lines, start, stop)
    return {name: _column([row.get(name) for row in rows], kind) for name, kind in want.items()}


def _column(values: list[Any], kind: ColumnType) -> pa.ChunkedArray:
    """Return the values as a column of their type where it is nested, else as their texts."""
    if pa.types.is_nested(kind.type):
        try:
            return pa.chunked_array([pa.array([_plain(value) for value in values], kind.type)])
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            pass  # then each value that is of another form is a misfit: text does not cast to it
    return pa.chunked_array([pa.array([_text(value) for value in values], pa.string())])


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, _Number):
        return value
    return value if isinstance(value, str) else _dumps(value)
