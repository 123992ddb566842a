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
from support.places import table_of

COLUMNS = ("ts", "user", "amount", "latency", "kind", "flag")
JOBS = table_of("column_lineage")


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


def run(folder: Path, job: dict[str, Any], rows: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """Run a job over rows; return its result, and the column lineage that it says of it."""
    pq.write_table(rows, folder / "in.parquet")
    (folder / "job.yaml").write_text(job.get("file", ""))
    for old in folder.glob("*.jsonl"):
        old.unlink()
    words = ["job.yaml"] if "file" in job else job["words"]
    ran = wincli_here("run", *words, "in.parquet", "out", "--mode", "overwrite", "--lineage", "l.jsonl", cwd=folder)
    assert ran.code == 0, ran.err
    event = json.loads((folder / "l.jsonl").read_text().splitlines()[-1])
    return pq.read_table(folder / "out"), event["outputs"][0]["facets"]["columnLineage"]


def in_words(fields: list[dict[str, Any]]) -> str:
    """Write input fields as ``column USE USE, ..``, sorted."""
    uses = {each["field"]: " ".join(sorted(one["subtype"] for one in each["transformations"])) for each in fields}
    return ", ".join(f"{column} {use}" for column, use in sorted(uses.items()))


@pytest.mark.parametrize("name", JOBS)
def test_lineage_is_that_of_the_job_and_a_column_that_it_does_not_name_changes_nothing(
    name: str, tmp_path: Path
) -> None:
    job, rows = JOBS[name], table(1)
    before, lineage = run(tmp_path, job, rows)
    fields = {column: each["inputFields"] for column, each in lineage["fields"].items()}
    assert set(fields) == set(before.column_names) - {"_mark"}
    assert {column: in_words(fields[column]) for column in job["columns"]} == job["columns"]
    assert in_words(lineage["dataset"]) == job["rows"]
    deciding = {each["field"] for each in lineage["dataset"]}
    for column in [each for each in COLUMNS if each not in deciding][:2]:
        after, _ = run(tmp_path, job, rows.set_column(COLUMNS.index(column), column, table(3)[column]))
        named = {result for result, inputs in fields.items() if column in {one["field"] for one in inputs}}
        for result in before.column_names:
            assert before[result].equals(after[result]) or result in named, (column, result)
