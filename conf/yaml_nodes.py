"""A YAML file as nodes, which have their lines and keep their texts; and the errors where it is no YAML."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import yaml

from ..windowing.errors import ConfigError, MistakesError, SpecError, WincliError, nearest, short
from ..windowing.support.redaction import MASK
from .job import SINGLE_KEYS
from .options import JOB_OPTIONS, STAGE_OPTIONS

_DEPTH = 20
_TAG = "tag:yaml.org,2002:"
_KINDS = {"str": "string", "timestamp": "string", "int": "integer", "float": "number", "bool": "boolean"}
_SCALAR_NAMES = {
    "string": "the text",
    "integer": "the number",
    "number": "the number",
    "boolean": "the yes-or-no value",
}


JOB = ("job file", "a job needs window (or stages), input and output", "write for example window: count(3)")
"""What is said of a job file: its name, what one that is empty lacks, and an example of a key."""


def read_root(path: str, words: tuple[str, str, str] = JOB) -> yaml.MappingNode:
    """Read the mapping of a file. Raises `ConfigError` with the line where it is none.

    ``words``: what messages say of a file of this sort, as `JOB`.
    """
    root = _parse(path, _text(path, words[0]), words[1])
    nodes, seen = [root], set[int]()
    while nodes:
        node = nodes.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        below = [each for item in node.value for each in (item if isinstance(item, tuple) else (item,))]
        for one, after in pairwise(below) if node.flow_style else ():
            if not isinstance(one, yaml.ScalarNode) or not isinstance(after, yaml.ScalarNode):
                continue
            if one.style is None and one.value.count("(") > one.value.count(")"):
                what = f"{path}:{one.start_mark.line + 1}: the comma after {one.value} ends the value"
                whole = f"{one.value}, {after.value}"
                quoted = f'"{whole}"' if '"' not in whole else "'" + whole.replace("'", "''") + "'"
                raise ConfigError(what, f"put the whole of it in quotes: {quoted}")
        nodes.extend(below)
    if not isinstance(root, yaml.MappingNode):
        line = root.start_mark.line + 1
        raise ConfigError(f"{path}:{line}: a {words[0]} consists of keys and values", words[2])
    return root


def kind_of(node: yaml.ScalarNode) -> str:
    """Return the JSON Schema type of a scalar; dates and times are texts. A tag without such a type is returned."""
    name = node.tag.removeprefix(_TAG)
    return _KINDS.get(name, name)


def retyped(node: yaml.ScalarNode, value: str, is_text: bool) -> yaml.ScalarNode:
    """Return a scalar with another value, of the type that YAML sees in it; ``is_text``: it is a text in any case."""
    if value == node.value:
        return node
    tag = f"{_TAG}str" if is_text else yaml.SafeLoader("").resolve(yaml.ScalarNode, value, (True, False))
    return yaml.ScalarNode(tag, value, node.start_mark, node.end_mark, node.style)


def text_of(node: yaml.ScalarNode) -> str:
    """Return the text of a scalar as the file has it, in one line."""
    return str(node.value).rstrip("\n").replace("\n", " ") if "\n" in node.value else str(node.value)


def describe(node: yaml.Node, is_secret: bool = False) -> str:
    """Return a node in words, as in ``must be text, not ...``; a text that may be secret is masked."""
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    kind = kind_of(node)
    value = MASK if is_secret else short(node.value)
    return "nothing" if kind == "null" else f"{_SCALAR_NAMES.get(kind, kind)} {value}"


def _text(path: str, sort: str) -> str:
    file = Path(path)
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: byte {error.start}", "save it as UTF-8") from None
    except OSError as error:
        near = nearest(file.name, [each.name for each in file.parent.glob("*.y*ml")] if file.parent.is_dir() else [])
        do = f"did you mean {file.with_name(near)}?" if near and not file.exists() else "check the path"
        raise ConfigError(f"{sort} {path} cannot be read: {error.strerror}", do) from None


def _parse(path: str, text: str, needs: str) -> yaml.Node:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        is_tab = "'\\t'" in str(error.problem)
        do = "use spaces, not tabs" if is_tab else "write key: value, texts with special characters in quotes"
        raise ConfigError(f"{path}:{line}: this is no YAML: {error.problem}", do) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML: {str(error).splitlines()[0]}", "write plain text") from None
    except RecursionError:
        raise ConfigError(
            f"{path}:{_deepest(text)}: this is nested too deeply", "write stages, keys and lists"
        ) from None
    if root is None:
        raise ConfigError(f"{path} says nothing", needs)
    return root


def _deepest(text: str) -> int:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH:
            return int(event.start_mark.line) + 1
    return 1


# Problems of a job: where each one is, what is wrong, what to do; and one error for all of them.


Location = tuple[str | int, ...]
"""A location in a job file: ``("stages", 1, "agg", 0)``."""

_EXPRESSIONS = frozenset(
    each.name
    for each in (*STAGE_OPTIONS, *JOB_OPTIONS)
    if each.kind in ("distinct", "expectations", "expression", "lets")
)
"""The options whose texts are expressions: from such a text alone no one can tell which option it is of."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a job.

    ``at``: its location.
    ``line``: its line in the job file, from 1; None for a flag.
    ``error``: what is wrong, and what to do.
    ``named``: whether the text of ``error`` follows the name of the location.
    """

    at: Location
    line: int | None
    error: WincliError
    named: bool = True


def location(at: Location) -> str:
    """Return a location as messages write it: ``stages[1].agg[0]``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).lstrip(".")


def option(key: str) -> str:
    """Return the flag for a key of job files."""
    return "--" + key.replace("_", "-")


def with_keys(advice: str, keys: Container[str]) -> str:
    """Return an advice with keys of a job file in place of the flags for them: ``order_by:``."""

    def key(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return f"{name}:" if name in keys else found[0]

    return re.sub(r"--(?:no-)?([a-z][a-z-]*)", key, advice)


def as_error(problems: Sequence[Problem], path: str | None) -> WincliError:
    """Make one error of at least one problem: those of the job file ``path`` by line, then those of flags."""
    in_file = sorted((each for each in problems if each.line is not None), key=lambda each: each.line or 0)
    errors = [_of_file(each, path) for each in in_file] + [_of_flag(each) for each in problems if each.line is None]
    if len(errors) == 1:
        return errors[0]
    whose = path if len(in_file) == len(errors) else "the job"
    return MistakesError(f"{whose} has {len(errors)} mistakes", "mend them", errors)


def _of_file(problem: Problem, path: str | None) -> WincliError:
    error = problem.error
    name = f"{path}:{problem.line}: " + (location(problem.at) if problem.named else "")
    do = error.do and with_keys(error.do, SINGLE_KEYS)
    if isinstance(error, SpecError):
        return SpecError(f"{name}: {error.what}", error.source, error.span, do)
    return ConfigError(f"{name} {error.what}" if problem.named else name + error.what, do)


def _of_flag(problem: Problem) -> WincliError:
    error = problem.error
    if not problem.named:
        return error
    key = next(step for step in reversed(problem.at) if isinstance(step, str))
    if isinstance(error, SpecError):
        what = f"{option(key)}: {error.what}" if key in _EXPRESSIONS else error.what
        return SpecError(what, error.source, error.span, error.do)
    return ConfigError(f"{option(key)} {error.what}", error.do)
