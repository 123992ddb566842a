"""Rebuild a damaged journal from its sources: the staged unit, and the staging folders beside its outputs."""

from __future__ import annotations

import sys
from pathlib import Path

from ...windowing.errors import DamagedError
from ..commit.tables import table_of
from .journal import GIVE_UP, Journal, JournaledOutput, read_journal
from .layout import JOURNAL, RECORD
from .unit_record import UnitRecord, WrittenOutput


def read_or_rebuild(root: Path) -> Journal | None:
    """Return the journal of a state, rebuilt if it is damaged; None where no commit is under way.

    Raises as `rebuild` does.
    """
    try:
        return read_journal(root)
    except DamagedError:
        return rebuild(root)


def rebuild(root: Path) -> Journal | None:
    """Return the content of a damaged journal, or None where its unit, which comes last, is in place already.

    A journal is written after its unit is staged, and only one unit is staged at a time. The caller must hold the lock
    of the state, or only look. Raises `DamagedError` where the staged folders do not determine the journal.
    """
    staged = [path for path in root.glob(".new-*") if path.is_dir()]
    if not staged:
        return None
    run = staged[0].name.removeprefix(".new-")
    record = _record_in(staged[0]) if len(staged) == 1 else None
    if record is not None and record.run == run:
        outputs = tuple(_journaled(output, run) for output in record.outputs)
        return Journal(record.label, run, _keep(record), outputs)
    in_place = None if record is None else _record_in(root / record.label)
    if in_place is not None and in_place.run == run:  # the swap has exchanged the two folders
        return None
    raise DamagedError(f"{root / JOURNAL} is damaged, and no staged unit shows what it held", GIVE_UP)


def _record_in(folder: Path) -> UnitRecord | None:
    """Return the record of the unit in a folder, None where it is missing or damaged."""
    path = folder / RECORD
    try:
        return UnitRecord.from_json(path.read_bytes(), str(path))
    except (DamagedError, FileNotFoundError):
        return None


def _keep(record: UnitRecord) -> int:
    keep = record.job.get("keep")
    return keep if isinstance(keep, int) else sys.maxsize


def _journaled(output: WrittenOutput, run: str) -> JournaledOutput:
    """Return an output with the id of its staging folder; the id is empty where the output is in place or lost."""
    return JournaledOutput(output.shown, output.path, table_of(output.path).token_of(run))
