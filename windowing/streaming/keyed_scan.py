"""The scan of batches that are sorted by buckets of keys: a bucket is complete where the next one begins.

A bucket holds all rows of its keys, in the order of their coarse time (the column `CODE`). So one integer sorts them,
and only one bucket is ever open. Most buckets are complete in one batch, which then is a table of its own. One that is
larger goes on from batch to batch with the window state of its keys, as a stream does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import combined, latest_clock
from ..columns.sort_keys import last_in_order
from ..errors import DataError
from ..language.spec import HIDDEN
from ..state.carry import Carry, Registers
from ..state.one_table import PART, conform, key_rows
from .batch_scan import BatchScan, RowNumbers
from .kept_state import StateForm, keys_of

# The scan of buckets of keys that go on from a state: the rows of the state stand among new rows, before them.


PART_OF = f"{HIDDEN}part"
"""A column that says which part of a state a row is; null: it is none."""
STATE_OF = f"{HIDDEN}state"
"""A column with the other columns of a state in one struct, but for those of the key."""


@dataclass(slots=True)
class LeftState:
    """The state that scans leave, as far as they have come.

    ``form``: the form of states.
    ``tables``: rows of states of keys that are done, until they are `taken`.
    ``registers``: of the rows of these scans alone.
    """

    form: StateForm
    tables: list[pa.Table] = field(default_factory=list)
    registers: Registers = Registers()  # noqa: RUF009 - frozen

    def note(self, after: Registers, rows: int) -> None:
        """Note how far a scan has come, with so many more rows."""
        positions = [each for each in (self.registers.position, after.position) if each is not None]
        self.registers = Registers(
            self.registers.rows + rows,
            latest_clock([self.registers.clock, after.clock]),
            position=last_in_order(pa.concat_tables(positions)) if positions else None,
        )

    def taken(self) -> list[pa.Table]:
        """Return the rows of states of keys that are done, and hold them no longer."""
        tables, self.tables = self.tables, []
        return tables


@dataclass(slots=True)
class RestoringScan:
    """A `BatchScan` of a bucket of keys that begins from the state of its keys and leaves one.

    Rows of the state, which have a part, come before all new rows of the bucket.

    ``first``: the scan of new rows before the first; its registers are those of all keys.
    ``left``: where the state goes.
    """

    first: BatchScan
    left: LeftState
    _open: BatchScan | None = field(default=None, repr=False)
    _parts: tuple[pa.Table, ...] = field(default=(), repr=False)

    def scan(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield what rows bring out."""
        rows = self._new_rows(table)
        if rows.num_rows:
            windows = self._windows()
            yield from windows.scan(rows)
            self._note(windows, rows)

    def end(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield what the last rows, and then the end, bring out; the state of the keys is left."""
        rows = self._new_rows(table)
        windows = self._windows()
        yield from windows.end(rows)
        self._note(windows, rows)
        state = windows.carry.state
        if state is not None and state.sequences.keys is not None:
            has_arrival = windows.ties is not None and windows.ties.arrival is not None
            next_rows = None if has_arrival else pa.array(windows.numbers.of(state.sequences.keys))
            self.left.tables.append(key_rows(self.left.form.schema, state, next_rows))

    def _new_rows(self, table: pa.Table) -> pa.Table:
        if PART_OF not in table.schema.names:
            return table
        is_new = table.column(PART_OF).is_null()
        rows = table.filter(is_new)
        if rows.num_rows < table.num_rows:
            held = table.filter(pc.invert(is_new))
            self._parts = (*self._parts, state_rows(self.left.form, self.first.plan.key, held))
        return rows.drop_columns([PART_OF, STATE_OF])

    def _windows(self) -> BatchScan:
        if self._open is None:
            schema = self.left.form.schema
            before = keys_of(self.first.plan, pa.concat_tables([schema.empty_table(), *self._parts]))
            self._parts = ()
            registers = self.first.carry.registers
            carry = replace(before, registers=registers)
            self._open = replace(self.first, carry=carry, numbers=_numbers(before, registers.rows))
        return self._open

    def _note(self, windows: BatchScan, rows: pa.Table) -> None:
        after = windows.carry.registers
        self.left.note(after, rows.num_rows)
        first = self.first.carry.registers
        windows.carry = replace(windows.carry, registers=replace(after, position=first.position))


def state_rows(form: StateForm, key: tuple[str, ...], table: pa.Table) -> pa.Table:
    """Return rows of a state, whose columns are in `PART_OF` and `STATE_OF`, as the state has them."""
    held = combined(table.column(STATE_OF))
    columns = {name: combined(table.column(name)) for name in key} | {PART: combined(table.column(PART_OF))}
    columns |= {each.name: values for each, values in zip(held.type, held.flatten(), strict=True)}
    return conform(columns, form.schema, table.num_rows)


def _numbers(before: Carry, rows: int) -> RowNumbers:
    """Return the numbers of a state. ``rows``: the number for keys that have none of their own."""
    if before.state is None or before.next_rows is None:
        return RowNumbers()
    counts = before.next_rows.fill_null(rows).to_numpy(zero_copy_only=False)
    return RowNumbers(before.state.sequences.keys, counts)


CODE = f"{HIDDEN}code"
"""The column with codes, int64: the bucket of the key, times 2^50, plus a number that never falls with the first order
column, and is above -2^49 and below 2^49."""
COARSE_BITS = 50
_HALF = 1 << (COARSE_BITS - 1)
_MOST_HELD = 1 << 18


@dataclass(slots=True)
class KeyedScan:
    """Windows over batches in the order of their codes.

    ``first``: the scan of a bucket before its first row.
    ``tied``: further columns by which the rows are sorted. A batch is never cut between rows that are equal in code
        and in these, so no row comes after one that it sorts before.
    """

    first: BatchScan | RestoringScan
    tied: tuple[str, ...] = ()
    _open: BatchScan | RestoringScan | None = field(default=None, repr=False)
    _held: pa.Table | None = field(default=None, repr=False)

    def scan(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield what a batch brings out.

        ``table``: the columns of ``first.schema``, and `CODE`. Raises as `BatchScan.scan` does, and `DataError` where
        codes fall.
        """
        if not table.num_rows:
            return
        table = table if self._held is None else pa.concat_tables([self._held, table])
        codes = combined(table.column(CODE)).to_numpy()
        if (codes[1:] < codes[:-1]).any():
            raise DataError("the rows of a partition are not sorted", "this engine drops sorts: use another one")
        buckets = (codes + _HALF) >> COARSE_BITS
        last = int(np.searchsorted(buckets, buckets[-1]))
        if last:
            yield from self._finish(table.slice(0, last), int(np.searchsorted(buckets, buckets[0], "right")))
        self._held = table.slice(last)
        if self._held.num_rows > _MOST_HELD:
            yield from self._go_on(self._held)

    def end(self) -> Iterator[pa.Table]:
        """Yield what the end of the rows brings out."""
        if self._held is not None:
            yield from self._finish(self._held, self._held.num_rows)
        self._held = None

    def _finish(self, table: pa.Table, first: int) -> Iterator[pa.Table]:
        """Yield what buckets bring out that are complete. ``first``: the number of rows of the first of them."""
        if self._open is not None:
            yield from self._open.end(table.slice(0, first).drop_columns([CODE]))
            self._open, table = None, table.slice(first)
        if table.num_rows:
            yield from self._windows().end(table.drop_columns([CODE]))

    def _go_on(self, table: pa.Table) -> Iterator[pa.Table]:
        cut = _first_of_last(table.select([CODE, *self.tied]))
        if cut:
            self._open = self._open or self._windows()
            self._held = table.slice(cut)
            yield from self._open.scan(table.slice(0, cut).drop_columns([CODE]))

    def _windows(self) -> BatchScan | RestoringScan:
        return replace(self.first)


def _first_of_last(table: pa.Table) -> int:
    equal = np.ones(table.num_rows, np.bool_)
    for column in table.columns:
        same = pc.equal(column, column[-1]) if column[-1].is_valid else pc.is_null(column)
        equal &= combined(same.fill_null(False)).to_numpy(zero_copy_only=False)
    return int(table.num_rows - np.argmin(np.append(equal[::-1], False)))
