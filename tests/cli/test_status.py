"""``wincli status`` as a command: what it prints of what ``wincli run`` left, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from support.processes import Ran, Warm, tree, wincli, write

Run = Callable[..., Ran]
RANGE = ("--start", "2026-11-01", "--end", "2026-11-04")


def write_log(folder: Path) -> None:
    write(folder / "log", d20261101__csv="id,ts\n1,10\n2,20\n3,\n", d20261103__csv="id,ts\n4,30\n")


def test_a_range_without_a_state(run: Run, warm: Warm, tmp_path: Path) -> None:
    write_log(tmp_path)
    assert run("-w", "delta(ts, 5)", "log/d{date:%Y%m%d}.csv", "out/{date}", *RANGE).code == 0
    before = tree(tmp_path)
    ran = warm.run(["status", "out"], tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "out: 2 units, 2026-11-01..2026-11-03",
        "unit        rows in  rows out  held  rejected",
        "2026-11-01        3         2     0  null_attribute 1",
        "2026-11-03        1         1     0  0",
        "gaps: 2026-11-02",
        "row accounting: 4 rows in = 3 windowed + 0 filtered + 1 rejected + 0 dropped at the end + 0 held",
    ]
    assert tree(tmp_path) == before


def test_a_range_with_a_state(run: Run, warm: Warm, tmp_path: Path) -> None:
    write_log(tmp_path)
    assert run("-w", "delta(ts, 5)", "log/d{date:%Y%m%d}.csv", "out/{date}", "--state", "st", *RANGE).code == 0
    ran = warm.run(["status", "st", "--json"], tmp_path)
    assert (ran.code, ran.err) == (0, "")
    told = json.loads(ran.out)
    units = [(unit["label"], unit["rows_in"], unit["windows_out"], unit["held"]) for unit in told["units"]]
    assert units == [("2026-11-01", 3, 1, 1), ("2026-11-03", 1, 1, 1)]
    assert told["gaps"] == ["2026-11-02"]
    assert [stage["balanced"] for stage in told["accounts"]] == [True]
    assert [(stage["windows"], stage["keys"]) for stage in told["open"]] == [(1, 1)]
    assert (told["at_work"], told["killed"], told["to_complete"], told["last_error"]) == (None, None, None, None)


def test_what_is_neither_a_state_nor_a_result(tmp_path: Path) -> None:
    write_log(tmp_path)
    for path, text in (
        ("log", "log is no state and no result of wincli; name the folder of --state, or of an output"),
        ("nowhere", "there is no file or folder nowhere; check the path"),
    ):
        ran = wincli("status", path, cwd=tmp_path)
        assert (ran.code, ran.out, ran.err) == (3, "", f"wincli: error: {text}\n")
