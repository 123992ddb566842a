"""The columns of an input for shell completion: those of one local file, read from its first line or its schema."""

from __future__ import annotations

import csv
import glob
import gzip
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ...windowing.support.formats import FORMATS, SUFFIXES, load

_UNREADABLE = (OSError, EOFError, ValueError, TypeError, RecursionError, csv.Error)
_LOOKED_AT = 1000  # names, until a file is found in a folder


def columns_of(paths: Sequence[str], delimiter: str | None = None) -> list[str]:
    """Return the columns of the first file of the first input; none where that file cannot be read easily."""
    given = [path for path in paths if not path.lower().endswith((".yaml", ".yml"))]
    if not given or "://" in given[0]:
        return []
    with suppress(*_UNREADABLE):  # a completing shell has no use for an error, and wincli run reports it
        return _columns(_first_file(given[0]), delimiter)
    return []


def _first_file(path: str) -> Path:
    found = Path(path)
    if not found.exists():
        found = Path(min(islice(glob.iglob(path, recursive=True), _LOOKED_AT)))  # noqa: PTH207 - takes absolute paths
    if found.is_file():
        return found
    seen = 0
    for folder, folders, files in os.walk(found):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        for name in sorted(name for name in files if not name.startswith(("_", "."))):
            return Path(folder) / name
        seen += len(folders) + 1
        if seen > _LOOKED_AT:
            break
    raise FileNotFoundError(path)


def _columns(file: Path, delimiter: str | None) -> list[str]:
    suffixes = file.suffixes
    is_gzip = suffixes[-1:] == [".gz"]
    kind = "".join((suffixes[:-1] if is_gzip else suffixes)[-1:])
    form = FORMATS[SUFFIXES[kind]] if kind in SUFFIXES else None
    if form is None:
        return []
    if not form.is_text:
        with file.open("rb") as content:
            names: list[str] = load(form.reader).column_names(content)  # loads pyarrow, which nothing else here needs
            return names
    with gzip.open(file, "rt", encoding="utf-8-sig") if is_gzip else file.open(encoding="utf-8-sig") as text:
        return _of_line(text.readline(1 << 20), kind, delimiter)


def _of_line(line: str, kind: str, delimiter: str | None) -> list[str]:
    if SUFFIXES[kind] == "csv":
        return next(csv.reader([line], delimiter=delimiter or ("\t" if kind == ".tsv" else ",")), [])
    row: dict[str, Any] = json.loads(line)
    return list(row)
