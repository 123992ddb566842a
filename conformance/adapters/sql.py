"""A case as one query of SQL, for engines with window functions: the general part, which dialects fill in.

A query is a chain of named parts: ``base``, the log with its computed columns and filters; ``rows``, which numbers the
rows of each key in order (``_n``); then what the kind of window needs, and the aggregates at the end.

    gap, change, split, punct, ..    a row that begins a window is told by the row before it; a running sum numbers them
    count                            the number of the row, divided
    time, calendar                   the cell that a row is in
    sliding, retain                  aggregates over a frame
    table, joins                     a join by range, or as-of
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from wincli.conformance.kit import Answer, CannotSayError, Case
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language import clock_policies as clocks
from wincli.windowing.language import conditions, joins, spec
from wincli.windowing.language import row_policies as rows
from wincli.windowing.language.enrichment import parse_windows

from .reading import NEIGHBOURS, ask, sees_window

TIES = "a frame by range holds later rows of the same instant, too"


class Dialect:
    """What differs between engines. ``functions``: aggregates by template: ``{0}``, ``{1}`` the arguments."""

    quote = '"'
    semi, anti = "SEMI JOIN", "ANTI JOIN"
    filled = "last_value({0} IGNORE NULLS)"
    functions: ClassVar[Mapping[str, str]] = {}
    ordered: ClassVar[Mapping[str, str]] = {}
    frames: ClassVar[Mapping[str, str]] = {
        "count": "count({0})", "sum": "sum({0})", "mean": "avg({0})", "min": "min({0})", "max": "max({0})",
    }  # fmt: skip
    notes: ClassVar[Mapping[str, str]] = {}
    float_notes: ClassVar[Mapping[str, str]] = {}

    def micros(self, column: str) -> str:
        raise NotImplementedError

    def instant(self, micros: str, is_zoned: bool) -> str:
        raise NotImplementedError

    def unnest(self, low: str, high: str) -> str:
        """A list from low to high, one row for each value, in the select list."""
        raise NotImplementedError

    def local(self, column: str, zone: str, is_zoned: bool) -> str:
        """The reading of the clocks of a zone."""
        raise NotImplementedError

    def from_local(self, value: str, zone: str, is_zoned: bool) -> str:
        raise NotImplementedError

    def asof(self, query: Query, window: Any) -> str:  # noqa: ARG002
        raise CannotSayError("as-of joins")

    def hop(self, query: Query, length: Fraction, period: Fraction, offset: Fraction) -> str | None:  # noqa: ARG002
        """The engine's own grids; None: rows are repeated for each window that they are in."""
        return None

    def session(self, query: Query, policy: rows.Gap) -> str | None:  # noqa: ARG002
        """The engine's own sessions; None: pauses are numbered."""
        return None

    def floor(self, over: str, by: str) -> str:
        return f"CAST(floor(({over}) / {by}) AS BIGINT)"


class Query:
    """One case in one dialect."""

    def __init__(self, case: Case, dialect: Dialect) -> None:
        self.case, self.dialect, self.asked = case, dialect, ask(case)
        self.parts: list[str] = []
        self.columns = list(case.given.columns)
        self.note = self.asked.note
        self.key = [self.q(name) for name in self.asked.key]

    # --- texts ----------------------------------------------------------------------------------------------------

    def q(self, name: str) -> str:
        return f"{self.dialect.quote}{name}{self.dialect.quote}"

    def expression(self, operand: Any, over: str | None = None) -> str:
        """An operand in the words of SQL, its columns in quotes; ``lag`` looks back over the rows of a key."""
        if isinstance(operand, str):
            return self.q(operand)
        text = str(operand)
        if sees_window(text):
            raise CannotSayError("conditions that see the open window")
        pieces = re.split(r"('(?:[^']|'')*')", text)
        for at in range(0, len(pieces), 2):
            pieces[at] = re.sub(
                r'"?\b([A-Za-z_]\w*)\b"?(?!\()',
                lambda found: self.q(found[1]) if found[1] in self.columns else found[0], pieces[at],
            )  # fmt: skip
            pieces[at] = re.sub(r"\blag\(([^()]*)\)", rf"lag(\1) OVER {over or self.over}", pieces[at])
        return "".join(pieces)

    @property
    def over(self) -> str:
        by = f"PARTITION BY {', '.join(self.key)} " if self.key else ""
        return f"({by}ORDER BY {', '.join(self.order)})"

    @property
    def order(self) -> list[str]:
        return [*map(self.q, self.asked.order), "_arrival"]

    def measure(self, column: str | None = None, of: str = "") -> str:
        """A clock as a number: microseconds of times, else as it is. ``of``: the table, with its point."""
        column = column or self.asked.clock
        text = f"{of}{self.q(column)}"
        return self.dialect.micros(text) if self.asked.is_time(column) else text

    def amount(self, seconds: Fraction, column: str | None = None) -> str:
        """Seconds as a difference of measures."""
        exact = seconds * (1_000_000 if self.asked.is_time(column or self.asked.clock) else 1)
        return str(exact.numerator) if exact.denominator == 1 else str(float(exact))

    def bound(self, measure: str) -> str:
        """A measure as a value of the clock."""
        column = self.asked.clock
        if not self.asked.is_time(column):
            return measure
        return self.dialect.instant(measure, "UTC" in self.case.given.columns[column])

    # --- parts ----------------------------------------------------------------------------------------------------

    def part(self, name: str, text: str) -> None:
        self.parts.append(f"{name} AS ({text})")

    def base(self, source: str = "log") -> None:
        self.part("_source", f"SELECT * FROM {source}")
        previous = "_source"
        let = self.asked.option("let") or {}
        if let:
            made = ", ".join(
                f"{self.expression(parse_expression(text))} AS {self.q(name)}" for name, text in let.items()
            )
            self.part("_let", f"SELECT *, {made} FROM {previous}")
            self.columns += let
            previous = "_let"
        if "where" in self.case.spec:
            self.part(
                "_where", f"SELECT * FROM {previous} WHERE {self.expression(parse_expression(self.case.spec['where']))}"
            )
            previous = "_where"
        if "distinct" in self.case.spec:
            column = self.asked.option("distinct")
            if " " in column:
                raise CannotSayError("duplicates within a time or a number of rows")
            by = ", ".join([*self.key, self.q(column)])
            self.part(
                "_first",
                f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY {', '.join(self.order)}) AS _d FROM {previous}",
            )
            self.part("_distinct", f"SELECT * FROM _first WHERE _d = 1 OR {self.q(column)} IS NULL")
            previous = "_distinct"
        self.part("rows_", f"SELECT *, row_number() OVER {self.over} AS _n FROM {previous}")

    def aggregates(self, frame: str | None = None) -> list[str]:
        return [f"{self.aggregate(call, frame)} AS {self.q(name)}" for name, call in self.asked.calls.items()]

    def aggregate(self, call: Any, frame: str | None = None) -> str:
        if isinstance(call, spec.AggregateExpression):
            text = str(call.expression)
            for each in call.calls:
                text = text.replace(f'"{each.name}"', self.aggregate(each, frame))
            return text
        if not call.arguments and call.function == "count":
            arguments = ["_arrival"]
        else:
            arguments = [self.argument(each) for each in call.arguments]
        if call.function == "slope":
            arguments.append(f"{self.measure()} / {self.amount(Fraction(1))}.0")
        known = self.dialect.frames if frame else {**self.dialect.functions, **self.dialect.ordered}
        template = known.get(f"{call.function}/{len(arguments)}", known.get(call.function))
        if template is None:
            raise CannotSayError(f"the aggregate {call.function}{' over a frame' if frame else ''}")
        self.note = self.note or self.noted(call)
        if frame:
            if call.where is not None:
                arguments[0] = f"CASE WHEN {self.expression(call.where)} THEN {arguments[0]} END"
            return f"{template.format(*arguments)} OVER ({frame})"
        filters = [] if call.where is None else [f"({self.expression(call.where)})"]
        if call.function in self.dialect.ordered:
            filters.append(f"{arguments[0]} IS NOT NULL")
        found = template.format(*arguments)
        return (
            found.replace("{FILTER}", f" FILTER (WHERE {' AND '.join(filters)})" if filters else "")
            if "{FILTER}" in found
            else (f"{found} FILTER (WHERE {' AND '.join(filters)})" if filters else found)
        )

    def noted(self, call: spec.AggregateCall) -> str:
        """What is known of an aggregate of the engine; of some only over floats."""
        of_floats = any(
            isinstance(each, spec.Column) and self.case.given.columns.get(each.name) == "float64"
            for each in call.arguments
        )
        return self.dialect.notes.get(call.function, "") or (
            self.dialect.float_notes.get(call.function, "") if of_floats else ""
        )

    def argument(self, argument: Any) -> str:
        if isinstance(argument, spec.Column):
            return self.q(argument.name)
        if isinstance(argument, Fraction):
            return str(argument.numerator) if argument.denominator == 1 else str(float(argument))
        return f"'{argument}'" if isinstance(argument, str) else self.expression(argument)

    def grouped(self, source: str, groups: Sequence[str], more: Mapping[str, str], where: str = "") -> str:
        """Aggregates of groups. ``more``: other columns by their names."""
        by = [*self.key, *groups, *(self.q(name) for name in self.asked.group_by)]
        shown = [*self.key, *(self.q(name) for name in self.asked.group_by)]
        shown += [f"{text} AS {self.q(name)}" for name, text in more.items() if name in self.case.columns]
        return f"SELECT {', '.join([*shown, *self.aggregates()])} FROM {source}{where} GROUP BY {', '.join(dict.fromkeys(by))}"

    def shown(self, source: str, where: str = "") -> str:
        """Rows as they are, for ``emit rows``."""
        wanted = [name for name in self.case.values if name in self.columns or name == "_side"]
        return f"SELECT {', '.join(map(self.q, wanted))} FROM {source}{where}"

    def text(self, last: str) -> str:
        """The whole query, behind which windows may be filled and left out."""
        fills = [name for name, call in self.asked.calls.items() if getattr(call, "fills", False)]
        if fills:
            self.part("_told", last)
            by = f"PARTITION BY {', '.join(self.key)} " if self.key else ""
            over = f"OVER ({by}ORDER BY {self.q('window_start')} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
            others = [
                self.q(name) for name in self.case.columns if name not in fills and name not in ("window", "closed_by")
            ]
            last = (
                f"SELECT {', '.join(others)}, "
                + ", ".join(f"{self.dialect.filled.format(self.q(name))} {over} AS {self.q(name)}" for name in fills)
                + " FROM _told"
            )
        if "having" in self.case.spec:
            self.part("_had", last)
            self.columns += self.asked.calls
            last = f"SELECT * FROM _had WHERE {self.expression(parse_expression(self.case.spec['having']))}"
        return f"WITH {', '.join(self.parts)} {last}"


def query_of(case: Case, dialect: Dialect) -> tuple[str, Query]:
    """The last part of the query of a case. Raises `CannotSayError`."""
    query = Query(case, dialect)
    window = query.asked.window
    if "join" in case.spec:
        return _joined(query), query
    if case.spec.get("emit") in ("entered", "left"):
        raise CannotSayError("rows that enter and leave")
    query.base()
    return _of_window(query, window), query


def _of_window(query: Query, window: Any) -> str:
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
    raise CannotSayError("row patterns")


# --- windows of one log -------------------------------------------------------------------------------------------


def _tumbling(query: Query) -> str:
    (first, *others) = policies = query.asked.policies
    if isinstance(first, clocks.Growing):
        raise CannotSayError("windows that come out as they grow")
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
            return " OR ".join(f"({text}) IS DISTINCT FROM lag({text}) OVER {over}" for text in texts)
        case rows.Punct(condition) if condition is not None:
            return f"lag({query.expression(condition)}) OVER {over}"
        case conditions.Split(condition):
            return f"({query.expression(condition)})"
        case conditions.While():
            return f"NOT coalesce(lag(_is) OVER {over}, false)"
        case clocks.Time(seconds):
            cell = _cell(query, seconds, query.asked.origin)
            return f"{cell} <> lag({cell}) OVER {over}"
    if isinstance(policy, NEIGHBOURS):
        raise AssertionError(policy)
    words = {
        rows.Delta: "a window that ends by its first row", rows.Count: "a count beside other policies",
        rows.Changing: "amounts that the first row says", conditions.Reaches: "a running aggregate that begins anew",
        conditions.When: "an opener beside other policies", conditions.From: "an opener beside other policies",
    }  # fmt: skip
    raise CannotSayError(words.get(type(policy), type(policy).__name__.lower()))


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


def _cell(query: Query, seconds: Fraction, origin: Fraction, clock: str | None = None) -> str:
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
    cell = _cell(query, period, offset % period if length != period else offset)
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
    shift = f"INTERVAL '{window.at.hour * 3600 + window.at.minute * 60}' SECOND"
    days = {"mon": 0, "sun": 1}.get(window.start)
    if days is None:
        raise CannotSayError("a week that begins on another day")
    week = f" + INTERVAL '{days}' DAY"
    local = f"{query.dialect.local(clock, window.tz, is_zoned)} - {shift}{week}"
    if query.asked.is_right:
        local += " - INTERVAL '0.000001' SECOND"
    if query.asked.option("empty"):
        raise CannotSayError("days without rows")
    query.part("parts", f"SELECT *, date_trunc('{window.unit}', {local}) AS _w FROM rows_")
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
            frame = f"{by}ORDER BY {query.measure(name)} RANGE BETWEEN {query.amount(by_amount, name)} PRECEDING AND CURRENT ROW"
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
    query.case = Case(**{**{f: getattr(query.case, f) for f in query.case.__slots__}, "columns": tuple(columns)})
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


# --- joins --------------------------------------------------------------------------------------------------------


def _joined(query: Query) -> str:
    asked, case = query.asked, query.case
    request, window = joins.parse_join(asked.option("join")), asked.window
    name, other = request.name, case.tables[request.name].columns if case.tables else case.given.columns
    keys = [(pair.left, pair.right) for pair in request.keys] or [(each, each) for each in asked.key]
    orders = [(pair.left, pair.right) for pair in request.orders] or [(each, each) for each in asked.order]
    renamed = [f"{query.q(each)} AS {query.q(f'{name}_{each}')}" for each in other]
    where = ""
    if request.where is not None:
        own = query.columns
        query.columns = list(other)
        where = f" WHERE {query.expression(request.where)}"
        query.columns = own
    source = query.q(name) if case.tables else "log"
    query.part("r", f"SELECT {', '.join(renamed)}, _arrival AS _r_arrival FROM {source}{where}")
    if request.how == "union":
        return _union(query, name, keys, orders, other)
    filters = f" WHERE {query.expression(parse_expression(case.spec['where']))}" if "where" in case.spec else ""
    query.part("l", f"SELECT *, _arrival AS _l_arrival FROM log{filters}")
    query.columns += [f"{name}_{each}" for each in other]
    on = [f"l.{query.q(one)} = r.{query.q(f'{name}_{two}')}" for one, two in keys]
    match = [f"({query.expression(parse_expression(case.spec['match']))})"] if "match" in case.spec else []
    one, two = query.measure(orders[0][0]), _other_measure(query, name, orders[0][1], other)
    if isinstance(window, spec.SideWindows):
        window = _as_other(window)
    if isinstance(window, joins.At):
        return query.dialect.asof(query, (window, request, on, match, one, two, keys))
    if isinstance(window, joins.Around):
        if window.prevailing:
            raise CannotSayError("a range with the row that prevails before it")
        low, high = query.amount(window.before, orders[0][0]), query.amount(window.after, orders[0][0])
        on.append(f"{two} BETWEEN {one} - ({low}) AND {one} + ({high})")
        cell = None
    elif isinstance(window, spec.Tumbling) and isinstance(window.policy, clocks.Time):
        cell = (
            _cell(query, window.policy.seconds, asked.origin, one),
            _cell(query, window.policy.seconds, asked.origin, two),
        )
        on.append(f"{cell[0]} = {cell[1]}")
    else:
        raise CannotSayError("a session or a count over two tables")
    on += match
    return _pairs(query, request.how, on, keys, cell, name)


def _pairs(query: Query, how: str, on: list[str], keys: Any, cell: Any, name: str) -> str:
    sides = {
        "inner": "JOIN",
        "left": "LEFT JOIN",
        "right": "RIGHT JOIN",
        "full": "FULL JOIN",
        "semi": query.dialect.semi,
        "anti": query.dialect.anti,
    }
    merged = {one: f"coalesce(l.{query.q(one)}, r.{query.q(f'{name}_{two}')})" for one, two in keys}
    is_half = how in ("semi", "anti")
    shown = [
        (f"{merged[each]} AS {query.q(each)}" if each in merged and not is_half else query.q(each))
        for each in query.columns if not (is_half and each.startswith(f"{name}_"))
    ]  # fmt: skip
    shown += ["_l_arrival"] if is_half else ["_l_arrival", "_r_arrival AS _arrival"]
    if cell is not None:
        (policy,) = query.asked.policies
        here = cell[0] if is_half else f"coalesce({cell[0]}, {cell[1]})"
        step = query.amount(policy.seconds)
        shown += [f"({here}) * {step} + {query.amount(query.asked.origin)} AS window_start"]
        shown += [f"(({here}) + 1) * {step} + {query.amount(query.asked.origin)} AS window_end"]
    query.part("pairs", f"SELECT {', '.join(shown)} FROM l {sides[how]} r ON {' AND '.join(on)}")
    told = [each for each in query.case.columns if each not in ("window", "closed_by")]
    if not query.asked.calls:
        bounds = cell is not None
        wanted = [each for each in told if bounds or each not in ("window_start", "window_end")]
        return f"SELECT {', '.join(query.q(each) for each in wanted)} FROM pairs"
    by = [each for each in told if each not in query.asked.calls]
    groups = [query.q(each) for each in by] + (["_l_arrival"] if cell is None else [])
    return f"SELECT {', '.join([*map(query.q, by), *query.aggregates()])} FROM pairs GROUP BY {', '.join(groups)}"


def _other_measure(query: Query, name: str, column: str, other: Mapping[str, str]) -> str:
    quoted = query.q(f"{name}_{column}")
    return query.dialect.micros(quoted) if other[column].startswith("timestamp") else quoted


def _as_other(window: spec.SideWindows) -> Any:
    """The join by range or as-of that gives the pairs of two windows."""
    one, two = window.left, window.right
    if isinstance(one, spec.Sliding) and isinstance(two, spec.Sliding):
        if isinstance(one.evict, clocks.Time) and isinstance(two.evict, clocks.Time):
            return joins.Around(two.evict.seconds, one.evict.seconds)
        if one.evict == rows.Count(0) and two.evict == rows.Count(1):
            return joins.At((Fraction(0),))
    raise CannotSayError("a window on each side of a join")


def _union(query: Query, name: str, keys: Any, orders: Any, other: Mapping[str, str]) -> str:
    """The rows of both tables, those of the right first where times are equal."""
    same = {f"{name}_{two}": one for one, two in [*keys, *orders]}
    left = [query.q(each) for each in query.columns]
    right = [next((query.q(two) for two, one in same.items() if one == each), "NULL") for each in query.columns]
    more = [f"{name}_{each}" for each in other if f"{name}_{each}" not in same]
    left += [f"NULL AS {query.q(each)}" for each in more]
    right = [f"{text} AS {query.q(each)}" for text, each in zip(right, query.columns, strict=True)] + [
        query.q(each) for each in more
    ]
    first, second = ("0", "1000000") if "strict" in query.asked.option("join") else ("1000000", "0")
    query.part(
        "sides",
        f"SELECT {', '.join(left)}, 'left' AS _side, _arrival + {first} AS _arrival FROM log "
        f"UNION ALL SELECT {', '.join(right)}, 'right' AS _side, _r_arrival + {second} AS _arrival FROM r",
    )
    query.columns += [*more, "_side"]
    query.key = [query.q(one) for one, _ in keys]
    query.base("sides")
    return _of_window(query, query.asked.window)


def run(case: Case, dialect: Dialect, execute: Any) -> Answer:
    """Ask an engine: ``execute(text)`` gives the names of the columns and the rows."""
    last, query = query_of(case, dialect)
    columns, found = execute(case, query.text(last))
    kept = [at for at, name in enumerate(columns) if name in case.columns]
    return Answer([columns[at] for at in kept], [[row[at] for at in kept] for row in found], query.note)
