"""Values counted in bins that grow by a constant factor: memory does not depend on how many values come."""

from __future__ import annotations

import numpy as np

from ..report import Bar, Distribution, Measure

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

    def distribution(self, unit: Measure) -> Distribution | None:
        """Return the distribution so far; None before the first value."""
        if not self.count:
            return None
        bars = self._bars(unit == "rows")
        quantiles = tuple((percent, self._quantile(percent / 100)) for percent in _PERCENTS)
        return Distribution(
            unit,
            bars,
            self.zeros,
            self.count,
            self.least,
            self.most,
            self.total,
            quantiles,
        )

    def _quantile(self, share: float) -> float:
        """Return the value below or at which this share of the values lies: the lower bound of its bin."""
        rank = max(1, int(np.ceil(share * self.count)))
        if rank <= self.zeros:
            return 0.0
        at = int(np.searchsorted(np.cumsum(self.bins), rank - self.zeros))
        return float(np.clip(_low_of(np.array([at]))[0], self.least, self.most))

    def _bars(self, is_whole: bool) -> tuple[Bar, ...]:
        used = np.flatnonzero(self.bins)
        if not len(used):
            return ()
        edges = _edges(int(used[0]), int(used[-1]) + 1, is_whole)
        bounds = _low_of(edges)
        sums = np.add.reduceat(np.append(self.bins, 0), edges)[:-1]
        return tuple(
            Bar(float(low), float(high), int(n)) for low, high, n in zip(bounds[:-1], bounds[1:], sums, strict=True)
        )


def _edges(first: int, stop: int, is_whole: bool) -> np.ndarray:
    """Return the fine bins at which bars begin, and the one after the last: few enough, and of equal width.

    Whole numbers below 128 are not divided further, since each has one bin alone.
    """
    step = 1
    while (stop - first) / step > _MOST_BARS - 2:
        step *= 2
    edges = np.arange(first // step, -(-stop // step) + 1) * step
    if not is_whole:
        return edges
    numbers = np.unique(np.ceil(_low_of(edges)))
    return _bin_of(np.maximum(numbers, 1))


def _bin_of(values: np.ndarray) -> np.ndarray:
    parts, octaves = np.frexp(values.astype(np.float64))
    bins = (octaves.astype(np.int64) - 1 - _LOW) * _FINE + ((parts * 2 - 1) * _FINE).astype(np.int64)
    return np.clip(bins, 0, (_HIGH - _LOW) * _FINE - 1)


def _low_of(bins: np.ndarray) -> np.ndarray:
    return np.ldexp(1 + (bins % _FINE) / _FINE, bins // _FINE + _LOW)
