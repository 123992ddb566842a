"""FIFOs, folders and deep JSON where wincli looks for its files: one line, no wait without end, no crash."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from support.iceberg_catalog import Lake
from support.in_process import done, wincli_here
from support.processes import write

WINDOW = ("-w", "delta(ts, 60)", "-k", "user", "-a", "n=sum(n)", "--order-by", "ts")
RANGE = ("--start", "2026-11-01", "--end", "2026-11-03")
NEXT = ("--start", "2026-11-01", "--end", "2026-11-04")
READ = ("run", "-w", "count(1)", "-a", "n=sum(n)")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def deep(path: Path) -> None:
    path.write_text('{"a":' + "[" * 100_000 + "]" * 100_000 + "}")


def changed(*names: str) -> pytest.MarkDecorator:
    """Each file is no file in each way; JSON may be deep, too."""
    ways = [(name, change) for name in names for change in (fifo, folder, deep)]
    cases = [(name, change) for name, change in ways if change is not deep or name.endswith("json")]
    return pytest.mark.parametrize(("name", "change"), cases)


@pytest.fixture(autouse=True)
def _alarm() -> Iterator[None]:
    """End a wait without end."""
    before = signal.signal(signal.SIGALRM, mock.Mock(side_effect=AssertionError("it waits")))
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for n in (1, 2, 3):
        write(tmp_path / "in" / f"day=2026-11-0{n}", a__csv=f"ts,user,n\n{n}01,a,2\n{n}99,b,3\n,b,4\n")
    Lake(tmp_path / "lake").set_environment(monkeypatch)
    return tmp_path


def says(here: Path, codes: tuple[int, ...], *args: str) -> None:
    ran = wincli_here(*args, cwd=here)
    assert ran.code in codes, (args, ran.code, ran.err)
    assert "unexpected" not in ran.err
    assert "Traceback" not in ran.err


@changed("2026-11-01/unit.json", "2026-11-02/unit.json", "2026-11-02/window/keys-00000.parquet", ".wincli-state")
def test_state(here: Path, name: str, change: Callable[[Path], None]) -> None:
    state = ("--state", "st", "--at-end", "hold")
    done(here, "run", *WINDOW, *state, *RANGE, "in", "out")
    change(here / "st" / name)
    says(here, (2, 3), "run", *WINDOW, *state, *NEXT, "in", "out")
    says(here, (0, 2, 3), "status", "st")
    says(here, (2, 3, 4), "verify", "st")
    says(here, (0, 2, 3), "state", "list", "st")


def test_fifo_under_a_name_to_be_written_is_removed_and_one_in_place_of_a_lock_is_told(here: Path) -> None:
    (here / "st").mkdir()
    os.mkfifo(here / "st" / ".wincli-state.half")
    done(here, "run", *WINDOW, "--state", "st", *RANGE, "in", "out")
    os.mkfifo(here / "st" / ".running.json.half")
    done(here, "run", *WINDOW, "--state", "st", *NEXT, "in", "out")
    os.mkfifo(here / ".new.wincli-lock")
    ran = wincli_here("run", *WINDOW, "in/day=2026-11-01", "new", cwd=here)
    assert (ran.code, "has the name of the lock of new and is no lock" in ran.err) == (3, True), ran.err


@changed("_wincli/manifest.json", "part-00000.parquet", "_rejected/rejects-00000.ndjson")
def test_result(here: Path, name: str, change: Callable[[Path], None]) -> None:
    done(here, "run", *WINDOW, "in/day=2026-11-01", "out")
    change(here / "out" / name)
    says(here, (4,) if "manifest" not in name or change is deep else (3,), "verify", "out")
    says(here, (0,) if "rejects" in name else (3,), *READ, "out", "next")
    says(here, (2, 3), "show", "out") if "rejects" not in name else None


@changed("_delta_log/*.json", "day=2026-11-01/part-*.parquet", "*/_wincli/manifest-*.json")
def test_delta(here: Path, name: str, change: Callable[[Path], None]) -> None:
    done(here, "run", *WINDOW, *RANGE, "in", "delta+out")
    change(min((here / "out").glob(name)))
    says(here, (0, 3) if "manifest" in name else (3,), *READ, "out", "next")
    says(here, (3, 4), "verify", "out")
    says(here, (0, 2, 3), "run", *WINDOW, *NEXT, "--redo", "in", "delta+out")


@changed("metadata/*.json", "metadata/snap-*.avro", "metadata/*-m0.avro", "data/*/part-*.parquet")
def test_iceberg(here: Path, name: str, change: Callable[[Path], None]) -> None:
    Lake(here / "lake").make()
    out = "iceberg://lake/logs.out"
    done(here, "run", *WINDOW, *RANGE, "in", out)
    change(max((here / "lake").glob(f"tables/logs/out/{name}"), key=lambda path: path.stat().st_mtime_ns))
    says(here, (3,), *READ, out, "next")
    says(here, (3, 4), "verify", out)
    says(here, (0, 2, 3), "run", *WINDOW, *NEXT, "--redo", "in", out)
