"""An explanation of a window, as values: facts in words with their numbers, and rows with their places in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ....windowing.columns.arrays import Ints
from .facts.fact import Fact


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows of the input, of which those at the ends are read.

    ``pos``: int64 (n,), the arrival positions of all of them, in the order of the window.
    ``table``: those that are read, as the input has them, from the first on.
    ``places``: where each of these is: file and line.
    ``at``: int64, which of ``pos`` these are, ascending.
    """

    pos: Ints
    table: pa.Table
    places: tuple[str, ...]
    at: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def left_out(self) -> int:
        """How many rows are not read."""
        return len(self.pos) - len(self.at)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a window is as it is.

    ``result``: the folder of the result.
    ``spec``: the window of the job.
    ``key``: name and value of each key column.
    ``window``: its number.
    ``pane``: what the result says of it, by column, as texts.
    ``facts``: what is known of it.
    ``rows``: its rows.
    ``others``: the rows that facts name and that are not among ``rows``.
    ``also``: the numbers of other windows that hold the time of ``--at``.
    """

    result: str
    spec: str
    key: tuple[tuple[str, str], ...]
    window: int
    pane: Mapping[str, Any]
    facts: tuple[Fact, ...]
    rows: InputRows
    others: InputRows
    also: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingWindow:
    """Where the rows of a key went that has no such window.

    ``result``, ``spec``, ``key``: as of `Explanation`.
    ``window``: the window that it does not have, in words: ``window 7``, ``window at 10:00``.
    ``rows``: how many rows of the key were read.
    ``windows``: how many windows the key has.
    ``counts``: how many of the rows were filtered, rejected (by reason), in windows, dropped at the end, or held.
    ``facts``: what else is known.
    """

    result: str
    spec: str
    key: tuple[tuple[str, str], ...]
    window: str
    rows: int
    windows: int
    counts: Mapping[str, int]
    facts: tuple[Fact, ...]
