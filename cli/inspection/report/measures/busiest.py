"""The keys with most rows, found in one pass in bounded memory (the algorithm of Misra and Gries)."""

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
    ``missed``: how much weight a key may have beyond what was counted; 0 where each key was counted.
    """

    def __init__(self, names: Sequence[str], most: int = 1 << 16) -> None:
        self.names = list(names)
        self.most = most
        self.missed = 0
        self.table: pa.Table | None = None

    def add(self, keys: pa.Table, weights: np.ndarray) -> None:
        """Count rows: the key of each, and its weight, int64 of at least 0."""
        if not keys.num_rows:
            return
        found = self._sums(keys.select(self.names).append_column(_WEIGHT, pa.array(weights, pa.int64())))
        both = found if self.table is None else self._sums(pa.concat_tables([self.table, found]))
        self.table = self._pruned(both)

    @property
    def count(self) -> int | None:
        """The number of keys; None where there are too many to count."""
        return None if self.missed else 0 if self.table is None else self.table.num_rows

    def heaviest(self, n: int) -> list[dict[str, Any]]:
        """Return the ``n`` keys of most weight, the heaviest first, as column to scalar; of equals those seen first."""
        if self.table is None:
            return []
        order = np.argsort(-self.table[_WEIGHT].to_numpy(), kind="stable")[:n]
        return [{name: self.table[name][int(at)] for name in self.names} for at in order]

    def _sums(self, table: pa.Table) -> pa.Table:
        sums = table.group_by(self.names, use_threads=False).aggregate([(_WEIGHT, "sum")])
        return sums.select([*self.names, f"{_WEIGHT}_sum"]).rename_columns([*self.names, _WEIGHT])

    def _pruned(self, table: pa.Table) -> pa.Table:
        """Subtract the weight of the first key that has no place from all, and leave out those that have none left."""
        if table.num_rows <= self.most:
            return table
        weights = table[_WEIGHT].to_numpy()
        less = int(np.partition(weights, len(weights) - self.most - 1)[len(weights) - self.most - 1])
        self.missed += less
        left = table.set_column(len(self.names), _WEIGHT, pa.array(weights - less, pa.int64()))
        return left.filter(pc.greater(left[_WEIGHT], 0))
