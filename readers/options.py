"""The options of an input (format, types, CSV dialect, order of files) and the parser of ``--schema``.

Importing this module is cheap: it loads neither pyarrow nor numpy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..windowing.errors import Span, SpecError, did_you_mean
from ..windowing.support.formats import AnyFormat
from .values.time_formats import DIRECTIVES, SHORTHANDS, UNIX, FormatError, compile_format, missing_part

SchemaTypes = tuple[tuple[str, str], ...]

TYPE_NAMES = {
    "int": "int64", "int64": "int64", "long": "int64", "int32": "int32",
    "float": "float64", "float64": "float64", "double": "float64", "bool": "bool", "boolean": "bool",
    "string": "string", "date": "date", "timestamp": "timestamp", "timestamp_ns": "timestamp_ns",
    "timestamptz": "timestamptz", "timestamp[tz]": "timestamptz", "decimal": "decimal",
}  # fmt: skip
"""The names of types in a schema text, each with its canonical one."""
_ELSEWHERE = {
    "datetime": "timestamp", "time": "timestamp", "varchar": "string", "text": "string", "str": "string",
    "integer": "int", "bigint": "int", "number": "float", "numeric": "decimal", "real": "float",
}  # fmt: skip
"""The names of types in other tools."""
WITH_FORMAT = ("date", "timestamp", "timestamp_ns", "timestamptz")
MAX_PRECISION = 38
_QUOTED, _PLAIN = re.compile(r'\s*"((?:[^"]|"")*)"\s*:\s*'), re.compile(r"\s*([^:,]*?)\s*:\s*")
_EXAMPLE = "for example timestamp(%d/%m/%y %H:%M), or timestamp(unix) for seconds since 1970"
_REMEDIES = {
    "date": "put date and time into one column, and read it with one format, such as timestamp(%Y-%m-%d %H:%M:%S)",
    "year": "the year is known from nowhere else: write it into the column, and read it with %Y or %y",
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read an input.

    ``format``: the file format; ``auto`` takes it from the file names; or the kind of the table that the input is.
    ``schema``: pairs of column name and canonical type, as `parse_schema` returns them; such a type is never inferred.
    ``multiline``: whether quoted CSV fields may hold line ends. Each file is then one split.
    ``delimiter``: one ASCII character. Files named ``.tsv`` use a tab unless this differs from the default.
    ``file_order``: the arrival order of files: by path, or by modification time and then path.
    ``split_bytes``: the target size of a split, in bytes.
    ``bases``: folders below which names ``NAME=VALUE`` give columns, even where an input path begins deeper.
    ``skip_unreadable``: whether to skip paths that are no files (broken links, FIFOs, sockets, devices) and files
        without read permission.
    ``stdin``: the path of the file that holds standard input; messages and results call that file ``stdin``.
    ``version``: the version of tables, a number or a time in ISO 8601; None: the newest.
    ``limit``: how many rows are read, the first in arrival order; None: all.
    """

    format: Literal["auto", AnyFormat] = "auto"
    schema: SchemaTypes = ()
    multiline: bool = False
    delimiter: str = ","
    file_order: Literal["name", "mtime"] = "name"
    split_bytes: int = 64 << 20
    bases: tuple[str, ...] = ()
    skip_unreadable: bool = False
    stdin: str | None = None
    version: str | None = None
    limit: int | None = None


def parse_schema(text: str) -> SchemaTypes:
    """Parse a schema such as ``"ts:timestamp(%d/%m/%y %H:%M), amount:decimal(10,2)"`` to names and canonical types.

    The user puts names that contain ``:`` or ``,`` in double quotes. Raises `SpecError` with the span of the error.
    """
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        quoted = _QUOTED.match(text, at)
        match = quoted or _PLAIN.match(text, at)
        if match is None or not match[1]:
            end = text.find(",", at)
            span = Span(at, len(text) if end < 0 else end)
            raise SpecError("this is not name:type", text, span, "for example ts:timestamp,amount:float")
        name = match[1].replace('""', '"') if quoted else match[1]
        begin = match.end()
        stop = _type_end(text, begin)
        if name in found:
            raise SpecError(f"column {name!r} is given twice", text, Span(at, stop))
        found[name] = _canonical(text, text[begin:stop].rstrip(), begin)
        at = stop + 1
    if not found or text.rstrip().endswith(","):
        raise SpecError("a column is missing here", text, Span(len(text), len(text)), "write name:type")
    return tuple(found.items())


def _type_end(text: str, at: int) -> int:
    """Return the offset behind the type that begins at ``at``: its comma outside ``( )``, or the end of the text."""
    comma, paren = text.find(",", at), text.find("(", at)
    if paren < 0 or 0 <= comma < paren:
        return len(text) if comma < 0 else comma
    closing = re.compile(r"\)\s*(?=,|$)").search(text, paren)
    if closing is None:
        raise SpecError("this ( is never closed", text, Span(paren, paren + 1))
    return closing.end()


def _canonical(text: str, written: str, begin: int) -> str:
    """Return the canonical form of a type as it is written; ``begin``: its offset in the text."""
    word, paren, rest = written.partition("(")
    argument = rest[:-1]
    name = TYPE_NAMES.get(word.strip().lower())
    if name is None:
        span = Span(begin, max(begin + 1, begin + len(word)))
        elsewhere = _ELSEWHERE.get(word.strip().lower())
        do = f"here it is called {elsewhere}" if elsewhere else did_you_mean(word, TYPE_NAMES)
        raise SpecError(f"unknown type {word.strip()!r}", text, span, do)
    at = begin + len(word) + 1
    if name == "decimal":
        match = re.fullmatch(r"\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?", argument)
        precision, scale = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise SpecError(
                "this decimal has no right precision and scale",
                text,
                Span(begin, begin + len(written)),
                "for example decimal(10,2), at most 38 digits",
            )
        return f"decimal({precision},{scale})"
    if not paren:
        return name
    if name not in WITH_FORMAT:
        raise SpecError(f"{word} takes nothing in ( )", text, Span(at - 1, at + len(argument) + 1))
    if name != "date" and (unit := argument.strip().lower()) in UNIX:
        return f"{name}({unit})"
    _check_format(text, argument, at)
    return f"{name}({argument})"


def _check_format(text: str, layout: str, at: int) -> None:
    try:
        lacks = missing_part(compile_format(layout))
    except FormatError as error:
        known = " ".join(f"%{letter}" for letter in (*DIRECTIVES, *SHORTHANDS))
        span = Span(at + error.at, at + error.at + len(error.directive))
        raise SpecError(str(error), text, span, f"known: {known}") from None
    if not layout.strip():
        raise SpecError("an empty format", text, Span(at - 1, at + 1), _EXAMPLE)
    if lacks is not None:
        part, finer = lacks
        what = f"this format reads a {finer} without a {part}" if finer else "this format reads no date"
        raise SpecError(what, text, Span(at, at + len(layout)), _REMEDIES.get(part, _EXAMPLE) if finer else _EXAMPLE)
