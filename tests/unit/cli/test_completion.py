"""What the tab key gives, asked as the shells ask: by environment variables, of a process of its own."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from support.heavy_modules import HEAVY
from support.places import TESTS
from support.processes import WINCLI, environment
from wincli.cli import arguments, main
from wincli.windowing.aggregates.table import TABLE
from wincli.windowing.language.aggregate_names import AGGREGATES
from wincli.windowing.language.aggregates import ALIASES

LOADED = """
import contextlib, json, os, sys
from wincli.cli import main as program
for variables in json.load(sys.stdin):
    os.environ.update(variables)
    with contextlib.suppress(SystemExit):
        program.main()
    print("next line", flush=True)
    program.guard_streams = lambda: None  # they are
print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "logs/day").mkdir(parents=True)
    (folder / "logs/_SUCCESS").touch()
    (folder / "logs/day/a.csv").write_text("ts,user,session id,amount\n1,a,b,2\n")
    (folder / "a.jsonl").write_text('{"when": 1, "who": "a"}\n')
    parquet.write_table(pa.table({"tick": [1], "device": ["a"]}), folder / "a.parquet")
    orc.write_table(pa.table({"tock": [1], "door": ["a"]}), str(folder / "a.orc"))
    return folder


def asked(folder: Path, lines: Iterable[str], shell: str = "bash") -> tuple[dict[str, list[str]], set[str]]:
    """What a shell gets for lines that end where the tab key is pressed, and the modules loaded for them."""
    variables = []
    for line in lines:
        words = line.split(" ") if "'" not in line and '"' not in line else raw_words(line)
        told = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
        if shell != "bash":
            told = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        variables.append({"_WINCLI_COMPLETE": f"complete_{shell}", **told})
    command, env = [sys.executable, "-c", LOADED], environment({"PYTHONPATH": str(TESTS)})
    done = subprocess.run(
        command, env=env, input=json.dumps(variables), capture_output=True, text=True, check=True, cwd=folder
    )
    answers = [answer.splitlines() for answer in done.stdout.split("next line\n")[:-1]]
    return dict(zip(lines, answers, strict=True)), set(done.stderr.split())


def raw_words(line: str) -> list[str]:
    """Words with their quotes, the last of which may be open, as bash has them."""
    head, quote, last = line.rpartition('"')
    return [*head.split(), quote + last]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_known_and_commands_complete(shell: str, inputs: Path) -> None:
    answers, _ = asked(inputs, ["wincli statu"], shell)
    assert "status" in "".join(answers["wincli statu"])


VALUES = {
    "wincli run --max-rej": ["--max-rejects"],
    "wincli run --emit ": ["aggregates", "rows", "entered", "left"],
    "wincli run --at-end h": ["hold"],
    "wincli run logs out --marks ": ["auto", "files", "none", "ts", "user", "session\\ id", "amount"],
    "wincli run logs out -k us": ["user"],
    "wincli run logs out --order-by ts,am": ["ts,amount"],
    "wincli run a.jsonl out --group-by ": ["when", "who"],
    "wincli run a.parquet out --key d": ["device"],
    "wincli run a.orc out --key d": ["door"],
    "wincli run nothing out --key d": [""],
    'wincli run -w "del': ["delta(", "delta(..."],
    'wincli run -w "sliding, ti': ["sliding, time(", "sliding, time(..."],
    'wincli run -w "within 5m re': ["within 5m retain ", "within 5m retain ..."],
    'wincli run -w "timeInterval, disc': ["timeInterval, discardAge(", "timeInterval, discardAge(..."],
    'wincli run -w "count(3), partitionA': ["count(3), partitionAge(", "count(3), partitionAge(..."],
    'wincli run logs out -w "delta(t': ["delta(ts", "delta(ts..."],
    'wincli run -w "fun': ["funnel(", "funnel(..."],
    'wincli run -w "match(a, a = x), over': ["match(a, a = x), overlapping"],
    'wincli run -w "aro': ["around(", "around(..."],
    'wincli run -w "at(0) wi': ["at(0) within ", "at(0) within ..."],
    'wincli run -w "sliding, count(1) jo': ["sliding, count(1) join ", "sliding, count(1) join ..."],
    'wincli run -w "sliding, count(1) join d': ["sliding, count(1) join delta(", "sliding, count(1) join delta(..."],
    'wincli run -w "retain 1 join part': ["retain 1 join partition by ", "retain 1 join partition by ..."],
    'wincli run logs out --join "q=quotes/ on us': ["q=quotes/ on user"],
    'wincli run logs out --join "q=quotes/ on user le': ["q=quotes/ on user left ", "q=quotes/ on user left ..."],
    'wincli run -w "calendar(w': ["calendar(week", "calendar(week..."],
    'wincli run logs out -a "sum(am': ["sum(amount", "sum(amount..."],
    'wincli run -a "spent=su': ["spent=sum(", "spent=sum(..."],
    "wincli run -w del": ["delta\\(", "delta\\(..."],
}


def test_values_complete(inputs: Path) -> None:
    every = "wincli run -w "
    answers, _ = asked(inputs, [*VALUES, every])
    kinds = answers.pop(every)
    assert answers == VALUES
    assert all(value.startswith('"') for value in kinds)
    assert {'"delta(', '"gap(', '"sliding, ', '"timeInterval, ', '"within ', '"retain all'} <= set(kinds)


def test_completing_loads_nothing_heavy(inputs: Path) -> None:
    lines = ['wincli run logs out -w "delta(', "wincli run logs out -k u", "wincli run --emit "]
    answers, modules = asked(inputs, lines)
    assert all(answers.values())
    assert not HEAVY & modules


def test_names_that_complete_are_all_there_are() -> None:
    assert tuple(TABLE) == AGGREGATES, "run scripts/aggregate_names"
    assert set(ALIASES.values()) <= set(TABLE)
    assert not set(ALIASES) & set(TABLE)


def test_bash_itself_completes_with_the_script_that_is_installed(tmp_path: Path, inputs: Path) -> None:
    env = environment({"HOME": str(tmp_path)})
    install = [
        "bash",
        "-c",
        f"{shlex.quote(str(WINCLI))} --install-completion; true",
    ]  # `true`: or bash would give its place to wincli
    assert subprocess.run(install, env=env, check=False, capture_output=True, text=True).returncode == 0
    script = f"""
        source {shlex.quote(str(tmp_path))}/.bash_completions/wincli.sh
        COMP_WORDS=(wincli run logs out -k us) COMP_CWORD=5
        _wincli_completion {shlex.quote(str(WINCLI))}
        echo "${{COMPREPLY[@]}}"; complete -p wincli
    """
    done = subprocess.run(["bash", "-ec", script], env=env, check=True, capture_output=True, text=True, cwd=inputs)
    assert done.stdout.splitlines()[0] == "user"
    assert "_wincli_completion wincli" in done.stdout


def test_every_variable_of_an_option_is_known() -> None:
    repeatable = {each.variable for each in arguments.REPEATABLE}
    assert set(arguments.VARIABLES) - repeatable == {p.envvar for p in main.run_parameters() if p.envvar}
