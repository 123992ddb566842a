"""Every case of ``tests/cases/joins.json`` by the command line: what other systems find, and rules by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import done
from support.join_cases import ALL, Case, inputs_by_unit, is_answer, request
from support.processes import table

NOT_YET: dict[str, str] = {}
"""Cases that wincli does not answer, and why."""


def put(folder: Path, rows: pa.Table) -> None:
    folder.mkdir()
    pq.write_table(rows, folder / "log.parquet")


def emission(row: dict[str, Any]) -> tuple[Any, ...]:
    """The place of a row in the order in which lots come out; the end of the data is behind all rows."""
    at = row["_at"]
    ties = [row[name] for name in sorted(row) if name.startswith("_tie")]
    return at is None, at or 0, row.get("_turn") or 0, row["_pos"] or 0, *ties, row.get("window") or 0


def answered(out: Path) -> list[dict[str, Any]]:
    """The rows of a result in the order in which they come out, without marks."""
    return sorted((row for row in table(out).to_pylist() if row.get("_mark") != "only"), key=emission)


def options_of(case: Case) -> list[str]:
    args = ["--window", case["window"], *(part for call in case.get("agg", []) for part in ("--agg", call))]
    for name in ("match", "where", "emit"):
        args += [f"--{name}", case[name]] if name in case else []
    return args


def after(case: Case, folder: Path) -> list[dict[str, Any]]:
    """The rows of a second stage over a result."""
    by = case["then"]["by"]
    calls = [part for call in case["then"]["agg"] for part in ("--agg", call)]
    done(folder, "run", "--window", "count(1000)", *(["--key", ",".join(by)] if by else []), *calls, "out0", "then")
    return answered(folder / "then")


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in ALL])
def test_the_answer_of_the_source_or_the_one_that_differs_for_its_reason(case: Case, tmp_path: Path) -> None:
    if case["name"] in NOT_YET:
        pytest.xfail(NOT_YET[case["name"]])
    units = inputs_by_unit(case)
    for unit, (left, right) in enumerate(units):
        put(tmp_path / f"in{unit}", left)
        put(tmp_path / f"right{unit}", right)
        end = "hold" if unit + 1 < len(units) else case.get("at_end", "flush")
        state = ["--state", "state"] if len(units) > 1 or end == "hold" else []
        state += ["--late", case["units"]["late"]] if "units" in case else []
        args = ["--join", request(case, f"right{unit}"), *options_of(case), "--at-end", end, *state]
        done(tmp_path, "run", *args, f"in{unit}", f"out{unit}")
    if "then" in case:
        rows = after(case, tmp_path)
    else:
        rows = [row for unit in range(len(units)) for row in answered(tmp_path / f"out{unit}")]
    found = [[row.get(name) for name in case["expect"]["cols"]] for row in rows]
    assert is_answer(case, found), (found, case.get("here", case["expect"]["rows"]))
    if "here" in case:
        assert found != case["expect"]["rows"], "it differs no longer"
