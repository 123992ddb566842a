"""The section of windows over time: a lane of bars for each key, and what the script needs to zoom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..report import Lane, Lanes
from .elements import Element, add, add_plot, add_svg, add_text, safe
from .quantities import place_text
from .tables import add_hidden_table
from .ticks import axis_ticks

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
    _add_controls(figure)
    sheet = add(figure, "div", "sheet", id="sheet", tabindex=0, role="group", aria_label="Windows over time")
    sheet.set("aria-describedby", "lanes-help")
    ticks = add_svg(sheet, "ticks", 20, f"{axis.name} from {place_text(low, axis)} to {place_text(high, axis)}")
    for at, tick in enumerate(axis_ticks(axis, low, high)):
        add_text(ticks, tick.share, 14, tick.text, "odd" if at % 2 else "")
    view = view_of(lanes)
    for at, lane in enumerate(lanes.lanes):
        _add_lane(sheet, at, lane, view)
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
    return {
        "scale": lanes.axis.scale,
        "utc": lanes.axis.is_utc,
        "low": low,
        "high": high,
        "tallest": _tallest(lanes),
        "tracks": tracks_of(lanes),
        "tall": HEIGHT,
        "lanes": [_lane_data(lane, low) for lane in lanes.lanes],
    }


def _lane_data(lane: Lane, low: float) -> Mapping[str, Any]:
    starts = lane.starts - low
    found: dict[str, Any] = {
        "key": safe(lane.key),
        "starts": np.diff(starts, prepend=starts[:1] * 0).tolist(),
        "lengths": (lane.ends - lane.starts).tolist(),
    }
    if lane.sizes is not None:
        found["sizes"] = lane.sizes.tolist()
    if (lane.counts > 1).any():
        found["counts"] = lane.counts.tolist()
    if lane.held is not None:
        found["held"] = [lane.held.start - low, lane.held.end - lane.held.start, lane.held.rows]
    return found


def _about(lanes: Lanes, low: float, high: float) -> str:
    axis, drawn = lanes.axis, len(lanes.lanes)
    chosen = sum(lane.is_chosen for lane in lanes.lanes)
    if lanes.lanes and not lanes.lanes[0].key:
        who = "All windows"
    else:
        measure = "rows" if lanes.is_by_rows else "windows"
        many = f"{lanes.keys:,}" if lanes.keys is not None else "very many"
        busy = drawn - chosen
        words = [f"{chosen} chosen" if chosen == 1 else f"the {chosen} chosen"] if chosen else []
        words += [f"the {busy} with most {measure}" if busy > 1 else f"the one with most {measure}"] if busy else []
        who = (
            f"Windows of {drawn} of {many} keys: {' and '.join(words)}"
            if drawn != lanes.keys
            else "Windows of all keys"
        )
    along = "their numbers" if axis.scale == "window" else axis.name
    text = (
        f"{who}, along {along} from {place_text(low, axis)} to {place_text(high, axis)}. {_bars_text(lanes)}".rstrip()
    )
    if any(lane.held for lane in lanes.lanes):
        text += " Brown bars are rows that the state holds for the next unit."
    if any((lane.counts > 1).any() for lane in lanes.lanes):
        text += " Where a key has too many windows to draw, successive ones share a bar."
    if lanes.missed:
        text += f" Keys are too many to count each: one may have up to {lanes.missed:,} more than was counted."
    return text


def _bars_text(lanes: Lanes) -> str:
    """Return what a bar is."""
    if tracks_of(lanes) > 1:
        return "Windows of a key that overlap stand below each other, and a row counts in each that has it."
    tallest = _tallest(lanes)
    if not tallest:
        return ""
    if lanes.axis.scale == "window":
        return f"A bar is as high as its window has rows, at most {tallest:,}."
    return f"A bar is as long as its window and as high as it has rows, at most {tallest:,}."


def _add_controls(figure: Element) -> None:
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


def _add_lane(sheet: Element, at: int, lane: Lane, view: View) -> None:
    words = f"{lane.windows:,} window{'' if lane.windows == 1 else 's'}"
    words += "" if lane.rows is None else f", {lane.rows:,} row{'' if lane.rows == 1 else 's'}"
    words += "" if lane.held is None else f", {lane.held.rows:,} held"
    name = lane.key or "all rows"
    svg = add_svg(sheet, "lane", _LABEL + HEIGHT + 6, f"{name}: {words}")
    svg.set("data-lane", str(at))
    add_text(svg, 0, 13, name if len(name) <= 60 else name[:59] + "\u2026", "key chosen" if lane.is_chosen else "key")
    add_text(svg, 1, 13, words, "faint")
    plot = add_plot(svg, _LABEL, HEIGHT, _WIDE)
    add(plot, "path", "ground", d=f"M0 {HEIGHT - 0.5}H{_WIDE}")
    add(plot, "path", "held", d=held_path(lane, view))
    add(plot, "path", "windows", d=bars_path(lane, view))
    add(plot, "path", "picked", d="")


@dataclass(frozen=True, slots=True)
class View:
    """What of the axis is drawn.

    ``low``, ``high``: from where to where.
    ``unit``: how far the end of a window reaches beyond its last place.
    ``tallest``: the rows of the highest bar; 0: all have one height.
    ``tracks``: on how many tracks the windows of a key stand.
    """

    low: float
    high: float
    unit: int
    tallest: int
    tracks: int


def view_of(lanes: Lanes) -> View:
    """Return what shows all of some lanes."""
    low, high = extent_of(lanes)
    some = 0.0 if high > low else 0.5
    unit = 1 if lanes.axis.scale == "window" else 0
    return View(low - some, high + some, unit, _tallest(lanes), tracks_of(lanes))


def bars_path(lane: Lane, view: View) -> str:
    """Return the bars of a lane in the units of its plot, each at least 0.8 units wide."""
    if not len(lane.starts):
        return ""
    per = _WIDE / (view.high - view.low)
    begins = (lane.starts - view.low) * per
    wide = np.maximum((lane.ends - lane.starts + view.unit) * per, 0.8)
    wide = np.where(wide > 4, wide - 1, wide)  # so that windows are told from the next ones
    if view.tracks > 1:
        tall = np.full(len(begins), HEIGHT / view.tracks - 0.8)
        tops = (np.arange(len(begins)) % view.tracks) * (HEIGHT / view.tracks)
    else:
        tall = heights_of(lane.sizes, lane.counts, view.tallest)
        tops = HEIGHT - tall
    return "".join(
        f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h-{w:.1f}z"
        for x, y, w, h in zip(begins.tolist(), tops.tolist(), wide.tolist(), tall.tolist(), strict=True)
    )


def held_path(lane: Lane, view: View) -> str:
    """Return the bar of the rows that a state holds of a key."""
    if lane.held is None:
        return ""
    per = _WIDE / (view.high - view.low)
    x, wide = (lane.held.start - view.low) * per, max((lane.held.end - lane.held.start) * per, 0.8)
    tall = min(max(lane.held.rows / view.tallest * HEIGHT, 1.5), HEIGHT) if view.tallest else HEIGHT * 0.6
    return f"M{x:.1f} {HEIGHT - tall:.1f}h{wide:.1f}v{tall:.1f}h-{wide:.1f}z"


def heights_of(sizes: np.ndarray | None, counts: np.ndarray, tallest: int) -> np.ndarray:
    """Return how high bars are: by the rows of their windows, on average where several share a bar."""
    if sizes is None or not tallest:
        return np.full(len(counts), HEIGHT * 0.6)
    return np.maximum(sizes / counts / tallest * HEIGHT, 1.5)


def _tallest(lanes: Lanes) -> int:
    """Return the most rows of a window, on average where several share a bar; 0 where none is known."""
    sizes = [
        float((lane.sizes / lane.counts).max()) for lane in lanes.lanes if lane.sizes is not None and len(lane.sizes)
    ]
    return int(np.ceil(max(sizes, default=0)))


def tracks_of(lanes: Lanes) -> int:
    """Return how many tracks lanes need so that windows of a key that overlap stand below each other, at most six."""
    return max((min(_depth(lane), _TRACKS) for lane in lanes.lanes), default=1)


def _depth(lane: Lane) -> int:
    """Return how many windows are open at once; 1 where they share bars."""
    if (lane.counts > 1).any():
        return 1
    opened = np.arange(1, len(lane.starts) + 1)
    closed = np.searchsorted(np.sort(lane.ends), np.sort(lane.starts), "right")
    return int((opened - closed).max(initial=1))


def _cells(lane: Lane, lanes: Lanes) -> list[str]:
    rows = [f"{lane.rows:,}"] if lanes.is_by_rows and lane.rows is not None else []
    ends = ["", ""]
    if len(lane.starts):
        ends = [place_text(value.item(), lanes.axis) for value in (lane.starts.min(), lane.ends.max())]
    held = [f"{lane.held.rows if lane.held else 0:,}"] if any(each.held for each in lanes.lanes) else []
    return [lane.key or "all rows", f"{lane.windows:,}", *rows, *ends, *held]
