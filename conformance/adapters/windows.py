"""The windows of one log as queries, one for each kind."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from wincli.conformance.kit import CannotSayError
from wincli.windowing.language import clock_policies as clocks
from wincli.windowing.language import conditions, spec
from wincli.windowing.language import row_policies as rows
from wincli.windowing.language.enrichment import parse_windows

from .query import Query
from .reading import BREAKS

TIES = "a frame by range holds later rows of the same instant, too"


def of_window(query: Query, window: Any) -> str:
    """The last part of the query of a window over ``rows_``. Raises `CannotSayError`."""
    case = query.case
    if case.spec.get("group_by") and not isinstance(window, spec.Tumbling):
        raise CannotSayError("groups of panes that overlap")
    match window:
        case spec.Tumbling() if "ends" in case.spec:
            return _lasting(query)
        case spec.Tumbling():
            return _tumbling(query)
        case spec.TimeInterval():
            if window.discard_age or "lag" in case.spec or "min_gap" in case.spec:
                raise CannotSayError("watermarks")
            return _cells(query, window.duration, window.period, window.offset)
        case spec.Sliding():
            return _sliding(query, window)
        case spec.Batched():
            return _batched(query, window)
        case spec.TableWindows():
            return _table(query)
    return query.dialect.pattern(query, window)


def _tumbling(query: Query) -> str:
    (first, *others) = policies = query.asked.policies
    if isinstance(first, clocks.Growing):
        if not isinstance(first.window, clocks.Time) or query.asked.is_right:
            raise CannotSayError("local days that come out as they grow, or steps closed on the right")
        return query.dialect.growing(query, first.window.seconds, first.every)
    if isinstance(first, clocks.Cron):
        raise CannotSayError("cron expressions")
    if not others:
        match first:
            case clocks.Time(seconds):
                return _cells(query, seconds, seconds, query.asked.origin)
            case clocks.Calendar():
                return _calendar(query, first)
            case rows.Gap() if (own := query.dialect.session(query, first)) is not None:
                return own
            case rows.Delta():
                return query.dialect.delta(query, first)
            case rows.Count(n):
                query.part("parts", f"SELECT *, {query.dialect.floor('_n - 1', str(n))} AS _w FROM rows_")
                return _of_parts(query)
            case conditions.From(opener, until) if until is not None:
                return _from_until(query, opener, until)
            case conditions.When(opener):
                holds = query.expression(opener)
                query.part("flagged", f"SELECT *, CASE WHEN {holds} THEN 1 ELSE 0 END AS _break FROM rows_")
                query.part("parts", f"SELECT *, sum(_break) OVER {query.over} AS _w FROM flagged")
                return _of_parts(query, " WHERE _w > 0")
    breaks, where = [], ""
    for policy in policies:
        breaks.append(_break(query, policy))
        if isinstance(policy, conditions.While):
            where = " WHERE _is"
            query.part("held", f"SELECT *, coalesce({query.expression(policy.condition)}, false) AS _is FROM rows_")
    source = "held" if where else "rows_"
    query.part("flagged", f"SELECT *, CASE WHEN {' OR '.join(breaks)} THEN 1 ELSE 0 END AS _break FROM {source}")
    query.part("parts", f"SELECT *, sum(_break) OVER {query.over} AS _w FROM flagged")
    return _of_parts(query, where)


def _break(query: Query, policy: Any) -> str:
    """Whether a row begins a window, as two neighbouring rows say."""
    over = query.over
    match policy:
        case rows.Gap(name, by):
            new, old = query.measure(name), f"lag({query.measure(name)}) OVER {over}"
            return f"{new} - {old} > {query.amount(by, name)}"
        case rows.Changing("gap", name, by) if name is not None:
            new, old = query.measure(name), f"lag({query.measure(name)}) OVER {over}"
            return f"{new} - {old} > lag({query.expression(by)}) OVER {over}"
        case rows.Change(columns):
            texts = [query.expression(each) for each in columns]
            query.note = query.note or query.dialect.notes.get("change", "")
            return " OR ".join(f"({text}) IS DISTINCT FROM lag({text}) OVER {over}" for text in texts)
        case rows.Punct(condition) if condition is not None:
            return f"lag({query.expression(condition)}) OVER {over}"
        case conditions.Split(condition):
            return f"({query.expression(condition)})"
        case conditions.While():
            return f"NOT coalesce(lag(_is) OVER {over}, false)"
        case clocks.Time(seconds):
            cell = cell_of(query, seconds, query.asked.origin)
            return f"{cell} <> lag({cell}) OVER {over}"
    raise CannotSayError(BREAKS.get(type(policy), type(policy).__name__.lower()))


def _of_parts(query: Query, where: str = "") -> str:
    if query.case.spec.get("emit") == "rows":
        return query.shown("parts", where)
    if not query.asked.order:
        return query.grouped("parts", ["_w"], {}, where)
    clock = query.q(query.asked.order[0])
    if not query.asked.group_by:
        return query.grouped("parts", ["_w"], {"window_start": f"min({clock})", "window_end": f"max({clock})"}, where)
    over = f"OVER (PARTITION BY {', '.join([*query.key, '_w'])})"
    query.part("bounded", f"SELECT *, min({clock}) {over} AS _start, max({clock}) {over} AS _end FROM parts{where}")
    return query.grouped("bounded", ["_w", "_start", "_end"], {"window_start": "_start", "window_end": "_end"})


def _from_until(query: Query, opener: Any, until: Any) -> str:
    by = f"PARTITION BY {', '.join(query.key)} " if query.key else ""
    before = f"({by}ORDER BY _n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    opens, ends = query.expression(opener), query.expression(until)
    query.part(
        "parts",
        f"SELECT *, max(CASE WHEN {opens} THEN _n END) OVER {query.over} AS _e, "
        f"coalesce(max(CASE WHEN {ends} THEN _n END) OVER {before}, 0) AS _w FROM rows_",
    )
    return _of_parts(query, " WHERE _e > _w")


def cell_of(query: Query, seconds: Fraction, origin: Fraction, clock: str | None = None) -> str:
    """The number of the cell of a grid that a row is in. ``clock``: its measure, else that of the log."""
    since = f"{clock or query.measure()} - {query.amount(origin)}"
    if query.asked.is_right:
        return f"-{query.dialect.floor(f'-({since})', query.amount(seconds))} - 1"
    return query.dialect.floor(since, query.amount(seconds))


def _cells(query: Query, length: Fraction, period: Fraction, offset: Fraction) -> str:
    """Tumbling and hopping windows of a grid. Where they hop a row is repeated for each that it is in."""
    own = (
        None
        if query.asked.option("empty") or query.asked.is_right
        else query.dialect.hop(query, length, period, offset)
    )
    if own is not None:
        return own
    step = query.amount(period)
    cell = cell_of(query, period, offset % period if length != period else offset)
    if length == period:
        query.part("parts", f"SELECT *, {cell} AS _w FROM rows_")
    else:
        since = f"{query.measure()} - {query.amount(offset % period)}"
        low = query.dialect.floor(f"{since} - {query.amount(length)}", step)
        query.part("parts", f"SELECT *, {query.dialect.unnest(f'{low} + 1', cell)} AS _w FROM rows_")
        offset %= period
    low = f"_w * {step} + {query.amount(offset)}"
    bounds = {"window_start": query.bound(low), "window_end": query.bound(f"{low} + {query.amount(length)}")}
    if query.case.spec.get("emit") == "rows":
        return query.shown("parts")
    return query.grouped(_filled(query), ["_w"], bounds)


def _filled(query: Query) -> str:
    """The rows of all cells between the first and the last of each key, where empty ones are asked for."""
    if query.asked.option("empty") is None:
        return "parts"
    by = f" GROUP BY {', '.join(query.key)}" if query.key else ""
    cells = ", ".join([*query.key, f"{query.dialect.unnest('min(_w)', 'max(_w)')} AS _w"])
    query.part("cells", f"SELECT {cells} FROM parts{by}")
    return f"cells LEFT JOIN parts USING ({', '.join([*query.key, '_w'])})"


def _calendar(query: Query, window: clocks.Calendar) -> str:
    clock = query.q(query.asked.clock)
    is_zoned = "UTC" in query.case.given.columns[query.asked.clock]
    shift = query.dialect.span(window.at.hour * 3600 + window.at.minute * 60)
    if window.start not in ("mon", "sun"):
        raise CannotSayError("a week that begins on another day")
    days = (window.start == "sun") - query.dialect.weeks_begin_on_sunday if window.unit == "week" else 0
    week = f" + INTERVAL '{days}' DAY"
    local = f"{query.dialect.local(clock, window.tz, is_zoned)} - {shift}{week}"
    if query.asked.is_right:
        local += f" - {query.dialect.instant_before}"
    if query.asked.option("empty"):
        raise CannotSayError("days without rows")
    query.part("parts", f"SELECT *, {query.dialect.truncated(window.unit, local)} AS _w FROM rows_")
    unit = "INTERVAL '3' MONTH" if window.unit == "quarter" else f"INTERVAL '1' {window.unit.upper()}"
    unit = "INTERVAL '7' DAY" if window.unit == "week" else unit
    start, end = f"_w - INTERVAL '{days}' DAY + {shift}", f"_w - INTERVAL '{days}' DAY + {unit} + {shift}"
    bounds = {
        "window_start": query.dialect.from_local(start, window.tz, is_zoned),
        "window_end": query.dialect.from_local(end, window.tz, is_zoned),
    }
    query.note = query.note or "a local time that does not exist or comes twice is another instant"
    return query.grouped("parts", ["_w"], bounds)


def _lasting(query: Query) -> str:
    (policy,) = query.asked.policies
    if not isinstance(policy, clocks.Time):
        raise CannotSayError("local days that a row overlaps")
    start, end = query.measure(), query.measure(query.asked.option("ends"))
    step = query.amount(policy.seconds)
    low = query.dialect.floor(start, step)
    high = f"greatest({low}, -{query.dialect.floor(f'-({end})', step)} - 1)"
    query.part("spread", f"SELECT *, {query.dialect.unnest(low, high)} AS _w FROM rows_")
    inside = f"least({end}, (_w + 1) * {step}) - greatest({start}, _w * {step})"
    share = f"CASE WHEN {end} = {start} THEN 1.0 ELSE ({inside}) / CAST({end} - {start} AS DOUBLE) END"
    query.part("parts", f"SELECT *, {inside} AS _overlap, {share} AS _share FROM spread")
    query.columns += ["_overlap", "_share"]
    bounds = {"window_start": query.bound(f"_w * {step}"), "window_end": query.bound(f"(_w + 1) * {step}")}
    return query.grouped(_filled(query), ["_w"], bounds)


def _sliding(query: Query, window: spec.Sliding) -> str:
    if query.case.spec.get("emit") == "rows":
        raise CannotSayError("the rows of panes that overlap")
    evict, trigger = window.evict, window.trigger
    last = f"_n = count(*) OVER ({'PARTITION BY ' + ', '.join(query.key) if query.key else ''})"
    match trigger:
        case rows.Count(m):
            fires = f"(_n % {m} = 0 OR {last})" if m > 1 else "true"
        case conditions.When(condition):
            fires = f"(({query.expression(condition)}) OR {last})"
        case clocks.Time() if isinstance(evict, clocks.Time):
            return _hopping(query, evict.seconds, trigger.seconds)
        case _:
            raise CannotSayError("a trigger by time or by a rise over such a window")
    by = f"PARTITION BY {', '.join(query.key)} " if query.key else ""
    is_partial = query.asked.option("partial", False)
    match evict:
        case rows.Count(n) if n > 0:
            frame = f"{by}ORDER BY _n ROWS BETWEEN {n - 1} PRECEDING AND CURRENT ROW"
            fires += "" if is_partial else f" AND _n >= {n}"
        case clocks.Time(seconds):
            frame = f"{by}ORDER BY {query.measure()} RANGE BETWEEN {query.amount(seconds)} PRECEDING AND CURRENT ROW"
            query.note = query.note or TIES
        case rows.Delta(name, by_amount) if is_partial and (name,) == query.asked.order:
            low = query.amount(by_amount, name)
            frame = f"{by}ORDER BY {query.measure(name)} RANGE BETWEEN {low} PRECEDING AND CURRENT ROW"
            query.note = query.note or TIES
        case _:
            raise CannotSayError(
                "an eviction by a value that may fall"
                if isinstance(evict, rows.Delta)
                else "a window that holds nothing"
            )
    return _framed(query, frame, f" WHERE {fires}")


def _framed(query: Query, frame: str, where: str = "") -> str:
    """Aggregates over a frame at each row, then the rows that fire."""
    shown = [*query.key, *query.aggregates(frame)]
    if query.asked.order and "window_start" in query.case.columns:
        clock = query.q(query.asked.order[0])
        shown += [f"min({clock}) OVER ({frame}) AS {query.q('window_start')}", f"{clock} AS {query.q('window_end')}"]
    fires = where.removeprefix(" WHERE ") or "true"
    query.part("framed", f"SELECT {', '.join(shown)}, {fires} AS _fires FROM rows_")
    wanted = [*query.key, *map(query.q, query.asked.calls)]
    wanted += [
        query.q(name) for name in ("window_start", "window_end") if query.asked.order and name in query.case.columns
    ]
    return f"SELECT {', '.join(wanted)} FROM framed WHERE _fires"


def _hopping(query: Query, length: Fraction, period: Fraction) -> str:
    """Ticks: each looks at the rows of the time before it."""
    query.note = "a grid has no last window that the end of the data cuts, and goes on behind it"
    columns = [name for name in query.case.columns if name not in ("window_start", "window_end")]
    query.case = replace(query.case, columns=tuple(columns))
    return _cells(query, length, period, length % period)


def _batched(query: Query, window: spec.Batched) -> str:
    if window.within is not None:
        raise CannotSayError("rows that leave by time without a new one")
    if window.every is not None or window.unique is not None or window.partition_by:
        raise CannotSayError("lots of rows, or the newest of each value")
    by = f"PARTITION BY {', '.join(query.key)} " if query.key else ""
    rows_before = "UNBOUNDED" if window.retain_all else str((window.retain or 1) - 1)
    return _framed(query, f"{by}ORDER BY _n ROWS BETWEEN {rows_before} PRECEDING AND CURRENT ROW")


def _table(query: Query) -> str:
    asked, request = query.asked, parse_windows(query.asked.option("windows"), False)
    own = query.case.tables[request.name].columns
    taken = {(each.name or f"{request.name}_{each.column}"): each.column for each in request.take or ()}
    if request.take is None:
        taken = {f"{request.name}_{name}": name for name in own}

    def bound(name: str) -> str:
        column = f"w.{query.q(name)}"
        return query.dialect.micros(column) if own[name].startswith("timestamp") else column

    start, end, clock = bound(request.start), bound(request.end), query.measure(of="r.")
    until = query.measure(asked.option("ends"), "r.") if "ends" in query.case.spec else clock
    inside = f"{clock} > {start} AND {clock} <= {end}" if asked.is_right else f"{clock} >= {start} AND {clock} < {end}"
    if "ends" in query.case.spec:
        inside = f"{clock} < {end} AND {start} < {until}"
        query.columns += ["_overlap"]
    on = " AND ".join([*(f"w.{query.q(pair.right)} = r.{query.q(pair.left)}" for pair in request.keys), inside])
    key = [f"w.{query.q(pair.right)} AS {query.q(pair.left)}" for pair in request.keys]
    key = key or [f"r.{name}" for name in query.key]
    others = [
        query.q(name) for name in [*query.columns, "_arrival", "_n"] if name not in asked.key and name != "_overlap"
    ]
    shown = [
        *key,
        *(f"r.{name}" for name in others),
        "w._arrival AS _w",
        f"w.{query.q(request.start)} AS _start",
        f"w.{query.q(request.end)} AS _end",
    ]
    shown += [f"w.{query.q(column)} AS {query.q(name)}" for name, column in taken.items()]
    if "ends" in query.case.spec:
        shown.append(f"least({until}, {end}) - greatest({clock}, {start}) AS _overlap")
    side, complete = "", ""
    if asked.option("empty"):
        side, now = "LEFT ", f"(SELECT max({query.measure()}) FROM rows_)"
        complete = f" WHERE _n IS NOT NULL OR _end <= {now}"
    query.part("parts", f"SELECT {', '.join(shown)} FROM {query.q(request.name)} AS w {side}JOIN rows_ AS r ON {on}")
    more = {"window_start": "_start", "window_end": "_end"} | {name: query.q(name) for name in taken}
    groups = ["_w", "_start", "_end", *(query.q(name) for name in taken if name in query.case.columns)]
    return query.grouped("parts", groups, more, complete)
