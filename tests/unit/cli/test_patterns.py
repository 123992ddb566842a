"""Every case of ``tests/cases/patterns.json`` by the command line: what other systems find, and rules by hand."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here
from support.pattern_cases import ALL, Case, is_answer, nights, options, table
from support.processes import manifest
from support.processes import table as result

EPOCH, MICROSECOND = dt.datetime(1970, 1, 1), dt.timedelta(microseconds=1)


def plain(value: Any) -> Any:
    """A value as cases have it: an instant in microseconds."""
    return (value - EPOCH) // MICROSECOND if isinstance(value, dt.datetime) else value


def emission(row: dict[str, Any]) -> tuple[Any, ...]:
    """The place of a row in the order in which windows come out; the end of the data is behind all rows."""
    return row["_pos"] is None, row["_at"] is not None, plain(row["_at"]) or 0, row["_pos"] or 0


def without(args: list[str], name: str) -> list[str]:
    at = args.index(name) if name in args else len(args)
    return args[:at] + args[at + 2 :]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in ALL])
def test_the_answer_of_the_source_or_the_one_that_differs_for_its_reason(case: Case, tmp_path: Path) -> None:
    args, at_end = without(case["args"], "--at-end"), (options(case, "--at-end") or ["flush"])[0]
    found, account = [], dict[str, int]()
    parts = nights(case)
    for night, rows in enumerate(parts):
        end = at_end if night + 1 == len(parts) else "hold"
        state = ["--state", "state"] if len(parts) > 1 or end == "hold" else []
        (tmp_path / f"in{night}").mkdir()
        pq.write_table(table(case, rows), tmp_path / f"in{night}" / "log.parquet")
        ran = wincli_here("run", *args, "--at-end", end, *state, f"in{night}", f"out{night}", cwd=tmp_path)
        if case.get("mistake"):
            assert ran.code == 2, ran.err
            return
        assert ran.code == 0, ran.err
        out = tmp_path / f"out{night}"
        lines = [{**row, "_night": night} for row in result(out).to_pylist() if row.get("_mark") != "only"]
        lines.sort(key=emission)
        found += [[plain(row[name]) for name in case["select"]] for row in lines]
        counts = manifest(out)["counts"]
        for name in ("windowed", "filtered", "dropped_at_end"):
            account[name] = account.get(name, 0) + counts[name]
        account["held"] = counts["held"]
    assert is_answer(case, found), (found, case["expect"])
    for name, count in case.get("account", {}).items():
        assert account[name] == count, name
