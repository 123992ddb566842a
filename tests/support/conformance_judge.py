"""The second judge of `conformance/`: what the references, row at a time, say to a case.

A case whose ``judge`` is ``reference`` must be one that `rows_of` can answer. It reads the spec by the parser of the
product and nothing else of it: rows, windows and aggregates are those of `references`.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from references import aggregates, batched, event_time, joins, matched_rows, over_time, table
from references import calendar as local
from references import cron as crons
from references import growing as growth
from references import lasting as spans
from references import open_window as sees
from references import sliding as slides
from references import tumbling as t
from references.distinct import let_through
from references.matches import PatternJob
from references.rows_ahead import rows_ahead
from support.join_cases import lots_of
from support.pattern_texts import read_window
from wincli.conformance.kit import Case, plain
from wincli.windowing.expressions.nodes import walk
from wincli.windowing.expressions.syntax import Expression, parse_expression
from wincli.windowing.language import clock_policies as clocks
from wincli.windowing.language import conditions
from wincli.windowing.language import joins as asked
from wincli.windowing.language import row_policies as policies
from wincli.windowing.language import spec as specs
from wincli.windowing.language.distinct import parse_distinct
from wincli.windowing.language.enrichment import parse_windows
from wincli.windowing.language.parser import duration_seconds, origin_seconds, parse_aggregate, parse_window

Values = dict[str, Any]


class CannotJudgeError(Exception):
    """The references do not know what a case is about."""


@dataclass
class Log:
    """The rows of a case in ticks, by arrival position, with what conditions see of the rows before."""

    case: Case
    given: pa.Table
    rows: dict[int, Values]
    shown: list[Values]
    key: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def clock(self) -> pa.DataType | None:
        return self.given.schema.field(self.order[0]).type if self.order else None

    def value(self, operand: Any, row: Values, taken: Sequence[Values] = ()) -> Any:
        """An operand for a row, whose window holds ``taken``."""
        if isinstance(operand, str):
            return row[operand]
        places = tuple((each["#"], None) for each in taken)
        return matched_rows.value(operand.root, matched_rows.Place(row["#all"], row["#"], places, frozenset()))

    def is_true(self, operand: Any) -> Callable[[Values], bool]:
        return lambda row: self.value(operand, row) is True

    def seen(self, operand: Any) -> sees.Sees:
        return lambda rows, row, _: self.value(operand, row, [*rows])


def rows_of(case: Case) -> list[list[Any]]:
    """The rows of the answer in the order of the kit. Raises `CannotJudgeError`."""
    if case.units:
        raise CannotJudgeError("units")
    spec = parse_window(case.spec["window"])
    found = _joined(case, spec) if "join" in case.spec else _of_one_log(case, spec)
    having = case.spec.get("having")
    if having:
        root = parse_expression(having).root
        found = [
            row for row in found if matched_rows.value(root, matched_rows.Place([row], 0, (), frozenset())) is True
        ]
    return [[plain(row[name]) for name in case.columns] for row in found]


def rejects_of(case: Case) -> list[tuple[int, str]]:
    """What the references reject: rows without an order or a key, and late ones."""
    log = _log(case)
    return [(pos, why) for pos, why in sorted(_without_place(log).items())]


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _log(case: Case) -> Log:
    given = case.given.table()
    order = _names(case.spec.get("order_by"))
    order = () if order == ("arrival",) else order
    rows = {pos: dict(row) for pos, row in t.read(given).items()}
    return Log(case, given, rows, given.to_pylist(), _names(case.spec.get("key")), order)


def _without_place(log: Log) -> dict[int, str]:
    found = {}
    for pos, row in log.rows.items():
        if any(row[name] is None or t.is_nan(row[name]) for name in log.order):
            found[pos] = "null_order"
        elif any(row[name] is None for name in log.key):
            found[pos] = "null_key"
    return found


def _prepare(log: Log) -> None:
    """Computed columns, rows that a condition or ``distinct`` leaves out, and what each row sees of those before."""
    for pos in _without_place(log):
        del log.rows[pos]
    _look_back(log)
    for name, text in (log.case.spec.get("let") or {}).items():
        expression = parse_expression(text)
        for pos, row in log.rows.items():
            row[name] = log.value(expression, row)
            log.shown[pos][name] = row[name]
    if "where" in log.case.spec:
        holds = log.is_true(parse_expression(log.case.spec["where"]))
        log.rows = {pos: row for pos, row in log.rows.items() if holds(row)}
    if "distinct" in log.case.spec:
        asked_for, unit = parse_distinct(log.case.spec["distinct"]), _unit(log.clock)
        within = asked_for.within
        near = None if within is None else (lambda one, two: (two[log.order[0]] - one[log.order[0]]) * unit <= within)
        kept: list[int] = []
        for places in _sequences(log).values():
            rows = [{**log.rows[pos], "#pos": pos} for pos in places]
            kept += [row["#pos"] for row in let_through(rows, asked_for.columns, near, asked_for.count)]
        log.rows = {pos: log.rows[pos] for pos in sorted(kept)}
    _look_back(log)


def _unit(kind: pa.DataType | None) -> Fraction:
    return Fraction(1) if kind is None else t.seconds_per_unit(kind)


def _sequences(log: Log) -> dict[tuple[Any, ...], list[int]]:
    found: dict[tuple[Any, ...], list[int]] = {}
    for pos in t.in_order(log.rows, log.order):
        found.setdefault(tuple(log.rows[pos][name] for name in log.key), []).append(pos)
    return found


def _look_back(log: Log) -> None:
    for places in _sequences(log).values():
        of_key = [log.rows[pos] for pos in places]
        for place, row in enumerate(of_key):
            row["#"], row["#all"] = place, of_key


# --- windows of one log -------------------------------------------------------------------------------------------


def _of_one_log(case: Case, spec: Any) -> list[Values]:  # noqa: PLR0911 - one for each kind
    log = _log(case)
    _prepare(log)
    for pos in _attribute_missing(log, spec):
        del log.rows[pos]
    _look_back(log)
    if isinstance(spec, specs.TableWindows):
        return _of_table(log)
    if spec.__class__.__name__ == "RowPattern":
        return _of_pattern(log)
    if "ends" in case.spec:
        return _lasting(log, spec)
    kind = log.clock
    more: dict[str, Any] = {"key": log.key, "order": log.order, "at_end": case.spec.get("at_end", "flush")}
    eviction = getattr(spec, "eviction", None)
    gone = None if eviction is None else (eviction.kind, eviction.amount)
    match spec:
        case specs.Tumbling():
            grows = isinstance(spec.policy, clocks.Growing)
            if grows:
                grid = _policies(log, spec.policy.window)[0]
                panes: Any = growth.growing(log.rows, grid, spec.policy.every, **more).panes
                return _told(log, panes)
            own = t.tumbling(
                log.rows, *_policies(log, spec.policy), marks=case.marks, eviction=gone, kind=kind,
                emit=case.spec.get("emit_evicted", False), **more,
            )  # fmt: skip
            return _told(log, own.panes)
        case specs.Sliding():
            evict, trigger = _policies(log, spec.evict)[0], _policies(log, spec.trigger)[0]
            if isinstance(spec.trigger, conditions.When):
                trigger = t.Punct(log.is_true(spec.trigger.condition))
            partial = case.spec.get("partial", False)
            return _told(
                log, slides.sliding(log.rows, evict, trigger, eviction=gone, kind=kind, partial=partial, **more)
            )
        case specs.TimeInterval():
            times = log.given.schema.field(case.spec["event_time"]).type
            told = {
                name: duration_seconds(str(case.spec[name]))
                for name in ("lag", "min_gap", "max_ahead")
                if name in case.spec
            }
            panes, late, _ = event_time.intervals(
                log.rows, spec.duration, spec.period, spec.discard_age, spec.offset, kind=times,
                event_time=case.spec["event_time"], **told, **more,
            )  # fmt: skip
            if sorted((pos, "late") for pos in late) != sorted(each for each in case.rejects if each[1] == "late"):
                raise CannotJudgeError(f"{case.name}: late are {late}")
            return _told(log, panes)
        case specs.Batched():
            partition = tuple(map(str, spec.partition_by))
            lots = batched.batched(
                log.rows, within=spec.within, every=spec.every, retain=spec.retain, retain_all=spec.retain_all,
                unique=spec.unique, partition_by=partition, clock_kind=kind if spec.within is not None else None,
                origin=_origin(case), **more,
            )  # fmt: skip
            return _told(log, _emitted(lots, case.spec.get("emit", "aggregates")))
    raise CannotJudgeError(str(spec))


def _attribute_missing(log: Log, spec: Any) -> list[int]:
    """The rows without a value that ``delta``, ``gap`` or an event time needs, and those ahead of their time."""
    parts = [getattr(spec, name, None) for name in ("policy", "evict", "trigger")]
    parts = [each for part in parts for each in (part.policies if isinstance(part, conditions.AnyOf) else [part])]
    names = [part.attribute for part in parts if getattr(part, "attribute", None)] + [
        log.case.spec[name] for name in ("event_time", "ends") if name in log.case.spec
    ]
    found = [pos for pos, row in log.rows.items() if any(row[name] is None or t.is_nan(row[name]) for name in names)]
    if "max_ahead" in log.case.spec and not isinstance(spec, specs.TimeInterval):
        clocks_of = [Fraction(row[log.order[0]]) * _unit(log.clock) for row in log.rows.values()]
        places = rows_ahead(clocks_of, duration_seconds(str(log.case.spec["max_ahead"])))
        found += [[*log.rows][place] for place in places]
    return found


def _origin(case: Case) -> Fraction:
    return origin_seconds(str(case.spec["origin"])) if "origin" in case.spec else Fraction(0)


def _emitted(lots: Sequence[Any], emit: str) -> list[Any]:
    if emit in ("aggregates", "rows"):
        return [*lots]
    taken = [replace(lot, rows=lot.entered if emit == "entered" else lot.left) for lot in lots]
    return [lot for lot in taken if lot.rows]


def _policies(log: Log, policy: Any) -> list[Any]:  # noqa: PLR0911, PLR0912 - one for each policy
    """The policies of the reference for one of the language, several for ``or``."""

    def kind_of(name: str) -> pa.DataType:
        return (
            pa.array([row[name] for row in log.shown]).type
            if name not in log.given.schema.names
            else log.given.schema.field(name).type
        )

    def amount(operand: Any) -> Any:
        expression = _expression(operand)
        if any(node.kind == "call" and node.value[0] == "previous" for node in walk(expression.root)):
            raise CannotJudgeError("previous")

        def of(_: Any, row: Values) -> Any:
            found = log.value(expression, row)
            return math.nan if found is None else found

        return of

    clock, closed = log.clock, log.case.spec.get("closed", "left")
    grid: dict[str, Any] = {"origin": _origin(log.case), "empty": log.case.spec.get("empty", "skip")}
    times = log.given[log.order[0]] if log.order else None
    if times is not None and "ends" in log.case.spec:
        times = pa.chunked_array([*times.chunks, *log.given[log.case.spec["ends"]].chunks])
    match policy:
        case conditions.AnyOf(parts):
            return [each for part in parts for each in _policies(log, part)]
        case policies.Count(n):
            return [t.Count(n)]
        case policies.Delta(name, by):
            return [t.Delta(name, by, kind_of(name))]
        case policies.Gap(name, by):
            return [t.Gap(name, by, kind_of(name))]
        case policies.Changing("count", None, by):
            return [t.Count(amount(by))]
        case policies.Changing(word, name, by):
            return [(t.Delta if word == "delta" else t.Gap)(name, amount(by), kind_of(name))]  # type: ignore[arg-type]
        case policies.Punct(None):
            return [t.Punct()]
        case policies.Punct(operand):
            return [sees.PunctOfWindow(log.seen(_expression(operand)))]
        case policies.Change(columns):
            for row in log.rows.values():
                row.update({f"#{each}": log.value(each, row) for each in columns})
            return [t.Change(tuple(f"#{each}" for each in columns))]
        case conditions.When(operand):
            return [t.When(log.is_true(operand))]
        case conditions.While(operand):
            return [t.While(log.is_true(operand))]
        case conditions.Split(operand):
            return [sees.Split(log.seen(_expression(operand)))]
        case conditions.From(operand, until):
            holds = log.is_true(operand)
            if until is None:
                return [t.From(holds, lambda _: False)]
            return [sees.FromOfWindow(log.seen(_expression(until)), opener=holds)]
        case conditions.Reaches(function, operand, least):
            column = f"#{operand}"
            for row in log.rows.values():
                row[column] = 1 if operand is None else log.value(operand, row)
            kind = kind_of(operand) if isinstance(operand, str) else pa.int64()
            return [t.Reaches(function, column, least, kind)]
        case clocks.Time(seconds):
            return [(t.RightClosed if closed == "right" else t.Time)(seconds, clock, **grid)]
        case clocks.Calendar(unit, tz, at, start) if closed == "left":
            return [local.calendar_of(times, unit, tz, at, start, empty=grid["empty"])]
        case clocks.Cron(expression, tz) if closed == "left":
            exact = [Fraction(each) * _unit(clock) for each in t.ticks_of(times)]
            begun = crons.beginnings(expression, tz, min(exact), max(exact), 16)
            return [local.Calendar(Fraction(1), clock, beginnings=tuple(begun), empty=grid["empty"], reason="cron")]
    raise CannotJudgeError(str(policy))


def _expression(operand: Any) -> Expression:
    return parse_expression(operand) if isinstance(operand, str) else operand


def _of_table(log: Log) -> list[Values]:
    request = parse_windows(log.case.spec["windows"], False)
    of_table = log.case.tables[request.name].table()
    named = {pair.right: pair.left for pair in request.keys}
    ticks = t.read(of_table)
    keyed = len(log.key) == 1
    windows = [
        table.Window(row[request.start], row[request.end], next((row[name] for name in named), None))
        for row in ticks.values()
    ]
    rows = [
        (log.rows[pos][log.key[0]] if keyed else "", log.rows[pos][log.order[0]], pos)
        for pos in t.in_order(log.rows, log.order)
    ]
    empty = log.case.spec.get("empty", "skip")
    empty = "keys" if empty == "row" and named else empty
    right, flush = log.case.spec.get("closed", "left") == "right", log.case.spec.get("at_end", "flush") == "flush"
    insides: list[Any] = []
    if "ends" in log.case.spec:
        lasting = [(key, clock, log.rows[pos][log.case.spec["ends"]], pos) for key, clock, pos in rows]
        insides = spans.lasting_in_table(lasting, windows, right=right, empty=empty, flush=flush)
        panes = [inside.pane for inside in insides]
    else:
        panes = table.table_panes(rows, windows, right=right, empty=empty, flush=flush)
    taken = [(each.name or f"{request.name}_{each.column}", each.column) for each in request.take or ()]
    if request.take is None:
        left = {request.start, request.end, *named}
        taken = [(f"{request.name}_{name}", name) for name in of_table.column_names if name not in left]
    found, numbers = [], dict[Any, int]()
    values = of_table.to_pylist()
    for place, pane in enumerate(panes):
        number = numbers[pane.key] = numbers.get(pane.key, -1) + 1
        one = t.Pane(
            (pane.key,) if keyed else (), number, pane.rows, pane.closed_by, None, -1,
            windows[pane.window].start, windows[pane.window].end,
        )  # fmt: skip
        more = {name: values[pane.window][column] for name, column in taken}
        found += _rows_of_pane(log, one, more, insides[place] if insides else None)
    return found


def _lasting(log: Log, spec: Any) -> list[Values]:
    (grid,) = _policies(log, spec.policy)
    at_end = log.case.spec.get("at_end", "flush")
    found = spans.lasting(log.rows, grid, log.case.spec["ends"], log.key, log.order, at_end=at_end)
    found.sort(key=lambda inside: (t.ranked(inside.pane.key), inside.pane.number))
    return [row for inside in found for row in _rows_of_pane(log, inside.pane, {}, inside)]


def _of_pattern(log: Log) -> list[Values]:
    text = log.case.spec["window"]
    pattern = read_window(text.removesuffix(", partitioned"))
    texts = {name: str(text) for name, text in pattern.conditions}
    tests = {name: matched_rows.condition(text, list(texts)) for name, text in texts.items()}
    reads = frozenset(name for name, text in texts.items() if matched_rows.reads_matches(text))
    job = PatternJob(pattern, tests, reads, log.key, log.order, _unit(log.clock))
    (night,) = job.nights([log.rows], log.case.spec.get("at_end", "flush"))
    calls, found = log.case.spec.get("agg"), []
    for pane in sorted(night.panes, key=lambda pane: (t.ranked(pane.key), pane.window)):
        taken = tuple(zip(pane.rows, pane.symbols, strict=True))
        ends = [log.rows[pos][log.order[0]] if log.order else None for pos in (pane.rows[0], pane.rows[-1])]
        head = {
            **dict(zip(log.key, pane.key, strict=True)), "window": pane.window, "closed_by": pane.closed_by,
            **_bounds(log, ends[0], ends[1]), "steps": len(taken), "count": len(taken),
        }  # fmt: skip
        if pattern.is_funnel and not calls:
            head |= dict.fromkeys(texts) | {name: log.shown[pos][log.order[0]] for pos, name in taken}
        plain_rows = dict(enumerate(log.shown))
        head |= {
            name: matched_rows.of_match(call, plain_rows, taken, list(texts)) for name, call in (calls or {}).items()
        }
        if log.case.spec.get("emit") == "rows":
            found += [{**head, **log.shown[pos], "matched_as": name or "."} for pos, name in taken]
        else:
            found.append(head)
    return found


# --- rows of an answer --------------------------------------------------------------------------------------------


def _told(log: Log, panes: Sequence[t.Pane]) -> list[Values]:
    group_by = _names(log.case.spec.get("group_by"))
    if group_by:
        cut = batched.batched_groups if panes and isinstance(panes[0], batched.Lot) else t.grouped
        panes = cut(panes, log.rows, group_by)  # type: ignore[operator, arg-type]
    found: list[Values] = []
    in_order = sorted(panes, key=lambda pane: (pane.key is None, t.ranked(pane.key or ()), pane.number or 0))
    for pane in in_order:
        if pane.mark == "only" and not pane.rows and pane.key is None:
            if "_mark" in log.case.columns:
                found.append({**dict.fromkeys(log.case.columns), "_mark": "only"})
            continue
        group = dict(zip(group_by, pane.group or (), strict=False))
        found += _rows_of_pane(log, pane, group | {"_mark": pane.mark})
    return _filled(log, found)


def _filled(log: Log, found: list[Values]) -> list[Values]:
    """``locf``: over the windows of each key."""
    for name, text in (log.case.spec.get("agg") or {}).items():
        if text.startswith("locf("):
            keys = list(dict.fromkeys(tuple(row[each] for each in log.key) for row in found))
            for key in keys:
                rows = [row for row in found if tuple(row[each] for each in log.key) == key]
                for row, value in zip(rows, over_time.locf([row[name] for row in rows]), strict=True):
                    row[name] = value
    return found


def _bounds(log: Log, start: Any, end: Any) -> Values:
    kind = log.clock
    if "event_time" in log.case.spec:
        kind = log.given.schema.field(log.case.spec["event_time"]).type

    def told(value: Any) -> Any:
        if value is None or kind is None or not pa.types.is_timestamp(kind):
            return value
        naive = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(value))
        return naive.replace(tzinfo=dt.UTC) if kind.tz else naive

    return {"window_start": told(start), "window_end": told(end)}


def _rows_of_pane(log: Log, pane: t.Pane, more: Values, inside: Any = None) -> list[Values]:
    head = {
        **dict(zip(log.key, pane.key or (), strict=True)), "window": pane.number, "closed_by": pane.closed_by,
        **_bounds(log, pane.start, pane.end), "timing": pane.timing, "index": pane.index, **more,
    }  # fmt: skip
    rows = [dict(log.shown[pos]) for pos in pane.rows]
    if inside is not None:
        for row, overlap, share in zip(rows, inside.overlaps, inside.shares, strict=True):
            row |= {"_overlap": float(overlap), "_share": float(share)}
    if log.case.spec.get("emit") in ("rows", "entered", "left"):
        return [{**head, **row} for row in rows]
    calls = log.case.spec.get("agg") or {"count": "count()"}
    return [head | {name: _aggregate(log, pane, rows, text, inside) for name, text in calls.items()}]


def _aggregate(log: Log, pane: t.Pane, rows: list[Values], text: str, inside: Any) -> Any:  # noqa: PLR0911
    if text.startswith("locf(") and text.endswith(")"):
        return _aggregate(log, pane, rows, text[5:-1], inside)
    call = parse_aggregate(f"it={text}")
    taken = tuple((place, None) for place in range(len(rows)))
    if not isinstance(call, specs.AggregateCall):
        return matched_rows.of_match(text, rows, taken, ())
    if call.function == "max_overlap":
        return inside.most
    if call.function in ("integral", "twa", "slope"):
        return _over_time(log, pane, call)
    if call.where is not None:
        root = call.where.root
        rows = [row for row in rows if matched_rows.value(root, matched_rows.Place([row], 0, (), frozenset())) is True]
    if not call.arguments:
        return len(rows)
    columns, literals = [], []
    for argument in call.arguments:
        if isinstance(argument, specs.Column):
            columns.append([row[argument.name] for row in rows])
        elif isinstance(argument, Expression):
            places = [matched_rows.Place([row], 0, (), frozenset()) for row in rows]
            columns.append([matched_rows.value(argument.root, place) for place in places])
        else:
            whole = isinstance(argument, Fraction) and argument.denominator == 1 and call.function == "nth"
            literals.append(int(argument) if whole else argument)
    found = aggregates.REFERENCE[call.function](*columns, *literals)
    if found is None and call.function == "sum" and case_is_batched(log.case):
        return 0
    return found


def case_is_batched(case: Case) -> bool:
    return isinstance(parse_window(case.spec["window"]), specs.Batched)


def _over_time(log: Log, pane: t.Pane, call: specs.AggregateCall) -> Any:
    (argument,) = call.arguments
    unit = _unit(log.clock)
    key = pane.key or ()
    places = _sequences(log)[key]
    own = [pos for pos in places if pos in pane.rows]

    def event(pos: int) -> tuple[Fraction, Any]:
        row = log.rows[pos]
        value = row[argument.name] if isinstance(argument, specs.Column) else log.value(argument, row)
        return Fraction(row[log.order[0]]) * unit, int(value) if isinstance(value, bool) else value

    if call.function == "slope":
        return over_time.slope([event(pos) for pos in own])
    spec = parse_window(log.case.spec["window"])
    on_clock = isinstance(getattr(spec, "policy", None), clocks.Time | clocks.Calendar | clocks.Cron)
    low, high = Fraction(pane.start) * unit, Fraction(pane.end) * unit
    now = max(Fraction(row[log.order[0]]) for row in log.rows.values()) * unit
    if on_clock and pane.closed_by == "end":
        high = min(high, now)
    events = [event(pos) for pos in places if event(pos)[0] < Fraction(pane.end) * unit or pos in own]
    return (over_time.integral if call.function == "integral" else over_time.twa)(events, low, high)


# --- joins --------------------------------------------------------------------------------------------------------


def _joined(case: Case, spec: Any) -> list[Values]:
    request = asked.parse_join(case.spec["join"])
    left, right = case.given.table(), case.tables[request.name].table() if case.tables else None
    order = _names(case.spec.get("order_by"))
    if order == ("arrival",):
        raise CannotJudgeError("arrival")
    orders = [(pair.left, pair.right) for pair in request.orders] or [(name, name) for name in order]
    keys = [(pair.left, pair.right) for pair in request.keys] or [(name, name) for name in _names(case.spec.get("key"))]
    kind = left.schema.field(order[0]).type

    def holds(expression: Expression | None) -> Callable[[t.Row], Any]:
        if expression is None:
            return lambda _: True
        return lambda row: matched_rows.value(expression.root, matched_rows.Place([row], 0, (), frozenset()))

    text = lambda name: parse_expression(case.spec[name]) if name in case.spec else None  # noqa: E731
    join = joins.Join(
        name=request.name, keys=keys, orders=orders, how=request.how, strict=request.strict,
        left_where=holds(text("where")), right_where=holds(request.where), match=holds(text("match")),
        left_columns=left.column_names, right_columns=(right or left).column_names, kind=kind,
        at_end="flush" if case.spec.get("at_end", "flush") == "flush" else "drop",
    )  # fmt: skip
    night = list(t.read(left).values()), None if right is None else list(t.read(right).values())
    both = joins.sides([night], join)
    calls, emit = case.spec.get("agg") or {}, case.spec.get("emit", "aggregates" if case.spec.get("agg") else "entered")
    window = case.spec["window"]
    if isinstance(spec, asked.Around | asked.At | specs.SideWindows):
        lots = lots_of(both, window, emit)
    else:
        rows = joins.merged_rows(both)
        log = Log(case, left, rows, [], tuple(one for one, _ in keys), tuple(one for one, _ in orders))
        _look_back(log)
        if isinstance(spec, specs.TimeInterval):
            raise CannotJudgeError("timeInterval")
        own = t.tumbling(rows, *_policies(log, spec.policy), key=log.key, order=log.order)
        lots = [replace(lot, start=lot.start, end=lot.end) for lot in joins.one_window(both, own.panes)]
    found = []
    lots = sorted(lots, key=lambda lot: (t.ranked(lot.key), lot.number))
    for lot in lots:
        told = {"window": lot.number, "closed_by": lot.closed_by, "window_start": lot.start, "window_end": lot.end}
        if kind != pa.int64():
            raise CannotJudgeError("clock")
        pairs = [join.row(pair) for pair in lot.pairs]
        tags = [{f"{request.name}_offset": tag} for tag in lot.tags] or [{} for _ in pairs]
        if not calls:
            found += [{**pair, **tag, **told} for pair, tag in zip(pairs, tags, strict=True)]
            continue
        both_there = [
            row for row, pair in zip(pairs, lot.pairs, strict=True) if None not in pair or join.how == "union"
        ]
        taken = tuple((place, None) for place in range(len(both_there)))
        head = join.row((lot.pairs[0][0], None)) if lot.pairs and isinstance(spec, asked.Around) else {}
        head |= dict(zip([one for one, _ in keys], lot.key, strict=True))
        found.append(
            head | told | {name: matched_rows.of_match(each, both_there, taken, ()) for name, each in calls.items()}
        )
    return found
