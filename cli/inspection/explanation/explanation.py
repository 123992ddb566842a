"""What is told of a window, as values: facts in words with their numbers, and rows where they stand in their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ....windowing.columns.arrays import Ints
from .facts.fact import Fact


@dataclass(frozen=True, slots=True)
class ToldRows:
    """Rows of the input, of which those at the ends are told.

    ``pos``: int64 (n,), the arrival positions of all of them, in the order of the window.
    ``table``: those that are told, as the input has them, from the first on.
    ``places``: where each of these is: file and line.
    ``told``: int64, which of ``pos`` these are.
    """

    pos: Ints
    table: pa.Table
    places: tuple[str, ...]
    told: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def left_out(self) -> int:
        """How many rows are not told."""
        return len(self.pos) - len(self.told)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a window is as it is.

    ``result``: the folder of the result.
    ``spec``: the window of the job.
    ``key``: name and value of each key column.
    ``window``: its number.
    ``pane``: what the result says of it, by column, as texts.
    ``facts``: what is told of it.
    ``rows``: its rows.
    ``others``: the rows that facts name and that are not among ``rows``.
    ``also``: other windows that hold the time that was asked for.
    """

    result: str
    spec: str
    key: tuple[tuple[str, str], ...]
    window: int
    pane: Mapping[str, Any]
    facts: tuple[Fact, ...]
    rows: ToldRows
    others: ToldRows
    also: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingWindow:
    """Where the rows of a key went that has no such window.

    ``result``, ``spec``, ``key``: as of `Explanation`.
    ``asked``: what was asked for, in words.
    ``rows``: how many rows of the key were read.
    ``windows``: how many windows the key has.
    ``counts``: how many of the rows were filtered, rejected (by reason), in windows, dropped at the end, or held.
    ``facts``: what else is told.
    """

    result: str
    spec: str
    key: tuple[tuple[str, str], ...]
    asked: str
    rows: int
    windows: int
    counts: Mapping[str, int]
    facts: tuple[Fact, ...]
