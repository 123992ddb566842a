"""Column lineage: hand-written lineages of jobs; and a column that no lineage names changes nothing in the result."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here

COLUMNS = ("ts", "user", "amount", "latency", "kind", "flag")
ONE = "amount AGGREGATION"

JOBS: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "a tumbling window": (
        ("-w", "gap(ts, 50)", "-k", "user", "--order-by", "ts", "-a", "s=sum(amount)", "-a", "n=count()"),
        {"user": "user IDENTITY", "s": ONE, "n": "", "window_start": "ts TRANSFORMATION", "window": ""},
        "ts SORT WINDOW, user GROUP_BY",
    ),
    "arrival order": (
        ("-w", "count(4)", "--order-by", "arrival", "-a", "last(kind)"),
        {"last_kind": "kind AGGREGATION", "window_start": "", "_at": ""},
        "",
    ),
    "expressions": (
        (
            *("-w", "count(3)", "--order-by", "ts", "--let", "both=amount + latency", "--where", "flag"),
            *("-a", "b=sum(both)", "-a", "r=max(amount) - min(latency)", "-a", "k=sum(amount) where kind = 'a'"),
        ),
        {
            "b": "amount AGGREGATION, latency AGGREGATION",
            "r": "amount AGGREGATION, latency AGGREGATION",
            "k": "amount AGGREGATION, kind CONDITIONAL",
        },
        "flag FILTER, ts SORT",
    ),
    "rows": (
        ("-w", "sliding, count(3), count(2)", "--order-by", "ts", "--emit", "rows", "--sort-by", "amount desc"),
        {"amount": "amount IDENTITY", "kind": "kind IDENTITY", "_at": "ts IDENTITY"},
        "amount SORT, ts SORT",
    ),
    "a window of an amount": (
        ("-w", "delta(ts, latency)", "--order-by", "ts", "-a", "s=sum(amount)"),
        {"s": ONE},
        "latency WINDOW, ts SORT WINDOW",
    ),
    "a condition with lag": (
        (
            *("-w", "when(amount > lag(latency))", "--order-by", "ts", "-k", "user", "--group-by", "kind"),
            *("-a", "x=first(lag(amount))"),
        ),
        {"kind": "kind IDENTITY", "x": ONE},
        "amount WINDOW, kind GROUP_BY, latency WINDOW, ts SORT, user GROUP_BY",
    ),
    "panes of event time": (
        ("-w", "timeInterval, intervalDuration(30)", "--event-time", "ts", "-a", "s=sum(amount)"),
        {"s": ONE, "window_start": "ts TRANSFORMATION"},
        "ts WINDOW",
    ),
    "marks": (
        ("-w", "punct()", "--marks", "flag", "--order-by", "ts", "-a", "s=sum(amount)"),
        {"s": ONE},
        "flag WINDOW, ts SORT",
    ),
    "a batched window": (
        ("-w", "within 40 retain 3 with unique user", "--order-by", "ts", "-a", "s=sum(amount)"),
        {"s": ONE},
        "ts SORT WINDOW, user WINDOW",
    ),
    "results that are left out": (
        ("-w", "count(3)", "--order-by", "ts", "-a", "s=sum(amount)", "-a", "n=count()", "--having", "s > 100"),
        {"s": ONE, "n": ""},
        "amount FILTER, ts SORT",
    ),
    "two stages": (
        ("job.yaml",),
        {
            "t": "amount AGGREGATION, latency CONDITIONAL",
            "top": "user AGGREGATION",
            "window_start": "ts TRANSFORMATION",
        },
        "amount FILTER, kind FILTER, latency FILTER, ts SORT WINDOW, user GROUP_BY SORT",
    ),
}
STAGES = """
stages:
  - name: one
    window: delta(ts, 40)
    key: user
    order_by: ts
    where: "kind <> 'c'"
    agg: ["s=sum(amount) where latency > 20", "n=count()"]
  - name: two
    window: count(2)
    order_by: _at
    where: s > 10
    agg: ["t=sum(s)", "top=max(user)"]
"""


def table(seed: int) -> pa.Table:
    draw = random.Random(seed)
    n = 60
    return pa.table(
        {
            "ts": pa.array(sorted(draw.randrange(2000) for _ in range(n))),
            "user": [draw.choice("uvw") for _ in range(n)],
            "amount": [draw.randrange(100) for _ in range(n)],
            "latency": [draw.randrange(1, 60) for _ in range(n)],
            "kind": [draw.choice("abc") for _ in range(n)],
            "flag": [draw.random() < 0.7 for _ in range(n)],
        }
    )


def run(folder: Path, job: tuple[str, ...], rows: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """Run a job over rows; return its result, and the column lineage that it says of it."""
    pq.write_table(rows, folder / "in.parquet")
    (folder / "job.yaml").write_text(STAGES)
    for old in folder.glob("*.jsonl"):
        old.unlink()
    options = ("--mode", "overwrite", "--lineage", "l.jsonl")
    words = (*job, "in.parquet", "out", *options) if job[0].endswith(".yaml") else (*job, *options, "in.parquet", "out")
    ran = wincli_here("run", *words, cwd=folder)
    assert ran.code == 0, ran.err
    event = json.loads((folder / "l.jsonl").read_text().splitlines()[-1])
    return pq.read_table(folder / "out"), event["outputs"][0]["facets"]["columnLineage"]


def in_words(fields: list[dict[str, Any]]) -> str:
    """Write input fields as ``column USE USE, ..``, sorted."""
    uses = {each["field"]: " ".join(sorted(one["subtype"] for one in each["transformations"])) for each in fields}
    return ", ".join(f"{column} {use}" for column, use in sorted(uses.items()))


@pytest.mark.parametrize("name", JOBS)
def test_lineage_is_that_of_the_job(name: str, tmp_path: Path) -> None:
    job, values, rows = JOBS[name]
    result, lineage = run(tmp_path, job, table(1))
    assert set(lineage["fields"]) == set(result.column_names) - {"_mark"}
    found = {column: in_words(lineage["fields"][column]["inputFields"]) for column in values}
    assert found == values
    assert in_words(lineage["dataset"]) == rows


@pytest.mark.parametrize("name", JOBS)
def test_a_column_that_the_lineage_does_not_name_changes_nothing(name: str, tmp_path: Path) -> None:
    job = JOBS[name][0]
    rows = table(2)
    before, lineage = run(tmp_path, job, rows)
    deciding = {each["field"] for each in lineage["dataset"]}
    for column in [each for each in COLUMNS if each not in deciding][:2]:
        other = rows.set_column(COLUMNS.index(column), column, table(3)[column])
        after, _ = run(tmp_path, job, other)
        named = {
            name for name, each in lineage["fields"].items() if column in {one["field"] for one in each["inputFields"]}
        }
        for result in before.column_names:
            assert before[result].equals(after[result]) or result in named, (column, result)
