"""Job files: what they may say, variables in their values, and every mistake in them, told at once with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from support.docs_pages import text_of
from support.in_process import done
from support.places import mistakes
from support.processes import manifest
from wincli.cli.commands import schema_text
from wincli.cli.run.request import parse_job
from wincli.conf.job import Job
from wincli.conf.job_file import read_job_file
from wincli.windowing.errors import ConfigError, WincliError

HEAD = "input: in\noutput: out\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, *variables: str, **flags: Any) -> Job:
    Path("j.yaml").write_text(text)
    return parse_job({"paths": ["j.yaml"], "var": list(variables), **flags})


def told(text: str, *variables: str, **flags: Any) -> str:
    """What is told of a job file with mistakes."""
    with pytest.raises(WincliError) as caught:
        read(text, *variables, **flags)
    return str(caught.value)


# Values


SAID: list[tuple[str, dict[str, Any]]] = [
    ("start: 2026-11-01\norigin: 2026-11-01 06:00:00", {"start": "2026-11-01", "origin": "2026-11-01 06:00:00"}),
    ("lag: 1.50\nmin_gap: 90\nslice_size: 1000", {"lag": "1.50", "min_gap": "90", "slice_size": "1000"}),
    ("keep: 3\nmax_rejects: 0\npartial: true", {"keep": 3, "max_rejects": 0, "partial": True}),
    ("plain: no", {"plain": False}),
    ("input: in\nkey: a, b\nagg: count()", {"input": "in", "key": "a, b", "agg": "count()"}),
    ("input: [in, more]\nagg:\n  - count()", {"input": ["in", "more"], "agg": ["count()"]}),
    ('agg: {n: count(), "p 95": "quantile(x, 0.95)"}', {"agg": ["n=count()", '"p 95"=quantile(x, 0.95)']}),
    (
        'schema: {ts: "timestamp(%y %j, %H:%M)", "a,b": int}',
        {"schema": 'ts:timestamp(%y %j, %H:%M), "a,b":int'},
    ),
    (
        "spark_conf: {spark.ui.enabled: No, spark.executor.memory: 4g, spark.task.cpus: 2}",
        {"spark_conf": {"spark.ui.enabled": "false", "spark.executor.memory": "4g", "spark.task.cpus": "2"}},
    ),
    ("window: >\n  sliding,\n  count(3)", {"window": "sliding, count(3)"}),
    ("window: |\n  sliding,\n  count(3)", {"window": "sliding, count(3)"}),
    ('delimiter: "\\t"', {"delimiter": "\t"}),
    ("expect: windows > 1", {"expect": "windows > 1"}),
    (
        "expect:\n  - windows > 1\n  - {expr: all(a < 3), on_fail: warn}\n  - expr: held = 0",
        {"expect": ["windows > 1", "warn: all(a < 3)", "held = 0"]},
    ),
]


@pytest.mark.parametrize(("text", "values"), SAID)
def test_values_have_the_types_of_their_keys(text: str, values: dict[str, Any]) -> None:
    Path("j.yaml").write_text(text + "\n")
    file = read_job_file("j.yaml")
    assert (file.values, file.problems) == (values, [])


def test_every_value_has_its_line() -> None:
    Path("j.yaml").write_text("input: in\nstages:\n  - window: punct()\n    agg:\n      n: count()\n      s: sum(x)\n")
    lines = read_job_file("j.yaml").lines
    assert lines == {
        ("input",): 1,
        ("stages",): 3,
        ("stages", 0): 3,
        ("stages", 0, "window"): 3,
        ("stages", 0, "agg"): 5,
        ("stages", 0, "agg", 0): 5,
        ("stages", 0, "agg", 1): 6,
    }


# Mistakes


def test_a_file_that_is_not_there() -> None:
    Path("nightly.yaml").touch()
    for path, do in (("nightyl.yaml", "did you mean nightly.yaml?"), ("jobs/x.yml", "check the path")):
        with pytest.raises(ConfigError) as caught:
            parse_job({"paths": [path]})
        assert str(caught.value) == f"job file {path} cannot be read: No such file or directory; {do}"


def test_a_file_that_is_no_text() -> None:
    Path("j.yaml").write_bytes(b"input: \xff\n")
    with pytest.raises(ConfigError, match=r"^j\.yaml is not UTF-8: byte 7; save it as UTF-8$"):
        read_job_file("j.yaml")
    Path("j.yaml").write_bytes(b"input: \x00\n")
    with pytest.raises(ConfigError, match=r"^j\.yaml is no YAML: .*; write plain text$"):
        read_job_file("j.yaml")


MISTAKES = mistakes("job_files")


@pytest.mark.parametrize("case", MISTAKES)
def test_one_mistake_is_one_line_with_its_place(case: str) -> None:
    assert told(MISTAKES[case]["file"], *MISTAKES[case].get("var", ())) == MISTAKES[case]["says"]


MANY = """\
input: in
keep: ten
stages:
  - window: delta(ts
    agg: {n: sum(x), m: 3}
    lag: soon
  - key: user
window: count(2)
keep: 3
mode: append
"""


def test_all_mistakes_are_listed_by_line_with_flags_last() -> None:
    assert told(MANY, progress="loud") == (
        "the job has 10 mistakes; mend them\n"
        "  j.yaml:1: no output is given; say output: PATH, for example output: minutes/\n"
        "  j.yaml:2: keep must be a whole number, not the text ten\n"
        "  j.yaml:4: stages[0].window: this parenthesis is never closed; write it as delta(attribute, amount)\n"
        "    delta(ts\n"
        "         ^\n"
        "  j.yaml:5: stages[0].agg[1] must be text, not the number 3; put it in quotes\n"
        "  j.yaml:6: stages[0].lag 'soon' is no duration: expected a number, found 'soon'; "
        "write it as 10, 1.5s or 5m\n"
        "  j.yaml:7: no window is given in stages[1]; say window: SPEC, for example window: 'delta(ts, 60)'\n"
        "  j.yaml:8: key 'window' is of a single window, and there are stages; say it in a stage\n"
        "  j.yaml:9: key 'keep' is in line 2, too; write it once\n"
        "  j.yaml:10: mode cannot be 'append'; known: error, overwrite\n"
        "  --progress cannot be 'loud'; known: auto, plain, json, none"
    )


def test_docs_show_the_messages_of_job_files() -> None:
    text = (
        "input: in\noutput: out\nstate: s\nagregates: [count()]\nstages:\n  - window: count(2)\n  - window: delta(ts\n"
    )
    Path("nightly.yaml").write_text(f"{text}\nkeep: ten\n")
    with pytest.raises(ConfigError) as caught:
        parse_job({"paths": ["nightly.yaml"]})
    assert f"```\nwincli: error: {caught.value}\n```" in text_of("jobs")


# Variables


def test_a_variable_of_the_command_line_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("rows", "3")
    for given, window in (((), "count(3)"), (("rows=5",), "count(5)"), (("rows=5", "rows=6"), "count(6)")):
        assert read(HEAD + "window: count(${rows})\n", *given).stages[0].window == window
    assert told(HEAD + "window: count(2)\n", "rosw=2").startswith("--var rosw: j.yaml has no ${rosw}; ")


def test_variables_stand_in_values_of_all_kinds() -> None:
    text = """\
input: ["${in}/a", "${in}/b"]
output: ${in}/out
keep: ${number}
max_rejects: "${number}"
spark_conf: {spark.x: "${number}g"}
mode: ${mode}
stages:
- name: ${mode}
  window: delta(ts, ${d})
  key: ${key}
  agg: {n: "count()", m: "max(${col})"}
  where: name = 'a${col}'
  lag: ${d}
  event_time: ts
- {window: count(2), plain: "${switch}", output_format: csv}
"""
    names = ["in=logs", "d=60", "key=7", "col=x", "number=12", "switch=true", "mode=overwrite"]
    job = read(text, *names)
    stage, last = job.stages
    assert (job.input, job.output) == (("logs/a", "logs/b"), "logs/out")
    assert (stage.name, stage.window, stage.key, stage.where) == ("overwrite", "delta(ts, 60)", ("7",), "name = 'ax'")
    assert (stage.agg, last.plain) == (("n=count()", "m=max(x)"), True)
    assert (job.keep, job.max_rejects, job.mode, job.spark_conf) == (12, 12, "overwrite", {"spark.x": "12g"})


def test_dollars_that_are_no_variables_stay() -> None:
    text = HEAD + "window: count(2)\nwhere: \"name = 'a$$b$' or name = '$${x}' or name = '$1'\"\n"
    assert read(text).stages[0].where == "name = 'a$$b$' or name = '${x}' or name = '$1'"
    assert read("input: a$$b\noutput: out\nwindow: count(2)\n").input == ("a$b",)


SECRET = "hunter2hunter2"


def test_a_secret_variable_is_refused_where_results_would_record_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_TOKEN", "PASSWORD"):
        monkeypatch.setenv(name, SECRET)
    for line in ("where: name = '${API_TOKEN}'", "spark_conf: {spark.x: '${API_TOKEN}'}"):
        said = told(HEAD + f"window: count(2)\n{line}\n")
        assert "names ${API_TOKEN}, whose name says that it is secret, and results record this value as it is" in said
        assert "hunter2" not in said
    setting, line = "spark.hadoop.fs.s3a.secret.key", "window: count(2)\nspark_conf: {%s: '${API_TOKEN}'}\n"
    assert read(HEAD + line % setting).spark_conf == {setting: SECRET}
    path = "hdfs://me:{}@host/a"
    assert read(f"input: {path.format('${PASSWORD}')}\noutput: out\nwindow: count(2)\n").input == (path.format(SECRET),)
    assert "hunter2" not in told(HEAD + "window: count(2)\n", f"my password={SECRET}")


KEYS = ["KEY", "KEY_COLUMN", "sort_key", "user_key", "Keyspace"]


@pytest.mark.parametrize("name", [*KEYS, "API_KEY", "AWS_ACCESS_KEY_ID", "DB_PASSWORD", "GITHUB_TOKEN", "ssh_key"])
def test_a_secret_of_the_environment_is_known_by_its_name_and_a_key_of_rows_is_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "user")
    text = HEAD + f"window: count(2)\nkey: ${{{name}}}\n"
    if name in KEYS:
        assert read(text).stages[0].key == ("user",)
    else:
        assert f"key names ${{{name}}}, whose name says" in told(text)


def test_the_manifest_records_values_and_test_and_plan_take_variables(tmp_path: Path) -> None:
    Path("log.csv").write_text("ts,x\n1,5\n2,6\n3,7\n")
    Path("j.yaml").write_text("input: log.csv\noutput: ${out}\nwindow: count(${rows})\nwhere: x > ${least}\n")
    words = ["--var", "rows=2", "--var", "least=5", "--var", "out=o"]
    for command in ("plan", "run"):
        done(tmp_path, command, "j.yaml", *words)
    job = manifest(tmp_path / "o")["job"]
    assert (job["stages"][0]["window"], job["stages"][0]["where"]) == ("count(2)", "x > 5")
    assert "${" not in json.dumps(job)
    case = {"name": "two", "given": "ts,x\n1,6\n2,7\n", "expect": "count\n2\n"}
    Path("j.test.yaml").write_text(json.dumps({"cases": [case]}))
    done(tmp_path, "test", "j.yaml", *words)
    done(tmp_path, "test", "j.yaml", code=2)


LINES = ["keep: ${n}", "plain: ${p}", "mode: ${m}", "emit: ${e}", "lag: ${l}", "agg: '${a}'"]


@pytest.mark.parametrize("line", [*LINES, "keep: many", "plain: perhaps", "mode: eror", "emit: row"])
def test_the_schema_for_editors_takes_variables_and_refuses_other_texts(line: str) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    assert validator.is_valid(yaml.safe_load(f"window: count(2)\n{line}\n")) == (line in LINES)
