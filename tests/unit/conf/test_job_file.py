"""Job files: what they may say, and every mistake in them, told at once with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.docs_pages import text_of
from wincli.cli.run.request import parse_job
from wincli.conf.job_file import read_job_file
from wincli.windowing.errors import ConfigError, SpecError, WincliError

HEAD = "input: in\noutput: out\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(text: str) -> dict[str, Any]:
    Path("j.yaml").write_text(text)
    file = read_job_file("j.yaml")
    assert file.problems == []
    return file.values


def told(text: str, **flags: Any) -> str:
    """What is told of a job file with mistakes."""
    Path("j.yaml").write_text(text)
    with pytest.raises(WincliError) as caught:
        parse_job({"paths": ["j.yaml"], **flags})
    return str(caught.value)


# Values


def test_texts_stay_as_they_are_written() -> None:
    text = (
        "start: 2026-11-01\norigin: 2026-11-01 06:00:00\nlag: 1.50\nmin_gap: 90\nsplit_size: 64MiB\nslice_size: 1000\n"
    )
    assert said(text) == {
        "start": "2026-11-01",
        "origin": "2026-11-01 06:00:00",
        "lag": "1.50",
        "min_gap": "90",
        "split_size": "64MiB",
        "slice_size": "1000",
    }


def test_numbers_and_booleans() -> None:
    assert said("keep: 3\npartial: true\nplain: no\nmax_rejects: 0\n") == {
        "keep": 3,
        "partial": True,
        "plain": False,
        "max_rejects": 0,
    }


def test_lists_may_be_one_text() -> None:
    assert said("input: in\nkey: a, b\nagg: count()\n") == {"input": "in", "key": "a, b", "agg": "count()"}
    assert said("input: [in, more]\nkey: [a, b]\nagg:\n  - count()\n") == {
        "input": ["in", "more"],
        "key": ["a", "b"],
        "agg": ["count()"],
    }


def test_mappings_become_what_flags_say() -> None:
    text = 'agg: {n: count(), "p 95": "quantile(x, 0.95)"}\nschema: {ts: "timestamp(%y %j, %H:%M)", "a,b": int}\n'
    assert said(text) == {
        "agg": ["n=count()", '"p 95"=quantile(x, 0.95)'],
        "schema": 'ts:timestamp(%y %j, %H:%M), "a,b":int',
    }
    text = "spark_conf: {spark.ui.enabled: No, spark.executor.memory: 4g, spark.task.cpus: 2}\n"
    assert said(text) == {
        "spark_conf": {"spark.ui.enabled": "false", "spark.executor.memory": "4g", "spark.task.cpus": "2"}
    }


def test_text_over_several_lines_is_one_line() -> None:
    assert said("window: >\n  sliding,\n  count(3)\n") == {"window": "sliding, count(3)"}
    assert said("window: |\n  sliding,\n  count(3)\n") == {"window": "sliding, count(3)"}
    assert said('delimiter: "\\t"\n') == {"delimiter": "\t"}


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


# Files that hold no keys and values

NO_KEYS = {
    "nothing": ("", "j.yaml says nothing; a job needs window (or stages), input and output"),
    "comments": ("# soon\n", "j.yaml says nothing; a job needs window (or stages), input and output"),
    "a list": (
        "\n- window: count(2)\n",
        "j.yaml:2: a job file consists of keys and values; write for example window: count(3)",
    ),
    "a tab": (
        "input: in\n\toutput: out\n",
        "j.yaml:2: this is no YAML: found character '\\t' that cannot start any token; use spaces, not tabs",
    ),
    "a bracket left open": (
        "input: [in\noutput: out\n",
        "j.yaml:2: this is no YAML: expected ',' or ']', but got ':'; "
        "write key: value, texts with special characters in quotes",
    ),
    "a glob that YAML takes for something else": (
        "output: out\ninput: *.csv\n",
        "j.yaml:2: this is no YAML: expected alphabetic or numeric character, but found '.'; "
        "write key: value, texts with special characters in quotes",
    ),
    "two documents": (
        "input: in\n---\ninput: in\n",
        "j.yaml:2: this is no YAML: but found another document; "
        "write key: value, texts with special characters in quotes",
    ),
}


@pytest.mark.parametrize("case", NO_KEYS)
def test_no_keys_and_values(case: str) -> None:
    text, words = NO_KEYS[case]
    assert told(text) == words


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


# One mistake

ONE = HEAD + "window: count(2)\n"
STAGES = HEAD + "stages:\n  - window: count(2)\n"
MISTAKES = {
    "an unknown key": (ONE + "agregates: [count()]", "j.yaml:4: unknown key 'agregates'; did you mean 'agg'?"),
    "a flag's name": (ONE + "order-by: ts", "j.yaml:4: unknown key 'order-by'; did you mean 'order_by'?"),
    "a word of another tool": (ONE + "sort: a", "j.yaml:4: unknown key 'sort'; did you mean 'sort_by'?"),
    "a key that is gone": (
        ONE + "unsafe_commit: true",
        "j.yaml:4: the key 'unsafe_commit' is gone: results are in no store that does not compare versions; leave it "
        "out",
    ),
    "a key like no other": (ONE + "xyzzy: 1", "j.yaml:4: unknown key 'xyzzy'; wincli schema prints all keys"),
    "an unknown key in a stage": (
        STAGES + "    widnow: x",
        "j.yaml:5: unknown key 'widnow' in stages[0]; did you mean 'window'?",
    ),
    "a key of the job in a stage": (
        STAGES + "    state: s",
        "j.yaml:5: key 'state' in stages[0] is of the whole job; say it beside stages",
    ),
    "a key of a window beside stages": (
        STAGES + "key: user",
        "j.yaml:5: key 'key' is of a single window, and there are stages; say it in a stage",
    ),
    "a key twice": (ONE + "input: on", "j.yaml:4: key 'input' is in line 1, too; write it once"),
    "an aggregate twice": (
        ONE + "agg:\n  n: count()\n  n: sum(x)",
        "j.yaml:6: key 'n' is in line 5, too; write it once",
    ),
    "a number for a text": (
        ONE + "key: 7",
        "j.yaml:4: key must be text or a list of texts, not the number 7; put it in quotes",
    ),
    "a boolean for a text": (
        ONE + "marks: no",
        "j.yaml:4: marks must be text, not the yes-or-no value no; put it in quotes",
    ),
    "a text for a number": (ONE + 'keep: "5"', "j.yaml:4: keep must be a whole number, not the text 5"),
    "a number that is not whole": (ONE + "keep: 2.5", "j.yaml:4: keep must be a whole number, not the number 2.5"),
    "a number that others read otherwise": (
        ONE + "keep: 010",
        "j.yaml:4: keep must be a whole number, not 010; write it in at most 18 plain digits",
    ),
    "a text for a boolean": (ONE + 'plain: "yes"', "j.yaml:4: plain must be true or false, not the text yes"),
    "no value": (ONE + "key:", "j.yaml:4: key has no value; give it one, or leave it out"),
    "a list where none may be": (ONE + "state: [a]", "j.yaml:4: state must be text, not a list; put it in quotes"),
    "braces without quotes": (
        "input: {date}\noutput: o\nwindow: count(2)",
        "j.yaml:1: input must be text or a list of texts, not a mapping; put it in quotes",
    ),
    "a mapping in a list": (
        ONE + "agg:\n  - n: count()",
        "j.yaml:5: agg[0] must be text, not a mapping",
    ),
    "a call cut at its commas": (
        ONE + "key: [a, 0.95]",
        "j.yaml:4: key[1] must be text, not the number 0.95; put it in quotes",
    ),
    "an object of Python": (
        ONE + "marks: !!python/name:os.system x",
        "j.yaml:4: marks must be text, not python/name:os.system x; put it in quotes",
    ),
    "stages that are none": (
        HEAD + "stages: count(2)",
        "j.yaml:3: stages must be a list of windows, not the text count(2); write each as - window: SPEC",
    ),
    "no stages": (HEAD + "stages: []", "j.yaml:3: stages is empty; write each as - window: SPEC"),
    "a stage that is none": (
        HEAD + "stages:\n  - count(2)",
        "j.yaml:4: stages[0] must be keys and values, not the text count(2); write it as - window: SPEC",
    ),
    "no inputs": ("input: []\noutput: o\nwindow: count(2)", "j.yaml:1: input is empty; name at least one"),
    "no window": (
        HEAD,
        "j.yaml:1: no window is given; say window: SPEC, for example window: 'delta(ts, 60)'",
    ),
    "no window in a stage": (
        STAGES + "  - key: user",
        "j.yaml:5: no window is given in stages[1]; say window: SPEC, for example window: 'delta(ts, 60)'",
    ),
    "no output": (
        "window: count(2)\ninput: in",
        "j.yaml:1: no output is given; say output: PATH, for example output: minutes/",
    ),
    "a word that is none of those": (ONE + "emit: row", "j.yaml:4: emit cannot be 'row'; did you mean 'rows'?"),
    "a number out of range": (
        ONE + "keep: 0",
        "j.yaml:4: keep cannot be 0; it is at least 1",
    ),
    "a window that does not read": (
        HEAD + "window: delta(ts",
        "j.yaml:3: window: this parenthesis is never closed; write it as delta(attribute, amount)\n"
        "  delta(ts\n"
        "       ^",
    ),
    "an aggregate that does not read": (
        STAGES + "    agg:\n      - count()\n      - sum(x",
        "j.yaml:7: stages[0].agg[1]: this parenthesis is never closed; write it as [NAME=]FUNCTION(COLUMN, ..)\n"
        "  sum(x\n"
        "     ^",
    ),
    "a type that is none": (
        ONE + "schema: {a: int, ts: tmestamp}",
        "j.yaml:4: schema: unknown type 'tmestamp'; did you mean 'timestamp'?\n"
        "  a:int, ts:tmestamp\n"
        "            ^^^^^^^^",
    ),
    "no duration": (
        ONE + "lag: soon",
        "j.yaml:4: lag 'soon' is no duration: expected a number, found 'soon'; write it as 10, 1.5s or 5m",
    ),
    "no origin": (
        ONE + "origin: 2026-13-01",
        "j.yaml:4: origin '2026-13-01' is no date or time; write 2026-11-01 or 2026-11-01T06:00",
    ),
    "no size": (
        ONE + "split_size: big",
        "j.yaml:4: split_size 'big' is not a size; write it as 64MiB, 1GiB or a number of bytes",
    ),
    "a name that is none": (
        STAGES + "    name: a/b",
        "j.yaml:5: stages[0].name 'a/b' is no name of a stage; "
        "use letters, digits, '-', '_' and '.', and begin with a letter or digit",
    ),
    "a name twice": (
        STAGES + "  - window: count(3)\n    name: stage-1",
        "j.yaml:6: stages[1].name 'stage-1' is the name of stages[0], too; name each stage apart",
    ),
    "the last stage's output": (
        STAGES + "    output: o",
        "j.yaml:5: stages[0].output is that of the last stage, which is written to the output of the job; "
        "say it beside stages, or as OUT",
    ),
    "the form of what is not written": (
        STAGES + "    plain: true\n  - window: count(3)",
        "j.yaml:5: stages[0].plain is of no use, for the stage is not written; say its output, too",
    ),
    "a wrong word for all stages": (
        STAGES + "  - window: count(3)\nat_end: stop",
        "j.yaml:6: at_end cannot be 'stop'; known: flush, drop, hold",
    ),
    "hold without a state": (
        ONE + "at_end: hold",
        "j.yaml:4: at_end hold keeps open windows in a state, and there is none; name a state, or say flush or drop",
    ),
    "a start without an end": (
        ONE + "start: 2026-11-01",
        "j.yaml:4: start needs an end; a range is half open: start is the first of it, end the first after it",
    ),
    "an end without a start": (
        ONE + "end: 2026-11-01",
        "j.yaml:4: end needs a start; a range is half open: start is the first of it, end the first after it",
    ),
    "an end before its start": (
        ONE + "start: 2026-11-02\nend: 2026-11-01",
        "j.yaml:5: --end 2026-11-01 is not after --start 2026-11-02; the end is the first that is left out",
    ),
    "jobs of nothing": (
        ONE + "jobs: 2",
        "j.yaml:4: jobs runs units of a range at the same time, and there is no range; say start and end",
    ),
    "redo of nothing": (
        ONE + "redo: true",
        "j.yaml:4: redo runs units of a range again, and there is no range; say start and end",
    ),
    "late rows without a state": (
        ONE + "late: redo",
        "j.yaml:4: late redo runs again from a state, and there is none; name a state, or say reject",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_one_mistake_is_one_line_with_its_place(case: str) -> None:
    text, words = MISTAKES[case]
    assert told(text + "\n") == words


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
