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
from ..state.carry import Registers
from ..state.one_table import PART, conform, key_rows
from .batch_scan import BatchScan, RowNumbers
from .kept_state import StateForm

# The scan of buckets of keys that go on from a state: the rows of the state stand among new rows, before them.


PART_OF = f"{HIDDEN}part"
"""A column that says which part of a state a row is; null: it is none."""
STATE_OF = f"{HIDDEN}state"
"""A column with the other columns of a state in one struct, but for those of the key."""


def state_rows(form: StateForm, table: pa.Table) -> pa.Table:
    """Return rows of a state, whose columns are in `PART_OF` and `STATE_OF`, as the state has them."""
    held = combined(table.column(STATE_OF))
    columns = {name: combined(table.column(name)) for name in form.plan.key} | {PART: combined(table.column(PART_OF))}
    columns |= {each.name: values for each, values in zip(held.type, held.flatten(), strict=True)}
    return conform(columns, form.schema, table.num_rows)


CODE = f"{HIDDEN}code"
"""The column with codes, int64: the bucket of the key, times 2^50, plus a number that never falls with the first order
column, and is above -2^49 and below 2^49."""
COARSE_BITS = 50
_HALF = 1 << (COARSE_BITS - 1)
_MOST_HELD = 1 << 18


@dataclass(slots=True)
class KeyedScan:
    """Windows over batches in the order of their codes; they may begin from the state of their keys and leave one.

    ``first``: the scan of a bucket before its first new row; its registers are those of all keys.
    ``tied``: further columns by which the rows are sorted. A batch is never cut between rows that are equal in code
        and in these, so no row comes after one that it sorts before.
    ``form``: the form of states; None: there are none. Rows of a state, which have a part, come before all new rows of
        their bucket.
    ``registers``: of the new rows so far alone, where there are states.
    """

    first: BatchScan
    tied: tuple[str, ...] = ()
    form: StateForm | None = None
    registers: Registers = Registers()  # noqa: RUF009 - frozen
    _left: list[pa.Table] = field(default_factory=list, repr=False)
    _open: BatchScan | None = field(default=None, repr=False)
    _parts: tuple[pa.Table, ...] = field(default=(), repr=False)
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
            cut = _first_of_last(self._held.select([CODE, *self.tied]))
            if cut:
                some, self._held = self._held.slice(0, cut), self._held.slice(cut)
                yield from self._go_on(some)

    def end(self) -> Iterator[pa.Table]:
        """Yield what the end of the rows brings out."""
        if self._held is not None:
            yield from self._finish(self._held, self._held.num_rows)
        self._held = None

    def taken(self) -> list[pa.Table]:
        """Return the rows of states of keys that are done, and hold them no longer."""
        tables, self._left = self._left, []
        return tables

    def _finish(self, table: pa.Table, first: int) -> Iterator[pa.Table]:
        """Yield what buckets bring out that are complete. ``first``: the number of rows of the first of them."""
        if self._open is not None or self._parts:
            yield from self._end(table.slice(0, first))
            table = table.slice(first)
        if table.num_rows:
            yield from self._end(table)

    def _go_on(self, table: pa.Table) -> Iterator[pa.Table]:
        rows = self._new_rows(table)
        if rows.num_rows:
            windows = self._windows()
            yield from windows.scan(rows)
            self._note(windows, rows)

    def _end(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield what the last rows, and then the end, bring out; the state of the keys is left."""
        rows = self._new_rows(table)
        windows = self._windows()
        yield from windows.end(rows)
        self._note(windows, rows)
        state, self._open = windows.carry.state, None
        if self.form is not None and state is not None and state.sequences.keys is not None:
            has_arrival = windows.ties is not None and windows.ties.arrival is not None
            next_rows = None if has_arrival else pa.array(windows.numbers.of(state.sequences.keys))
            self._left.append(key_rows(self.form.schema, state, next_rows))

    def _new_rows(self, table: pa.Table) -> pa.Table:
        """Return the rows that are new; rows of a state are kept for `_windows`."""
        table = table.drop_columns([CODE])
        if PART_OF not in table.schema.names:
            return table
        assert self.form is not None
        is_new = table.column(PART_OF).is_null()
        rows = table.filter(is_new)
        if rows.num_rows < table.num_rows:
            held = table.filter(pc.invert(is_new))
            self._parts = (*self._parts, state_rows(self.form, held))
        return rows.drop_columns([PART_OF, STATE_OF])

    def _windows(self) -> BatchScan:
        if self._open is None:
            self._open = replace(self.first)
            if self.form is not None:
                registers = self.first.carry.registers
                before = self.form.keys(pa.concat_tables([self.form.schema.empty_table(), *self._parts]))
                self._parts = ()
                self._open.carry = replace(before, registers=registers)
                if before.state is not None and before.next_rows is not None:
                    # keys that have no number of their own go on from that of all rows
                    counts = before.next_rows.fill_null(registers.rows).to_numpy(zero_copy_only=False)
                    self._open.numbers = RowNumbers(before.state.sequences.keys, counts)
        return self._open

    def _note(self, windows: BatchScan, rows: pa.Table) -> None:
        if self.form is not None:
            after, so_far = windows.carry.registers, self.registers
            self.registers = Registers(
                so_far.rows + rows.num_rows,
                latest_clock([so_far.clock, after.clock]),
                position=last_in_order(so_far.position, after.position),
            )
            position = self.first.carry.registers.position
            windows.carry = replace(windows.carry, registers=replace(after, position=position))


def _first_of_last(table: pa.Table) -> int:
    equal = np.ones(table.num_rows, np.bool_)
    for column in table.columns:
        same = pc.equal(column, column[-1]) if column[-1].is_valid else pc.is_null(column)
        equal &= combined(same.fill_null(False)).to_numpy(zero_copy_only=False)
    return int(table.num_rows - np.argmin(np.append(equal[::-1], False)))
