"""Legs are taken in order, each with what the one before hands on; one that is given up ends all that follow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.engine.presorted import batch_sizes, take_turn


def _add_one(folder: str) -> int | None:
    with take_turn(folder) as leg:
        if leg is None or (received := leg.receive()) is None:
            return None
        leg.pass_on(str(int(received or 0) + 1).encode())
        return leg.index


def test_each_is_handed_what_the_one_before_hands_on(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(_add_one, [str(tmp_path)] * 40))
    assert sorted(index for index in taken if index is not None) == list(range(40))
    with take_turn(str(tmp_path)) as leg:
        assert leg is not None
        assert leg.receive() == b"40"


def test_waiting_task_fails_when_its_predecessor_gives_up(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        with take_turn(str(tmp_path)) as leg:
            assert leg is not None
            waiting = threads.submit(_add_one, str(tmp_path))
            while not (tmp_path / "1").exists():
                pass
        assert waiting.result(10) is None
    assert _add_one(str(tmp_path)) is None


def _fail(folder: str) -> None:
    with take_turn(folder) as leg:
        assert leg is not None
        leg.pass_on(b"1")
        raise ValueError("no")


def test_one_that_fails_after_it_has_handed_on_ends_the_relay(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"):
        _fail(str(tmp_path))
    assert _add_one(str(tmp_path)) is None


@given(st.integers(0, 5000), st.integers(1, 64))
def test_all_segments_are_assigned_in_shares_of_falling_size(legs: int, runners: int) -> None:
    found = batch_sizes(legs, runners)
    assert sum(found) == legs
    assert found == sorted(found, reverse=True)
    assert all(share >= 1 for share in found)
    assert not found or found[-1] == 1 or legs <= 4 * runners
    assert len(found) <= legs
