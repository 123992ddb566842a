"""A report as one HTML page that needs nothing else: no file, no server, no script to be read."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from itertools import groupby, pairwise

import numpy as np

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
    element,
    log_ticks,
    measure_text,
    place_text,
    seconds_text,
    share_text,
    time_text,
)
from .page_lanes import add_calendar, add_lanes, data_of
from .report import Distribution, OverTime, Report, Series

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


_HEIGHT, _LABEL = 44, 20
_WIDE = 1000


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
    svg = add_svg(figure, "series", _LABEL + _HEIGHT + 4, f"{words}; most {most:,}, {where}")
    add_text(svg, 0, 13, words.strip(), "key trouble" if series.is_trouble else "key")
    add_text(svg, 1, 13, f"most {most:,}, {where}", "faint")
    plot = add_plot(svg, _LABEL, _HEIGHT, _WIDE)
    add(plot, "path", "ground", d=f"M0 {_HEIGHT - 0.5}H{_WIDE}")
    classes = "trouble" if series.is_trouble else "held" if is_level else "counts"
    values = np.array(series.values)
    step = _WIDE / len(values)
    wide = step * (0.86 if step > 3 else 1)
    tall = np.where(values > 0, np.maximum(values / most * (_HEIGHT - 1), 1), 0).tolist()
    bars = (_bar(at * step + (step - wide) / 2, _HEIGHT - 1, wide, h) for at, h in enumerate(tall) if h)
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
        _bar(x, _BAR_HEIGHT - 1, wide * 0.92, max(density / max(densities) * (_BAR_HEIGHT - 2), 1))
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


def _bar(x: float, base: int, wide: float, tall: float) -> str:
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
