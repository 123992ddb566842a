"""The cases of ``tests/cases/spl_windows.json``: streams of events, and what the C++ windows put out after which."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from references import tumbling as reference
from support.places import CASES
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language import spec
from wincli.windowing.language.parser import parse_window

TYPES = {
    "id": pa.int64(),
    "a": pa.int32(),
    "f": pa.float64(),
    "u": pa.uint32(),
    "et": pa.timestamp("us"),
    "at": pa.float64(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is told of an output apart from its place, its key and its rows."""

    mark: bool
    group: str | None = None
    interval: tuple[float, float] | None = None
    timing: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Output(Told):
    """One output of a case: ``after`` is the event that caused it, ``ids`` None a mark and no row."""

    after: int
    tick: float | None
    key: str | None
    ids: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Emitted(Told):
    """One output of the reference or the library, as both tell it: a pane, a group of one, or a mark alone."""

    key: Any
    at: Any
    pos: int
    ids: list[int] | None
    closed_by: str | None


@dataclass(frozen=True, slots=True)
class Case:
    """A case of the file; ``rows`` are the indices of its row events, by arrival position."""

    name: str
    window: str
    key: str | None
    events: tuple[dict[str, Any], ...]
    expect: tuple[Output, ...]
    partial: bool = False
    emit_evicted: bool = False
    group_by: str | None = None

    @property
    def spec(self) -> spec.WindowSpec:
        return parse_window(self.window)

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

    @property
    def watermarks(self) -> dict[int, Fraction]:
        """Watermarks in seconds by the index of their event."""
        return {i: Fraction(str(event["watermark"])) for i, event in enumerate(self.events) if "watermark" in event}

    def rows_before(self, index: int) -> int:
        return sum(row < index for row in self.rows)

    @property
    def clock(self) -> float | None:
        return max((event["clock"] for event in self.events if "clock" in event), default=None)


def read_case(raw: dict[str, Any]) -> Case:
    own = {name: raw[name] for name in ("partial", "emit_evicted", "group_by") if name in raw}
    return Case(raw["name"], raw["window"], raw.get("key"), tuple(raw["events"]), expected(raw["expect"]), **own)


def expected(outputs: list[dict[str, Any]]) -> tuple[Output, ...]:
    absent: dict[str, Any] = dict.fromkeys(("tick", "key"))
    return tuple(
        Output(**{**absent, **o, "ids": o["ids"] and tuple(o["ids"]), "interval": pair(o.get("interval"))})
        for o in outputs
    )


def pair(interval: list[float] | None) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])


def cases() -> list[Case]:
    with (CASES / "spl_windows.json").open(encoding="utf-8") as file:
        return [read_case(raw) for raw in json.load(file) if "window" in raw]


ALL = cases()


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


def order_of(case: Case) -> list[str]:
    """Event-time panes look at rows in arrival order."""
    return ["at"] if kind_of(case.spec).needs.clock and not isinstance(case.spec, spec.TimeInterval) else []


def pair_of(eviction: spec.PartitionEviction | None) -> reference.Eviction | None:
    return None if eviction is None else (eviction.kind, eviction.amount)


def in_seconds(start: Any, end: Any) -> tuple[float, float]:
    """Bounds in the ticks of the event time."""
    return start / 1_000_000, end / 1_000_000


def records(result: pa.Table) -> list[dict[str, Any]]:
    columns = {name: reference.ticks_of(result[name]) for name in result.column_names}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def read(case: Case, record: dict[str, Any]) -> Emitted:
    """A row of the result."""
    bounds = isinstance(case.spec, spec.TimeInterval)
    return Emitted(
        record[case.key] if case.key else None,
        record["_at"],
        record["_pos"],
        record["ids"],
        record["closed_by"],
        mark=record["_mark"] is not None,
        group=record[case.group_by] if case.group_by else None,
        interval=in_seconds(record["window_start"], record["window_end"]) if bounds else None,
        timing=record.get("timing"),
        index=record.get("index"),
    )


def outputs(case: Case, emitted: list[Emitted]) -> Counter[Output]:
    """Name the event that caused each output; ``emitted`` in the order they came."""
    out: Counter[Output] = Counter()
    bare: dict[int, int] = {}  # mark-only rows so far behind each row position
    for one in emitted:
        after, tick = cause(case, one)
        if after in case.marks and one.ids is None:
            bare[one.pos] = bare.get(one.pos, 0) + 1
            after += bare[one.pos] - (one.pos < 0)  # the first mark behind a row always finds that row's window open
        key, ids = None if one.key is None else str(one.key), None if one.ids is None else tuple(one.ids)
        told = {field.name: getattr(one, field.name) for field in fields(Told)}
        out[Output(after, tick, key, ids, **told)] += 1
    return out


def cause(case: Case, emitted: Emitted) -> tuple[int, float | None]:
    """The event that an output came after, and the tick where the clock brought it out."""
    if emitted.interval:
        return watermark_behind(case, emitted.pos, emitted.interval[1]), None
    if emitted.pos < 0 and emitted.at is not None:
        return next(i for i, event in enumerate(case.events) if event.get("clock", -1) >= emitted.at), emitted.at
    if "punct" in case.words and emitted.closed_by != "evicted":
        return next(index for index in case.marks if case.rows_before(index) == emitted.pos + 1), None
    return case.rows[emitted.pos], None


def watermark_behind(case: Case, pos: int, end: float) -> int:
    """The first watermark event behind a row that rises, and to the end of a pane or beyond."""
    highest = Fraction(-1)
    for index, seconds in case.watermarks.items():
        if seconds > highest and case.rows_before(index) == pos + 1 and seconds >= end:
            return index
        highest = max(highest, seconds)
    raise AssertionError(f"{case.name}: no watermark behind row {pos} reaches {end}")


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
