"""The section of counts over time: small pictures above each other along one axis."""

from __future__ import annotations

import numpy as np

from ..report import OverTime, Series
from .elements import Element, add, add_plot, add_svg, add_text
from .quantities import place_text, time_text
from .tables import add_hidden_table
from .ticks import Tick, axis_ticks

_HEIGHT, _LABEL = 44, 20
_WIDE = 1000


def add_over_time(parent: Element, found: OverTime) -> None:
    """Add the section."""
    add(parent, "p", text=_about(found))
    figure = add(parent, "figure", "over-time")
    drawn = [series for series in found.series if any(series.values)]
    for series in drawn:
        _add_series(figure, series, found)
    first, last = _bound_texts(found)
    svg = add_svg(figure, "ticks", 18, f"from {first} to {last}")
    for at, tick in enumerate(_ticks(found)):
        add_text(svg, tick.share, 13, tick.text, "odd" if at % 2 else "")
    head = [found.step if found.axis is None else "from", *(series.name for series in found.series)]
    add_hidden_table(figure, "These counts", head, _rows(found))


def _about(found: OverTime) -> str:
    none = [series.name for series in found.series if not any(series.values)]
    text = f"Each bar is {_article(found.step)}{found.step}"
    text += "" if found.axis is None else f" of {found.axis.name}"
    text += "."
    if none:
        text += f" There are no {' and no '.join(none)}."
    return f"{text} {found.apart}".strip()


def _article(step: str) -> str:
    return ("an " if step == "hour" else "a ") if step[:1].isalpha() else ""


def _add_series(figure: Element, series: Series, found: OverTime) -> None:
    most, total = max(series.values), sum(series.values)
    at = series.values.index(most)
    is_level = series.name.startswith("rows held")
    words = f"{series.name} " if is_level else f"{series.name}: {total:,}"
    where = _label(found, at)
    svg = add_svg(figure, "series", _LABEL + _HEIGHT + 4, f"{words}; most {most:,}, {where}")
    add_text(svg, 0, 13, words.strip(), "key trouble" if series.is_trouble else "key")
    add_text(svg, 1, 13, f"most {most:,}, {where}", "faint")
    plot = add_plot(svg, _LABEL, _HEIGHT, _WIDE)
    add(plot, "path", "ground", d=f"M0 {_HEIGHT - 0.5}H{_WIDE}")
    classes = "trouble" if series.is_trouble else "held" if is_level else "counts"
    add(plot, "path", classes, d=_bars(series, most))


def _bars(series: Series, most: int) -> str:
    values = np.array(series.values)
    step = _WIDE / len(values)
    wide = step * (0.86 if step > 3 else 1)
    tall = np.where(values > 0, np.maximum(values / most * (_HEIGHT - 1), 1), 0)
    return "".join(
        f"M{at * step + (step - wide) / 2:.1f} {_HEIGHT - 1}v-{h:.1f}h{wide:.1f}v{h:.1f}z"
        for at, h in enumerate(tall.tolist())
        if h
    )


def _ticks(found: OverTime) -> list[Tick]:
    if found.axis is not None:
        low, high = (float(bound) for bound in found.bounds)
        return axis_ticks(found.axis, low, high)
    size = len(found.labels)
    every = max(1, -(-size // 7))
    return [Tick((at + 0.5) / size, found.labels[at]) for at in range(0, size, every) if found.labels[at]]


def _label(found: OverTime, at: int) -> str:
    if found.axis is None:
        return found.labels[at]
    low, high = (float(bound) for bound in found.bounds)
    place = low + (high - low) * at / len(found.series[0].values)
    return f"from {time_text(round(place))}" if found.axis.scale == "time" else f"from {place_text(place, found.axis)}"


def _bound_texts(found: OverTime) -> tuple[str, str]:
    if found.axis is None:
        return str(found.bounds[0]), str(found.bounds[1])
    low, high = (float(bound) for bound in found.bounds)
    return place_text(low, found.axis), place_text(high, found.axis)


def _rows(found: OverTime) -> list[list[str]]:
    """Return a row for each step that counts something."""
    values = np.array([series.values for series in found.series])
    return [
        [_label(found, int(at)).removeprefix("from "), *(f"{value:,}" for value in values[:, at])]
        for at in np.flatnonzero(values.any(axis=0))
    ]
