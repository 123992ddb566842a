"""Names and values that command a terminal, in every place that a command repeats: what comes out is text."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.in_process import stand_ins
from support.processes import WINCLI, Ran, environment
from wincli.cli.completion import columns
from wincli.cli.console.streams import _Words, plain_text
from wincli.cli.main import _main

ESC = "e\x1b[2J\x1b]52;c;eA==\x07\r\b\x9b5n\u202e\nwincli: error: fake"
"""A clear screen, a clipboard, a return, a backspace, a question of C1, a reversal, and a line of its own."""
NAME = ESC.replace("/", "")
COLUMN = NAME.replace("\n", "|")  # a job file has no ends of lines in names
_CONTROLS = re.compile("[^\n\x20-\x7e\xa0-\u1fff\u2010-\u2027\u2030-\u205f\u2070-\ud7ff\ue000-\U0010ffff]|\u061c")
GAP = ("--window", "gap(ts, 1h)", "--key", "user")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of hostile keys in a file and a folder of such names, results over it, a state, a job with cases."""
    path = tmp_path_factory.mktemp("hostile")
    (path / NAME).mkdir()
    rows = [{"ts": f"2026-11-01T{at:02}:00:00", "user": ESC, NAME: ESC, COLUMN: ESC, "v": at} for at in (1, 2, 5, 9)]
    rows += [{"user": ESC, "v": 1}, {"ts": ESC, "user": ESC}]
    log = path / NAME / f"{NAME}.jsonl"
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    quoted = f'"{COLUMN}"'
    job = {"window": f"gap(ts, 1h) or change({quoted})", "key": "user", "input": "in", "output": "out"}
    job |= {"schema": "ts:timestamp", "agg": {COLUMN: f"last({quoted})", "n": "count()"}, "max_rejects": 9}
    job |= {"expect": ["windows < 1 or rejected_share < 2"]}
    (path / f"{NAME}.yaml").write_text(json.dumps(job))
    given = json.dumps({"ts": "2026-11-01T01:00:00", "user": ESC, COLUMN: ESC})
    cases = {"cases": [{"name": ESC, "given": f"{given}\n", "expect": "user,n\nx,1\n"}]}
    (path / f"{NAME}.test.yaml").write_text(json.dumps(cases))
    return path


def commands() -> Iterator[tuple[str, ...]]:
    job, out, log = f"{NAME}.yaml", f"out{NAME}", f"{NAME}/{NAME}.jsonl"
    state = f"state{NAME}"
    yield ("run", job, log, out, "-vv")
    yield ("run", *GAP, "--schema", "ts:timestamp", log, f"o2{NAME}", "--state", state, "--log-format", "json")
    for more in ((), ("--json",)):
        for words in (
            ("status", out),
            ("status", state),
            ("state", "list", state),
            ("plan", job, log, "o4"),
            ("verify", out),
        ):
            yield (*words, *more)
        yield ("why", out, "--only", f"user={ESC}", "--window", "1", *more)
        yield ("why", out, "--only", f"user={ESC}", "--at", "2027-01-01", *more)
        yield ("diff", out, f"o2{NAME}", "--by", "user,window_start", *more)
        yield ("doctor", "--no-spark", "--store", f"{NAME}", "--store", f"foo://{NAME}", *more)
    yield ("plan", *GAP, "--only", f"user={ESC}", "--rows", "9", "--schema", "ts:timestamp", log, "o3")
    yield ("show", out)
    yield ("show", out, "--rejects")
    yield ("show", out, "--draw")
    yield ("show", state)
    yield ("show", out, "--only", f"user={ESC}x")
    yield ("show", out, "--where", f"x = '{ESC}")
    yield ("show", out, "--columns", NAME)
    yield ("report", out, "-o", f"r{NAME}.html", "--only", f"user={ESC}y")
    yield ("init", log)
    yield ("init", log, "-o", f"i{NAME}.yaml", "--force")
    yield ("init", log, "--time", NAME)
    yield ("test", job)
    yield ("test", job, "--only", ESC)
    yield ("test", job, "--junit", f"{NAME}/x/y.xml")
    yield ("state", "rollback", state, ESC)
    yield ("state", "forget", state, "run-000001", "--yes")
    yield ("state", "gc", state, "--dry-run")
    yield ("diff", out, NAME)
    for mistake in (
        (f"--{NAME}",),
        ("--window", ESC, "a", "b"),
        ("--emit", ESC, "--window", "count(2)", "a", "b"),
        ("--keep", ESC, "a", "b"),
        ("--schema", f"{ESC}:{ESC}", "--window", "count(2)", "a", "b"),
        ("--spark-conf", ESC, "a", "b"),
        ("--master", ESC, "--window", "count(2)", "a", "b"),
        ("--where", f"{ESC} =", "--window", "count(2)", log, "b"),
        ("--agg", f"x=f({ESC})", "--window", "count(2)", log, "b"),
        ("--expect", ESC, "--window", "count(2)", log, "b"),
        ("--lineage", f"foo://{ESC}", "--window", "count(2)", log, "b"),
        ("--metrics-file", f"{ESC}/x", "--window", "count(2)", log, "b"),
        ("--start", ESC, "--end", ESC, "--window", "count(2)", log, "b"),
        ("--enrich", f"p={ESC} on user", *GAP, log, "b"),
        (job, "--var", f"{NAME}={ESC}"),
        (f"{NAME}2.yaml",),
        (*GAP, f"s3://{NAME}", "b"),
        (*GAP, f"missing{NAME}", "b"),
    ):
        yield ("run", *mistake)
    yield (NAME,)
    yield ("show", out, "--head", ESC)
    yield ("state", NAME)


def said_by(words: tuple[str, ...], cwd: Path, environ: dict[str, str]) -> Ran:
    """Run a command in this process, with the streams that `guard_streams` makes, over bytes."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = [_Words(each, "utf-8", "backslashreplace", write_through=True) for each in (out, err)]
    with pytest.MonkeyPatch.context() as patch, stand_ins(), redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        patch.chdir(cwd)
        for name, value in environ.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.StringIO())
        code = _main([*words])
    for stream in streams:
        stream.flush()
    return Ran(code, out.getvalue().decode(), err.getvalue().decode())


def check(ran: Ran, words: tuple[str, ...]) -> None:
    for said in (ran.out, ran.err):
        assert not (found := _CONTROLS.search(said)), (words, found, said)
        assert not [line for line in said.splitlines() if line.startswith("wincli: error: fake")], (words, said)
    assert "unexpected" not in ran.err, (words, ran.err)
    if "--json" in words and ran.code in (0, 1) and ran.out:
        json.loads(ran.out)


def test_no_command_lets_a_name_or_a_value_command_the_terminal(folder: Path) -> None:
    hostile = {"WINCLI_NOTHING": ESC, "JAVA_TOOL_NAME": ESC, "_JAVA_OPTIONS": "", "SPARK_LOCAL_DIRS": ESC}
    codes, said, faults = {}, {}, []
    for words in commands():
        environ = hostile if words[0] == "doctor" else {"WINCLI_NOTHING": ESC}
        ran = said_by(words, folder, environ)
        codes[words], said[words] = ran.code, ran.err
        try:
            check(ran, words)
        except (AssertionError, ValueError) as fault:
            faults.append(str(fault))
    assert not faults, "\n\n".join(faults)
    assert codes[next(iter(codes))] == 0, said[next(iter(codes))]
    failed = [words for words, code in codes.items() if code and words[0] in ("show", "report", "init", "why")]
    assert len(failed) == 4, "\n".join(f"{w[0]} {w[2:]!r} {e}" for w, e in said.items() if w in failed)


def test_a_process_has_these_streams(tmp_path: Path) -> None:
    words = ("show", NAME)
    ran = subprocess.run([WINCLI, *words], cwd=tmp_path, env=environment(), capture_output=True, check=False)
    check(Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode()), words)
    assert NAME.encode("unicode_escape")[:4] in ran.stderr


def test_a_terminal_gets_own_colours_and_nothing_else() -> None:
    text = "\x1b[1mhead\x1b[0m\n\x1b[31mx\x1b[2J\x1b[0m\x1b]8;;http://x\x07y\x1b[8mz\r\t"
    assert plain_text(text, has_colours=False) == (
        r"\x1b[1mhead\x1b[0m" "\n" r"\x1b[31mx\x1b[2J\x1b[0m\x1b]8;;http://x\x07y\x1b[8mz\r\t"
    )
    shown = "\x1b[1mhead\x1b[0m\n\x1b[31mx" r"\x1b[2J" "\x1b[0m" r"\x1b]8;;http://x\x07y\x1b[8mz\r\t"
    assert plain_text(text, has_colours=True) == shown


def test_a_shell_is_offered_no_column_that_commands_its_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"user": 1, "u\x1b[2J": 2, "u\u202e": 3}) + "\n")
    context = SimpleNamespace(params={"paths": [str(tmp_path / "a.jsonl")]}, args=[])
    assert columns(cast(Any, context), "u") == ["user"]
