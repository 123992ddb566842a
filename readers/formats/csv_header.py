"""The header of a CSV file: the first record, which names the columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.csv as pcsv

from ..files.byte_ranges import MAX_RECORD, bom_size
from ..files.file import BadContentError
from ..text.record_bounds import Dialect, locate, tally
from ..text.records import Records

_WINDOW = 64 << 10


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a CSV file.

    ``names``: the names of the columns.
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
