"""``wincli verify --replay`` over every shape of job: what the units leave once more has the bits of what they left."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from support.day_results import day, records, span
from support.iceberg_catalog import Lake
from support.in_process import done
from support.month_log import SESSIONS, Log
from support.processes import write
from support.s3_server import S3Bucket

DAYS = 3
Replayed = dict[str, Any]


def replayed(folder: Path, which: str = f"{day(1)}..{day(DAYS)}", code: int = 0, state: str = "st") -> Replayed:
    found: Replayed = json.loads(done(folder, "verify", state, "--replay", which, "--json", code=code).out)
    return found


def is_as_recorded(folder: Path, state: str = "st") -> None:
    """Each span that ends with the last day comes out as it is recorded, to the bit and without a note."""
    for first in range(1, DAYS + 1):
        found = replayed(folder, f"{day(first)}..{day(DAYS)}", state=state)
        assert [line for unit in found["units"] for line in (*unit["differences"], *unit["notes"])] == []
        assert found["as_recorded"]
        for unit in found["units"]:
            assert unit["results"] == unit["recorded_results"] != []
            assert unit["state"] == unit["recorded_state"] != {}
            assert None not in (*unit["results"], *unit["state"].values())


def fails(folder: Path, says: str, which: str = f"{day(1)}..{day(DAYS)}", state: str = "st", code: int = 3) -> None:
    said = done(folder, "verify", state, "--replay", which, code=code).err.splitlines()
    assert len(said) == 1
    assert says in said[0]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log(tmp_path)
    for n in range(1, DAYS + 1):
        log.write(n)
    return log


STAGES = {
    "input": "log", "output": "out", "state": "st", "key": "user",
    "stages": [
        {"name": "visits", "window": "gap(ts, 2h)", "order_by": "ts", "agg": {"n": "count()", "s": "sum(x)"},
         "output": "visits"},
        {"name": "pairs", "window": "count(2)", "key": "user", "agg": {"t": "sum(s)"}},
    ],
}  # fmt: skip


def test_jobs_of_stages(log: Log) -> None:
    told = {**STAGES, "stages": [{**STAGES["stages"][0], "key": "user"}, STAGES["stages"][1]]}
    del told["key"]
    (log.folder / "job.yaml").write_text(json.dumps(told))
    done(log.folder, "run", "job.yaml", *span(1, DAYS))
    is_as_recorded(log.folder)


def test_joins(tmp_path: Path) -> None:
    chance = random.Random(3)
    for side, name in (("l", "v"), ("r", "m")):
        for n in range(1, DAYS + 1):
            hours = sorted(chance.randrange(24) for _ in range(9))
            lines = [f"{day(n)}T{hour:02}:00:00,{chance.choice('ab')},{chance.randrange(9)}" for hour in hours]
            write(tmp_path / side / f"dt={day(n)}", a__csv="\n".join([f"ts,k,{name}", *lines, ""]))
    for how, window in (("inner", "around(2h, 1h)"), ("full", "gap(ts, 3h)"), ("left", "at(0)")):
        args = ("--join", f"q=r/dt={{date}} on k {how}", "-w", window, "--order-by", "ts", "--mode", "overwrite")
        done(tmp_path, "run", "-q", *args, "--state", f"st-{how}", *span(1, DAYS), "l/dt={date}", f"out-{how}/{{date}}")
        is_as_recorded(tmp_path, f"st-{how}")
    write(tmp_path / "r" / f"dt={day(2)}", a__csv=f"ts,k,m\n{day(2)}T03:00:00,a,5\n")
    changed = f"{tmp_path}/r/dt={day(2)}/a.csv has changed since"
    fails(tmp_path, f"{day(2)} cannot be replayed: the table q is not what it was: {changed}", state="st-inner")


@pytest.mark.parametrize("path", ["prices", "prices/dt={date}"])
def test_enrich_tables(log: Log, path: str) -> None:
    for n in range(1, DAYS + 1):
        lines = f"ts,user,bid\n{day(n)}T05:00:00,a,{n}\n{day(n)}T10:00:00,b,9\n"
        write(log.folder / "prices" / f"dt={day(n)}", a__csv=lines)
    text = f"p={path} on user asof ts take bid"
    log.run(*span(1, DAYS), "--enrich", text, "-a", "bid=max(p_bid)")
    is_as_recorded(log.folder)
    if path == "prices":
        write(log.folder / "prices" / f"dt={day(9)}", a__csv=f"ts,user,bid\n{day(9)}T05:00:00,a,3\n")
        fails(log.folder, f"the table p is not what it was: {log.folder}/prices/dt={day(9)}/a.csv was not there when")
    write(log.folder / "prices" / f"dt={day(2)}", a__csv=f"ts,user,bid\n{day(2)}T05:00:00,a,77\n")
    first = day(1) if path == "prices" else day(2)
    changed = f"{log.folder}/prices/dt={day(2)}/a.csv has changed since"
    fails(log.folder, f"{first} cannot be replayed: the table p is not what it was: {changed}")
    (log.folder / "prices" / f"dt={day(2)}" / "a.csv").unlink()
    fails(log.folder, f"{first} cannot be replayed: the table p is")


@pytest.mark.parametrize("late", ["reject", "redo"])
def test_late_rows(log: Log, late: str) -> None:
    (log.folder / f"log/dt={day(DAYS)}/late.csv").write_text(
        f"ts,user,x\n{day(1)}T10:00:00,a,5\n{day(2)}T10:00:00,b,6\n"
    )
    log.run(*span(1, DAYS), "--late", late)
    assert bool(records(log.state)[day(2)]["borrowed"]) == (late == "redo")
    is_as_recorded(log.folder)
    moved = log.folder / f"log/dt={day(DAYS)}/late.csv"
    for spoil, what in ((lambda: moved.write_text("ts,user,x\n"), "has changed since"), (moved.unlink, "is gone")):
        spoil()
        fails(log.folder, f" cannot be replayed: {moved} {what}", day(DAYS))
        if late == "redo":
            fails(log.folder, f"{day(1)}: {day(DAYS)} cannot be replayed: {moved} {what}", f"{day(1)}..{day(2)}")
        else:
            assert replayed(log.folder, day(2))["as_recorded"]


def test_results_in_delta(log: Log) -> None:
    log.run(*span(1, DAYS), "--output-format", "delta")
    is_as_recorded(log.folder)


def test_results_in_iceberg(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(log.folder / "lake")
    lake.set_environment(monkeypatch)
    lake.make()
    log.run(*span(1, DAYS), output=lake.address("days/dt={date}"))
    is_as_recorded(log.folder)


@pytest.mark.parametrize("form", [(), ("--output-format", "delta")])
def test_states_and_results_in_a_store(log: Log, s3: S3Bucket, form: tuple[str, ...]) -> None:
    for n in range(1, DAYS + 1):
        s3.put(f"log/dt={day(n)}/a.csv", (log.folder / f"log/dt={day(n)}/a.csv").read_bytes())
    places = (f"{s3.uri}/log", f"{s3.uri}/out/{{date}}" if not form else f"{s3.uri}/out/dt={{date}}")
    done(log.folder, "run", *SESSIONS, *places, "--state", f"{s3.uri}/st", *span(1, DAYS), *form)
    before = s3.objects()
    is_as_recorded(log.folder, f"{s3.uri}/st")
    assert s3.objects() == before


def test_results_without_a_state_have_nothing_between_units_to_show(log: Log) -> None:
    done(log.folder, "run", *SESSIONS, "log", "out", *span(1, DAYS))
    says = "out is no state, and its results are of runs without one: none began from what another left"
    fails(log.folder, says, state="out", code=2)
    log.run(*span(1, DAYS), "--mode", "overwrite")
    fails(log.folder, "--replay: out is no state; name the folder of --state", state="out", code=2)
    fails(log.folder, "log is no state and no result of wincli", state="log")
