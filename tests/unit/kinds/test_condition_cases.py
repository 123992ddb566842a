"""Every case of ``tests/cases/condition_windows.json``: whole, cut between any two rows, and run by run.

A case names where its rule comes from, and the page that shows or says it. Row a is the first row, b the second; a
pane is its rows and why it came out. Rows in no pane are counted as filtered, or as dropped at the end.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import wincli
from support.event_logs import sliced
from support.in_memory_engine import MemorySource, run_in_memory
from support.incremental_runs import IncrementalRuns
from support.places import CASES
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan

LETTERS = "abcdefghijklmnop"
ALL = json.loads((CASES / "condition_windows.json").read_text(encoding="utf-8"))


def table_of(case: dict[str, Any]) -> pa.Table:
    columns = {name: pa.array(values) for name, values in case["rows"].items()}
    columns["t"] = pa.array(case["rows"]["t"], pa.timestamp("s"))
    return pa.table({"id": list(LETTERS[: len(columns["t"])]), **columns})


def asked(case: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Its key and its options."""
    options = {"at_end": case.get("at_end", "flush"), "emit_evicted": case.get("emit_evicted", False)}
    return [case["key"]] if "key" in case else [], options


def panes_of(table: pa.Table) -> list[str]:
    ids, reasons = table["ids"].to_pylist(), table["closed_by"].to_pylist()
    return ["".join(rows) + ":" + reason for rows, reason in zip(ids, reasons, strict=True)]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case["name"])
def test_whole_cut_between_rows_and_run_by_run(case: dict[str, Any]) -> None:
    """Run by run: a run for each row, each with the state of the one before."""
    table, wanted, (key, options) = table_of(case), case["expect"], asked(case)
    calls = [parse_aggregate("ids=collect(id)")]
    plan = make_plan(parse_window(case["window"]), table.schema, key, ["t"], calls, Options(**options))
    result = wincli.aggregate(table, case["window"], key=key, order_by=["t"], aggregates="ids=collect(id)", **options)
    assert panes_of(result) == wanted
    for rows in (1, 3):
        found = run_in_memory(plan, MemorySource([table], [[]]), [], sliced(plan, table, rows), "none")
        assert panes_of(found.table) == wanted
        assert found.counts.windowed == sum(len(pane.partition(":")[0]) for pane in wanted)
        assert found.counts.filtered + found.counts.dropped_at_end == len(table) - found.counts.windowed
    runs = IncrementalRuns(plan, "none")
    for low, high in pairwise(range(len(table) + 1)):
        end = options["at_end"] if high == len(table) else "hold"
        runs.run([table.slice(low, high - low)], [[]], end, [], None)
    assert sorted(panes_of(runs.table)) == sorted(wanted)


def test_there_are_as_many_cases_as_were_written() -> None:
    assert len(ALL) == len({case["name"] for case in ALL}) == 91
    assert sum("page" in case for case in ALL) == 28
    assert all(("page" in case) == case["source"].startswith(("TDengine", "Timeplus", "Azure", "KQL")) for case in ALL)
