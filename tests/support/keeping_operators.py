"""Operators that tell every call and keep what they have seen, for runs that go on from a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from references.operator_events import Event
from wincli.windowing.operator import Operator, PaneInfo

Told = list[dict[str, Any]]


class Keeper(Operator):
    """Gives one row a call, with the number of the call since it was made, and the sum of the ids that it has seen."""

    output: ClassVar = {"what": str, "ids": pa.list_(pa.int64()), "turn": int, "seen": int, "pane": str}

    def __init__(self) -> None:
        self.turn = 0
        self.seen: list[int] = []

    def insert(self, row: Mapping[str, Any]) -> Told:
        self.seen.append(row["id"])
        return self.told("insert", [row])

    def evict(self, rows: Sequence[Mapping[str, Any]]) -> Told:
        assert rows
        return self.told("evict", rows)

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> Told:
        return self.told("trigger", rows, f"{pane.window} {pane.closed_by} {pane.timing} {pane.index}")

    def initial_full(self) -> Told:
        return self.told("full", [])

    def partition_evicted(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        yield from self.told("gone", rows)

    def finish(self) -> Told:
        return self.told("finish", [])

    def told(self, what: str, rows: Sequence[Mapping[str, Any]], pane: str | None = None) -> Told:
        self.turn += 1
        ids = [row["id"] for row in rows]
        return [{"what": what, "ids": ids, "turn": self.turn, "seen": sum(self.seen), "pane": pane}]


class Asking(Keeper):
    """Asks for the eviction of its key at some rows and panes."""

    def insert(self, row: Mapping[str, Any]) -> Told:
        if row["id"] % 5 == 3:
            self.evict_partition()
        return super().insert(row)

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> Told:
        if sum(row["id"] for row in rows) % 4 == 1:
            self.evict_partition()
        return super().trigger(rows, pane)


def events_in(result: pa.Table, key: Sequence[str]) -> dict[tuple[Any, ...], list[Event]]:
    """The calls of each key as they stand in a result; those of a new operator are counted anew."""
    events: dict[tuple[Any, ...], list[Event]] = {}
    turns: dict[tuple[Any, ...], int] = {}
    for row in result.to_pylist():
        if row["what"] is None:
            continue
        own = tuple(row[name] for name in key)
        assert row["turn"] == turns.get(own, 0) + 1
        turns[own] = 0 if row["what"] == "gone" else row["turn"]
        is_pane = row["what"] == "trigger"
        assert (row["window"] is not None) == is_pane
        pane, at = (row["window"], row["closed_by"]) if is_pane else None, row["_pos"]
        events.setdefault(own, []).append(Event(row["what"], tuple(row["ids"]), pane, at))
    return events


KEEPER, ASKING = f"{__name__}:Keeper", f"{__name__}:Asking"
