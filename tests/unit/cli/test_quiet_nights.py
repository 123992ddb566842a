"""Nights whose files have no rows, no values or other types: the answer of one run over all nights, or one error.

For each format, each night that is unlike the others, and each way to run the nights. An error says which column and
file it is about, and which entry of ``--schema`` settles it; none speaks of another job or state.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from support.in_process import wincli_here

NIGHTS = [dt.date(2026, 11, day) for day in (1, 2, 3)]
WINDOW = ("-w", "gap(ts, 2h)", "-k", "user", "--order-by", "ts")
AGGREGATES = ("n=count()", "s=sum(amount)", "m=max(amount)", "l=collect(amount)", "w=wavg(amount, amount)")
JOB = (*WINDOW, *(word for each in AGGREGATES for word in ("-a", each)))
HOURS = {"state": (0.5, 1, 9, 23.5), "apart": (3, 4, 9, 20)}
"""Hours of the rows of a night: those with a state make windows that go on over midnight, the others do not."""
FORMATS = ("csv", "jsonl", "parquet", "orc")
WAYS = ("state", "no state", "jobs")
PLACES = {"first": 0, "middle": 1, "last": 2}


@dataclass(frozen=True)
class Night:
    """What a night holds. ``rows``: its rows, or a file without any. ``amount``, ``ts``: the types that they have."""

    rows: bool = True
    amount: pa.DataType = pa.int64()
    ts: pa.DataType = pa.timestamp("us", "UTC")
    has_bytes: bool = True
    lacks: str | None = None

    def table(self, day: dt.date, hours: tuple[float, ...]) -> pa.Table:
        begin = dt.datetime.combine(day, dt.time(), dt.UTC)
        at = [begin + dt.timedelta(hours=hour) for hour in hours if self.rows]
        amounts: list[Any] = [4 * day.day + number for number in range(len(at))]
        if pa.types.is_floating(self.amount):
            amounts = [each + 0.25 for each in amounts]
        amount = pa.nulls(len(at)) if pa.types.is_null(self.amount) else pa.array(amounts, self.amount)
        users = pa.array(["a", "b", "a", "a"][: len(at)], pa.string())
        stamps = pa.array(at, pa.timestamp("us", "UTC")).cast(pa.timestamp(self.ts.unit, "UTC")).cast(self.ts)
        table = pa.table({"ts": stamps, "user": users, "amount": amount})
        return table.drop_columns([self.lacks]) if self.lacks else table


USUAL = Night()
FLOATS = Night(amount=pa.float64())
CASES: Mapping[str, tuple[Night, Night]] = {
    "no rows": (USUAL, Night(rows=False)),
    "no bytes": (USUAL, Night(rows=False, has_bytes=False)),
    "all null": (USUAL, Night(amount=pa.null())),
    "a column is missing": (USUAL, Night(lacks="amount")),
    "narrower": (FLOATS, Night(amount=pa.int32(), ts=pa.timestamp("ms", "UTC"))),
    "wider": (Night(amount=pa.int32()), Night(amount=pa.float64(), ts=pa.timestamp("ns", "UTC"))),
    "zone": (USUAL, Night(ts=pa.timestamp("us", "Europe/Paris"))),
    "no zone": (USUAL, Night(ts=pa.timestamp("us"))),
}
"""The nights as they usually are, and the one that is unlike them."""


def write_csv(table: pa.Table, path: Path) -> None:
    lines = [",".join(_text(value) for value in row.values()) for row in table.to_pylist()]
    path.write_text("\n".join([",".join(table.column_names), *lines, ""]))


def write_jsonl(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row, default=_text) + "\n" for row in table.to_pylist()))


def write_orc(table: pa.Table, path: Path) -> None:
    fields = [field.with_type(pa.int32()) if pa.types.is_null(field.type) else field for field in table.schema]
    orc.write_table(table.cast(pa.schema(fields)), path)


WRITERS: Mapping[str, Callable[[pa.Table, Path], None]] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": parquet.write_table,
    "orc": write_orc,
}


def _text(value: Any) -> str:
    return "" if value is None else value.isoformat() if isinstance(value, dt.datetime) else str(value)


def write_nights(folder: Path, form: str, case: str, place: int, way: str) -> None:
    usual, other = CASES[case]
    for at, day in enumerate(NIGHTS):
        night = other if at == place else usual
        path = folder / "log" / f"dt={day}" / f"a.{form}"
        path.parent.mkdir(parents=True)
        if night.has_bytes:
            WRITERS[form](night.table(day, HOURS["state" if way == "state" else "apart"]), path)
        else:
            path.touch()


def run_nights(folder: Path, way: str) -> list[str]:
    """Run night after night, or the nights together; return the errors."""
    if way == "state":
        ranges = [(day, ("--state", "st", *(("--at-end", "flush") if day == NIGHTS[-1] else ()))) for day in NIGHTS]
        commands = [("--start", f"{day}", "--end", f"{day + dt.timedelta(1)}", *more) for day, more in ranges]
    else:
        end = NIGHTS[-1] + dt.timedelta(1)
        commands = [("--start", f"{NIGHTS[0]}", "--end", f"{end}", *(("--jobs", "2") if way == "jobs" else ()))]
    errors = []
    for command in commands:
        ran = wincli_here("run", *JOB, *command, "log", "out", cwd=folder)
        assert ran.code in (0, 2, 3), ran.err
        if ran.code:
            errors.append(ran.err.splitlines()[-1])
    return errors


def windows(out: Path) -> list[tuple[Any, ...]]:
    """Return the windows of a result, or of several, with numbers as floats and instants in UTC."""
    rows = [
        row
        for part in sorted(out.rglob("part-*.parquet"))
        for row in parquet.read_table(part, partitioning=None).to_pylist()
    ]
    names = ("user", "window_start", "window_end", "n", "s", "m", "l", "w")
    return sorted(tuple(_plain(row[name]) for name in names) for row in rows)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return repr([_plain(each) for each in value])
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return aware.astimezone(ZoneInfo("UTC")).isoformat()
    return repr(float(value)) if isinstance(value, int) else repr(value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", FORMATS)
def test_nights(tmp_path: Path, form: str, case: str, place: str, way: str) -> None:
    write_nights(tmp_path, form, case, PLACES[place], way)
    errors = run_nights(tmp_path, way)
    print(errors)
    one = wincli_here("run", *JOB, "log", "one", cwd=tmp_path)
    print(one.err)
    assert not errors
    assert one.code == 0
    assert windows(tmp_path / "out") == windows(tmp_path / "one") != []
