"""How a run starts: whether it needs Spark, which a quick look at its input says; and what is loaded by then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.in_process import done
from support.processes import write
from wincli.cli import launch
from wincli.cli.launch import is_small
from wincli.cli.run.request import parse_job

MIB = 1 << 20


def asks(*paths: str, **options: Any) -> bool:
    """Whether a job is small."""
    return is_small(parse_job({"paths": (*paths, "out"), "window": "gap(ts, 60)", **options}))


def put(path: Path, nbytes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(nbytes)


def test_bytes_of_all_files_decide_and_what_cannot_be_listed_is_left_to_the_reader(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    for name, nbytes in (("a.csv", 8 * MIB), ("deep/b.csv", 8 * MIB), ("deep/c.csv", 1)):
        assert asks(log)
        put(tmp_path / "log" / name, nbytes)
    assert not asks(log)
    assert not asks(f"{log}/*/b.csv")
    assert asks(f"{log}/a.csv")
    assert asks(f"{log}/a.csv", f"{log}/deep/c.csv")
    assert not asks("s3://bucket/log")


def test_units_of_a_range_count_on_average(tmp_path: Path) -> None:
    for day in ("01", "02"):
        put(tmp_path / "log" / f"dt=2026-11-{day}" / "a.csv", 12 * MIB)
    log = str(tmp_path / "log")
    assert not asks(log)
    assert asks(log, start="2026-11-01", end="2026-11-03")
    assert asks(f"{log}/dt={{date}}", start="2026-11-01", end="2026-11-03")


def test_many_files_are_not_counted_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_MOST_FILES", 4)  # the folder and three files
    for number in range(4):
        put(tmp_path / "log" / f"{number}.csv", 1)
        assert asks(str(tmp_path / "log")) == (number < 3)
    for name in "ab":  # from each of them both lead on, 40 links deep
        (tmp_path / "round").mkdir(exist_ok=True)
        (tmp_path / "round" / name).symlink_to(".")
    assert not asks(str(tmp_path / "round"))


@pytest.mark.parametrize(
    "options",
    [
        {"master": "local[2]"},
        {"spark_conf": ["spark.ui.enabled=true"]},
        {"agg": ["own.module:function(ts)"]},
        {"enrich": ["q=quotes on user"]},
        {"jobs": 2, "metrics_file": "m.prom", "start": "2026-11-01", "end": "2026-11-03"},
    ],
)
def test_who_asks_something_of_spark_gets_spark(tmp_path: Path, options: dict[str, Any]) -> None:
    put(tmp_path / "log" / "a.csv", 1)
    assert asks(str(tmp_path / "log"))
    assert not asks(str(tmp_path / "log"), **options)


@pytest.mark.parametrize("is_small_there", [True, False])
def test_stdin_is_waited_for_only_where_nothing_else_asks_for_spark(tmp_path: Path, is_small_there: bool) -> None:
    asked = []

    def look() -> bool:
        asked.append(1)
        return is_small_there

    put(tmp_path / "log" / "a.csv", MIB)
    job = {"paths": ("-", "out"), "window": "gap(ts, 60)"}
    assert is_small(parse_job(job), look) == is_small_there
    assert asked == [1]
    assert not asks("-")
    assert not is_small(parse_job({**job, "master": "local[2]"}), look)
    assert is_small(parse_job({**job, "paths": (str(tmp_path / "log"), "out")}), look)
    assert asked == [1]


# What is loaded

HEAVY = ("pyarrow", "numpy", "numba", "pyspark", "pandas", "yaml")
OF_EXPRESSIONS = ("datasketches", "wincli.windowing.expressions.binder", "wincli.windowing.expressions.steps")
AGGREGATED = "import pyarrow as pa, wincli.cli.run.pipeline, wincli.windowing.engine.run, wincli.windowing.in_memory; "
AGGREGATED += "wincli.aggregate(pa.table({'x': [1, 2]}), 'count(1)', aggregates=['s=sum(x)'])"


@pytest.mark.parametrize(("code", "names"), [("import wincli.cli.launch", HEAVY), (AGGREGATED, OF_EXPRESSIONS)])
def test_a_run_loads_nothing_heavy_before_it_starts_java_and_nothing_for_expressions_that_it_has_not(
    code: str, names: tuple[str, ...]
) -> None:
    """Pyarrow reads the allocator of workers from the environment when it is loaded, and `prepare` sets it first."""
    code = f"import sys; {code}; print([name for name in {names} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


LEFT = """
import atexit, threading, time
from wincli.cli import main
def late():
    time.sleep(0.1)
    print("thread")
def run(arguments):
    atexit.register(print, "at exit")
    threading.Thread(target=late).start()
    print("run")
    return 3
main._main = run
main.main()
"""


def test_a_process_ends_with_its_code_after_its_threads_and_what_is_registered_to_be_done_at_exit() -> None:
    ended = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "run\nthread\nat exit\n", "")


SHOWN = [
    (["show", "out"], ("numba", "pandas", "yaml")),
    (["status", "state"], ("pandas",)),
    (["plan", "-w", "count(2)", "log.csv", "new"], ("pandas",)),
]
LOADED = """
import os, sys
from wincli.cli.main import app
for words, heavy in {shown}:
    if os.fork() == 0:
        app(words, standalone_mode=False)
        print("loaded", words[0], [name for name in heavy if name in sys.modules], flush=True)
        os._exit(0)
    os.wait()
"""


def test_a_command_that_shows_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    """Numba takes as long to load as all else that `show` does. Each command is a fork of a process."""
    write(tmp_path, log__csv="n\n1\n2\n")
    for more in (["out"], ["other", "--state", "state"]):
        done(tmp_path, "run", "-w", "count(2)", "log.csv", *more)
    command = [sys.executable, "-c", LOADED.format(shown=SHOWN)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    told = [line for line in ended.stdout.splitlines() if line.startswith("loaded ")]
    assert told == [f"loaded {words[0]} []" for words, _ in SHOWN]
