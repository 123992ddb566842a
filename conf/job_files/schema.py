"""The form of a job file as JSON Schema (draft 2020-12): what editors check by, and what the reader of job files does.

It is the schema of the model, but for what only files have: the keys of a single window stand at the top, lists may
be one text, and whoever leaves a key out gets its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..job import SHARED_KEYS, SINGLE_KEYS, Job, Stage, defaults


@cache
def file_schema() -> dict[str, Any]:
    """Return the schema of a whole file. Its lists and mappings are not to be changed."""
    job = _properties(Job.model_json_schema(by_alias=True))
    stage = _properties(Stage.model_json_schema())
    stages = {"type": "array", "description": job["stages"]["description"], "minItems": 1}
    own = {key: stage[key] for key in SINGLE_KEYS}
    beside = [key for key in SINGLE_KEYS if key not in SHARED_KEYS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A job of wincli",
        "description": "One window, or stages of them, over one input. IN and OUT may be given on the command line.",
        "type": "object",
        "properties": {**own, **job, "stages": {**stages, "items": {"$ref": "#/$defs/stage"}}},
        "additionalProperties": False,
        "anyOf": [{"required": ["window"]}, {"required": ["stages"]}],
        "dependentSchemas": {"stages": {"properties": dict.fromkeys(beside, False)}},
        "$defs": {
            "stage": {
                "description": "One window over the rows of the input, or of the stage before.",
                "type": "object",
                "properties": stage,
                "additionalProperties": False,
                "required": ["window"],
            }
        },
    }


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types that a value may have."""
    told = schema["type"]
    return (told,) if isinstance(told, str) else tuple(told)


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _property(key, told) for key, told in schema["properties"].items()}


def _property(key: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of one key: not null, since a key that is not meant is left out; with the real default."""
    given: dict[str, Any] = next((each for each in told.get("anyOf", ()) if each.get("type") != "null"), {})
    kept = {name: value for name, value in {**told, **given}.items() if name not in ("anyOf", "title", "default")}
    return {**kept, "default": defaults()[key]} if key in defaults() else kept
