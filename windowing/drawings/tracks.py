"""Bars with captions on tracks: no two on one track touch, and captions are as long as the room allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_MOST_TRACKS = 4
"""With more, captions are shortened where that needs fewer tracks."""


@dataclass(frozen=True, slots=True)
class Extent:
    """From where to where something reaches, in pixels: ``left``, ``right``."""

    left: float
    right: float


def pack(extents: Sequence[Extent], apart: float) -> list[int]:
    """Return the track of each extent, from 0: the first on which it is ``apart`` from those before it."""
    ends: list[float] = []
    tracks = []
    for extent in extents:
        track = next((i for i, end in enumerate(ends) if extent.left >= end + apart), len(ends))
        ends[track:] = [extent.right, *ends[track + 1 :]]
        tracks.append(track)
    return tracks


def best_captions(
    bars: Sequence[Extent], widths: Sequence[Sequence[float]], within: Extent, apart: float
) -> tuple[list[int], int, list[Extent]]:
    """Choose one of several forms of all captions, the longest that needs few tracks.

    ``bars``: the bars, in the order in which they are placed. ``widths``: of each form, the longest first, how wide the
    caption of each bar is. ``within``: captions stay inside. Returns the track of each bar, the number of the form, and
    where captions stand.
    """
    found: tuple[list[int], int, list[Extent]] | None = None
    for form, wide in enumerate(widths):
        captions = [_caption(bar, width, within) for bar, width in zip(bars, wide, strict=True)]
        whole = [
            Extent(min(bar.left, caption.left), max(bar.right, caption.right))
            for bar, caption in zip(bars, captions, strict=True)
        ]
        tracks = pack(whole, apart)
        if found is None or max(tracks, default=0) < max(found[0]):
            found = tracks, form, captions
        if max(tracks, default=0) < _MOST_TRACKS:
            break
    assert found is not None
    return found


def _caption(bar: Extent, width: float, within: Extent) -> Extent:
    """A caption begins with its bar, and ends where the drawing does."""
    left = max(min(bar.left, within.right - width), within.left)
    return Extent(left, left + width)
