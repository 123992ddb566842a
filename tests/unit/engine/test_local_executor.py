"""The local executor keeps the promises of `Executor`, and is as strict as Spark where it is told to be."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.errors import DataError
from wincli.windowing.local_executor import LocalExecutor

EXECUTORS = st.builds(
    LocalExecutor,
    st.integers(1, 4),
    is_one_machine=st.booleans(),
    pickles=st.booleans(),
    lost=st.frozensets(st.integers(0, 3)),
    seed=st.none() | st.integers(0, 9),
)


def doubled(number: int) -> int:
    return 2 * number


def by_remainder(numbers: Iterator[int]) -> Iterator[tuple[int, int]]:
    for number in numbers:
        yield from ((number % 3, number), ((number + 1) % 3, -number))


def with_partition(partition: int, pairs: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for target, number in pairs:
        assert target == partition
        yield partition, number


def refused(number: int) -> int:
    raise DataError(f"no {number}", "say another")


@given(EXECUTORS, st.lists(st.integers(0, 99), max_size=7))
def test_results_come_in_the_order_of_the_items(executor: LocalExecutor, numbers: list[int]) -> None:
    assert executor.map("double", doubled, numbers) == [2 * number for number in numbers]


@given(EXECUTORS, st.lists(st.integers(0, 99), max_size=7))
def test_a_shuffle_brings_each_value_to_its_partition(executor: LocalExecutor, numbers: list[int]) -> None:
    found = executor.shuffle("sort", by_remainder, with_partition, numbers, 3)
    assert [partition for partition, _ in found] == sorted(partition for partition, _ in found)
    sent = [pair for number in numbers for pair in ((number % 3, number), ((number + 1) % 3, -number))]
    assert Counter(found) == Counter(sent)


@given(EXECUTORS)
def test_an_error_of_ours_comes_back_as_itself(executor: LocalExecutor) -> None:
    with pytest.raises(DataError, match="no 7") as caught:
        executor.map("fail", refused, [7])
    assert caught.value.do == "say another"


def test_values_arrive_in_any_order() -> None:
    sent = list(range(60))
    orders = {
        tuple(LocalExecutor(seed=seed).shuffle("sort", by_remainder, with_partition, sent, 3)) for seed in range(3)
    }
    assert len(orders) == 3


def test_what_does_not_pickle_fails_where_it_would_on_spark() -> None:
    assert LocalExecutor().map("double", lambda number: number, [1]) == [1]
    with pytest.raises((pickle.PicklingError, AttributeError)):
        LocalExecutor(pickles=True).map("double", lambda number: number, [1])


@dataclass
class Journal:
    path: Path
    seen: list[int] = field(default_factory=list)

    def __call__(self, number: int) -> int:
        self.seen.append(number)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{number} ")
        return len(self.seen)


@pytest.mark.parametrize(("pickles", "results", "kept"), [(False, [1, 3, 4], [1, 2, 2, 3]), (True, [1, 1, 1], [])])
def test_lost_task_runs_again_and_copies_are_lost(
    tmp_path: Path, pickles: bool, results: list[int], kept: list[int]
) -> None:
    journal = Journal(tmp_path / "journal")
    executor = LocalExecutor(pickles=pickles, lost=frozenset([1]))
    assert executor.map("write", journal, [1, 2, 3]) == results
    assert journal.path.read_text(encoding="utf-8").split() == ["1", "2", "2", "3"]
    assert journal.seen == kept


def test_folders_are_shared_on_one_machine_and_removed() -> None:
    with LocalExecutor().shared_folders() as folders:
        (folder,) = map(Path, folders)
        (folder / "block").touch()
    assert not folder.exists()
    with LocalExecutor(is_one_machine=False).shared_folders() as folders:
        assert folders == ()
    assert LocalExecutor(pickles=True).broadcast([1]).value == [1]
