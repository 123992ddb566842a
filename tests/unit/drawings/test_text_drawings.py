"""Text drawings of every kind of window, as they are to look."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

import wincli
from support.places import ROOT
from wincli.windowing.drawings.picture import Axis, pack
from wincli.windowing.drawings.svg import best_captions
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
