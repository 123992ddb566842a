"""The JSON Schema of job files (draft 2020-12), by which editors and the parser of job files check them.

It is the schema of the model with three differences: the keys of a single window are at the top, a list may be one
text, and a key that is left out has its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..job import SHARED_KEYS, SINGLE_KEYS, Job, Stage, defaults
from .variables import PATTERN


@cache
def file_schema() -> dict[str, Any]:
    """Return the schema of a whole file. It is cached: do not change its lists and mappings."""
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


def printed_schema() -> dict[str, Any]:
    """Return the schema for editors: where a value is no text, or one of some words, it may also be a variable."""
    schema = file_schema()
    stage = schema["$defs"]["stage"]
    own = {key: _or_variable(each) for key, each in stage["properties"].items()}
    keys = {key: _or_variable(each) for key, each in schema["properties"].items()}
    return {**schema, "properties": keys, "$defs": {"stage": {**stage, "properties": own}}}


def _or_variable(schema: Mapping[str, Any]) -> dict[str, Any]:
    variable = {"type": "string", "pattern": PATTERN}
    if "enum" in schema:
        kept = {name: value for name, value in schema.items() if name != "enum"}
        return {**kept, "anyOf": [{"enum": schema["enum"]}, variable]}
    if set(types_of(schema)) <= {"integer", "number", "boolean"}:
        return {**schema, "type": [*types_of(schema), "string"], "pattern": PATTERN}
    return dict(schema)


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types that a schema allows."""
    types = schema["type"]
    return (types,) if isinstance(types, str) else tuple(types)


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _property(key, of_model) for key, of_model in schema["properties"].items()}


def _property(key: str, of_model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of one key: null is not allowed, for a key can be left out; with the default of the job."""
    given: dict[str, Any] = next((each for each in of_model.get("anyOf", ()) if each.get("type") != "null"), {})
    kept = {name: value for name, value in {**of_model, **given}.items() if name not in ("anyOf", "title", "default")}
    return {**kept, "default": defaults()[key]} if key in defaults() else kept
