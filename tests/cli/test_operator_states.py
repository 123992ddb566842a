"""An operator on a state, as commands: rows that come late."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from support.day_results import day
from support.in_process import wincli_here
from support.processes import Ran

HOUR = 3_600_000_000
OPERATOR = """
from wincli import Operator


class Seen(Operator):
    output = {"what": str, "ids": str, "turn": int}

    def __init__(self):
        self.turn, self.ids = 0, []

    def insert(self, row):
        self.ids.append(row["id"])
        return self.told("insert")

    def evict(self, rows):
        self.ids = [n for n in self.ids if n not in {row["id"] for row in rows}]
        return self.told("evict")

    def trigger(self, rows, pane):
        return self.told("trigger")

    def initial_full(self):
        return self.told("full")

    def finish(self):
        return self.told("finish")

    def told(self, what):
        self.turn += 1
        return [{"what": what, "ids": " ".join(map(str, self.ids)), "turn": self.turn}]
"""


ASKED = ("run", "-k", "user", "--order-by", "ts", "-w", "sliding, count(3), count(2)", "--operator", "seen:Seen")


def run(folder: Path, *arguments: str) -> Ran:
    """Run the operator in this process, which imports its module anew."""
    sys.modules.pop("seen", None)
    return wincli_here(*ASKED, *arguments, cwd=folder)


def write_log(folder: Path) -> None:
    """Three nights of two users; the last night has a row of the first one."""
    for night in range(3):
        hours = [*range(night * 24, night * 24 + 24, 3), *([7] if night == 2 else [])]
        path = folder / f"dt={day(night + 1)}"
        path.mkdir(parents=True)
        columns: dict[str, Any] = {
            "ts": pa.array([hour * HOUR for hour in hours], pa.timestamp("us")),
            "user": ["ab"[n % 2] for n in range(len(hours))],
            "id": [night * 100 + n for n in range(len(hours))],
        }
        pq.write_table(pa.table(columns), path / "a.parquet")


def told(folder: Path) -> list[str]:
    read = ds.dataset([str(path) for path in folder.rglob("part-*")], format="parquet").to_table()
    return sorted(map(repr, read.select(["user", "window", "closed_by", "what", "ids", "turn", "_at"]).to_pylist()))


def test_nights_with_late_rows_are_one_run(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    (tmp_path / "seen.py").write_text(OPERATOR)
    state = ("--state", "st", "--late", "redo")
    for night in (1, 2, 3):
        end = ("--at-end", "flush") if night == 3 else ()
        ran = run(tmp_path, *state, *end, f"log/dt={day(night)}", f"out/{night}")
        assert ran.code == 0, ran.err
    assert run(tmp_path, "log", "whole").code == 0
    assert told(tmp_path / "out") == told(tmp_path / "whole")
    assert sum("'finish'" in row for row in told(tmp_path / "whole")) == 2
