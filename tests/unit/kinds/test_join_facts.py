"""What is told of a row of a join: as many partners as it has in the pairs that come out, and why it has none."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.in_memory_engine import MemorySource
from support.strategies import examples
from wincli.cli.inspection.explanation.panes_of_key import ALL, only_panes, panes_of, read_key
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.kinds.facts import KeyPanes
from wincli.windowing.language.joins import LEFT, RIGHT, SIDE, parse_join
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.plan import make_plan

WINDOWS = [
    "around(2, 1)", "around(-1, 4)", "sliding, count(2) join count(1)", "sliding, count(0) join count(2)",
    "sliding, time(3) join count(0)", "sliding, time(2) join delta(x, 2)", "retain 1 join retain 2",
    "within 3 join retain 1", "within 2 join within 3 retain 2", "within 4 every 2 join retain 2 every 2", "time(4)",
    "gap(t, 2)", "count(3)", "delta(t, 4) or count(4)",
]  # fmt: skip
ROWS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([LEFT, RIGHT]), st.integers(0, 4)), max_size=14)
SAYS = re.compile(r"of the (left|right)(?:, which)? has (\d+|no) partner")


def key_panes(
    rows: list[tuple[int, int, int]], window: str, how: str = "full", match: str | None = None, **options: Any
) -> tuple[Any, KeyPanes]:
    """The kind and the panes of a join. ``rows``: times, sides and values; a side of both is one log."""
    t, side, x = ([each[at] for each in sorted(rows, key=lambda each: each[0])] for at in range(3))
    columns = {
        SIDE: pa.array(side, pa.int8()),
        "k": pa.array(["a"] * len(t), pa.string()),
        "t": pa.array(t, pa.int64()),
    }
    table = pa.table({"r_x": pa.array(x, pa.float64()), **columns, "x": pa.array(x, pa.float64())})
    given_match = None if match is None else parse_expression(match)
    more = Options(join=parse_join(f"r=R on k by t {how}"), match=given_match, **options)
    plan = only_panes(make_plan(parse_window(window), table.schema, ["k"], ["t"], None, more))
    read = read_key(plan, MemorySource([table], [[]]), "rows", {"k": pa.scalar("a")}, ALL)
    return plan.kind, panes_of(plan, read)


@given(ROWS, st.sampled_from(WINDOWS), st.booleans())
@examples(400)
def test_as_many_partners_are_told_as_come_out(rows: list[Any], window: str, match: bool) -> None:
    how = "inner" if "retain" in window or "within" in window else "full"
    kind, panes = key_panes(rows, window, how, "r_x > x - 1" if match else None)
    pairs, wanted, told = panes.panes.pairs, Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    assert pairs is not None
    for left, lo, hi in zip(pairs.left.tolist(), pairs.lo.tolist(), pairs.hi.tolist(), strict=True):
        if left >= 0:
            wanted[panes.pos(left), "left"] += hi - lo
            wanted.update((panes.pos(right), "right") for right in pairs.right[lo:hi].tolist())
    for fact in kind.explain_rows(panes, np.arange(len(panes.sequences))):
        if found := SAYS.search(fact.text):
            told[fact.row, found[1]] += int(fact.numbers["partners"])
            assert found[2] == fact.numbers["partners"]
    assert told == wanted
    for at in range(len(panes.panes)):
        facts = list(kind.explain(panes.pane(at)))
        assert sum(fact.kind == "closed" for fact in facts) == 1
        assert {fact.row for fact in facts if SAYS.search(fact.text)} & set(panes.sequences.pos[panes.rows_of(at)])


def told(rows: list[tuple[int, int, int]], window: str, at: int, **more: Any) -> list[str]:
    kind, panes = key_panes(rows, window, **more)
    return [fact.text for fact in kind.explain(panes.pane(at))]


L, R = LEFT, RIGHT


@pytest.mark.parametrize(
    ("rows", "window", "at", "more", "says"),
    [
        ([(1, L, 0), (2, R, 0), (3, L, 0), (4, L, 0)], "sliding, count(2) join count(1)", 0, {},
         ["the row at 2 came", "the row at 2 of the right has 1 partner among 1 left row there when it came"]),
        ([(1, L, 0), (2, R, 0), (3, L, 0), (4, L, 0)], "sliding, count(1) join count(1)", 1, {"match": "x > r_x + x"},
         ["the row at 4 came", "the row at 4 of the left has 0 partners among 1 right row there when it came; "
          "1 does not match", "the row at 3 of the left has 0 partners among 1 right row there with it; "
          "1 does not match; it was there until the row at 4 of the left came"]),
        ([(1, L, 0), (5, R, 0), (9, L, 0)], "sliding, time(2) join time(2)", 0, {},
         ["the clock reached 3", "the row at 1 of the left has 0 partners among 0 right rows there with it; "
          "it was there until 3", "the row at 5 of the right came later"]),
        ([(1, L, 0), (2, R, 0)], "sliding, count(1) join count(1)", 0, {"emit": "left", "how": "inner"},
         ["the end of the data brought it out",
          "the row at 1 of the left has 1 partner among 1 right row there with it; it was there to the end"]),
        ([(1, R, 0), (2, L, 0), (3, R, 0)], "sliding, count(0) join count(1)", 0, {"how": "inner"},
         ["the row at 2 of the left has 1 partner among 1 right row there when it came"]),
        ([(1, R, 0), (3, R, 0), (8, L, 0)], "time(4)", 0, {"how": "left"},
         ["the row at 8 of the left has 0 partners among 0 right rows in the window",
          "the row at 3 of the right comes before the window"]),
    ],
)  # fmt: skip
def test_a_pane_says_who_came_and_why_rows_are_alone(
    rows: list[Any], window: str, at: int, more: dict[str, Any], says: list[str]
) -> None:
    found = told(rows, window, at, **more)
    assert [text for text in says if text not in found] == []
