"""Joins drawn: the rows of each side on a line of their own, and the panes of both between them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from support.drawn_windows import counts_of_svg
from wincli.windowing.drawings.draw import draw
from wincli.windowing.errors import ConfigError

TRADES = pa.table({"k": [1, 1, 1, 2], "t": [1, 4, 8, 6]})
QUOTES = pa.table({"k": [1, 1, 1, 1, 1, 2], "t": [1, 2, 3, 5, 9, 20], "v": [1.0, 2, 3, 4, 5, 6]})


def test_rows_of_both_sides_stand_above_and_below_their_panes() -> None:
    drawn = draw(TRADES, "around(2, 1)", join={"q on k by t full": QUOTES})
    lines = str(drawn).splitlines()[3:]
    assert [" ".join(line.split()) for line in lines] == [
        "t: 1 1 2 3 4 5 6 8 9 20",
        "left 1: b e h",
        "pane 0: [a b c] time 3 rows -1..2 @2",
        "pane 1: [c d e f] time 4 rows 2..5 @5",
        "pane 2: [h i] time 2 rows 6..9 @9",
        "right 1: a c d f i",
        "left 2: g",
        "pane 0: [g] time 1 row 4..7 @7",
        "pane 1: [j> end 1 row 19..22",
        "right 2: j",
    ]
    above = {
        letter: at for line in lines[1:] if line[:1] in "lr" for at, letter in enumerate(line[9:]) if letter != " "
    }
    for line in lines:
        if line.lstrip().startswith("pane"):
            drawn_part = line[9 : line.index("row") - 12]
            assert all(above[letter] == at for at, letter in enumerate(drawn_part) if letter in above)
    rows, panes, shown = counts_of_svg(drawn)
    assert (rows, panes, shown) == (10, 5, 11)


@pytest.mark.parametrize(
    ("window", "join", "panes"),
    [
        ("at(-1, 2)", "q on k by t left take v", ["[b . d]", "[d e f]", "[f h i]", "[g]"]),
        ("at(0)", "q on k by t strict", ["[d e]", "[f h]"]),
        ("around(0, 0)", "q on k by t anti", ["[e]", "[h]", "[g]"]),
    ],
)
def test_panes_show_their_pairs_and_rows_alone(window: str, join: str, panes: list[str]) -> None:
    text = str(draw(TRADES, window, join={join: QUOTES}))
    found = [line for line in text.splitlines() if line.lstrip().startswith("pane")]
    assert [" ".join(line[line.index("[") : line.index("]") + 1].split()) for line in found] == panes


def test_one_log_is_drawn_on_both_sides() -> None:
    log = pa.table({"t": [1, 2, 5, 6], "s": ["a", "b", "a", "b"]})
    drawn = draw(log, "around(2, 2)", join="q left where (s = 'b')", where="s = 'a'", order_by="t")
    (lane,) = drawn.picture.lanes
    assert [(pane.number, pane.places, pane.count) for pane in lane.panes] == [(0, (0, 1), 2), (1, (2, 3), 2)]
    assert lane.right == {1, 3}


def test_of_many_rows_it_says_how_many_are_not_drawn() -> None:
    log = pa.table({"t": range(200)})
    drawn = draw(log, "around(150, 0)", join={"q by t": log}, limit=70)
    (lane,) = drawn.picture.lanes
    assert lane.more_rows == 330
    assert lane.panes[-1].count - len(lane.panes[-1].places) > 0
    for pane in lane.panes:
        assert pane.count == min(pane.number, 150) + 2


@pytest.mark.parametrize(
    ("window", "join", "calls", "ends"),
    [
        ("around(2, 1)", "q on k by t left", ["n=count()", "m=max(q_v)"], ["n=3  m=4", "n=0  m=-"]),
        ("around(2, 1)", "q on k by t left take v", {"m": "max(q_v - t)"}, ["m=1", "m=0", "m=-3", "m=-"]),
        ("time(5)", "q on k by t", ["n=count()"], ["5 rows  0..5  n=6", "3 rows  5..10  n=2"]),
        ("sliding, count(1) join count(2)", "q on k by t", ["n=count()"], ["2 rows  n=1", "3 rows  n=2"]),
    ],
)
def test_aggregates_of_pairs_stand_beside_their_panes(window: str, join: str, calls: Any, ends: list[str]) -> None:
    panes = [
        line for line in str(draw(TRADES, window, join={join: QUOTES}, aggregates=calls)).splitlines() if "pane" in line
    ]
    assert [end for end in ends if not any(line.endswith(end) for line in panes)] == []


def test_pairs_alone_have_no_aggregates_beside_them() -> None:
    assert "=" not in str(draw(TRADES, "at(-1, 2)", join={"q on k by t left": QUOTES}))


def test_a_computed_key_is_none_of_both_logs() -> None:
    with pytest.raises(ConfigError, match="'c' is computed by --let"):
        draw(TRADES, "around(1, 1)", join={"q on c=k by t": QUOTES}, let={"c": "k + 1"})
