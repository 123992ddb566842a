"""Mistakes that users make first: each message says what is wrong, where, and what to write instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.day_results import day, span
from support.in_process import done
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
    ran = done(folder, *words, code=code)
    return next(line for line in ran.err.splitlines() if "error: " in line).removeprefix("wincli: error: ")


def run(folder: Path, *words: str) -> str:
    return told(folder, "run", "-w", "count(2)", *words, "out")


@pytest.mark.parametrize(
    ("flag", "value", "do"),
    [
        ("--where", "x > 1", "join conditions with and"),
        ("--match", "x > 1", "join conditions with and"),
        ("--having", "count > 1", "join conditions with and"),
        ("--join", "q=log.csv on user", "more are more stages of a job file"),
    ],
)
def test_an_option_whose_last_value_would_drop_the_first_is_given_once(
    folder: Path, flag: str, value: str, do: str
) -> None:
    for command in ("run", "plan"):
        said = told(folder, command, flag, value, "log.csv", flag, value, "out")
        assert said == f"{flag} is given twice; {do}"


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
    done(folder, "run", "-w", "count(2)", "--let", "u_id=u.id", "-k", "u_id", "o.jsonl", "out")


@pytest.mark.parametrize(
    ("name", "mark", "words"),
    [
        ("semi.csv", "';'", ["-k", "user"]),
        ("bar.csv", "'|'", ["-a", "sum(x)"]),
        ("tab.csv", "'\\t'", ["-w", "gap(ts, 30m)"]),
        ("semi.csv", "';'", ["--where", "x > 1"]),
        ("bar.csv", "'|'", ["--order-by", "ts"]),
    ],
)
def test_a_file_with_another_delimiter_is_answered_with_it(
    folder: Path, name: str, mark: str, words: list[str]
) -> None:
    text = run(folder, name, *words)
    assert text.endswith(f"; the columns stand between other characters than commas: say --delimiter {mark}")
    done(folder, "run", "-w", "count(2)", name, "out", *words, "--delimiter", mark.strip("'"))


WRONG = mistakes("command_lines")


@pytest.mark.parametrize("case", WRONG["run"], ids=lambda case: " ".join(case["words"]))
def test_words_of_other_tools_are_answered_with_those_of_this_one(folder: Path, case: dict[str, Any]) -> None:
    assert told(folder, "run", "-w", "count(2)", "log.csv", "out", *case["words"]) == case["says"]


@pytest.mark.parametrize("case", WRONG["command"], ids=lambda case: " ".join(case["words"]))
def test_a_command_line_that_is_not_whole_says_what_to_write(folder: Path, case: dict[str, Any]) -> None:
    assert told(folder, *case["words"]) == case["says"]


# What show shows


def test_a_null_and_the_text_of_a_dash_look_different() -> None:
    assert texts_of(pa.array(["-", None, "a-b", "--"])).to_pylist() == ['"-"', "-", "a-b", "--"]


def test_results_that_do_not_belong_together_are_named_and_units_of_one_range_are_joined(folder: Path) -> None:
    write(folder / "in", **{f"{day(n)}__csv": "x\n1\n" for n in (1, 2)})
    for out, words in (
        ("results/a", ("log.csv", "-k", "user")),
        ("results/b", ("log.csv", "-a", "max(x)")),
        ("ranges/a/{date}", ("in/{date}.csv", *span(1, 1))),
        ("ranges/b/{date}", ("in/{date}.csv", *span(1, 1))),
        ("units/{date}", ("in/{date}.csv", *span(1, 1))),
        ("units/{date}", ("in/{date}.csv", *span(2, 2), "-a", "max(x)")),
    ):
        done(folder, "run", "-w", "count(2)", *words, out)
    text = "results holds 2 results that do not belong together: a, b; name one of them, or the folder of one range"
    assert told(folder, "show", "results") == text
    text = f"ranges holds 2 results that do not belong together: a/{day(1)}, b/{day(1)}"
    assert told(folder, "show", "ranges").startswith(text)
    done(folder, "show", "units")


def test_the_parser_of_the_command_line_never_ends_in_its_own_words(folder: Path) -> None:
    for words in (["show"], ["why"], ["report"], ["verify"], ["status"], ["schema", "x"], ["state", "gc"]):
        text = told(folder, *words)
        assert "issing argument" not in text
        assert "unexpected AttributeError" not in text
