"""Text drawings of every kind of window, as they are to look."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

import wincli
from support.places import ROOT
from wincli.windowing.drawings.picture import Axis
from wincli.windowing.drawings.svg import Extent, best_captions, pack
from wincli.windowing.drawings.text import scale

CASES = ROOT / "tests" / "cases" / "drawings.txt"
START = dt.datetime(2026, 11, 1, 10)


def log() -> pa.Table:
    """Twelve rows of two users, with two at one instant, a pause, and values that fall."""
    seconds = [0, 4, 9, 15, 15, 21, 60, 64, 66, 75, 90, 130]
    return pa.table({
        "user": list("abaabbabbaab"),
        "n": range(12),
        "ts": pa.array([START + dt.timedelta(seconds=each) for each in seconds], pa.timestamp("us")),
        "s": seconds,
        "v": [1, 3, 6, 2, 8, 9, 4, 7, 12, 11, 13, 5],
        "is_last": [each in (2, 6, 7) for each in range(12)],
        "event": [3, 1, 8, 6, 12, 2, 16, 11, 24, 20, 27, 22],
    })  # fmt: skip


def cases() -> list[Any]:
    """The calls, each with its drawing: a line ``== {..}`` and what it prints."""
    parts = CASES.read_text(encoding="utf-8").split("== ")[1:]
    found = [part.split("\n", 1) for part in parts]
    return [pytest.param(json.loads(call), text.rstrip("\n"), id=json.loads(call)["window"]) for call, text in found]


@pytest.mark.parametrize(("call", "text"), cases())
def test_a_drawing_looks_so(call: dict[str, Any], text: str) -> None:
    assert str(wincli.draw(log(), **call)) == text


# Where things stand


def axis(*measures: int) -> Axis:
    return Axis("t", tuple(map(str, measures)), measures)


def test_rows_that_are_apart_stand_to_scale() -> None:
    found = scale(axis(0, 1, 4), 0, 3, 2, 40)
    assert (found.at, found.is_true) == ((0, 10, 40), True)
    assert [found.of(value) for value in (-1, 0, 2, 4, 5)] == [-10, -1, 20, 39, 50]


def test_rows_at_one_instant_stand_apart() -> None:
    found = scale(axis(0, 0, 100), 0, 3, 4, 40)
    assert not found.is_true
    assert found.at == (0, 4, 40)


def test_rows_that_hardly_fit_stand_side_by_side() -> None:
    assert scale(axis(0, 1, 1000), 0, 3, 3, 5).at == pytest.approx((0, 3, 6))
    assert scale(axis(7, 7, 7), 0, 3, 3, 90).at == (0, 3, 6)
    assert scale(Axis("arrival", ("0", "1"), None), 0, 2, 3, 90).at == (0, 3)
    assert scale(axis(1, 2, 4), 1, 3, 3, 9).at == (0, 9)


def test_rows_without_values_are_as_far_apart_as_is_good_to_read() -> None:
    arrivals = Axis("arrival", ("0", "1", "2"), None)
    assert scale(arrivals, 0, 3, 3, 90, 10).at == (0, 10, 20)
    assert scale(arrivals, 0, 3, 3, 12, 10).at == (0, 6, 12)


def test_bars_share_a_track_where_none_touches_another() -> None:
    assert pack([Extent(0, 10), Extent(12, 20), Extent(16, 30), Extent(30, 31)], 2) == [0, 0, 1, 0]


def test_captions_are_short_where_long_ones_need_many_tracks() -> None:
    bars = [Extent(10 * i, 10 * i + 8) for i in range(20)]
    tracks, form, captions = best_captions(bars, [[100.0] * 20, [8.0] * 20], Extent(0, 300), 2)
    assert (set(tracks), form) == ({0}, 1)
    assert captions[0] == Extent(0, 8)
    tracks, form, captions = best_captions(bars[:3], [[100.0] * 3, [8.0] * 3], Extent(0, 110), 2)
    assert (tracks, form) == ([0, 1, 2], 0)
    assert captions[2] == Extent(10, 110)
