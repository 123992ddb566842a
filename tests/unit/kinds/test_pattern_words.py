"""Row patterns in the library: what aggregates read by symbol, funnels, rows of matches, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import wincli
from wincli.windowing.errors import ConfigError, WincliError
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.identity import check_goes_on
from wincli.windowing.planning.plan import make_plan

LOG = pa.table({"t": [0, 5, 10, 20, 21, 30], "e": list("axbcab"), "x": [1, 2, 3, 4, 5, 6]})
MATCH = "match(a -> b, a = e = 'a', b = e = 'b')"
FUNNEL = "funnel(see = e = 'a', cart = e = 'b', pay = e = 'c') within 30"


def told(window: str, log: pa.Table = LOG, **options: Any) -> list[dict[str, Any]]:
    """What is told of each match but its bounds."""
    found = wincli.aggregate(log, window, **{"order_by": "t", "plain": True, **options})
    return found.drop_columns(["window", "window_start", "window_end", "closed_by"]).to_pylist()


@pytest.mark.parametrize(
    ("aggregate", "values"),
    [
        ("v=last(b.x)", [3, 6]),
        ("v=sum(a.x * 2 + 1)", [3, 11]),
        ("v=count(b)", [1, 1]),
        ("v=count()", [2, 2]),
        ("v=sum(x)", [4, 11]),
        ("v=last(b.t) - first(a.t)", [10, 9]),
        ("v=string_join(matched_as, ' ')", ["a b", "a b"]),
        ("v=count() where matched_as in ('b', 'c')", [1, 1]),
        ("v=sum(b.x) where x > 3", [None, 6]),
        ("v=arg_max(x, t) where matched_as = 'a'", [1, 5]),
        ("v=sum(b.x - lag(b.x))", [1, 1]),
        ("v=sum(lag(x, 2)) where matched_as = 'b'", [1, 4]),
        ("v=sum(b.before)", [2, 5]),
    ],
)
def test_aggregates_read_rows_by_symbol(aggregate: str, values: list[Any]) -> None:
    """The rows between a and b are in no match."""
    assert told(MATCH, aggregates=[aggregate], let="before=lag(x)") == [{"v": value} for value in values]


def test_a_dot_is_matched_as_a_dot_and_rows_of_a_match_tell() -> None:
    rows = told("match(a . b?, a = e = 'a', b = e = 'b')", emit="rows")
    assert [(row["t"], row["matched_as"]) for row in rows] == [(0, "a"), (5, "."), (10, "b"), (21, "a"), (30, ".")]


def test_a_funnel_gives_how_far_it_came_and_when() -> None:
    steps = [{"steps": 3, "see": 0, "cart": 10, "pay": 20}, {"steps": 2, "see": 21, "cart": 30, "pay": None}]
    assert told(FUNNEL) == steps
    assert told(FUNNEL, having="steps < 3") == steps[1:]
    assert told(FUNNEL, aggregates="n=count()") == [{"n": 3}, {"n": 2}]
    stamped = LOG.set_column(0, "t", LOG["t"].cast(pa.timestamp("s")))
    assert told(FUNNEL, stamped, order_by=None)[0]["pay"].second == 20
    assert [row["e"] for row in told(FUNNEL, emit="rows")] == ["a", "b", "c", "a", "b"]


@pytest.mark.parametrize(
    ("window", "options", "what"),
    [
        (MATCH, {"aggregates": "last(bb.x)"}, "the pattern has no symbol 'bb'; did you mean 'b'"),
        (MATCH, {"aggregates": "last(b.y)"}, "the column 'y' is not there"),
        (MATCH, {"aggregates": "sum(lag(matched_as))"}, "matched_as, the symbol .*, after that; leave matched_as out"),
        (MATCH, {"aggregates": "count(matched_as.x)"}, "matched_as"),
        ("match(x, x = true)", {}, "'x' is a column, and a symbol of"),
        ("match(y, y = true)", {"let": "y=x"}, "'y' is a column, and a symbol of"),
        ("match(a, a = q.r = 1)", {}, "the pattern has no symbol 'q', and the input no such column"),
        ("match(a, a = x + 1)", {}, r"x \+ 1 is BIGINT; compare it with something\n  x \+ 1\n  \^\^\^\^\^"),
        ("match(a, a = x)", {}, r"a needs a condition, and x is BIGINT; compare it with something\n  x\n  \^"),
        ("match(a, a = true) within 5", {"order_by": "arrival"}, "needs a clock, and arrival order has none"),
        ("match(a, a = true) within 5m", {}, "'t' is int64, numbers without a unit"),
        ("match(a, a = true), partitioned", {}, "the window is partitioned, but there is no key"),
        (
            f"{MATCH}, overlapping",
            {"operator": "a:B"},
            r"go with overlapping.*change\(window\) over a result",
        ),
        (MATCH, {"empty": "row"}, "--empty row is for"),
        (MATCH, {"closed": "right"}, "--closed right is for"),
        (MATCH, {"emit": "left"}, "--emit left is for"),
        (MATCH, {"emit": "entered"}, "--emit entered is for"),
        (MATCH, {"ends": "x"}, "--ends is for"),
        (MATCH, {"partial": True}, "--partial is for"),
        (MATCH, {"emit_evicted": True}, "--emit-evicted is for"),
        ("count(2)", {"max_open_rows": 5}, "--max-open-rows is for match and funnel windows"),
        ("count(2)", {"aggregates": "count(matched_as)"}, r"this window is no match; use match"),
        ("count(2)", {"aggregates": "x=count() where matched_as = 'a'"}, "this window is no match"),
    ],
)
def test_what_does_not_go_with_row_patterns(window: str, options: dict[str, Any], what: str) -> None:
    with pytest.raises(WincliError, match=what):
        told(window, **options)


def test_a_column_with_the_name_of_that_of_symbols_is_refused_in_matches_alone() -> None:
    log = LOG.append_column("matched_as", LOG["e"])
    with pytest.raises(ConfigError, match="the input has a column 'matched_as', and in a match there is another"):
        told(MATCH, log)
    assert told("count(6)", log, aggregates="v=first(matched_as)") == [{"v": "a"}]


@pytest.mark.parametrize(("window", "waits"), [("a -> b", True), ("a b", False), ("a (-> b)?", True)])
def test_with_a_state_an_arrow_needs_within(window: str, waits: bool) -> None:
    text = f"match({window}, a = e = 'a', b = e = 'b')"
    check_goes_on(make_plan(parse_window(f"{text} within 5"), LOG.schema, (), ["t"]))
    plan = make_plan(parse_window(text), LOG.schema, (), ["t"])
    if not waits:
        check_goes_on(plan)
        return
    with pytest.raises(ConfigError, match="with a state -> needs within"):
        check_goes_on(plan)
