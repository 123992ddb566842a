"""Files of cases: YAML to values, each mistake with its line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import yaml

from ....conf.job_file import read_keys
from ....conf.yaml_nodes import as_error, describe, kind_of, read_root
from ....readers.files.file import COMPRESSIONS
from ....windowing.errors import ConfigError, did_you_mean, short
from ....windowing.support.formats import SUFFIXES
from .case import Case, CsvRows, GivenRows, ListedRows, Part, Rows, Scalar, StoredFile, Value, float_of

T = TypeVar("T")

WORDS = ("file of cases", "write cases: and a list of them", "write for example cases: [{name: .., given: ..}]")
_FILE_KEYS = ("cases", "options")
_CASE_KEYS = ("name", "options", "tables", "error", "ordered", "check_expectations", "tolerance", "units")
_PART_KEYS = ("given", "expect", "rejects")
_UNIT_KEYS = (*_PART_KEYS, "tables")
_OF_THE_CASE = ("input", "output", "state", "start", "end", "mode")
_DEEPEST = 16
_MERGE = "tag:yaml.org,2002:merge"


def read_cases(path: str) -> tuple[Case, ...]:
    """Read a file of cases, in its order. Raises `ConfigError` with the line of the first mistake."""
    return _Reader(path).file(read_root(path, WORDS))


class _Reader:
    """Reads the nodes of one file.

    ``path``: the path of the file, for messages.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self, root: yaml.MappingNode) -> tuple[Case, ...]:
        keys = self._keys(root, _FILE_KEYS)
        options = self._options(keys)
        items = self._items(keys["cases"], "cases") if "cases" in keys else []
        if not items:
            raise self._error(keys.get("cases", root), "there are no cases", WORDS[2])
        cases: dict[str, Case] = {}
        for node in items:
            case = self._case(node, options)
            if case.name in cases:
                raise ConfigError(f"{self.path}:{case.line}: there are two cases {case.name!r}", "rename one")
            cases[case.name] = case
        return tuple(cases.values())

    def _case(self, node: yaml.Node, options: Mapping[str, Any]) -> Case:
        keys = self._keys(node, (*_CASE_KEYS, *_PART_KEYS))
        if "name" not in keys:
            raise self._error(node, "a case has no name", "write name: and what it shows")
        own = self._options(keys)
        error = self._text(keys["error"], "error") if "error" in keys else None
        name = self._text(keys["name"], "name")
        if "units" not in keys:
            parts = [self._part(None, node, keys)]
        elif beside := [key for key in _PART_KEYS if key in keys]:
            raise self._error(keys[beside[0]], f"{beside[0]} stands beside units", "say it in each unit")
        elif isinstance(units := keys["units"], yaml.MappingNode):
            labels = self._keys(units, None)
            parts = [self._part(label, each, self._keys(each, _UNIT_KEYS)) for label, each in labels.items()]
        else:
            parts = [self._part(None, each, self._keys(each, _UNIT_KEYS)) for each in self._items(units, "units")]
        if not parts:
            raise self._error(keys["units"], "there are no units", "write for example 2026-11-01: {given: ..}")
        return Case(
            name,
            _line(node),
            tuple(sorted(parts, key=lambda part: part.label or "")),
            {**options, **own},
            self._tables(keys) if "units" in keys else {},
            error,
            self._flag(keys, "ordered"),
            self._flag(keys, "check_expectations"),
            self._share(keys["tolerance"], "tolerance") if "tolerance" in keys else 1e-9,
        )

    def _part(self, label: str | None, node: yaml.Node, keys: Mapping[str, yaml.Node]) -> Part:
        if "given" not in keys:
            where = f"unit {label}" if label else "a case"
            raise self._error(node, f"{where} gives no rows", "write given: and rows, or given: [] for none")
        expect = self._named(keys["expect"], "expect", self._rows) if "expect" in keys else None
        rejects = self._rows(keys["rejects"], "rejects") if "rejects" in keys else ListedRows(())
        given = self._named(keys["given"], "given", self._given)
        return Part(label, _line(node), given, self._tables(keys), expect, rejects)

    def _tables(self, keys: Mapping[str, yaml.Node]) -> dict[str, GivenRows]:
        if "tables" not in keys:
            return {}
        return {name: self._given(each, f"tables: {name}") for name, each in self._keys(keys["tables"], None).items()}

    def _options(self, above: Mapping[str, yaml.Node]) -> dict[str, Any]:
        if "options" not in above:
            return {}
        node = above["options"]
        keys = self._keys(node, None)
        if own := next((key for key in _OF_THE_CASE if key in keys), None):
            raise self._error(keys[own], f"options: a case has its own {own}", "leave it out")
        assert isinstance(node, yaml.MappingNode)
        found = read_keys(self.path, node)
        if found.problems:
            raise as_error(found.problems, self.path)
        return found.values

    # Rows

    def _named(self, node: yaml.Node, what: str, read: Callable[[yaml.Node, str], T]) -> dict[str, T]:
        if isinstance(node, yaml.MappingNode):
            return {name: read(each, f"{what}: {name}") for name, each in self._keys(node, None).items()}
        return {"": read(node, what)}

    def _given(self, node: yaml.Node, what: str) -> GivenRows:
        """Return the rows of a node, which may be in a file: a path from the folder of the file of cases."""
        path = self._file_in(node)
        return self._rows(node, what) if path is None else StoredFile(str(path))

    def _rows(self, node: yaml.Node, what: str) -> Rows:
        if (path := self._file_in(node)) is not None:
            if path.suffix.lower() != ".csv":
                raise self._error(node, f"{what}: {path} is no CSV", "write the rows here, or name a file of CSV")
            try:
                text = path.read_text(encoding="utf-8-sig", errors="replace")
            except OSError as error:
                raise self._error(
                    node, f"{what}: {path} cannot be read: {error.strerror}", "name another file"
                ) from None
            if not text.strip():
                raise self._error(node, f"{what}: {path} is empty", "write the names of its columns in its first line")
            return CsvRows(text)
        if isinstance(node, yaml.ScalarNode) and kind_of(node) == "string" and node.value.strip():
            return CsvRows(node.value)
        if isinstance(node, yaml.SequenceNode):
            for row in node.value:
                if not isinstance(row, yaml.MappingNode):
                    wrong = f"a row of {what} must be a mapping, not {describe(row)}"
                    raise self._error(row, wrong, "write {COLUMN: VALUE}")
            return ListedRows(tuple(self._values(row, 0) for row in node.value))
        found = "an empty text" if isinstance(node, yaml.ScalarNode) and not node.value else describe(node)
        do = "write a list of mappings, [] for none, or CSV after |"
        raise self._error(node, f"{what} must be rows, not {found}", do)

    def _file_in(self, node: yaml.Node) -> Path | None:
        """Return the file that a text of one line names by its ending, None where the node is no such text."""
        if not isinstance(node, yaml.ScalarNode) or "\n" in node.value.strip() or "," in node.value:
            return None
        name = PurePosixPath(node.value.strip().lower())
        suffix = PurePosixPath(name.stem).suffix if name.suffix in COMPRESSIONS else name.suffix
        if suffix not in SUFFIXES:
            return None
        path = Path(self.path).parent / node.value.strip()
        if not os.path.isfile(path):  # noqa: PTH113 - no error for a name that no file can have
            raise self._error(node, f"there is no file {path}", "name it from the folder of this file")
        return path

    def _values(self, node: yaml.Node, depth: int) -> dict[str, Value]:
        return {name: self._value(each, depth) for name, each in self._keys(node, None).items()}

    def _value(self, node: yaml.Node, depth: int) -> Value:
        if depth > _DEEPEST:
            raise self._error(node, "a value is nested too deeply", f"nest at most {_DEEPEST} lists and mappings")
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, depth + 1) for each in node.value]
        if isinstance(node, yaml.MappingNode):
            return self._values(node, depth + 1)
        kind = kind_of(node)
        return None if kind == "null" else Scalar(kind, str(node.value))

    # Nodes

    def _keys(self, node: yaml.Node, known: tuple[str, ...] | None) -> dict[str, yaml.Node]:
        """Return the values of a mapping by key, each once; ``known``: the keys that it may have, None: any."""
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f"this must be a mapping, not {describe(node)}", "write KEY: VALUE")
        own = [pair for pair in node.value if pair[0].tag != _MERGE]
        there, merged = {key.value for key, _ in own}, []
        for _, base in (pair for pair in node.value if pair[0].tag == _MERGE):
            if not isinstance(base, yaml.MappingNode) or base is node:
                raise self._error(base, "<< merges a mapping", "write <<: *NAME")
            merged += [pair for pair in base.value if pair[0].value not in there]
        found: dict[str, yaml.Node] = {}
        for key_node, value in (*own, *merged):
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else describe(key_node)
            if known is not None and key not in known:
                raise self._error(key_node, f"unknown key {short(key)!r}", did_you_mean(key, known))
            if key in found:
                raise self._error(key_node, f"key {short(key)!r} is given twice", "write it once")
            found[key] = value
        return found

    def _items(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self._error(node, f"{what} must be a list, not {describe(node)}", "begin each with -")
        return list(node.value)

    def _text(self, node: yaml.Node, what: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null" or not node.value.strip():
            raise self._error(node, f"{what} must be text, not {describe(node)}", "write a text")
        return re.sub(r"\s+", " ", str(node.value)).strip()

    def _flag(self, keys: Mapping[str, yaml.Node], key: str) -> bool:
        node = keys.get(key)
        if node is None:
            return False
        if not isinstance(node, yaml.ScalarNode) or kind_of(node) != "boolean":
            raise self._error(node, f"{key} must be true or false, not {describe(node)}", "write true, or leave it out")
        return bool(yaml.SafeLoader.bool_values[node.value.lower()])

    def _share(self, node: yaml.Node, what: str) -> float:
        found = float_of(str(node.value)) if isinstance(node, yaml.ScalarNode) else None
        if found is None or not 0 <= found < 1:
            raise self._error(node, f"{what} must be a share from 0 to 1, not {describe(node)}", "write 0.01 for 1 %")
        return found

    def _error(self, node: yaml.Node, what: str, do: str) -> ConfigError:
        return ConfigError(f"{self.path}:{_line(node)}: {what}", do)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
