"""Windows as bars on lanes, a lane for each key: `show` draws them as text, and the page of a report as a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...windowing.drawings.picture import pack
from ...windowing.support.amounts import count_of
from .table import cell_width, cut_to, padded


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """The windows of one key. All arrays are of shape (bars,).

    ``key``: the values of the key as text; empty where the windows have no key.
    ``starts``, ``ends``: from where to where each bar reaches, as numbers of the axis; ``ends`` is inclusive.
    ``values``: what stands with each bar: its rows, or an aggregate, NaN where it has none; None: nothing is known.
    ``counts``: the windows in each bar, int64: 1, or more where successive windows share a bar.
    ``is_chosen``: whether the user named the key; else it is one of the busiest.
    ``held``: what a state holds of the key: the least and the largest order value, both inclusive, and how many rows.
    """

    key: str
    starts: np.ndarray
    ends: np.ndarray
    values: np.ndarray | None
    counts: np.ndarray
    is_chosen: bool = False
    held: tuple[float, float, int] | None = None

    @property
    def windows(self) -> int:
        return int(self.counts.sum())

    @property
    def rows(self) -> int | None:
        return None if self.values is None else int(self.values.sum())

    def halved(self) -> Lane:
        begins = np.arange(0, len(self.starts), 2)
        return replace(
            self,
            starts=np.minimum.reduceat(self.starts, begins),
            ends=np.maximum.reduceat(self.ends, begins),
            values=None if self.values is None else np.add.reduceat(self.values, begins),
            counts=np.add.reduceat(self.counts, begins),
        )

    def with_windows(self, starts: np.ndarray, ends: np.ndarray, values: np.ndarray | None, most: int) -> Lane:
        """Return the lane with more windows of its key, as they came out, and at most ``most`` bars."""
        if not len(starts):
            return self
        lane = replace(
            self,
            starts=np.concatenate([self.starts, starts]),
            ends=np.concatenate([self.ends, ends]),
            values=None if values is None or self.values is None else np.concatenate([self.values, values]),
            counts=np.concatenate([self.counts, np.ones(len(starts), np.int64)]),
        )
        while len(lane.starts) > most:
            lane = lane.halved()
        return lane


_TRACKS = 4
"""Lines of bars for windows that overlap."""
_LABEL = 20
Cells = npt.NDArray[np.int64]


def lane_lines(
    lanes: Sequence[Lane],
    ends: tuple[str, str],
    value: str | None,
    width: int,
    blocks: str,
    emphasis: Callable[[str], str],
) -> Iterator[str]:
    """Yield lanes as lines of text, at least one lane: bars, and above each other those that overlap.

    ``ends``: the ends of the axis, as texts. ``value``: the name of the values, drawn as a line of ``blocks``, letters
    from low to high; None: there are none. ``width``: characters of a line.
    """
    left = max([*(min(cell_width(lane.key), _LABEL) for lane in lanes), 7]) + 1
    room = max(width - left - 2, 20)
    gap = max(room - sum(map(cell_width, ends)), 1)
    yield f"{' ' * left} {ends[0]}{' ' * gap}{ends[1]}"
    low, high = min(lane.starts.min() for lane in lanes), max(lane.ends.max() for lane in lanes)
    known = np.concatenate([lane.values for lane in lanes if lane.values is not None] or [np.zeros(0)])
    known = known[np.isfinite(known)]
    least, most = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    for lane in lanes:
        shares = (((at - low) / ((high - low) or 1.0) * (room - 1)).round() for at in (lane.starts, lane.ends))
        first, last = (np.clip(each, 0, room - 1).astype(np.int64) for each in shares)
        for at, line in enumerate(_stacked(lane, first, last, room)):
            yield f"{padded(cut_to('' if at else lane.key or 'windows', left - 1), left)} {line}".rstrip()
        if lane.values is not None:
            # A letter for each character of the axis: the largest value of the windows there.
            highest = np.full(room, -np.inf)
            for a, b, each in zip(first, last, lane.values, strict=True):
                if np.isfinite(each):
                    highest[a : b + 1] = np.maximum(highest[a : b + 1], each)
            line = "".join(
                blocks[int(min((each - least) / ((most - least) or 1.0) * len(blocks), len(blocks) - 1))]
                if np.isfinite(each)
                else " "
                for each in highest
            )
            yield f"{padded(cut_to(f' {value}', left - 1), left)} {line}".rstrip()
    if len(known):
        yield emphasis(f"{value}: {blocks[0]} {least:.6g} to {blocks[-1]} {most:.6g}")


def _stacked(lane: Lane, first: Cells, last: Cells, room: int) -> list[str]:
    """Return lines of bars; a window that overlaps others stands below them, as far as there are lines.

    ``first``, ``last``: the characters in which windows begin and end.
    """
    tracks = pack(list(zip(lane.starts.tolist(), lane.ends.tolist(), strict=True)), 0, _TRACKS)
    lines = [[" "] * room for _ in range(max((each + 1 for each in tracks if each is not None), default=1))]
    for track, a, b in zip(tracks, first.tolist(), last.tolist(), strict=True):
        if track is None:
            continue
        cells = lines[track]
        if a == b:
            cells[a] = "|" if cells[a] == " " else "#"
        else:
            cells[a : b + 1] = ["[" if cells[a] == " " else "#", *"=" * (b - a - 1), "]"]
    texts = ["".join(line) for line in lines]
    hidden = tracks.count(None)
    return texts if not hidden else [*texts, f"(and {count_of(hidden, 'window')} that overlap these)"]
