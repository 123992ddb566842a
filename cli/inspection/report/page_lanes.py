"""The section of windows over time: a lane of bars for each key, and what the script needs to zoom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....conf.ranges import unit_at
from ...console.amounts import count_of
from .page_elements import (
    Element,
    add,
    add_hidden_table,
    add_plot,
    add_svg,
    add_text,
    axis_ticks,
    day_text,
    place_text,
    safe,
    set_attributes,
)
from .report import Calendar, Cell, Lane, Lanes

HEIGHT = 32
"""Units of height of the bars of a lane."""
_LABEL = 18
_TRACKS = 6
_WIDE = 1000
_HELP = (
    "Zoom: drag over a span, hold Ctrl and turn the wheel, or use the keys + and \u2212; "
    "\u2190 and \u2192 move along, 0 shows all, \u2191 and \u2193 choose a key, N and P its next and previous window."
)

_READ = "Point at a window, or press N, to read its times and its rows here."


def add_lanes(parent: Element, lanes: Lanes) -> None:
    """Add the section."""
    low, high = extent_of(lanes)
    axis = lanes.axis
    add(parent, "p", text=_about(lanes, low, high))
    figure = add(parent, "figure", "lanes", id="lanes")
    bar = add(figure, "div", "controls", id="controls", role="group", aria_label="Zoom")
    for name, sign, label in (
        ("left", "\u2190", "Move left"),
        ("right", "\u2192", "Move right"),
        ("in", "+", "Zoom in"),
        ("out", "\u2212", "Zoom out"),
        ("all", "all", "Show all"),
    ):
        add(bar, "button", text=sign, type="button", data_do=name, aria_label=label, title=label)
    add(figure, "p", "help", _HELP, id="lanes-help")
    sheet = add(figure, "div", "sheet", id="sheet", tabindex=0, role="group", aria_label="Windows over time")
    sheet.set("aria-describedby", "lanes-help")
    ticks = add_svg(sheet, "ticks", 20, f"{axis.name} from {place_text(low, axis)} to {place_text(high, axis)}")
    for at, tick in enumerate(axis_ticks(axis, low, high)):
        add_text(ticks, tick.share, 14, tick.text, "odd" if at % 2 else "")
    for at, lane in enumerate(lanes.lanes):
        _add_lane(sheet, at, lane, lanes)
    add(figure, "p", "readout", _READ, id="readout", aria_live="polite")
    head = ["key", "windows", *(["rows"] if lanes.is_by_rows else []), "first begins", "last ends"]
    head += ["rows held"] if any(lane.held for lane in lanes.lanes) else []
    add_hidden_table(figure, "These keys", head, [_cells(lane, lanes) for lane in lanes.lanes])


def extent_of(lanes: Lanes) -> tuple[float, float]:
    """Return from where to where the windows of all lanes reach, and the rows held; (0, 1) without any."""
    end = 1 if lanes.axis.scale == "window" else 0
    filled = [lane for lane in lanes.lanes if len(lane.starts)]
    spans = [(lane.starts.min().item(), lane.ends.max().item() + end) for lane in filled]
    spans += [(lane.held.start, lane.held.end) for lane in lanes.lanes if lane.held]
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else (0, 1)


def data_of(lanes: Lanes) -> dict[str, Any]:
    """Return what the script draws from: starts as steps from the one before, and lengths."""
    low, high = extent_of(lanes)

    def data(lane: Lane) -> dict[str, Any]:
        starts, held = lane.starts - low, lane.held
        return {
            "key": safe(lane.key),
            "starts": np.diff(starts, prepend=starts[:1] * 0).tolist(),
            "lengths": (lane.ends - lane.starts).tolist(),
            **({} if lane.sizes is None else {"sizes": lane.sizes.tolist()}),
            **({"counts": lane.counts.tolist()} if (lane.counts > 1).any() else {}),
            **({} if held is None else {"held": [held.start - low, held.end - held.start, held.rows]}),
        }

    return {
        "scale": lanes.axis.scale,
        "utc": lanes.axis.is_utc,
        "low": low,
        "high": high,
        "tallest": _tallest(lanes),
        "tracks": tracks_of(lanes),
        "tall": HEIGHT,
        "lanes": [data(lane) for lane in lanes.lanes],
    }


def _about(lanes: Lanes, low: float, high: float) -> str:
    axis, drawn = lanes.axis, len(lanes.lanes)
    if lanes.lanes and not lanes.lanes[0].key:
        text = "All windows"
    elif drawn == lanes.keys:
        text = "Windows of all keys"
    else:
        chosen = sum(lane.is_chosen for lane in lanes.lanes)
        busy, measure = drawn - chosen, "rows" if lanes.is_by_rows else "windows"
        words = [f"{chosen} chosen" if chosen == 1 else f"the {chosen} chosen"] if chosen else []
        words += [f"the {busy} with most {measure}" if busy > 1 else f"the one with most {measure}"] if busy else []
        many = f"{lanes.keys:,}" if lanes.keys is not None else "very many"
        text = f"Windows of {drawn} of {many} keys: {' and '.join(words)}"
    along = "their numbers" if axis.scale == "window" else axis.name
    text += f", along {along} from {place_text(low, axis)} to {place_text(high, axis)}."
    if tracks_of(lanes) > 1:
        text += " Windows of a key that overlap stand below each other, and a row counts in each that has it."
    elif tallest := _tallest(lanes):
        high_as = (
            "high as its window has rows" if axis.scale == "window" else "long as its window and as high as it has rows"
        )
        text += f" A bar is as {high_as}, at most {tallest:,}."
    if any(lane.held for lane in lanes.lanes):
        text += " Brown bars are rows that the state holds for the next unit."
    if any((lane.counts > 1).any() for lane in lanes.lanes):
        text += " Where a key has too many windows to draw, successive ones share a bar."
    if lanes.missed:
        text += f" Keys are too many to count each: one may have up to {lanes.missed:,} more than was counted."
    return text


def _add_lane(sheet: Element, at: int, lane: Lane, lanes: Lanes) -> None:
    """Add a lane; its bars are in the units of its plot, each at least 0.8 units wide."""
    words = count_of(lane.windows, "window") + ("" if lane.rows is None else f", {count_of(lane.rows, 'row')}")
    words += "" if lane.held is None else f", {lane.held.rows:,} held"
    name = lane.key or "all rows"
    svg = add_svg(sheet, "lane", _LABEL + HEIGHT + 6, f"{name}: {words}")
    svg.set("data-lane", str(at))
    add_text(svg, 0, 13, name if len(name) <= 60 else name[:59] + "\u2026", "key chosen" if lane.is_chosen else "key")
    add_text(svg, 1, 13, words, "faint")
    low, high = map(float, extent_of(lanes))
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    per, tallest, tracks = _WIDE / (high - low), _tallest(lanes), tracks_of(lanes)
    held = ""  # the bar of the rows that a state holds of the key
    if lane.held is not None:
        x, wide = (lane.held.start - low) * per, max((lane.held.end - lane.held.start) * per, 0.8)
        tall = min(max(lane.held.rows / tallest * HEIGHT, 1.5), HEIGHT) if tallest else HEIGHT * 0.6
        held = _bar(x, HEIGHT - tall, wide, tall)
    unit = 1 if lanes.axis.scale == "window" else 0  # how far the end of a window reaches beyond its last place
    begins, wides = (lane.starts - low) * per, np.maximum((lane.ends - lane.starts + unit) * per, 0.8)
    wides = np.where(wides > 4, wides - 1, wides)  # so that windows are told from the next ones
    if tracks > 1:
        talls = np.full(len(begins), HEIGHT / tracks - 0.8)
        tops = (np.arange(len(begins)) % tracks) * (HEIGHT / tracks)
    else:
        talls = np.full(len(begins), HEIGHT * 0.6)
        if lane.sizes is not None and tallest:  # the rows of a window, on average where several share a bar
            talls = np.maximum(lane.sizes / lane.counts / tallest * HEIGHT, 1.5)
        tops = HEIGHT - talls
    windows = "".join(map(_bar, begins.tolist(), tops.tolist(), wides.tolist(), talls.tolist()))
    plot = add_plot(svg, _LABEL, HEIGHT, _WIDE)
    add(plot, "path", "ground", d=f"M0 {HEIGHT - 0.5}H{_WIDE}")
    for classes, path in (("held", held), ("windows", windows), ("picked", "")):
        add(plot, "path", classes, d=path)


def _bar(x: float, y: float, wide: float, tall: float) -> str:
    return f"M{x:.1f} {y:.1f}h{wide:.1f}v{tall:.1f}h-{wide:.1f}z"


def _tallest(lanes: Lanes) -> int:
    """Return the most rows of a window, on average where several share a bar; 0 where none is known."""
    sizes = [
        float((lane.sizes / lane.counts).max()) for lane in lanes.lanes if lane.sizes is not None and len(lane.sizes)
    ]
    return int(np.ceil(max(sizes, default=0)))


def tracks_of(lanes: Lanes) -> int:
    """Return how many tracks lanes need so that windows of a key that overlap stand below each other, at most six."""
    depths = [1]
    for lane in lanes.lanes:
        if not (lane.counts > 1).any():  # bars that windows share do not overlap
            opened = np.arange(1, len(lane.starts) + 1)
            closed = np.searchsorted(np.sort(lane.ends), np.sort(lane.starts), "right")
            depths.append(int((opened - closed).max(initial=1)))
    return min(max(depths), _TRACKS)


def _cells(lane: Lane, lanes: Lanes) -> list[str]:
    rows = [f"{lane.rows:,}"] if lanes.is_by_rows and lane.rows is not None else []
    ends = ["", ""]
    if len(lane.starts):
        ends = [place_text(value.item(), lanes.axis) for value in (lane.starts.min(), lane.ends.max())]
    held = [f"{lane.held.rows if lane.held else 0:,}"] if any(each.held for each in lanes.lanes) else []
    return [lane.key or "all rows", f"{lane.windows:,}", *rows, *ends, *held]


# The section of units: a calendar of what is done, missing, run again, and held.


_LARGE, _SMALL = 46, 14
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_LARGE = 140
_SHADES = 4


@dataclass(frozen=True, slots=True)
class Grid:
    """Where cells stand.

    ``columns``: their number; ``heads``: column to its label.
    ``rows``: the label of each row.
    ``places``: (row, column) of each cell.
    ``is_large``: whether cells have room for words.
    ``apart``: how many rows are a block, which stands apart from the next; 0: all rows are one.
    """

    columns: int
    heads: Mapping[int, str]
    rows: Sequence[str]
    places: Sequence[tuple[int, int]]
    is_large: bool
    apart: int = 0

    def y(self, row: int) -> int:
        """Return where a row begins, in pixels below the heads."""
        return row * (_LARGE if self.is_large else _SMALL) + (row // self.apart * 8 if self.apart else 0)


def add_calendar(parent: Element, calendar: Calendar) -> None:
    """Add the section."""
    cells, grid = calendar.cells, _grid(calendar)
    done, redone, gaps = (sum(getattr(cell, name) for cell in cells) for name in ("done", "redone", "gaps"))
    words = [f"{count_of(done + redone, calendar.unit)} done"]
    words += [f"{redone:,} of them {calendar.again}"] if redone else []
    words += [f"{gaps:,} without input"] if gaps else []
    about = ", ".join(words) + ("." if len(cells) < 2 else f", from {cells[0].label} to {cells[-1].label}.")
    about += f" A cell is a {calendar.kind}." if calendar.kind != calendar.unit else ""
    about += f" {calendar.hidden:,} earlier cells are not shown." if calendar.hidden else ""
    add(parent, "p", text=about)
    figure = add(parent, "figure", "calendar")
    _add_grid(figure, calendar, grid, about)
    known = (
        ("s3", "done; the stronger, the more rows came in", True),
        ("redone", calendar.again, any(cell.redone for cell in cells)),
        ("gap", "no input", any(cell.gaps and not cell.is_done for cell in cells)),
        ("s2 some", "some units have no input", any(cell.gaps and cell.done for cell in cells)),
        ("held", "rows held, as long as the bar", grid.is_large and any(cell.held for cell in cells)),
        ("trouble", "has late rows", any(cell.late for cell in cells)),
    )
    legend = add(figure, "p", "legend")
    for classes, meaning, is_there in known:
        if is_there:
            entry = add(legend, "span")
            swatch = add(entry, "svg", width=14, height=14, aria_hidden="true")
            if classes == "trouble":
                add(swatch, "circle", classes, cx=7, cy=8, r=3)
            elif classes == "held":
                add(swatch, "rect", classes, x=1, y=6, width=12, height=4)
            else:
                shade = "s2 redone" if classes == "redone" else classes
                add(swatch, "rect", f"cell {shade}", x=1, y=2, width=12, height=11)
            add(entry, "span", text=meaning)
    head = [calendar.kind, "state", "rows in", calendar.out, "late", "other rejects", "held"]
    rows = []
    for cell in cells:
        states = ((cell.done, "done"), (cell.redone, "redone"), (cell.gaps, "gap"))
        counts = (cell.rows_in, cell.out, cell.late, cell.rejected, cell.held)
        state = ", ".join(word if n == 1 else f"{n} {word}" for n, word in states if n)
        rows.append([cell.label, state, *(f"{n:,}" if cell.is_done else "" for n in counts)])
    add_hidden_table(figure, "Units", head, rows)


def _grid(calendar: Calendar) -> Grid:
    cells, kind = calendar.cells, calendar.kind
    first = cells[0].ordinal if cells else 0
    if kind == "day":
        days = [divmod(cell.ordinal + 3, 7) for cell in cells]  # 1970-01-01 is a Thursday
        first_week, last_week = days[0][0], days[-1][0]
        if cells[-1].ordinal - first < _MOST_LARGE:
            labels = [day_text(unit_at(week, "week").label) for week in range(first_week, last_week + 1)]
            return Grid(7, dict(enumerate(_DAYS)), labels, [(week - first_week, day) for week, day in days], True)
        years = range((last_week - first_week) // 53 + 1)  # blocks of 53 weeks
        labels = [
            unit_at(first_week + year * 53, "week").label[:7] if day == 0 else "" for year in years for day in range(7)
        ]
        places = [((week - first_week) // 53 * 7 + day, (week - first_week) % 53) for week, day in days]
        return Grid(53, {}, labels, places, False, 7)
    columns = {"hour": 24, "week": 52, "run": 10 if len(cells) <= 60 else 50}[kind]
    base = first - first % columns if kind == "hour" else first
    places = [divmod(cell.ordinal - base, columns) for cell in cells]
    rows = [""] * (places[-1][0] + 1)
    for cell, (row, _) in zip(reversed(cells), reversed(places), strict=True):
        day = cell.label.partition("T")[0]
        rows[row] = day_text(day) if kind == "hour" else day[:7]
        if kind == "run":
            rows[row] = cell.label.removeprefix("run-").lstrip("0")[:7]
    heads = {at: f"{at:02}" for at in range(0, 24, 6)} if kind == "hour" else {}
    return Grid(columns, heads, rows, places, kind == "run" and len(cells) <= 60)


def _add_grid(figure: Element, calendar: Calendar, grid: Grid, about: str) -> None:
    tall = _LARGE if grid.is_large else _SMALL
    top = 16 if grid.heads else 0
    label = 13.0 if grid.is_large or calendar.kind == "hour" else 9.0  # percent of the width for labels of rows
    wide = (100 - label) / grid.columns
    svg = add_svg(figure, "units", top + grid.y(len(grid.rows)) + 2, about)
    for column, text in grid.heads.items():
        add(svg, "text", "faint", text, x=f"{label + column * wide:.2f}%", y=11)
    for row, text in enumerate(grid.rows):
        add(svg, "text", "faint", text, x=0, y=top + grid.y(row) + 11)
    busiest, fullest = (
        max((getattr(cell, name) for cell in calendar.cells), default=0) for name in ("rows_in", "held")
    )
    for cell, (row, column) in zip(calendar.cells, grid.places, strict=True):
        y, inner = top + grid.y(row), 0.97 if grid.is_large else 0.88

        def at(share: float, left: float = label + column * wide) -> str:
            return f"{left + share * wide:.2f}%"

        shade = 0 if not busiest else min(_SHADES, -(-cell.rows_in * _SHADES // busiest))
        edge = " redone" if cell.redone else " some" if cell.gaps else ""
        square = add(svg, "rect", f"cell s{shade}{edge}" if cell.is_done else "cell gap")
        set_attributes(square, x=at(0), y=y + 1, width=f"{wide * inner:.2f}%", height=tall - 3)
        add(square, "title", text=f"{cell.label}: {_words(cell, calendar.again)}")
        if cell.late:
            x, below, radius = (0.88, 27, 3) if grid.is_large else (0.7, 7, 2)
            add(svg, "circle", "trouble", cx=at(x), cy=y + below, r=radius)
        if not grid.is_large:
            continue
        add(svg, "text", "day", cell.label[8:] if len(cell.label) == 10 else cell.label[-3:], x=at(0.05), y=y + 14)
        if not cell.is_done:
            add(svg, "text", "faint", "gap", x=at(0.05), y=y + 30)
            continue
        add(svg, "text", "", f"{cell.rows_in:,}", x=at(0.05), y=y + 31)
        if cell.redone:
            add(svg, "text", "again", "\u21bb", x=at(0.9), y=y + 15, text_anchor="end")
        if cell.held:
            bar = add(svg, "rect", "held", x=at(0), y=y + tall - 6, height=4)
            set_attributes(bar, width=f"{wide * (inner * cell.held / fullest):.2f}%")


def _words(cell: Cell, again: str) -> str:
    states = ((cell.done, "done", "done"), (cell.redone, again, again), (cell.gaps, "gap", "gaps"))
    parts = [one if n == 1 else f"{n} {several}" for n, one, several in states if n]
    parts += [f"{cell.rows_in:,} rows in"] if cell.is_done else []
    rows = ((cell.late, "late"), (cell.rejected, "rejected"), (cell.held, "held"))
    return ", ".join([*parts, *(f"{n:,} {word}" for n, word in rows if n)])
