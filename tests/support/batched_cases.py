"""The cases of ``tests/cases/batched_windows.json``: window clauses, items at times, and what comes out when."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

import pyarrow as pa

from references import tumbling as reference
from support.places import CASES
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched

EXPRESSIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "floor(volume)/100": ("hundreds", lambda row: row["volume"] // 100)
}
"""What a clause partitions by, where it is no column: a name for it, and how a user would compute it first."""

AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {"sum": sum, "count": len, "max": max}

TimedOutputs = list[tuple[Fraction, Any]]  # the second of each output, and what it holds


@dataclass(frozen=True, slots=True)
class Case:
    """A case of the file. ``columns``: the fields of an item, the last of which is aggregated; ``group_by`` is no part
    of ``window`` here; ``until``: where the clock stands when one stops looking.
    """

    name: str
    window: str
    group_by: tuple[str, ...]
    columns: tuple[str, ...]
    origin: Fraction
    until: Fraction
    records: tuple[dict[str, Any], ...]
    expected: dict[str, TimedOutputs]

    @property
    def measure(self) -> str:
        return self.columns[-1]

    @property
    def spec(self) -> Batched:
        found = parse_window(self.window)
        assert isinstance(found, Batched)
        return found

    def table(self, clock: pa.DataType) -> pa.Table:
        times = [reference.as_value(record["at"], clock) for record in self.records]
        others = {name: [record[name] for record in self.records] for name in self.records[0] if name != "at"}
        return pa.table({"at": pa.array(times, clock), **others})


def cases() -> list[Case]:
    return [case_of(case) for case in json.loads((CASES / "batched_windows.json").read_text()) if "name" in case]


def case_of(case: dict[str, Any]) -> Case:
    window, *group_by = case["window"].split(" group by ")
    computed = {name: of for text, (name, of) in EXPRESSIONS.items() if text in window}
    for text, (name, _) in EXPRESSIONS.items():
        window = window.replace(text, name)
    items = [(lot["t"], item) for lot in case["input"] for item in lot["items"]]
    columns = item_columns(case, [item for _, item in items])
    records = [{"at": seconds(t), **dict(zip(columns, as_list(item), strict=True))} for t, item in items]
    records = [{**record, **{name: of(record) for name, of in computed.items()}} for record in records]
    return Case(
        name=case["name"],
        window=window,
        group_by=tuple(group_by),
        columns=columns,
        origin=seconds(case["query_created_at"]),
        until=seconds(case.get("observe_until", max(t for t, _ in items))),
        records=tuple(records),
        expected={
            what: [timed_output(what, output) for output in outputs] for what, outputs in case["expected"].items()
        },
    )


def item_columns(case: dict[str, Any], items: list[Any]) -> tuple[str, ...]:
    """Names for the fields of an item: a clause partitions by, groups by and is unique in the first of two."""
    if "volume" in case["window"]:
        return "symbol", "volume"
    named = re.search(r"(?:partition by|group by|with unique) (\w+)", case["window"])
    return (named[1], "v") if named and isinstance(items[0], list) else ("v",)


def as_list(item: Any) -> list[Any]:
    return item if isinstance(item, list) else [item]


def seconds(number: float) -> Fraction:
    return Fraction(str(number))


def timed_output(what: str, output: dict[str, Any]) -> tuple[Fraction, Any]:
    if what == "group_sum":
        return seconds(output["t"]), {group["key"]: group["value"] for group in output["lot"]}
    if what in AGGREGATES:
        return seconds(output["t"]), output["value"]
    return seconds(output["t"]), [tuple(as_list(item)) for item in output["lot"]]


def lots_of(groups: Iterable[tuple[Fraction, tuple[Any, Any]]]) -> TimedOutputs:
    """The groups of one second as one output; no case has two outputs by group in one second."""
    return [(second, dict(value for _, value in some)) for second, some in groupby(groups, key=lambda group: group[0])]
