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

    ``name``: its name in options. It is also that of two modules: in ``readers.formats`` its reader, whose
        ``plan_input`` is a `readers.formats.split_rows.PlanInput`, and whose ``column_names`` returns the names of the
        columns of an open file unless the format is text; in ``writers.formats`` its encoder, whose ``ENCODER`` is a
        `writers.formats.encoder.Encoder`.
    ``title``: its name in messages.
    ``suffixes``: the suffixes of file names that stand for it.
    ``first_bytes``: content begins with one of these; empty if nothing is known of its first bytes.
    ``is_text``: whether it is lines of text, which may be compressed as a whole and whose column types are inferred.
    ``keeps_types``: whether a result reads back with the types that it was written with.
    ``options``: the input options that only this format has.
    """

    name: Format
    title: str
    suffixes: tuple[str, ...]
    first_bytes: tuple[bytes, ...] = ()
    is_text: bool = False
    keeps_types: bool = False
    options: tuple[str, ...] = ()

    @property
    def reader(self) -> str:
        return f"readers.formats.{self.name}"

    @property
    def encoder(self) -> str:
        return f"writers.formats.{self.name}"


_ROWS = (
    FileFormat("parquet", "Parquet", (".parquet", ".pq"), (b"PAR1",), keeps_types=True),
    FileFormat("csv", "CSV", (".csv", ".tsv"), is_text=True, options=("multiline", "delimiter")),
    FileFormat("jsonl", "JSON Lines", (".jsonl", ".ndjson", ".json"), (b"{", b"["), is_text=True),
    FileFormat("orc", "ORC", (".orc",), (b"ORC",)),
)
FORMATS: Mapping[Format, FileFormat] = {row.name: row for row in _ROWS}

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
