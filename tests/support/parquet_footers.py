"""Footers of Parquet files taken apart and put together again: messages of Thrift's compact protocol, to be damaged."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STRUCT, _LIST, _BINARY, _DOUBLE = 12, 9, 8, 7
NUM_ROWS, ROW_GROUPS = 3, 4
"""Fields of the metadata of a file."""
COLUMNS, GROUP_ROWS = 1, 3
"""Fields of a row group."""
COLUMN_META, NUM_VALUES = 3, 5
"""A field of a column of a row group, and one of that."""

Message = dict[int, tuple[int, Any]]
"""By the number of a field its type and its value: numbers, bytes, messages; lists are the type of items and these."""


def edit(path: Path, change: Callable[[Message], None]) -> None:
    """Let the footer of a file say something else."""
    content = path.read_bytes()
    size = struct.unpack("<I", content[-8:-4])[0]
    footer, _ = _read(content[-8 - size : -8], 0)
    change(footer)
    written = _written(footer)
    path.write_bytes(content[: -8 - size] + written + struct.pack("<I", len(written)) + b"PAR1")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _read(data: bytes, at: int) -> tuple[Message, int]:
    fields: Message = {}
    number = 0
    while kind := data[at] & 15:
        step = data[at] >> 4
        at += 1
        if not step:
            step, at = _varint(data, at)
            step = (step >> 1 ^ -(step & 1)) - number
        number += step
        fields[number] = kind, None
        value, at = _value(kind, data, at)
        fields[number] = kind, value
    return fields, at + 1


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind == _STRUCT:
        return _read(data, at)
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    if kind == _BINARY:
        size, at = _varint(data, at)
        return data[at : at + size], at + size
    if kind != _LIST:
        value, at = _varint(data, at)
        return value >> 1 ^ -(value & 1), at
    size, of = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    items = []
    for _ in range(size):
        item, at = _value(of, data, at)
        items.append(item)
    return (of, items), at


def _written(message: Message) -> bytes:
    found, number = bytearray(), 0
    for each in sorted(message):
        kind, value = message[each]
        kind = (1 if value else 2) if kind in (1, 2) else kind
        step = each - number
        found += bytes([step << 4 | kind]) if 0 < step < 15 else bytes([kind]) + _number(each << 1)
        found += _encoded(kind, value)
        number = each
    return bytes(found) + b"\0"


def _encoded(kind: int, value: Any) -> bytes:
    if kind in (1, 2):
        return b""
    if kind == _STRUCT:
        return _written(value)
    if kind == _DOUBLE:
        return bytes(value)
    if kind == _BINARY:
        return _number(len(value)) + value
    if kind != _LIST:
        return _number(value << 1 ^ value >> 63)
    of, items = value
    head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + _number(len(items))
    return head + b"".join(_encoded(of, item) for item in items)
