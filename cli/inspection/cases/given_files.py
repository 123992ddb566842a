"""The rows of cases as files that the readers read: CSV as it is written, listed rows as JSON Lines."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from ....windowing.errors import ConfigError, printable
from ...console.amounts import count_of
from .case import CsvRows, GivenRows, ListedRows, Rows, Scalar, StoredFile, Value

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def write_rows(rows: GivenRows, folder: Path, name: str, delimiter: str) -> None:
    """Write rows to a file ``name`` in a folder; without a suffix that names a format of text it gets one.

    ``delimiter``: that of the job's CSV. Raises `ConfigError` for a name outside of the folder, for CSV under a name
    of JSON Lines, and for a file that cannot be written.
    """
    try:
        _write(rows, folder, name, delimiter)
    except (OSError, ValueError) as error:  # a name that no file can have is a `ValueError`
        words = error.strerror if isinstance(error, OSError) else error
        what = f"the rows of {printable(name)} cannot be written to a temporary file: {words}"
        raise ConfigError(what, "give the file another name, or name a folder with more room in TMPDIR") from None


def _write(rows: GivenRows, folder: Path, name: str, delimiter: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(f"{name} is not in the input of the case", "name a file below the input")
    if isinstance(rows, StoredFile):
        _copy(Path(rows.path), folder / path)
        return
    form = _SUFFIXES.get(path.suffix.lower())
    if form is None:
        form = "csv" if isinstance(rows, CsvRows) else "jsonl"
        path = path.with_name(f"{path.name}.{form}")
    if form == "jsonl" and isinstance(rows, CsvRows):
        raise ConfigError(f"{name} is JSON Lines, and its rows are CSV", "write its rows as a list of mappings")
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_text(rows, form, "\t" if path.suffix == ".tsv" else delimiter), encoding="utf-8")


def _copy(file: Path, target: Path) -> None:
    """Copy a file under another name with the same endings, which say what it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target.with_name(target.name.partition(".")[0] + "".join(file.suffixes[-2:])))


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


def _text(rows: Rows, form: str, delimiter: str) -> str:
    if isinstance(rows, CsvRows):
        return rows.text.rstrip("\n") + "\n"
    if form == "csv":
        return _as_csv(rows, delimiter)
    return "".join(f"{_json(dict(row))}\n" for row in rows.rows)


def _as_csv(rows: ListedRows, delimiter: str) -> str:
    names = list(dict.fromkeys(name for row in rows.rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    for row in rows.rows:
        writer.writerow([_cell(row.get(name)) for name in names])
    return out.getvalue()


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
