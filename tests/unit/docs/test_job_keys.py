"""``docs/jobs.md`` tells every key: what it may be and what it is when nobody says anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from support.docs_pages import rows_of
from wincli.conf.job import SINGLE_KEYS, defaults
from wincli.conf.job_file import file_schema, types_of

TYPES = {
    "string": "text",
    "array": "list",
    "object": "mapping",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}
DEFAULTS = {"agg": "count()", "at_end": "flush; with a state hold", "delimiter": '","'}
REQUIRED = ("input", "output", "window")


def words(schema: Mapping[str, Any]) -> str:
    """A type as the tables say it."""
    if "enum" in schema:
        return "|".join(schema["enum"])
    named = [TYPES[each] for each in types_of(schema)]
    return " or ".join(filter(None, [", ".join(named[:-1]), named[-1]]))


def shown(key: str) -> str | None:
    """A default as the tables say it; None where they use words of their own."""
    if key in DEFAULTS:
        return DEFAULTS[key]
    value = defaults().get(key)
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


def tables() -> list[Any]:
    schema = file_schema()
    whole, stage = schema["properties"], schema["$defs"]["stage"]["properties"]
    found = [(row, whole) for row in rows_of("jobs", "Keys of the job")]
    found += [(row, stage) for row in rows_of("jobs", "Keys of a window")]
    return [pytest.param(*each, id=each[0][0]) for each in found]


def test_every_key_is_in_its_table() -> None:
    schema = file_schema()
    assert {row[0] for row in rows_of("jobs", "Keys of the job")} == set(schema["properties"]) - set(SINGLE_KEYS)
    assert [row[0] for row in rows_of("jobs", "Keys of a window")] == list(schema["$defs"]["stage"]["properties"])


@pytest.mark.parametrize(("row", "known"), tables())
def test_key(row: list[str], known: Mapping[str, Any]) -> None:
    key, type_, default, meaning = row
    assert type_ == words(known[key])
    assert default == (shown(key) or default)
    is_stage_output = key == "output" and "name" in known
    assert (default == "must be given") == (key in REQUIRED and not is_stage_output)
    assert meaning, "says nothing"
