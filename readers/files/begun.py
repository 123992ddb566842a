"""Outputs in a store to which a run writes its first result: parts are there, and a manifest that says so."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ...windowing.support.addresses.commit_object import LONGEST_BEGUN, is_begun
from ...windowing.support.checksum import read_object
from ...windowing.support.value_table import ValueTable
from .file import input_errors
from .walk import MANIFEST, Spot


def without_begun(spots: ValueTable[Spot]) -> ValueTable[Spot]:
    """Return the files of an input but those of outputs that hold no result yet. Raises `InputError`."""
    begun = tuple(_folder(spot) for spot in spots.take(np.flatnonzero(are_manifests(spots))) if _is_begun(spot))
    if not begun:
        return spots
    paths = spots.column("place").texts("path")
    return spots.take(np.array([at for at, path in enumerate(paths) if not path.startswith(begun)], np.int64))


def are_manifests(spots: ValueTable[Spot]) -> npt.NDArray[np.bool_]:
    """Return which files are manifests of results, bool (N,)."""
    found: npt.NDArray[np.bool_] = pc.ends_with(spots.column("below"), MANIFEST).to_numpy(zero_copy_only=False)
    return found


def _is_begun(spot: Spot) -> bool:
    """Whether a manifest says that there is no result yet; only few are so short that they are read."""
    if spot.entry.size > LONGEST_BEGUN:
        return False
    with input_errors(spot.place.shown), spot.place.open_stream() as file:
        text = file.read()
    try:
        return is_begun(read_object(text))
    except ValueError:
        return False


def _folder(manifest: Spot) -> str:
    return manifest.place.path.removesuffix(MANIFEST)
