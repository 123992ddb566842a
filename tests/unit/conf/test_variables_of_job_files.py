"""Variables in the values of job files: where they come from, what they become, and what refuses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from support.in_process import wincli_here
from support.processes import manifest
from wincli.cli.commands import schema_text
from wincli.cli.run.request import parse_job
from wincli.conf.job import Job
from wincli.windowing.errors import WincliError

HEAD = "input: in\noutput: out\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, *given: str, **flags: Any) -> Job:
    Path("j.yaml").write_text(text)
    return parse_job({"paths": ["j.yaml"], "var": list(given), **flags})


def mistake(text: str, *given: str) -> str:
    with pytest.raises(WincliError) as caught:
        read(text, *given)
    return str(caught.value)


def test_a_variable_of_the_command_line_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("rows", "3")
    text = HEAD + "window: count(${rows})\n"
    assert read(text).stages[0].window == "count(3)"
    assert read(text, "rows=5").stages[0].window == "count(5)"
    assert read(text, "rows=5", "rows=6").stages[0].window == "count(6)"


def test_variables_stand_in_values_of_all_kinds() -> None:
    text = """\
input: ["${in}/a", "${in}/b"]
output: ${in}/out
window: delta(ts, ${d})
key: ${key}
agg: {n: "count()", m: "max(${col})"}
where: name = 'a${col}'
lag: ${d}
keep: ${number}
plain: ${switch}
max_rejects: "${number}"
spark_conf: {spark.x: "${number}g"}
mode: ${mode}
event_time: ts
"""
    names = ["in=logs", "d=60", "key=7", "col=x", "number=12", "switch=true", "mode=overwrite"]
    job = read(text, *names)
    stage = job.stages[0]
    assert (job.input, job.output) == (("logs/a", "logs/b"), "logs/out")
    assert (stage.window, stage.key, stage.where, stage.plain) == ("delta(ts, 60)", ("7",), "name = 'ax'", True)
    assert stage.agg == ("n=count()", "m=max(x)")
    assert (job.keep, job.max_rejects, job.mode, job.spark_conf) == (12, 12, "overwrite", {"spark.x": "12g"})


def test_variables_stand_in_stages_and_not_in_keys() -> None:
    text = HEAD + "stages:\n  - {name: '${a}', window: 'count(${n})'}\n  - window: count(2)\n    ${a}: x\n"
    assert mistake(text, "a=first", "n=2") == (
        "j.yaml:6: unknown key '${a}' in stages[1]; wincli schema prints all keys"
    )
    job = read(text.replace("    ${a}: x\n", ""), "a=first", "n=4")
    assert [(stage.name, stage.window) for stage in job.stages] == [("first", "count(4)"), ("stage-2", "count(2)")]


def test_dollars_that_are_no_variables_stay() -> None:
    text = HEAD + "window: count(2)\nwhere: \"name = 'a$$b$' or name = '$${x}' or name = '$1'\"\n"
    assert read(text).stages[0].where == "name = 'a$$b$' or name = '${x}' or name = '$1'"
    assert read("input: a$$b\noutput: out\nwindow: count(2)\n").input == ("a$b",)


MISTAKES = {
    "window: count(${rws})": (
        "rows=1",
        "the job has 2 mistakes; mend them\n"
        "  j.yaml:3: window names ${rws}, and no such variable is set; did you mean ${rows}?\n"
        "  --var rows: j.yaml has no ${rows}; did you mean 'rws'?",
    ),
    "window: count(${zzqx_9})": (
        None,
        "j.yaml:3: window names ${zzqx_9}, and no such variable is set; "
        "set it, say --var zzqx_9=VALUE, or write $${ for these characters themselves",
    ),
    "window: count(${n:-3})": (
        None,
        "j.yaml:3: window names ${n:-3}, and no such variable is set; "
        "a name has letters, digits and _; write $${ for these characters themselves",
    ),
    "window: count(2)\nkeep: ${n}": ("n=many", "j.yaml:4: keep must be a whole number, not the text many"),
    "window: count(2)": ("rosw=2", "--var rosw: j.yaml has no ${rosw}; "),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_has_its_line_and_names_the_variable_or_its_value(text: str) -> None:
    given, says = MISTAKES[text]
    assert mistake(HEAD + text + "\n", *([given] if given else [])).startswith(says)


@pytest.mark.parametrize(
    ("text", "shown"), [("rows", "'rows'"), ("=5", "'=***'"), ("a b=5", "'a b=***'"), ("TOKEN:abc", "'TOKEN***'")]
)
def test_a_text_that_is_no_variable(text: str, shown: str) -> None:
    told = f"--var {shown} is not NAME=VALUE; write for example --var day=2026-11-01"
    assert mistake(HEAD + "window: count(2)\n", text) == told


def test_a_variable_without_a_job_file_is_an_error() -> None:
    with pytest.raises(
        WincliError, match=r"^--var day is for a job file, and none is named; name a job file before IN"
    ):
        parse_job({"paths": ["in", "out"], "window": "count(2)", "var": ["day=1"]})


# Secrets


def test_a_secret_variable_is_refused_where_results_would_record_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    for line in ("where: name = '${API_TOKEN}'", "spark_conf: {spark.x: '${API_TOKEN}'}"):
        told = mistake(HEAD + f"window: count(2)\n{line}\n")
        assert "names ${API_TOKEN}, whose name says that it is secret, and results record this value as it is" in told
        assert "hunter2" not in told
    text = HEAD + "window: count(2)\nspark_conf: {spark.hadoop.fs.s3a.secret.key: '${API_TOKEN}'}\n"
    assert read(text).spark_conf == {"spark.hadoop.fs.s3a.secret.key": "hunter2hunter2"}
    monkeypatch.setenv("PASSWORD", "hunter2hunter2")
    assert read("input: hdfs://me:${PASSWORD}@host/a\noutput: out\nwindow: count(2)\n").input == (
        "hdfs://me:hunter2hunter2@host/a",
    )
    assert "hunter2" not in mistake(HEAD + "window: count(2)\n", "my password=hunter2hunter2")


@pytest.mark.parametrize("name", ["KEY", "KEY_COLUMN", "sort_key", "user_key", "Keyspace"])
def test_a_key_of_rows_is_no_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "user")
    assert read(HEAD + f"window: count(2)\nkey: ${{{name}}}\n").stages[0].key == ("user",)


@pytest.mark.parametrize("name", ["API_KEY", "AWS_ACCESS_KEY_ID", "DB_PASSWORD", "GITHUB_TOKEN", "ssh_key"])
def test_a_secret_of_the_environment_is_known_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "user")
    assert f"key names ${{{name}}}, whose name says" in mistake(HEAD + f"window: count(2)\nkey: ${{{name}}}\n")


# As a command


def test_the_manifest_records_values_and_test_and_plan_take_variables(tmp_path: Path) -> None:
    Path("log.csv").write_text("ts,x\n1,5\n2,6\n3,7\n")
    Path("j.yaml").write_text("input: log.csv\noutput: ${out}\nwindow: count(${rows})\nwhere: x > ${least}\n")
    words = ["--var", "rows=2", "--var", "least=5", "--var", "out=o"]
    assert wincli_here("plan", "j.yaml", *words, cwd=tmp_path).code == 0
    ran = wincli_here("run", "j.yaml", *words, cwd=tmp_path)
    assert ran.code == 0, ran.err
    told = manifest(tmp_path / "o")["job"]
    assert (told["stages"][0]["window"], told["stages"][0]["where"]) == ("count(2)", "x > 5")
    assert "${" not in json.dumps(told)
    Path("j.test.yaml").write_text(
        "cases:\n  - name: two\n    given: |\n      ts,x\n      1,6\n      2,7\n    expect: |\n      count\n      2\n"
    )
    ran = wincli_here("test", "j.yaml", *words, cwd=tmp_path)
    assert ran.code == 0, (ran.out, ran.err)
    assert wincli_here("test", "j.yaml", cwd=tmp_path).code == 2


# Editors


LINES = ["keep: ${n}", "plain: ${p}", "mode: ${m}", "emit: ${e}", "lag: ${l}", "agg: '${a}'"]


@pytest.mark.parametrize("line", [*LINES, "keep: many", "plain: perhaps", "mode: eror", "emit: row"])
def test_the_schema_takes_variables_and_refuses_other_texts(line: str) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    assert validator.is_valid(yaml.safe_load(f"window: count(2)\n{line}\n")) == (line in LINES)
