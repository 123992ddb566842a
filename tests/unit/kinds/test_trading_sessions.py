"""Trading sessions of three venues, with their holidays and early closes, as a package for calendars knows them."""

from __future__ import annotations

import datetime as dt
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from support.docs_pages import DOCS, fences
from support.in_process import done
from support.processes import table

HALF_HOUR = dt.timedelta(minutes=30)
VENUES = ("XNYS", "XLON", "XTKS")


def test_sessions_of_the_recipe_hold_the_trades_of_their_hours_and_no_others(tmp_path: Path) -> None:
    """The recipe's own program writes the table; trades come each half hour, day and night, at all venues."""
    (program,) = (lines for _, lines in fences(DOCS["recipes"], "python") if "exchange_calendars" in "\n".join(lines))
    command = [sys.executable, "-c", "\n".join(program)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    sessions: list[dict[str, Any]] = pc.read_csv(tmp_path / "sessions.csv").to_pylist()
    begin, end = dt.datetime(2024, 11, 25), dt.datetime(2025, 1, 3)
    times = [begin + HALF_HOUR * i for i in range((end - begin) // HALF_HOUR)]
    trades = [(time, venue) for time in times for venue in VENUES]
    pc.write_csv(
        pa.table({"ts": [time for time, _ in trades], "venue": [v for _, v in trades]}), tmp_path / "trades.csv"
    )
    (run,) = (line for line in commands("recipes") if "table(sessions)" in line)
    done(tmp_path, *run)
    found = {(row["venue"], row["window_start"]): row for row in table(tmp_path / "by-session").to_pylist()}
    wanted = {
        (each["venue"], each["opens"]): (each["closes"], sum(each["opens"] <= time < each["closes"] for time in times))
        for each in sessions
    }
    wanted = {name: told for name, told in wanted.items() if told[1]}
    assert {name: (row["window_end"], row["trades"]) for name, row in found.items()} == wanted
    hours = {name: (row["window_end"] - name[1]) / dt.timedelta(hours=1) for name, row in found.items()}
    new_york = {start.date(): length for (venue, start), length in hours.items() if venue == "XNYS"}
    london = {start.date(): length for (venue, start), length in hours.items() if venue == "XLON"}
    tokyo = {start.date() for venue, start in hours if venue == "XTKS"}
    assert dt.date(2024, 11, 28) not in new_york  # Thanksgiving
    assert dt.date(2024, 11, 28) in london
    assert [new_york[dt.date(2024, 11, day)] for day in (27, 29)] == [6.5, 3.5]
    assert [new_york[dt.date(2024, 12, day)] for day in (23, 24)] == [6.5, 3.5]
    assert [london[dt.date(2024, 12, day)] for day in (23, 24)] == [8.5, 4.5]
    assert dt.date(2024, 12, 26) not in london  # Boxing Day
    assert {dt.date(2024, 12, 25), dt.date(2024, 12, 30)} <= tokyo
    assert dt.date(2024, 12, 31) not in tokyo


def commands(page: str) -> list[list[str]]:
    """The words of each command of a page, behind ``wincli``."""
    text = "\n".join("\n".join(lines) for _, lines in fences(DOCS[page], "sh"))
    return [shlex.split(line)[1:] for line in re.sub(r" \\\n *", " ", text).splitlines() if line.startswith("wincli ")]
