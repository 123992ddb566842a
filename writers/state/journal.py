"""The commit of a unit: all of its outputs and its state, or none of them.

Everything is staged and on disk before the journal is written. That is the moment at which the unit is done: whoever
finds a journal puts in place what it names and is not there yet, in the order in which this run would have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from pyarrow import fs

from ...windowing.errors import DamagedError, OutputError
from ..folders.os_errors import output_errors, reason
from ..folders.place import SUCCESS, Place, locate
from ..output.output import Output, manifest_in
from .layout import JOURNAL, LAST_ERROR, former, prune, put_json, read_json, read_last_error, remove, staged
from .staging import StateStaging
from .unit_record import UnitRecord

GIVE_UP = "delete it to give its unit up, look what is in the outputs of that, and run it again with --mode overwrite"
"""What one may do about a journal that is beyond repair."""
Prepared = Sequence[tuple[Output, Mapping[str, Any]]]
"""Outputs that hold all their parts, each with its manifest."""


@dataclass(frozen=True, slots=True)
class JournaledOutput:
    """An output in a journal: ``shown`` as the user wrote it, ``path`` absolute, ``token`` of its staging folder."""

    shown: str
    path: str
    token: str

    @property
    def place(self) -> Place:
        """Where it lives. Raises `ConfigError` and `OutputError` as `locate` does."""
        return replace(locate(self.path), shown=self.shown)


@dataclass(frozen=True, slots=True)
class Journal:
    """A commit under way: of the unit ``label`` by the run with the id ``run``; ``keep``: for `prune`."""

    label: str
    run: str
    keep: int
    outputs: tuple[JournaledOutput, ...]


def commit_together(staging: StateStaging, record: UnitRecord, outputs: Prepared, keep: int) -> UnitRecord:
    """Commit a unit: its outputs and what it holds, at once; return its record, which now has the id of the run.

    A kill at any point leaves everything as it was, or a journal from which `open_state` goes on before anything else.
    The last ``keep`` units keep what they held. Raises `OutputError`, nothing changed, where anything cannot be put on
    disk or the first output cannot be put in place; and, the unit to be completed by the next `open_state`, where that
    comes later.
    """
    assert (record.label, record.ordinal) == (staging.label, staging.ordinal)
    record = replace(record, run=staging.token)
    for output, manifest in outputs:
        output.prepare({**manifest, "run": staging.token})
    staging.prepare(record)
    journaled = [output for output, _ in outputs]
    journal = Journal(record.label, staging.token, keep, tuple(map(_journaled, journaled)))
    _write(staging, journal, journaled)
    _swap(staging, journaled)
    staging.records[record.label] = record
    try:
        complete(staging.root, journal, staging.records)
    except OSError as error:
        what = (
            f"unit {record.label} is done, but what {staging.shown} keeps no longer cannot be deleted: {reason(error)}"
        )
        raise OutputError(what, f"delete {error.filename}" if error.filename else None) from error
    return record


def commit_all(outputs: Prepared) -> None:
    """Commit the outputs of a job that has no state, in this order: the job's own comes last.

    All are prepared before the first is put in place, so that whatever can go wrong goes wrong before. A kill between
    two swaps leaves the first ones new and the others old, each of them whole; the job's own tells whether the job is
    done, and running it again (with ``--mode overwrite``) replaces all. Raises `OutputError` as `Output.commit` does.
    """
    for output, manifest in outputs:
        output.prepare(manifest)
    for output, _ in outputs:
        output.swap()


def read_journal(root: Path) -> Journal | None:
    """Return the commit that is under way in a state, or None. Raises `DamagedError` where the journal is damaged."""
    path = root / JOURNAL
    value = read_json(path, {field.name for field in fields(Journal)}, GIVE_UP)
    if value is None:
        return None
    try:
        journal = Journal(**value | {"outputs": tuple(JournaledOutput(**output) for output in value["outputs"])})
        texts = [journal.label, journal.run, *(text for output in journal.outputs for text in astuple(output))]
        if not all(isinstance(text, str) for text in texts) or type(journal.keep) is not int:
            raise TypeError("a value is of another type")
    except (KeyError, TypeError) as error:
        raise DamagedError(f"{path} is damaged: it is not what was written there", GIVE_UP) from error
    return journal


def complete(root: Path, journal: Journal, records: Mapping[str, UnitRecord]) -> None:
    """Do what is left once all is in place: delete what is not kept any longer, and the journal. Raises `OSError`."""
    for path in (staged(root, journal.run), former(root, journal.run)):
        remove(root, path)
    prune(root, list(records.values()), journal.keep, journal.label)
    try:
        last_error = read_last_error(root)
        is_settled = last_error is not None and last_error["unit"] == journal.label
    except DamagedError:  # it says nothing any more
        is_settled = True
    if is_settled:
        (root / LAST_ERROR).unlink()
    discard_journal(root)


def discard_journal(root: Path) -> None:
    """Take the journal away. Raises `OSError`."""
    (root / JOURNAL).unlink(missing_ok=True)  # not synced: should it come back, all it names is in place


def is_whole(place: Place, folder: str, run: str) -> bool:
    """Whether all that the run ``run`` wrote is in ``folder``, which is that of the output or one beside it."""
    manifest = manifest_in(place, folder)
    success = place.fs.get_file_info(f"{folder}/{SUCCESS}")
    return manifest is not None and manifest.get("run") == run and success.type == fs.FileType.File


def _journaled(output: Output) -> JournaledOutput:
    return JournaledOutput(output.place.shown, output.place.address, output.token)


def _write(staging: StateStaging, journal: Journal, outputs: Sequence[Output]) -> None:
    """Write the journal. From here on no staging folder goes but by being put in place."""
    try:
        for output in outputs:
            output.journaled = True
        with output_errors(f"the state {staging.shown}"):
            put_json(staging.root / JOURNAL, asdict(journal))
    except BaseException:
        _take_back(staging, outputs)
        raise


def _take_back(staging: StateStaging, outputs: Sequence[Output]) -> None:
    (staging.root / JOURNAL).unlink(missing_ok=True)
    for output in outputs:
        output.journaled = False


def _in_place(target: Output | StateStaging, staging: StateStaging) -> bool:
    """Whether a swap that failed got that far: it may have failed at telling the disk."""
    return (
        is_whole(target.place, target.place.path, staging.token) if isinstance(target, Output) else staging.is_in_place
    )


def _swap(staging: StateStaging, outputs: Sequence[Output]) -> None:
    targets: list[Output | StateStaging] = [*outputs, staging]
    for index, target in enumerate(targets):
        try:
            target.swap()
        except OutputError as error:
            if index == 0 and not _in_place(target, staging):
                _take_back(staging, outputs)
                raise
            why = reason(error.__cause__) if isinstance(error.__cause__, OSError) else error.what
            shown = target.place.shown if isinstance(target, Output) else target.shown
            what = f"unit {staging.label} is computed, but cannot be put in place in {shown}: {why}"
            raise OutputError(what, "mend that and run again: what is missing is put in place first") from error
