"""A report as one HTML page that needs nothing else: no file, no server, no script to be read."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from ....conf.ranges import unit_at
from ...console.amounts import WORDS, count_of
from .page_elements import (
    Element,
    Tick,
    add,
    add_bars,
    add_hidden_table,
    add_json,
    add_plot,
    add_svg,
    add_table,
    add_text,
    as_html,
    axis_ticks,
    bytes_text,
    day_text,
    element,
    log_ticks,
    measure_text,
    place_text,
    safe,
    seconds_text,
    set_attributes,
    share_text,
    time_text,
)
from .report import Calendar, Cell, Distribution, Lane, Lanes, OverTime, Report, Series

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


# A report as one HTML page that needs nothing else: no file, no server, no script to be read.


# The sections of the account, of the phases, and of the job in words.


_MOST = 20
_REASONS = 12


def add_accounts(parent: Element, report: Report) -> None:
    """Add the account of each stage: what became of every row."""
    for name, account in list(report.accounts.items())[:_MOST]:
        figure = add(parent, "figure")
        if len(report.accounts) > 1:
            add(figure, "h3", text=f"Stage {name}")
        whole = account.rows_in + account.carried
        rejected = sorted(account.rejected.items(), key=lambda each: -each[1])[:_REASONS]
        parts = [
            (WORDS["windowed"], account.windowed, "counts"),
            (WORDS["filtered"], account.filtered, "counts"),
            *((f"{WORDS['rejected']}: {reason}", n, "trouble") for reason, n in rejected),
            (WORDS["dropped_at_end"], account.dropped_at_end, "trouble"),
            (WORDS["held"], account.held, "held"),
        ]
        parts = [part for part in parts if part[1] or part[0] == WORDS["windowed"]]
        most = max((n for _, n, _ in parts), default=0) or 1
        rows = [(what, f"{n:,}", share_text(n, whole), n / most, classes) for what, n, classes in parts]
        came = f"{count_of(account.rows_in, 'row')} in"
        came += f" + {account.carried:,} {WORDS['carried']}" if account.carried else ""
        balance = "every row is accounted for" if account.balanced else "this does not balance"
        add_bars(figure, f"{came}: {balance}", rows)
    if len(report.accounts) > _MOST:
        add(parent, "p", "faint", f"{len(report.accounts) - _MOST:,} further stages are not shown.")


def add_phases(parent: Element, report: Report) -> None:
    """Add the seconds of each phase."""
    phases = dict(report.phases)
    total = phases.get("total", 0.0)
    longest = max(phases.values()) or 1
    rows = [
        (name, seconds_text(spent), share_text(spent, total), spent / longest, "held" if name == "total" else "counts")
        for name, spent in report.phases
    ]
    add_bars(parent, "Seconds by phase; phases may run side by side", rows)


def add_job(parent: Element, report: Report) -> None:
    """Add the job in words, its further options, and what it was computed with."""
    words = add(parent, "dl")
    for name, clauses in groupby(report.clauses[:200], lambda clause: clause[0]):
        add(words, "dt", text=name)
        for _, text in clauses:
            add(words, "dd", text=text)
    for text, outcome in report.expectations[:_MOST]:
        add(words, "dt", text="expected")
        add(words, "dd", "" if outcome.startswith("holds") else "trouble", f"{text}: {outcome}")
    for name, head, pairs in (
        ("Further options", ["option", "value"], report.settings[:100]),
        ("Computed with", ["package", "version"], report.made_with),
    ):
        if pairs:
            details = add(parent, "details")
            add(details, "summary", text=name)
            add_table(details, name, head, pairs).set("class", "words")


# The section of counts over time: small pictures above each other along one axis.


_SERIES_HEIGHT, _SERIES_LABEL = 44, 20


def add_over_time(parent: Element, found: OverTime) -> None:
    """Add the section."""
    none = [series.name for series in found.series if not any(series.values)]
    article = ("an " if found.step == "hour" else "a ") if found.step[:1].isalpha() else ""
    text = f"Each bar is {article}{found.step}"
    text += "." if found.axis is None else f" of {found.axis.name}."
    if none:
        text += f" There are no {' and no '.join(none)}."
    add(parent, "p", text=f"{text} {found.apart}".strip())
    figure = add(parent, "figure", "over-time")
    for series in found.series:
        if any(series.values):
            _add_series(figure, series, found)
    axis, size = found.axis, len(found.labels)
    if axis is None:
        first, last = map(str, found.bounds)
        every = range(0, size, max(1, -(-size // 7)))
        ticks = [Tick((at + 0.5) / size, found.labels[at]) for at in every if found.labels[at]]
    else:
        low, high = map(float, found.bounds)
        first, last = place_text(low, axis), place_text(high, axis)
        ticks = axis_ticks(axis, low, high)
    svg = add_svg(figure, "ticks", 18, f"from {first} to {last}")
    for at, tick in enumerate(ticks):
        add_text(svg, tick.share, 13, tick.text, "odd" if at % 2 else "")
    values = np.array([series.values for series in found.series])
    rows = [
        [_label(found, int(at)).removeprefix("from "), *(f"{value:,}" for value in values[:, at])]
        for at in np.flatnonzero(values.any(axis=0))
    ]
    head = [found.step if axis is None else "from", *(series.name for series in found.series)]
    add_hidden_table(figure, "These counts", head, rows)


def _add_series(figure: Element, series: Series, found: OverTime) -> None:
    most, total = max(series.values), sum(series.values)
    is_level = series.name.startswith("rows held")
    words = f"{series.name} " if is_level else f"{series.name}: {total:,}"
    where = _label(found, series.values.index(most))
    svg = add_svg(figure, "series", _SERIES_LABEL + _SERIES_HEIGHT + 4, f"{words}; most {most:,}, {where}")
    add_text(svg, 0, 13, words.strip(), "key trouble" if series.is_trouble else "key")
    add_text(svg, 1, 13, f"most {most:,}, {where}", "faint")
    plot = add_plot(svg, _SERIES_LABEL, _SERIES_HEIGHT, _WIDE)
    add(plot, "path", "ground", d=f"M0 {_SERIES_HEIGHT - 0.5}H{_WIDE}")
    classes = "trouble" if series.is_trouble else "held" if is_level else "counts"
    values = np.array(series.values)
    step = _WIDE / len(values)
    wide = step * (0.86 if step > 3 else 1)
    tall = np.where(values > 0, np.maximum(values / most * (_SERIES_HEIGHT - 1), 1), 0).tolist()
    bars = (_upright(at * step + (step - wide) / 2, _SERIES_HEIGHT - 1, wide, h) for at, h in enumerate(tall) if h)
    add(plot, "path", classes, d="".join(bars))


def _label(found: OverTime, at: int) -> str:
    if found.axis is None:
        return found.labels[at]
    low, high = (float(bound) for bound in found.bounds)
    place = low + (high - low) * at / len(found.series[0].values)
    return f"from {time_text(round(place))}" if found.axis.scale == "time" else f"from {place_text(place, found.axis)}"


# The section of distributions: how long windows are, how many rows they have, and why they ended.


_BAR_HEIGHT = 96
_ZERO = 56
"""Units of width for the bar of zeros, which a logarithmic axis has no place for."""


def add_distributions(parent: Element, report: Report) -> None:
    """Add the section."""
    pair = add(parent, "div", "pair")
    if report.lengths is not None:
        _add_distribution(pair, "Length of windows", report.lengths)
    if report.sizes is not None:
        _add_distribution(pair, "Rows per window", report.sizes)
    if report.reasons:
        whole, most = sum(n for _, n in report.reasons), report.reasons[0][1]
        rows = [(reason, f"{n:,}", share_text(n, whole), n / most, "counts") for reason, n in report.reasons[:20]]
        figure = add(parent, "figure")
        add(figure, "h3", text="Why windows ended")
        add_bars(figure, "Windows by closed_by", rows)


def _add_distribution(pair: Element, name: str, found: Distribution) -> None:
    figure = add(pair, "figure", "distribution")
    add(figure, "h3", text=name)
    unit = found.unit
    if found.least == found.most:
        add(figure, "p", text=f"All {found.count:,} windows: {measure_text(found.most, unit)}.")
        return
    words = ", ".join(
        f"{'median' if percent == 50 else f'{percent} % up to'} {measure_text(_round(value, unit), unit)}"
        for percent, value in found.quantiles
    )
    text = (
        f"{words}; longest {measure_text(found.most, unit)}" if unit != "rows" else f"{words}; most {found.most:,.0f}"
    )
    add(figure, "p", "faint", f"{text}; mean {measure_text(_round(found.total / found.count, unit), unit)}.")
    svg = add_svg(figure, "histogram", _BAR_HEIGHT + 22, f"{name}: {text}")
    zero = [0.0] * bool(found.zeros)  # the bar of zeros stands left of all others
    left, plot = _ZERO if zero else 0, add_plot(svg, 0, _BAR_HEIGHT, _WIDE)
    shares = [_share(found, bar.low) for bar in found.bars] + [1.0] * bool(found.bars)
    edges = [left + share * (_WIDE - left) for share in shares]
    widths = [_ZERO * 0.7 for _ in zero] + [stop - begin for begin, stop in pairwise(edges)]
    counts = [found.zeros for _ in zero] + [bar.count for bar in found.bars]
    densities = [count / wide for count, wide in zip(counts, widths, strict=True)]
    bars = "".join(
        _upright(x, _BAR_HEIGHT - 1, wide * 0.92, max(density / max(densities) * (_BAR_HEIGHT - 2), 1))
        for x, wide, density in zip(zero + edges[:-1], widths, densities, strict=True)
        if density
    )
    add(plot, "path", "counts", d=bars)
    add(plot, "path", "ground", d=f"M0 {_BAR_HEIGHT - 0.5}H{_WIDE}")
    for percent, value in found.quantiles:
        if found.bars and value >= found.bars[0].low:
            x = left + _share(found, value) * (_WIDE - left)
            add(plot, "path", "median" if percent == 50 else "quantile", d=f"M{x:.1f} 0V{_BAR_HEIGHT}")
    begin = left / _WIDE
    if zero:
        add_text(svg, begin * 0.35, _BAR_HEIGHT + 15, "0", edge=0)
    for at, tick in enumerate(log_ticks(unit, found.bars[0].low, found.bars[-1].high) if found.bars else ()):
        share = begin + tick.share * (1 - begin)
        if share > begin + 0.05 or not zero:
            add_text(svg, share, _BAR_HEIGHT + 15, tick.text, "odd" if at % 2 else "")
    head = ["from", "to below", "windows"]
    rows = [["0", "", f"{found.zeros:,}"] for _ in zero]
    rows += [[measure_text(bar.low, unit), measure_text(bar.high, unit), f"{bar.count:,}"] for bar in found.bars]
    add_hidden_table(figure, name, head, rows)


def _round(value: float, unit: str) -> float:
    return value if unit == "rows" and float(value).is_integer() else float(f"{value:.3g}")


def _share(found: Distribution, value: float) -> float:
    low, high = found.bars[0].low, found.bars[-1].high
    return float(np.log(value / low) / np.log(high / low))


def _upright(x: float, base: int, wide: float, tall: float) -> str:
    return f"M{x:.1f} {base}v-{tall:.1f}h{wide:.1f}v{tall:.1f}z"


MOST_BYTES = 2_000_000
MARK = "<!doctype html><!-- report of wincli -->"
"""How a page begins; only a file that begins so is replaced."""


def page_of(report: Report) -> str:
    """Return the page, at most `MOST_BYTES` in UTF-8."""
    page = _page(report)
    while len(page.encode()) > MOST_BYTES and report.lanes is not None:
        lanes = replace(report.lanes, lanes=tuple(lane.halved() for lane in report.lanes.lanes))
        report = replace(report, lanes=lanes)
        page = _page(report)
    return page


def _page(report: Report) -> str:
    style, script = ((files(__package__) / name).read_text("utf-8") for name in ("page.css", "page.js"))
    root = element("html", lang="en")
    head = add(root, "head")
    add(head, "meta", charset="utf-8")
    policy = f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    policy += "; base-uri 'none'; form-action 'none'"
    add(head, "meta", http_equiv="Content-Security-Policy", content=policy)
    add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    add(head, "meta", name="color-scheme", content="light dark")
    add(head, "title", text=f"{report.path}: windows")
    add(head, "link", rel="icon", href="data:,")
    add(head, "style").text = style
    body = add(root, "body")
    main = add(body, "main")
    header = add(main, "header")
    add(header, "p", "kind", {"state": "State", "range": "Results of a range", "result": "Result"}[report.what])
    add(header, "h1", text=report.path)
    add(header, "p", "spec", report.window)
    add(header, "p", "lead", _lead(report))
    if report.notes:
        notes = add(header, "ul", "notes", aria_label="Notes")
        for note in report.notes[:20]:
            add(notes, "li", text=note)
        if len(report.notes) > 20:
            add(notes, "li", text=f"and {len(report.notes) - 20:,} more")

    def section(name: str, heading: str) -> Element:
        made = add(main, "section", id=name, aria_labelledby=f"{name}-heading")
        add(made, "h2", text=heading, id=f"{name}-heading")
        return made

    if report.lanes is not None:
        add_lanes(section("windows", "Windows over time"), report.lanes)
    if report.over_time is not None:
        add_over_time(section("time", "Rows over time"), report.over_time)
    if report.lengths is not None or report.sizes is not None or report.reasons:
        add_distributions(section("distributions", "Distributions"), report)
    if report.calendar is not None:
        add_calendar(section("units", "Units"), report.calendar)
    if report.accounts:
        add_accounts(section("account", "Account of rows"), report)
    if report.phases:
        add_phases(section("phases", "Where the time went"), report)
    add_job(section("job", "The job in words"), report)
    if report.lanes is not None:
        add_json(body, "data", data_of(report.lanes))
        add(body, "script").text = script
    return MARK + as_html(root) + "\n"


def _lead(report: Report) -> str:
    totals = dict(report.totals)
    text = f"{count_of(totals['rows in'], 'row')} of {count_of(totals['input files'], 'file')}"
    text += f" ({bytes_text(totals['input bytes'])})"
    if "windows" in totals:
        text += f" became {count_of(totals['windows'], 'window')}"
        text += f" of {count_of(totals['keys'], 'key')}" if "keys" in totals else ""
    text += f"; {totals['rejected']:,} rows were rejected." if totals["rejected"] else "; no row was rejected."
    if "units" in totals:
        text += f" {count_of(totals['units'], 'unit')}, {count_of(totals['gaps'], 'gap')}."
    if totals.get("open windows"):
        text += f" {count_of(totals['open windows'], 'window')} still open."
    seconds = dict(report.phases).get("total")
    return text if seconds is None else f"{text} It took {seconds_text(seconds)}."


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
