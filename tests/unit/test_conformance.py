"""Every case of ``tests/cases/spl_windows.json`` that the reference can run, against the reference and the library.

A case is a stream of events (rows, marks, the clock) and what the original C++ windows put out after which event.
Cases are chosen by the words of their window spec: those with a word that is not in `reference.KINDS` wait for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windowing
from tests import reference
from windowing.tumbling import delta_starts

CASES = Path(__file__).parents[1] / "cases" / "spl_windows.json"
TYPES = {
    "id": pa.int64(),
    "a": pa.int32(),
    "f": pa.float64(),
    "u": pa.uint32(),
    "et": pa.timestamp("us"),
    "at": pa.float64(),
}


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a case: ``after`` is the event that caused it, ``ids`` None a mark and no row."""

    after: int
    tick: float | None
    key: str | None
    ids: tuple[int, ...] | None
    mark: bool


@dataclass(frozen=True, slots=True)
class Case:
    """A case of the file; ``rows`` are the indices of its row events, by arrival position."""

    name: str
    window: str
    key: str | None
    events: tuple[dict[str, Any], ...]
    expect: tuple[Output, ...]

    @property
    def words(self) -> set[str]:
        """The words of the window spec, without their arguments."""
        return {word.strip() for word in re.sub(r"\([^)]*\)", "", self.window).split(",")}

    @property
    def wanted(self) -> Counter[Output]:
        return Counter(self.expect)

    @property
    def rows(self) -> list[int]:
        return [index for index, event in enumerate(self.events) if "row" in event]

    @property
    def marks(self) -> list[int]:
        """Indices of the window mark events."""
        return [index for index, event in enumerate(self.events) if event.get("mark") == "window"]

    def rows_before(self, index: int) -> int:
        return sum(row < index for row in self.rows)

    @property
    def clock(self) -> float | None:
        return max((event["clock"] for event in self.events if "clock" in event), default=None)


def read_case(raw: dict[str, Any]) -> Case:
    expect = tuple(
        Output(o["after"], o.get("tick"), o.get("key"), o["ids"] and tuple(o["ids"]), o["mark"]) for o in raw["expect"]
    )
    return Case(raw["name"], raw["window"], raw.get("key"), tuple(raw["events"]), expect)


def cases() -> list[Case]:
    with CASES.open(encoding="utf-8") as file:
        return [read_case(raw) for raw in json.load(file) if "window" in raw]


RUNNABLE = [case for case in cases() if case.words <= reference.KINDS]


def has_nan(case: Case) -> bool:
    return any(str(event["row"].get("f")).lower() == "nan" for event in case.events if "row" in event)


def table_of(case: Case) -> pa.Table:
    records = [case.events[index]["row"] for index in case.rows]
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: [cell(name, record[name]) for record in records] for name in names}
    return pa.table({name: pa.array(values, TYPES.get(name)) for name, values in columns.items()})


def cell(name: str, value: Any) -> Any:
    if name == "f":
        return float(value)
    return int(Decimal(str(value)) * 1_000_000) if name == "et" else value


def policy_of(case: Case) -> reference.Policy:
    found = re.search(r"(count|delta|time|punct)\(([^)]*)\)", case.window)
    assert found, case.window
    word, args = found[1], [arg.strip() for arg in found[2].split(",")]
    if word == "count":
        return reference.Count(int(args[0]))
    if word == "time":
        return reference.Time(Fraction(args[0]), TYPES["at"], empty="mark")
    if word == "punct":
        return reference.Punct()
    return reference.Delta(args[0], Fraction(args[1].removesuffix("u")), TYPES[args[0]])


def order_of(case: Case) -> list[str]:
    return ["at"] if "time" in case.words else []


def by_reference(case: Case) -> Counter[Output]:
    table = table_of(case)
    rows = reference.read(table)
    panes = reference.tumbling(
        rows,
        policy_of(case),
        key=[case.key] if case.key else [],
        order=order_of(case),
        marks=[case.rows_before(index) for index in case.marks],
        clock=case.clock,
        at_end="drop",
    )
    return outputs(
        case,
        [
            (
                p.key[0] if p.key else None,
                p.at[0] if p.at else None,
                p.pos,
                None if p.mark == "only" else [rows[r]["id"] for r in p.rows],
            )
            for p in panes
        ],
    )


def by_library(case: Case) -> Counter[Output]:
    result = windowing.aggregate(
        table_of(case),
        case.window,
        key=[case.key] if case.key else [],
        order_by=order_of(case) or "arrival",
        aggregates=["ids=collect(id)"],
        marks=[case.rows_before(index) for index in case.marks] if case.marks else None,
        clock=case.clock,
        at_end="drop",
        empty="mark" if "time" in case.words else "skip",
    )
    keys = result[case.key] if case.key else pa.nulls(len(result))
    columns = (keys, result["_at"], result["_pos"], result["ids"])
    return outputs(case, list(zip(*(column.to_pylist() for column in columns), strict=True)))


def outputs(case: Case, panes: list[tuple[Any, Any, Any, list[int] | None]]) -> Counter[Output]:
    """Name the event that caused each pane (key, at, pos, ids; marks in the order they came)."""
    out: Counter[Output] = Counter()
    bare: dict[int, int] = {}  # mark-only rows so far behind each row position
    for key, at, pos, ids in panes:
        after, tick = cause(case, at, pos)
        if after in case.marks and ids is None:
            bare[pos] = bare.get(pos, 0) + 1
            after += bare[pos] - (pos < 0)  # the first mark behind a row always finds that row's window open
        out[Output(after, tick, None if key is None else str(key), ids if ids is None else tuple(ids), True)] += 1
    return out


def cause(case: Case, at: Any, pos: int) -> tuple[int, float | None]:
    if "time" in case.words:
        return next(i for i, event in enumerate(case.events) if event.get("clock", -1) >= at), at
    if "punct" in case.words:
        return next(index for index in case.marks if case.rows_before(index) == pos + 1), None
    return case.rows[pos], None


def story(case: Case, got: Counter[Output]) -> str:
    """The events one a line, with what should have come out after each and what did."""
    lines = ["", f"{case.name}: {case.window}" + (f"  key {case.key}" if case.key else "")]
    for index, event in enumerate(case.events):
        lines.append(f"  {index:3} {json.dumps(event)}")
        for sign, some in (
            ("missing", case.wanted - got),
            ("wrong  ", got - case.wanted),
            ("ok     ", got & case.wanted),
        ):
            lines += [f"      {sign} {o}" for o in some if o.after == index]
    return "\n".join(lines)


def check(case: Case, got: Counter[Output]) -> None:
    if got != case.wanted:
        pytest.fail(story(case, got), pytrace=False)


@pytest.mark.parametrize("case", RUNNABLE, ids=lambda case: case.name)
def test_reference_conforms(case: Case) -> None:
    got = by_reference(case)
    check(case, got)


@pytest.mark.parametrize("case", [case for case in RUNNABLE if not has_nan(case)], ids=lambda case: case.name)
def test_library_conforms(case: Case) -> None:
    got = by_library(case)
    check(case, got)


@pytest.mark.parametrize("case", [case for case in RUNNABLE if has_nan(case)], ids=lambda case: case.name)
def test_kernel_conforms_where_nan_compares_false(case: Case) -> None:
    # The library rejects NaN rows before the kernel sees them, so these run the kernel itself.
    policy = policy_of(case)
    assert isinstance(policy, reference.Delta)
    values = table_of(case)[policy.column].to_numpy()
    starts = delta_starts(np.array([0, len(values)], dtype=np.int64), values, float(policy.amount)).tolist()
    ids = table_of(case)["id"].to_pylist()
    got = Counter(Output(case.rows[stop], None, None, tuple(ids[start:stop]), True) for start, stop in pairwise(starts))
    check(case, got)


def test_all_tumbling_cases_are_run() -> None:
    names = {case.name for case in RUNNABLE}
    told = {case.name for case in cases() if case.name.startswith(("tumbling_", "unit_T_", "final_tumbling_"))}
    assert told <= names
    assert len(told) == 14
