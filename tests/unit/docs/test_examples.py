"""What the docs show can be run: commands, Python, links."""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer

import wincli
from support.docs_pages import DOCS, PAGES, README, ROOT, fences, rows_of, text_of
from wincli.cli import main
from wincli.cli.job.request import read_job
from wincli.conf.option_values import size
from wincli.windowing import in_memory
from wincli.windowing.aggregates.table import TABLE
from wincli.windowing.language.parser import parse_window

RUN: Any = typer.main.get_command(main.app).commands["run"]  # type: ignore[attr-defined]


# Examples


def commands() -> list[Any]:
    """Every ``wincli run`` of the docs, in one line each, and those of the help."""
    found = []
    for path in PAGES:
        for language in ("sh", "console", "python"):
            for at, lines in fences(path, language):
                whole = "\n".join(lines).replace("\\\n", " ")
                found += [(f"{path.name}:{at}", line) for line in re.findall(r"^.*\bwincli run (?!-h).*$", whole, re.M)]
    found += [("help", line) for line in re.findall(r"^ +wincli run .*$", main._EXAMPLES, re.MULTILINE)]
    return [pytest.param(line.strip().removeprefix("$ "), id=place) for place, line in found]


@pytest.mark.parametrize("line", commands())
def test_command_parses(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, text in job_files().items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line, comments=True)
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        monkeypatch.setenv(name, value)
    assert words[:2] == ["wincli", "run"]
    given = RUN.make_context("run", words[2:], max_content_width=100).params
    check_job(given)


def check_job(given: Mapping[str, Any]) -> None:
    """What ``wincli run`` checks before it opens an input."""
    asked = read_job({name: value or None for name, value in given.items() if name not in ("quiet", "verbose")})
    for stage in asked.stages:
        assert parse_window(str(stage.spec)) == stage.spec
        for call in stage.calls or ():
            assert ":" in call.function or call.function in TABLE


def job_files() -> dict[str, str]:
    """The job files that the docs show, whole, each with its name in its first line; and the examples."""
    shown = [lines for path in PAGES for _, lines in fences(path, "yaml")]
    named = {lines[0].removeprefix("# "): "\n".join(lines) for lines in shown if lines[0].endswith(".yaml")}
    return {**named, **{path.name: path.read_text() for path in (ROOT / "conf" / "examples").glob("*.yaml")}}


@pytest.mark.parametrize("name", job_files())
def test_job_file_reads(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / name).write_text(job_files()[name])
    monkeypatch.chdir(tmp_path)
    of_range = {"start": "2026-01-05", "end": "2026-01-12"} if "{date" in job_files()[name] else {}
    check_job({"paths": [name], **of_range})


def test_there_are_commands() -> None:
    assert len(commands()) > 15
    assert size("96MiB") == 96 << 20


def test_python_of_the_library_page_runs() -> None:
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.testfile(str(DOCS["library"]), module_relative=False, optionflags=flags).failed == 0


def test_every_argument_of_the_library_is_told() -> None:
    told = {name for row in rows_of("library", "Windows without Spark") for name in row[0].split(", ")}
    assert told == set(inspect.signature(wincli.aggregate).parameters)


def test_doctest_of_aggregate_runs() -> None:
    assert doctest.testmod(in_memory).attempted > 0
    assert doctest.testmod(in_memory).failed == 0


def test_user_functions_of_the_docs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ``# NAME.py`` block is a module, and each call of its functions in the page runs."""
    for _, lines in fences(DOCS["user-functions"], "python"):
        (tmp_path / lines[0].removeprefix("# ").strip()).write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    log = pa.table({"ts": [0, 1, 100], "latency": [1.0, 4.0, 2.0], "page": ["a", "b", "a"], "amount": [1, 2, 3]})
    asked = sorted(set(re.findall(r"(?<!\w)(?:\w+=)?docstats:\w+\([^)]*\)", text_of("user-functions"))))
    assert asked
    result = wincli.aggregate(log, "delta(ts, 60)", aggregates=asked)
    assert result.num_rows == 2


# Links


def anchors(path: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_resolve(path: Path) -> None:
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        page = (path.parent / name).resolve() if name else path
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_page_is_linked(path: Path) -> None:
    assert path == README or re.search(rf"\]\([^)]*{path.name}", README.read_text(encoding="utf-8"))
