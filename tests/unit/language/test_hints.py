"""What people write who come from other tools: it works, or they are told how it is written here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here
from support.places import table_of
from wincli.cli.arguments import strange_variables
from wincli.cli.run.request import parse_job
from wincli.conf.job_file import Variables
from wincli.conf.option_values import names
from wincli.readers.options import parse_schema
from wincli.windowing.errors import ConfigError, SpecError, WincliError

CSV = "ts,user,amount\n2026-11-01T10:00:00,a,1\n2026-11-01T11:30:00,a,2\n"
HEAD = "input: in\noutput: out\n"
HINTS = table_of("hints")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text(CSV)


def put(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def mistake(text: str) -> str:
    """What is told of a job file."""
    put({"j.yaml": text})
    with pytest.raises(WincliError) as caught:
        parse_job({"paths": ["j.yaml"]})
    return str(caught.value)


@pytest.mark.parametrize("case", HINTS.values(), ids=list(HINTS))
def test_what_a_command_says(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``once`` is a note, ``says`` are parts of what stands there, and ``silent`` do not stand there."""
    for name, value in case.get("variables", {}).items():
        monkeypatch.setenv(name, value)
    put(case.get("files", {}))
    ran = wincli_here(*case["words"], cwd=tmp_path)
    assert ran.code == case.get("code", 0), ran.err
    assert [text for text in case.get("says", ()) if text not in ran.err] == []
    assert [text for text in case.get("silent", ()) if text in ran.err] == []
    assert "once" not in case or ran.notes.count(case["once"]) == 1, ran.err


# Job files


def test_durations_in_words_are_options_and_keys() -> None:
    window = "timeInterval, intervalDuration(1 hour)"
    put({"j.yaml": HEAD + f"window: {window}\nlag: 5 minutes\n"})
    assert parse_job({"paths": ["j.yaml"]}).stages[0].options.lag == 300
    assert parse_job({"paths": ["in", "out"], "window": window, "lag": "1w"}).stages[0].options.lag == 604800


@pytest.mark.parametrize(
    ("text", "line", "whole"),
    [
        ("window: count(2)\nagg: [quantile(x, 0.5)]\n", 4, '"quantile(x, 0.5)"'),
        ("agg:\n  - sum(x)\nstages: [{window: delta(ts, 60), key: a}]\n", 5, '"delta(ts, 60)"'),
    ],
)
def test_comma_that_cuts_a_call_gets_a_hint_with_quotes(text: str, line: int, whole: str) -> None:
    told = mistake(HEAD + text)
    assert told.startswith(f"j.yaml:{line}: the comma after ")
    assert "put the whole of it in quotes" in told
    assert whole in told


def test_quoted_commas_are_no_mistake() -> None:
    put({"j.yaml": HEAD + 'window: count(2)\nagg: ["quantile(amount, 0.5)", sum(amount)]\n'})
    assert len(parse_job({"paths": ["j.yaml"]}).stages[0].agg) == 2


def test_home_and_variables_are_put_into_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/$me")
    monkeypatch.setenv("LOGS", "/data/~logs")
    put({"j.yaml": "input: [~/a, '${LOGS}/b', ./~]\noutput: ${LOGS}/out$${LOGS}\nstate: '~'\nwindow: count(2)\n"})
    job = parse_job({"paths": ["j.yaml"]})
    assert job.input == ("/home/$me/a", "/data/~logs/b", "./~")
    assert job.output == "/data/~logs/out${LOGS}"
    assert job.state == "/home/$me"
    assert Variables().expand_path("part/{date}$5") == "part/{date}$5"


def test_a_variable_that_is_not_set_is_an_error_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_FOLDER", "x")
    told = mistake("window: count(2)\noutput: out\ninput: ${LOG_FOLDR}/a\n")
    assert told == ("j.yaml:3: input names ${LOG_FOLDR}, and no such variable is set; did you mean ${LOG_FOLDER}?")
    assert "begins with ~nobody_here" in mistake("window: count(2)\noutput: out\ninput: ~nobody_here/a\n")


def test_variables_that_nothing_reads_are_named_with_the_nearest() -> None:
    environ = ["WINCLI_WINDOWZ", "WINCLI_KEY", "WINCLI_CLASS_ARCHIVE", "WINCLI_WORKER_LOCK", "WINCLI_XYZZY", "HOME"]
    assert strange_variables(environ) == (
        "nothing reads the variable WINCLI_WINDOWZ; did you mean WINCLI_WINDOW?",
        "nothing reads the variable WINCLI_XYZZY",
    )


@pytest.mark.parametrize("nested", ["[" * 1000, "[" * 1000 + "]" * 1000, "{" * 1000, "\n" + "- " * 1000 + "a"])
def test_brackets_without_end_are_an_error_with_a_line(nested: str) -> None:
    told = mistake(f"window: count(2)\nkey: {nested}\n")
    assert told.startswith(("j.yaml:2: this is nested too deeply", "j.yaml:3: this is nested too deeply"))


# Numbers and names that no program expects

NINES = "9" * 5000


@pytest.mark.parametrize("key", ["keep", "lag", "split_size", "origin", "max_rejects", "plain", "mode", "start"])
def test_a_number_of_5000_digits_in_a_job_file_is_a_mistake_in_one_line(key: str) -> None:
    told = mistake(HEAD + f"window: count(2)\n{key}: {NINES}\n")
    assert key in told
    assert len(told) < 400


@pytest.mark.parametrize("option", ["--keep", "--lag", "--origin", "--slice-size"])
def test_a_number_of_5000_digits_as_an_option_is_a_mistake_in_one_line(option: str, tmp_path: Path) -> None:
    ran = wincli_here("run", "x.csv", "out", "-w", "count(2)", option, NINES, cwd=tmp_path)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert len(ran.err) < 500


@pytest.mark.parametrize("text", [f"a:decimal({NINES},2)", f"a:decimal(10,{NINES})"], ids=["digits", "scale"])
def test_a_number_of_5000_digits_in_a_type_is_a_mistake(text: str) -> None:
    with pytest.raises(SpecError):
        parse_schema(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a\nb", ("a\nb",)),
        ("a\rb,c", ("a\rb", "c")),
        ('"a,b" , c', ("a,b", "c")),
        ('"a""b" desc', ('a"b desc',)),
        (",a,,", ("a",)),
        ("x" * 200_000, ("x" * 200_000,)),
    ],
)
def test_names_of_columns_may_hold_anything(text: str, found: tuple[str, ...]) -> None:
    assert names(text) == found


def test_a_name_whose_quote_is_open_is_refused() -> None:
    with pytest.raises(ConfigError, match="has a quote that is not closed"):
        names('"a,b')


# Times over numbers


def epochs(*times: int) -> str:
    return "ts,f,user\n" + "".join(f"{at},{at}.5,ann\n" for at in times)


@pytest.mark.parametrize(("digits", "kind"), [(3, "unix_ms"), (6, "unix_us"), (9, "unix_ns"), (0, "unix")])
def test_a_time_over_epochs_gets_the_schema_of_their_unit(digits: int, kind: str, tmp_path: Path) -> None:
    begin = 1_793_523_600
    put({"e.csv": epochs(*(at * 10**digits for at in (begin, begin + 30, begin + 100)))})
    ran = wincli_here("run", "e.csv", "out", "-w", "gap(ts, 1m)", cwd=tmp_path)
    assert ran.code == 2
    assert "1m is a time, and column 'ts' is int64, numbers without a unit; " in ran.err
    assert f'read it with --schema "ts:timestamp({kind})"; or say it without a unit: {60 * 10**digits}' in ran.err
    assert not Path("out").exists()
    words = ("-w", "gap(ts, 1m)", "--schema", f"ts:timestamp({kind})", "-a", "n=count()")
    assert wincli_here("run", "e.csv", "out", *words, cwd=tmp_path).code == 0
    assert pq.read_table("out")["n"].to_pylist() == [2, 1]
    ran = wincli_here("run", "e.csv", "floats", "-w", "gap(f, 1m)", cwd=tmp_path)
    assert ran.code == (0 if digits == 0 else 2)
    assert ("whose numbers are no seconds" in ran.err) == (digits != 0)


def test_a_state_that_was_made_with_a_time_over_integers_goes_on_with_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put({f"log/dt=2026-11-0{day}/a.csv": epochs(*(day * 1000 + at for at in (0, 30, 100))) for day in (1, 2, 3)})
    job = ("run", "-k", "user", "--order-by", "ts", "--state", "st", "--start", "2026-11-01", "log", "out")
    with monkeypatch.context() as earlier:  # versions before took it as 60
        earlier.setattr("wincli.windowing.planning.plan.check_units", lambda *_: None)
        assert wincli_here(*job, "--end", "2026-11-03", "-w", "gap(ts, 1m)", cwd=tmp_path).code == 0
    refused = wincli_here(*job, "--end", "2026-11-04", "-w", "gap(ts, 1m)", cwd=tmp_path)
    assert refused.code == 2
    assert "say it without a unit: 60, with which a state of earlier runs goes on" in refused.err
    ran = wincli_here(*job, "--end", "2026-11-04", "-w", "gap(ts, 60)", cwd=tmp_path)
    assert (ran.code, "1 unit done" in ran.err) == (0, True)
    told = wincli_here("why", "out", "--unit", "2026-11-02", "--only", "user=ann", "--window", "2", cwd=tmp_path)
    assert (told.code, told.err) == (0, "")
    assert "gap is 60" in told.out
