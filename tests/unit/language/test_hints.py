"""What people write who come from other tools: it works, or they are told how it is written here."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here
from wincli.cli.arguments import strange_variables
from wincli.cli.run.request import parse_job
from wincli.conf.job_file import Variables
from wincli.conf.option_values import names
from wincli.readers.options import parse_schema
from wincli.windowing.errors import ConfigError, SpecError, WincliError
from wincli.windowing.language.parser import parse_aggregate, parse_duration, parse_window

CSV = "ts,user,amount\n2026-11-01T10:00:00,a,1\n2026-11-01T11:30:00,a,2\n"
HEAD = "input: in\noutput: out\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text(CSV)


def mistake(text: str) -> str:
    """What is told of a job file."""
    Path("j.yaml").write_text(text)
    with pytest.raises(WincliError) as caught:
        parse_job({"paths": ["j.yaml"]})
    return str(caught.value)


# Durations, windows, aggregates


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1w", 604800),
        ("5min", 300),
        ("5 minutes", 300),
        ("1.5 hours", 5400),
        ("2 d", 172800),
        ("1 second", 1),
        ("250 milliseconds", Fraction(1, 4)),
        ("3us", Fraction(3, 10**6)),
    ],
)
def test_units_in_words_are_durations(text: str, seconds: Fraction) -> None:
    assert parse_duration(text) == seconds
    assert parse_window(f"time({text})") == parse_window(f"time({float(seconds):.6f})")
    assert parse_window(f"within {text} every {text} retain 3") == parse_window(
        f"within {float(seconds):.6f} every {float(seconds):.6f} retain 3"
    )


def test_durations_in_words_are_options_and_keys() -> None:
    Path("j.yaml").write_text(HEAD + "window: timeInterval, intervalDuration(1 hour)\nlag: 5 minutes\n")
    assert parse_job({"paths": ["j.yaml"]}).stages[0].options.lag == 300
    flags = {"window": "timeInterval, intervalDuration(1 hour)", "lag": "1w"}
    assert parse_job({"paths": ["in", "out"], **flags}).stages[0].options.lag == 604800


@pytest.mark.parametrize("text", ["count(5 minutes)", "delta(ts, 5 parsecs)", "retain 3 days"])
def test_units_where_none_belong_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_window(text)


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("session(ts, 30m)", "gap(ts, 30m)"),
        ("hop(1h, 5m)", "timeInterval, intervalDuration(1h), creationPeriod(5m)"),
        ("TUMBLE(ts, 5m)", "time(5m)"),
    ],
)
def test_windows_of_sql_get_a_hint_in_the_window_language(text: str, here: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_window(text)
    assert caught.value.do == f"here it is written {here}"
    parse_window(here)


@pytest.mark.parametrize(
    ("name", "ours"), [("avg", "mean"), ("average", "mean"), ("variance", "var"), ("stdev", "stddev"), ("AVG", "mean")]
)
def test_aggregates_of_other_tools_are_ours(name: str, ours: str) -> None:
    assert parse_aggregate(f"{name}(x)") == parse_aggregate(f"{ours}(x)")
    assert parse_aggregate(f"mine:{name}(x)").function == f"mine:{name}"


def test_an_alias_works_and_is_noted_once(tmp_path: Path) -> None:
    ran = wincli_here("run", "x.csv", "out", "-w", "count(2)", "-a", "avg(amount)", "-a", "b=avg(amount)", cwd=tmp_path)
    assert ran.code == 0
    assert ran.notes.count("avg is called mean here, and so is its column") == 1


NOT_HERE = "no such option: --key; that is an option of wincli run; see wincli show --help"
COUNT = ("run", "x.csv", "out", "-w", "count(2)")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*COUNT, "--filter", "amount > 1"), "no such option: --filter; --where leaves out rows, --having result rows"),
        (("show", "out", "--key", "user"), NOT_HERE),
        (("show", "out", "--jsno"), "no such option: --jsno; did you mean --json?"),  # the nearest of the command
        (("show", "out", "--kye", "user"), "no such option: --kye; see wincli --help"),
        ((*COUNT, "-k", "a\nb"), "there is no column 'a\\nb' for the key"),
    ],
)
def test_options_of_others_and_names_that_are_not_there(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    ran = wincli_here(*words, cwd=tmp_path)
    assert ran.code == 2
    assert f"wincli: error: {told}" in ran.err


# Job files


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
    Path("j.yaml").write_text(HEAD + 'window: count(2)\nagg: ["quantile(amount, 0.5)", sum(amount)]\n')
    assert len(parse_job({"paths": ["j.yaml"]}).stages[0].agg) == 2


def test_home_and_variables_are_put_into_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/$me")
    monkeypatch.setenv("LOGS", "/data/~logs")
    Path("j.yaml").write_text(
        "input: [~/a, '${LOGS}/b', ./~]\noutput: ${LOGS}/out$${LOGS}\nstate: '~'\nwindow: count(2)\n"
    )
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


def test_advice_in_stages_names_the_key(tmp_path: Path) -> None:
    late = "  - name: late\n    window: time(1h)\n    order_by: arrival\n"
    Path("j.yaml").write_text("input: x.csv\noutput: out\nstages:\n  - window: count(1)\n" + late)
    ran = wincli_here("run", "j.yaml", cwd=tmp_path)
    assert ran.code == 2
    assert ran.err.rstrip().endswith("needs a clock, and arrival order has none; say order_by: COLUMN")
    assert "stage late: " in ran.err
    flags = wincli_here("run", "x.csv", "out", "-w", "time(1h)", "--order-by", "arrival", cwd=tmp_path)
    assert flags.err.rstrip().endswith("say --order-by COLUMN")


@pytest.mark.parametrize("nested", ["[" * 3000, "[" * 3000 + "]" * 3000, "{" * 3000, "\n" + "- " * 3000 + "a"])
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


def test_a_number_of_5000_digits_in_a_spec_or_a_type_is_a_mistake() -> None:
    for text in (f"count({NINES})", f"time({NINES})", f"within {NINES}"):
        with pytest.raises(SpecError):
            parse_window(text)
    for text in (f"a:decimal({NINES},2)", f"a:decimal(10,{NINES})"):
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


# Inputs


@pytest.mark.parametrize(
    "text",
    ['[{"a":1},\n{"a":2}]\n', '[\n {"a":1},\n {"a":2}\n]\n', '[{"a":1},{"a":2}]', '\n [\n{\n"a":1\n},\n{"a":2}\n]'],
)
def test_json_array_gets_a_hint_with_a_conversion(text: str, tmp_path: Path) -> None:
    Path("a.json").write_text(text)
    ran = wincli_here("run", "a.json", "out", "-w", "count(2)", cwd=tmp_path)
    assert ran.code == 3
    assert "a.json is one JSON array" in ran.err
    assert "pipe it through jq -c '.[]'" in ran.err


def test_a_line_that_is_an_array_among_objects_is_a_reject(tmp_path: Path) -> None:
    Path("a.jsonl").write_text('[{"a":1},{"a":2}]\n{"a":3}\n[1]\n')
    ran = wincli_here("run", "a.jsonl", "out", "-w", "count(2)", cwd=tmp_path)
    assert ran.code == 0
    assert "2 rejected (unparsable 2)" in ran.err


def in_date_folders(text: str) -> None:
    for day in ("2026-11-01", "2026-11-02"):
        Path(f"in/dt={day}").mkdir(parents=True)
        Path(f"in/dt={day}/a.csv").write_text(text)


@pytest.mark.parametrize("window", ["time(1h)", "timeInterval, intervalDuration(1h)"])
def test_date_folders_beside_a_time_column_are_no_clock(window: str, tmp_path: Path) -> None:
    in_date_folders(CSV)
    ran = wincli_here("run", "in", "out", "-w", window, cwd=tmp_path)
    assert ran.code == 0
    order = "ordered by ts: the only time column beside dt of the folders, and the window needs a clock"
    assert (order in ran.err) == (window == "time(1h)")
    found = pq.read_table("out")
    assert pa.types.is_timestamp(found.schema.field("window_start").type)


def test_a_date_folder_is_the_clock_where_no_other_column_is_a_time(tmp_path: Path) -> None:
    in_date_folders("user\nann\nbob\n")
    ran = wincli_here("run", "in", "out", "-w", "time(1d)", cwd=tmp_path)
    assert "ordered by dt: the only time column, and the window needs a clock; it has no time of day" in ran.err


def test_a_date_of_the_files_beside_a_time_column_gets_a_hint(tmp_path: Path) -> None:
    Path("a.csv").write_text("ts,born\n2026-11-01T10:00:00,1990-01-01\n")
    ran = wincli_here("run", "a.csv", "out", "-w", "time(1h)", cwd=tmp_path)
    assert ran.code == 2
    assert ran.err.rstrip().endswith("needs a clock, and the input has ts and the date born; say --order-by ts")


def test_variables_that_nothing_reads_are_noted_with_the_nearest() -> None:
    environ = ["WINCLI_WINDOWS", "WINCLI_KEY", "WINCLI_CLASS_ARCHIVE", "WINCLI_WORKER_LOCK", "WINCLI_XYZZY", "HOME"]
    assert strange_variables(environ) == (
        "nothing reads the variable WINCLI_WINDOWS; did you mean WINCLI_WINDOW?",
        "nothing reads the variable WINCLI_XYZZY",
    )


def test_a_strange_variable_is_noted_by_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINCLI_EMITT", "rows")
    ran = wincli_here("run", "x.csv", "out", "-w", "count(2)", cwd=tmp_path)
    assert "nothing reads the variable WINCLI_EMITT; did you mean WINCLI_EMIT?" in ran.notes


ZONE_NOTE = """\
ts has no zone and is read as UTC; where it is local time of Europe/Paris already, leave the zone out of the window; \
where it is UTC, --let "at=CAST(ts AS TIMESTAMPTZ)" and --order-by at say so
"""


@pytest.mark.parametrize(
    ("words", "is_noted"),
    [
        (["-w", 'calendar(day, "Europe/Paris")'], True),
        (["-w", 'cron("0 6 * * *", "Europe/Paris")'], True),
        (["-w", 'count(5) or calendar(week, "Europe/Paris")'], True),
        (["-w", "calendar(day)"], False),
        (["-w", 'calendar(day, "UTC")'], False),
        (["-w", "time(1d)"], False),
        (["-w", 'calendar(day, "Europe/Paris")', "--let", "at=CAST(ts AS TIMESTAMPTZ)", "--order-by", "at"], False),
    ],
)
def test_times_without_a_zone_get_a_note_where_the_window_has_one(
    words: list[str], is_noted: bool, tmp_path: Path
) -> None:
    ran = wincli_here("run", "x.csv", "out", *words, cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert ran.err.count("wincli: note: " + ZONE_NOTE) == is_noted
    assert ("zone" in ran.err) == is_noted


# Times over numbers


def write_epochs(path: Path, *times: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("ts,f,user\n" + "".join(f"{at},{at}.5,ann\n" for at in times))


@pytest.mark.parametrize(("digits", "kind"), [(3, "unix_ms"), (6, "unix_us"), (9, "unix_ns"), (0, "unix")])
def test_a_time_over_epochs_gets_the_schema_of_their_unit(digits: int, kind: str, tmp_path: Path) -> None:
    begin = 1_793_523_600
    write_epochs(Path("e.csv"), *(at * 10**digits for at in (begin, begin + 30, begin + 100)))
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
    for day in (1, 2, 3):
        write_epochs(Path(f"log/dt=2026-11-0{day}/a.csv"), day * 1000, day * 1000 + 30, day * 1000 + 100)
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
