"""Rows that are expected against rows that are found: which belong together, and which cells differ.

The rows of a case are few: this module goes through them one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ....windowing.errors import ConfigError
from ....windowing.support.suggest import did_you_mean
from .case import Value
from .cells import is_same, text_of_expected, text_of_found


@dataclass(frozen=True, slots=True)
class RowPair:
    """A row that is expected and the one that is most like it, of which one may be missing.

    ``expected``, ``found``: the texts of its cells, in the order of the columns; None: there is no such row.
    ``differs``: for each column whether the two differ.
    ``at``: the number of the row that was found; None: there is none.
    """

    expected: tuple[str, ...] | None
    found: tuple[str, ...] | None
    differs: tuple[bool, ...]
    at: int | None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Rows that are not as expected.

    ``what``: which rows, in words.
    ``columns``: the columns that are compared.
    ``pairs``: the rows that differ; none where only their order does.
    ``same``: how many rows are as expected.
    """

    what: str
    columns: tuple[str, ...]
    pairs: tuple[RowPair, ...]
    same: int


def compare(
    what: str, expected: Sequence[Mapping[str, Value]], found: pa.Table, is_ordered: bool, tolerance: float
) -> Mismatch | None:
    """Compare rows in the columns that are expected; return None where each has its row.

    ``what``: which rows they are, in words. Raises `ConfigError` for a column that is not there.
    """
    columns = tuple(dict.fromkeys(name for row in expected for name in row)) or _own(found)
    for name in columns:
        if name not in found.column_names and (found.num_rows or found.column_names):
            raise ConfigError(f"{what} have no column {name!r}", did_you_mean(name, found.column_names))
    cells = [{name: found[name][at] for name in columns} for at in range(found.num_rows)]
    same = [[_fits(row, cell, tolerance) for cell in cells] for row in expected]
    match = _match(same)
    if len(match) == len(expected) == len(cells):
        in_order = not is_ordered or all(match[at] == at for at in match)
        return None if in_order else Mismatch(what, columns, (), len(match))
    left = [at for at in range(len(expected)) if at not in match]
    others = [at for at in range(len(cells)) if at not in match.values()]
    return Mismatch(what, columns, _pairs(columns, expected, cells, left, others, tolerance), len(match))


def _own(found: pa.Table) -> tuple[str, ...]:
    return tuple(name for name in found.column_names if not name.startswith("_"))


def _fits(row: Mapping[str, Value], cells: Mapping[str, pa.Scalar], tolerance: float) -> bool:
    return all(is_same(value, cells[name], tolerance) for name, value in row.items())


def _match(same: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Return, for as many expected rows as possible, a row that was found, each once.

    Rows may name different columns, so the first row that fits may be the only one for another: augmenting paths find
    the most pairs.
    """
    owner: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        in_turn = sorted((at for at, fits in enumerate(same[row]) if fits), key=lambda at: at in owner)
        for at in in_turn:
            if at not in tried:
                tried.add(at)
                if at not in owner or place(owner[at], tried):
                    owner[at] = row
                    return True
        return False

    for row in range(len(same)):
        place(row, set())
    return {row: at for at, row in owner.items()}


def _pairs(
    columns: Sequence[str],
    expected: Sequence[Mapping[str, Value]],
    cells: Sequence[Mapping[str, pa.Scalar]],
    left: Sequence[int],
    others: Sequence[int],
    tolerance: float,
) -> tuple[RowPair, ...]:
    """Return each expected row that is left beside the row that is most like it, then the rows that nobody expects."""
    free, pairs = list(others), []
    for at in left:
        near = max(free, key=lambda one: _likeness(expected[at], cells[one], tolerance), default=None)
        if near is not None and _likeness(expected[at], cells[near], tolerance) == 0 and len(columns) > 1:
            near = None
        if near is not None:
            free.remove(near)
        pairs.append(_pair(columns, expected[at], None if near is None else cells[near], near, tolerance))
    return (*pairs, *(_pair(columns, None, cells[at], at, tolerance) for at in free))


def _likeness(row: Mapping[str, Value], cells: Mapping[str, pa.Scalar], tolerance: float) -> int:
    return sum(is_same(value, cells[name], tolerance) for name, value in row.items())


def _pair(
    columns: Sequence[str],
    row: Mapping[str, Value] | None,
    cells: Mapping[str, pa.Scalar] | None,
    at: int | None,
    tolerance: float,
) -> RowPair:
    texts = None if row is None else tuple(text_of_expected(row[name]) if name in row else "" for name in columns)
    found = None if cells is None else tuple(text_of_found(cells[name]) for name in columns)
    differs = tuple(
        row is not None and cells is not None and name in row and not is_same(row[name], cells[name], tolerance)
        for name in columns
    )
    return RowPair(texts, found, differs, at)
