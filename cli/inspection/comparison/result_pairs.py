"""The results below two paths, unit by unit, and the columns by which their windows are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ....readers.files.listed import ListedFile
from ....readers.files.listing import list_files
from ....readers.files.result_folders import read_manifest
from ....readers.files.walk import MANIFEST
from ....readers.schema.types import arrow_type
from ....windowing.errors import ConfigError, DamagedError, InputError
from ....windowing.kinds.registry import kind_of
from ....windowing.language.parser import parse_window
from ....windowing.language.spec import HIDDEN
from ....windowing.planning.result_schema import FIXED, MARK, OUTPUTS, ROW, STEP
from ....windowing.support.suggest import did_you_mean
from ....writers.state.layout import is_state
from ..results.result import ResultFolder, label_of, open_result_folder

WINDOW, *BOUNDS = FIXED[:3]
NUMBER = HIDDEN + WINDOW
"""The name of a window number that is read and not compared."""


@dataclass(frozen=True, slots=True)
class Side:
    """A result of which only the manifest has been read.

    ``shown``: its folder, as the user wrote it.
    ``manifest``: what its run recorded.
    """

    shown: str
    manifest: Mapping[str, Any]

    def open(self) -> ResultFolder:
        """Open its files. Raises what `open_result_folder` raises."""
        return open_result_folder(self.shown)


@dataclass(frozen=True, slots=True)
class ResultPair:
    """The results of one unit on both sides; None where a side has none.

    ``unit``: the label of the unit; empty where each side is one result.
    ``a``, ``b``: the results.
    """

    unit: str
    a: Side | None
    b: Side | None

    @property
    def is_alike(self) -> bool:
        """Whether manifests alone show that both have the same rows: their columns and digests are equal."""
        return self.has_digests and self.a.manifest["digest"] == self.b.manifest["digest"]  # type: ignore[union-attr]

    @property
    def has_digests(self) -> bool:
        """Whether both sides have digests of the same columns, which can be compared."""
        if self.a is None or self.b is None:
            return False
        one, other = self.a.manifest, self.b.manifest
        return bool(one.get("digest") and other.get("digest")) and _is_same_schema(one, other)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a comparison.

    ``identity``: which make a window: those of its key, its groups and its bounds, and what numbers its rows.
    ``values``: which are compared.
    ``number``: the name under which the number of a window is read where it is not compared; None where it is, or
        where there is none. In the identity a window has its number only where it has no bounds.
    ``only_in_a``, ``only_in_b``: names that one side lacks.
    ``retyped``: names whose types differ, with both types as text; their values are not compared.
    ``schema``: identity, then values, then the number, in the types of the first side.
    """

    identity: tuple[str, ...]
    values: tuple[str, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    retyped: Mapping[str, tuple[str, str]]
    schema: pa.Schema
    number: str | None = None

    @property
    def differ(self) -> bool:
        """Whether the sides have other columns, or columns of other types."""
        return bool(self.only_in_a or self.only_in_b or self.retyped)


def pairs_of(a: str, b: str) -> list[ResultPair]:
    """Return the results below two paths by unit, in order of their labels.

    Raises `InputError` where there is no result, `ConfigError` for a state, and where one path is a single result and
    the other has those of a range.
    """
    sides = [_results(path) for path in (a, b)]
    single = [path for path, found in zip((a, b), sides, strict=True) if list(found) == [""]]
    if len(single) == 1:
        other = b if single[0] == a else a
        what = f"{single[0]} is one result, and {other} has those of a range"
        raise ConfigError(what, "name two results, or the outputs of two ranges")
    return [ResultPair(unit, sides[0].get(unit), sides[1].get(unit)) for unit in sorted({*sides[0], *sides[1]})]


def _results(path: str) -> dict[str, Side]:
    if is_state(path):
        raise ConfigError(f"{path} is a state", "name the outputs of its units")
    manifests = list_files([path], skip_unreadable=True).manifests
    if not manifests:
        raise InputError(f"{path} is no result of wincli", "name the folder that a run wrote")
    base = path.rstrip("/")
    if manifests[0].below == MANIFEST:
        return {"": Side(path, _manifest(manifests[0]))}
    sides = [(label_of(each), f"{base}/{each.below.removesuffix(MANIFEST).rstrip('/')}", each) for each in manifests]
    return {label: Side(shown, _manifest(each)) for label, shown, each in sides}


def _manifest(file: ListedFile) -> dict[str, Any]:
    try:
        manifest = read_manifest(file.place)
        if not isinstance(manifest["rows_out"], int) or not {"parts", "schema"} <= manifest.keys():
            raise ValueError("it lacks a key")
    except (ValueError, KeyError) as error:
        raise DamagedError(f"{file.place.shown} is no manifest of wincli", "write the result again") from error
    return manifest


def columns_of(results: Sequence[ResultFolder], by: Sequence[str] = (), chosen: Sequence[str] = ()) -> Columns:
    """Return the columns by which the results of a unit are compared, one or two.

    ``by``: the identity that the user names; none: key, groups, bounds, and the numbers of rows where rows are emitted.
    ``chosen``: the columns to compare; none: all others but the number of the window, which a window more or less
    before it changes, and the stream columns, which place rows among those of other keys. Raises `ConfigError` for a
    column that a side lacks.
    """
    schemas = [schema_of(each) for each in results]
    first, last = schemas[0], schemas[-1]
    common = [name for name in first.names if name in last.names]
    _check_named("--by", by, common)
    _check_named("--columns", chosen, common)
    types = {name: (str(first.field(name).type), str(last.field(name).type)) for name in common}
    retyped = {name: both for name, both in types.items() if both[0] != both[1]}
    stream = {name for each in results for name in _stream_names(each.manifest)}
    overlaps = any(kind_of(parse_window(each.manifest["spec"])).overlaps for each in results)
    bounds = [name for name in BOUNDS[: 1 + overlaps] if name in types and name not in retyped]
    identity = tuple(by) or tuple(name for name in _identity(first.names, bounds) if name in common)
    if named := next((name for name in identity if name in retyped), None):
        what = f"column {named!r} is {retyped[named][0]} in one result and {retyped[named][1]} in the other"
        raise ConfigError(what, "compare by other columns with --by")
    if not identity:
        raise ConfigError("the results have no window numbers", "say which columns make a row with --by")
    values = tuple(chosen) or tuple(name for name in common if name not in stream)
    values = tuple(name for name in dict.fromkeys(values) if name not in identity and name not in retyped)
    is_left_out = WINDOW in common and WINDOW not in retyped and WINDOW not in (*by, *chosen)
    values = tuple(name for name in values if name != WINDOW or not is_left_out)
    number = NUMBER if is_left_out and (by or bounds) else None
    fields = [first.field(name) for name in (*identity, *values)]
    return Columns(
        identity,
        values,
        tuple(name for name in first.names if name not in common),
        tuple(name for name in last.names if name not in common),
        retyped,
        pa.schema([*fields, *([first.field(WINDOW).with_name(NUMBER)] if number else [])]),
        number,
    )


def _check_named(option: str, names: Sequence[str], common: Sequence[str]) -> None:
    """Raise `ConfigError` for a name that is not among those that both results have."""
    for name in names:
        if name not in common:
            raise ConfigError(f"{option}: not both results have a column {name!r}", did_you_mean(name, common))


def schema_of(result: ResultFolder) -> pa.Schema:
    """Return the columns of a result in the types of its manifest, without dictionaries.

    A type that the manifest has in words alone, such as a list, is that of the files.
    """
    read = result.schema
    fields = []
    for column in result.manifest["schema"]:
        kind = arrow_type(column["type"]) or read.field(column["name"]).type
        fields.append(pa.field(column["name"], kind))
    return pa.schema(fields)


def _identity(names: Sequence[str], bounds: Sequence[str]) -> Iterator[str]:
    """Yield what identifies a row: key and groups, bounds, window number, its output, and its place in the pane."""
    if WINDOW in names:
        yield from names[: names.index(WINDOW)]
        yield from bounds
        yield WINDOW
    if OUTPUTS[0] in names and OUTPUTS[1] in names:
        yield OUTPUTS[1]
    yield from (name for name in (STEP, ROW) if name in names)


def _stream_names(manifest: Mapping[str, Any]) -> list[str]:
    stream = manifest.get("stream") or {"order": (), "own": ()}
    names = {*stream["order"], *stream.get("own", ()), MARK}
    return [name for name in names if name.startswith("_")]


def _is_same_schema(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    columns = [sorted((each["name"], each["type"]) for each in manifest["schema"]) for manifest in (one, other)]
    return columns[0] == columns[1]
