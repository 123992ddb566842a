"""What the docs show can be run: commands, Python, links."""

from __future__ import annotations

import doctest
import re
import runpy
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer

import wincli
from support.docs_pages import DOCS, INDEX, PAGES, README, ROOT, fences, place_of, text_of
from wincli.cli import main
from wincli.cli.commands import EXAMPLES
from wincli.cli.run.request import parse_job
from wincli.windowing import in_memory
from wincli.windowing.aggregates.table import TABLE
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Joined

RUN: Any = typer.main.get_command(main.app).commands["run"]  # type: ignore[attr-defined]


# Examples


def commands() -> list[Any]:
    """Every ``wincli run`` of the docs, in one line each, and those of the help."""
    found = []
    for path in PAGES:
        for at, lines in (block for language in ("sh", "console", "python") for block in fences(path, language)):
            whole = "\n".join(lines).replace("\\\n", " ")
            place = f"{place_of(path)}:{at}"
            found += [(place, line) for line in re.findall(r"^.*\bwincli run (?!-h).*$", whole, re.MULTILINE)]
    found += [("help", line) for line in re.findall(r"^ +wincli run .*$", EXAMPLES, re.MULTILINE)]
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
    asked = parse_job({name: value or None for name, value in given.items() if name not in ("quiet", "verbose")})
    for stage in asked.stages:
        assert parse_window(str(stage.spec)) == (stage.spec.window if isinstance(stage.spec, Joined) else stage.spec)
        for call in (call for item in stage.calls or () for call in item.calls):
            assert ":" in call.function or call.function in TABLE


def job_files() -> dict[str, str]:
    """The job files that the docs show, whole, each with its name in its first line; and the examples."""
    shown = [lines for path in PAGES for _, lines in fences(path, "yaml")]
    named = {lines[0].removeprefix("# "): "\n".join(lines) for lines in shown if lines[0].endswith(".yaml")}
    named = {name: text for name, text in named.items() if not name.endswith(".test.yaml")}  # cases of a job
    examples = [path for path in (ROOT / "conf" / "examples").glob("*.yaml") if path.suffixes == [".yaml"]]
    return {**named, **{path.name: path.read_text() for path in examples}}


@pytest.mark.parametrize("name", job_files())
def test_job_file_reads(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / name).write_text(job_files()[name])
    monkeypatch.chdir(tmp_path)
    for variable in re.findall(r"\$\{(\w+)\}", job_files()[name]):
        monkeypatch.setenv(variable, "20")
    of_range = {"start": "2026-01-05", "end": "2026-01-12"} if "{date" in job_files()[name] else {}
    check_job({"paths": [name], **of_range})


def test_there_are_commands_and_the_doctest_of_aggregate_runs() -> None:
    assert len(commands()) > 15
    found = doctest.testmod(in_memory)
    assert (found.attempted > 0, found.failed) == (True, 0)


def test_user_functions_of_the_docs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ``# NAME.py`` block is a module, and each call of its functions in the page runs; tests in it pass."""
    for _, lines in fences(DOCS["user-functions"], "python"):
        name = lines[0].strip().removeprefix("# ")
        (tmp_path / name).write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    log = pa.table({"ts": [0, 1, 100], "latency": [1.0, 4.0, 2.0], "page": ["a", "b", "a"], "amount": [1, 2, 3]})
    asked = sorted(set(re.findall(r"(?<!\w)(?:\w+=)?(?:doc|part)stats:\w+\([^)]*\)", text_of("user-functions"))))
    assert "partstats:above(latency, 250)" in asked
    runpy.run_path(str(tmp_path / "test_partstats.py"))
    result = wincli.aggregate(log, "delta(ts, 60)", aggregates=asked)
    assert result.num_rows == 2


# Links


def prose(path: Path) -> str:
    return re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def links(path: Path) -> Iterator[tuple[str, Path, str]]:
    """The links of a page to files of the project: each as written, the file, and the anchor."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if not re.match(r"[a-z]+:", target):
            name, _, anchor = target.partition("#")
            yield target, (path.parent / name).resolve() if name else path, anchor


def anchors(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    named = set(re.findall(r'<a id="([^"]+)">', text))
    return named | {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=place_of)
def test_links_resolve_and_headings_of_a_page_have_different_anchors(path: Path) -> None:
    for target, page, anchor in links(path):
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), target
    heads = re.findall(r"^#+ .*$", prose(path), re.MULTILINE)
    assert path not in DOCS.values() or len(heads) == len({head.lstrip("# ").lower() for head in heads})


def test_every_page_can_be_reached_from_the_readme_which_is_short_and_the_index_links_all() -> None:
    reached, waiting = set[Path](), [README]
    while waiting:
        page = waiting.pop()
        if page in PAGES and page not in reached:
            reached.add(page)
            waiting += [linked for _, linked, _ in links(page)]
    assert set(PAGES) - reached == set()
    assert set(DOCS.values()) - {INDEX} - {page for _, page, _ in links(INDEX)} == set()
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200
