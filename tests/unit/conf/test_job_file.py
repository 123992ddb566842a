"""Job files: what they may say, and every mistake in them, told at once with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.docs_pages import text_of
from support.places import mistakes
from wincli.cli.run.request import parse_job
from wincli.conf.job_file import read_job_file
from wincli.windowing.errors import ConfigError, SpecError, WincliError

HEAD = "input: in\noutput: out\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(text: str, **flags: Any) -> str:
    """What is told of a job file with mistakes."""
    Path("j.yaml").write_text(text)
    with pytest.raises(WincliError) as caught:
        parse_job({"paths": ["j.yaml"], **flags})
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
    words = "job file {} cannot be read: No such file or directory; {}"
    with pytest.raises(ConfigError) as near:
        parse_job({"paths": ["nightyl.yaml"]})
    assert str(near.value) == words.format("nightyl.yaml", "did you mean nightly.yaml?")
    with pytest.raises(ConfigError) as far:
        parse_job({"paths": ["jobs/x.yml"]})
    assert str(far.value) == words.format("jobs/x.yml", "check the path")


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
    assert told(MISTAKES[case]["file"]) == MISTAKES[case]["says"]


def test_a_spec_error_of_a_file_is_one() -> None:
    Path("j.yaml").write_text(HEAD + "window: dleta(ts, 60)\n")
    with pytest.raises(SpecError) as caught:
        parse_job({"paths": ["j.yaml"]})
    assert (caught.value.source, caught.value.span.start) == ("dleta(ts, 60)", 0)


# All at once

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
    text += "\nkeep: ten\n"
    Path("nightly.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        parse_job({"paths": ["nightly.yaml"]})
    assert f"```\nwincli: error: {caught.value}\n```" in text_of("jobs")
