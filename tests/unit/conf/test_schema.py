"""The JSON Schema of job files: what it takes and refuses, and that the reader of job files agrees."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support.docs_pages import ROOT
from wincli.cli.commands import schema_text
from wincli.conf.job import STAGE_KEYS, Job, defaults
from wincli.conf.job_file import read_job_file
from wincli.windowing.errors import WincliError

SCHEMA = json.loads(schema_text())
EXAMPLES = sorted(path for path in (ROOT / "conf" / "examples").glob("*.yaml") if path.suffixes == [".yaml"])


class Texts(yaml.SafeLoader):  # type: ignore[misc] # yaml has no types
    """Reads dates as texts, as editors do and as JSON has them."""


Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if not tag.endswith("timestamp")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def faults(text: str) -> list[str]:
    """What the schema has against a job file."""
    value = yaml.load(text, Loader=Texts)
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(value)]


def is_read(text: str, folder: Path) -> bool:
    """Whether keys and types of a job file are right to its reader."""
    path = folder / "j.yaml"
    path.write_text(text)
    try:
        return not read_job_file(str(path)).problems
    except WincliError:
        return False


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_key_is_there_and_described() -> None:
    job = {field.alias or name for name, field in Job.model_fields.items()}
    stage = SCHEMA["$defs"]["stage"]["properties"]
    assert set(SCHEMA["properties"]) == job | set(STAGE_KEYS) - {"name"}
    assert tuple(stage) == STAGE_KEYS
    for key, told in [*SCHEMA["properties"].items(), *stage.items()]:
        assert told["description"].endswith("."), key
        assert "type" in told, key


def test_defaults_are_the_real_ones() -> None:
    known = {**SCHEMA["$defs"]["stage"]["properties"], **SCHEMA["properties"]}
    assert {key: told["default"] for key, told in known.items() if "default" in told} == defaults()
    for key, value in defaults().items():
        jsonschema.validate(value, known[key])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_right(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    assert faults(text) == []
    assert is_read(text, tmp_path)


def test_there_are_three_examples() -> None:
    assert [path.name for path in EXAMPLES] == ["nightly_sessions.yaml", "peaks.yaml", "rollup.yaml"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
@given(data=st.data())
def test_any_key_with_a_typo_is_refused_by_both(
    path: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A letter of a key twice."""
    job = yaml.load(path.read_text(), Loader=Texts)
    places = [job, *job.get("stages", ())]
    place = data.draw(st.sampled_from(places))
    key = data.draw(st.sampled_from(sorted(place)))
    at = data.draw(st.integers(0, len(key) - 1))
    place[key[:at] + key[at] * 2 + key[at + 1 :]] = place.pop(key)
    text = yaml.safe_dump(job)
    assert faults(text) != []
    assert not is_read(text, tmp_path_factory.getbasetemp())


ONE = "input: in\noutput: out\nwindow: count(2)\n"
RIGHT = {
    "one window": ONE,
    "without IN and OUT": "window: count(2)\n",
    "a list of inputs": "input: [a, b]\nwindow: count(2)\n",
    "aggregates in a mapping": ONE + "agg: {n: count(), s: sum(x)}\n",
    "an aggregate": ONE + "agg: count()\n",
    "types in a mapping": ONE + "schema: {ts: timestamp}\n",
    "settings of Spark": ONE + "spark_conf: {a: 1, b: true, c: 4g, d: 0.5}\n",
    "numbers as durations": ONE + "lag: 1.5\nmin_gap: 3\norigin: 90\n",
    "a date": ONE + "start: 2026-11-01\nend: 2026-11-02\norigin: 2026-11-01\n",
    "stages with what is shared": "stages: [{window: count(2)}]\nat_end: drop\nplain: true\noutput_format: csv\n",
    "stages with names": "stages: [{window: count(2), name: a}, {window: punct(), name: B.b-c_1}]\n",
    "a size of bytes": ONE + "split_size: 1000\nslice_size: 1MiB\n",
}
WRONG = {
    "a typo": ONE + "agregates: [count()]\n",
    "a typo in a stage": "stages: [{window: count(2), kye: a}]\n",
    "a text for a number": ONE + 'keep: "3"\n',
    "a number for a text": ONE + "key: 3\n",
    "a number in a list": ONE + "key: [a, 3]\n",
    "a text for a boolean": ONE + 'plain: "true"\n',
    "a number in aggregates": ONE + "agg: {n: 3}\n",
    "a list of types": ONE + "schema: [ts]\n",
    "nothing for a text": ONE + "state:\n",
    "a key of one window beside stages": "stages: [{window: count(2)}]\nkey: a\n",
    "a key of the job in a stage": "stages: [{window: count(2), state: s}]\n",
    "no stages": "stages: []\n",
    "a stage that is a text": "stages: [count(2)]\n",
}
WRONG_BY_VALUE = {
    "no window": "input: in\n",
    "a stage without a window": "stages: [{key: a}]\n",
    "a word that is none of those": ONE + "mode: append\n",
    "too few": ONE + "keep: 0\n",
    "too many": ONE + "exit_code_noop: 256\n",
    "a delimiter of two": ONE + "delimiter: ab\n",
    "a name with a slash": "stages: [{window: count(2), name: a/b}]\n",
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_is_taken_by_both(case: str, tmp_path: Path) -> None:
    assert faults(RIGHT[case]) == []
    assert is_read(RIGHT[case], tmp_path)


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_by_both(case: str, tmp_path: Path) -> None:
    assert faults(WRONG[case]) != []
    assert not is_read(WRONG[case], tmp_path)


@pytest.mark.parametrize("case", WRONG_BY_VALUE)
def test_values_that_are_wrong_are_refused(case: str) -> None:
    assert faults(WRONG_BY_VALUE[case]) != []
