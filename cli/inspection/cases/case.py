"""The cases of a job as values: rows that are given, and the windows and rejects that are expected of them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from ....windowing.errors import ConfigError, printable
from ...console.amounts import count_of


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as the file has it.

    ``kind``: ``string``, ``integer``, ``number`` or ``boolean``, as YAML reads it; ``csv`` for a cell of CSV.
    ``text``: its text.
    """

    kind: str
    text: str


Value: TypeAlias = "Scalar | list[Any] | dict[str, Any] | None"
"""A value of a row: null, a scalar, or lists and mappings of values."""


@dataclass(frozen=True, slots=True)
class CsvRows:
    """Rows as CSV with a line of names.

    ``text``: the CSV.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ListedRows:
    """Rows as a list of mappings.

    ``rows``: each with its values by column.
    """

    rows: tuple[Mapping[str, Value], ...]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Rows in a file.

    ``path``: the file, as its name says in which format.
    """

    path: str


Rows: TypeAlias = CsvRows | ListedRows
GivenRows: TypeAlias = CsvRows | ListedRows | StoredFile


@dataclass(frozen=True, slots=True)
class Part:
    """What is given to one run, and what is expected of it: a whole case, or one unit of it.

    ``label``: the unit of a range; None: there is no range.
    ``line``: where it begins in the file, from 1.
    ``given``: the rows by input or file; the name of rows that are given without one is empty.
    ``tables``: the rows of enrich tables, by the name of the enrichment.
    ``expect``: the windows by stage; the name of those of the job itself is empty. None: they are not compared.
    ``rejects``: the rows that are rejected.
    """

    label: str | None
    line: int
    given: Mapping[str, GivenRows]
    tables: Mapping[str, GivenRows] = field(default_factory=dict)
    expect: Mapping[str, Rows] | None = None
    rejects: Rows = ListedRows(())


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    ``name``: its name.
    ``line``: where it begins in the file, from 1.
    ``parts``: what is given and expected; several where there are units, which run one after the other.
    ``options``: keys that the job has in this case, as flags.
    ``tables``: the rows of enrich tables that all units share, by the name of the enrichment.
    ``error``: a text in the error that the job ends with; None: it does not fail.
    ``is_ordered``: whether windows must come in the order in which they are expected.
    ``checks_expectations``: whether ``expect`` and ``max_rejects`` of the job hold in this case.
    ``tolerance``: how far a float may be from what is expected, as a share of it.
    """

    name: str
    line: int
    parts: tuple[Part, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, GivenRows] = field(default_factory=dict)
    error: str | None = None
    is_ordered: bool = False
    checks_expectations: bool = False
    tolerance: float = 1e-9

    @property
    def is_range(self) -> bool:
        return self.parts[0].label is not None


# The rows of cases as files that the readers read: CSV as it is written, listed rows as JSON Lines.


_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def write_rows(rows: GivenRows, folder: Path, name: str, delimiter: str) -> None:
    """Write rows to a file ``name`` in a folder; without a suffix that names a format of text it gets one.

    ``delimiter``: that of the job's CSV. Raises `ConfigError` for a name outside of the folder, for CSV under a name
    of JSON Lines, and for a file that cannot be written.
    """
    try:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ConfigError(f"{name} is not in the input of the case", "name a file below the input")
        form = _SUFFIXES.get(path.suffix.lower())
        if form is None and not isinstance(rows, StoredFile):
            form = "csv" if isinstance(rows, CsvRows) else "jsonl"
            path = path.with_name(f"{path.name}.{form}")
        if form == "jsonl" and isinstance(rows, CsvRows):
            raise ConfigError(f"{name} is JSON Lines, and its rows are CSV", "write its rows as a list of mappings")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(rows, StoredFile):
            file = Path(rows.path)
            shutil.copyfile(file, target.with_name(target.name.partition(".")[0] + "".join(file.suffixes[-2:])))
        elif isinstance(rows, CsvRows):
            target.write_text(rows.text.rstrip("\n") + "\n", encoding="utf-8")
        elif form == "csv":
            names = list(dict.fromkeys(name for row in rows.rows for name in row))
            with target.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else delimiter, lineterminator="\n")
                writer.writerow(names)
                writer.writerows([_cell(row.get(name)) for name in names] for row in rows.rows)
        else:
            target.write_text("".join(f"{_json(dict(row))}\n" for row in rows.rows), encoding="utf-8")
    except (OSError, ValueError) as error:  # a name that no file can have is a `ValueError`
        words = error.strerror if isinstance(error, OSError) else error
        what = f"the rows of {printable(name)} cannot be written to a temporary file: {words}"
        raise ConfigError(what, "give the file another name, or name a folder with more room in TMPDIR") from None


def csv_rows(rows: CsvRows, delimiter: str) -> tuple[Mapping[str, Value], ...]:
    """Return the rows of CSV by column; an empty cell is null or an empty text, whichever is found.

    Raises `ConfigError` for a line that has not a value for each column.
    """
    try:
        lines = [line for line in csv.reader(io.StringIO(rows.text), delimiter=delimiter) if line]
    except csv.Error as error:
        raise ConfigError(f"rows of a case are no CSV: {error}", "write them as a list of mappings") from None
    head, body = lines[0], lines[1:]
    for line in body:
        if len(line) != len(head):
            what = f"a line of CSV has {count_of(len(line), 'value')}, and not {len(head)}: {delimiter.join(line)}"
            raise ConfigError(what, f"put values with {delimiter} in quotes")
    return tuple({name: Scalar("csv", cell) for name, cell in zip(head, line, strict=True)} for line in body)


def _cell(value: Value) -> str:
    if value is None:
        return ""
    return value.text if isinstance(value, Scalar) else _json(value)


def _json(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, Scalar):
        return _json_scalar(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    pairs = (f"{json.dumps(name, ensure_ascii=False)}: {_json(each)}" for name, each in value.items())
    return "{" + ", ".join(pairs) + "}"


def _json_scalar(value: Scalar) -> str:
    """Return a scalar as JSON: a number keeps its digits; one that JSON cannot write is the text of the file."""
    if value.kind == "boolean":
        return "true" if value.text.lower() in ("true", "yes", "on", "y") else "false"
    if value.kind in ("integer", "number"):
        if _JSON_NUMBER.fullmatch(value.text):
            return value.text
        number = float_of(value.text)
        if number is not None and math.isfinite(number):
            return repr(number)
    return json.dumps(value.text, ensure_ascii=False)


def float_of(text: str) -> float | None:
    """Return the number that a text is; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None
