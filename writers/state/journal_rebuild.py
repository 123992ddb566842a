"""Rebuild a damaged journal from its sources: the staged unit, and the staging folders beside its outputs."""

from __future__ import annotations

import sys

from ...windowing.errors import DamagedError
from ..commit.tables import table_of
from .journal import GIVE_UP, Journal, JournaledOutput, read_journal
from .layout import JOURNAL
from .storage.contract import StateStorage
from .unit_record import UnitRecord, WrittenOutput


def read_or_rebuild(storage: StateStorage) -> Journal | None:
    """Return the journal of a state, rebuilt if it is damaged; None where no commit is under way.

    Raises as `rebuild` does.
    """
    try:
        return read_journal(storage)
    except DamagedError:
        return rebuild(storage)


def rebuild(storage: StateStorage) -> Journal | None:
    """Return the content of a damaged journal, or None where its unit, which comes last, is in place already.

    A journal is written after its unit is staged, and only one unit is staged at a time. The caller must hold the lock
    of the state, or only look. Raises `DamagedError` where the staged folders do not determine the journal.
    """
    prepared = storage.prepared()
    if not prepared:
        return None
    run, record = next(iter(prepared.items())) if len(prepared) == 1 else ("", None)
    in_place = None if record is None else storage.in_place(record.label)
    if in_place is not None and in_place.run == run:  # what is staged is by now the former unit, or a copy
        return None
    if record is not None and record.run == run:
        outputs = tuple(_journaled(output, run) for output in record.outputs)
        return Journal(record.label, run, _keep(record), outputs)
    raise DamagedError(f"{storage.path_of(JOURNAL)} is damaged, and no staged unit shows what it held", GIVE_UP)


def _keep(record: UnitRecord) -> int:
    keep = record.job.get("keep")
    return keep if isinstance(keep, int) else sys.maxsize


def _journaled(output: WrittenOutput, run: str) -> JournaledOutput:
    """Return an output with the id of its staging folder; the id is empty where the output is in place or lost."""
    return JournaledOutput(output.shown, output.path, table_of(output.path).token_of(run))
