"""Job files: YAML to the values of a job, each with its line.

The types of a key are those in the JSON Schema of job files. Values keep their text in the file: ``start: 2026-11-01``
and ``lag: 1.50`` are texts to a job, whatever types they have in YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from ...windowing.errors import ConfigError
from ...windowing.language.canonical import column_text
from ...windowing.support.addresses.redaction import is_secret
from ...windowing.support.suggest import did_you_mean, nearest, short
from ..expectations import expectation_text
from ..job import SHARED_KEYS, SINGLE_KEYS
from ..problems import Location, Problem, location
from .schema import file_schema, types_of
from .variables import Variables
from .yaml_nodes import describe, kind_of, read_root, retyped, text_of

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
_REDACTED = ("enrich", "master", "lineage")
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
    _check_beside(file)
    return file


def _keys(
    root: yaml.MappingNode, at: Location, known: Mapping[str, Any], file: JobFile
) -> Iterator[tuple[str, yaml.Node]]:
    """Yield the known keys of a mapping, each once."""
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
    return [_stage(("stages", index), each, keys, file) for index, each in enumerate(node.value)]


def _stage(at: Location, node: yaml.Node, keys: Mapping[str, Any], file: JobFile) -> dict[str, Any]:
    values: dict[str, Any] = {}
    file.lines[at] = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        _wrong(at, node, file, f"must be keys and values, not {describe(node)}", "write it as - window: SPEC")
        return values
    for key, value in _keys(node, at, keys, file):
        file.lines[(*at, key)] = value.start_mark.line + 1
        _put(values, (*at, key), value, keys[key], file)
    return values


def _check_beside(file: JobFile) -> None:
    """Report keys of a single window beside ``stages``: they belong into a stage."""
    for key in SINGLE_KEYS if "stages" in file.values else ():
        if (key,) in file.lines and key not in SHARED_KEYS:
            file.values.pop(key, None)
            error = ConfigError(f"key {key!r} is of a single window, and there are stages", "say it in a stage")
            file.problems.append(Problem((key,), file.lines[(key,)], error, named=False))


# Values


def _put(values: dict[str, Any], at: Location, node: yaml.Node, schema: Mapping[str, Any], file: JobFile) -> None:
    """Put the value of a key into ``values`` if its type is allowed, else add a problem."""
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
    """Return text, a whole number or a boolean, or None after a problem. A number stays text where text is allowed."""
    key = next(step for step in at if isinstance(step, str) and step != "stages")
    try:
        node = _expanded(key, at, node, types, file)
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


def _expanded(key: str, at: Location, node: yaml.ScalarNode, types: tuple[str, ...], file: JobFile) -> yaml.ScalarNode:
    """Return a value with its variables expanded, and in a path ``~``; its type is that of the text which results.

    Raises `ConfigError` as `Variables.expand` does.
    """
    if key in _PATHS:
        value = file.variables.expand_path(node.value) if kind_of(node) == "string" else node.value
    elif "$" not in node.value:
        return node
    else:
        is_masked = key in _REDACTED or (key == "spark_conf" and is_secret(str(at[-1])))
        value = file.variables.expand(node.value, may_be_secret=is_masked)
    return retyped(node, value, is_text="string" in types)


def _quotes(types: tuple[str, ...]) -> str | None:
    return "put it in quotes" if "string" in types else None


def _mapping(at: Location, node: yaml.MappingNode, types: tuple[str, ...], file: JobFile) -> Any:
    """Return aggregates, new columns and types in the form of flags, and settings of Spark as a mapping of texts."""
    known = {str(key.value): None for key, _ in node.value}
    items = list(_keys(node, at, known, file))
    if at[-1] in ("agg", "enrich", "let"):
        texts = ((name, _item((*at, index), each, types, file)) for index, (name, each) in enumerate(items))
        return [f"{column_text(name)}={text}" if text else "" for name, text in texts]
    values = {name: _item((*at, name), each, types, file) for name, each in items}
    if at[-1] == "schema":
        return ", ".join(f"{_column(name)}:{text}" for name, text in values.items()) if all(values.values()) else None
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}


def _column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if re.search(r'[,:"]|^\s|\s$', name) else name


def _wrong(at: Location, node: yaml.Node, file: JobFile, what: str, do: str | None) -> None:
    file.problems.append(Problem(at, node.start_mark.line + 1, ConfigError(what, do)))


def _of(types: tuple[str, ...]) -> str:
    return " or ".join(_TYPE_NAMES[each] for each in types)
