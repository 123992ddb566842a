"""Nights whose files have no rows, no values or other types: the answer of one run over all nights, or one error.

For each format, each night that is unlike the others, and ways to run the nights. An error says which column and
file it is about, and which entry of ``--schema`` settles it; none speaks of another job or state.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
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
VALUES = ("n=count()", "s=sum(amount)", "w=wavg(amount, amount)", "m=max(amount)", "l=collect(amount)", "o=first(user)")
JOB = (*WINDOW, *(word for each in VALUES for word in ("-a", each)))
HOURS = {"state": (0.5, 1, 9, 23.5), "apart": (3, 4, 9, 20)}
"""Hours of the rows of a night: those with a state make windows that go on over midnight, the others do not."""
PLACES = {"first": 0, "middle": 1, "last": 2}
INT, UTC = pa.int64(), pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Night:
    """What a night holds. ``rows``: its rows, or a file without any. ``amount``, ``ts``: the types that they have."""

    rows: bool = True
    amount: pa.DataType = INT
    ts: pa.DataType = UTC
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


def write_table(table: pa.Table, path: Path, form: str) -> None:
    if form == "csv":
        lines = [",".join(_text(value) for value in row.values()) for row in table.to_pylist()]
        path.write_text("\n".join([",".join(table.column_names), *lines, ""]))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row, default=_text) + "\n" for row in table.to_pylist()))
    elif form == "parquet":
        parquet.write_table(table, path)
    else:
        fields = [field.with_type(pa.int32()) if pa.types.is_null(field.type) else field for field in table.schema]
        orc.write_table(table.cast(pa.schema(fields)), path)


def _text(value: Any) -> str:
    return "" if value is None else value.isoformat() if isinstance(value, dt.datetime) else str(value)


def write_nights(folder: Path, form: str, case: str, place: int, way: str) -> None:
    usual, other = CASES[case]
    for at, day in enumerate(NIGHTS):
        night = other if at == place else usual
        path = folder / "log" / f"dt={day}" / f"a.{form}"
        path.parent.mkdir(parents=True)
        if night.has_bytes:
            write_table(night.table(day, HOURS["state" if way == "state" else "apart"]), path, form)
        else:
            path.touch()


def run_nights(folder: Path, way: str, job: Sequence[str]) -> list[str]:
    """Run night after night, or the nights together; return the errors."""
    if way == "state":
        ranges = [(day, ("--state", "st", *(("--at-end", "flush") if day == NIGHTS[-1] else ()))) for day in NIGHTS]
        commands = [("--start", f"{day}", "--end", f"{day + dt.timedelta(1)}", *more) for day, more in ranges]
    else:
        end = NIGHTS[-1] + dt.timedelta(1)
        commands = [("--start", f"{NIGHTS[0]}", "--end", f"{end}", *(("--jobs", "2") if way == "jobs" else ()))]
    return [error for command in commands if (error := run(folder, *job, *command, "log", "out"))]


def run(folder: Path, *args: str) -> str | None:
    """Run a command; return its error."""
    ran = wincli_here("run", *args, cwd=folder)
    assert (ran.code == 0) == ("wincli: error" not in ran.err), ran.err
    assert ran.code in (0, 2, 3), ran.err
    return ran.err.splitlines()[-1] if ran.code else None


def windows(out: Path) -> list[tuple[str, ...]]:
    """Return the windows of a result, or of several, without their numbers; see `_plain`."""
    names = ("user", "window_start", "window_end", "n", "s", "m", "l", "w", "o")
    parts = [parquet.read_table(part, partitioning=None) for part in sorted(out.rglob("part-*.parquet"))]
    return sorted(tuple(_plain(row.get(name)) for name in names) for part in parts for row in part.to_pylist())


def _plain(value: Any) -> str:
    """Return a value as it is in every type that holds it: numbers as floats, instants in UTC."""
    if isinstance(value, list):
        return repr([_plain(each) for each in value])
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return aware.astimezone(ZoneInfo("UTC")).isoformat()
    return repr(float(value)) if isinstance(value, int) else repr(value)


def words_of_error(form: str, case: str, place: str, way: str) -> Sequence[str] | None:
    """Return what each error of the nights has to say; None where there is none."""
    file = f"a.{form}"
    if case == "no zone" and way == "state":
        return ("column 'ts' is timestamp[", "the state st at 2026-11-0", file, "--schema 'ts:timestamp")
    if case == "no bytes" and form in ("parquet", "orc"):
        return (f"{file} cannot be read as",)  # no empty file, but one that is cut short
    if place != "first":
        return None
    if case == "no bytes" or (case == "no rows" and form == "jsonl"):
        return (f"{file} has no column", "--schema 'ts:timestamp,user:string'")
    return ("no column 'amount'", file, "--schema 'amount:TYPE'") if case == "a column is missing" else None


ALL = [
    *((form, "state", place) for form in ("csv", "parquet") for place in PLACES),
    *((form, "state", place) for form in ("jsonl", "orc") for place in ("first", "last")),
    *(("csv", "jobs", place) for place in ("first", "middle")),
    *(("orc", "no state", place) for place in ("first", "last")),
]
OFTEN = {*(each for each in ALL if each[2] == "first"), ("csv", "state", "middle"), ("parquet", "state", "last")}
"""Each format and each way, and each place; `scripts/nightly` runs the others."""
COURSES = [pytest.param(*each, marks=() if each in OFTEN else pytest.mark.nightly) for each in ALL]


@pytest.mark.parametrize(("form", "way", "place"), COURSES)
@pytest.mark.parametrize("case", CASES)
def test_nights_give_the_answer_of_one_run_or_one_error(
    tmp_path: Path, form: str, case: str, place: str, way: str
) -> None:
    write_nights(tmp_path, form, case, PLACES[place], way)
    errors = run_nights(tmp_path, way, JOB)
    words = words_of_error(form, case, place, way)
    for error in errors:
        assert words is not None, error
        assert all(word in error for word in words), error
        assert "another" not in error.replace("another format", "")
    if words is not None:
        assert errors
        return
    error = run(tmp_path, *JOB, "log", "one")
    if case == "no zone":
        assert error is not None
        assert all(word in error for word in ("column 'ts' is timestamp[", f"a.{form}", "--schema 'ts:")), error
    else:
        assert error is None
        assert windows(tmp_path / "out") == windows(tmp_path / "one") != []
