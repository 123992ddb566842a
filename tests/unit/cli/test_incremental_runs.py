"""The whole command, night by night onto a state: what comes out is what one run over all nights gives."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import csv
from pyarrow import parquet as pq

from support.day_results import as_one, day, in_order, records, span, total
from support.in_process import done, wincli_here
from support.processes import manifest, rejected

NIGHTS = 4
ROWS = 160
AGG = ("-a", "n=count()", "-a", "total=sum(x)", "-a", "ids=collect(id)")
SKETCHES = ("-a", "u=hll_sketch(id)", "-a", "k=kll_sketch(x)", "-a", "q=approx_quantile(x, 0.99)")
KINDS = {
    "gap": ("-w", "gap(ts, 20m)", "-k", "user", "--order-by", "ts", *AGG, *SKETCHES),
    "sliding time": ("-w", "sliding, time(3h), time(40m)", "-k", "user", "--order-by", "ts", *AGG),
    "timeInterval": (
        *("-w", "timeInterval, intervalDuration(2h), creationPeriod(90m), discardAge(20m)", "--event-time", "ts"),
        *("--order-by", "arrival", "--lag", "5m", "-k", "user", *AGG),
    ),
}
SCHEMA = ("--schema", "ts:timestamp,user:string,x:float,id:int")


def log_of(seed: int) -> pa.Table:
    """Four days of a log in which times go back by up to an hour, and a few rows lack theirs."""
    random = np.random.default_rng(seed)
    seconds = np.sort(random.integers(0, NIGHTS * 86_400, ROWS)) + random.integers(-1800, 1800, ROWS)
    at = (np.clip(seconds, 0, NIGHTS * 86_400 - 1) + 1_793_491_200) * 1_000_000
    return pa.table({
        "ts": pa.array(at, pa.timestamp("us"), mask=random.random(ROWS) < 0.02),
        "user": [f"u{n}" for n in random.integers(0, 3, ROWS)],
        "x": random.normal(0, 1, ROWS).round(3),
        "id": np.arange(ROWS),
    })  # fmt: skip


def nights_of(log: pa.Table, by_day: bool, seed: int) -> list[pa.Table]:
    """Cut a log at midnights, so that no row is late for its night, or anywhere; the third of four has no rows."""
    if not by_day:
        cuts = sorted(np.random.default_rng(seed).integers(0, ROWS, 2).tolist())
        return [log.slice(low, high - low) for low, high in pairwise([0, cuts[0], cuts[1], cuts[1], ROWS])]
    days = np.array([0 if at is None else at.day - 1 for at in log["ts"].to_pylist()])
    return [log.take(np.flatnonzero(days == n)) for n in range(NIGHTS)]


def write_night(folder: Path, night: pa.Table, form: str, n: int) -> None:
    """Write a night to as many files as its number says, with names and row groups of its own."""
    folder.mkdir(parents=True)
    edges = np.linspace(0, len(night), n + 1).astype(int).tolist()
    for i, (low, high) in enumerate(pairwise(edges)):
        rows, name = night.slice(low, high - low), folder / f"{'zyx'[n % 3]}{i}-of-{n}.{form}"
        if form == "csv":
            csv.write_csv(rows, name)
        else:
            pq.write_table(rows, name, row_group_size=5 + 3 * n)


def run_nights(folder: Path, *command: str) -> None:
    """One night by itself, two at once, and the last, which lets all out; each cut into other pieces."""
    for first, last, more in (
        (1, 1, ()),
        (2, 3, ("--split-size", "1KiB", "--slice-size", "2KiB")),
        (4, 4, ("--at-end", "flush")),
    ):
        done(folder, "run", *command, "--state", "st", *span(first, last), *more)


def outputs(folder: Path, name: str = "out") -> list[Path]:
    return [folder / name / f"dt={day(n)}" for n in range(1, NIGHTS + 1)]


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("kind", KINDS)
def test_incremental_runs_give_the_result_of_one_run(tmp_path: Path, kind: str, form: str) -> None:
    seed = len(kind)
    nights = nights_of(log_of(seed), kind != "timeInterval", seed)
    for n, night in enumerate(nights, 1):
        write_night(tmp_path / "log" / f"dt={day(n)}", night, form, n)
    command = [*KINDS[kind], *(SCHEMA if form == "csv" else ())]
    run_nights(tmp_path, *command, "log", "out")
    done(tmp_path, "run", *command, "log", "whole")
    units = list(records(tmp_path / "st").values())
    found, wanted = as_one(in_order(outputs(tmp_path)), units), in_order([tmp_path / "whole"])
    assert found.equals(wanted)
    assert total(tmp_path / "st") == manifest(tmp_path / "whole")["counts"]
    assert sorted(row for out in outputs(tmp_path) for row in rejects(out)) == sorted(rejects(tmp_path / "whole"))


def rejects(out: Path) -> list[tuple[Any, ...]]:
    return rejected(out, "_reason", "id") if (out / "_rejected").exists() else []


CHAIN: dict[str, Any] = {
    "input": "log",
    "output": "out",
    "stages": [
        {
            **{"name": "visits", "window": "gap(ts, 20m)", "key": "user", "order_by": "ts", "output": "visits"},
            "agg": ["n=count()", "total=sum(x)", "ends=last(ts)"],
        },
        {"name": "marks", "window": "punct()", "agg": ["n=sum(n)", "total=sum(total)", "ends=max(ends)"]},
        {"name": "moves", "window": "sliding, count(4), count(5)", "agg": ["n=sum(n)", "total=sum(total)"]},
    ],
}


def test_incremental_runs_of_a_chain_give_the_result_of_one_run(tmp_path: Path) -> None:
    nights = nights_of(log_of(5), True, 5)
    for n, night in enumerate(nights, 1):
        write_night(tmp_path / "log" / f"dt={day(n)}", night, "parquet", n)
    whole = {**CHAIN, "output": "whole", "stages": [{**CHAIN["stages"][0], "output": "one"}, *CHAIN["stages"][1:]]}
    for name, job in (("nights", CHAIN), ("whole", whole)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(job))
    run_nights(tmp_path, "nights.yaml")
    done(tmp_path, "run", "whole.yaml")
    units = list(records(tmp_path / "st").values())
    for some, one in ((outputs(tmp_path, "visits"), "one"), (outputs(tmp_path), "whole")):
        found, wanted = as_one(in_order(some), units), in_order([tmp_path / one])
        assert wanted.num_rows > 15
        assert found.equals(wanted)
    for unit, is_open in ((units[1], [True, False, True]), (units[3], [False, False, False])):
        assert [stage["open"]["windows"] > 0 for stage in unit["stages"]] == is_open
    told = wincli_here("status", "st", "--json", cwd=tmp_path)
    assert [(each["stage"], each["balanced"]) for each in json.loads(told.out)["accounts"]] == [
        ("visits", True),
        ("marks", True),
        ("moves", True),
    ]
