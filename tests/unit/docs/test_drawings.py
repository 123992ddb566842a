"""Every drawing of the docs is run, and every kind of window is drawn."""

from __future__ import annotations

import datetime as dt
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wincli
from support.docs_pages import PAGES, README, ROOT, WINDOWS, fences, place_of
from wincli.windowing.language import spec
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning import plan
from wincli.windowing.rows.panes import CLOSED_BY
from wincli.windowing.rows.projection import project
from wincli.windowing.rows.sequence import one_batch
from wincli.windowing.scan.row_validation import add_late, assess, validate_rows

CASES = ROOT / "tests" / "cases" / "window_drawings.txt"


def drawings() -> list[Any]:
    """The place and the lines of each drawing in the docs and the cases."""
    found = [(f"{place_of(path)}:{at}", lines) for path in (*PAGES, CASES) for at, lines in fences(path, "window")]
    return [pytest.param(place, lines, id=f"{place} {lines[0].partition(':')[2].strip()}") for place, lines in found]


def table_of(drawing: Drawing) -> pa.Table:
    at = sorted(drawing.rows)
    columns = {name: pa.array([values[i] for i in at]) for name, values in drawing.values.items()}
    zero = drawing.options.get("hours")
    if zero:
        order = drawing.options["order"]
        since = dt.datetime.fromisoformat(zero)
        columns[order] = pa.array([since + dt.timedelta(hours=hour.as_py()) for hour in columns[order]])
    letters, keys = zip(*(drawing.rows[i] for i in at), strict=True)
    return pa.table({"letter": letters, "key": pa.array(keys, pa.string()), **columns})


def arguments_of(drawing: Drawing) -> dict[str, Any]:
    """What the line ``with`` says, as arguments of `wincli.aggregate`."""
    given = {name.replace("-", "_"): word for name, word in drawing.options.items() if name != "hours"}
    asked: dict[str, Any] = {name: word == "yes" if word in ("yes", "no") else word for name, word in given.items()}
    asked["order_by"] = [asked.pop("order")] if "order" in asked else None
    if "end" in asked:
        asked["at_end"] = asked.pop("end")
    if "join" in asked:  # the rows of the keys left and right are the sides
        asked |= {"join": f"right by {drawing.options['order']} {asked['join']} where (key = 'right')"}
        asked["where"] = "key = 'left'"
    if "windows" in asked:
        asked["windows"] = windows_of([tuple(map(int, each.split(".."))) for each in asked["windows"].split(",")])
    return asked


def windows_of(bounds: list[Any]) -> dict[str, pa.Table]:
    starts, ends = zip(*bounds, strict=True)
    return {"w from s to e": pa.table({"s": starts, "e": ends})}


def told_in(drawing: Drawing, row: dict[str, Any], column: str) -> str:
    """A value of the result as drawings write it."""
    if column == "bounds":
        return "..".join(told_in(drawing, row, f"window_{side}") for side in ("start", "end"))
    value = row[column]
    if isinstance(value, dt.datetime):
        hours = (value - dt.datetime.fromisoformat(drawing.options["hours"])) / dt.timedelta(hours=1)
        return f"{hours:g}"
    return str(value)


def shown_letters(_: Drawing, pane: list[dict[str, Any]]) -> str:
    return "".join(letter for row in pane for letter in row["letter"] or "")


def shown_rows(drawing: Drawing, pane: list[dict[str, Any]]) -> str:
    """The rows of pairs, once each, in the order of the drawing."""
    shown = {row.get(name) for row in pane for name in ("letter", "right_letter")}
    return "".join(letter for _, (letter, _) in sorted(drawing.rows.items()) if letter in shown)


@pytest.mark.parametrize(("place", "lines"), drawings())
def test_drawing(place: str, lines: list[str]) -> None:
    drawing = read(place, lines)
    table = table_of(drawing)
    asked = arguments_of(drawing)
    gives_rows = asked.get("emit", "aggregates") != "aggregates" or "join" in asked
    result = wincli.aggregate(
        table,
        drawing.spec,
        key=["key"] if None not in drawing.panes else [],
        aggregates=None if gives_rows else ["letter=collect(letter)"],
        marks=[sum(row < mark for row in drawing.rows) for mark in drawing.marks] or None,
        rejected="drop",
        **asked,
    ).to_pylist()
    out = [row for row in result if row["window"] is not None]
    assert len(result) - len(out) == drawing.lone
    for key, expected in drawing.panes.items():
        mine = [
            list(pane) for _, pane in groupby((r for r in out if key is None or r["key"] == key), lambda r: r["window"])
        ]
        shown = shown_rows if "join" in asked else shown_letters
        assert [shown(drawing, pane) for pane in mine] == [pane.letters for pane in expected]
        for pane, (first, *_) in zip(expected, mine, strict=True):
            assert pane.told["closed_by"]
            assert {column: told_in(drawing, first, column) for column in pane.told} == pane.told
    assert rejects(drawing, table) == drawing.rejected


def rejects(drawing: Drawing, table: pa.Table) -> dict[str, str]:
    asked = arguments_of(drawing)
    if "windows" in asked or "join" in asked:
        return {}
    key = ["key"] if None not in drawing.panes else []
    options = Options(event_time=asked.get("event_time"), lag=int(asked.get("lag", 0)), ends=asked.get("ends"))  # type: ignore[arg-type]
    made = plan.make_plan(parse_window(drawing.spec), table.schema, key, asked["order_by"], None, options)
    rows = one_batch(project(made.projection, table, list(made.columns))[0])
    reasons = validate_rows(made, rows)
    if isinstance(made.spec, spec.TimeInterval):
        reasons = add_late(reasons, assess(made, None, rows, np.arange(rows.num_rows)).late)
    if reasons is None:
        return {}
    letters = table["letter"].to_pylist()
    return {letters[i]: reasons[i] for i in np.flatnonzero(reasons != None)}  # noqa: E711


# What is drawn


def specs(*pages: Any) -> Iterator[spec.WindowSpec]:
    for page in pages:
        for at, lines in fences(page, "window"):
            yield parse_window(read(f"{place_of(page)}:{at}", lines).spec)


def kinds(window: spec.WindowSpec) -> set[str]:
    """The kind of a window; a batched one may be of several."""
    match window:
        case spec.Tumbling(policy):
            return {type(policy).__name__}
        case spec.Batched(within, every, retain, retain_all, unique, by):
            forms = {
                "within": within and not (every or retain),
                "within every": within and every,
                "within retain": within and retain,
                "retain": retain and not (within or every or by),
                "retain every": retain and every and not within,
                "retain all": retain_all,
                "with unique": unique,
                "partition by": by,
            }
            return {form for form, there in forms.items() if there}
        case _:
            return {type(window).__name__}


def derived(base: type) -> set[type]:
    return set().union(base.__subclasses__(), *map(derived, base.__subclasses__()))


def all_kinds() -> set[str]:
    tumbling = {policy.__name__ for policy in derived(spec.Policy)} - {"_Rise", "_OnCondition"}
    others = {kind.__name__ for kind in typing.get_args(spec.WindowSpec)} - {"Tumbling", "Batched", "Lasting", "Joined"}
    batched = {"within", "within every", "within retain", "retain", "retain every", "retain all"}
    return tumbling | others | batched | {"with unique", "partition by"}


def test_every_kind_every_pair_of_a_sliding_window_and_every_close_reason_is_drawn() -> None:
    assert set().union(*map(kinds, specs(*WINDOWS))) == all_kinds()
    evictions = typing.get_args(spec.SlidingPolicy)
    pairs = {(type(w.evict), type(w.trigger)) for w in specs(*WINDOWS, CASES) if isinstance(w, spec.Sliding)}
    assert pairs == set(product(evictions, evictions)) | {(spec.Count, spec.When)}
    drawn = [read(*drawing.values) for drawing in drawings()]
    reasons = {pane.told["closed_by"] for drawing in drawn for panes in drawing.panes.values() for pane in panes}
    assert reasons == set(CLOSED_BY)


# The table of the README


SHIFTS = [(12, 17), (16, 24)]


def table_of_the_readme() -> list[Any]:
    """The example and the panes of each row: ``[ab] []``."""
    found = re.findall(r"^\|.*\| `([^`]*)` \| `(\[[^`]*\])` \|$", README.read_text(encoding="utf-8"), re.MULTILINE)
    return [pytest.param(*row, id=row[0]) for row in found]


@pytest.mark.parametrize(("example", "panes"), table_of_the_readme())
def test_panes_in_the_table_of_the_readme(example: str, panes: str) -> None:
    ((at, lines),) = fences(README, "rows")
    of_event_time = isinstance(parse_window(example), spec.TimeInterval)
    joins = isinstance(parse_window(example), spec.Around | spec.At | spec.SideWindows)  # the log with itself
    order = "e" if of_event_time else "t"
    drawing = read(f"README.md:{at}", [f"with: order={order} hours=2026-10-24", *lines])
    windows = None
    if isinstance(parse_window(example), spec.TableWindows):
        since = dt.datetime(2026, 10, 24)
        hours = [(since + dt.timedelta(hours=low), since + dt.timedelta(hours=high)) for low, high in SHIFTS]
        windows = {text.replace("w", "shifts", 1): table for text, table in windows_of(hours).items()}
    result = wincli.aggregate(
        table_of(drawing),
        example,
        windows=windows,
        join="other" if joins else None,
        order_by=None if of_event_time else ["t"],
        event_time="e" if of_event_time else None,
        aggregates=[f"shown=collect({'other_' if joins else ''}letter)"],
        marks=[sum(row < mark for row in drawing.rows) for mark in drawing.marks] if example == "punct()" else None,
    )
    assert " ".join(f"[{''.join(letters or [])}]" for letters in result["shown"].to_pylist()) == panes


def test_the_readme_shows_every_kind() -> None:
    examples = [row.values[0] for row in table_of_the_readme()]
    assert set().union(*(kinds(parse_window(example)) for example in examples)) == all_kinds()
    assert len(re.findall(r"^\| \[.*docs/windows/", README.read_text(encoding="utf-8"), re.MULTILINE)) == len(examples)


# The test is one


COUNTS = ["window:  count(2)", "rows:    a  b  c", "panes:  [a  b][c]", "closed:  count end"]
SLIDES = [
    "window:  sliding, delta(v, 2)",
    "v:       0  3  9  4",
    "rows:    a  b  c  d",
    "pane:      [b]         trigger",
    "pane:         [c]      trigger",
    "pane:         [c  d]   trigger",
]


def test_right_drawings_pass() -> None:
    test_drawing("here", COUNTS)
    test_drawing("here", SLIDES)


@pytest.mark.parametrize(
    "lines",
    [
        [*COUNTS[:2], "panes:  [a]  [b  c]", COUNTS[3]],
        [*COUNTS[:3], "closed:  count count"],
        [*COUNTS[:2], "panes:  [b  a][c]", COUNTS[3]],
        SLIDES[:-1],
        [*SLIDES[:-1], "pane:         [c  .]   trigger"],
        [*SLIDES[:-1], "pane:         [c   ]   trigger"],
        [*SLIDES[:-1], "pane:         [c  d]   end"],
        [*SLIDES[:-1], "pane:         [c  d]   trigger 0..1"],
        [*SLIDES[:-1], "pane:         [c  d]   trigger @1"],
    ],
    ids=lambda lines: lines[-1],
)
def test_a_wrong_drawing_is_noticed(lines: list[str]) -> None:
    with pytest.raises(AssertionError):
        test_drawing("here", lines)


# Drawings of the docs: rows on a time line, and under it the panes that show them


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
