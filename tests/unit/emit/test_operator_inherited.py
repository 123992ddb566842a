"""Methods that an operator inherits are not called: the others are told the same, in the same steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given

from support.operator_logs import ENDS, Log, given_by, logs
from support.strategies import examples
from wincli.windowing.in_memory import aggregate
from wincli.windowing.operator import Operator, PaneInfo

NAME = __name__


class Panes(Operator):
    """Says what its panes and evictions hold; asks for an eviction now and then."""

    output: ClassVar = {"ids": str}

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> Iterator[dict[str, Any]]:
        yield {"ids": f"{pane.window} {[row['id'] for row in rows]}"}
        if sum(row["id"] for row in rows) % 4 == 1:
            self.evict_partition()

    def partition_evicted(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{"ids": f"gone {[row['id'] for row in rows]}"}]


class AllSilent(Panes):
    def insert(self, row: Mapping[str, Any]) -> None:
        return None

    def evict(self, rows: Sequence[Mapping[str, Any]]) -> None:
        return None

    def initial_full(self) -> None:
        return None

    def finish(self) -> None:
        return None


class OnInstance(Panes):
    """Gets its method when it is made, as no class says."""

    def __init__(self) -> None:
        self.insert = lambda row: [{"ids": f"in {row['id']}"}]  # type: ignore[method-assign]


class OnClass(Panes):
    def insert(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [{"ids": f"in {row['id']}"}]


@pytest.mark.parametrize(("one", "other"), [(Panes, AllSilent), (OnInstance, OnClass)])
@pytest.mark.parametrize(
    "window", ["count(3)", "delta(a, 2)", "sliding, count(3), count(2)", "sliding, count(2), delta(a, 1)"]
)
@examples(40)
@given(logs(clocked=True), ENDS)
def test_an_inherited_method_is_one_that_returns_nothing(
    one: type[Operator], other: type[Operator], window: str, log: Log, at_end: Any
) -> None:
    found, wanted = (given_by(log, window, f"{NAME}:{each.__name__}", at_end=at_end) for each in (one, other))
    assert found.equals(wanted)


class Later(Operator):
    """Gets its methods at its second pane."""

    output: ClassVar = {"ids": str}

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> None:
        if pane.window == 1:
            self.insert = lambda row: [{"ids": f"in {row['id']}"}]  # type: ignore[method-assign]
            self.evict = lambda rows: [{"ids": f"out {[row['id'] for row in rows]}"}]  # type: ignore[method-assign]


def test_a_method_that_is_set_later_is_called_from_then_on() -> None:
    table = pa.table({"id": list(range(6))})
    given = aggregate(table, "count(2)", order_by="id", operator=f"{NAME}:Later", plain=True)
    assert given.column("ids").to_pylist() == ["out [2, 3]", "in 4", "in 5", "out [4, 5]"]
