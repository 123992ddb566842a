"""The scan of buckets of keys that go on from a state: the rows of the state stand among new rows, before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import ClockValue, combined, latest_clock
from ..columns.sort_keys import last_in_order
from ..language.spec import HIDDEN
from ..state.one_table import PART, Registers, conform, key_rows
from .batch_rows import Progress
from .batch_scan import BatchScan
from .kept_state import KeptState, StateForm, keys_of
from .tie_order import RowNumbers

PART_OF = f"{HIDDEN}part"
"""A column that says which part of a state a row is; null: it is none."""
STATE_OF = f"{HIDDEN}state"
"""A column with the other columns of a state in one struct, but for those of the key."""


@dataclass(slots=True)
class LeftState:
    """The state that scans leave, as far as they have come.

    ``form``: the form of states.
    ``tables``: rows of states of keys that are done; whoever reads them empties the list.
    ``rows``, ``clock``, ``position``: as in `Progress`, but rows of these scans alone.
    """

    form: StateForm
    tables: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    clock: ClockValue | None = None
    position: pa.Table | None = None

    def note(self, progress: Progress, rows: int) -> None:
        """Note how far a scan has come, with so many more rows."""
        self.rows += rows
        self.clock = latest_clock([self.clock, progress.clock])
        positions = [each for each in (self.position, progress.position) if each is not None]
        self.position = last_in_order(pa.concat_tables(positions)) if positions else None

    def registers(self) -> Registers:
        """Return what these scans say of all keys."""
        return Registers(None, self.rows, self.clock, None, self.position)


@dataclass(slots=True)
class RestoringScan:
    """A `BatchScan` of a bucket of keys that begins from the state of its keys and leaves one.

    Rows of the state, which have a part, come before all new rows of the bucket.

    ``first``: the scan of new rows before the first; its progress is that of all keys.
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
        if windows.state is not None and windows.state.sequences.keys is not None:
            self.left.tables.append(key_rows(self.left.form.schema, windows.state, self._next_rows(windows)))

    def _new_rows(self, table: pa.Table) -> pa.Table:
        """Return the rows that are not of a state, and put those aside that are."""
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
            self._open = replace(self.first, state=before.state, numbers=_numbers(before, self.first.progress.rows))
        return self._open

    def _note(self, windows: BatchScan, rows: pa.Table) -> None:
        """Note how far the scan has come. Rows are late by those of earlier calls alone, since keys are apart."""
        self.left.note(windows.progress, rows.num_rows)
        windows.progress = replace(windows.progress, position=self.first.progress.position)

    def _next_rows(self, windows: BatchScan) -> pa.Array | None:
        if windows.ties is not None and windows.ties.arrival is not None:
            return None
        assert windows.state is not None
        return pa.array(windows.numbers.of(windows.state.sequences.keys))


def state_rows(form: StateForm, key: tuple[str, ...], table: pa.Table) -> pa.Table:
    """Return rows of a state, whose columns are in `PART_OF` and `STATE_OF`, as the state has them."""
    held = combined(table.column(STATE_OF))
    columns = {name: combined(table.column(name)) for name in key} | {PART: combined(table.column(PART_OF))}
    columns |= {each.name: values for each, values in zip(held.type, held.flatten(), strict=True)}
    return conform(columns, form.schema, table.num_rows)


def _numbers(before: KeptState, rows: int) -> RowNumbers:
    """Return the numbers of a state. ``rows``: the number for keys that have none of their own."""
    if before.state is None or before.next_rows is None:
        return RowNumbers()
    counts = before.next_rows.fill_null(rows).to_numpy(zero_copy_only=False)
    return RowNumbers(before.state.sequences.keys, counts)
