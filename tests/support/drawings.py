"""Drawings of windows in the docs: rows on a time line, and under it the panes that show them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_TIMINGS = ("on_time", "late")


@dataclass(slots=True)
class Pane:
    """The letters of a pane, and what is told of it: values of some columns of the result, as texts."""

    letters: str
    told: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Drawing:
    """A fenced block ``window``.

    A letter is a row, a number above it in the same column is its value, ``-`` is null; ``|`` is a mark. Rows arrive
    from left to right, over all keys. A pane is what stands between ``[`` and ``]``: all panes on one line ``panes``,
    or each on a line ``pane`` of its own, which says behind it why, and when, it came out. There a ``.`` stands under
    a row that the pane passes over.
    """

    place: str
    spec: str = ""
    options: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[int, Any]] = field(default_factory=dict)
    rows: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    marks: list[int] = field(default_factory=list)
    panes: dict[str | None, list[Pane]] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    lone: int = 0

    def __str__(self) -> str:
        return f"{self.place} {self.spec}"


def read(place: str, lines: list[str]) -> Drawing:
    """Read a drawing. Raises `AssertionError` where a pane does not stand under its rows."""
    drawing = Drawing(place)
    ranks = {"pane": 1, "panes": 1, "closed": 2, "bounds": 2}  # rows first, then panes, then what is told of them
    for line in sorted(lines, key=lambda line: ranks.get(re.split("[ :]", line)[0], 0)):
        label, _, rest = line.partition(":")
        word, _, key = label.strip().partition(" ")
        _read_line(drawing, word, key or None, rest, " " * (len(label) + 1) + rest)
    return drawing


def _read_line(drawing: Drawing, word: str, key: str | None, rest: str, line: str) -> None:
    cells = {found.start(): found[0] for found in re.finditer(r"\S+", line)}
    match word:
        case "window":
            drawing.spec = rest.strip()
        case "with":
            drawing.options = dict(pair.split("=") for pair in rest.split())
        case "rows":
            drawing.rows |= {at: (letter, key) for at, letter in cells.items()}
        case "marks":
            drawing.marks = list(cells)
        case "panes":
            drawing.panes[key] = _all_panes(drawing, line)
        case "pane":
            drawing.panes.setdefault(key, []).append(_one_pane(drawing, key, line))
        case "closed":
            _tell(drawing, key, "closed_by", rest.split())
        case "bounds":
            _tell(drawing, key, "bounds", rest.split())
        case "rejected":
            drawing.rejected = dict(entry.split() for entry in rest.split(","))
        case "lone":
            drawing.lone = int(rest)
        case _:
            drawing.values[word] = {at: _value_of(cell) for at, cell in cells.items()}


def _all_panes(drawing: Drawing, line: str) -> list[Pane]:
    _check_letters(drawing, line)
    return [Pane("".join(pane.split())) for pane in re.findall(r"\[([^\]]*)\]", line)]


def _one_pane(drawing: Drawing, key: str | None, line: str) -> Pane:
    found = re.fullmatch(r"[ ]*(\[[^\]]*\])(.*)", line)
    assert found is not None, f"{drawing}: no pane in {line}"
    start, stop = found.span(1)
    _check_letters(drawing, line[:stop])
    letters = re.sub(r"[^\w]", "", found[1])
    for at, (letter, of) in drawing.rows.items():
        if letters and start < at < stop and of == key:
            assert line[at] in (letter, "."), f"{drawing}: nothing says whether the pane shows {letter}"
    return Pane(letters, _describe(found[2].split()))


def _check_letters(drawing: Drawing, line: str) -> None:
    for found in re.finditer(r"\w", line):
        letter, _ = drawing.rows.get(found.start(), ("nothing", None))
        assert letter == found[0], f"{drawing}: {found[0]} stands under {letter}"


def _describe(words: list[str]) -> dict[str, str]:
    """What stands behind a pane: ``closed_by``, then in any order bounds, ``@`` when, timing and index."""
    told = {"closed_by": words[0]}
    for word in words[1:]:
        if word.startswith("@"):
            told["_at"] = word.removeprefix("@")
        else:
            told["bounds" if ".." in word else "timing" if word in _TIMINGS else "index"] = word
    return told


def _tell(drawing: Drawing, key: str | None, column: str, words: list[str]) -> None:
    for pane, word in zip(drawing.panes[key], words, strict=True):
        pane.told[column] = word


def _value_of(cell: str) -> Any:
    words = {"-": None, "T": True, "F": False, "nan": float("nan")}
    if cell in words:
        return words[cell]
    return cell if cell.isalpha() else float(cell) if "." in cell else int(cell)
