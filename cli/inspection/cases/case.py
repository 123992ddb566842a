"""The cases of a job: rows that are given, the windows and rejects that are expected of them, and files of cases."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, TypeVar

import yaml

from ....conf.job_file import read_keys
from ....conf.problems import as_error
from ....conf.yaml_nodes import describe, kind_of, read_root
from ....readers.files.file import COMPRESSIONS
from ....windowing.errors import ConfigError, did_you_mean, printable, short
from ....windowing.support.amounts import count_of
from ....windowing.support.formats import SUFFIXES


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as the file has it.

    ``kind``: ``string``, ``integer``, ``number`` or ``boolean``, as YAML reads it; ``csv`` for a cell of CSV.
    """

    kind: str
    text: str


Value: TypeAlias = "Scalar | list[Any] | dict[str, Any] | None"
"""A value of a row: null, a scalar, or lists and mappings of values."""


Row: TypeAlias = Mapping[str, Value]
"""Values by column."""
Rows: TypeAlias = str | tuple[Row, ...]
"""Rows as CSV with a line of names, or as a list."""
GivenRows: TypeAlias = Rows | Path
"""Rows, or the file that they are in; its name says in which format."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is given to one run, and what is expected of it: a whole case, or one unit of it.

    ``label``: the unit of a range; None: there is no range.
    ``line``: where it begins in the file, from 1.
    ``given``: the rows by input or file; the name of rows that are given without one is empty.
    ``tables``: the rows of enrich tables, by the name of the enrichment.
    ``expect``: the windows by stage; the name of those of the job itself is empty. None: they are not compared.
    ``rejects``: the rows that are rejected.
    """

    label: str | None
    line: int
    given: Mapping[str, GivenRows]
    tables: Mapping[str, GivenRows] = field(default_factory=dict)
    expect: Mapping[str, Rows] | None = None
    rejects: Rows = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    ``line``: where it begins in the file, from 1.
    ``parts``: what is given and expected; several where there are units, which run one after the other.
    ``options``: keys that the job has in this case, as flags.
    ``tables``: the rows of enrich tables that all units share, by the name of the enrichment.
    ``error``: a text in the error that the job ends with; None: it does not fail.
    ``is_ordered``: whether windows must come in the order in which they are expected.
    ``checks_expectations``: whether ``expect`` and ``max_rejects`` of the job hold in this case.
    ``tolerance``: how far a float may be from what is expected, as a share of it.
    """

    name: str
    line: int
    parts: tuple[Part, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, GivenRows] = field(default_factory=dict)
    error: str | None = None
    is_ordered: bool = False
    checks_expectations: bool = False
    tolerance: float = 1e-9

    @property
    def is_range(self) -> bool:
        return self.parts[0].label is not None


# The rows of cases as files that the readers read: CSV as it is written, listed rows as JSON Lines.


_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def write_rows(rows: GivenRows, folder: Path, name: str, delimiter: str) -> None:
    """Write rows to a file ``name`` in a folder; without a suffix that names a format of text it gets one.

    ``delimiter``: that of the job's CSV. Raises `ConfigError` for a name outside of the folder, for CSV under a name
    of JSON Lines, and for a file that cannot be written.
    """
    try:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ConfigError(f"{name} is not in the input of the case", "name a file below the input")
        form = _SUFFIXES.get(path.suffix.lower())
        if form is None and not isinstance(rows, Path):
            form = "csv" if isinstance(rows, str) else "jsonl"
            path = path.with_name(f"{path.name}.{form}")
        if form == "jsonl" and isinstance(rows, str):
            raise ConfigError(f"{name} is JSON Lines, and its rows are CSV", "write its rows as a list of mappings")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(rows, Path):
            shutil.copyfile(rows, target.with_name(target.name.partition(".")[0] + "".join(rows.suffixes[-2:])))
        elif isinstance(rows, str):
            target.write_text(rows.rstrip("\n") + "\n", encoding="utf-8")
        elif form == "csv":
            names = list(dict.fromkeys(name for row in rows for name in row))
            with target.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else delimiter, lineterminator="\n")
                writer.writerow(names)
                writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
        else:
            target.write_text("".join(f"{_json(dict(row))}\n" for row in rows), encoding="utf-8")
    except (OSError, ValueError) as error:  # a name that no file can have is a `ValueError`
        words = error.strerror if isinstance(error, OSError) else error
        what = f"the rows of {printable(name)} cannot be written to a temporary file: {words}"
        raise ConfigError(what, "give the file another name, or name a folder with more room in TMPDIR") from None


def csv_rows(text: str, delimiter: str) -> tuple[Row, ...]:
    """Return the rows of CSV by column; an empty cell is null or an empty text, whichever is found.

    Raises `ConfigError` for a line that has not a value for each column.
    """
    try:
        lines = [line for line in csv.reader(io.StringIO(text), delimiter=delimiter) if line]
    except csv.Error as error:
        raise ConfigError(f"rows of a case are no CSV: {error}", "write them as a list of mappings") from None
    head, body = lines[0], lines[1:]
    for line in body:
        if len(line) != len(head):
            what = f"a line of CSV has {count_of(len(line), 'value')}, and not {len(head)}: {delimiter.join(line)}"
            raise ConfigError(what, f"put values with {delimiter} in quotes")
    return tuple({name: Scalar("csv", cell) for name, cell in zip(head, line, strict=True)} for line in body)


def _cell(value: Value) -> str:
    if value is None:
        return ""
    return value.text if isinstance(value, Scalar) else _json(value)


def _json(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, Scalar):
        return _json_scalar(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    pairs = (f"{json.dumps(name, ensure_ascii=False)}: {_json(each)}" for name, each in value.items())
    return "{" + ", ".join(pairs) + "}"


def _json_scalar(value: Scalar) -> str:
    """Return a scalar as JSON: a number keeps its digits; one that JSON cannot write is the text of the file."""
    if value.kind == "boolean":
        return "true" if value.text.lower() in ("true", "yes", "on", "y") else "false"
    if value.kind in ("integer", "number"):
        if _JSON_NUMBER.fullmatch(value.text):
            return value.text
        number = float_of(value.text)
        if number is not None and math.isfinite(number):
            return repr(number)
    return json.dumps(value.text, ensure_ascii=False)


def float_of(text: str) -> float | None:
    """Return the number that a text is; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None


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
    """Reads the nodes of one file."""

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
        rejects = self._rows(keys["rejects"], "rejects") if "rejects" in keys else ()
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
        return self._rows(node, what) if path is None else path

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
            return text
        if isinstance(node, yaml.ScalarNode) and kind_of(node) == "string" and node.value.strip():
            return str(node.value)
        if isinstance(node, yaml.SequenceNode):
            for row in node.value:
                if not isinstance(row, yaml.MappingNode):
                    wrong = f"a row of {what} must be a mapping, not {describe(row)}"
                    raise self._error(row, wrong, "write {COLUMN: VALUE}")
            return tuple(self._values(row, 0) for row in node.value)
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
