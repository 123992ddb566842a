"""What is drawn is what the scan makes: each row of each pane, in the picture, in its text and in its SVG.

An SVG is accessible, and readable on light and dark pages.
"""

from __future__ import annotations

import datetime as dt
import decimal
import doctest
import json
import re
from collections import Counter
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.colours import contrast
from support.drawn_windows import (
    SVG,
    counts_of_svg,
    has_class,
    pairs_of_picture,
    pairs_of_rows,
    pairs_of_text,
    reach,
    root_of,
)
from support.event_logs import logs
from support.places import CASES
from support.strategies import examples
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.windowing.drawings.draw import Drawing
from wincli.windowing.drawings.picture import Axis, pack, texts_of
from wincli.windowing.drawings.svg import STYLE, best_captions
from wincli.windowing.drawings.text import scale
from wincli.windowing.errors import ConfigError, DataError

LOG = pa.table({
    "user": ["ann", "bob", "ann", "ann", "bob"],
    "t": [0, 10, 45, 70, 90],
    "amount": [5.0, 1.0, 2.5, 4.0, 3.0],
})  # fmt: skip


def options_of(case: WindowCase, keyed: bool, at_end: str) -> dict[str, Any]:
    marks = "flag" if "punct()" in case[0] else None
    return {"key": ["k"] if keyed else [], "order_by": case[1], "marks": marks, "at_end": at_end, **case[2]}


def check(drawing: Drawing) -> None:
    """The views show the picture, its axis ascends, the text fits a terminal, and nothing leaves the frame or a bar."""
    lanes, axis = drawing.picture.lanes, drawing.picture.axis
    panes = [pane for lane in lanes for pane in lane.panes]
    assert pairs_of_text(drawing) == pairs_of_picture(drawing)
    rows = sum(len(lane.rows) for lane in lanes)
    assert counts_of_svg(drawing) == (rows, len(panes), sum(len(pane.places) for pane in panes))
    assert max(map(len, str(drawing).splitlines())) <= 100
    assert axis.measures is None or list(axis.measures) == sorted(axis.measures)
    assert axis.marks == tuple(sorted(set(axis.marks)))
    assert axis.ticks == tuple(sorted(set(axis.ticks)))
    root = root_of(drawing)
    wide, high = (float(root.get(side, 0)) for side in ("width", "height"))
    for element in root.iter():
        assert all(0 <= x <= wide for x in reach(element)), ElementTree.tostring(element)
        assert all(0 <= float(element.get(name, 0)) <= high for name in ("y", "y1", "y2", "cy"))
        for dot in (child for child in element if has_class(child, "wd-in")):
            (bar,) = (child for child in element if has_class(child, "wd-bar"))
            low, *_, end = sorted(reach(bar))
            assert low < float(dot.get("cx", 0)) < end


# Laws


@examples(50)
@given(logs(), st.sampled_from([*WINDOWS, *MORE]), st.booleans(), st.sampled_from(["flush", "drop"]))
def test_a_drawing_shows_the_rows_that_panes_emit(table: pa.Table, case: WindowCase, keyed: bool, at_end: str) -> None:
    options = options_of(case, keyed or "partitioned" in case[0], at_end)
    drawing = wincli.draw(table, case[0], **options, limit_panes=1000)
    assert pairs_of_picture(drawing) == pairs_of_rows(table, case[0], **options, rejected="drop")
    told = {
        (lane.label, pane.number): (pane.closed_by, pane.count) for lane in drawing.picture.lanes for pane in lane.panes
    }
    result = wincli.aggregate(table, case[0], **options, aggregates="count()", rejected="drop").to_pylist()
    panes = [row for row in result if row["window"] is not None]
    assert told == {
        (row["k"] if options["key"] else "", row["window"]): (row["closed_by"], row["count"]) for row in panes
    }
    check(drawing)


@examples(40)
@given(
    logs(), st.sampled_from([*WINDOWS, *MORE]), st.booleans(), st.integers(1, 9), st.integers(1, 4), st.integers(1, 5)
)
def test_a_part_of_a_drawing_says_how_much_is_left_out(
    table: pa.Table, case: WindowCase, keyed: bool, rows: int, keys: int, panes: int
) -> None:
    options = options_of(case, keyed or "partitioned" in case[0], "flush")
    whole = wincli.draw(table, case[0], **options, limit_panes=1000)
    part = wincli.draw(table, case[0], **options, limit=rows, limit_keys=keys, limit_panes=panes)
    drawn = {(lane.label, arrival) for lane in part.picture.lanes for arrival in lane.rows.values()}
    counted = {(lane.label, pane.number) for lane in part.picture.lanes for pane in lane.panes}
    expected = {pair: n for pair, n in pairs_of_picture(whole).items() if pair[::2] in drawn and pair[:2] in counted}
    assert pairs_of_picture(part) == expected
    everything = {lane.label: lane for lane in whole.picture.lanes}
    assert [lane.label for lane in part.picture.lanes] == sorted(everything)[:keys]
    for lane in part.picture.lanes:
        assert len(lane.rows) + lane.more_rows == len(everything[lane.label].rows)
        assert len(lane.panes) + lane.more_panes == len(everything[lane.label].panes)
        assert len(lane.panes) <= panes
    assert len(drawn) == min(rows, sum(len(everything[lane.label].rows) for lane in part.picture.lanes))
    check(part)


# What a drawing is


def test_a_drawing_prints_as_text_and_shows_as_an_image() -> None:
    drawing = wincli.draw(LOG, "delta(t, 60)", key="user", order_by="t")
    again = wincli.draw(LOG, "delta(t, 60)", key="user", order_by="t")
    assert repr(drawing) == str(drawing) == str(again)
    assert drawing._repr_svg_() == drawing.svg() == again.svg()
    assert drawing.svg().startswith("<svg ")


VISITS = pa.table({"t": [0, 1, 2, 3, 4, 5, 6], "k": list("xabbxca")})
SYMBOLS = "a = k = 'a', b = k = 'b', c = k = 'c'"


def lines_of(window: str, **options: Any) -> list[str]:
    return [line.rstrip() for line in str(wincli.draw(VISITS, window, order_by="t", **options)).splitlines()]


def test_rows_of_a_match_are_drawn_as_their_symbols_where_these_are_letters() -> None:
    drawing = wincli.draw(VISITS, f"match(a b+ -> c, {SYMBOLS}) within 9", order_by="t", aggregates="last(t)")
    _, about, _, _, rows, pane = [re.sub("  +", "  ", line) for line in str(drawing).splitlines()]
    assert about.endswith("7 rows, 1 pane; letters in panes are symbols")
    assert rows == "rows:  a  b  c  d  e  f  g"
    assert pane == "pane 0:  [a  b  b  .  c]  match  4 rows  last_t=5"
    assert "as=a b b c" in drawing.svg()
    part = wincli.draw(VISITS, f"match(a b+ -> c, {SYMBOLS}) within 9", order_by="t", limit=3)
    assert [pane.taken for lane in part.picture.lanes for pane in lane.panes] == [("a", "b")]
    assert "as=a b …" in part.svg()


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [("a .*? c", "as=a . . . c"), ("a yes+ x c", "as=a yes yes x c"), ('a "\u001b"+ x c', "as=a \\x1b \\x1b x c")],
)
def test_symbols_that_are_no_letters_stand_beside_their_match(pattern: str, shown: str) -> None:
    conditions = "a = k = 'a', c = k = 'c'" + ", x = k = 'x'" * ("x" in pattern)
    conditions += next((f", {name} = k = 'b'" for name in ("yes", '"\u001b"') if name in pattern), "")
    *_, rows, pane = lines_of(f"match({pattern}, {conditions})")
    assert "b  c  d  e  f" in re.sub(" +", "  ", rows)
    assert "[b  c  d  e  f]" in re.sub(" +", "  ", pane)
    assert pane.endswith(f"match  5 rows  {shown}")


def test_a_symbol_that_is_no_letter_counts_where_it_is_drawn() -> None:
    assert lines_of("match(a b | long, a = k = 'a', b = k = 'b', long = k = 'none')")[1].endswith("are symbols")


def test_a_funnel_is_drawn_with_its_steps() -> None:
    funnel = "funnel(see = k = 'a', cart = k = 'b', pay = k = 'c') within 9"
    panes = [line for line in lines_of(funnel) if line.startswith("pane")]
    assert [pane.partition("rows  ")[2] or pane.partition("row   ")[2] for pane in panes] == [
        "as=see cart pay  steps=3",
        "as=see  steps=1",
    ]
    assert lines_of(funnel, having="steps > 1 and pay = 5")[-1].endswith("steps=3")
    assert lines_of(funnel, aggregates="last(t)")[-1].endswith("as=see  last_t=6")


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb", "reader"])
def test_tables_of_other_libraries_are_drawn(library: str) -> None:
    import duckdb
    import polars

    convert = {"pandas": LOG.to_pandas, "polars": lambda: polars.from_arrow(LOG), "reader": LOG.to_reader}
    table = duckdb.from_arrow(LOG) if library == "duckdb" else convert[library]()
    drawing = wincli.draw(table, "delta(t, 60)", key="user", order_by="t")
    assert str(drawing) == str(wincli.draw(LOG, "delta(t, 60)", key="user", order_by="t"))


def test_doctest_of_draw_runs() -> None:
    from wincli.windowing.drawings import draw

    found = doctest.testmod(draw)
    assert found.attempted > 0
    assert found.failed == 0


# Parts


def test_only_some_keys_are_drawn_and_windows_are_those_of_all() -> None:
    drawing = wincli.draw(LOG, "time(30)", key="user", order_by="t", only={"user": "ann"})
    (lane,) = drawing.picture.lanes
    assert [(pane.number, pane.closed_by) for pane in lane.panes] == [(0, "time"), (1, "time"), (2, "time")]
    assert drawing.picture.notes == ("1 more key with 2 rows and 2 panes",)
    both = wincli.draw(LOG, "time(30)", key="user", order_by="t", only={"user": ["bob", "ann"]})
    assert [lane.label for lane in both.picture.lanes] == ["ann", "bob"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limit": 0}, "limit: 0 is not from 1 to 1,000"),
        ({"limit_keys": 101}, "limit_keys: 101 is not from 1 to 100"),
        ({"rejected": "column"}, "rejected: 'column' is neither 'drop' nor 'error'"),
        ({"limit_panes": -1}, "limit_panes: -1 is not from 1 to 1,000"),
        ({"only": {"user": "ann"}}, "only: there is no key"),
        ({"key": "user", "only": {"usr": "ann"}}, "only: there is no key column 'usr'; did you mean 'user'"),
        ({"key": "user", "only": {"user": "eve"}}, "only: no key has"),
        ({"key": "user", "only": {"user": 3}}, "only: the key is string"),
    ],
    ids=str,
)
def test_a_part_that_cannot_be_is_an_error(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        wincli.draw(LOG, "delta(t, 60)", **options)


def test_many_rows_are_drawn_in_part() -> None:
    rows = 200_000
    table = pa.table({"k": np.arange(rows) % 1000, "t": np.arange(rows)})
    drawing = wincli.draw(table, "sliding, count(50), count(1)", key="k", order_by="t", limit=100, limit_panes=3)
    assert len(drawing.picture.lanes) == 5
    assert sum(len(lane.rows) for lane in drawing.picture.lanes) == 100
    assert all(lane.more_rows == 180 for lane in drawing.picture.lanes)
    assert len(pairs_of_picture(drawing)) == 5 * (20 + 19 + 18)  # windows 0 to 2 of each, as far as rows are drawn
    assert drawing.picture.notes == ("995 more keys with 199,000 rows and 150,245 panes",)
    table = pa.table({"t": np.arange(rows)})
    part = wincli.draw(table, "retain all", order_by="t", limit=10)
    assert len(pairs_of_picture(part)) == sum(range(1, 11)) + 10 * 30  # 40 panes


def test_more_rows_than_one_column_of_bits_has() -> None:
    table = pa.table({"t": np.arange(300)})
    drawing = wincli.draw(table, "sliding, count(3), count(2)", order_by="t", limit=200, limit_panes=500)
    rows = pairs_of_rows(table, "sliding, count(3), count(2)", order_by="t")
    assert pairs_of_picture(drawing) == Counter({pair: n for pair, n in rows.items() if pair[2] < 200})
    assert counts_of_svg(drawing)[0] == 200


# Strange tables


def test_tables_without_rows_or_panes() -> None:
    drawing = wincli.draw(LOG.slice(0, 0), "delta(t, 60)", key="user", order_by="t")
    assert str(drawing) == "window: tumbling, delta(t, 60)\n        key user; order t; 0 rows, 0 keys, 0 panes"
    check(drawing)
    check(wincli.draw(LOG.slice(0, 0), "sliding, count(3)"))
    drawing = wincli.draw(LOG, "sliding, count(9)", order_by="t", at_end="drop")
    assert counts_of_svg(drawing) == (5, 0, 0)
    check(drawing)


def test_names_that_are_markup_or_control_characters() -> None:
    name, key = '<a href="x">&\x07', "]]><script>\n'"
    table = pa.table({name: ["x", key, "\u202eabc"], "t": [1, 2, 3], "[  d  >": ["&amp;", "\x00", "é日本"]})
    drawing = wincli.draw(
        table, "count(2)", key=name, order_by="t", aggregates={"<b>&": 'first("[  d  >")', "n\n": "count()"}
    )
    assert all(line.isprintable() for line in str(drawing).splitlines())
    assert "<script" not in drawing.svg()
    assert "\x00" not in drawing.svg()
    assert counts_of_svg(drawing) == (3, 3, 3)


def test_columns_of_the_drawing_clash_with_none_of_the_table() -> None:
    table = LOG.append_column("_drawn0", LOG["amount"]).append_column("__drawn_0", LOG["amount"])
    drawing = wincli.draw(table, "delta(t, 60)", key="user", order_by="t", aggregates="drawn_n=sum(_drawn0)")
    assert pairs_of_picture(drawing) == pairs_of_rows(LOG, "delta(t, 60)", key="user", order_by="t")
    assert [pane.told for pane in drawing.picture.lanes[0].panes] == [(("drawn_n", "7.5"),), (("drawn_n", "4"),)]


DAY = dt.date(2026, 11, 1)
INSTANT = dt.datetime(2026, 11, 1, 10)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([DAY, DAY + dt.timedelta(1), DAY + dt.timedelta(9)]),
        pa.array([INSTANT, INSTANT, INSTANT + dt.timedelta(days=400)]),
        pa.array([1, 2, 3], pa.timestamp("ns", tz="Europe/Paris")),
        pa.array([-(2**63), 0, 2**63 - 1], pa.timestamp("s")),
        pa.array([dt.time(1), dt.time(2), dt.time(3)]),
        pa.array([1, 2, 5], pa.duration("ms")),
        pa.array([decimal.Decimal("0.1"), decimal.Decimal("0.2"), decimal.Decimal("1e9")]),
        pa.array([float("-inf"), 1.5, float("inf")]),
        pa.array([1e-300, 1.0, 1e300]),
        pa.array([0, 1, 2**64 - 1], pa.uint64()),
        pa.array(["a", "b", "c"]),
        pa.array([b"\x00", b"\x01", b"\xff"]),
        pa.array([False, True, True]),
    ],
    ids=lambda values: str(values.type),
)
def test_every_type_that_orders_rows_is_an_axis(values: pa.Array) -> None:
    table = pa.table({"at": values, "more": [[1, 2], None, [3]]})
    drawing = wincli.draw(table, "count(2)", key="at", order_by="at", aggregates=["last(more)", "top=max(at)"])
    assert counts_of_svg(drawing) == (3, sum(len(lane.panes) for lane in drawing.picture.lanes), 3)
    check(wincli.draw(table, "count(2)", order_by="at"))


def test_zeros_that_say_nothing_are_left_out_of_times_and_a_null_among_them_stays() -> None:
    for moments, texts in (
        ([INSTANT, None, INSTANT + dt.timedelta(minutes=5)], ["2026-11-01 10:00", "-", "2026-11-01 10:05"]),
        ([INSTANT, INSTANT + dt.timedelta(milliseconds=250)], ["2026-11-01 10:00:00.00", "2026-11-01 10:00:00.25"]),
        ([None, None], ["-", "-"]),
    ):
        for zone in (None, "UTC"):
            assert texts_of(pa.array(moments, pa.timestamp("us", zone))) == texts


def test_rejected_rows_are_counted() -> None:
    table = pa.table({"t": [1, None, 3], "k": ["a", "a", None]})
    drawing = wincli.draw(table, "count(2)", key="k", order_by="t")
    assert drawing.picture.notes == ("2 rows rejected: null_order 1, null_key 1",)
    drawing = wincli.draw(table, "count(2)", order_by="t", where="t > 1")
    assert drawing.picture.notes == ("2 rows left out by where",)
    with pytest.raises(DataError, match="null_order"):
        wincli.draw(table, "count(2)", key="k", order_by="t", rejected="error")


def test_a_result_is_drawn_as_the_stream_that_it_is() -> None:
    first = wincli.aggregate(LOG, "delta(t, 60)", key="user", order_by="t", aggregates=["last(t)"])
    drawing = wincli.draw(first, "punct()")
    assert pairs_of_picture(drawing) == pairs_of_rows(first, "punct()")
    assert drawing.picture.axis.marks == (0, 1, 2, 3)
    check(drawing)
    marked = wincli.aggregate(LOG, "time(20)", order_by="t", empty="mark")
    assert marked["_mark"].to_pylist().count("only") == 1
    assert "; 4 rows, " in wincli.draw(marked, "count(2)").picture.about


def test_expressions_and_conditions_of_results_are_those_of_aggregate() -> None:
    options: dict[str, Any] = {"let": "half=amount / 2", "where": "amount > 1", "having": "count > 1", "order_by": "t"}
    drawing = wincli.draw(LOG, "delta(t, 60)", key="user", **options)
    assert pairs_of_picture(drawing) == pairs_of_rows(
        LOG, "delta(t, 60)", key="user", order_by="t", where="amount > 1"
    ) - Counter({("ann", 1, 3): 1, ("bob", 0, 4): 1})
    drawing = wincli.draw(LOG, "when(half > 2) or count(2)", let={"half": "amount / 2"}, order_by="t")
    assert pairs_of_picture(drawing) == pairs_of_rows(LOG, "when(amount / 2 > 2) or count(2)", order_by="t")


def test_marks_stand_between_rows() -> None:
    table = pa.table({"t": [3, 1, 2]})
    drawing = wincli.draw(table, "punct()", order_by="t", marks=[0, 1, 2])
    assert drawing.picture.axis.texts == ("1", "2", "3")
    assert drawing.picture.axis.marks == (-1, 0, 2)  # before all rows; after the row at 1; after that at 3
    check(drawing)


# Text drawings of every kind of window, as they are to look


def twelve_rows() -> pa.Table:
    """Twelve rows of two users, with two at one instant, a pause, and values that fall."""
    seconds = [0, 4, 9, 15, 15, 21, 60, 64, 66, 75, 90, 130]
    return pa.table({
        "user": list("abaabbabbaab"),
        "n": range(12),
        "ts": pa.array([INSTANT + dt.timedelta(seconds=each) for each in seconds], pa.timestamp("us")),
        "s": seconds,
        "v": [1, 3, 6, 2, 8, 9, 4, 7, 12, 11, 13, 5],
        "is_last": [each in (2, 6, 7) for each in range(12)],
        "event": [3, 1, 8, 6, 12, 2, 16, 11, 24, 20, 27, 22],
    })  # fmt: skip


def cases() -> list[Any]:
    """The calls, each with its drawing: a line ``== {..}`` and what it prints."""
    parts = (CASES / "drawings.txt").read_text(encoding="utf-8").split("== ")[1:]
    found = [part.split("\n", 1) for part in parts]
    return [pytest.param(json.loads(call), text.rstrip("\n"), id=json.loads(call)["window"]) for call, text in found]


@pytest.mark.parametrize(("call", "text"), cases())
def test_a_drawing_looks_so(call: dict[str, Any], text: str) -> None:
    assert str(wincli.draw(twelve_rows(), **call)) == text


# Where things stand


def axis(*measures: int) -> Axis:
    return Axis("t", tuple(map(str, measures)), measures)


def test_rows_that_are_apart_stand_to_scale() -> None:
    found = scale(axis(0, 1, 4), 0, 3, 2, 40)
    assert (found.at, found.is_true) == ((0, 10, 40), True)
    assert [found.of(value) for value in (-1, 0, 2, 4, 5)] == [-10, -1, 20, 39, 50]


@pytest.mark.parametrize(
    ("along", "places", "given", "at"),
    [
        (axis(0, 0, 100), (0, 3), (4, 40), (0, 4, 40)),  # rows at one instant stand apart
        (axis(0, 1, 1000), (0, 3), (3, 5), (0, 3, 6)),  # rows that hardly fit stand side by side
        (axis(7, 7, 7), (0, 3), (3, 90), (0, 3, 6)),
        (axis(1, 2, 4), (1, 3), (3, 9), (0, 9)),
        (Axis("arrival", ("0", "1"), None), (0, 2), (3, 90), (0, 3)),
        (Axis("arrival", ("0", "1", "2"), None), (0, 3), (3, 90, 10), (0, 10, 20)),  # as far as is good to read
        (Axis("arrival", ("0", "1", "2"), None), (0, 3), (3, 12, 10), (0, 6, 12)),
    ],
)
def test_rows_that_are_close_stand_apart(along: Axis, places: Any, given: Any, at: tuple[float, ...]) -> None:
    assert scale(along, *places, *given).at == pytest.approx(at)


def test_bars_share_a_track_where_none_touches_another() -> None:
    bars = [(0, 10), (12, 20), (16, 30), (30, 31)]
    assert pack(bars, 2) == [0, 0, 1, 0]
    assert pack(bars, 2, 1) == [0, 0, None, 0]


def test_captions_are_short_where_long_ones_need_many_tracks() -> None:
    bars = [(10 * i, 10 * i + 8) for i in range(20)]
    tracks, form, captions = best_captions(bars, [[100.0] * 20, [8.0] * 20], (0, 300), 2)
    assert (set(tracks), form) == ({0}, 1)
    assert captions[0] == (0, 8)
    tracks, form, captions = best_captions(bars[:3], [[100.0] * 3, [8.0] * 3], (0, 110), 2)
    assert (tracks, form) == ([0, 1, 2], 0)
    assert captions[2] == (10, 110)


# SVG


def test_a_drawing_says_in_words_what_it_shows() -> None:
    drawing = wincli.draw(LOG, "delta(t, 60)", key="user", order_by="t", aggregates={"last": "last(t)"})
    root = root_of(drawing)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Windows tumbling, delta(t, 60): key user; order t; 5 rows, 2 keys, 4 panes"
    assert root.findtext(f"{SVG}desc") == str(drawing)
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert "pane 0; closed by delta; 2 rows; last = 45" in titles
    assert "row 2: t 45" in titles


def test_rows_in_no_pane_are_hollow() -> None:
    root = root_of(wincli.draw(LOG, "sliding, count(4)", order_by="t", at_end="drop"))
    assert not [each for each in root.iter() if has_class(each, "wd-out")]
    root = root_of(wincli.draw(LOG, "from(t = 45, until=t = 70)", order_by="t"))
    assert [each.findtext(f"{SVG}title") for each in root.iter() if has_class(each, "wd-out")] == [
        f"row {row}: t {t}, in no pane that is drawn" for row, t in [(0, 0), (1, 10), (4, 90)]
    ]


def test_marks_and_ticks_are_lines() -> None:
    marked = root_of(wincli.draw(LOG, "punct()", order_by="t", marks=[2, 4]))
    assert sum(has_class(each, "wd-mark") for each in marked.iter()) == 2
    ticked = root_of(wincli.draw(LOG, "time(30)", order_by="t"))
    assert sum(has_class(each, "wd-tick") for each in ticked.iter()) >= 3


def test_many_rows_make_a_wide_drawing() -> None:
    root = root_of(wincli.draw(pa.table({"t": np.arange(200)}), "count(10)", order_by="t", limit=200))
    assert float(root.get("width", 0)) > 2000


# Colours


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_from_what_is_behind_them(scheme: str) -> None:
    style = STYLE.split("@media (prefers-color-scheme:dark)")[scheme == "dark"]
    fills = dict(re.findall(r"(\.wd-[\w.-]+)\{fill:(#\w{6})", style))
    card = fills[".wd-card"]
    assert all(contrast(fills[name], card) >= 4.5 for name in (".wd-text", ".wd-faint", ".wd-mark-text"))
    bars = re.findall(r"\.wd-bar\.wd-(\d)\{fill:(#\w{6});stroke:(#\w{6})", style)
    assert len(bars) == 4
    assert all(contrast(fill, line) >= 3 and contrast(card, line) >= 3 for _, fill, line in bars)


def test_names_of_styles_belong_to_drawings_alone() -> None:
    assert all(part.strip().startswith((".wd", "@media")) for part in re.findall(r"(?:^|[}{,])([.@][^{},]*)\{", STYLE))
