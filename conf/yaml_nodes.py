"""A YAML file as nodes, which have their lines and keep their texts; and the errors where it is no YAML."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import yaml

from ..windowing.errors import ConfigError, nearest, short
from ..windowing.support.redaction import MASK

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
