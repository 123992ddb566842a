"""The commands for cron, Airflow and systemd are run, with a stand-in for wincli that says what it was given."""

from __future__ import annotations

import ast
import configparser
import datetime as dt
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from support.docs_pages import DOCS, fences
from wincli.cli import main
from wincli.cli.run.request import parse_job
from wincli.conf.ranges import units

PAGE = DOCS["backfill"]
RUN: Any = typer.main.get_command(main.app).commands["run"]  # type: ignore[attr-defined]
WINCLI = "/srv/clicks/.venv/bin/wincli"
STAND_IN = 'cd() { :; }\nwincli() { printf "%s\\0" "$@"; }\nexport -f wincli\n'


@pytest.fixture(autouse=True)
def _job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block, *_ = (lines for _, lines in fences(PAGE, "yaml"))
    assert block[0] == "# nightly.yaml"
    (tmp_path / "nightly.yaml").write_text("\n".join(block))
    monkeypatch.chdir(tmp_path)


def given(command: str) -> list[str]:
    """The arguments that a shell gives to wincli."""
    assert command.count(WINCLI) == 1
    script = STAND_IN + command.replace(WINCLI, "wincli")
    ran = subprocess.run(["bash", "-ec", script], check=True, capture_output=True, text=True)
    assert ran.stderr == ""
    return ran.stdout.split("\0")[:-1]


def days(arguments: list[str]) -> list[dt.date]:
    """The days of the range that a command asks for; the command is checked as ``wincli run`` does."""
    assert arguments[:2] == ["run", "nightly.yaml"]
    params = RUN.make_context("run", arguments[1:], max_content_width=100).params
    job = parse_job({name: value for name, value in params.items() if name not in ("quiet", "verbose")})
    assert job.state == "state/sessions"
    assert job.start is not None
    assert job.end is not None
    return [unit.start.date() for unit in units(job.start, job.end, job.unit) if unit.start]


def last_week() -> list[dt.date]:
    return [dt.date.today() - dt.timedelta(days=n) for n in range(7, 0, -1)]


def one_block(language: str, at: int = 0) -> str:
    return "\n".join([lines for _, lines in fences(PAGE, language)][at])


def test_cron() -> None:
    mail, line = one_block("cron").splitlines()
    assert re.fullmatch(r"MAILTO=\S+@\S+", mail)
    *times, command = line.split(" ", 5)
    assert times == ["15", "2", "*", "*", "*"]
    assert not re.search(r"(?<!\\)%", command), "a bare % ends the command for cron"
    arguments = given(command.replace("\\%", "%"))
    assert "-q" in arguments
    assert days(arguments) == last_week()


def test_airflow() -> None:
    calls = [node for node in ast.walk(ast.parse(one_block("py"))) if isinstance(node, ast.Call)]
    (operator,) = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "BashOperator")
    options = {word.arg: ast.literal_eval(word.value) for word in operator.keywords}
    interval = {"data_interval_start | ds": "2026-11-01", "data_interval_end | ds": "2026-11-02"}
    command = re.sub(r"\{\{ (.*?) \}\}", lambda found: interval[found[1]], options["bash_command"])
    arguments = given(command)
    assert days(arguments) == [dt.date(2026, 11, 1)]
    assert arguments[arguments.index("--exit-code-noop") + 1] == str(options["skip_on_exit_code"])


def unit_file(at: int) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters="=")
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(one_block("ini", at))
    return parser


def test_systemd() -> None:
    service, timer = unit_file(0), unit_file(1)
    assert service["Service"]["Type"] == "oneshot"
    line = service["Service"]["ExecStart"]
    assert not re.search(r"(?<!%)%(?!%)", line.replace("%%", "")), "a bare % is a specifier"
    assert "$" not in line.replace("$$", ""), "a bare $ is a variable of systemd's"
    shell, option, command = shlex.split(line.replace("%%", "%").replace("$$", "$"))
    assert (shell, option) == ("/bin/sh", "-c")
    arguments = given(command)
    assert days(arguments) == last_week()
    assert arguments[arguments.index("--exit-code-noop") + 1] == service["Service"]["SuccessExitStatus"]
    assert dict(timer["Timer"]) == {"OnCalendar": "*-*-* 02:15", "Persistent": "true"}
    assert timer["Install"]["WantedBy"] == "timers.target"
