"""Converting panes to the tables of the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined, spread, take_or_null
from ..columns.radix_sort import ascend
from ..columns.sort_keys import sort_keys
from ..columns.text_sort import take_column
from ..errors import DataError
from ..language.options import SortKey
from ..planning.plan import Plan
from ..planning.result_schema import FIXED, MARK, OUTPUTS, POS, ROW, TURN
from ..rows.marks import Marks
from ..rows.membership import Ranges, batches, edge_rows, entered_rows, gathered, left_rows, sizes
from ..rows.panes import CLOSED_BY, TIMING, Panes
from ..rows.sequence import Sequences, concatenate
from ..state.window_state import WindowState
from .aggregate_rows import aggregate_rows, combine_window, merging_plan
from .operator_scenes import OperatorRun
from .pane_rows import rows_of_pairs, rows_of_panes
from .result_columns import HiddenPanes, mark_columns, only_marks, stream_columns, stream_values, with_result_values

# Panes in batches: what the result says of disjoint panes is made a bounded number of panes at a time.
#
# The columns of a batch are written before those of the next one are made, so they lie in memory that is used again,
# and a task holds the columns of one batch rather than those of all panes of its slice (decision 068).


_PANES = 1 << 20  # the rows of a row group of Parquet, so that row groups do not depend on batches


def pane_batches(plan: Plan, sequences: Sequences, panes: Panes) -> Iterator[tuple[Plan, Sequences, Panes]]:
    """Yield panes in their order, some at a time, with the keys and rows that they need, and the plan for these.

    Keys and rows of the panes are numbered as in the sequences yielded with them; their causes are those of ``panes``.
    Panes that share rows, have groups or are not in the order of the result come in one batch.
    """
    if plan.pane_schema.names and plan.pairs is not None:
        yield from rows_of_pairs(plan, sequences, panes)
        return
    if plan.pane_schema.names:
        yield from ((plan, *each) for each in rows_of_panes(plan, sequences, panes))
        return
    contents = panes.membership
    has_own_rows = isinstance(contents, Ranges) and contents.disjoint and contents.row is None
    if len(panes) <= _PANES or not has_own_rows or plan.options.group_by or not ascend(panes.key, panes.number):
        yield plan, sequences, panes
        return
    for first in range(0, len(panes), _PANES):
        some = panes.part(first, first + _PANES)
        rows = some.membership
        assert isinstance(rows, Ranges)
        low, high = int(rows.base.min()), int(rows.hi.max())
        key, stop = int(some.key[0]), int(some.key[-1]) + 1
        own = replace(
            sequences,
            keys=None if sequences.keys is None else sequences.keys.slice(key, stop - key),
            bounds=np.clip(sequences.bounds[key : stop + 1], low, high) - low,
            rows=sequences.rows.slice(low, high - low),
            pos=sequences.pos[low:high],
            rank=None if sequences.rank is None else sequences.rank[low:high],
        )
        shown = Ranges(rows.lo - low, rows.hi - low, rows.base - low, rows.disjoint)
        yield plan, own, replace(some, key=some.key - key, membership=shown)


# Result rows that are the rows of panes, pane by pane, sorted with ``--sort-by`` (``--emit``; SPL's Sort).


def row_batches(plan: Plan, sequences: Sequences, panes: Panes, pane_columns: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of all panes, a bounded number at a time: ``pane_columns`` of the pane, then the row's columns.

    The last row of a pane has its mark; a pane without rows is a mark-only row, unless the result is plain.
    """
    plain = plan.options.plain
    sort_words = [_sort_words(sequences, key) for key in plan.sort_rows]
    for first, stop in batches(panes.membership):
        rows, bounds = gathered(panes.membership, first, stop)
        counts = np.diff(bounds)
        if sort_words:
            pane = np.repeat(np.arange(first, stop), counts)
            rows = rows[np.lexsort([*(key[rows] for keys in reversed(sort_words) for key in keys), pane])]
        if not plain:
            rows = np.insert(rows, bounds[:-1][counts == 0], -1)
            counts = np.maximum(counts, 1)
        table = pane_columns.slice(first, stop - first)
        if not (counts == 1).all():
            table = table.take(pa.array(np.repeat(np.arange(stop - first), counts)))
        is_run = (
            bool(len(rows))
            and bool(rows[0] >= 0)
            and rows[-1] - rows[0] == len(rows) - 1
            and bool((np.diff(rows) == 1).all())
        )
        there = None if is_run else pa.array(rows, mask=rows < 0)
        for name in plan.rows:
            column = sequences.rows.column(name)
            column = column.slice(rows[0], len(rows)) if there is None else column.take(there)
            table = table.append_column(name, column)
        piece = None if panes.pairs is None else panes.pairs.piece
        yield table if plain else _with_marks(table, rows, counts, piece or (0, True))


def _sort_words(sequences: Sequences, key: SortKey) -> list[Ints]:
    """Return keys for lexsort, the least significant first: nulls are last in both directions."""
    column = combined(sequences.rows.column(key.name))
    ascending = sort_keys(column)
    null = column.is_null().to_numpy(zero_copy_only=False)
    return [~ascending if key.descending else ascending, null]


def _with_marks(table: pa.Table, rows: Ints, counts: Ints, piece: tuple[int, bool]) -> pa.Table:
    """Add the number of each row in its pane, and the marks: at the last row, or alone where the row is -1.

    ``piece``: as of `Pairs`.
    """
    ends = np.cumsum(counts)
    none = rows < 0
    place = spread(np.full(len(counts), piece[0]), counts)
    word = np.where(none, np.int8(1), np.int8(0))
    last = np.zeros(len(rows), np.bool_)
    last[ends - 1] = piece[1]
    marks = pa.DictionaryArray.from_arrays(pa.array(word, mask=~last), pa.array(["window", "only"]))
    return table.append_column(ROW, pa.array(place, mask=none)).append_column(MARK, marks)


# Result rows of panes whose first pane goes on from earlier segments: its partial aggregates are merged.


def continued_rows(plan: Plan, sequences: Sequences, panes: Panes, pane_columns: pa.Table) -> Iterator[pa.Table]:
    """Yield what `aggregate_rows` yields; ``panes`` have a window that is `Panes.continued`."""
    contents, continued = panes.membership, panes.continued
    assert isinstance(contents, Ranges)
    assert continued is not None
    own = combine_window(plan, sequences, int(contents.lo[0]) + 1, int(contents.hi[0]), int(panes.number[0]))
    rows = concatenate([pa.Table.from_batches([part]) for part in (continued.partials, own)])
    edges = np.array([0, rows.num_rows])
    whole = Ranges(edges[:1], edges[1:], edges[:1], True)
    first = replace(panes.take(np.zeros(1, np.int64)), membership=whole)
    merged = replace(sequences, bounds=edges, rows=rows, pos=np.zeros(rows.num_rows, np.int64))
    yield from aggregate_rows(merging_plan(plan), merged, first, pane_columns.slice(0, 1))
    if len(panes) > 1:
        yield from aggregate_rows(plan, sequences, panes.take(np.arange(1, len(panes))), pane_columns.slice(1))


# How many rows ``--emit rows`` writes: where windows overlap, far more than the input has.


def may_multiply(plan: Plan) -> bool:
    """Return whether the result may contain a row several times."""
    return plan.emits_rows if plan.pairs is not None else plan.options.emit == "rows" and plan.kind.needs.overlaps


def rows_out(plan: Plan, rows: int) -> int | None:
    """Return how many rows the result has for ``rows`` valid rows; None where that depends on their values."""
    panes, options = plan.kind.needs.by_count, plan.options
    if panes is None or plan.key or options.distinct is not None or not may_multiply(plan):
        return None
    if options.partial:
        panes = replace(panes, least=0)
    return panes.rows_out(rows, options.at_end == "flush")


def check_rows(plan: Plan, rows: int) -> None:
    """Raise `DataError` where the result of ``rows`` rows is known to exceed the limit."""
    if (found := rows_out(plan, rows)) is not None:
        _check(plan, found, f"{found:,} rows, made of {rows:,}")


def check_panes(plan: Plan, panes: Panes) -> None:
    """Raise `DataError` where the rows of panes exceed the limit."""
    if plan.options.max_rows is not None and may_multiply(plan):
        pairs = panes.pairs
        found = int(sizes(panes.membership).sum() if pairs is None else pairs.counts.sum())
        _check(plan, found, f"{found:,} rows and more")


def check_written(plan: Plan, rows: int) -> None:
    """Raise `DataError` where the rows that all tasks have written exceed the limit."""
    if may_multiply(plan):
        _check(plan, rows, f"{rows:,} rows")


def _check(plan: Plan, rows: int, what: str) -> None:
    if plan.options.max_rows is not None and rows > plan.options.max_rows:
        allowed = f"more than the {plan.options.max_rows:,} allowed; nothing was written"
        do = "ask for aggregates, or allow more with --max-rows-out"
        emits = "" if plan.pairs is not None else " with --emit rows"
        raise DataError(f"{plan.spec}{emits} would write {what}, {allowed}", do)


_REPEATS = 8
"""Rows a key: with fewer, plain text is written faster than a dictionary (four times at 1 row), and is smaller."""
_CLOSED_BY = pa.array(CLOSED_BY, pa.string())
_TIMING = pa.array(TIMING, pa.string())


def result_tables(
    plan: Plan, sequences: Sequences, marks: Marks, panes: Panes, hidden: HiddenPanes, run: OperatorRun | None = None
) -> Iterator[pa.Table]:
    """Yield the result in the plan's columns, a bounded number of rows at a time; texts may be dictionary arrays.

    ``panes``: as `emitted_panes` returns them. ``hidden``: counts the panes that the condition of the result hides.
    ``run``: what calls of an operator need. The result is sorted by key, then window number, then group; mark-only rows
    come last. Raises `DataError` where an exact aggregate overflows, with key and window, and, before any row is
    computed, where there would be more than ``max_rows`` rows.
    """
    check_panes(plan, panes)
    stream = stream_values(plan, sequences, marks)
    if run is not None:
        from .operator_calls import operator_batches  # noqa: PLC0415 - few jobs have operators

        parts = operator_batches(plan, sequences, marks, panes, pane_columns(plan, stream, sequences, panes), run)
    elif panes.continued is not None:
        parts = continued_rows(plan, sequences, panes, pane_columns(plan, stream, sequences, panes))
    else:
        rows_of = row_batches if plan.emits_rows else aggregate_rows
        parts = (
            rows
            for of_rows, own, some in pane_batches(plan, sequences, panes)
            for rows in rows_of(
                of_rows, own, some, pane_columns(plan, stream, own if plan.pairs is None else sequences, some)
            )
        )
    yield from with_result_values(plan, parts, hidden)
    if not plan.options.plain and panes.marks_only is not None and len(panes.marks_only.cause):
        columns = stream_columns(plan, stream, sequences, panes.marks_only)
        yield only_marks(plan, dict(zip(plan.stream_names, columns, strict=True)))


def finishing_tables(plan: Plan, idle: WindowState, hidden: HiddenPanes) -> Iterator[pa.Table]:
    """Yield what operators return at the end of the data whose keys have no rows any more, in the plan's columns.

    ``idle``: the state of these keys. Raises what calls of operators raise.
    """
    from .operator_calls import finishing_batches  # noqa: PLC0415

    yield from with_result_values(plan, finishing_batches(plan, idle), hidden)


def pane_columns(plan: Plan, stream: list[pa.Array], sequences: Sequences, panes: Panes) -> pa.Table:
    """Return the columns that identify each pane, and its stream columns, of panes as `emitted_panes` returns them.

    ``stream``: `stream_values` of the rows and marks that the causes refer to.
    """
    names = [*plan.key, *FIXED, *(OUTPUTS if plan.options.event_time else ())]
    keys = [] if sequences.keys is None else sequences.keys.columns
    columns = [_picked(combined(column), panes.key) for column in keys]
    columns += [pa.array(panes.number), *_bounds(plan, sequences, panes)]
    columns += [pa.DictionaryArray.from_arrays(pa.array(panes.closed_by), _CLOSED_BY, safe=False)]
    if panes.outputs is not None:
        columns.append(pa.DictionaryArray.from_arrays(pa.array(panes.outputs.timing), _TIMING, safe=False))
        columns.append(pa.array(panes.outputs.index))
    if plan.windows is not None and panes.source is not None:
        names += [field.name for field in plan.windows.bound.fields]
        columns += [column.take(pa.array(panes.source)) for column in plan.windows.attributes]
    if plan.of_left and panes.pairs is not None:
        names += plan.of_left
        of_pane = panes.pairs.left[panes.pairs.bounds[:-1]]
        columns += [take_column(sequences.rows.column(name), of_pane) for name in plan.of_left]
    if not plan.options.plain:
        names += plan.stream_names
        columns += stream_columns(plan, stream, sequences, panes)
    return pa.Table.from_arrays(columns, names=names)


def emitted_panes(plan: Plan, sequences: Sequences, panes: Panes) -> Panes:
    """Return panes as the result has them: with ``--emit entered`` or ``left`` as lots, which keep the bounds."""
    if plan.options.emit not in {"entered", "left"} or panes.pairs is not None:
        return panes
    start, end = _bounds(plan, sequences, panes)
    lots = (entered_rows if plan.options.emit == "entered" else left_rows)(panes.membership)
    panes = replace(panes, start=start, end=end, membership=lots)
    return panes.take(np.flatnonzero(lots.lo < lots.hi))  # a change of no rows is none


def mark_rows(plan: Plan, marks: Marks, picks: Ints) -> pa.Table:
    """Return mark-only rows for the marks at ``picks``."""
    return only_marks(plan, dict(zip(plan.stream_names, mark_columns(plan, marks.take(picks)), strict=True)))


def tick_rows(plan: Plan, ticks: pa.Array) -> pa.Table:
    """Return mark-only rows for instants of the clock."""
    first = pa.array(np.zeros(len(ticks), np.int8))
    return only_marks(plan, {"_at": ticks, POS: pa.array(np.full(len(ticks), -1, np.int64)), TURN: first})


def _picked(values: pa.Array, picks: Ints) -> pa.Array:
    repeats = len(picks) >= _REPEATS * len(values)
    if repeats and (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        codes = pa.array(picks.astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, values, safe=False)  # picks are places of keys, in range
    return take_column(values, picks)


def _bounds(plan: Plan, sequences: Sequences, panes: Panes) -> tuple[pa.Array, pa.Array]:
    if panes.start is not None and panes.end is not None:
        return panes.start, panes.end
    if not plan.sort:
        return pa.nulls(len(panes), pa.int64()), pa.nulls(len(panes), pa.int64())
    column = sequences.rows.column(plan.at[0])
    edges = edge_rows(panes.membership)
    first, last = (take_or_null(column, edge) for edge in edges)
    if panes.continued is None:
        return first, last
    begins, ends = (panes.continued.edges.column(plan.at[0]).slice(row, 1) for row in (0, 1))
    goes_on = edges[0][0] < edges[1][0]
    first = pa.concat_arrays([begins, first.slice(1)])
    return first, last if goes_on else pa.concat_arrays([ends, last.slice(1)])
