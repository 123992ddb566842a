"""Rows in order without duplicates: those of ``--distinct`` (semantics section 20).

A row that is let through stands for its values until another one is: it is the nearest before, on the clock and in
rows, so it alone decides about the next row that is equal. Rows meet by a hash of their values, one after the other,
and those that have met are compared, all at once: two that only share a hash are told apart by ranks of the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.interval_grid import clock_values
from ..columns.arrays import ClockValue, Ints, Mask, combined, has_nan, measures, scale_of
from ..columns.row_hashes import RowHasher
from ..columns.value_words import Words
from ..language.distinct import Distinct
from ..planning.plan import Plan
from ..rows.lag_columns import NUMBER
from ..rows.sequence import Sequences, amount_in_measure, group_codes, measures_and_amount, rises
from ..support.jit import kernel

_ANY = np.uint64(2**64 - 1)  # no two int64 are farther apart


@kernel
def meet(
    bounds: Ints, words: Words, is_known: Mask, is_new: Mask, clock: Any, within: Any, numbers: Ints, count: int
) -> tuple[Mask, Ints]:
    """Return which rows are let through, bool (n,), and the row with the same word that was so before it, or -1.

    ``words``: one for each row, equal for equal values. ``is_known``: false for rows that are no duplicate of any.
    ``is_new``: false for rows that an earlier run has let through. ``clock``, ``within``: as `rises` takes them.
    ``numbers``: of the rows of a key, ascending; ``count``: how far apart they may be.
    """
    passed, before = np.ones(len(words), np.bool_), np.full(len(words), -1, np.int64)
    most = 2
    for k in range(len(bounds) - 1):
        most = max(most, bounds[k + 1] - bounds[k])
    size = 2
    while size < 2 * most:
        size *= 2
    places = np.empty(size, np.int32)  # a task has no more rows; half as large it is faster
    for k in range(len(bounds) - 1):
        # of each word the last row that was let through; at most half full, so a search ends soon
        size = 2
        while size < 2 * (bounds[k + 1] - bounds[k]):
            size *= 2
        places[:size] = -1
        for i in range(bounds[k], bounds[k + 1]):
            if not is_known[i]:
                continue
            at = np.int64(words[i] & np.uint64(size - 1))
            while places[at] >= 0 and words[places[at]] != words[i]:
                at = (at + 1) & (size - 1)
            j = places[at]
            before[i] = j
            if j >= 0 and is_new[i] and not rises(clock[i], clock[j], within) and numbers[i] - numbers[j] <= count:
                passed[i] = False
            else:
                places[at] = i
    return passed, before


def let_through(plan: Plan, distinct: Distinct, both: Sequences, is_new: Mask) -> Mask:
    """Return which rows are let through, bool (n,).

    ``both``: rows with `Plan.looked_back`: of each key those that earlier runs have let through, then new ones.
    ``is_new``: bool (n,), which are new.
    """
    columns = [combined(both.rows.column(name)) for name in distinct.columns]
    schema = pa.schema([(name, column.type) for name, column in zip(distinct.columns, columns, strict=True)])
    words = RowHasher(schema).hashes(pa.RecordBatch.from_arrays(columns, schema=schema))
    nothing = np.zeros(len(both), np.int64)
    nothing.flags.writeable = False  # kernels are compiled for one of the two
    clock, within, numbers, count = nothing, _ANY, nothing, 0
    if distinct.within is not None:
        clock, within = measures_and_amount(both, plan.sort[0], distinct.within)
    if distinct.count is not None:
        numbers, count = both.rows.column(NUMBER).to_numpy(), distinct.count
    known = known_rows(distinct, both.rows)
    passed, before = meet(both.bounds, words, known, is_new, clock, within, numbers, count)
    if not _are_equal(columns, before):
        words = group_codes(columns)[0].astype(np.uint64)
        passed, _ = meet(both.bounds, words, known, is_new, clock, within, numbers, count)
    return passed


def known_rows(distinct: Distinct, rows: pa.RecordBatch) -> Mask:
    """Return which rows have no null and no NaN in the columns, bool (n,): others are no duplicates of any row."""
    known = np.ones(rows.num_rows, np.bool_)
    for column in (combined(rows.column(name)) for name in distinct.columns):
        if column.null_count:
            known &= column.is_valid().to_numpy(zero_copy_only=False)
        if has_nan(column):
            known &= ~np.isnan(measures(column))
    return known


def may_match(plan: Plan, distinct: Distinct, rows: pa.RecordBatch, clock: ClockValue | None) -> Mask:
    """Return which rows that were let through may still have duplicates, bool (n,).

    ``rows``: with `Plan.looked_back`. ``clock``: that behind all rows, which the rows to come do not precede.
    """
    found = known_rows(distinct, rows)
    if distinct.count is not None:  # the next row of the key is number 0
        found &= rows.column(NUMBER).to_numpy() >= -distinct.count
    if distinct.within is not None and clock is not None:
        column = combined(rows.column(plan.sort[0]))
        values = clock_values(column, plan.sort[0])
        within = amount_in_measure(values, scale_of(column.type), distinct.within)
        with np.errstate(over="ignore", invalid="ignore"):
            found &= ~rises.py_func(values.dtype.type(clock), values, within)  # type: ignore[attr-defined]
    return found


def _are_equal(columns: list[pa.Array], before: Ints) -> bool:
    rows = np.flatnonzero(before >= 0)
    if not len(rows):  # also where a column has no type, in which nothing compares
        return True
    pairs = ([column.take(pa.array(each)) for each in (rows, before[rows])] for column in columns)
    return all(pc.all(pc.equal(*pair)).as_py() for pair in pairs)
