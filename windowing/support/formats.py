"""The table of file formats: their names, the suffixes of file names that stand for them, their reader and encoder.

Everything that asks for a format by its name goes by this table: the options and their help, the job model, the choice
of a reader, of an encoder, and of the format of stdin. A new format is a line here, a reader and an encoder.

Importing this module is cheap: it names the modules of readers and encoders, and `load` imports one where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

Format: TypeAlias = Literal["parquet", "csv", "jsonl", "orc"]
TableFormat: TypeAlias = Literal["delta"]
AnyFormat: TypeAlias = Literal[Format, TableFormat]
"""A format of files, or a kind of table that is named as one."""

_ROOT = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format.

    ``title``: its name in messages.
    ``suffixes``: the suffixes of file names that stand for it.
    ``first_bytes``: content begins with one of these; empty if nothing is known of its first bytes.
    ``is_text``: whether it is lines of text, which may be compressed as a whole and whose column types are inferred.
    ``keeps_types``: whether a result reads back with the types that it was written with.
    ``reader``: the module of its reader: its ``plan_input`` is a `readers.formats.split_rows.PlanInput`, its
        ``column_names`` returns the names of the columns of an open file unless the format is text.
    ``encoder``: the module of its encoder: its ``ENCODER`` is a `writers.formats.encoder.Encoder`.
    ``options``: the input options that only this format has.
    """

    title: str
    suffixes: tuple[str, ...]
    first_bytes: tuple[bytes, ...]
    is_text: bool
    keeps_types: bool
    reader: str
    encoder: str
    options: tuple[str, ...] = ()


def _binary(name: str, title: str, suffixes: tuple[str, ...], first: bytes, *, keeps_types: bool = False) -> FileFormat:
    return FileFormat(title, suffixes, (first,), False, keeps_types, *_modules(name))


def _text(
    name: str, title: str, suffixes: tuple[str, ...], first: tuple[bytes, ...] = (), options: tuple[str, ...] = ()
) -> FileFormat:
    return FileFormat(title, suffixes, first, True, False, *_modules(name), options)


def _modules(name: str) -> tuple[str, str]:
    return f"readers.formats.{name}", f"writers.formats.{name}"


FORMATS: Mapping[Format, FileFormat] = {
    "parquet": _binary("parquet", "Parquet", (".parquet", ".pq"), b"PAR1", keeps_types=True),
    "csv": _text("csv", "CSV", (".csv", ".tsv"), options=("multiline", "delimiter")),
    "jsonl": _text("jsonl", "JSON Lines", (".jsonl", ".ndjson", ".json"), (b"{", b"[")),
    "orc": _binary("orc", "ORC", (".orc",), b"ORC"),
}

TABLE_FORMATS: Mapping[TableFormat, Format] = {"delta": "parquet"}
"""The kinds of table that are named as formats, and the format of their files."""

INTERMEDIATE: Format = "parquet"
"""The format in which a stage writes parts for the next stage."""

FALLBACK: Format = "csv"
"""The format of text whose first bytes are those of no other format."""

SUFFIXES: Mapping[str, Format] = {suffix: name for name, form in FORMATS.items() for suffix in form.suffixes}


def file_format(format: AnyFormat) -> Format:
    """Return a format itself, or that of the files of a kind of table."""
    return TABLE_FORMATS[format] if format == "delta" else format


def load(module: str) -> Any:
    """Import a module of the table and return it."""
    return import_module(f"{_ROOT}.{module}")


def format_of_bytes(first: bytes) -> Format:
    """Return the format of content that begins with ``first``: text may begin with a byte order mark and blanks."""
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    for name, form in FORMATS.items():
        if form.first_bytes and (text if form.is_text else first).startswith(form.first_bytes):
            return name
    return FALLBACK
