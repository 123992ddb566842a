"""Numbers of a window state that were counted from another beginning: by how much they differ, and how to move them.

A state counts, of each key, all its rows and all its windows. Where two states are the same but for these numbers, and
nothing asks for them (`DecidingNumbers`), all that comes of the one is what comes of the other, each number of a key
moved by what it differs here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, combined, without_dictionaries
from ..rows.sequence import group_codes, places_among
from .state_tables import BEGIN, RANK, ROWS, WINDOWS

_WINDOW = "window"


@dataclass(frozen=True, slots=True)
class NumberShift:
    """What is added to the numbers of keys, so that they count from the beginning that a state counts from.

    ``key``: the names of the key columns.
    ``known``: the K keys of that state, as `state_tables.key_table` has them; None: it has none, and nothing is added.
    ``more``: `ROWS`, `BEGIN` and `WINDOWS` to what is added, int64 (K,).
    """

    key: tuple[str, ...]
    known: pa.Table | None
    more: Mapping[str, Ints]

    @classmethod
    def between(cls, key: Sequence[str], true: pa.Table | None, counted: pa.Table | None) -> NumberShift:
        """Return what moves the numbers of the keys ``counted`` to those of ``true``; keys without numbers have 0."""
        shift = cls(tuple(key), true, {})
        if true is None:
            return shift
        more = {name: _numbers(true, name).copy() for name in (ROWS, BEGIN, WINDOWS)}
        if counted is not None:
            places = shift._places(counted)
            own = np.flatnonzero(places >= 0)
            for name, each in more.items():
                each[places[own]] -= _numbers(counted, name)[own]
        return cls(shift.key, true, more)

    def of_keys(self, keys: pa.Table | None) -> pa.Table | None:
        """Return a table of keys with the numbers moved, and with those keys of the state that it lacks."""
        if keys is None or self.known is None:
            return self.known if keys is None else keys
        places = self._places(keys)
        for name in (ROWS, BEGIN, WINDOWS):
            keys = self._moved(keys, name, self.more[name], places)
        is_idle = np.ones(self.known.num_rows, np.bool_)
        is_idle[places[places >= 0]] = False
        if not is_idle.any():
            return keys
        idle = self.known.filter(pa.array(is_idle))
        own = [
            idle.column(field.name) if field.name in idle.column_names else pa.nulls(idle.num_rows, field.type)
            for field in keys.schema
        ]
        both = pa.concat_tables([keys, pa.table(own, schema=keys.schema)])
        codes, _ = group_codes([combined(both.column(name)) for name in self.key])
        return both.take(pa.array(np.argsort(codes, kind="stable"))).combine_chunks()

    def of_rows(self, rows: pa.Table) -> pa.Table:
        """Return a table of rows, as `state_tables.row_table` has them, with their ranks moved."""
        if self.known is None or not self.more[ROWS].any():
            return rows
        return self._moved(rows, RANK, self.more[ROWS], self._places(rows))

    def of_result(self, table: pa.Table) -> pa.Table:
        """Return rows of a result with the numbers of their windows moved; mark-only rows have no number."""
        if self.known is None or _WINDOW not in table.column_names or not self.more[WINDOWS].any():
            return table
        return self._moved(table, _WINDOW, self.more[WINDOWS], self._places(table))

    def _places(self, table: pa.Table) -> Ints:
        """Return the place of the key of each row among the known keys, -1 for others: int64 (n,)."""
        if not self.key:
            return np.zeros(table.num_rows, np.int64)
        assert self.known is not None
        known = without_dictionaries(self.known.select(list(self.key)))
        return places_among(known, without_dictionaries(table.select(list(self.key))).cast(known.schema))

    def _moved(self, table: pa.Table, name: str, more: Ints, places: Ints) -> pa.Table:
        by = np.append(more, 0)[places]  # -1, which is no known key, finds the 0
        at = table.column_names.index(name)
        return table.set_column(at, table.schema.field(at), pc.add(combined(table.column(name)), pa.array(by)))


def _numbers(table: pa.Table, name: str) -> Ints:
    numbers: Ints = combined(table.column(name)).to_numpy()
    return numbers
