"""Mistakes that users make first: each message says what is wrong, where, and what to write instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.in_process import wincli_here
from support.places import mistakes
from support.processes import write
from wincli.cli.console.table import texts_of

SEMICOLONS = "user;ts;x\na;2026-11-01T10:00:00;1\nb;2026-11-01T10:01:00;2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, log__csv=SEMICOLONS.replace(";", ","), semi__csv=SEMICOLONS, bar__csv=SEMICOLONS.replace(";", "|"))
    write(tmp_path, tab__csv=SEMICOLONS.replace(";", "\t"))
    rows = [{"u": {"id": number, "n": "x", "l": [1]}, "x": number} for number in (1, 2)]
    write(tmp_path, o__jsonl="".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def told(folder: Path, *words: str, code: int = 2) -> str:
    """The error of a command, without the drawing below it."""
    ran = wincli_here(*words, cwd=folder)
    assert ran.code == code, ran.err
    return next(line for line in ran.err.splitlines() if "error: " in line).removeprefix("wincli: error: ")


def run(folder: Path, *words: str) -> str:
    return told(folder, "run", "-w", "count(2)", *words, "out")


# Masters, before Java starts

KNOWN = "say local[*], local[4], yarn, spark://HOST:7077 or k8s://URL"


@pytest.mark.parametrize("master", ["sparks://x:7077", "local[x]", "local[0]", "spark://head", "yarm", "Local[2]", ""])
def test_a_master_that_spark_would_refuse_is_refused_before_java_starts(folder: Path, master: str) -> None:
    assert run(folder, "log.csv", "--master", master) == f"--master {master!r} is no master that Spark knows; {KNOWN}"


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[*]", "local[4]", "local[2,3]", "local-cluster[2,1,1024]", "yarn"),
        *("spark://a:7077,b:7077", "k8s://https://x:6443", "armada://x"),
    ],
)
def test_masters_of_spark_and_of_cluster_managers_are_taken(folder: Path, master: str) -> None:
    (folder / "j.yaml").write_text(f"window: count(2)\ninput: log.csv\noutput: out\nmaster: '{master}'\nkeep: x\n")
    assert (
        told(folder, "run", "j.yaml")
        == "j.yaml:5: keep must be a whole number, not the text x; mend it".partition("; mend")[0]
    )


# Job files


def test_the_nearest_key_is_named_and_is_not_missing_besides(folder: Path) -> None:
    (folder / "j.yaml").write_text("windows: count(2)\ninput: log.csv\noutput: out\n")
    assert told(folder, "run", "j.yaml") == "j.yaml:1: unknown key 'windows'; did you mean 'window'?"
    (folder / "j.yaml").write_text("windows:\n  - window: count(2)\ninput: log.csv\noutput: out\n")
    assert told(folder, "run", "j.yaml") == "j.yaml:1: unknown key 'windows'; did you mean 'stages'?"
    (folder / "j.yaml").write_text("window: count(2)\nin: log.csv\noutput: out\n")
    assert told(folder, "run", "j.yaml") == "j.yaml:2: unknown key 'in'; did you mean 'input'?"


# Columns


def test_an_object_as_a_key_is_answered_with_its_fields(folder: Path) -> None:
    fields = "make one of its fields, u.id, u.n a column: --let u_id=u.id, and name u_id"
    assert run(folder, "o.jsonl", "-k", "u").endswith(f"which does not sort; {fields}")
    assert run(folder, "o.jsonl", "--group-by", "u").endswith(f"which does not sort; {fields}")
    assert run(folder, "o.jsonl", "--order-by", "u").endswith(f"which has no order; {fields}")
    field = "make u.id a column: --let u_id=u.id, and name u_id"
    assert run(folder, "o.jsonl", "-k", "u.id") == f"there is no column 'u.id' for the key; {field}"
    assert run(folder, "o.jsonl", "--order-by", "u.id") == f"there is no column 'u.id' to order by; {field}"
    missing = run(folder, "o.jsonl", "-k", "u.nothing")
    assert missing.startswith("there is no column 'u.nothing' for the key; known: u, x; or declare it with --schema ")
    ran = wincli_here("run", "-w", "count(2)", "--let", "u_id=u.id", "-k", "u_id", "o.jsonl", "out", cwd=folder)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(("name", "mark"), [("semi.csv", "';'"), ("bar.csv", "'|'"), ("tab.csv", "'\\t'")])
@pytest.mark.parametrize(
    "words",
    [["-k", "user"], ["-a", "sum(x)"], ["-w", "gap(ts, 30m)"], ["--where", "x > 1"], ["--order-by", "ts"]],
)
def test_a_file_with_another_delimiter_is_answered_with_it(
    folder: Path, name: str, mark: str, words: list[str]
) -> None:
    text = run(folder, name, *words)
    assert text.endswith(f"; the columns stand between other characters than commas: say --delimiter {mark}")
    ran = wincli_here("run", "-w", "count(2)", name, "out", *words, "--delimiter", mark.strip("'"), cwd=folder)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("text", ["sum(x) as n", "sum(x) AS n", "sum(x) n"])
def test_a_name_behind_an_aggregate_is_answered_with_the_name_before_it(folder: Path, text: str) -> None:
    assert run(folder, "log.csv", "-a", text).endswith("; a name stands before: write n=sum(x)")


def test_two_aggregates_in_one_are_told_apart_from_a_name(folder: Path) -> None:
    assert (
        run(folder, "log.csv", "-a", "sum(x) max(x)") == "expected the end, found 'max'; give one aggregate at a time"
    )


WRONG = mistakes("command_lines")


@pytest.mark.parametrize("case", WRONG["run"], ids=lambda case: " ".join(case["words"]))
def test_words_of_other_tools_are_answered_with_those_of_this_one(folder: Path, case: dict[str, Any]) -> None:
    assert told(folder, "run", "-w", "count(2)", "log.csv", "out", *case["words"]) == case["says"]


@pytest.mark.parametrize("case", WRONG["command"], ids=lambda case: " ".join(case["words"]))
def test_a_command_line_that_is_not_whole_says_what_to_write(folder: Path, case: dict[str, Any]) -> None:
    assert told(folder, *case["words"]) == case["says"]


# What show shows


def test_a_delimiter_of_more_than_one_character_says_how_to_write_one(folder: Path) -> None:
    text = "--delimiter ';;' is not one character; write one, such as ';', or '\\t' for a tab"
    assert run(folder, "semi.csv", "--delimiter", ";;") == text


def test_a_null_and_the_text_of_a_dash_look_different() -> None:
    assert texts_of(pa.array(["-", None, "a-b", "--"])).to_pylist() == [
        '"-"',
        "-",
        "a-b",
        "--",
    ]


def test_results_that_do_not_belong_together_are_named_and_not_joined(folder: Path) -> None:
    for out, words in (("all/a", ["-k", "user"]), ("all/b", ["-a", "max(x)"])):
        assert wincli_here("run", "-w", "count(2)", "log.csv", out, *words, cwd=folder).code == 0
    text = "all holds 2 results that do not belong together: a, b; name one of them, or the folder of one range"
    assert told(folder, "show", "all") == text


def test_units_of_two_ranges_with_the_same_dates_are_not_joined(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in/2026-11-01.csv").write_text("x\n1\n")
    days = ("--start", "2026-11-01", "--end", "2026-11-02")
    for out in ("all/a", "all/b"):
        words = ("run", "-w", "count(2)", "in/{date}.csv", f"{out}/{{date}}", *days)
        assert wincli_here(*words, cwd=folder).code == 0
    assert told(folder, "show", "all").startswith("all holds 2 results that do not belong together: a/2026-11-01, b/")


def test_units_of_one_range_are_shown_together_also_where_their_aggregates_changed(folder: Path) -> None:
    (folder / "in").mkdir()
    for day in (1, 2):
        (folder / f"in/2026-11-0{day}.csv").write_text("x\n1\n")
        days = ("--start", f"2026-11-0{day}", "--end", f"2026-11-0{day + 1}")
        aggregate = ("-a", "max(x)") if day == 2 else ()
        words = ("run", "-w", "count(2)", *aggregate, "in/{date}.csv", "all/{date}", *days)
        assert wincli_here(*words, cwd=folder).code == 0
    assert wincli_here("show", "all", cwd=folder).code == 0


def test_the_parser_of_the_command_line_never_ends_in_its_own_words(folder: Path) -> None:
    for words in (["show"], ["why"], ["report"], ["verify"], ["status"], ["schema", "x"], ["state", "gc"]):
        text = told(folder, *words)
        assert "issing argument" not in text
        assert "unexpected AttributeError" not in text
