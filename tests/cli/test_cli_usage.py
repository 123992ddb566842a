"""What is wrong with a command line is told in one line before anything is read, with a caret where a spec is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import wincli, write

Fails = Callable[..., None]

SPECS = {
    "a word that is no window": (
        "slding, count(3)",
        "unknown window 'slding'; did you mean 'sliding'?\n  slding, count(3)\n  ^^^^^^",
    ),
    "a parenthesis left open": (
        "delta(ts,60",
        "this parenthesis is never closed; write it as delta(attribute, amount)\n  delta(ts,60\n       ^",
    ),
    "a count of none": (
        "count(0)",
        "expected a whole number, 1 or more, found '0'; write it as count(n)\n  count(0)\n        ^",
    ),
}

OPTIONS = {
    "an aggregate that is none": (
        ("-a", "smu(amount)"),
        "smu(amount): there is no aggregate smu; did you mean 'sum'?",
    ),
    "a type that is none": (
        ("--schema", "ts:itn"),
        "unknown type 'itn'; did you mean 'int'?\n  ts:itn\n     ^^^",
    ),
    "a mode that is none": (("--mode", "append"), "--mode cannot be 'append'; known: error, overwrite"),
    "a format that is none": (
        ("--output-format", "parket"),
        "--output-format cannot be 'parket'; did you mean 'parquet'?",
    ),
    "hold without a state": (
        ("--at-end", "hold"),
        "--at-end hold keeps open windows in a state, and there is none; say flush or drop",
    ),
    "a size that is none": (
        ("--split-size", "big"),
        "--split-size: 'big' is not a size; write it as 64MiB, 1GiB or a number of bytes",
    ),
    "fewer rejects than none": (
        ("--max-rejects", "-1"),
        "--max-rejects cannot be -1; input should be greater than or equal to 0",
    ),
    "a setting without a value": (
        ("--spark-conf", "spark.ui"),
        "--spark-conf 'spark.ui' is not K=V; write --spark-conf spark.executor.memory=4g",
    ),
    "an origin that is no day": (
        ("--origin", "2026-13-01"),
        "--origin '2026-13-01' is no date or time; write 2026-11-01 or 2026-11-01T06:00",
    ),
    "two results of one name": (
        ("-a", "sum(amount)", "-a", "sum(amount)"),
        "the result would have two columns 'sum_amount'; keys may not be called window, window_start, window_end, "
        "closed_by; name aggregates apart with --agg NAME=...",
    ),
    "a key named twice": (("-k", "user,user"), "a column is twice in the key user, user; name it once"),
    "empty panes of a window that has none": (
        ("--empty", "mark"),
        "--empty mark is for time windows, and this one is count(2); leave it out",
    ),
}

NOT_YET = {
    "sliding, count(3)": "sliding, count(3), count(1)",
    "calendar(day)": "tumbling, calendar(day)",
    "timeInterval, intervalDuration(5)": "timeInterval, intervalDuration(5), creationPeriod(5), discardAge(0), "
    "intervalOffset(0)",
    "within 5": "within 5",
    "retain 3 every 2": "retain 3 every 2",
    "retain all": "retain all",
    "count(3), partitioned, partitionAge(5)": "tumbling, count(3), partitioned, partitionAge(5)",
}


@pytest.fixture(autouse=True)
def _log(tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv="ts,user,amount\n1,a,5\n2,b,6\n")


@pytest.mark.parametrize("case", SPECS)
def test_a_spec_that_does_not_read_shows_where(fails: Fails, case: str) -> None:
    window, text = SPECS[case]
    fails(2, text, "-w", window, "in", "out")


@pytest.mark.parametrize("case", OPTIONS)
def test_an_option_that_does_not_fit_is_named(fails: Fails, case: str) -> None:
    args, text = OPTIONS[case]
    fails(2, text, "-w", "count(2)", *args, "in", "out")


@pytest.mark.parametrize("window", NOT_YET)
def test_kinds_that_are_not_computed_yet_say_so(fails: Fails, window: str) -> None:
    text = (
        f"the window {NOT_YET[window]} is understood, but this version does not compute it yet; it computes tumbling "
        "count, delta, time, punct and gap windows without partition eviction"
    )
    fails(2, text, "-w", window, "-k", "user", "in", "out")


def test_partitioned_without_a_key(fails: Fails) -> None:
    text = "the window is partitioned, but there is no key; say --key COLUMN"
    fails(2, text, "-w", "count(2), partitioned", "in", "out")


def test_a_window_must_be_given(fails: Fails) -> None:
    fails(2, "no window is given; say --window SPEC, for example --window 'delta(ts, 60)'", "in", "out")


def test_an_unknown_option_names_the_nearest(fails: Fails) -> None:
    fails(2, "no such option: --kye; did you mean --key?", "-w", "count(2)", "--kye", "user", "in", "out")
    fails(2, "no such option: --zzz; see wincli --help", "-w", "count(2)", "--zzz", "user", "in", "out")


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    ran = wincli("run", "-w", "dleta(ts, 60)", "in", "out", cwd=tmp_path)
    text = "unknown window 'dleta'; did you mean 'delta'?\n  dleta(ts, 60)\n  ^^^^^"
    assert (ran.code, ran.out, ran.err) == (2, "", f"wincli: error: {text}\n")
    missing = wincli("run", "-w", "count(2)", cwd=tmp_path)
    assert (missing.code, missing.err) == (2, "wincli: error: missing argument 'IN'; see wincli --help\n")
    unknown = wincli("rnu", cwd=tmp_path)
    assert unknown.code == 2
    assert unknown.err.startswith("wincli: error: no such command 'rnu'")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
