"""Compare the results below two paths: unit by unit, by digests where these tell, else row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.columns.row_hashes import RowHasher
from ....windowing.errors import ConfigError
from ....windowing.planning.result_schema import MARK
from ....windowing.ports import Split
from ....windowing.support.value_table import value_table
from ...console.table import is_number
from ..results.result import ResultFolder, StoredRows
from .changes import Comparison, Difference, Tally, changes_of, largest, order_of, tally_of
from .leftovers import WAITING, leftovers, without_equals
from .result_pairs import BOUNDS, NUMBER, WINDOW, Columns, ResultPair, columns_of, pairs_of


@dataclass(frozen=True, slots=True)
class DiffRequest:
    """What is to be compared, and how.

    ``a``, ``b``: the paths, each a result or the outputs of a range.
    ``by``: the columns that make a window; none: key, groups and bounds.
    ``columns``: the columns to compare; none: all but those of the stream.
    ``tolerance``: as in `Comparison`.
    ``sort``: as in `Comparison`.
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
class UnitDiff:
    """How the results of one unit differ.

    ``unit``: its label; empty where each side is one result.
    ``windows_a``, ``windows_b``: the rows of each side, mark-only rows included; None where a side has no result.
    ``by_digest``: whether the digests of the manifests are equal, and no row was read.
    ``has_digests``: whether both have digests, and the same columns.
    ``tally``: what differs.
    ``columns``: the columns that were compared; None where nothing was.
    """

    unit: str
    windows_a: int | None
    windows_b: int | None
    by_digest: bool
    has_digests: bool
    tally: Tally
    columns: Columns | None

    @property
    def differs(self) -> bool:
        """Whether windows or columns differ, or only one side has a result."""
        is_single = self.windows_a is None or self.windows_b is None
        return is_single or bool(self.tally.total) or (self.columns is not None and self.columns.differ)


@dataclass(frozen=True, slots=True)
class Diff:
    """How two results, or those of two ranges, differ.

    ``request``: what was compared, and how.
    ``units``: each unit that a side has, by label.
    ``tally``: what differs in all of them.
    ``listed``: the differences with the largest effect, the largest first.
    ``sort``: the numeric columns by which they are sorted.
    """

    request: DiffRequest
    units: tuple[UnitDiff, ...]
    tally: Tally
    listed: tuple[Difference, ...]
    sort: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return any(unit.differs for unit in self.units)


def compare(request: DiffRequest, waiting: int = WAITING) -> Diff:
    """Compare the results below two paths.

    ``waiting``: as `leftovers` has it. Raises what `pairs_of` and `columns_of` raise.
    """
    return compare_pairs(request, pairs_of(request.a, request.b), waiting)


def compare_pairs(request: DiffRequest, pairs: Sequence[ResultPair], waiting: int = WAITING) -> Diff:
    """Compare results that are open already. Raises what `columns_of` raises."""
    units: list[UnitDiff] = []
    listed: list[Difference] = []
    tally, sort = Tally(), dict[str, None]()

    def take(found: Sequence[Difference]) -> None:
        listed.extend(found)
        listed.sort(key=order_of)
        del listed[len(listed) if request.head is None else request.head :]

    for pair in pairs:
        unit, numeric = _compare_pair(request, pair, take, waiting)
        tally.add(unit.tally)
        sort.update(dict.fromkeys(numeric))
        units.append(unit)
    return Diff(request, tuple(units), tally, tuple(listed), tuple(sort))


def _compare_pair(
    request: DiffRequest, pair: ResultPair, take: Callable[[Sequence[Difference]], None], waiting: int
) -> tuple[UnitDiff, tuple[str, ...]]:
    """Compare the results of one unit; return also the numeric columns by which differences are sorted."""
    rows = [None if each is None else int(each.manifest["rows_out"]) for each in (pair.a, pair.b)]
    found = UnitDiff(pair.unit, rows[0], rows[1], pair.is_alike, pair.has_digests, Tally(), None)
    if pair.is_alike:
        return found, ()
    one, other = (None if side is None else side.open() for side in (pair.a, pair.b))
    columns = columns_of([each for each in (one, other) if each is not None], request.by, request.columns)
    comparison = _comparison(request, columns)
    a, b = _Rows(one, other, columns).tables(), _Rows(other, one, columns).tables()
    decides = RowHasher(pa.schema([each for each in columns.schema if each.name != columns.number]))
    for in_a, in_b in leftovers(a, b, (rows[0] or 0, rows[1] or 0), columns.schema, columns.identity, waiting):
        pairs = without_equals(in_a, in_b, columns.schema, decides) if columns.number else (in_a, in_b)
        if not request.columns:
            found.tally.renumbered += in_a.num_rows - pairs[0].num_rows
        changes = changes_of(comparison, *pairs)
        found.tally.add(tally_of(changes))
        take(largest(changes, pair.unit, request.head))
    return replace(found, columns=columns), comparison.numeric


def _comparison(request: DiffRequest, columns: Columns) -> Comparison:
    sort = request.sort
    if sort is not None and (sort not in columns.values or not is_number(columns.schema.field(sort).type)):
        what = f"--sort: {sort!r} is no column of numbers that is compared"
        raise ConfigError(what, f"name one of {', '.join(_numbers(columns)) or 'another pair of results'}")
    return Comparison(columns.identity, columns.values, columns.schema, request.tolerance, sort)


def _numbers(columns: Columns) -> list[str]:
    return [name for name in columns.values if is_number(columns.schema.field(name).type)]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one side that can differ from those of the other: parts with equal digests cancel each other unread.

    ``result``: the side; None: it has no rows.
    ``other``: the other side.
    ``columns``: those to read.
    """

    result: ResultFolder | None
    other: ResultFolder | None
    columns: Columns

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, without mark-only ones, in the types of the comparison."""
        if self.result is None:
            return
        schema, names = self.columns.schema, list(self.columns.schema.names)
        has_marks = MARK in self.result.schema.names
        wanted = [name for name in names if name != NUMBER]
        wanted += [name for name in (WINDOW if self.columns.number else None, MARK if has_marks else None) if name]
        for table in without_files(self.result.rows, self._skipped()).tables(list(dict.fromkeys(wanted))):
            rows = table.filter(pc.fill_null(pc.not_equal(table[MARK], "only"), True)) if has_marks else table
            yield (_numbered(rows) if self.columns.number else rows).select(names).cast(schema)

    def _skipped(self) -> list[str]:
        """Return the names of parts whose digest, as often as here, a part of the other side has."""
        if self.result is None or self.other is None or self.columns.differ:
            return []
        left = [part.get("digest") for part in self.other.manifest["parts"]]
        mine = [part.get("digest") for part in self.result.manifest["parts"]]
        skipped = []
        for part in self.result.manifest["parts"]:
            digest = part.get("digest")
            if digest is not None and left.count(digest) == mine.count(digest):
                skipped.append(part["name"])
        return skipped


def _numbered(rows: pa.Table) -> pa.Table:
    """Return rows with the number of their window apart; where it has bounds, these say which window it is."""
    number = rows[WINDOW]
    rows = rows.append_column(NUMBER, number)
    if BOUNDS[0] not in rows.column_names:
        return rows
    at = rows.schema.get_field_index(WINDOW)
    return rows.set_column(at, WINDOW, pc.if_else(pc.is_valid(rows[BOUNDS[0]]), pa.scalar(None, number.type), number))


def without_files(rows: StoredRows, skipped: Sequence[str]) -> StoredRows:
    """Return stored rows without those of some files, by their names in the folder."""
    if not skipped:
        return rows
    source, names = rows.source, set(skipped)
    kept = value_table(Split, (split for split in source.splits if source.names[split.file] not in names))
    return StoredRows(rows.shown, replace(source, splits=kept))
