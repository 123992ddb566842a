"""Jobs on each kind of place, in each kind of table, in each way to run them: all rows are those of one local run.

The log has rows that come a day late and rows that nobody knows; its windows pass from day to day. Results are read
with the libraries of the formats, never with what wrote them.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyarrow import parquet

from support.places_to_write import Lake
from support.processes import Ran
from wincli.windowing.tables.iceberg_catalog import open_catalog

Way: TypeAlias = Literal["plain", "range", "redo", "late redo"]
Form: TypeAlias = Literal["parquet", "delta", "iceberg"]
WAYS: tuple[Way, ...] = ("plain", "range", "redo", "late redo")
FORMS: tuple[Form, ...] = ("parquet", "delta", "iceberg")
DAYS = 4
CATALOG = "lake"
_ROWS = 60
_JOB = ("-w", "delta(ts, 3h)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "-a", "ids=collect(id)",
        "-a", "spent=sum(amount)", "--emit", "aggregates")  # fmt: skip
_SPLITS = ("--split-size", "1KiB", "--slice-size", "1KiB")
_LAST = ("--at-end", "flush")

Run = Callable[..., Ran]
"""Runs a command line to its end."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of the matrix. ``lake``: where IN, OUT and the state are; ``form``: the kind of table."""

    lake: Lake
    form: Form
    way: Way

    @property
    def out(self) -> tuple[str, ...]:
        """OUT of a plain run, and the options that go with it."""
        return self._out("")

    @property
    def out_of_days(self) -> tuple[str, ...]:
        """OUT of a range."""
        return self._out("/dt={date}")

    def _out(self, below: str) -> tuple[str, ...]:
        if self.form == "iceberg":
            return (f"iceberg://{CATALOG}/logs.out{below}",)
        options = ("--output-format", "delta") if self.form == "delta" else ()
        return (f"{self.lake.uri}/out{below}", *options)


def day(n: int) -> str:
    return f"2026-11-{n:02}"


def write_log(lake: Lake, late: bool) -> None:
    """Four days of three users; ``late``: some rows of the third are in the file of the fourth."""
    chance = random.Random(4)
    first = 0
    for n in range(1, DAYS + 1):
        lake.put(f"in/dt={day(n)}/a.parquet", _file(n, [n], chance, first))
        first += _ROWS
    if late:
        lake.put(f"in/dt={day(DAYS)}/b.parquet", _file(DAYS, [DAYS - 1, DAYS - 2], chance, first))


def _file(n: int, days: Sequence[int], chance: random.Random, first: int) -> bytes:
    """A file with rows of some days."""
    epoch = 1_793_491_200  # 2026-11-01
    at = sorted(epoch + (chance.choice(days) - 1) * 86_400 + chance.randrange(86_400) for _ in range(_ROWS))
    table = pa.table(
        {
            "ts": pa.array([second * 10**6 for second in at], pa.timestamp("us")),
            "user": [None if chance.random() < 0.03 else f"u{chance.randrange(3)}" for _ in at],
            "id": range(first, first + _ROWS),
            "amount": [chance.randrange(1000) / 8 for _ in at],
        }
    )
    sink = io.BytesIO()
    parquet.write_table(table, sink, row_group_size=17)
    return sink.getvalue()


def run_case(case: Case, run: Run) -> None:
    """Run all commands of a case."""
    write_log(case.lake, late=case.way == "late redo")
    if case.form == "iceberg":
        _make_namespace()
    source, state = f"{case.lake.uri}/in", ("--state", f"{case.lake.uri}/state", "--late", "redo")
    days = (*_JOB, *state, source, *case.out_of_days, *_SPLITS)
    well = _checked(run)
    if case.way == "plain":
        well("run", *_JOB, source, *case.out, *_SPLITS)
        well("run", *_JOB, source, *case.out, "--mode", "overwrite")  # once more, cut into other pieces
        return
    well("run", *days, *_span(1, 2))
    well("run", *days, *_span(3, 3))
    well("run", *days, *_span(4, 4), *_LAST)
    if case.way == "redo":
        well("run", *days, *_span(2, 3), "--redo")
        well("run", *days, *_span(4, 4), "--redo", *_LAST)
    assert "nothing to do" in well("run", *days, *_span(1, 4), *_LAST).err


def _make_namespace() -> None:
    open_catalog(CATALOG).create_namespace("logs")


def whole(lake: Lake, late: bool, run: Run) -> list[str]:
    """The rows of one local run over all files, in an order of their own."""
    write_log(lake, late)
    _checked(run)("run", *_JOB, f"{lake.uri}/in", f"{lake.uri}/whole")
    return rows_of_folder(lake, "whole")


def _span(first: int, last: int) -> tuple[str, ...]:
    return "--start", day(first), "--end", day(last + 1)


def _checked(run: Run) -> Run:
    def call(*args: str) -> Ran:
        ran = run(*args)
        assert ran.code == 0, ran.err
        return ran

    return call


def rows_of(case: Case) -> list[str]:
    """The rows of the results of a case, in an order of their own."""
    readers: Mapping[Form, Callable[[], list[str]]] = {
        "parquet": lambda: rows_of_folder(case.lake, "out"),
        "delta": lambda: rows_of_delta(case.lake),
        "iceberg": rows_of_iceberg,
    }
    return readers[case.form]()


def rows_of_folder(lake: Lake, folder: str) -> list[str]:
    """The rows of all results below a folder, as their manifests name them."""
    objects = lake.objects()
    found = [name for name in objects if name.startswith(f"{folder}/") and name.endswith("/_wincli/manifest.json")]
    tables = []
    for name in found:
        below = name.removesuffix("_wincli/manifest.json")
        tables += [_read(objects[below + part["name"]]) for part in json.loads(objects[name])["parts"]]
    return _sorted(tables)


def _read(content: bytes) -> pa.Table:
    return parquet.read_table(io.BytesIO(content))


def rows_of_delta(lake: Lake) -> list[str]:
    from deltalake import DeltaTable

    return _sorted([DeltaTable(f"{lake.uri}/out").to_pyarrow_table()])


def rows_of_iceberg() -> list[str]:
    return _sorted([open_catalog(CATALOG).load_table("logs.out").scan().to_arrow()])


def _sorted(tables: Iterable[pa.Table]) -> list[str]:
    """Rows as text, without where they stood in the log, and without the columns of folders."""
    rows: list[dict[str, Any]] = [row for table in tables for row in table.to_pylist()]
    return sorted(repr({k: v for k, v in sorted(row.items()) if k not in ("_pos", "dt")}) for row in rows)
