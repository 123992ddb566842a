"""Both sides of a join in one window: its pairs are the left rows times the right rows of each pane of the window.

time(3)   left   L1  L2 |    L3      pairs (L1 R1) (L2 R1) | (L3 -) under left
          right    R1   |            and nights are one run
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.strategies import examples
from support.table_equality import difference, same
from wincli.windowing.emit.result_columns import HiddenPanes
from wincli.windowing.rows.pairs import each_pair

WINDOWS = ["time(3)", "count(2)", "gap(t, 1)", "delta(t, 2)", "gap(t, 1) or count(3)"]
INTERVALS = ["timeInterval, intervalDuration(3)", "timeInterval, intervalDuration(4), creationPeriod(2)"]
HOW = ["inner", "left", "right", "full", "semi", "anti"]
NUMBERS = [0.1, 1e16, None, -3.7, -1e16, float("nan"), 5e-324, 2.0]
FOLDS = [
    *("n=count()", "c=count(r_x) where id > 2", "s=sum(x * r_x)", "i=sum(r_id)", "m=mean(x - r_x)", "lo=min(r_x)"),
    *("hi=max(x + r_x)", "w=range(x)", "f=first(r_id)", "l=last(id)", "n2=nth(r_id, 2)", "p2=nth(r_id, -2)"),
    *("v=var(x * r_x)", "sd=stddev_pop(r_x)", "sk=skew(x + r_x)", "ku=kurtosis_pop(r_x)", "al=arg_min(id, r_x)"),
    *(
        "ah=arg_max(r_id, x)",
        "mc=min_count(r_x)",
        "xc=max_count(x)",
        "b=bool_or(id < r_id)",
        "a=bool_and(id < r_id)",
        "l1=last(r_word)",
        "d=approx_count_distinct(r_x)",
        "sketch=hll_sketch(r_id)",
    ),
]
ROWS = st.lists(
    st.tuples(st.sampled_from([0, 0, 1]), st.integers(0, 9), st.sampled_from(["left", "right"])),
    min_size=1,
    max_size=14,
)
Drawn = tuple[int, int, str]


def table(rows: list[Drawn], side: str) -> pa.Table:
    own = [(i, *row) for i, row in enumerate(rows) if row[2] == side]
    return pa.table(
        {
            "id": pa.array([row[0] for row in own], pa.int64()),
            "k": pa.array([row[1] for row in own], pa.int64()),
            "t": pa.array([row[2] for row in own], pa.int64()),
            "x": pa.array([NUMBERS[row[0] % len(NUMBERS)] for row in own], pa.float64()),
            "word": pa.array(["ab"[row[0] % 2] for row in own], pa.string()),
        }
    )


def event_time(window: str) -> dict[str, Any]:
    return {"event_time": "t"} if "Interval" in window else {}


def joined(rows: list[Drawn], window: str, how: str, **more: Any) -> Any:
    request, more = f"r on k by t {how}", {"match": "(id + r_id) % 3 > 0", **event_time(window), **more}
    return wincli.aggregate(table(rows, "left"), window, join={request: table(rows, "right")}, **more)


def panes_of(rows: list[Drawn], window: str) -> list[tuple[int, list[int]]]:
    """The rows of each pane of the window over both sides: right rows arrive first."""
    every = [(i, *row) for i, row in enumerate(rows)]
    every.sort(key=lambda row: (row[2], row[3] == "left"))
    ids, keys, times = ([row[at] for row in every] for at in (0, 1, 2))
    log, more = pa.table({"id": ids, "k": keys, "t": times}), event_time(window)
    found = wincli.aggregate(log, window, key=["k"], order_by=["t"], emit="rows", **more).to_pylist()
    panes: dict[tuple[int, int], list[int]] = {}
    for row in found:
        panes.setdefault((row["k"], row["window"]), []).append(row["id"])
    return [(key, ids) for (key, _), ids in panes.items()]


def pairs_of(rows: list[Drawn], window: str, how: str) -> list[tuple[int, list[tuple[int | None, int | None]]]]:
    out = []
    for key, ids in panes_of(rows, window):
        lefts, rights = ([i for i in ids if rows[i][2] == side] for side in ("left", "right"))
        pairs = list[tuple[int | None, int | None]]()
        for one in lefts:
            partners = [other for other in rights if (one + other) % 3 > 0]
            if how == "semi":
                pairs += [(one, None)] * bool(partners)
            elif how == "anti" or (how in {"left", "full"} and not partners):
                pairs += [(one, None)] * (not partners)
            else:
                pairs += [(one, other) for other in partners]
        if how in {"right", "full"}:
            pairs += [(None, b) for b in rights if not any((a + b) % 3 > 0 for a in lefts)]
        if pairs:
            out.append((key, pairs))
    return out


def told(rows: list[dict[str, Any]]) -> list[tuple[int, list[tuple[int | None, int | None]]]]:
    panes: dict[tuple[int, int], list[tuple[int | None, int | None]]] = {}
    for row in rows:
        panes.setdefault((row["k"], row["window"]), []).append((row["id"], row["r_id"]))
    for key in {key for key, _ in panes}:  # numbers have no gaps
        assert sorted(number for own, number in panes if own == key) == list(range(sum(own == key for own, _ in panes)))
    return [(key, pairs) for (key, _), pairs in sorted(panes.items())]


@given(
    ROWS, st.sampled_from([*WINDOWS, *INTERVALS]), st.sampled_from(["inner", "left", "right", "full", "semi", "anti"])
)
@examples(600)
def test_pairs_are_the_product_of_each_pane(rows: list[Drawn], window: str, how: str) -> None:
    found = told(joined(rows, window, how).to_pylist())
    assert found == sorted(pairs_of(rows, window, how), key=lambda pane: pane[0])


@given(ROWS, st.sampled_from(WINDOWS))
@examples(200)
def test_aggregates_are_of_the_pairs(rows: list[Drawn], window: str) -> None:
    found = joined(rows, window, "inner", aggregates=["n=count()", "s=sum(id * r_id)"]).to_pylist()
    wanted = sorted(pairs_of(rows, window, "inner"), key=lambda pane: pane[0])
    assert [(row["k"], row["n"], row["s"]) for row in found] == [
        (key, len(pairs), sum(a * b for a, b in pairs if a is not None and b is not None)) for key, pairs in wanted
    ]


def test_empty_row_keeps_panes_without_pairs() -> None:
    rows = [(0, 0, "left"), (0, 1, "right"), (0, 4, "left"), (0, 10, "right")]
    found = joined(rows, "time(3)", "inner", aggregates=["n=count()"], empty="row", match=None).to_pylist()
    assert [(row["window_start"], row["n"]) for row in found] == [(0, 1), (3, 0), (6, 0), (9, 0)]


def test_a_pane_without_pairs_comes_before_the_first_pair() -> None:
    rows = [(0, 0, "left"), (0, 4, "left"), (0, 5, "right")]
    found = joined(rows, "time(3)", "inner", empty="row", match=None).to_pylist()
    assert [(row["window_start"], row["t"], row["_mark"]) for row in found] == [(0, None, "only"), (3, 4, "window")]


def test_rows_wait_for_the_next_night_where_no_pane_shows_a_pair_yet() -> None:
    nights: list[list[Drawn]] = [[(0, 0, "right")], [(0, 1, "left"), (0, 9, "left")]]
    state: Any = "new"
    found: list[Any] = []
    for night in nights:
        result, state = joined(night, "time(3)", "left", match=None, state=state, at_end="hold")
        found += result.to_pylist()
    assert [(row["t"], row["r_t"]) for row in found] == [(1, 0)]


@given(ROWS, st.sampled_from(HOW), st.integers(0, 9))
@examples(300)
def test_nights_have_the_panes_without_pairs_of_one_run(rows: list[Drawn], how: str, cut: int) -> None:
    """A window whose rows all came in the first night may close in the second."""
    nights = [[row for row in rows if (row[1] < cut) == is_first] for is_first in (True, False)]
    more: dict[str, Any] = {"empty": "row", "match": None}
    state: Any = "new"
    found: list[tuple[str, ...]] = []
    for night, at_end in zip(nights, ("hold", "flush"), strict=True):
        result, state = joined(night, "time(3)", how, state=state, at_end=at_end, **more)
        found += told_of(result)
    assert sorted(found) == sorted(told_of(joined(rows, "time(3)", how, **more)))


def told_of(result: pa.Table) -> list[tuple[str, ...]]:
    names = ("k", "window", "window_start", "t", "r_t", "_row", "_mark")
    return [tuple(str(row[name]) for name in names) for row in result.to_pylist()]


@given(ROWS, st.sampled_from(["time(3)", *INTERVALS]), st.sampled_from(HOW), st.integers(1, 4), st.booleans())
@examples(300)
def test_a_pane_that_comes_out_in_pieces_has_the_rows_of_a_whole_one(
    rows: list[Drawn], window: str, how: str, most: int, is_hidden: bool
) -> None:
    more = {"having": "(id * r_id) % 4 = 0"} if is_hidden else {}
    whole, hidden = counted(rows, window, how, **more)
    with patch("wincli.windowing.emit.pane_rows._PAIRS", most):
        found, own = counted(rows, window, how, **more)
    assert same(found, whole), difference(found, whole)
    assert own == hidden


def counted(rows: list[Drawn], window: str, how: str, **more: Any) -> tuple[pa.Table, list[int]]:
    """The result, and how many panes the condition hides."""
    hidden = list[HiddenPanes]()

    def made() -> HiddenPanes:
        hidden.append(HiddenPanes())
        return hidden[-1]

    with patch("wincli.windowing.scan.scan.HiddenPanes", made):
        result = joined(rows, window, how, **more)
    assert hidden
    return result, [each.count for each in hidden]


BIG = ["time(9)", "gap(t, 3)", "timeInterval, intervalDuration(4), creationPeriod(2)", "around(9, 9)"]
BIG += ["sliding, time(9) join count(4)", "retain 4 join within 9 every 2"]


@given(
    ROWS,
    st.sampled_from(BIG),
    st.lists(st.sampled_from(FOLDS), min_size=1, max_size=5, unique=True),
    st.integers(1, 5),
    st.sampled_from([{}, {"group_by": ["r_word"]}, {"having": "n_ > 3"}, {"match": None}, {"plain": True}]),
    st.booleans(),
)
@examples(600)
def test_aggregates_of_a_pane_in_pieces_are_those_of_a_whole_one(
    rows: list[Drawn], window: str, folds: list[str], most: int, more: dict[str, Any], is_whole: bool
) -> None:
    """One that does not merge is computed of all pairs, and the others with it."""
    if " join " in window:
        more = {**more, "emit": "aggregates"}
    given: dict[str, Any] = {"aggregates": ["n_=count()", *folds, *(["median(r_x)"] * is_whole)], **more}
    whole = joined(rows, window, "inner", **given)
    with patch("wincli.windowing.emit.pane_rows._PAIRS", most):
        found = joined(rows, window, "inner", **given)
    assert same(found, whole), difference(found, whole)


def test_no_more_pairs_are_made_at_a_time_than_a_piece_has_where_aggregates_merge() -> None:
    rows: list[Drawn] = [(0, at % 5, "left" if at % 2 else "right") for at in range(40)]
    sizes = list[int]()

    def pairs(left: Any, lo: Any, hi: Any, right: Any) -> Any:
        found = each_pair(left, lo, hi, right)
        sizes.append(len(found[0]))
        return found

    of_rows = "wincli.windowing.emit.pane_rows"
    with patch(f"{of_rows}._PAIRS", 30), patch(f"{of_rows}.each_pair", pairs):
        found = joined(rows, "time(9)", "inner", match=None, aggregates=["n=count()", "s=sum(id * r_id)"])
    assert sizes == [30] * 13 + [10]
    assert found.column("n").to_pylist() == [400]


def test_rejected_rows_of_a_batch_say_the_side_that_they_are_of() -> None:
    logs = [pa.table({"k": ["a", "a"], "t": pa.array([1, None], pa.int64())}) for _ in range(2)]
    found = wincli.aggregate(logs[0], "time(3)", join={"r on k by t": logs[1]}, rejected="column")
    rejected = [row for row in found["_rejected"].to_pylist() if row is not None]
    assert [(each["reason"], each["row"]["_side"]) for each in rejected] == [
        ("null_order", "right"),
        ("null_order", "left"),
    ]
