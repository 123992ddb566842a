"""What is wrong with a command line is told in one line before anything is read, with a caret where a spec is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.processes import wincli, write

Fails = Callable[..., None]

PANES = "timeInterval, intervalDuration(5)"
ALL_OF_PANES = "timeInterval, intervalDuration(5), creationPeriod(5), discardAge(0), intervalOffset(0)"

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
        "--at-end hold keeps open windows in a state, and there is none; name a state, or say flush or drop",
    ),
    "a size that is none": (
        ("--split-size", "big"),
        "--split-size 'big' is not a size; write it as 64MiB, 1GiB or a number of bytes",
    ),
    "fewer rejects than none": (
        ("--max-rejects", "-1"),
        "--max-rejects cannot be -1; it is at least 0",
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
        "the result would have two columns 'sum_amount'; rename the column of the input, or name aggregates apart with "
        "--agg NAME=...",
    ),
    "a key named twice": (("-k", "user,user"), "a column is twice in the key user, user; name it once"),
    "empty panes of a window that has none": (
        ("--empty", "mark"),
        "--empty mark is for time, calendar and cron windows, and this one is tumbling, count(2); leave it out",
    ),
}

WINDOWS: dict[str, tuple[tuple[str, ...], str]] = {
    "rows that left a window which none leave": (
        ("-w", "count(2)", "--emit", "left"),
        "--emit left is for sliding and batched windows, and this one is tumbling, count(2); leave it out",
    ),
    "rows that leave a window of all": (
        ("-w", "retain all", "--emit", "left"),
        "--emit left is for windows that rows leave, and this one is retain all; leave it out",
    ),
    "a way to come out that is none": (
        ("-w", "count(2)", "--emit", "row"),
        "--emit cannot be 'row'; did you mean 'rows'?",
    ),
    "aggregates of rows": (
        ("-w", "count(2)", "--emit", "rows", "-a", "sum(amount)"),
        "--emit rows writes rows, so --agg has no meaning; leave one of them out",
    ),
    "groups of rows": (
        ("-w", "sliding, count(2)", "--emit", "entered", "--group-by", "user"),
        "--emit entered writes rows, so --group-by has no meaning; sort them with --sort-by",
    ),
    "a group that is no column": (
        ("-w", "count(2)", "--group-by", "usr"),
        "there is no column 'usr' for --group-by; did you mean 'user'?",
    ),
    "a group named twice": (
        ("-w", "count(2)", "--group-by", "user,user"),
        "a column is twice in --group-by user, user; name it once",
    ),
    "sorted aggregates": (
        ("-w", "count(2)", "--sort-by", "amount"),
        "--sort-by sorts the rows of a pane; say --emit rows, or leave it out",
    ),
    "sorted by no column": (
        ("-w", "count(2)", "--emit", "rows", "--sort-by", "amont desc"),
        "there is no column 'amont' for --sort-by; did you mean 'amount'?",
    ),
    "a lag without a watermark": (
        ("-w", "sliding, count(2)", "--lag", "5s"),
        "--lag is for timeInterval windows, and this one is sliding, count(2), count(1); leave it out",
    ),
    "a lag that is no duration": (
        ("-w", PANES, "--event-time", "ts", "--lag", "soon"),
        "--lag 'soon' is no duration: expected a number, found 'soon'; write it as 10, 1.5s or 5m",
    ),
    "an event time of text": (
        ("-w", PANES, "--event-time", "user"),
        "column 'user' is string, which is no clock: in/a.csv has 'a' at line 2; "
        "say --event-time with a time or a number",
    ),
    "an event time that is no column": (
        ("-w", PANES, "--event-time", "tss"),
        "there is no column 'tss' for --event-time; did you mean 'ts'?",
    ),
    "event-time panes without a time": (
        ("-w", PANES),
        f"the window {ALL_OF_PANES} needs an event time, and the input has no timestamp or date column; "
        "say --event-time COLUMN",
    ),
    "event-time panes in another order": (
        ("-w", PANES, "--event-time", "ts", "--order-by", "amount"),
        "event-time panes take rows as they arrived, or ordered by ts alone; leave out --order-by, "
        "or say --order-by ts",
    ),
    "a rise of the watermark in order": (
        ("-w", PANES, "--event-time", "ts", "--order-by", "ts", "--min-gap", "3"),
        "--min-gap is for rows in arrival order; leave out --order-by or --min-gap",
    ),
    "no end of panes": (
        ("-w", "timeInterval, intervalDuration(86400), creationPeriod(0.000001)", "--event-time", "ts"),
        "an intervalDuration of 86400.0 s and a creationPeriod of 1e-06 s put a row into more than 100,000 panes; "
        "use a longer creationPeriod",
    ),
    "panes of no length": (
        ("-w", "timeInterval, creationPeriod(5)", "--event-time", "ts"),
        "timeInterval needs an intervalDuration; write for example timeInterval, intervalDuration(60), "
        "creationPeriod(10)\n  timeInterval, creationPeriod(5)\n  ^^^^^^^^^^^^",
    ),
    "part of a window that is always whole": (
        ("-w", "count(2)", "--partial"),
        "--partial is for sliding windows, and this one is tumbling, count(2); leave it out",
    ),
    "evicted keys where none are": (
        ("-w", "count(2)", "--emit-evicted"),
        "--emit-evicted is for tumbling windows with partition eviction, and this one is tumbling, count(2); "
        "leave it out",
    ),
    "keys evicted by age without a clock": (
        ("-w", "count(2), partitioned, partitionAge(3)", "-k", "user"),
        "the window tumbling, count(2), partitioned, partitionAge(3) needs a clock, and the input has no timestamp or "
        "date column; say --order-by COLUMN",
    ),
    "sliding and partitioned without a key": (
        ("-w", "sliding, count(2), partitioned"),
        "the window is partitioned, but there is no key; say --key COLUMN",
    ),
    "sliding by marks": (
        ("-w", "sliding, punct()"),
        "a sliding window cannot use 'punct'; use one of count, delta, time, or a tumbling window\n"
        "  sliding, punct()\n           ^^^^^",
    ),
    "time that arrival does not tell": (
        ("-w", "within 5", "--order-by", "arrival"),
        "the window within 5 needs a clock, and arrival order has none; say --order-by COLUMN",
    ),
    "unique in no column": (
        ("-w", "retain 2 with unique usr"),
        "there is no column 'usr' for retain 2 with unique usr; did you mean 'user'?",
    ),
    "a time zone that is none": (
        ("-w", 'calendar(day, "Europe/Pari")'),
        "unknown time zone 'Europe/Pari'; did you mean 'Europe/Paris'?\n"
        '  calendar(day, "Europe/Pari")\n                ^^^^^^^^^^^^^',
    ),
    "empty rows of a window without a grid": (
        ("-w", "retain 2", "--empty", "row"),
        "--empty row is for time, calendar and cron windows, and this one is retain 2; leave it out",
    ),
    "an operator that sorts": (
        ("-w", "count(2)", "--operator", "json:JSONDecoder", "--sort-by", "amount"),
        "--sort-by sorts the rows of a pane; leave it out",
    ),
    "an operator of groups": (
        ("-w", "count(2)", "--operator", "json:JSONDecoder", "--group-by", "user"),
        "--operator writes rows, so --group-by has no meaning; leave one of them out",
    ),
    "an operator and rows": (
        ("-w", "count(2)", "--operator", "json:JSONDecoder", "--emit", "rows"),
        "--operator says itself what comes out, so --emit rows has no meaning; leave one out",
    ),
    "an operator of a module that is not there": (
        ("-w", "count(2)", "--operator", "no_such:Class"),
        "--operator no_such:Class: cannot import module 'no_such': ModuleNotFoundError: No module named 'no_such'"
        "; it is looked for in the working folder and on PYTHONPATH",
    ),
    "an operator that is not in its module": (
        ("-w", "count(2)", "--operator", "json:Nix"),
        "--operator json:Nix: module 'json' has no class 'Nix'; say MODULE:CLASS",
    ),
    "an operator without its class": (
        ("-w", "count(2)", "--operator", "json"),
        "--operator 'json' is no class; say MODULE:CLASS",
    ),
    "a class that is no operator": (
        ("-w", "count(2)", "--operator", "json:JSONDecoder"),
        "--operator json:JSONDecoder: JSONDecoder is no operator; derive it from wincli.Operator",
    ),
    "an operator that does not say what it writes": (
        ("-w", "count(2)", "--operator", "wincli:Operator"),
        'operator Operator does not say what it writes; say output = {"NAME": "TYPE", ...}',
    ),
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


@pytest.mark.parametrize("case", WINDOWS)
def test_option_that_does_not_apply_to_a_window_is_an_error(fails: Fails, case: str) -> None:
    args, text = WINDOWS[case]
    fails(2, text, *args, "in", "out")


@pytest.mark.parametrize(
    ("window", "needs", "do"), [(PANES, "an event time", "event-time"), ("within 5", "a clock", "order-by")]
)
def test_two_times_and_no_word_which(fails: Fails, tmp_path: Path, window: str, needs: str, do: str) -> None:
    write(tmp_path / "two", a__csv="ts,due\n2026-11-01T00:00:00,2026-11-02T00:00:00\n")
    name = ALL_OF_PANES if window == PANES else window
    text = f"the window {name} needs {needs}, and the input has ts, due; say --{do} COLUMN"
    fails(2, text, "-w", window, "two", "out")


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
    assert (missing.code, missing.err) == (
        2,
        "wincli: error: neither IN nor OUT is named; write IN.. OUT, or name a job file\n",
    )
    unknown = wincli("rnu", cwd=tmp_path)
    assert unknown.code == 2
    assert unknown.err.startswith("wincli: error: wincli has no command 'rnu'")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
