"""``docs/jobs.md`` has every key of a job file in the row of its type; its option says the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from support.docs_pages import rows_of
from wincli.conf.job import SINGLE_KEYS
from wincli.conf.job_file import file_schema, types_of

TYPES = {
    "string": "text",
    "array": "list",
    "object": "mapping",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}
NO_OPTION = {"input", "output", "stages", "name"}


def words(schema: Mapping[str, Any]) -> str:
    """A type as the tables say it."""
    if "enum" in schema:
        return "one of the words of the option"
    named = [TYPES[each] for each in types_of(schema)]
    return " or ".join(filter(None, [", ".join(named[:-1]), named[-1]]))


def keys() -> dict[str, Mapping[str, Any]]:
    """The keys below each heading of the page, with what the schema says of them."""
    schema = file_schema()
    whole, stage = schema["properties"], schema["$defs"]["stage"]["properties"]
    return {
        "Keys of the job": {name: each for name, each in whole.items() if name not in SINGLE_KEYS},
        "Keys of a window": stage,
    }


@pytest.mark.parametrize("heading", ["Keys of the job", "Keys of a window"])
def test_every_key_is_in_the_row_of_its_type(heading: str) -> None:
    wanted: dict[str, set[str]] = {}
    for name, schema in keys()[heading].items():
        wanted.setdefault(words(schema), set()).add(name)
    told = {kind: [name.split()[0] for name in names.split(", ")] for kind, names in rows_of("jobs", heading)}
    assert {kind: set(names) for kind, names in told.items()} == wanted
    assert all(len(names) == len(set(names)) for names in told.values())


def test_every_key_is_an_option_with_the_same_words() -> None:
    flags = {row[0].split(",")[0].split(" ")[0]: row[0] for row in rows_of("options", "All options")}
    for known in keys().values():
        for name, schema in known.items():
            flag = "--" + name.replace("_", "-")
            assert name in NO_OPTION or flag in flags, name
            if "enum" in schema:
                assert set(flags[flag].split()[-1].split("|")) == set(schema["enum"]), name
