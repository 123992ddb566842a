"""Read ORC: the driver reads all footers, and a split is one or more adjacent stripes.

pyarrow gives the rows of a stripe only after reading one of its columns, and no statistics. Both are in the footer, a
message of Protocol Buffers that pyarrow hands out; the few fields of it that are needed are read here.

A timestamp without zone is the wall clock of the writer, whatever its zone was; one with zone is an instant, in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import orc

from ...windowing.errors import InputError
from ...windowing.ports import Split
from ..files.file import BadContentError, Located, input_errors
from .columnar import Footer, check_counts, check_names, divide, plain_schema, plan_columnar, typed_rows
from .split_rows import FormatReader, ReadRequest, SplitRows

_Message: TypeAlias = "dict[int, list[int | bytes]]"
"""The fields of a message by number: integers, or the bytes of texts and of messages inside."""

_TAIL_FOOTER = 2
_STRIPES, _TYPES, _ROWS, _STATISTICS = 3, 4, 6, 7  # fields of the footer
_STRIPE_BYTES, _STRIPE_ROWS = 3, 5
_TYPE_KIND, _SUBTYPES = 1, 2
_VALUES, _OF_TEXTS, _OF_BYTES, _OF_TIMESTAMPS = 1, 4, 8, 9  # fields of the statistics of a column
_SUM_OF_TEXTS, _SUM_OF_BYTES = 3, 1
_TIMES_IN_UTC, _TIMES = (3, 4), (1, 2)  # least and greatest, in milliseconds; older writers have only the second
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 4, 6: 8, 7: 4, 8: 4, 9: 8, 10: 4, 11: 4, 14: 16, 15: 4, 16: 4, 17: 4, 18: 8}
"""The bytes of a value in memory, without those of its text, by kind of type."""
_FARTHEST = (2**63 - 1) // 10**6  # milliseconds from 1970 that a timestamp in nanoseconds reaches


def column_names(file: IO[bytes]) -> list[str]:
    """Return the names of the columns of an open file."""
    return list(orc.ORCFile(file).schema.names)


@dataclass(frozen=True, slots=True)
class OrcReader(FormatReader):
    """The `FormatReader` of ORC; ``place`` of a split is its first row in the file, then its stripes."""

    columnar: ClassVar[bool] = True

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:
        if not request.types:
            return SplitRows(pa.table({}), np.arange(split.rows, dtype=np.int64))
        with _open(place) as file:
            _check_times(place, file, list(request.types))
            stripes = split.place[1:]
            names = list(request.types)
            wanted = None if any("." in name for name in names) else names
            schema = pa.schema([file.schema.field(name) for name in names])
            batches = [file.read_stripe(stripe, columns=wanted).select(names) for stripe in stripes]
            raw = pa.Table.from_batches(batches, None if batches else schema)
        check_counts(place, {"its footer names": split.rows, "its stripes have": len(raw)})
        texts = [name for name in request.dictionary if name in request.types]
        for name in texts:
            raw = raw.set_column(raw.column_names.index(name), name, raw[name].dictionary_encode().unify_dictionaries())
        return typed_rows(raw, split, request, texts)

    def parts_of(self, place: Located, split: Split) -> Sequence[Split]:
        with _open(place) as file:
            stripes = _messages(_tail(file), _STRIPES)
        return divide(split, [_number(stripes[at], _STRIPE_ROWS) for at in split.place[1:]])


@contextmanager
def _open(place: Located) -> Iterator[orc.ORCFile]:
    with input_errors(place.shown, " as ORC"), place.open_file() as source:
        try:
            yield orc.ORCFile(source)
        except (UnicodeDecodeError, IndexError) as error:  # in a damaged footer
            raise BadContentError(
                "cannot be read as ORC: its footer is damaged", "it may be cut short or of another format"
            ) from error


def _footer(place: Located) -> Footer:
    with _open(place) as file:
        check_names(place, file.schema.names)
        for field in file.schema:
            if _has_union(field.type):
                what = f"column {field.name!r} of {place.shown} is of a union type, which has no form in wincli"
                raise InputError(what, "write it as a struct, or leave it out")
        tail = _tail(file)
        groups = tuple(_groups(tail))
        told = {"its footer names": _number(tail, _ROWS), "its stripes have": sum(rows for rows, _ in groups)}
        if whole := _messages(tail, _STATISTICS)[:1]:
            told["its statistics count"] = _number(whole[0], _VALUES)
        check_counts(place, told)
        return Footer(plain_schema(file.schema), groups)


plan_input = plan_columnar(OrcReader(), _footer)
"""The `PlanInput` of ORC: raises `InputError` also for a file with a column of a union type."""


def _groups(tail: _Message) -> Iterator[tuple[int, int]]:
    stripes = _messages(tail, _STRIPES)
    rows = sum(_number(stripe, _STRIPE_ROWS) for stripe in stripes)
    total = 0
    for column, statistics in zip(_messages(tail, _TYPES), _messages(tail, _STATISTICS), strict=False):
        total += _WIDTHS.get(_number(column, _TYPE_KIND), 0) * _number(statistics, _VALUES)
        for part, sum_of in ((_OF_TEXTS, _SUM_OF_TEXTS), (_OF_BYTES, _SUM_OF_BYTES)):
            total += sum(_signed(_number(lengths, sum_of)) for lengths in _messages(statistics, part))
    nbytes = total
    for stripe in stripes:
        own = _number(stripe, _STRIPE_ROWS)
        yield own, max(_number(stripe, _STRIPE_BYTES), nbytes * own // max(1, rows))


def _has_union(kind: pa.DataType) -> bool:
    if pa.types.is_union(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_union(kind.field(at).type) for at in range(kind.num_fields))


def _check_times(place: Located, file: orc.ORCFile, names: Sequence[str]) -> None:
    """Raise `InputError` where a time is out of the range of nanoseconds: some versions of Arrow wrap around."""
    tail = _tail(file)
    statistics = _messages(tail, _STATISTICS)
    message = _messages(tail, _TYPES)[0]
    firsts: list[int] = []  # one by one, or packed
    for value in message.get(_SUBTYPES, ()):
        if isinstance(value, int):
            firsts.append(value)
            continue
        at = 0
        while at < len(value):
            each, at = _varint(value, at)
            firsts.append(each)
    for name, first, end in zip(file.schema.names, firsts, [*firsts[1:], len(statistics)], strict=True):
        times = (message for own in statistics[first:end] for message in _messages(own, _OF_TIMESTAMPS))
        if name in names and any(map(_is_far, times)):
            what = f"column {name!r} of {place.shown} holds a timestamp outside 1677-09-21 to 2262-04-11"
            raise InputError(f"{what}, which has no form in nanoseconds, as ORC is read", "write it as Parquet")


def _is_far(times: _Message) -> bool:
    bounds = _TIMES_IN_UTC if _TIMES_IN_UTC[0] in times else _TIMES
    return any(abs(_signed(_number(times, at))) > _FARTHEST for at in bounds)


def _tail(file: orc.ORCFile) -> _Message:
    return _messages(_parse(file.reader.serialized_file_tail()), _TAIL_FOOTER)[0]


def _parse(data: bytes) -> _Message:
    fields: _Message = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            fields.setdefault(key >> 3, []).append(value)
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        if size is None:
            size, at = _varint(data, at)
        fields.setdefault(key >> 3, []).append(data[at : at + size])
        at += size
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1


def _messages(message: _Message, number: int) -> list[_Message]:
    return [_parse(each) for each in message.get(number, ()) if isinstance(each, bytes)]


def _number(message: _Message, number: int) -> int:
    value = message.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)
