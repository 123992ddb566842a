"""Compare the results below two paths: unit by unit, by digests where these tell, else row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from ....readers.values.types import arrow_type
from ....windowing.columns.row_hashes import RowHasher
from ....windowing.errors import ConfigError, did_you_mean
from ....windowing.kinds.registry import kind_of
from ....windowing.language.parser import parse_window
from ....windowing.language.spec import HIDDEN
from ....windowing.planning.result_schema import FIXED, MARK, OUTPUTS, ROW, STEP
from ....windowing.ports import Split
from ....windowing.support.value_table import value_table
from ....writers.state.layout import is_state
from ...console.table import is_number
from ..results.result import ResultFolder, StoredRows, results_at_path
from .changes import (
    Columns,
    Difference,
    Tally,
    changes_of,
    largest,
    leftovers,
    order_of,
    tally_of,
    with_hashes,
    without_equals,
)

# The results below two paths, unit by unit, and the columns by which their windows are compared.


WINDOW, *BOUNDS = FIXED[:3]
NUMBER = HIDDEN + WINDOW
"""The name of a window number that is read and not compared."""


@dataclass(slots=True)
class UnitDiff:
    """The results of one unit on both sides, and how they differ, once they are compared.

    ``unit``: its label; empty where each side is one result.
    ``a``, ``b``: the results; None where a side has none.
    ``columns``: the columns that were compared; None where nothing was.
    """

    unit: str
    a: ResultFolder | None
    b: ResultFolder | None
    tally: Tally = field(default_factory=Tally)
    columns: Columns | None = None

    @property
    def rows(self) -> tuple[int | None, int | None]:
        """The rows of each side, mark-only rows included; None where a side has no result."""
        a, b = (None if each is None else int(each.manifest["rows_out"]) for each in (self.a, self.b))
        return a, b

    @property
    def by_digest(self) -> bool:
        """Whether manifests alone show that both have the same rows: their columns and digests are equal."""
        return self.has_digests and self.a.manifest["digest"] == self.b.manifest["digest"]  # type: ignore[union-attr]

    @property
    def has_digests(self) -> bool:
        if self.a is None or self.b is None:
            return False
        sides = (self.a.manifest, self.b.manifest)
        one, other = (sorted((each["name"], each["type"]) for each in side["schema"]) for side in sides)
        return all(side.get("digest") for side in sides) and one == other

    @property
    def differs(self) -> bool:
        return None in self.rows or bool(self.tally.total) or (self.columns is not None and self.columns.differ)


def pairs_of(a: str, b: str) -> list[UnitDiff]:
    """Return the results below two paths by unit, in order of their labels.

    Raises `InputError` where there is no result, `ConfigError` for a state, and where one path is a single result and
    the other has those of a range.
    """
    sides: list[dict[str, ResultFolder]] = []
    for path in (a, b):
        if is_state(path):
            raise ConfigError(f"{path} is a state", "name the outputs of its units")
        found = results_at_path(path, "is no result of wincli", "name the folder that a run wrote")
        is_single = found[0].is_single
        sides.append({})
        for each in found[:1] if is_single else found:
            if not isinstance(each.manifest.get("rows_out"), int) or not {"parts", "schema"} <= each.manifest.keys():
                raise each.no_manifest()
            sides[-1]["" if is_single else each.label] = each
    single = [path for path, results in zip((a, b), sides, strict=True) if list(results) == [""]]
    if len(single) == 1:
        other = b if single[0] == a else a
        what = f"{single[0]} is one result, and {other} has those of a range"
        raise ConfigError(what, "name two results, or the outputs of two ranges")
    return [UnitDiff(unit, sides[0].get(unit), sides[1].get(unit)) for unit in sorted({*sides[0], *sides[1]})]


def columns_of(results: Sequence[ResultFolder], request: DiffRequest) -> Columns:
    """Return the columns by which the results of a unit are compared, one or two.

    The identity is what the user names, or key, groups, bounds, and the numbers of rows where rows are emitted. The
    columns to compare are those that the user names, or all others but the number of the window, which a window more or
    less before it changes, and the stream columns, which place rows among those of other keys. Raises `ConfigError` for
    a column that a side lacks, and one to sort by that is no number.
    """
    by, chosen, sort = request.by, request.columns, request.sort
    schemas = [schema_of(each) for each in results]
    first, last = schemas[0], schemas[-1]
    common = [name for name in first.names if name in last.names]
    for option, name in (*(("--by", name) for name in by), *(("--columns", name) for name in chosen)):
        if name not in common:
            raise ConfigError(f"{option}: not both results have a column {name!r}", did_you_mean(name, common))
    types = {name: (str(first.field(name).type), str(last.field(name).type)) for name in common}
    retyped = {name: both for name, both in types.items() if both[0] != both[1]}
    streams = [each.manifest.get("stream") or {"order": ()} for each in results]
    stream = {MARK, *(name for each in streams for name in (*each["order"], *each.get("own", ())))}
    stream = {name for name in stream if name.startswith("_")}
    overlaps = any(kind_of(parse_window(each.manifest["spec"])).needs.overlaps for each in results)
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
    numbers = [name for name in values if is_number(first.field(name).type)]
    if sort is not None and sort not in numbers:
        what = f"--sort: {sort!r} is no column of numbers that is compared"
        raise ConfigError(what, f"name one of {', '.join(numbers) or 'another pair of results'}")
    fields = [first.field(name) for name in (*identity, *values)]
    schema = pa.schema([*fields, *([first.field(WINDOW).with_name(NUMBER)] if number else [])])
    return Columns(
        identity,
        values,
        schema,
        request.tolerance,
        sort,
        number,
        tuple(name for name in first.names if name not in common),
        tuple(name for name in last.names if name not in common),
        retyped,
    )


def schema_of(result: ResultFolder) -> pa.Schema:
    """Return the columns of a result in the types of its manifest, without dictionaries.

    A type that the manifest has in words alone, such as a list, is that of the files.
    """
    columns = [(each["name"], arrow_type(each["type"])) for each in result.manifest["schema"]]
    return pa.schema([(name, kind or result.schema.field(name).type) for name, kind in columns])


def _identity(names: Sequence[str], bounds: Sequence[str]) -> Iterator[str]:
    """Yield what identifies a row: key and groups, bounds, window number, its output, and its place in the pane."""
    if WINDOW in names:
        yield from names[: names.index(WINDOW)]
        yield from bounds
        yield WINDOW
    if OUTPUTS[0] in names and OUTPUTS[1] in names:
        yield OUTPUTS[1]
    yield from (name for name in (STEP, ROW) if name in names)


@dataclass(frozen=True, slots=True)
class DiffRequest:
    """What is to be compared, and how.

    ``a``, ``b``: the paths, each a result or the outputs of a range.
    ``by``: the columns that make a window; none: key, groups and bounds.
    ``columns``: the columns to compare; none: all but those of the stream.
    ``tolerance``: as in `Columns`.
    ``sort``: as in `Columns`.
    ``head``: how many differences to list; None: all.
    """

    a: str
    b: str
    by: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    tolerance: float = 0.0
    sort: str | None = None
    head: int | None = 20


@dataclass(frozen=True, slots=True)
class Diff:
    """How two results, or those of two ranges, differ.

    ``units``: each unit that a side has, by label.
    ``listed``: the differences with the largest effect, the largest first.
    ``sort``: the numeric columns by which they are sorted.
    """

    units: Sequence[UnitDiff]
    tally: Tally
    listed: tuple[Difference, ...]
    sort: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return any(unit.differs for unit in self.units)


def compare(request: DiffRequest, units: Sequence[UnitDiff] | None = None) -> Diff:
    """Compare the results of units; None: of all below the two paths. Raises what `pairs_of` and `columns_of` raise."""
    units = pairs_of(request.a, request.b) if units is None else units
    listed: list[Difference] = []
    tally, sort = Tally(), dict[str, None]()
    for unit in units:
        if unit.by_digest:
            continue
        one, other = (None if side is None else replace(side) for side in (unit.a, unit.b))  # closed after the unit
        columns = unit.columns = columns_of([each for each in (one, other) if each is not None], request)
        a, b = _tables(one, other, columns), _tables(other, one, columns)
        decides = RowHasher(pa.schema([each for each in columns.schema if each.name != columns.number]))
        for lot in leftovers(a, b, [rows or 0 for rows in unit.rows], columns):
            both = without_equals(*(with_hashes(side, decides) for side in lot)) if columns.number else lot
            if not request.columns:
                unit.tally.renumbered += lot[0].num_rows - both[0].num_rows
            changes = changes_of(columns, *both)
            unit.tally.add(tally_of(changes))
            listed = sorted([*listed, *largest(changes, unit.unit, request.head)], key=order_of)[: request.head]
        tally.add(unit.tally)
        sort |= dict.fromkeys(columns.numeric)
    return Diff(units, tally, tuple(listed), tuple(sort))


def _tables(result: ResultFolder | None, other: ResultFolder | None, columns: Columns) -> Iterator[pa.Table]:
    """Yield the rows of one side that can differ from those of the other, in the types of the comparison.

    Mark-only rows are left out, and parts with equal digests cancel each other unread. ``result``: the side; None: it
    has no rows.
    """
    if result is None:
        return
    skipped = []
    if other is not None and not columns.differ:
        left, mine = ([part.get("digest") for part in side.manifest["parts"]] for side in (other, result))
        for part, digest in zip(result.manifest["parts"], mine, strict=True):
            if digest is not None and left.count(digest) == mine.count(digest):
                skipped.append(part["name"])
    schema, names = columns.schema, list(columns.schema.names)
    wanted = [name for name in names if name != NUMBER] + ([WINDOW] if columns.number else [])
    wanted += [MARK] if MARK in result.schema.names else []
    for table in without_files(result.rows, skipped).tables(list(dict.fromkeys(wanted))):
        rows = without_marks(table)
        if columns.number:  # the number of the window stands apart: where it has bounds, these say which window it is
            number, at = rows[WINDOW], rows.schema.get_field_index(WINDOW)
            rows = rows.append_column(NUMBER, number)
            if BOUNDS[0] in rows.column_names:
                own = pc.if_else(pc.is_valid(rows[BOUNDS[0]]), pa.scalar(None, number.type), number)
                rows = rows.set_column(at, WINDOW, own)
        yield rows.select(names).cast(schema)


def without_marks(rows: pa.Table) -> pa.Table:
    """Return the rows of a result that are not only marks."""
    return rows.filter(pc.fill_null(pc.not_equal(rows[MARK], "only"), True)) if MARK in rows.column_names else rows


def without_files(rows: StoredRows, skipped: Sequence[str]) -> StoredRows:
    """Return stored rows without those of some files, by their names in the folder."""
    if not skipped:
        return rows
    source, names = rows.source, set(skipped)
    kept = value_table(Split, (split for split in source.splits if source.names[split.file] not in names))
    return StoredRows(replace(source, splits=kept))
