"""An explanation as text for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import pyarrow as pa

from ....windowing.errors import shown
from ....windowing.support.redaction import redacted
from ...console.counts import count_of
from ...console.pager import bold
from ...console.table import head_line, lay_out, row_lines, texts_of
from .explanation import Explanation, MissingWindow, ToldRows
from .facts.fact import Fact

_TITLES = {"opened": "opened", "closed": "closed", "near": "close by", "late": "outputs", "other": "also"}
_PLACE = "where"
_INDENT = " " * 11


def explanation_lines(told: Explanation, width: int | None) -> Iterator[str]:
    """Yield the lines that explain a window. ``width``: characters of a line; None: as many as there are."""
    yield bold(_title(told.key, f"window {told.window}"))
    yield from _told("spec", shown(told.spec), width)
    says = ", ".join(f"{name} {text}" for name, text in told.pane.items() if name not in dict(told.key))
    yield from _told("result", shown(says), width)
    for fact in told.facts:
        yield from _told(_TITLES[fact.kind], _sentence(fact), width)
    yield ""
    yield bold(f"its {count_of(len(told.rows.pos), 'row')}")
    yield from _row_lines(told.rows, width)
    if len(told.others.pos):
        yield ""
        yield bold("rows named above that are not in it")
        yield from _row_lines(told.others, width)


def missing_lines(told: MissingWindow, width: int | None) -> Iterator[str]:
    """Yield the lines that say where the rows of a key went. ``width``: as of `explanation_lines`."""
    yield bold(_title(told.key, f"there is no {told.asked}"))
    yield from _told("spec", shown(told.spec), width)
    yield f"  rows     {count_of(told.rows, 'row')} of this key in the input"
    for what, count in told.counts.items():
        yield f"           {count:,} {what}"
    yield f"  windows  {count_of(told.windows, 'window')} came out"
    for fact in told.facts:
        yield from _told(_TITLES[fact.kind], _sentence(fact), width)


def _told(title: str, text: str, width: int | None) -> Iterator[str]:
    """Yield a text behind its title, folded where a terminal has no room for it."""
    room = len(text) + 1 if width is None else max(width - len(_INDENT), 20)
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {title:<8} {lines[0]}"
    yield from (f"{_INDENT}{line}" for line in lines[1:])


def explanation_json(told: Explanation) -> dict[str, Any]:
    """Return an explanation as plain JSON values; of the rows those that are told."""
    return {
        "result": redacted(told.result),
        "spec": told.spec,
        "key": dict(told.key),
        "window": told.window,
        "pane": dict(told.pane),
        "facts": [_fact(each) for each in told.facts],
        "rows": len(told.rows.pos),
        "told": _json_rows(told.rows),
        "others": _json_rows(told.others),
    }


def missing_json(told: MissingWindow) -> dict[str, Any]:
    """Return where the rows of a key went as plain JSON values."""
    return {
        "result": redacted(told.result),
        "spec": told.spec,
        "key": dict(told.key),
        "missing": told.asked,
        "rows": told.rows,
        "windows": told.windows,
        "counts": dict(told.counts),
        "facts": [_fact(each) for each in told.facts],
    }


def _title(key: tuple[tuple[str, str], ...], what: str) -> str:
    of = ", ".join(f"{name}={text}" for name, text in key)
    return shown(f"{what} of {of}" if of else what)


def _sentence(fact: Fact) -> str:
    rule = f" ({fact.rule})" if fact.kind == "closed" and fact.rule is not None else ""
    return shown(f"{fact.text}{rule}")


def _fact(fact: Fact) -> dict[str, Any]:
    return {"kind": fact.kind, "text": fact.text, "row": fact.row, "rule": fact.rule, "numbers": dict(fact.numbers)}


def _row_lines(rows: ToldRows, width: int | None) -> Iterator[str]:
    table = rows.table.add_column(0, _PLACE, pa.array(rows.places, pa.string()))
    layout = lay_out(table, None if width is None else width - 2)
    yield f"  {head_line(layout)}"
    gap = next((at for at in range(1, len(rows.told)) if rows.told[at] != rows.told[at - 1] + 1), None)
    for at, line in enumerate(row_lines(layout, table)):
        if at == gap:
            yield f"  ... {count_of(rows.left_out, 'more row')}; --rows says how many to show"
        yield f"  {line}"


def _json_rows(rows: ToldRows) -> list[dict[str, Any]]:
    names = rows.table.column_names
    texts = [_texts(rows.table, name) for name in names]
    return [
        {"where": place, "arrival": int(rows.pos[at]), "row": dict(zip(names, values, strict=True))}
        for place, at, *values in zip(rows.places, rows.told.tolist(), *texts, strict=True)
    ]


def _texts(table: pa.Table, name: str) -> list[str]:
    found: list[str] = texts_of(table.column(name)).to_pylist()
    return found
