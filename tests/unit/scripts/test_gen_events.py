"""The event log that the demo and the benchmarks run on."""

from __future__ import annotations

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet

from support.places import ROOT

SCRIPT = ROOT / "scripts" / "gen_events"


@pytest.fixture(scope="module")
def gen_events() -> ModuleType:
    spec = spec_from_loader("gen_events", SourceFileLoader("gen_events", str(SCRIPT)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.CHUNK = 1000
    return module


def table(
    gen_events: ModuleType, rows: int = 2500, keys: int = 20, seed: int = 1, zipf: float | None = None
) -> pa.Table:
    return pa.concat_tables(gen_events.chunks(rows, keys, seed, zipf))


def test_columns_types_and_values(gen_events: ModuleType) -> None:
    log = table(gen_events)
    assert log.num_rows == 2500
    assert log.schema.types == [pa.timestamp("us"), pa.string(), pa.float64(), pa.float64(), pa.string()]
    assert log.schema.names == ["ts", "user", "amount", "latency", "kind"]
    assert sum(column.null_count for column in log.columns) == 0
    amount = log["amount"].to_numpy()
    assert pc.count_distinct(log["kind"]).as_py() == 5
    assert np.array_equal(np.round(amount, 2), amount)
    assert log["latency"].to_numpy().min() > 0
    assert set(log["user"].to_pylist()) == {f"u{i:05d}" for i in range(20)}


def test_time_never_decreases_and_gaps_are_10_ms_on_average(gen_events: ModuleType) -> None:
    ticks = table(gen_events, rows=20_000)["ts"].cast(pa.int64()).to_numpy()
    gaps = np.diff(ticks)
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(10_000, rel=0.05)
    assert np.datetime64(int(ticks[0]), "us") >= np.datetime64("2026-11-01")


def test_the_same_seed_gives_the_same_log(gen_events: ModuleType) -> None:
    assert table(gen_events).equals(table(gen_events))
    assert not table(gen_events).equals(table(gen_events, seed=2))


def test_zipf_makes_the_first_users_busier(gen_events: ModuleType) -> None:
    users = np.array(table(gen_events, rows=5000, zipf=1.0)["user"].to_pylist())
    names, counts = np.unique(users, return_counts=True)
    assert names[counts.argmax()] == "u00000"
    assert counts.max() > 4 * counts.min()


@pytest.mark.parametrize(("rows", "files"), [(2500, 1), (2500, 7), (2, 3)])
def test_the_number_of_files_does_not_change_the_rows(
    gen_events: ModuleType, tmp_path: Path, rows: int, files: int
) -> None:
    gen_events.main(["--rows", str(rows), "--keys", "20", "--files", str(files), str(tmp_path / "out")])
    parts = [parquet.read_table(path) for path in sorted((tmp_path / "out").iterdir())]
    assert len(parts) == files
    assert pa.concat_tables(parts).equals(table(gen_events, rows=rows))


def test_csv_and_json_lines_hold_the_same_rows(gen_events: ModuleType, tmp_path: Path) -> None:
    for form in ("csv", "jsonl"):
        gen_events.main(["--rows", "1500", "--keys", "20", "--files", "1", "--format", form, str(tmp_path / form)])
    log = table(gen_events, rows=1500)
    read = csv.read_csv(tmp_path / "csv" / "events-00000.csv")
    assert read.cast(log.schema).equals(log)
    lines = [json.loads(line) for line in (tmp_path / "jsonl" / "events-00000.jsonl").read_text().splitlines()]
    assert pa.Table.from_pylist(lines).select(["user", "amount", "latency", "kind"]).equals(log.drop_columns(["ts"]))
    assert [line["ts"] for line in lines[:50]] == [each.isoformat() for each in log["ts"][:50].to_pylist()]


def test_script_prints_one_line_to_stderr_and_overwrites_nothing(
    gen_events: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--rows", "1e3", "--keys", "2", "--files", "1", str(tmp_path)]
    gen_events.main(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("1,000 events of 2 users in 1 files: ")
    assert err.count("\n") == 1
    with pytest.raises(SystemExit):
        gen_events.main(arguments)
    assert "is there already" in capsys.readouterr().err
