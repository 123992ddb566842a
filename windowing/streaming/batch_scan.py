"""The scan of batches that come one after another: each goes on from the window state of those before.

It is the law of incremental runs (semantics section 7): N batches give the windows of one table, whatever the batches.
The state is as large as the open windows, so a stream of any length needs no more memory than these and one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import ClockValue, Ints, Mask, combined, latest_clock
from ..columns.sort_keys import sort_keys
from ..enrichment.window_table import in_force, known_windows
from ..errors import DataError
from ..kinds.table import with_table_keys
from ..language.options import AtEnd
from ..planning.plan import Plan
from ..rows.sequence import Sequences, order_of, places_among, take_rows
from ..scan.continue_scan import End, continue_scan
from ..scan.lag_rows import with_lag_columns
from ..state.carry import Carry
from .batch_rows import GivenSignals, read_batch
from .row_rejects import Rejected, RowRejects, check_rejected, with_rejected

# The order of rows that have no arrival: where they tie, the values of other columns decide.


@dataclass(frozen=True, slots=True)
class TieOrder:
    """What decides between rows of a key that tie in the order columns.

    ``columns``: the columns that decide, most significant first. Rows that tie in these, too, stay as they come.
    ``arrival``: an integer column that decides before these, and is the arrival position; None: there is none, and the
        position of a row is its number among the rows of its key.
    """

    columns: tuple[str, ...]
    arrival: str | None = None

    def settle(self, sequences: Sequences, table: pa.Table) -> Sequences:
        """Return sequences with rows that tie in their order, and the positions of ``arrival``, if there is one.

        ``table``: the rows, where ``sequences.pos`` says which is which. Raises `DataError` where an arrival is null.
        """
        ties = _ties(sequences)
        places = np.flatnonzero(np.append(ties, False) | np.append(False, ties))
        if len(places):
            group = np.cumsum(np.append(True, ~ties))[places]
            names = [*([] if self.arrival is None else [self.arrival]), *self.columns]
            deciding = [
                combined(column) for column in table.select(names).take(pa.array(sequences.pos[places])).columns
            ]
            # also the bits of floats: the two zeros are one value, but not one row
            floats = [column.fill_null(0.0) for column in deciding if pa.types.is_float64(column.type)]
            bits = [pa.array(column.to_numpy(zero_copy_only=False).view(np.int64)) for column in floats]
            picks = np.arange(len(sequences))
            picks[places] = places[order_of([pa.array(group), *deciding, *bits])]
            sequences = replace(sequences, rows=take_rows(sequences.rows, picks), pos=sequences.pos[picks])
        if self.arrival is None:
            return sequences
        pos = combined(table.column(self.arrival)).take(pa.array(sequences.pos))
        return replace(sequences, pos=arrival_positions(pos, self.arrival))


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """How many rows of each key have been numbered: the positions of rows that have no arrival.

    ``keys``: keys, no duplicates; None: no row yet.
    ``counts``: int64 (K,), how many rows each has had. Other keys had none.
    """

    keys: pa.Table | None = None
    counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def of(self, keys: pa.Table) -> Ints:
        """Return how many rows each of some keys has had, int64 (keys,)."""
        if self.keys is None or not len(self.counts):
            return np.zeros(keys.num_rows, np.int64)
        place = places_among(self.keys, keys)
        return np.where(place < 0, 0, self.counts[place])

    def number(self, sequences: Sequences) -> tuple[Sequences, RowNumbers]:
        """Return new rows whose positions number those of each key from 0, and the counts after them."""
        assert sequences.keys is not None
        begin, counts = self.of(sequences.keys), np.diff(sequences.bounds)
        pos = np.arange(len(sequences)) - np.repeat(sequences.bounds[:-1] - begin, counts)
        keys, counts = sequences.keys, begin + counts
        if self.keys is not None and len(self.counts):
            others = np.flatnonzero(places_among(keys, self.keys) < 0)
            keys = pa.concat_tables([keys, self.keys.take(pa.array(others))])
            counts = np.concatenate([counts, self.counts[others]])
        return replace(sequences, pos=pos), RowNumbers(keys, counts)


def _ties(sequences: Sequences) -> Mask:
    if len(sequences) < 2:
        return np.zeros(0, np.bool_)
    words = [sort_keys(sequences.rows.column(name)) for name in sequences.order]
    ties = np.ones(len(sequences) - 1, np.bool_)
    for word in words:
        ties &= word[1:] == word[:-1]
    ends = sequences.bounds[1:-1]
    ties[ends[(ends > 0) & (ends < len(sequences))] - 1] = False
    return ties


def arrival_positions(column: pa.Array, name: str) -> Ints:
    """Return arrival positions, int64 (n,), of the column ``name``. Raises `DataError` where one is null."""
    if column.null_count:
        raise DataError(f"{column.null_count} rows have no {name}", "give each row a number, or drop it before")
    found: Ints = column.cast(pa.int64()).to_numpy()
    return found


@dataclass(slots=True)
class BatchScan:
    """Windows over batches, and what they keep from one batch to the next.

    ``plan``: the window; its ``at_end`` is what the end of the last batch does.
    ``signals``: what is said of marks and watermarks.
    ``rejected``: what to do with rows that no window can place.
    ``clock``: the clock after the last row, in measures of the clock column; None: the largest value of the rows.
    ``carry``: what the batches so far leave; its ``clock`` is that before the first row, if any.
    ``ties``: what decides between rows of a batch that tie; None: their arrival. Rows that tie are in one batch.
    ``shown``: the columns that a rejected row has in the result; None: all.
    ``is_sorted``: whether the rows of each key are known to come in order, so that none is late.
    ``numbers``: how many rows of each key have come, where ``ties`` has no arrival.
    ``is_continued``: whether another scan goes on from the carry after the end.
    """

    schema: pa.Schema
    plan: Plan
    signals: GivenSignals = GivenSignals()  # noqa: RUF009 - frozen
    rejected: Rejected = "error"
    clock: ClockValue | None = None
    carry: Carry = field(default=Carry())
    ties: TieOrder | None = None
    shown: pa.Schema | None = None
    is_sorted: bool = False
    numbers: RowNumbers = RowNumbers()
    is_continued: bool = False
    _waiting: tuple[pa.Table, Ints] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_rejected(self.rejected)

    @property
    def result(self) -> pa.Schema:
        shown = self.schema if self.shown is None else self.shown
        return with_rejected(self.plan, shown) if self.rejected == "column" else self.plan.schema

    def scan(self, table: pa.Table, pos: Ints | None = None) -> Iterator[pa.Table]:
        """Yield what the rows of one more batch bring out.

        ``pos``: int64 (n,), arrival positions; None: they are counted, or ``ties`` decides. Raises as `read_batch` and
        aggregates do.
        """
        return self._scan(table, self._counted(table) if pos is None else pos, "hold", is_last=False)

    def end(self, table: pa.Table | None = None, pos: Ints | None = None) -> Iterator[pa.Table]:
        """Yield what the rows of the last batch, and then the end, bring out; arguments as of `scan`."""
        table = self.schema.empty_table() if table is None else table
        at_end = self.plan.options.at_end
        clock = None if at_end == "hold" and not self.is_continued else self.clock
        return self._scan(table, self._counted(table) if pos is None else pos, at_end, clock)

    def _counted(self, table: pa.Table) -> Ints:
        if self.ties is not None:
            return np.arange(table.num_rows)
        first = self.carry.registers.rows + (0 if self._waiting is None else len(self._waiting[1]))
        return np.arange(first, first + table.num_rows)

    def _scan(
        self, table: pa.Table, pos: Ints, at_end: AtEnd, clock: ClockValue | None = None, is_last: bool = True
    ) -> Iterator[pa.Table]:
        if self._waiting is not None:
            table, pos = pa.concat_tables([self._waiting[0], table]), np.append(self._waiting[1], pos)
        own = table
        plan = replace(self.plan, options=replace(self.plan.options, at_end=at_end))
        if plan.windows is not None:
            before = self.carry.registers
            plan = replace(plan, windows=in_force(plan.windows, before.windows, before.clock))
        rejects = RowRejects(self.rejected, self.result if self.rejected == "column" else None)
        plan, table = rejects.numbered(plan, table)
        state = rejects.numbered_state(plan, self.carry.state)
        batch = read_batch(plan, self.carry.registers, table, pos, self.signals, rejects, is_last)
        picks = np.flatnonzero(np.isin(pos, batch.waiting))
        self._waiting = (own.take(pa.array(picks)), pos[picks]) if len(picks) else None
        sequences = batch.sequences if self.ties is None else self.ties.settle(batch.sequences, table)
        new = with_lag_columns(plan, sequences, state)
        rejects.add_scanned(sequences, new.rejects)
        if self.ties is not None and self.ties.arrival is None:
            numbered, self.numbers = self.numbers.number(new.sequences)
            new = replace(new, sequences=numbered)
        if plan.windows is not None:
            new = replace(new, sequences=with_table_keys(plan.windows, new.sequences))
        end = End(
            latest_clock([batch.after.clock, clock]),
            clock,
            batch.after.watermark,
            is_continued=at_end == "hold" or self.is_continued,
            of_all_keys=True,
        )
        going = continue_scan(plan, new, batch.signals, replace(self.carry, state=state), end)
        if plan.options.operator is None:  # else its evictions decide what is rejected
            rejects.add_scanned(going.sequences, going.scanned.rejects)
        yield from rejects.beside(going.tables)
        scanned, carry = going.settle()
        if plan.options.operator is not None:
            rejects.add_scanned(going.sequences, scanned.rejects)
        yield from rejects.result(table, self.schema if self.shown is None else self.shown)
        after, has_position = batch.after, plan.options.max_ahead is not None or not self.is_sorted
        position = after.position if has_position else None
        windows = None if plan.windows is None else known_windows(plan.windows, carry.registers.clock)
        registers = replace(carry.registers, rows=after.rows, watermark=after.watermark, position=position)
        self.carry = replace(carry, registers=replace(registers, belief=after.belief, windows=windows))
