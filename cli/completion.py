"""Shell completion of option values.

It runs for each tab key, so it imports nothing heavy: pyarrow only for the columns of a Parquet file.
"""

from __future__ import annotations

import csv
import glob
import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from typer import Context

from ..windowing.errors import shown
from ..windowing.language.aggregate_names import AGGREGATES
from ..windowing.language.calls import Rule
from ..windowing.language.joins import CLAUSES, HOWS
from ..windowing.language.parser import EVICTIONS, POLICIES, SETTINGS, SLIDING_POLICIES
from ..windowing.support.address import Address
from ..windowing.support.formats import FORMATS, SUFFIXES, load

# The columns of an input for shell completion: those of one local file, read from its first line or its schema.


_UNREADABLE = (OSError, EOFError, ValueError, TypeError, RecursionError, csv.Error)
_LOOKED_AT = 1000  # names, until a file is found in a folder


def columns_of(paths: Sequence[str], delimiter: str | None = None) -> list[str]:
    """Return the columns of the first file of the first input; none where that file cannot be read easily."""
    given = [path for path in paths if not path.lower().endswith((".yaml", ".yml"))]
    if not given or not Address.of(given[0]).is_path:
        return []
    with suppress(*_UNREADABLE):  # a completing shell has no use for an error, and wincli run reports it
        file = _first_file(given[0])
        suffixes = file.suffixes
        is_gzip = suffixes[-1:] == [".gz"]
        kind = "".join((suffixes[:-1] if is_gzip else suffixes)[-1:])
        form = FORMATS[SUFFIXES[kind]] if kind in SUFFIXES else None
        if form is None:
            return []
        if not form.is_text:
            with file.open("rb") as content:
                names: list[str] = load(form.reader).column_names(
                    content
                )  # loads pyarrow, which nothing else here needs
                return names
        with gzip.open(file, "rt", encoding="utf-8-sig") if is_gzip else file.open(encoding="utf-8-sig") as text:
            line = text.readline(1 << 20)
            if SUFFIXES[kind] == "csv":
                return next(csv.reader([line], delimiter=delimiter or ("\t" if kind == ".tsv" else ",")), [])
            row: dict[str, Any] = json.loads(line)
            return list(row)
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


_LAST_WORD = re.compile(r"(.*?)(\w*)", re.DOTALL)
_CLAUSES = {"within": ["every ", "retain ", "with unique "], "retain": ["every ", "with unique "]}
_BEGINNINGS = (
    "sliding, ", "timeInterval, ", "within ", "retain ", "retain all", "partition by ", "match(", "funnel(", "around(",
    "at(",
)  # fmt: skip


def columns(ctx: Context, incomplete: str) -> list[str]:
    """Complete the last of several names of columns."""
    head, comma, last = incomplete.rpartition(",")
    return _shown(_matching(_columns(ctx), head + comma, last))


def aggregates(ctx: Context, incomplete: str) -> list[str]:
    """Complete the name of an aggregate, or the column that it takes."""
    head, last = _split(incomplete)
    if "(" in head:
        return _shown(_matching(_columns(ctx), head, last))
    return _shown(_matching([f"{name}(" for name in AGGREGATES], head, last))


def windows(ctx: Context, incomplete: str) -> list[str]:
    """Complete the next word of a window spec, or the column that a policy takes."""
    head, last = _split(incomplete)
    inside = head.rpartition("(")[2]
    if "(" not in head or ")" in inside:
        return _shown(_matching(_next_words(head.strip().lower()), head, last))
    word = re.findall(r"\w+(?=\()", head)[-1:]
    rule = POLICIES.get(word[0].lower()) if word and not inside.strip() else None
    words = () if rule is None else _columns(ctx) if rule.form.column else rule.form.words
    return _shown(_matching(words, head, last))


def joins(ctx: Context, incomplete: str) -> list[str]:
    """Complete the next clause of a join, or the left's columns behind on and by."""
    head, last = _split(incomplete)
    said = [word for word in re.findall(r"[a-z]+", head.lower()) if word in CLAUSES]
    names = bool(said) and said[-1] in ("on", "by") and head.rstrip().endswith((",", said[-1]))
    if " " not in head.strip() + head[-1:] or "(" in head.rpartition(")")[2]:
        return []
    left = [f"{word} " for word in CLAUSES if word not in said and not (word in HOWS and {*said} & {*HOWS})]
    return _shown(_matching(_columns(ctx) if names else left, head, last))


def _next_words(head: str) -> Iterator[str]:
    if not head:
        yield from _calls(POLICIES)
        yield from _BEGINNINGS
    elif head.startswith(("around", "at")):
        yield from ["within "] if head.startswith("at") and head.endswith(")") else ()
    elif head.endswith(" join"):
        yield from _calls(SLIDING_POLICIES) if head.startswith("sliding") else ("within ", "retain ", "partition by ")
    elif head.startswith("sliding") and " join " in head:
        return
    elif head.startswith("sliding"):
        yield from ["join "] if head.endswith(")") and head.count("(") == 1 else ()
        yield from _calls(SLIDING_POLICIES if head.count("(") < 2 else {})
        yield from ["partitioned", *_calls(EVICTIONS if "(" in head else {})]
    elif head.startswith("timeinterval"):
        yield from [f"{name}(" for name in SETTINGS if name.lower() not in head]
    elif head.partition(" ")[0] in ("within", "retain", "partition"):
        kind = head.partition(" ")[0]
        clauses = _CLAUSES.get(kind, ["within ", "retain ", "with unique "])
        yield from [*clauses, *([] if " join " in head else ["join "])] if " " in head else ()
    else:
        is_match = head.startswith(("match", "funnel"))
        yield from ["within "] if is_match and head.endswith(")") else ()
        grows = head.removeprefix("tumbling").lstrip(" ,").partition("(")[0] in ("time", "calendar")
        yield from ["every "] if grows and head.endswith(")") else ()
        yield from ["partitioned", *(["overlapping"] if is_match else _calls(EVICTIONS))]


def _calls(rules: Mapping[str, Rule[Any]]) -> list[str]:
    return [f"{rules[word].form.name}(" for word in rules]


def _split(incomplete: str) -> tuple[str, str]:
    found = _LAST_WORD.fullmatch(incomplete)
    assert found is not None
    return found[1], found[2]


def _matching(words: Iterable[str], head: str, last: str) -> list[str]:
    return [head + word for word in words if word.lower().startswith(last.lower())]


def _columns(ctx: Context) -> list[str]:
    """Return the columns of IN, if that was typed before; words after the last option are no parameter yet."""
    found = columns_of(ctx.params.get("paths") or ctx.args, ctx.params.get("delimiter"))
    found = [name for name in found if shown(name) == name]  # what a terminal would not show as text
    return [name for name in found if not set(name) & {",", '"'}]  # to be quoted once for wincli as well


def _shown(values: list[str]) -> list[str]:
    """Return values quoted for the shell: bash inserts them unchanged, and ends the word after a single value."""
    words, at = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    if not at.isdigit() or "_TYPER_COMPLETE_ARGS" in os.environ:
        return values
    typed = words[int(at)] if int(at) < len(words) else ""
    if not typed and any("(" in value for value in values):
        values = [f'"{value}' for value in values]
    elif not typed.startswith(("'", '"')):
        values = [re.sub(r"([^\w,.=/])", r"\\\1", value) for value in values]
    is_whole = len(values) != 1 or (values[0].count("(") == values[0].count(")") and not values[0].endswith(" "))
    return values if is_whole else [*values, f"{values[0]}..."]
