"""An explanation of a window, as values: facts in words with their numbers, and rows with their places in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

import numpy as np
import pyarrow as pa

from ....windowing.columns.arrays import Ints
from ....windowing.errors import shown
from ....windowing.support.redaction import redacted
from ...console.amounts import count_of
from ...console.streams import bold
from ...console.table import head_line, lay_out, row_lines, texts_of
from .closing import Fact


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows of the input, of which those at the ends are read.

    ``pos``: int64 (n,), the arrival positions of all of them, in the order of the window.
    ``table``: those that are read, as the input has them, from the first on.
    ``places``: where each of these is: file and line.
    ``at``: int64, which of ``pos`` these are, ascending.
    """

    pos: Ints
    table: pa.Table
    places: tuple[str, ...]
    at: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def left_out(self) -> int:
        return len(self.pos) - len(self.at)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a window is as it is.

    ``result``: the folder of the result.
    ``spec``: the window of the job.
    ``key``: name and value of each key column.
    ``window``: its number.
    ``pane``: what the result says of it, by column, as texts.
    ``facts``: what is known of it.
    ``rows``: its rows.
    ``others``: the rows that facts name and that are not among ``rows``.
    ``also``: the numbers of other windows that hold the time of ``--at``.
    """

    result: str
    spec: str
    key: tuple[tuple[str, str], ...]
    window: int
    pane: Mapping[str, Any]
    facts: tuple[Fact, ...]
    rows: InputRows
    others: InputRows
    also: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingWindow:
    """Where the rows of a key went that has no such window.

    ``result``, ``spec``, ``key``: as of `Explanation`.
    ``window``: the window that it does not have, in words: ``window 7``, ``window at 10:00``.
    ``rows``: how many rows of the key were read.
    ``windows``: how many windows the key has.
    ``counts``: how many of the rows were filtered, rejected (by reason), in windows, dropped at the end, or held.
    ``facts``: what else is known.
    """

    result: str
    spec: str
    key: tuple[tuple[str, str], ...]
    window: str
    rows: int
    windows: int
    counts: Mapping[str, int]
    facts: tuple[Fact, ...]


# An explanation as text for people, and as JSON.


_TITLES = {"opened": "opened", "closed": "closed", "near": "close by", "late": "outputs", "other": "also"}
_PLACE = "where"
_INDENT = " " * 11


def explanation_lines(explanation: Explanation, width: int | None) -> Iterator[str]:
    """Yield the lines that explain a window. ``width``: characters of a line; None: as many as there are."""
    yield bold(_title(explanation.key, f"window {explanation.window}"))
    yield from _folded("spec", shown(explanation.spec), width)
    key = dict(explanation.key)
    says = ", ".join(f"{name} {text}" for name, text in explanation.pane.items() if name not in key)
    yield from _folded("result", shown(says), width)
    for fact in explanation.facts:
        yield from _folded(_TITLES[fact.kind], _sentence(fact), width)
    yield ""
    yield bold(f"its {count_of(len(explanation.rows.pos), 'row')}")
    yield from _row_lines(explanation.rows, width)
    if len(explanation.others.pos):
        yield ""
        yield bold("rows named above that are not in it")
        yield from _row_lines(explanation.others, width)


def missing_lines(missing: MissingWindow, width: int | None) -> Iterator[str]:
    """Yield the lines that say where the rows of a key went. ``width``: as of `explanation_lines`."""
    yield bold(_title(missing.key, f"there is no {missing.window}"))
    yield from _folded("spec", shown(missing.spec), width)
    yield f"  rows     {count_of(missing.rows, 'row')} of this key in the input"
    for what, count in missing.counts.items():
        yield f"           {count:,} {what}"
    yield f"  windows  {count_of(missing.windows, 'window')} came out"
    for fact in missing.facts:
        yield from _folded(_TITLES[fact.kind], _sentence(fact), width)


def _folded(title: str, text: str, width: int | None) -> Iterator[str]:
    room = len(text) + 1 if width is None else max(width - len(_INDENT), 20)
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {title:<8} {lines[0]}"
    yield from (f"{_INDENT}{line}" for line in lines[1:])


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as plain JSON values; of the rows those that are explanation."""
    return {
        "result": redacted(explanation.result),
        "spec": explanation.spec,
        "key": dict(explanation.key),
        "window": explanation.window,
        "pane": dict(explanation.pane),
        "facts": [_fact(each) for each in explanation.facts],
        "rows": len(explanation.rows.pos),
        "shown": _json_rows(explanation.rows),
        "others": _json_rows(explanation.others),
    }


def missing_json(missing: MissingWindow) -> dict[str, Any]:
    """Return where the rows of a key went as plain JSON values."""
    return {
        "result": redacted(missing.result),
        "spec": missing.spec,
        "key": dict(missing.key),
        "missing": missing.window,
        "rows": missing.rows,
        "windows": missing.windows,
        "counts": dict(missing.counts),
        "facts": [_fact(each) for each in missing.facts],
    }


def _title(key: tuple[tuple[str, str], ...], what: str) -> str:
    of = ", ".join(f"{name}={text}" for name, text in key)
    return shown(f"{what} of {of}" if of else what)


def _sentence(fact: Fact) -> str:
    rule = f" ({fact.rule})" if fact.kind == "closed" and fact.rule is not None else ""
    return shown(f"{fact.text}{rule}")


def _fact(fact: Fact) -> dict[str, Any]:
    return {"kind": fact.kind, "text": fact.text, "row": fact.row, "rule": fact.rule, "numbers": dict(fact.numbers)}


def _row_lines(rows: InputRows, width: int | None) -> Iterator[str]:
    table = rows.table.add_column(0, _PLACE, pa.array(rows.places, pa.string()))
    layout = lay_out(table, None if width is None else width - 2)
    yield f"  {head_line(layout)}"
    gap = next((at for at in range(1, len(rows.at)) if rows.at[at] != rows.at[at - 1] + 1), None)
    for at, line in enumerate(row_lines(layout, table)):
        if at == gap:
            yield f"  ... {count_of(rows.left_out, 'more row')}; --rows says how many to show"
        yield f"  {line}"


def _json_rows(rows: InputRows) -> list[dict[str, Any]]:
    names = rows.table.column_names
    texts = [_texts(rows.table, name) for name in names]
    return [
        {"where": place, "arrival": int(rows.pos[at]), "row": dict(zip(names, values, strict=True))}
        for place, at, *values in zip(rows.places, rows.at.tolist(), *texts, strict=True)
    ]


def _texts(table: pa.Table, name: str) -> list[str]:
    found: list[str] = texts_of(table.column(name)).to_pylist()
    return found
