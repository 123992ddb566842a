"""The JSON Schema of job files: what it takes and refuses, and that the reader of job files agrees."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support.in_process import wincli_here
from support.places import ROOT, mistakes
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


def test_it_is_a_schema_and_is_printed(tmp_path: Path) -> None:
    ran = wincli_here("schema", cwd=tmp_path)
    assert (ran.code, ran.err, ran.out) == (0, "", schema_text() + "\n")
    assert not list(tmp_path.iterdir())
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
    assert stage["window"]["description"] == "The window, such as delta(ts, 60)."  # the help of the flag has quotes
    assert stage["at_end"]["anyOf"][0] == {"enum": ["flush", "drop", "hold"]}


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


def test_there_are_four_examples() -> None:
    assert [path.name for path in EXAMPLES] == ["checkout.yaml", "nightly_sessions.yaml", "peaks.yaml", "rollup.yaml"]


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


FILES = mistakes("schema")


@pytest.mark.parametrize("case", [*FILES["right"], *FILES["wrong"]])
def test_the_schema_and_the_reader_agree_on_what_is_right(case: str, tmp_path: Path) -> None:
    is_right = case in FILES["right"]
    text = FILES["right" if is_right else "wrong"][case]
    assert (not faults(text), is_read(text, tmp_path)) == (is_right, is_right)


@pytest.mark.parametrize("case", FILES["wrong by value"])
def test_values_that_are_wrong_are_refused(case: str) -> None:
    assert faults(FILES["wrong by value"][case]) != []
