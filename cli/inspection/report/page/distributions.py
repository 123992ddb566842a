"""The section of distributions: how long windows are, how many rows they have, and why they ended."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..report import Distribution, Report
from .elements import Element, add, add_plot, add_svg, add_text, set_attributes
from .quantities import mean_of, measure_text, share_text
from .tables import add_bars, add_hidden_table
from .ticks import log_ticks

_HEIGHT = 96
_WIDE = 1000
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
    add(figure, "p", "faint", f"{text}; mean {measure_text(_round(mean_of(found), unit), unit)}.")
    svg = add_svg(figure, "histogram", _HEIGHT + 22, f"{name}: {text}")
    _add_bars(svg, found)
    _add_ticks(svg, found)
    head = ["from", "to below", "windows"]
    rows = [["0", "", f"{found.zeros:,}"]] if found.zeros else []
    rows += [[measure_text(bar.low, unit), measure_text(bar.high, unit), f"{bar.count:,}"] for bar in found.bars]
    add_hidden_table(figure, name, head, rows)


def _round(value: float, unit: str) -> float:
    """Return a value with three digits that count, where it is not a whole number of rows."""
    if unit == "rows" and float(value).is_integer():
        return value
    return float(f"{value:.3g}")


def _left(found: Distribution) -> float:
    return _ZERO if found.zeros else 0


def _add_bars(svg: Element, found: Distribution) -> None:
    """Add bars whose areas are the counts, since whole numbers make bars of different widths."""
    plot = add_plot(svg, 0, _HEIGHT, _WIDE)
    left, zero = _left(found), _ZERO * 0.7
    edges = [left + share * (_WIDE - left) for share in _shares(found)]
    widths = [zero] * bool(found.zeros) + [stop - begin for begin, stop in pairwise(edges)]
    begins = [0.0] * bool(found.zeros) + edges[:-1]
    counts = [found.zeros] * bool(found.zeros) + [bar.count for bar in found.bars]
    densities = [count / wide for count, wide in zip(counts, widths, strict=True)]
    drawn = zip(begins, widths, densities, strict=True)
    bars = "".join(_bar(x, wide * 0.92, density / max(densities)) for x, wide, density in drawn if density)
    set_attributes(add(plot, "path", "counts"), d=bars)
    add(plot, "path", "ground", d=f"M0 {_HEIGHT - 0.5}H{_WIDE}")
    for percent, value in found.quantiles:
        if found.bars and value >= found.bars[0].low:
            x = left + _share(found, value) * (_WIDE - left)
            add(plot, "path", "median" if percent == 50 else "quantile", d=f"M{x:.1f} 0V{_HEIGHT}")


def _shares(found: Distribution) -> list[float]:
    """Return where bars begin on the logarithmic axis, from 0 to 1, and last where the last one ends."""
    return [_share(found, bar.low) for bar in found.bars] + [1.0] * bool(found.bars)


def _share(found: Distribution, value: float) -> float:
    low, high = found.bars[0].low, found.bars[-1].high
    return float(np.log(value / low) / np.log(high / low))


def _bar(x: float, wide: float, share: float) -> str:
    tall = max(share * (_HEIGHT - 2), 1)
    return f"M{x:.1f} {_HEIGHT - 1}v-{tall:.1f}h{wide:.1f}v{tall:.1f}z"


def _add_ticks(svg: Element, found: Distribution) -> None:
    left = _left(found) / _WIDE
    if found.zeros:
        add_text(svg, left * 0.35, _HEIGHT + 15, "0", edge=0)
    if not found.bars:
        return
    ticks = log_ticks(found.unit, found.bars[0].low, found.bars[-1].high)
    for at, tick in enumerate(ticks):
        share = left + tick.share * (1 - left)
        if share > left + 0.05 or not found.zeros:
            add_text(svg, share, _HEIGHT + 15, tick.text, "odd" if at % 2 else "")
