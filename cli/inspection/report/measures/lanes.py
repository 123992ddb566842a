"""The windows of some keys as bars: where a key has too many, successive windows share one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....windowing.errors import shown
from ..report import HeldRows, Lane, Scale
from .panes import Panes, axis_values


class LaneBars:
    """The bars of one key, at most ``most``.

    ``key``: column to scalar.
    ``is_chosen``: whether the user named it.
    """

    def __init__(self, key: Mapping[str, Any], is_chosen: bool, has_rows: bool, most: int) -> None:
        self.key = key
        self.is_chosen = is_chosen
        self.has_rows = has_rows
        self.most = most
        self.windows = 0
        self.rows = 0
        self.held: HeldRows | None = None
        self.starts: np.ndarray | None = None
        self.ends = self.sizes = self.counts = np.zeros(0, np.int64)

    def add(self, starts: np.ndarray, ends: np.ndarray, rows: np.ndarray | None) -> None:
        """Add windows of the key, in the order in which they came out."""
        if not len(starts):
            return
        sizes = np.zeros(len(starts), np.int64) if rows is None else rows
        self.windows += len(starts)
        self.rows += int(sizes.sum())
        found = (starts, ends, sizes, np.ones(len(starts), np.int64))
        if self.starts is not None:
            before = (self.starts, self.ends, self.sizes, self.counts)
            found = tuple(map(np.concatenate, zip(before, found, strict=True)))  # type: ignore[assignment]
        self.starts, self.ends, self.sizes, self.counts = found
        while len(self.starts) > self.most:
            self._share()

    def lane(self) -> Lane:
        """Return the lane so far."""
        starts = np.zeros(0, np.int64) if self.starts is None else self.starts
        rows, sizes = (self.rows, self.sizes) if self.has_rows else (None, None)
        key, ends, counts = key_text(self.key), self.ends, self.counts
        return Lane(key, self.is_chosen, self.windows, rows, starts, ends, sizes, counts, self.held)

    def _share(self) -> None:
        """Let each two successive bars share one."""
        assert self.starts is not None
        begins = np.arange(0, len(self.starts), 2)
        self.starts = np.minimum.reduceat(self.starts, begins)
        self.ends = np.maximum.reduceat(self.ends, begins)
        self.sizes = np.add.reduceat(self.sizes, begins)
        self.counts = np.add.reduceat(self.counts, begins)


def key_text(key: Mapping[str, Any]) -> str:
    """Return the values of a key as text: ``u7``, or ``eu, shop 3`` where several columns make it."""
    return ", ".join(shown(_text(value.as_py())) for value in key.values())


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def add_panes(lanes: Sequence[LaneBars], panes: Panes) -> None:
    """Add to each lane the panes of its key that have a place."""
    if not lanes:
        return
    candidates = np.flatnonzero(panes.has_place & _may_match(lanes, panes.keys, len(panes.numbers)))
    if not len(candidates):
        return
    keys = panes.keys.take(candidates) if panes.keys.num_columns else panes.keys
    for lane in lanes:
        places = candidates[matches(keys, lane.key, len(candidates))]
        lane.add(panes.starts[places], panes.ends[places], None if panes.rows is None else panes.rows[places])


def add_held(lanes: Sequence[LaneBars], table: pa.Table, scale: Scale) -> None:
    """Tell each lane of the rows that a state holds of its key; ``table``: as `OpenWindowRows` has them."""
    for lane in lanes:
        found = table.filter(pa.array(matches(table, lane.key, table.num_rows)))
        if found.num_rows and found["first"][0].is_valid and found["last"][0].is_valid:
            start, end = (axis_values(found[name], scale)[0].item() for name in ("first", "last"))
            lane.held = HeldRows(start, end, found["rows"][0].as_py())


def matches(keys: pa.Table, wanted: Mapping[str, Any], n: int) -> np.ndarray:
    """Whether each of ``n`` keys has these values, bool of shape (n,)."""
    found = np.ones(n, np.bool_)
    for name, value in wanted.items():
        found &= pc.equal(keys[name], value).fill_null(False).to_numpy()
    return found


def _may_match(lanes: Sequence[LaneBars], keys: pa.Table, n: int) -> np.ndarray:
    """Whether each value of a key is one of those of a lane: all that belong to a lane are, and few others."""
    found = np.ones(n, np.bool_)
    for name in keys.column_names:
        values = pa.array([lane.key[name].as_py() for lane in lanes], keys[name].type)
        found &= pc.is_in(keys[name], value_set=values).to_numpy()
    return found
