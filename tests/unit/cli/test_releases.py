"""Results, records and states that earlier releases wrote are read, shown, checked and gone on from.

``tests/releases`` has an archive for each release: what it wrote for two days of the log below. No release before 0.3
had states.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from support.day_results import day, span
from support.in_process import done, wincli_here
from support.processes import table, write

RELEASES = Path(__file__).parents[2] / "releases"
NAMES = sorted(
    (path.name.removesuffix(".tar.gz") for path in RELEASES.glob("*.tar.gz")),
    key=lambda name: [*map(int, name.split("."))],
)
WITH_STATE = [name for name in NAMES if name != "0.2.0"]
SINCE = {release: [name for name in WITH_STATE if int(name.split(".")[1]) >= release] for release in (19, 20, 21)}
LOG = {
    1: "08:00:00,ann,1,0.5,a 08:10:00,ann,2,0.25,b 09:00:00,bob,3,1.5,c 23:50:00,ann,4,2.5,d 23:55:00,,5,2.5,e",
    2: "00:05:00,ann,6,0.125,f 00:10:00,bob,7,,g 23:45:00,bob,8,4.5, 23:58:00,ann,9,0.75,h",
    3: "00:01:00,bob,10,0.5,i 00:20:00,ann,11,,j 09:00:00,ann,12,0.25,k",
}
CALLS = ("-k", "user", "-a", "count()", "-a", "s=sum(n)", "-a", "m=mean(x)", "-a", "l=last(word)")
GAPS = ("-w", "gap(ts, 30m)", *CALLS, "log", "gaps", "--state", "st")
TABLE = "shifts=shifts.csv on user=who from start to end take name"
OVER_TIME = ("-k", "user", "-a", "count()", "-a", "s=integral(x)", "-a", "f=locf(last(word))")
SHIFTS = ("-w", "table(shifts)", "--windows", TABLE, *OVER_TIME, "log", "shifts", "--state", "st3")
MATCHES = ("-w", "match(lo -> hi, lo = n = 4, hi = n > 10) within 3d", "-k", "user", "-a", "count()", "-a", "s=sum(n)")
MATCHES = (*MATCHES, "-a", "l=last(word)", "--order-by", "ts", "log", "matches", "--state", "st4")
PAIRS = ("-w", "around(1h, 2h)", "--join", "q=log/dt={date}/a.csv on user left", "-a", "count()", "-a", "s=sum(q_n)")
PAIRS = (*PAIRS, "-a", "l=last(q_word)", "--order-by", "ts", "log/dt={date}/a.csv", "pairs", "--state", "st5")
SLIDES = ("-w", "sliding, count(3), count(1)", *CALLS, "--order-by", "ts", "log", "slides", "--state", "st2")


def log_of(folder: Path, *days: int) -> None:
    for n in days:
        rows = [f"{day(n)}T{row}" for row in LOG[n].split(" ")]
        write(folder / "log" / f"dt={day(n)}", a__csv="\n".join(["ts,user,n,x,word", *rows, ""]))


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(RELEASES / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def anew(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All three days as this version computes them."""
    folder = tmp_path_factory.mktemp("anew")
    log_of(folder, 1, 2, 3)
    for job in (GAPS, SLIDES):
        done(folder, "run", *job, *span(1, 3))
    return folder


def test_there_is_an_archive_of_each_release() -> None:
    assert [*map(str, NAMES)] == [f"0.{n}.0" for n in range(2, 14)] + ["0.14.1", *(f"0.{n}.0" for n in range(15, 23))]


@pytest.mark.parametrize("name", WITH_STATE)
def test_a_run_goes_on_from_the_state_of_a_release(name: str, anew: Path, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path)
    log_of(folder, 3)
    for job, out, state in ((GAPS, "gaps", "st"), (SLIDES, "slides", "st2")):
        done(folder, "run", *job, *span(3, 3))
        last = f"{out}/dt={day(3)}"
        assert table(folder / last).equals(table(anew / last))
        told = json.loads(wincli_here("status", state, "--json", cwd=folder).out)
        assert [unit["label"] for unit in told["units"]] == [day(1), day(2), day(3)]
        done(folder, "verify", out)
        told = wincli_here("verify", state, cwd=folder).out.splitlines()
        damaged = [line for line in told if line.startswith("damaged: ")]
        assert all(line.endswith(" is gone") for line in damaged)  # records name the folder of the machine they are of


@pytest.mark.parametrize(
    ("name", "job"),
    [(name, job) for since, job in ((19, SHIFTS), (20, MATCHES), (21, PAIRS)) for name in SINCE[since]],
)
def test_newer_kinds_go_on_from_the_state_of_a_release(name: str, job: tuple[str, ...], tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path / name)
    log_of(folder, *((1, 2, 3) if job is PAIRS else (3,)))
    done(folder, "run", *job, *span(3, 3))
    again = tmp_path / "anew"
    log_of(again, 1, 2, 3)
    (again / "shifts.csv").write_text((folder / "shifts.csv").read_text())
    done(again, "run", *job, *span(1, 3))
    last = f"{job[job.index('--state') - 1]}/dt={day(3)}"
    assert table(folder / last).num_rows > 0
    assert table(folder / last).equals(table(again / last))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if at % 4 == 0 else pytest.mark.nightly) for at, name in enumerate(WITH_STATE)]
)
def test_days_of_a_release_are_corrected(name: str, anew: Path, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path)
    log_of(folder, 1, 2, 3)
    done(folder, "run", *GAPS, *span(1, 3), "--redo")
    for n in (1, 2, 3):
        assert table(folder / f"gaps/dt={day(n)}").equals(table(anew / f"gaps/dt={day(n)}"))


@pytest.mark.parametrize("name", NAMES)
def test_a_result_of_a_release_is_shown_and_read_on(name: str, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path)
    assert len(done(folder, "show", "plain").out.splitlines()) == 7
    assert len(done(folder, "show", "plain", "--rejects").out.splitlines()) == 2
    done(folder, "verify", "plain")
    done(folder, "run", "-w", "punct()", "-a", "total=sum(s)", "plain", "counted")
    assert sum(table(folder / "counted")["total"].to_pylist()) == 40


def test_damage_of_the_rejects_of_the_first_releases_is_named(tmp_path: Path) -> None:
    folder = unpacked("0.2.0", tmp_path)
    file = folder / "plain/_rejected/part-00000.parquet"
    file.write_bytes(b"x" * file.stat().st_size)
    told = done(folder, "verify", "plain", code=4)
    assert "damaged: plain/_rejected/part-00000.parquet: it cannot be read (" in told.out
