"""Sessions: the valley between the short times inside of them and the long ones between them.

The times between rows of a key are counted by their logarithm. Where sessions are in the data there are two hills, and
any gap in the valley between them cuts the rows alike. A number says how firm the gap is: the share of rows that would
change their session if it was a fifth longer or shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .durations import NICE
from .row_order import RowsInOrder

Floats = npt.NDArray[np.float64]

_BINS = 8
"""Bins of a factor of ten."""
_LEAST = 8
"""How many gaps a hill has at least."""
_LEAST_SHARE = 0.002
"""What share of all gaps a hill has at least."""
_DEEP = 0.6
"""How high the valley is at most, as a share of the lower hill."""
_ROWS_IN_A_SESSION = 2
"""How many rows sessions have on the average at least."""
_MOST_MOVED = 0.1
"""The share of rows that may change their session, if the gap is a fifth longer or shorter."""


@dataclass(frozen=True, slots=True)
class SessionGap:
    """A gap that ends sessions.

    ``micros``: the gap, in microseconds.
    ``short``, ``long``: where the hills on both sides are highest: a usual time inside of a session, and between two.
    ``sessions``: how many sessions it makes of the rows of the sample.
    ``moved_longer``, ``moved_shorter``: the share of rows whose session has another first row, if it is 20 % longer or
        shorter.
    """

    micros: int
    short: int
    long: int
    sessions: int
    moved_longer: float
    moved_shorter: float


def find_session_gap(ordered: RowsInOrder) -> SessionGap | None:
    """Find the gap in the deepest valley that makes sessions of the rows; None where there is no such valley."""
    between = np.diff(ordered.micros)[~ordered.begins[1:]]
    moving = between[between > 0]
    if len(moving) < 2 * _LEAST:
        return None
    low = np.floor(np.log10(moving.min()) * _BINS) - 1
    places = np.floor(np.log10(moving) * _BINS) - low
    counts = np.bincount(places.astype(np.int64), minlength=int(places.max()) + 2).astype(np.float64)
    for valley in _valleys(_smooth(counts), counts):
        gap, short, long = (10 ** ((at + low + 0.5) / _BINS) for at in valley)
        made = measure_gap(ordered, _nice(gap), int(short), int(long))
        if _is_fit(made, len(ordered.micros)):
            return made
    return None


def _is_fit(made: SessionGap, rows: int) -> bool:
    """Whether a gap makes several sessions, of several rows each, which hardly depend on its exact length."""
    is_firm = max(made.moved_longer, made.moved_shorter) <= _MOST_MOVED
    return is_firm and 1 < made.sessions <= rows / _ROWS_IN_A_SESSION


def measure_gap(ordered: RowsInOrder, micros: int, short: int = 0, long: int = 0) -> SessionGap:
    """Return what a gap makes of the rows: its sessions, and the rows that a fifth more or less would move."""
    first = session_starts(ordered, micros)
    longer, shorter = (session_starts(ordered, int(micros * factor)) for factor in (1.2, 0.8))
    rows = max(1, len(first))
    moved = [float((first != other).sum()) / rows for other in (longer, shorter)]
    return SessionGap(micros, short, long, len(np.unique(first)), *moved)


def session_starts(ordered: RowsInOrder, micros: int) -> npt.NDArray[np.int64]:
    """Return int64 (M,), for each row the place of the first row of its session (semantics section 2, ``gap``)."""
    starts = ordered.begins.copy()
    starts[1:] |= np.diff(ordered.micros) > micros
    places = np.flatnonzero(starts)
    return places[np.cumsum(starts) - 1] if len(starts) else places


def _smooth(counts: Floats) -> Floats:
    for _ in range(2):
        padded = np.pad(counts, 1)
        counts = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return counts


def _valleys(smooth: Floats, counts: Floats) -> list[tuple[float, int, int]]:
    """Return the places of valleys, each with the hills on both sides of it; the best comes first.

    A valley is the better the more the lower of its hills rises above it.
    """
    least = max(_LEAST, _LEAST_SHARE * counts.sum())
    left_most, right_most = np.maximum.accumulate(smooth), np.maximum.accumulate(smooth[::-1])[::-1]
    left_sum = np.cumsum(counts)
    found = []
    for at in range(1, len(smooth) - 1):
        lower = min(left_most[at - 1], right_most[at + 1])
        is_low = smooth[at] <= min(smooth[at - 1], smooth[at + 1])
        is_between = left_sum[at - 1] >= least and left_sum[-1] - left_sum[at] >= least
        if is_low and is_between and smooth[at] <= _DEEP * lower:
            depth = float(np.log((lower + 0.5) / (smooth[at] + 0.5)))
            found.append((depth, at, int(smooth[:at].argmax()), at + 1 + int(smooth[at + 1 :].argmax())))
    in_turn = sorted(found, key=lambda valley: -valley[0])
    return [(_middle(smooth, at), short, long) for _, at, short, long in in_turn]


def _middle(smooth: Floats, at: int) -> float:
    """Return the middle of the floor of a valley: the places around ``at`` that are as low."""
    low = high = at
    while low > 0 and smooth[low - 1] <= smooth[at] + 1e-9:
        low -= 1
    while high < len(smooth) - 1 and smooth[high + 1] <= smooth[at] + 1e-9:
        high += 1
    return (low + high) / 2


def _nice(micros: float) -> int:
    """Return the duration that people would say which is nearest to one."""
    return min(NICE, key=lambda each: abs(np.log(each / micros)))
