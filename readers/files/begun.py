"""Outputs in a store to which a run writes its first result: parts are there, and a manifest that says so."""

from __future__ import annotations

from collections.abc import Sequence

from ...windowing.support.addresses.commit_object import LONGEST_BEGUN, is_begun
from ...windowing.support.checksum import read_object
from .file import input_errors
from .walk import MANIFEST, Spot


def without_begun(spots: Sequence[Spot]) -> list[Spot]:
    """Return the files of an input but those of outputs that hold no result yet. Raises `InputError`."""
    begun = tuple(_folder(spot) for spot in spots if _is_begun(spot))
    return [spot for spot in spots if not spot.place.path.startswith(begun)] if begun else list(spots)


def _is_begun(spot: Spot) -> bool:
    """Whether a file is a manifest that says that there is no result yet; only few are so short that they are read."""
    if not spot.below.endswith(MANIFEST) or spot.entry.size > LONGEST_BEGUN:
        return False
    with input_errors(spot.place.shown), spot.place.open_stream() as file:
        text = file.read()
    try:
        return is_begun(read_object(text))
    except ValueError:
        return False


def _folder(manifest: Spot) -> str:
    return manifest.place.path.removesuffix(MANIFEST)
