"""Where rows and bounds stand: to scale as far as neighbouring rows stay apart."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from .picture import Axis, Measure


@dataclass(frozen=True, slots=True)
class Scale:
    """The way from places and values of an axis to a distance from its left end.

    ``at``: the distance of each place, ascending.
    ``measures``: the value of each place; None: there are none.
    ``apart``: the least distance of two places.
    ``is_true``: whether distances are proportional to values.
    """

    at: tuple[float, ...]
    measures: tuple[Measure, ...] | None
    apart: float
    is_true: bool

    def of(self, value: Measure) -> float | None:
        """Return where a value stands: a bound of the first row that is not before it; None without values."""
        if self.measures is None or not self.at:
            return None
        i = bisect_left(self.measures, value)
        if i == 0 or i == len(self.at):
            return self._outside(value, 0 if i == 0 else -1)
        left, right = self.measures[i - 1], self.measures[i]
        if value == right:
            return max(self.at[i] - self.apart / 2, (self.at[i - 1] + self.at[i]) / 2)
        return self.at[i - 1] + float(Fraction(value - left) / Fraction(right - left)) * (self.at[i] - self.at[i - 1])

    def _outside(self, value: Measure, end: int) -> float:
        """Where a value outside of all rows stands: as far as it would be to scale, but at least half a row."""
        assert self.measures is not None
        first, last = self.measures[0], self.measures[-1]
        if first == last:
            return self.at[end] + (self.apart if value > self.measures[end] else -self.apart / 2)
        step = float(Fraction(self.at[-1] - self.at[0]) / Fraction(last - first))
        far = float(Fraction(value - self.measures[end])) * step
        return self.at[end] + (max(far, self.apart / 2) if end else min(far, -self.apart / 2))


def scale(axis: Axis, first: int, stop: int, apart: float, room: float, widest: float = 0) -> Scale:
    """Return the scale of the places from ``first`` to before ``stop``: at least ``apart`` from each other.

    ``room``: from the first to the last, if that is enough. Distances are a mixture of those to scale and equal ones,
    with no more of the latter than keeps rows apart. Without values they are equal, and at most ``widest``.
    """
    places = stop - first
    step = max(apart, min(widest, room / max(places - 1, 1)))
    even = tuple(i * step for i in range(places))
    measures = None if axis.measures is None else axis.measures[first:stop]
    if measures is None or places < 2:
        return Scale(even, measures, apart, False)
    whole = Fraction(measures[-1]) - Fraction(measures[0])
    room = max(room, (places - 1) * apart)
    if not whole:
        return Scale(even, measures, apart, False)
    true = [float((Fraction(value) - Fraction(measures[0])) / whole) * room for value in measures]
    share = _share(true, apart, room / (places - 1))
    at = tuple((1 - share) * x + share * i * room / (places - 1) for i, x in enumerate(true))
    return Scale(at, measures, apart, share == 0)


def _share(true: Sequence[float], apart: float, even: float) -> float:
    """Return how much of equal distances keeps rows apart, from 0 to 1."""
    least = min(right - left for left, right in pairwise(true))
    return 0.0 if least >= apart else min(1.0, (apart - least) / (even - least)) if even > least else 1.0
