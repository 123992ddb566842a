"""Several stages in one job: the same rows as one run after the other, one commit, and a word about each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from support.in_process import wincli_here
from support.processes import MASTER, Ran, manifest, rejected, table, write
from wincli import aggregate
from wincli.windowing.spark.boot import SparkExecutor

Run = Callable[..., Ran]
Fails = Callable[..., None]
ROWS = 4_000
SMALL = ("--split-size", "16KiB", "--slice-size", "16KiB")

ROLLUP: list[dict[str, Any]] = [
    {"name": "sensors", "window": "time(5m)", "group_by": ["site", "sensor"], "agg": ["x=sum(x)", "n=count()"]},
    {"name": "sites", "window": "punct()", "group_by": "site", "agg": ["x=sum(x)", "n=sum(n)", "sensors=count()"]},
    {"name": "regions", "window": "punct()", "agg": ["x=sum(x)", "n=sum(n)", "sites=collect(site)"]},
]
EVENTS: list[dict[str, Any]] = [
    {
        **{"name": "minutes", "window": "timeInterval, intervalDuration(1m), discardAge(5s)", "event_time": "ts"},
        **{"key": "sensor", "lag": "1s", "agg": "x=sum(x)", "output": "mid", "output_format": "jsonl"},
    },
    {"name": "smooth", "window": "sliding, count(3)", "key": "sensor", "partial": True, "agg": "x=mean(x)"},
    {"name": "sites", "window": "count(40)", "agg": ["x=max(x)", "who=arg_max(sensor, x)"], "output_format": "csv"},
]
TICKS: list[dict[str, Any]] = [
    {"window": "within 2m every 1m", "order_by": "ts", "key": "sensor", "agg": "x=sum(x)", "output": "mid"},
    {"window": "gap(x, 500000)", "key": "sensor", "agg": ["x=last(x)", "n=count()"]},
    {"window": "count(7)", "emit": "rows", "sort_by": "x desc", "plain": True},
]
CHAINS = {"rollup": ROLLUP, "events": EVENTS, "ticks": TICKS}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of a log that goes back and forth in time, a few rows of it without one."""
    folder = tmp_path_factory.mktemp("chains")
    random = np.random.default_rng(11)
    tenths = ((np.cumsum(random.exponential(0.9, ROWS)) + random.normal(0, 4, ROWS)) * 10).astype("i8")
    log = pa.table({
        "ts": pa.array(tenths * 100_000, pa.timestamp("us"), mask=random.random(ROWS) < 0.01),
        "site": [f"site {k % 5}" for k in range(ROWS)],
        "sensor": [f"sensor {k}" for k in random.integers(0, 30, ROWS)],
        "x": random.normal(0, 1e6, ROWS),
    })  # fmt: skip
    (folder / "log").mkdir()
    for i in range(3):
        pq.write_table(log.slice(i * ROWS // 3, ROWS // 3), folder / "log" / f"{i}.parquet", row_group_size=250)
    return folder


def job(folder: Path, name: str, **keys: Any) -> str:
    """Write a job file; return its name."""
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(keys))
    return f"{name}.yaml"


def done(ran: Ran) -> None:
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("case", CHAINS)
def test_a_chain_is_one_run_after_the_other(session: SparkExecutor, logs: Path, case: str) -> None:
    stages = CHAINS[case]
    own = [{**stage, "output": f"{case}-mid"} if "output" in stage else stage for stage in stages]
    chain = job(logs, case, input="log", output=f"{case}-chain", stages=own)
    done(wincli_here("run", "--master", MASTER, chain, *SMALL, cwd=logs, spark=session))
    source = "log"
    for at, stage in enumerate(stages):
        out = f"{case}-{at}"
        window = {key: value for key, value in stage.items() if key not in ("name", "output")}
        if at < len(stages) - 1:
            window.pop("output_format", None)
        done(wincli_here("run", job(logs, out, input=source, output=out, **window), cwd=logs))
        source = out
    want = table(logs / source)
    assert want.num_rows >= 5
    assert table(logs / f"{case}-chain").equals(want)
    told, alone = manifest(logs / f"{case}-chain"), [manifest(logs / f"{case}-{at}") for at in range(3)]
    for key in ("spec", "schema", "order", "stream", "counts", "rows_out"):
        assert told[key] == alone[2][key]
    for key in ("spec", "order", "counts"):
        assert [stage[key] for stage in told["stages"]] == [one[key] for one in alone[:2]]
    assert told["inputs"] == alone[0]["inputs"]
    assert len(alone[0]["parts"]) == 1
    if "output" in stages[0]:
        assert len(manifest(logs / f"{case}-mid")["parts"]) > 1
        seen = ["sensor", "window", "x", "_mark"]
        mid, one = table(logs / f"{case}-mid"), table(logs / f"{case}-0")
        assert mid.select(seen).to_pylist() == one.select(seen).to_pylist()


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """Three stages over five rows: the first rejects two, the second one."""
    write(tmp_path / "log", a__csv="ts,k,x\n1,a,1\n,a,2\n3,,3\n4,b,4\n5,b,\n")
    stages = [
        {"name": "keys", "window": "count(1)", "order_by": "ts", "key": "k", "agg": "x=sum(x)", "output": "keys"},
        {"name": "steps", "window": "delta(x, 1)", "agg": "x=sum(x)"},
        {"name": "all", "window": "punct()", "agg": "x=collect(x)"},
    ]
    return job(tmp_path, "chain", input="log", output="out", stages=stages)


def test_each_stage_is_reported_and_the_rejects_of_all_count(
    fails: Fails, run: Run, tmp_path: Path, chain: str
) -> None:
    counted = "3 rows were rejected (null_attribute 1, null_key 1, null_order 1), more than the 2 allowed"
    text = f"{counted}; nothing was written; run without --max-rejects to see them in _rejected"
    fails(4, text, chain, "--max-rejects", "2")
    ran = run(chain, "--max-rejects", "3")
    assert (ran.code, ran.out) == (0, "")
    assert ran.summary == "5 rows in, 2 windows out, 3 rejected (null_attribute 1, null_key 1, null_order 1)"
    assert ran.notes == [
        "stage keys: rows are ordered by ts: asked for",
        "stage steps: rows stand in the order in which the stage before was emitted",
        "stage all: rows stand in the order in which the stage before was emitted",
        "stage all: window marks come from the stage before",
        "stage keys: 5 rows in, 3 windows out, 2 rejected (null_key 1, null_order 1), see keys/_rejected -> keys",
        "stage steps: 3 rows in, 2 windows out, 1 rejected (null_attribute 1), see out/_rejected_before/stage=steps",
        "stage all: 2 rows in, 2 windows out, 0 rejected -> out",
    ]
    assert table(tmp_path / "out")["x"].to_pylist() == [[1], [4]]
    assert rejected(tmp_path / "keys", "_reason", "_file", "_row") == [
        ("null_order", "log/a.csv", 3),
        ("null_key", "log/a.csv", 4),
    ]
    steps = rejected(tmp_path / "out", "k", "_reason", "_file", "_row", folder="_rejected_before/stage=steps")
    assert steps == [("b", "null_attribute", "keys/part-00000.parquet", 3)]


@pytest.mark.parametrize("case", ["rollup", "ticks"])
def test_the_library_goes_on_from_a_result_as_the_next_stage_does(logs: Path, case: str) -> None:
    first, *others = CHAINS[case]
    own = [{**first, "output": f"{case}-first"}, *others]
    last = job(logs, f"{case}-all", input="log", output=f"{case}-last", stages=own)
    done(wincli_here("run", last, *SMALL, cwd=logs))
    found = table(logs / f"{case}-first")
    for stage in others:
        window = {key: value for key, value in stage.items() if key not in ("name", "agg")}
        calls = {"aggregates": stage["agg"]} if "agg" in stage else {}
        found = aggregate(found, **window, **calls, rejected="drop")
    want = table(logs / f"{case}-last")
    assert want.num_rows >= 5
    assert found.cast(want.schema).equals(want)
