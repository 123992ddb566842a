"""Job files: YAML to the values of a job, each with its line.

The types of a key are those in the JSON Schema of job files. Values keep their text in the file: ``start: 2026-11-01``
and ``lag: 1.50`` are texts to a job, whatever types they have in YAML.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from ..windowing.errors import ConfigError, did_you_mean, nearest, short
from ..windowing.language.tokens import column_text
from ..windowing.support.redaction import MASK, is_secret
from .job import BESIDE, GONE, SHARED_KEYS, SINGLE_KEYS, Job, Stage, defaults
from .option_values import expectation_text
from .problems import Location, Problem, location
from .yaml_nodes import describe, kind_of, read_root, retyped, text_of

# Variables in the values of job files: ``${NAME}`` is what ``--var`` says of it, else an environment variable.


_IN_PATH = re.compile(r"\$\$|\$\{([^}]*)\}")
_IN_TEXT = re.compile(r"\$\$(?=\{)|\$\{([^}]*)\}")  # outside of paths a lone ``$$`` has always stood for itself
_DOOR_KEY = re.compile(r"(access|account|api|encryption|master|private|secret|ssh|storage)_?key", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

PATTERN = r"\$\{[^}]*\}"
"""What a text with a variable has in it, as a regular expression."""


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables that the values of a job file may name.

    ``given``: those of ``--var``, which win over the environment.
    ``used``: the names that the file has.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def expand(self, text: str, *, may_be_secret: bool = True) -> str:
        """Return a text with each ``${NAME}`` expanded; ``$${`` stands for ``${``.

        ``may_be_secret``: whether results that record the text leave out what is secret in it. Raises `ConfigError`,
        whose text follows the name of a key, for a name without a value, and for a secret where it would be recorded.
        """
        return _IN_TEXT.sub(lambda found: self._value(found[1], may_be_secret), text)

    def expand_path(self, path: str) -> str:
        """Return a path with ``~`` at its beginning and each ``${NAME}`` expanded; ``$$`` stands for ``$``.

        Raises as `expand` does, and where there is no such home folder.
        """
        home = re.match(r"~[^/]*", path)
        if home:
            folder = os.path.expanduser(home[0])  # noqa: PTH111 - Path would take ~ for a name where there is no home
            if folder == home[0]:
                raise ConfigError(f"begins with {home[0]}, and there is no such home folder", "write ./~ for that name")
            path = folder.replace("$", "$$") + path[home.end() :]
        return _IN_PATH.sub(lambda found: self._value(found[1], may_be_secret=True), path)

    def _value(self, name: str | None, may_be_secret: bool) -> str:
        if name is None:
            return "$"
        self.used.add(name)
        value = self.given.get(name, os.environ.get(name))
        if value is None:
            do = f"set it, say --var {name}=VALUE, or write $${{ for these characters themselves"
            if near := nearest(name, [*self.given, *os.environ]):
                do = f"did you mean ${{{near}}}?"
            elif not _NAME.fullmatch(name):
                do = "a name has letters, digits and _; write $${ for these characters themselves"
            raise ConfigError(f"names ${{{name}}}, and no such variable is set", do)
        is_door_key = _DOOR_KEY.search(name) is not None
        if not may_be_secret and (is_door_key or is_secret(re.sub("key", "", name, flags=re.IGNORECASE))):
            what = f"names ${{{name}}}, whose name says that it is secret, and results record this value as it is"
            raise ConfigError(what, "use secrets in paths and settings of Spark, or call it by another name")
        return value


def given_variables(texts: Iterable[str]) -> dict[str, str]:
    """Return the variables of ``--var``; of one that is given twice the last. Raises `ConfigError` for a wrong text."""
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not _NAME.fullmatch(name):
            word = re.split(r"[^\w.-]", text, maxsplit=1)[0]
            seen = f"{name}={MASK}" if sign else word if word == text else word + MASK
            raise ConfigError(f"--var {short(repr(seen))} is not NAME=VALUE", "write for example --var day=2026-11-01")
        found[name] = value
    return found


# The JSON Schema of job files (draft 2020-12), by which editors and the parser of job files check them.
#
# It is the schema of the model with three differences: the keys of a single window are at the top, a list may be one
# text, and a key that is left out has its default.


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


_TYPE_NAMES = {
    "string": "text",
    "array": "a list of texts",
    "object": "a mapping",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_REQUIRED = ("window", "stages", "input", "output")
_PATHS = ("input", "output", "state")
_REDACTED = (*BESIDE, "master", "lineage")
"""Keys besides paths of which results record what is not secret."""
_SYNONYMS = {  # keys of other tools, and keys that people try first
    "aggregate": "agg", "aggregates": "agg", "aggregations": "agg", "columns": "schema", "types": "schema",
    "keys": "key", "order": "order_by", "sort": "sort_by", "group": "group_by",
    "in": "input", "inputs": "input", "source": "input", "out": "output", "outputs": "output", "spec": "window",
    "steps": "stages", "from": "start", "to": "end", "until": "end", "spark": "spark_conf",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobFile:
    """The content of a job file.

    ``path``: the path of the file.
    ``values``: key to value, in the form of the file. A wrong value is left out, a wrong item of a list is empty.
    ``lines``: location to line, from 1; wrong values have their lines, too.
    ``problems``: what is wrong in the file.
    ``variables``: what its values may name.
    """

    path: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Location, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    variables: Variables = field(default_factory=Variables)

    def line(self, at: Location) -> int:
        """Return the line of a location, or of the nearest one that contains it and has a line."""
        return next((self.lines[at[:count]] for count in range(len(at), 0, -1) if at[:count] in self.lines), 1)


def read_job_file(path: str, given: Mapping[str, str] | None = None) -> JobFile:
    """Read a job file and collect the problems of keys and values. Raises `ConfigError` where it is no mapping.

    ``given``: the variables of ``--var``; the file must name each of them.
    """
    file = read_keys(path, read_root(path), given)
    for name in file.variables.given:
        if name not in file.variables.used:
            error = ConfigError(f"--var {name}: {path} has no ${{{name}}}", did_you_mean(name, file.variables.used))
            file.problems.append(Problem(("var",), None, error, named=False))
    return file


def read_keys(path: str, root: yaml.MappingNode, given: Mapping[str, str] | None = None) -> JobFile:
    """Read the keys of a job from a mapping of the file ``path``, and collect their problems."""
    file = JobFile(path, variables=Variables(given or {}))
    schema = file_schema()
    keys = schema["properties"]
    for key, node in _keys(root, (), keys, file):
        file.lines[(key,)] = node.start_mark.line + 1
        if key == "stages":
            file.values[key] = _stages(node, schema["$defs"]["stage"]["properties"], file)
        else:
            _put(file.values, (key,), node, keys[key], file)
    for key in SINGLE_KEYS if "stages" in file.values else ():
        if (key,) in file.lines and key not in SHARED_KEYS:  # it belongs into a stage
            file.values.pop(key, None)
            error = ConfigError(f"key {key!r} is of a single window, and there are stages", "say it in a stage")
            file.problems.append(Problem((key,), file.lines[(key,)], error, named=False))
    return file


def _keys(
    root: yaml.MappingNode, at: Location, known: Mapping[str, Any], file: JobFile
) -> Iterator[tuple[str, yaml.Node]]:
    seen: dict[str, int] = {}
    for key_node, node in root.value:
        key, line = str(key_node.value), key_node.start_mark.line + 1
        if key in seen:
            error = ConfigError(f"key {key!r} is in line {seen[key]}, too", "write it once")
            file.problems.append(Problem((*at, key), line, error, named=False))
        elif key not in known:
            error, meant = _unknown(key, at, known, node)
            if meant in _REQUIRED and meant not in {str(each.value) for each, _ in root.value}:
                key = "window" if meant == "stages" else meant  # a second problem would say that it is missing
            file.problems.append(Problem((*at, key), line, error, named=False))
        else:
            yield key, node
        seen.setdefault(key, line)


def _unknown(key: str, at: Location, known: Mapping[str, Any], node: yaml.Node) -> tuple[ConfigError, str]:
    """Return the error for a key, and the known key that was meant; the same where nobody can tell."""
    where = f" in {location(at)}" if at else ""
    if at and key in file_schema()["properties"]:
        return ConfigError(f"key {key!r}{where} is of the whole job", "say it beside stages"), key
    if key in GONE:
        return ConfigError(f"the key {key!r}{where} is gone: {GONE[key]}", "leave it out"), key
    near = nearest(key, [*known, *_SYNONYMS])
    meant = _SYNONYMS.get(near, near) if near else None
    if meant == "window" and isinstance(node, yaml.SequenceNode):
        meant = "stages"
    if meant is None or meant not in known:
        return ConfigError(f"unknown key {key!r}{where}", "wincli schema prints all keys"), key
    return ConfigError(f"unknown key {key!r}{where}", f"did you mean {meant!r}?"), meant


def _stages(node: yaml.Node, keys: Mapping[str, Any], file: JobFile) -> list[dict[str, Any]]:
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        what = "is empty" if isinstance(node, yaml.SequenceNode) else f"must be a list of windows, not {describe(node)}"
        _wrong(("stages",), node, file, what, "write each as - window: SPEC")
        return []
    stages: list[dict[str, Any]] = []
    for index, each in enumerate(node.value):
        at = ("stages", index)
        file.lines[at] = each.start_mark.line + 1
        stages.append({})
        if not isinstance(each, yaml.MappingNode):
            _wrong(at, each, file, f"must be keys and values, not {describe(each)}", "write it as - window: SPEC")
            continue
        for key, value in _keys(each, at, keys, file):
            file.lines[(*at, key)] = value.start_mark.line + 1
            _put(stages[-1], (*at, key), value, keys[key], file)
    return stages


# Values


def _put(values: dict[str, Any], at: Location, node: yaml.Node, schema: Mapping[str, Any], file: JobFile) -> None:
    types = types_of(schema)
    value: Any = None
    if isinstance(node, yaml.ScalarNode):
        value = _scalar(at, node, types, file)
    elif isinstance(node, yaml.SequenceNode) and "array" in types:
        read = _expectation if at == ("expect",) else _item
        value = [read((*at, index), each, ("string",), file) for index, each in enumerate(node.value)]
    elif isinstance(node, yaml.MappingNode) and "object" in types:
        value = _mapping(at, node, types_of(schema["additionalProperties"]), file)
    else:
        do = _quotes(types) if node.flow_style else None  # {date} or [a] may be meant as text
        _wrong(at, node, file, f"must be {_of(types)}, not {describe(node)}", do)
    if value is not None:
        values[str(at[-1])] = value


def _item(at: Location, node: yaml.Node, types: tuple[str, ...], file: JobFile) -> Any:
    file.lines[at] = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        _wrong(at, node, file, f"must be {_of(types)}, not {describe(node)}", None)
        return ""
    got = _scalar(at, node, types, file)
    return "" if got is None else got


def _expectation(at: Location, node: yaml.Node, types: tuple[str, ...], file: JobFile) -> Any:
    """Return an expectation as text, also one that is written as ``{expr: .., on_fail: ..}``."""
    if not isinstance(node, yaml.MappingNode):
        return _item(at, node, types, file)
    known = file_schema()["properties"]["expect"]["items"]["properties"]
    found = {key: _item((*at, key), each, types, file) for key, each in _keys(node, at, known, file)}
    file.lines[at] = node.start_mark.line + 1
    try:
        return expectation_text(found["expr"], found.get("on_fail", "fail")) if found.get("expr") else ""
    except ConfigError as error:
        _wrong(at, node, file, error.what, error.do)
        return ""


def _scalar(at: Location, node: yaml.ScalarNode, types: tuple[str, ...], file: JobFile) -> Any:
    key = next(step for step in at if isinstance(step, str) and step != "stages")
    try:
        # With its variables expanded, and in a path ``~``; its type is that of the text which results.
        value = node.value
        if key in _PATHS:
            value = file.variables.expand_path(value) if kind_of(node) == "string" else value
        elif "$" in value:
            is_masked = key in _REDACTED or (key == "spark_conf" and is_secret(str(at[-1])))
            value = file.variables.expand(value, may_be_secret=is_masked)
        node = retyped(node, value, is_text="string" in types)
    except ConfigError as error:
        _wrong(at, node, file, error.what, error.do)
        return None
    kind = kind_of(node)
    if kind == "null":
        _wrong(at, node, file, "has no value", "give it one, or leave it out")
    elif kind not in types and not (kind == "integer" and "number" in types):
        found = describe(node, at[0] == "spark_conf")
        _wrong(at, node, file, f"must be {_of(types)}, not {found}", _quotes(types))
    elif kind == "boolean":
        return yaml.SafeLoader.bool_values[node.value.lower()]
    elif kind == "string" or types != ("integer",):
        return text_of(node)
    elif re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", node.value):
        return int(node.value)
    else:
        _wrong(
            at, node, file, f"must be a whole number, not {short(node.value)}", "write it in at most 18 plain digits"
        )
    return None


def _quotes(types: tuple[str, ...]) -> str | None:
    return "put it in quotes" if "string" in types else None


def _mapping(at: Location, node: yaml.MappingNode, types: tuple[str, ...], file: JobFile) -> Any:
    known = {str(key.value): None for key, _ in node.value}
    items = list(_keys(node, at, known, file))
    if at[-1] in ("agg", "let", *BESIDE):
        texts = ((name, _item((*at, index), each, types, file)) for index, (name, each) in enumerate(items))
        return [f"{column_text(name)}={text}" if text else "" for name, text in texts]
    values = {name: _item((*at, name), each, types, file) for name, each in items}
    if at[-1] == "schema":
        quoted = {name: '"' + name.replace('"', '""') + '"' for name in values if re.search(r'[,:"]|^\s|\s$', name)}
        types_of_columns = ", ".join(f"{quoted.get(name, name)}:{text}" for name, text in values.items())
        return types_of_columns if all(values.values()) else None
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}


def _wrong(at: Location, node: yaml.Node, file: JobFile, what: str, do: str | None) -> None:
    file.problems.append(Problem(at, node.start_mark.line + 1, ConfigError(what, do)))


def _of(types: tuple[str, ...]) -> str:
    return " or ".join(_TYPE_NAMES[each] for each in types)
