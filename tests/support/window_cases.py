"""Window specs of every kind, each with its order and options, and outputs, that tests run over random logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from wincli.windowing.enrichment.window_table import GivenTable, window_table
from wincli.windowing.language.enrichment import parse_windows
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.plan import Plan, make_plan

WindowCase = tuple[str, list[str] | str, dict[str, Any]]
T, ARRIVAL = ["t"], "arrival"
SLIDING = ["count(3)", "count(0)", "delta(a, 2)", "time(4)"]
TRIGGERS = ["count(1)", "count(2)", "delta(a, 1)", "time(3)"]


def _windows(*rows: tuple[float, float, str]) -> pa.Table:
    """Windows of a table: their bounds in seconds, and their key."""
    times = [pa.array([int(1000 * row[at]) for row in rows], pa.timestamp("ms")) for at in (0, 1)]
    return pa.table({"s": times[0], "e": times[1], "k": [row[2] for row in rows], "n": pa.array(range(len(rows)))})


FOLLOWING = _windows((90, 97, "a"), (97, 100, "b"), (100, 102.5, "a"), (104, 108, "c"), (108, 500, "a"))
NESTED = _windows(
    (90, 120, "a"), (95, 100, "b"), (100, 100, "a"), (100, 105, "a"), (100, 105, "a"), (102.5, 104, "c"),
    (108, 130, "b"), (109, 112, "b"), (300, 310, "a"), (10, 20, "z"), (60, 99, "z"), (100, 101, "d"),
)  # fmt: skip
WINDOWS: list[WindowCase] = [
    *((f"sliding, {e}, {t}", T, {"partial": p}) for e in SLIDING for t in TRIGGERS for p in (False, True)),
    ("timeInterval, intervalDuration(4)", ARRIVAL, {"event_time": "t", "lag": Fraction(1)}),
    ("timeInterval, intervalDuration(6), creationPeriod(2), discardAge(5)", ARRIVAL, {"event_time": "t"}),
    ("timeInterval, intervalDuration(2), creationPeriod(3), intervalOffset(1)", T, {"event_time": "t"}),
    ("timeInterval, intervalDuration(6), creationPeriod(4)", ARRIVAL, {"event_time": "t", "min_gap": Fraction(3)}),
    ("timeInterval, intervalDuration(4), discardAge(3)", ARRIVAL, {"event_time": "t", "max_ahead": Fraction(2)}),
    ("within 3", T, {}),
    ("within 2.5 retain 2", T, {}),
    ("within 4 every 3 with unique u", T, {}),
    ("retain 3", ARRIVAL, {}),
    ("partition by u retain 2", ARRIVAL, {}),
    ("partition by u retain 2 every 3 with unique flag", ARRIVAL, {}),
    ("retain all", ARRIVAL, {}),
    ('calendar(day, tz="Europe/Paris", at=00:00)', T, {}),
    ("count(3)", ARRIVAL, {}),
    ('cron("* * * * *", "Europe/Paris")', T, {}),
    ("count(3), partitioned, tupleCount(5)", ARRIVAL, {"emit_evicted": True}),
    ("delta(a, 2), partitioned, partitionCount(2)", T, {"emit_evicted": True}),
    ("time(4), partitioned, partitionAge(3)", T, {"emit_evicted": True}),
    ("punct(flag), partitioned, partitionAge(2)", T, {}),
    ("sliding, count(2), count(1), partitioned, partitionCount(2)", ARRIVAL, {"partial": True}),
    ("sliding, time(4), time(3), partitioned, tupleCount(4)", T, {}),
    ("punct()", ARRIVAL, {}),
    ("change(x)", T, {}),
    ("gap(t, 2) or delta(a, 3) or count(4)", T, {}),
    ("while(flag) or time(4)", T, {}),
    ("when(flag)", ARRIVAL, {}),
    ("split(abs(a - first(a)) > 2) or punct(sum(x) > 0.5 and count() > 1)", T, {}),
    ("from(flag) or split(u <> first(u) or t - last(t) >= 2s)", T, {}),
    ("punct(count() >= 2 * previous(count(), 1, 0.25)) or split(a > mean(a) + 2)", T, {}),
    ("from(x > 0.5, until=flag)", T, {}),
    ("reaches(sum(a), 205) or change(u)", ARRIVAL, {}),
    ("time(4)", T, {"closed": "right"}),
    ("time(4)", T, {"ends": "till"}),
    ("time(3)", T, {"ends": "till", "closed": "right", "empty": "row"}),
    ("sliding, count(3), when(flag)", T, {"partial": True}),
    ("from(x > 0.5, until=flag) or gap(t, 3), partitioned, partitionAge(2)", T, {"emit_evicted": True}),
    ("reaches(sum(a), 205) or change(u), partitioned, tupleCount(4)", ARRIVAL, {}),
    ("time(6) every 2", T, {}),
    ("table(w)", T, {"windows": {"w from s to e take n": NESTED}}),
    ("table(w), partitioned", T, {"windows": {"w on k from s to e": NESTED}, "closed": "right"}),
    ("table(w)", T, {"windows": {"w from s to e": FOLLOWING}, "empty": "row"}),
    ("table(w), partitioned", T, {"windows": {"w on k from s to e": NESTED}, "empty": "row"}),
    ("table(w)", T, {"windows": {"w from s to e take n": NESTED}, "ends": "till"}),
    ("table(w), partitioned", T, {"windows": {"w on k from s to e": NESTED}, "ends": "till", "closed": "right"}),
    ("table(w)", T, {"windows": {"w from s to e": FOLLOWING}, "ends": "till", "empty": "row"}),
    ("split(range(a) > 1 or x is distinct from last(x)), partitioned, tupleCount(4)", ARRIVAL, {}),
    ("match(p (q | r q)* r?, p = u = 'p' or x > 0.5, q = u <> 'r', r = flag)", ARRIVAL, {}),
    ("match(p -> q+ (-> r | p)?, p = u = 'p', q = u = 'q', r = flag) within 4", T, {}),
    ("match(p+ (-> q)*? r?, p = a >= first(p.a), q = x < mean(x) or u = last(p.u), r = count() > 3) within 5", T, {}),
    ("match(p .*? r, p = u <> 'r', r = flag) within 5, overlapping, partitioned", T, {}),
]
MORE: list[WindowCase] = [
    (
        "timeInterval, intervalDuration(3)",
        ARRIVAL,
        {"event_time": "t", "max_ahead": Fraction(1), "min_gap": Fraction(2)},
    ),
    ("gap(t, 2)", T, {"max_ahead": Fraction(10**6)}),
    ("time(4)", T, {"empty": "row"}),
    ("time(4)", T, {"empty": "mark"}),
    ("time(2.5)", T, {}),
    ("delta(a, 2)", T, {}),
    ("gap(a, 2)", ARRIVAL, {}),
    ("when(a < lag(a))", T, {}),
    ("sliding, count(3), when(a < lag(a))", T, {}),
    ("sliding, delta(a, 2), when(lag(a, 2) < a)", T, {"partial": True}),
    ("punct() or gap(a, 2)", ARRIVAL, {}),
    ("sliding, time(4), when(flag)", T, {}),
    ("time(4)", T, {"closed": "right", "empty": "row"}),
    ("time(4)", T, {"closed": "right", "empty": "mark"}),
    ('calendar(day, tz="Europe/Paris", at=00:00)', T, {"closed": "right"}),
    ("gap(t, 2)", T, {}),
    ("change(u)", T, {}),
    ("change(x, flag)", ARRIVAL, {}),
    ("punct(flag)", T, {}),
    ("split(flag)", ARRIVAL, {}),
    ("split(sum(a) * 9223372036854775 < 0) or gap(t, 2)", T, {}),
    ("punct()", T, {}),
    ('calendar(day, tz="Europe/Paris", at=00:00)', T, {"empty": "row"}),
    ('cron("* * * * *", "Europe/Paris")', T, {"empty": "row"}),
    ("within 4 every 2", T, {}),
    ("within 5 every 2 retain 2", T, {}),
    ("partition by u within 5 every 2 retain 2 with unique flag", T, {}),
    ("partition by u within 5 retain 1 with unique flag", T, {}),
    ("retain 2 every 2", ARRIVAL, {}),
    ("retain 3 with unique flag", ARRIVAL, {}),
    ("sliding, delta(a, 2), count(2), partitioned, partitionAge(3)", T, {}),
    ("sliding, count(3), delta(a, 1), partitioned, partitionCount(2)", T, {}),
    ("sliding, count(3), count(2), partitioned, tupleCount(5)", T, {"partial": True}),
    ("sliding, delta(a, 2), time(2), partitioned, partitionAge(3)", T, {"partial": True}),
    ("sliding, time(2), delta(a, 1), partitioned, partitionCount(2)", T, {}),
    ("sliding, time(2), count(2), partitioned, tupleCount(3)", T, {}),
    ("sliding, time(3), count(2), partitioned, partitionAge(2)", T, {}),
    ("sliding, time(2), time(1), partitioned, partitionAge(2)", T, {}),
    ("when(flag), partitioned, partitionCount(2)", T, {"emit_evicted": True}),
    ("while(flag) or time(4), partitioned, partitionAge(2)", T, {"emit_evicted": True}),
    ("punct() or count(3), partitioned, partitionCount(2)", ARRIVAL, {}),
    ("count(2), partitioned, partitionAge(2)", T, {"emit_evicted": True}),
    ("time(4), partitioned, partitionCount(2)", T, {"emit_evicted": True}),
    ("time(4), partitioned, tupleCount(3)", T, {}),
    ("gap(a, 2), partitioned, tupleCount(3)", T, {"emit_evicted": True}),
    ('cron("* * * * *"), partitioned, partitionCount(2)', T, {"emit_evicted": True}),
    ("change(flag), partitioned, partitionCount(2)", T, {"emit_evicted": True}),
    ("change(u), partitioned, partitionAge(2)", T, {}),
    ("timeInterval, intervalDuration(3), discardAge(2)", ARRIVAL, {"event_time": "t"}),
    ("timeInterval, intervalDuration(3), creationPeriod(2), discardAge(9)", ARRIVAL, {"event_time": "t"}),
    ("count(1)", T, {}),
    ("delta(a, 0)", ARRIVAL, {}),
    ("delta(t, 20)", T, {}),
    ("delta(x, 0.5)", ARRIVAL, {}),
    ("gap(x, 0.2)", ARRIVAL, {}),
    ("change(u, flag)", T, {}),
    ('cron("*/2 * * * *", "Asia/Kathmandu")', T, {"empty": "row"}),
    ("time(4) every 1", T, {"closed": "right"}),
    ("time(3) every 1.5", T, {"origin": Fraction(1)}),
    ('calendar(day, tz="Europe/Paris", at=00:00) every 25000', T, {}),
    ('calendar(day, tz="Asia/Kathmandu", at=00:01) every 7', T, {"closed": "right"}),
    ("match(fall+ rise{2,}, fall = a < lag(a), rise = a >= lag(a))", T, {}),
    ("match(p (-> q r*?)+, p = u = 'p', q = a % 2 = 0, r = flag) within 2.5, overlapping", T, {}),
    ("match(p+, p = a % 3 <> 0) within 3", T, {}),
    ("match((p | q)+? r, p = u = 'p', q = max(p.a) - a <= nth(a, -2), r = flag and sum(q.x) > 0)", ARRIVAL, {}),
    ("funnel(p = u = 'p', q = flag, r = u = 'r') within 6", T, {}),
    ("time(4)", T, {"ends": "till", "empty": "row"}),
    ("time(3)", T, {"ends": "till", "empty": "mark"}),
    ("time(3)", T, {"ends": "till", "empty": "mark", "closed": "right"}),
    ("time(2.5)", T, {"ends": "till", "closed": "right"}),
    ('cron("* * * * *", "Europe/Paris")', T, {"ends": "till"}),
    ('calendar(day, tz="Europe/Paris", at=00:00)', T, {"ends": "till", "closed": "right"}),
    ("table(w)", T, {"windows": {"w from s to e": FOLLOWING}, "ends": "till", "empty": "row", "closed": "right"}),
    ("table(w), partitioned", T, {"windows": {"w on k from s to e": NESTED}, "ends": "till", "empty": "row"}),
]
AMOUNTS: list[WindowCase] = [
    ("gap(t, 2 + a % 3)", T, {}),
    ("delta(t, a % 9)", ARRIVAL, {}),
    ("count(1 + a % 9)", ARRIVAL, {}),
    ("reaches(range(t), 6)", T, {}),
    ("reaches(sum(a), 700)", T, {}),
    ("delta(t, 9) or time(20) or change(u)", T, {}),
    ("time(4)", T, {"origin": Fraction(3, 2)}),
    ("count(1000)", T, {}),
]
"""Amounts that rows say, which may reject a row, and windows of many rows."""
AGGREGATES = ["count()", "sum(a)", "ids=collect(id)", "top=max(x)", "mean(x)", "spread=var(x)", "skew(x)", "rank(a)"]

MERGING = [
    "count()", "count(x)", "sum(a)", "sum(x)", "mean(x)", "mean(a)", "min(x)", "max(x)", "min(u)", "max(t)",
    "bool_and(flag)", "bool_or(flag)", "ups=sum(a) where flag", "first(x)", "last(u)", "nth(x, 2)", "nth(a, -2)",
    "arg_min(id, x)", "arg_max(u, a)", "range(a)", "range(t)", "min_count(x)", "max_count(a)", "var(x)", "stddev(a)",
    "var_pop(x)", "skew(x)", "kurtosis(a)", "rise=last(a) - first(a)",
    "all=support.merging_functions:words(u)", "way=support.merging_functions:way(a)",
    "ways=support.merging_functions:way(a) where flag", "late=support.merging_functions:last_above(x, 0.5)",
    "top=support.merging_functions:largest(a, 3)", "both=support.merging_functions:way(a) + sum(a)",
]  # fmt: skip
"""Aggregates of which rows of a window can be combined."""
OVER_TIME = [
    "integral(x)", "twa(x)", "integral(a)", "ups=integral(flag)", "mean=twa(a) where flag", "share=twa(u = 'a') / 2",
    "slope(x)", "locf(sum(a) where flag)", "new=coalesce(locf(max(x) where a % 7 = 0), 0)", "locf(last(u))",
    "rows=locf(collect(id) where flag)", "held=locf(twa(x) where flag)", "long=locf(integral(x))",
    "diff=integral(x - lag(x))", "back=locf(min(lag(a, 2)))",
]  # fmt: skip
"""Aggregates of clock and values, all but one of which depend on what their key had before."""


OF_MATCHES = ["way=string_join(matched_as, '')", "of_p=sum(p.a)", "far=last(x) - first(p.x)", "n=count(p)"]
"""Aggregates of rows of a match, of which p is a symbol."""
OF_LASTING = ["sum(_overlap)", "part=sum(x * _share) where _share < 1", "max_overlap()"]
"""Aggregates of rows that last."""


def overlaps(case: WindowCase) -> bool:
    """Whether a row may be in several windows of a kind."""
    words = ("sliding", "within", "match", "retain", "timeInterval", "every", "table")
    return "ends" in case[2] or any(word in case[0] for word in words)


def plan_of_case(
    window: str, schema: pa.Schema, key: Sequence[str], order_by: Any, calls: Any, options: Mapping[str, Any]
) -> Plan:
    """The plan of a case. ``options``: those of a window, as values, and its ``windows``."""
    tables = {parse_windows(text, False): table for text, table in options.get("windows", {}).items()}
    own = Options(**{name: value for name, value in options.items() if name != "windows"})
    opened = [GivenTable(request, table.schema) for request, table in tables.items()]
    plan = make_plan(parse_window(window), schema, key, order_by, calls, own, tables=opened)
    if plan.windows is None:
        return plan
    bound = plan.windows.bound
    return replace(plan, windows=window_table(bound, tables[bound.request]))


def output_options(draw: st.DrawFn, window: str) -> dict[str, Any]:
    changes = "sliding" in window or ("within" in window and "(" not in window)
    changes |= "retain" in window and "all" not in window
    emit = draw(st.sampled_from(["aggregates", "aggregates", "rows", *(["entered", "left"] if changes else [])]))
    if emit != "aggregates":
        return {"emit": emit, "sort_by": draw(st.sampled_from([(), ("x desc", "u")]))}
    return {"group_by": draw(st.sampled_from([(), (), ("u",), ("flag", "x")]))}
