"""What joins do not take, before any column has a type; and that all else passes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from wincli.windowing.errors import ConfigError, SpecError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.distinct import parse_distinct
from wincli.windowing.language.joins import HOWS, parse_join
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_let, parse_window
from wincli.windowing.language.spec import Joined
from wincli.windowing.planning.join_rules import check_join

ROWS = {
    "around(5, 0)": "inner left right full semi anti",
    "around(5, 0, prevailing)": "inner left semi anti",
    "at(0, 5)": "inner left",
    "sliding, count(0) join time(5)": "inner left right full semi anti",
    "retain 1 join retain 1": "inner",
    "time(5)": "inner left right full semi anti union",
    "gap(ts, 5) or count(3)": "inner left right full semi anti union",
    "timeInterval, intervalDuration(5)": "inner left right full semi anti union",
    "sliding, count(3)": "union",
    "retain 5": "union",
    "match(a b, a = x > 1, b = x < 1)": "union",
    "count(3), partitionAge(5)": "union",
}
AGGREGATES = dict.fromkeys(ROWS, "inner union") | {
    "around(5, 0)": "inner left",
    "around(5, 0, prevailing)": "inner left",
    "at(0, 5)": "inner",
    "sliding, count(0) join time(5)": "inner",
    "retain 1 join retain 1": "inner",
    **dict.fromkeys(["sliding, count(3)", "retain 5", "match(a b, a = x > 1, b = x < 1)"], "union"),
    "count(3), partitionAge(5)": "union",
}


@pytest.mark.parametrize(("takes", "calls"), [(ROWS, None), (AGGREGATES, [parse_aggregate("sum(q_x)")])])
def test_windows_take_rows_without_a_partner_or_not(takes: dict[str, str], calls: Any) -> None:
    for window, how in product(takes, HOWS):
        options = Options(join=parse_join(f"q=Q on k {how}"))
        spec = parse_window(window)
        spec = Joined(spec, options.join) if options.join is not None and how == "left" else spec
        if how in takes[window].split():
            check_join(spec, options, calls, ["k", "ts", "q_x"])
        else:
            with pytest.raises(ConfigError, match="--join q: "):
                check_join(spec, options, calls, ["k", "ts", "q_x"])


LAG = parse_expression("lag(x) > 1")
IN_TWO = "lag() is about rows of one sequence, and --join q has two; compute it in a stage before, as a column"
MISTAKES: list[tuple[str, str | None, dict[str, Any], str]] = [
    (
        "time(5)",
        None,
        {"match": LAG},
        "--match is about pairs of --join, and there is none; use --where, or say --join",
    ),
    (
        "at(0)",
        None,
        {},
        "at(0) is a window over both sides of --join, and there is none; "
        'say --join "NAME=PATH on KEY", or NAME alone for the input itself',
    ),
    (
        "around(5, 0, prevailing)",
        "q=Q full",
        {},
        "--join q: around(5, 0, prevailing) takes no full; say inner or left or semi or anti",
    ),
    (
        "sliding, count(3)",
        "q=Q",
        {},
        "--join q: sliding, count(3), count(1) pairs no rows of two sides; "
        "use around(..), at(..), SIDE join SIDE, a tumbling window or timeInterval; or say union",
    ),
    (
        "around(5, 0)",
        "q=Q",
        {"emit": "left"},
        "--emit left is for SIDE join SIDE, and this window is around(5, 0); say --emit rows",
    ),
    (
        "sliding, count(1) join count(1)",
        "q=Q left",
        {"emit": "rows"},
        "--join q: rows without a partner come out with those that entered, and not with --emit rows; "
        "say --emit entered, or inner",
    ),
    (
        "at(0)",
        "q=Q",
        {"operator": "m:C"},
        "--operator does not go with --join q: it sees rows, not pairs; use it in a next stage",
    ),
    ("time(5)", "q=Q", {"ends": "e"}, "--ends does not go with --join q; leave one of them out"),
    (
        "time(5)",
        "q=Q",
        {"distinct": parse_distinct("id")},
        "--distinct does not go with --join q: it is about rows of one side; use it in a stage before",
    ),
    (
        "time(5)",
        "q=Q union",
        {"match": parse_expression("x > 1")},
        "--join q: union pairs no rows, so --match has no meaning; use --where and where (..)",
    ),
    ("at(0)", "q=Q", {"let": (parse_let("y=lag(x)"),)}, f"--let y: {IN_TWO}"),
    ("at(0)", "q=Q", {"where": LAG}, f"--where: {IN_TWO}"),
    ("at(0)", "q=Q", {"match": LAG}, f"--match: {IN_TWO}"),
    ("at(0)", "q=Q where (lag(x) > 1)", {}, f"--join q: {IN_TWO}"),
    ("punct(lag(x) > 1)", "q=Q", {}, f"tumbling, punct(lag(x) > 1): {IN_TWO}"),
    (
        "at(0)",
        "o=Q",
        {},
        "--join o: at(..) gives pairs a column o_offset, and there is one already; "
        "take columns by name, with another one: take offset as ..",
    ),
]


@pytest.mark.parametrize(("window", "join", "options", "said"), MISTAKES)
def test_what_does_not_go_together(window: str, join: str | None, options: dict[str, Any], said: str) -> None:
    given = Options(join=None if join is None else parse_join(join), **options)
    with pytest.raises(ConfigError) as raised:
        check_join(parse_window(window), given, None, ["ts", "o_offset"])
    assert str(raised.value) == said


def test_lag_in_an_aggregate_and_a_window_of_one_input() -> None:
    options = Options(join=parse_join("q=Q"))
    with pytest.raises(ConfigError, match=r"--agg y: lag\(\)"):
        check_join(parse_window("at(0)"), options, [parse_aggregate("y=sum(x - lag(x))")], [])
    check_join(parse_window("at(0)"), options, [parse_aggregate("y=sum(x - q_x)"), parse_aggregate("last(x)")], [])
    check_join(parse_window("time(5)"), Options(), None, ["_side"])


def test_conditions_on_rows_of_one_side_read_that_side() -> None:
    columns = ["q_bid", "q_ts", "_side", "k", "ts", "bid"]
    join = parse_join("q=Q on k where (bid > 1 and k = 'x' and kk = 2)")
    for options, said in (
        (
            Options(join=replace(join, where=None), where=parse_expression("bid > 1 and q_bid > 2")),
            "--where is about rows of the left, and 'q_bid' is a column of the right; "
            "say --match, or where (..) in --join q\n  bid > 1 and q_bid > 2\n              ^^^^^",
        ),
        (
            Options(
                join=replace(join, where=None),
                where=parse_expression("z > 1"),
                let=(parse_let("y=q_bid - 1"), parse_let("z=y + bid")),
            ),
            "--where is about rows of the left, and 'z' reads the right; "
            "say --match, or where (..) in --join q\n  z > 1\n  ^",
        ),
        (
            Options(join=join, where=parse_expression("bid > 1")),
            "--join q: the right side has no column 'kk' for where (..); known: bid, ts\n"
            "  bid > 1 and k = 'x' and kk = 2\n                          ^^",
        ),
        (
            Options(join=parse_join("q on k"), where=parse_expression("q_bid > 2")),
            "--where is about rows of the left, and 'q_bid' is a column of the right; "
            "say --match, or where (..) in --join q\n  q_bid > 2\n  ^^^^^",
        ),
    ):
        with pytest.raises(SpecError) as raised:
            check_join(parse_window("at(0)"), options, None, columns[3:] if options.join.path is None else columns)  # type: ignore[union-attr]
        assert str(raised.value) == said
    check_join(parse_window("at(0)"), Options(join=join), None, ())
