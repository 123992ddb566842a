"""The keys with most rows, found in one pass in bounded memory.

Keys that come one after another, as those of one result do, are each complete when the next one comes, and the lightest
can be forgotten. Of keys that come again, as in the results of several days, the algorithm of Misra and Gries keeps
those that may be heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_WEIGHT = "__weight"


class BusyKeys:
    """Counts the weight of each key, of at most ``most`` keys.

    ``names``: the columns of the key.
    ``is_sorted``: whether all rows of a key come one after another.
    ``missed``: how much weight a key may have beyond what was counted; 0 where weights are exact.
    """

    def __init__(self, names: Sequence[str], is_sorted: bool = False, most: int = 1 << 16) -> None:
        self.names = list(names)
        self.is_sorted = is_sorted
        self.most = most
        self.missed = 0
        self._forgotten = 0
        self._is_pruned = False
        self._table: pa.Table | None = None
        self._last: pa.Table | None = None

    def add(self, keys: pa.Table, weights: np.ndarray) -> None:
        """Count rows: the key of each, and its weight, int64 of at least 0."""
        if not keys.num_rows:
            return
        found = keys.select(self.names).append_column(_WEIGHT, pa.array(weights, pa.int64()))
        found = self._sums(found if self._last is None else pa.concat_tables([self._last, found]))
        if self.is_sorted:
            self._last, found = found.slice(found.num_rows - 1), found.slice(0, found.num_rows - 1)
            self._table = self._lightest_forgotten(self._with(found))
        else:
            self._table = self._lightened(self._sums(self._with(found)))

    @property
    def count(self) -> int | None:
        """The number of keys; None where there are too many to count."""
        return None if self._is_pruned else self.kept.num_rows + self._forgotten

    @property
    def kept(self) -> pa.Table:
        """The keys that are counted; the last column is their weight."""
        nothing = pa.table({name: pa.array([], pa.int64()) for name in [*self.names, _WEIGHT]})
        tables = [table for table in (self._table, self._last) if table is not None]
        return pa.concat_tables(tables) if tables else nothing

    def heaviest(self, n: int) -> list[dict[str, Any]]:
        """Return the ``n`` keys of most weight, the heaviest first, as column to scalar; of equals those seen first."""
        kept = self.kept
        order = np.argsort(-kept[_WEIGHT].to_numpy(), kind="stable")[:n]
        return [{name: kept[name][int(at)] for name in self.names} for at in order]

    def _with(self, found: pa.Table) -> pa.Table:
        return found if self._table is None else pa.concat_tables([self._table, found])

    def _sums(self, table: pa.Table) -> pa.Table:
        sums = table.group_by(self.names, use_threads=False).aggregate([(_WEIGHT, "sum")])
        return sums.select([*self.names, f"{_WEIGHT}_sum"]).rename_columns([*self.names, _WEIGHT])

    def _lightest_forgotten(self, table: pa.Table) -> pa.Table:
        """Keep the heaviest keys, of equals those that came first."""
        if table.num_rows <= self.most:
            return table
        self._forgotten += table.num_rows - self.most
        order = np.argsort(-table[_WEIGHT].to_numpy(), kind="stable")[: self.most]
        return table.take(np.sort(order))

    def _lightened(self, table: pa.Table) -> pa.Table:
        """Subtract the weight of the first key that has no place from all, and leave out those that have none left."""
        if table.num_rows <= self.most:
            return table
        weights = table[_WEIGHT].to_numpy()
        less = int(np.partition(weights, len(weights) - self.most - 1)[len(weights) - self.most - 1])
        self.missed += less
        self._is_pruned = True
        left = table.set_column(len(self.names), _WEIGHT, pa.array(weights - less, pa.int64()))
        return left.filter(pc.greater(left[_WEIGHT], 0))
