"""What a report measures on panes, in two passes over results: counts and busy keys, then the windows of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.errors import ConfigError, nearest
from ..results.open_windows import OpenWindowRows
from ..results.result import ResultFolder
from ..results.shown_rows import split_only, value_of
from .panes import (
    BEGIN,
    CLOSED,
    PLACED,
    STOP,
    Axis,
    Choice,
    Key,
    PaneColumns,
    Scale,
    add_held,
    add_panes,
    empty_lane,
    is_chosen,
    pane_columns,
    panes_of,
)
from .panes import LATE as IS_LATE
from .panes import ROWS as ROWS_OF

# The keys with most rows, found in one pass in bounded memory.
#
# Keys that come one after another, as those of one result do, are each complete when the next one comes, and the
# lightest can be forgotten. Of keys that come again, as in the results of several days, the algorithm of Misra and
# Gries keeps those that may be heavy.


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
        if self.is_sorted:  # all but the last key are complete
            self._last, found = found.slice(found.num_rows - 1), found.slice(0, found.num_rows - 1)
        found = found if self._table is None else pa.concat_tables([self._table, found])
        table = found if self.is_sorted else self._sums(found)
        if table.num_rows > self.most:
            weights = table[_WEIGHT].to_numpy()
            if self.is_sorted:  # the lightest are forgotten
                self._forgotten += table.num_rows - self.most
                table = table.take(np.sort(np.argsort(-weights, kind="stable")[: self.most]))
            else:  # Misra and Gries: all lose the weight of the heaviest that goes
                less = int(np.partition(weights, len(weights) - self.most - 1)[len(weights) - self.most - 1])
                self.missed += less
                self._is_pruned = True
                left = table.set_column(len(self.names), _WEIGHT, pa.array(weights - less, pa.int64()))
                table = left.filter(pc.greater(left[_WEIGHT], 0))
        self._table = table

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

    def _sums(self, table: pa.Table) -> pa.Table:
        sums = table.group_by(self.names, use_threads=False).aggregate([(_WEIGHT, "sum")])
        return sums.select([*self.names, f"{_WEIGHT}_sum"]).rename_columns([*self.names, _WEIGHT])


# Values counted in bins that grow by a constant factor: memory does not depend on how many values come.


_FINE = 64
"""Bins of an octave, from ``2**k`` to ``2**(k + 1)``: whole numbers below 128 have bins of their own."""
_LOW, _HIGH = -64, 128
"""The octaves: values outside of them count in the first or the last bin."""
_MOST_BARS = 40
_PERCENTS = (50, 90, 99)


class Spread:
    """Counts values of at least 0, each in its bin up to 2**53. Others, as negative ones and NaN, are left out."""

    def __init__(self) -> None:
        self.bins = np.zeros((_HIGH - _LOW) * _FINE, np.int64)
        self.zeros = 0
        self.count = 0
        self.least = np.inf
        self.most = -np.inf
        self.total = 0.0

    def add(self, values: np.ndarray) -> None:
        """Count values, int64 or float64 of shape (n,)."""
        values = values[np.isfinite(values) & (values >= 0)] if len(values) else values
        if not len(values):
            return
        self.count += len(values)
        self.least, self.most = min(self.least, values.min().item()), max(self.most, values.max().item())
        self.total += float(values.sum(dtype=np.float64))
        above = values[values > 0]
        self.zeros += len(values) - len(above)
        self.bins += np.bincount(_bin_of(above), minlength=len(self.bins))

    def distribution(self, unit: Literal["duration", "number", "rows"]) -> dict[str, Any] | None:
        """Return the distribution so far; None before the first value.

        ``unit``: what the values are: microseconds, numbers along the axis, or rows. ``bars`` are those of values above
        0, in order, each with as many values as lie in ``[low, high)``; their bounds grow by a constant factor.
        ``quantiles`` are pairs of a percent and a value, which is at most 1.6 % too small.
        """
        if not self.count:
            return None
        sums, quantiles = np.cumsum(self.bins), []
        for percent in _PERCENTS:  # the value below or at which this share lies: the lower bound of its bin
            rank = max(1, int(np.ceil(percent / 100 * self.count)))
            low = _low_of(np.searchsorted(sums, [rank - self.zeros]))[0]
            quantiles.append((percent, 0.0 if rank <= self.zeros else float(np.clip(low, self.least, self.most))))
        bars, used = list[dict[str, float]](), np.flatnonzero(self.bins)
        if len(used):
            edges = _edges(int(used[0]), int(used[-1]) + 1, unit == "rows")
            counts = np.add.reduceat(np.append(self.bins, 0), edges)[:-1].tolist()
            bounds = pairwise(_low_of(edges).tolist())
            bars = [{"low": low, "high": high, "count": n} for (low, high), n in zip(bounds, counts, strict=True)]
        told = {name: getattr(self, name) for name in ("zeros", "count", "least", "most", "total")}
        return {"unit": unit, "bars": bars, **told, "quantiles": quantiles}


def _edges(first: int, stop: int, is_whole: bool) -> np.ndarray:
    """Return the fine bins at which bars begin, and the one after the last: few enough, and of equal width.

    Whole numbers below 128 are not divided further, since each has one bin alone.
    """
    step = 1
    while (stop - first) / step > _MOST_BARS - 2:
        step *= 2
    edges = np.arange(first // step, -(-stop // step) + 1) * step
    return _bin_of(np.maximum(np.unique(np.ceil(_low_of(edges))), 1)) if is_whole else edges


def _bin_of(values: np.ndarray) -> np.ndarray:
    parts, octaves = np.frexp(values.astype(np.float64))
    bins = (octaves.astype(np.int64) - 1 - _LOW) * _FINE + ((parts * 2 - 1) * _FINE).astype(np.int64)
    return np.clip(bins, 0, (_HIGH - _LOW) * _FINE - 1)


def _low_of(bins: np.ndarray) -> np.ndarray:
    return np.ldexp(1 + (bins % _FINE) / _FINE, bins // _FINE + _LOW)


# Counts along an axis in equal steps, which double or so as the axis grows: never more than a few hundred.


_SECOND = 1_000_000
_TIMES = (
    *(10**power for power in range(6)),
    *(_SECOND * seconds for seconds in (1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400)),
    *(_SECOND * 86_400 * days for days in (7, 28, 364, 3640, 36_400, 364_000)),
)
_WORDS = (
    *("microsecond", "10 microseconds", "100 microseconds", "millisecond", "10 milliseconds", "100 milliseconds"),
    *("second", "5 seconds", "15 seconds", "minute", "5 minutes", "15 minutes", "hour", "3 hours", "6 hours"),
    *("12 hours", "day", "week", "4 weeks", "52 weeks", "520 weeks", "5,200 weeks", "52,000 weeks"),
)
_MONDAY = 4 * 86_400 * _SECOND
"""The first Monday after 1970-01-01: steps of weeks begin on Mondays."""
_NUMBERS = tuple(mantissa * 10.0**power for power in range(-9, 300) for mantissa in (1, 5))
_WHOLE = tuple(mantissa * 10**power for power in range(18) for mantissa in (1, 5))
_MOST = 240
_EXACT = 2.0**52  # numbers of steps are whole numbers


class Steps:
    """Counts of several channels over steps of an axis. Each width of steps divides the next.

    ``first``: the number of the first step: it begins at ``first`` times the width.
    ``counts``: int64, shape (channels, steps).
    """

    def __init__(self, scale: Scale, channels: Sequence[str]) -> None:
        self.channels = list(channels)
        self.widths: Sequence[float] = {"time": _TIMES, "number": _NUMBERS, "window": _WHOLE}[scale]
        self.anchor = _MONDAY if scale == "time" else 0
        self.level = 0
        self.first = 0
        self.counts = np.zeros((len(self.channels), 0), np.int64)
        self.is_time = scale == "time"

    @property
    def width(self) -> float:
        return self.widths[self.level]

    @property
    def words(self) -> str:
        return _WORDS[self.level] if self.is_time else f"{self.width:,g}"

    @property
    def begin(self) -> float:
        return self.first * self.width + self.anchor

    def add(self, values: np.ndarray, **weights: np.ndarray | int) -> None:
        """Count values, int64 or float64; ``weights``: channel to the weight of each, int64 of at least 0."""
        values = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        if not len(values):
            return
        self._reach(values.min(), values.max())
        places = self._steps(values) - self.first
        for channel, weight in weights.items():
            row = self.counts[self.channels.index(channel)]
            np.add.at(row, places, weight)

    def sums(self, channel: str) -> np.ndarray:
        """Return the counts of a channel, a step each."""
        return self.counts[self.channels.index(channel)]

    def _steps(self, values: np.ndarray) -> np.ndarray:
        return np.floor_divide(values - self.anchor, self.width).astype(np.int64)

    def _reach(self, low: float, high: float) -> None:
        while max(abs(low - self.anchor), abs(high - self.anchor)) / self.width > _EXACT:
            self._widen()
        while True:
            first, last = (int(step) for step in self._steps(np.array([low, high])))
            if self.counts.shape[1]:
                first, last = min(first, self.first), max(last, self.first + self.counts.shape[1] - 1)
            if last - first < _MOST:
                break
            self._widen()
        if self.counts.shape[1] and (first, last - first + 1) == (self.first, self.counts.shape[1]):
            return
        grown = np.zeros((len(self.channels), last - first + 1), np.int64)
        if self.counts.shape[1]:
            at = self.first - first
            grown[:, at : at + self.counts.shape[1]] = self.counts
        self.first, self.counts = first, grown

    def _widen(self) -> None:
        factor = round(self.widths[self.level + 1] / self.width)
        self.level += 1
        if not self.counts.shape[1]:
            return
        places = np.arange(self.first, self.first + self.counts.shape[1]) // factor
        merged = np.zeros((len(self.channels), int(places[-1] - places[0]) + 1), np.int64)
        for row, counts in zip(merged, self.counts, strict=True):
            np.add.at(row, places - places[0], counts)
        self.first, self.counts = int(places[0]), merged


# The keys that a user names for a report: ``--only user=u7 --only user=u8``.


def parse_choice(texts: Sequence[str], keys: Sequence[str], schema: pa.Schema) -> Choice:
    """Parse texts ``COLUMN=VALUE``; values of one column are alternatives, and all columns must fit.

    Raises `ConfigError` for a text of another form, a column that is no key, and a value that is not of its type.
    """
    found: dict[str, list[pa.Scalar]] = {}
    for name, value in split_only(texts):
        if name not in keys:
            near = nearest(name, keys)
            do = f"did you mean {near}?" if near else f"the key is {', '.join(keys)}"
            do = do if keys else "the windows of this result have no key"
            raise ConfigError(f"--only {name}={value}: {name} is no column of the key", do)
        found.setdefault(name, []).append(value_of(value, schema.field(name).type, f"--only {name}"))
    return found


BUSIEST, MOST_CHOSEN, BARS = 8, 16, 1200
WINDOWS, ROWS, LATE, LATE_ROWS, REJECTS = "windows", "rows", "late", "late_rows", "rejects"


@dataclass(slots=True)
class Measured:
    """What one pass over panes counts.

    ``columns``: where the first result says what; the others must say it in the same way.
    ``choice``: the keys that the user named.
    ``busy``, ``chosen``: the weights of all keys, and of those that the user named.
    ``lengths``, ``sizes``: how long the windows are, and how many rows they have.
    ``steps``: windows and rows over time, by the starts of the windows.
    ``reasons``: ``closed_by`` to windows.
    ``windows``: the number of panes; ``placeless``: those without a place in time.
    ``results``: the results whose panes were counted, and where each says what.
    """

    columns: PaneColumns
    choice: Choice
    busy: BusyKeys
    chosen: BusyKeys
    steps: Steps
    lengths: Spread = field(default_factory=Spread)
    sizes: Spread = field(default_factory=Spread)
    reasons: Counter[str] = field(default_factory=Counter)
    windows: int = 0
    placeless: int = 0
    results: list[tuple[ResultFolder, PaneColumns]] = field(default_factory=list)

    @property
    def axis(self) -> Axis:
        return self.columns.axis

    def add(self, panes: pa.Table) -> None:
        """Count panes, as `panes_of` yields them."""
        self.windows += panes.num_rows
        rows = panes[ROWS_OF].to_numpy() if ROWS_OF in panes.column_names else None
        if self.columns.keys:
            weights = np.ones(panes.num_rows, np.int64) if rows is None else rows
            self.busy.add(panes, weights)
            if self.choice:
                fits = is_chosen(panes, self.choice)
                self.chosen.add(panes.filter(pa.array(fits)), weights[fits])
        if CLOSED in panes.column_names:
            for each in pc.value_counts(panes[CLOSED]):
                self.reasons[str(each["values"].as_py())] += each["counts"].as_py()
        if rows is not None:
            self.sizes.add(rows)
        placed = panes[PLACED].to_numpy()
        starts, ends, late = (panes[name].to_numpy()[placed] for name in (BEGIN, STOP, IS_LATE))
        self.placeless += panes.num_rows - len(starts)
        if self.axis.scale != "window":
            self.lengths.add(ends - starts)
        self.steps.add(starts, windows=1, rows=0 if rows is None else rows[placed], late=late.astype(np.int64))


def measure(results: Sequence[ResultFolder], only: Sequence[str], note: Callable[[str], None]) -> Measured | None:
    """Count the panes of results; None where none of them numbers windows.

    ``only``: the keys that the user named, as `parse_choice` takes them. ``note``: is told of results that are left
    out. Raises as `panes_of` and `parse_choice` do.
    """
    found: Measured | None = None
    for result in results:
        columns = pane_columns(result)
        if columns is None:
            continue
        if found is None:
            choice = parse_choice(only, columns.keys, result.schema)
            is_sorted = len(results) == 1 and columns.is_sorted
            steps = Steps(columns.axis.scale, (WINDOWS, ROWS, LATE, LATE_ROWS, REJECTS))
            busy, chosen = (BusyKeys(columns.keys, is_sorted) for _ in range(2))
            found = Measured(columns, choice, busy, chosen, steps)
        mine, first = ((each.keys, each.types, each.axis.scale, each.has_rows) for each in (columns, found.columns))
        if mine != first:
            note(f"{result.shown} has other columns than {results[0].shown}, and its windows are left out")
            continue
        found.results.append((result, columns))
        for panes in panes_of(result, columns):
            found.add(panes)
    return found


def lanes_of(measured: Measured, held: OpenWindowRows | None) -> dict[str, Any]:
    """Return the windows of the chosen and of the busiest keys; without a key one lane of all windows.

    ``held``: the rows that a state holds; None without one. ``lanes`` are the keys, chosen ones first, then the busiest
    first; ``keys`` is the number of keys in the result, None where it is too large to count; a key that is not among
    the busiest has at most ``missed`` rows or windows more than it seems; ``is_by_rows`` says that the busiest have
    most rows, and not most windows.
    """
    columns, keys, chosen, most = measured.columns, list[Key]([{}]), 0, 4 * BARS
    if columns.keys:
        named, busy, most = measured.chosen.heaviest(MOST_CHOSEN), measured.busy.heaviest(BUSIEST), BARS
        told = [[value.as_py() for value in key.values()] for key in named]
        keys = [*named, *(key for key in busy if [value.as_py() for value in key.values()] not in told)]
        chosen = len(named)
    lanes = [empty_lane(key, at < chosen, columns.has_rows) for at, key in enumerate(keys)]
    for result, own in measured.results:
        for panes in panes_of(result, own):
            add_panes(lanes, keys, panes, most)
    if held is not None and {"first", "last"} <= set(held.schema.names) and measured.axis.scale != "window":
        for table in held.tables():
            add_held(lanes, keys, table, measured.axis.scale)
    count = measured.busy.count if columns.keys else 1
    about = {"keys": count, "missed": measured.busy.missed, "is_by_rows": columns.has_rows}
    return {"axis": asdict(measured.axis), **about, "lanes": lanes}
