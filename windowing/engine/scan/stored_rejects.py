"""Rows that scan tasks have rejected: they store which, and tasks that read the input again write them in full.

A scan has only the columns that its window needs, and its rows may come from the whole input. So each chunk with such
rows is read once more, whatever the number of slices that have found some.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...panes.rejects import ScanRejects, concatenate, rejects_from
from ...ports import Executor, Part
from ..tasks.rejects import write_scan_rejects
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext


@dataclass(frozen=True, slots=True)
class StoredRejects:
    """Rejects of one scan task in scratch rows.

    ``name``: their name there.
    ``splits``: the numbers of the splits that have such rows, ascending.
    """

    name: str
    splits: tuple[int, ...]


def store_rejects(work: TaskContext, task: int, rejects: ScanRejects) -> StoredRejects | None:
    """Store the rejects of scan task ``task`` for `write_stored_rejects`; None where there are none."""
    if not len(rejects):
        return None
    name = f"rejects-{task:05d}"
    work.sink.write_scratch(name, rejects.to_rows())
    bases = np.array([split.base for split in work.source.splits])
    places = np.unique(np.searchsorted(bases, rejects.pos, side="right") - 1)
    return StoredRejects(name, tuple(work.source.splits[place].index for place in places.tolist()))


def write_stored_rejects(
    work: TaskContext, chunks: Sequence[Chunk], found: Iterable[StoredRejects | None], executor: Executor
) -> tuple[Part, ...]:
    """Write all rows that scan tasks have rejected, each chunk in a task. ``chunks``: all chunks of the input."""
    stored = [each for each in found if each is not None]
    splits = {split for each in stored for split in each.splits}
    concerned = [chunk for chunk in chunks if not splits.isdisjoint(split.index for split in chunk.splits)]
    if not concerned:
        return ()
    names = tuple(each.name for each in stored)
    written = executor.map("rejects", partial(_write_chunk, work, names, len(chunks)), concerned)
    return tuple(part for parts in written for part in parts)


def _write_chunk(work: TaskContext, names: Sequence[str], chunks: int, chunk: Chunk) -> tuple[Part, ...]:
    """Write the rejects of one chunk under a number that no map task has."""
    rejects = concatenate([rejects_from(work.sink.read_scratch(name)) for name in names])
    return write_scan_rejects(work, chunks + chunk.index, chunk, rejects)
