"""The manifest says what was asked, what was read, what came out, and with what it was made."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import platform
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from support.processes import MASTER, Ran, manifest, write

Run = Callable[..., Ran]


def test_the_manifest_of_a_run_on_spark(spark_run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, a__csv="ts,user,n\n2026-11-01,a,1\n2026-11-02,,2\n", b__csv="ts,user,n\n2026-11-05,a,3\nx,a,4\n")
    args = ("-w", "DELTA(ts, 1d)", "-k", "user", "-a", "s=sum(n)", "--schema", "ts:date", "--at-end", "drop")
    assert spark_run("-q", *args, "log", "out").code == 0
    told = manifest(tmp_path / "out")
    assert list(told) == [
        *("format", "spec", "job", "schema", "order", "stream", "inputs", "inputs_skipped", "inputs_cut_at", "enrich"),
        *("stages", "counts", "expectations", "rows_out", "digest", "parts", "rejects"),
        *("seconds", "versions", "place", "checksum"),
    ]
    assert (told["format"], told["spec"]) == (1, "tumbling, delta(ts, 86400)")
    (stage,) = told["job"]["stages"]
    assert (stage["name"], stage["window"], stage["at_end"]) == ("window", "DELTA(ts, 1d)", "drop")
    assert told["job"]["input"] == ["log"]
    assert (told["job"]["schema"], told["job"]["master"]) == ("ts:date", MASTER)
    assert told["order"] == {"columns": ["ts"], "why": "the window's attribute is a time"}
    own = ["window", "window_start", "window_end", "closed_by", "_at", "_pos", "_mark"]
    assert told["stream"] == {"order": ["_at", "_pos", "window", "user"], "at": ["_at"], "own": own}
    assert [(column["name"], column["type"]) for column in told["schema"]] == [
        ("user", "string"),
        ("window", "int64"),
        ("window_start", "date32[day]"),
        ("window_end", "date32[day]"),
        ("closed_by", "string"),
        ("s", "int64"),
        ("_at", "date32[day]"),
        ("_pos", "int64"),
        ("_mark", "string"),
    ]
    for file, name in zip(told["inputs"], ("a.csv", "b.csv"), strict=True):
        stat = (log / name).stat()
        assert (file["path"], file["size"]) == (f"log/{name}", stat.st_size)
        assert abs(dt.datetime.fromisoformat(file["mtime"]).timestamp() - stat.st_mtime) < 1e-3
    counts = told["counts"]
    assert counts == {
        "rows_in": 4,
        "carried": 0,
        "windowed": 1,
        "filtered": 0,
        "dropped_at_end": 1,
        "panes_hidden": 0,
        "held": 0,
        "rejected": {"null_key": 1, "unparsable": 1},
    }
    assert told["rows_out"] == sum(part["rows"] for part in told["parts"]) == 1
    assert sum(part["rows"] for part in told["rejects"]) == 2
    for part in told["parts"]:
        path = tmp_path / "out" / part["name"]
        assert (path.stat().st_size, pq.read_metadata(path).num_rows) == (part["bytes"], part["rows"])
    for part in told["rejects"]:
        lines = (tmp_path / "out" / part["name"]).read_bytes()
        assert (len(lines), lines.count(b"\n")) == (part["bytes"], part["rows"])
    assert told["seconds"]["total"] >= told["seconds"]["scan"] > 0
    names = ("wincli", "pyspark", "pyarrow", "numpy", "numba")
    versions = {name: importlib.metadata.version(name) for name in names}
    assert told["versions"] == {**versions, "python": platform.python_version()}
