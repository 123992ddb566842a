"""States of the command line as tables, and tables as states: each goes on where the other stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import wincli
from support.in_process import wincli_here
from support.processes import Ran
from support.table_equality import check_windows
from wincli.windowing.errors import ConfigError, DamagedError

KEYED = {"key": "k"}
WINDOWS: dict[str, dict[str, Any]] = {
    "delta(t, 60)": KEYED,
    "time(600)": {},
    "count(7)": {"key": ["k", "u"]},
    "when(a < lag(a))": KEYED,
    "sliding, delta(t, 700), count(2)": KEYED,
    "retain 3": {},
    "timeInterval, intervalDuration(600)": {"key": "k", "event_time": "t"},
    "count(5), partitioned, partitionCount(4)": KEYED,
}
AGGREGATES = ["count()", "sum(x)", "first(t)"]


@pytest.fixture(scope="module")
def log() -> pa.Table:
    rng = np.random.default_rng(5)
    seconds = np.sort(rng.integers(0, 40_000, 400))
    return pa.table({
        "k": [f"u{i}" for i in rng.integers(0, 8, 400)],
        "t": pa.array(seconds * 10**6).cast(pa.timestamp("us", tz="UTC")),
        "a": rng.integers(0, 30, 400),
        "x": rng.random(400),
        "u": [*rng.choice(list("pq"), 400)],
    })  # fmt: skip


def run(folder: Path, window: str, *arguments: str) -> Ran:
    options = WINDOWS[window]
    names = [options["key"]] if isinstance(options.get("key"), str) else options.get("key", [])
    own = [*(["-k", ",".join(names)] if names else []), *(["--event-time", "t"] if "event_time" in options else [])]
    calls = [part for call in AGGREGATES for part in ("--agg", call)]
    return wincli_here("run", "-w", window, *own, "--order-by", "t", *calls, *arguments, cwd=folder)


def go_on(log: pa.Table, window: str, state: Any) -> tuple[pa.Table, pa.Table]:
    found: tuple[pa.Table, pa.Table] = wincli.aggregate(
        log, window, order_by="t", aggregates=AGGREGATES, state=state, **WINDOWS[window]
    )
    return found


def result_in(folder: Path) -> pa.Table:
    """The windows in a folder, without their arrival positions, which count what the state has."""
    return ds.dataset(folder, exclude_invalid_files=True).to_table().drop_columns(["_pos"])


def written(folder: Path, log: pa.Table) -> None:
    pq.write_table(log[:200], folder / "1.parquet")
    pq.write_table(log[200:], folder / "2.parquet")


@pytest.mark.parametrize("window", WINDOWS)
def test_tables_and_states_of_the_command_line_go_on_in_each_other(log: pa.Table, window: str, tmp_path: Path) -> None:
    written(tmp_path, log)
    assert run(tmp_path, window, "--state", "st", "1.parquet", "one").code == 0
    state = wincli.read_state(str(tmp_path / "st"))
    assert run(tmp_path, window, "--state", "st", "2.parquet", "two").code == 0
    two = result_in(tmp_path / "two")
    found, after = go_on(log[200:], window, state)
    check_windows(found.drop_columns(["_pos"]), two)

    _, state = go_on(log[:200], window, "new")
    with patch("wincli.writers.state.tables._ROWS_OF_PART", 20):
        wincli.write_state(state, str(tmp_path / "made"))
    assert run(tmp_path, window, "--state", "made", "2.parquet", "three").code == 0
    check_windows(result_in(tmp_path / "three"), two)
    names = ["_state", "_rows"]
    left = wincli.read_state(str(tmp_path / "made"))
    for one, other in ((left, after), (wincli.read_state(str(tmp_path / "made"), unit="run-000001"), state)):
        assert [without_pos(one[name].to_pylist()) for name in names] == [
            without_pos(other[name].to_pylist()) for name in names
        ]


def without_pos(value: Any) -> Any:
    """A state without what says of arrival more than its order."""
    if isinstance(value, list):
        return [without_pos(each) for each in value]
    if isinstance(value, dict):
        return {key: without_pos(each) for key, each in sorted(value.items()) if key not in ("__pos", "next_pos")}
    return value


def test_a_state_that_was_read_is_written_back_with_positions_of_its_own(log: pa.Table, tmp_path: Path) -> None:
    written(tmp_path, log)
    for place in (1, 2):
        assert run(tmp_path, "retain 3", "--state", "st", f"{place}.parquet", f"{place}").code == 0
    state = wincli.read_state(str(tmp_path / "st"))
    assert min(row["__pos"] for row in state["_rows"][1].as_py()) >= 10**12
    wincli.write_state(state, str(tmp_path / "made"))
    again = wincli.read_state(str(tmp_path / "made"))
    assert [row["__pos"] for row in again["_rows"][1].as_py()] == [0, 1, 2]
    assert "row accounting: 0 rows in = " in (told := wincli_here("status", "made", cwd=tmp_path).out)
    assert "does not balance" not in told


def test_what_is_no_state_or_is_gone_is_said(log: pa.Table, tmp_path: Path) -> None:
    written(tmp_path, log)
    folder = str(tmp_path / "st")
    with pytest.raises(ConfigError, match="there is no state in"):
        wincli.read_state(folder)
    for place in (1, 2):
        assert run(tmp_path, "delta(t, 60)", "--state", "st", "--keep", "1", f"{place}.parquet", f"{place}").code == 0
    with pytest.raises(ConfigError, match="no longer keeps the windows of run-000001; take a newer unit"):
        wincli.read_state(folder, unit="run-000001")
    with pytest.raises(ConfigError, match="has no unit 'run-000003'"):
        wincli.read_state(folder, unit="run-000003")
    with pytest.raises(ConfigError, match="has no stage 'hours'"):
        wincli.read_state(folder, stage="hours")
    with pytest.raises(ConfigError, match="has units already; name a new folder"):
        wincli.write_state(wincli.read_state(folder), folder)
    with pytest.raises(ConfigError, match="the state has no column '_part'"):
        wincli.write_state(log, str(tmp_path / "made"))
    next((tmp_path / "st" / "run-000002" / "window").glob("rows-*")).write_bytes(b"other")
    with pytest.raises(DamagedError, match="is damaged"):
        wincli.read_state(folder)


def test_a_written_state_has_checksums_and_belongs_to_its_job(log: pa.Table, tmp_path: Path) -> None:
    written(tmp_path, log)
    _, state = go_on(log[200:], "delta(t, 60)", "new")
    wincli.write_state(state, str(tmp_path / "st"))
    unit = json.loads((tmp_path / "st" / "run-000001" / "unit.json").read_text())
    assert all(part["checksum"].startswith("crc32:") for part in unit["stages"][0]["parts"])
    other = run(tmp_path, "when(a < lag(a))", "--state", "st", "2.parquet", "out")
    assert "the state st is of another job (at run-000001): its window is" in other.err
    late = run(tmp_path, "delta(t, 60)", "--state", "st", "--late", "redo", "1.parquet", "out")
    assert late.code == 2
    assert "it was made from a table, without an input; reject late rows with --late reject" in late.err
