"""Units of a range without a state in several processes (``--jobs``): what one unit after the other gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.day_results import day, span
from support.histories import in_pieces, put_history, said
from support.histories import tree as content
from support.in_process import wincli_here
from support.processes import Ran

DAYS = 6
JOB = ("-w", "gap(ts, 20m)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "-a", "s=sum(x)", *span(1, DAYS))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    put_history(tmp_path, DAYS, 2, 60)
    return tmp_path


def run_both(folder: Path, *more: str, jobs: int = 3, dead: int = 0) -> tuple[Ran, Ran]:
    one = wincli_here("run", *JOB, *more, "log", "out-one", cwd=folder)
    with in_pieces(dead=dead):
        two = wincli_here("run", *JOB, *more, "--jobs", str(jobs), "log", "out-two", cwd=folder)
    assert one.code == two.code, two.err
    found = [content(folder / f"out-{way}", f"-{way}") for way in ("one", "two")]
    assert {name: each for name, each in found[1].items() if name in found[0]} == found[0]
    return one, two


@settings(max_examples=4)
@given(
    st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([(), ("--output-format", "csv"), ("--where", "a > 1")])
)
def test_results_and_messages_are_those_of_one_unit_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, seed: int, jobs: int, more: tuple[str, ...]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    put_history(folder, DAYS, seed, 60)
    one, two = run_both(folder, *more, jobs=jobs)
    assert len([*(folder / "out-one").iterdir()]) == len([*(folder / "out-two").iterdir()])
    assert said(one, "-one") == said(two, "-two")


def test_a_unit_that_fails_is_named_and_what_ran_beside_it_is_kept(log: Path) -> None:
    (log / "log" / f"dt={day(3)}" / "a.parquet").write_bytes(b"junk")
    one, two = run_both(log)
    assert (one.code, two.err.splitlines()[-1]) == (3, one.err.splitlines()[-1])
    left = sorted(path.name for path in (log / "out-two").iterdir())
    assert left[:2] == [f"dt={day(1)}", f"dt={day(2)}"]
    assert f"dt={day(3)}" not in left
    assert len(left) <= 5


def test_units_of_a_process_that_has_died_and_units_of_several_tasks_are_run_by_the_first_process(log: Path) -> None:
    for more in ((), ("--slice-size", "1KiB", "--split-size", "512B")):
        one, two = run_both(log, *more, "--mode", "overwrite", jobs=2, dead=1 if not more else 0)
        assert said(one, "-one")[-1] == said(two, "-two")[-1]


def test_real_processes_give_the_same(log: Path) -> None:
    one = wincli_here("run", *JOB, "log", "out-one", cwd=log)
    two = wincli_here("run", *JOB, "--jobs", "2", "log", "out-two", cwd=log)
    assert (one.code, two.code) == (0, 0), two.err
    assert content(log / "out-one", "-one") == content(log / "out-two", "-two")
    assert said(one, "-one") == said(two, "-two")
