"""The atomic commit of a unit: all of its outputs and its state, or none of them.

Everything is staged and on disk before the journal is written, and from that moment the unit is done. A later run that
finds a journal puts the rest of what it names in place, in the same order.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, fields, replace
from typing import Any

from ...windowing.errors import DamagedError, OutputError, WincliError
from ..commit.contract import Progress, Table
from ..commit.tables import table_of
from ..output.output import Output
from ..places.os_errors import output_errors, reason
from .layout import JOURNAL, LAST_ERROR, check_name, not_as_written, put_json, read_json, read_last_error
from .stage_files import ParquetStateFiles
from .storage import StateStorage, UnitCommit
from .unit_record import UnitRecord, WrittenOutput

# The staging of a unit in a state, which no reader sees before the commit.


@dataclass(frozen=True, slots=True)
class StateStaging:
    """A unit under way; `State.begin` makes it, and `journal.commit_together` commits it.

    ``ordinal``: orders the unit among all units.
    ``token``: the id of this run, for the record and for the manifests of its outputs.
    ``records``: the records of the state, by label. A commit adds the new record.
    """

    storage: StateStorage
    label: str
    ordinal: int
    token: str
    outputs: tuple[WrittenOutput, ...]
    records: dict[str, UnitRecord]

    @property
    def shown(self) -> str:
        return self.storage.shown

    @property
    def table_commit(self) -> UnitCommit:
        return self.storage.commit(self.label, self.token)

    def stage(self, name: str) -> ParquetStateFiles:
        """Return the files of one stage, for tasks to write. Raises `ConfigError` where the name cannot be a folder."""
        check_name(name, "the stage")
        return self.table_commit.stage(name)

    def prepare(self, record: UnitRecord) -> None:
        """Check the parts against the record, and make them and the record durable.

        Raises `OutputError` where a part is missing, unknown, or cannot be written to disk; nothing is committed then.
        """
        for stage in record.stages:
            check_name(stage.name, "the stage")
        self.table_commit.prepare(record)

    def publish(self) -> None:
        """Put the unit into the state; it replaces a former unit of the same label. Raises `OutputError`."""
        with output_errors(f"{self.shown}/{self.label}"):
            self.table_commit.publish()


# What the user can do about a journal that cannot be repaired.
GIVE_UP = "delete it to give its unit up, look what is in the outputs of that, and run it again with --mode overwrite"
Prepared = Sequence[tuple[Output, Mapping[str, Any]]]
"""Outputs whose parts are all written, each with its manifest."""


@dataclass(frozen=True, slots=True)
class JournaledOutput(WrittenOutput):
    """An output in a journal.

    ``token``: the id of its staging folder.
    """

    token: str

    @property
    def table(self) -> Table:
        """The output. Raises `ConfigError` and `OutputError` as `table_of` does."""
        return table_of(self.path, self.shown)


@dataclass(frozen=True, slots=True)
class Journal:
    """A commit under way of the unit ``label`` by the run with the id ``run``.

    ``keep``: how many units, the last by ordinal, keep their window state; so does this one.
    ``outputs``: the outputs, in the order in which they are put in place.
    """

    label: str
    run: str
    keep: int
    outputs: tuple[JournaledOutput, ...]


def commit_together(staging: StateStaging, record: UnitRecord, outputs: Prepared, keep: int) -> UnitRecord:
    """Commit the outputs and the window state of a unit atomically; return its record, now with the id of the run.

    A kill at any point leaves everything unchanged, or a journal from which the next `open_state` completes the commit.
    The last ``keep`` units keep their window state. Raises `OutputError`: with nothing changed where a file cannot be
    written to disk or the first output cannot be put in place; after that, the next `open_state` completes the unit.
    """
    assert (record.label, record.ordinal) == (staging.label, staging.ordinal)
    record = replace(record, run=staging.token)
    for output, manifest in outputs:
        output.prepare({**manifest, "run": staging.token})
    staging.prepare(record)
    journaled = [output for output, _ in outputs]
    named = (JournaledOutput(each.shown, each.table.address, each.table_commit.token) for each in journaled)
    journal = Journal(record.label, staging.token, keep, tuple(named))
    try:
        for output in journaled:
            output.journaled = True
        with output_errors(f"the state {staging.shown}"):
            put_json(staging.storage, JOURNAL, asdict(journal))
    except BaseException:
        _take_back(staging, journaled)
        raise
    _publish(staging, journaled)
    staging.records[record.label] = record
    try:
        complete(staging.storage, journal, staging.records)
    except OSError as error:
        what = (
            f"unit {record.label} is done, but what {staging.shown} keeps no longer cannot be deleted: {reason(error)}"
        )
        raise OutputError(what, f"delete {error.filename}" if error.filename else None) from error
    return record


def commit_all(outputs: Prepared) -> None:
    """Commit the outputs of a job without a state, in the given order; the job's own output comes last.

    All outputs are prepared before the first is put in place, so most errors happen before any swap. A kill between two
    swaps leaves some outputs new and the others old, each of them complete. The job's own output is new only if the job
    is done; running the job again with ``--mode overwrite`` replaces all. Raises `OutputError` as `Output.commit` does.
    """
    for output, manifest in outputs:
        output.prepare(manifest)
    for output, _ in outputs:
        output.publish()


def read_journal(storage: StateStorage) -> Journal | None:
    """Return the journal of a state, None where no commit is under way. Raises `DamagedError` if it is damaged."""
    value = read_json(storage, JOURNAL, {field.name for field in fields(Journal)}, GIVE_UP)
    if value is None:
        return None
    try:
        journal = Journal(**value | {"outputs": tuple(JournaledOutput(**output) for output in value["outputs"])})
        texts = [journal.label, journal.run, *(text for output in journal.outputs for text in astuple(output))]
        if not all(isinstance(text, str) for text in texts) or type(journal.keep) is not int:
            raise TypeError("a value is of another type")
    except (KeyError, TypeError) as error:
        raise not_as_written(storage, JOURNAL, GIVE_UP) from error
    return journal


def complete(storage: StateStorage, journal: Journal, records: Mapping[str, UnitRecord]) -> None:
    """Finish a commit once everything is in place: delete window states that are no longer kept, then the journal.

    Raises `OSError`.
    """
    storage.commit(journal.label, journal.run).settle()
    last = sorted(records.values(), key=lambda record: record.ordinal)[-journal.keep :]
    kept = {journal.label, *(record.label for record in last)}  # the newest keeps it: a correction restores it
    for record in records.values():
        if record.label not in kept:
            storage.delete_data(record)
    try:
        last_error = read_last_error(storage)
        is_settled = last_error is not None and last_error["unit"] == journal.label
    except DamagedError:  # an unreadable last error is of no use
        is_settled = True
    if is_settled:
        storage.delete(LAST_ERROR)
    storage.delete(JOURNAL)  # no sync: if a crash restores the journal, all it names is in place


def _take_back(staging: StateStaging, outputs: Sequence[Output]) -> None:
    """Delete the journal, so that outputs may be cleaned up. Raises `OutputError` where nobody knows if it is gone."""
    try:
        staging.storage.delete(JOURNAL)
    except OSError as error:
        what = f"cannot tell whether unit {staging.label} is done, as {staging.shown} fails: {reason(error)}"
        raise OutputError(what, "fix that and run again: the unit is completed or given up first") from error
    for output in outputs:
        output.journaled = False


def _publish(staging: StateStaging, outputs: Sequence[Output]) -> None:
    targets: list[Output | StateStaging] = [*outputs, staging]
    for index, target in enumerate(targets):
        try:
            target.publish()
        except WincliError as error:
            is_published = True  # as long as nobody says that it is not
            with suppress(OSError, WincliError):
                is_published = index > 0 or target.table_commit.progress(staging.token) is Progress.PUBLISHED
            if not is_published:
                _take_back(staging, outputs)
                raise
            why = reason(error.__cause__) if isinstance(error.__cause__, OSError) else error.what
            what = f"unit {staging.label} is computed, but cannot be put in place in {target.shown}: {why}"
            raise OutputError(what, "fix that and run again: what is missing is put in place first") from error


# Rebuild a damaged journal from its sources: the staged unit, and the staging folders beside its outputs.


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
    if record is not None:
        with suppress(DamagedError, OSError):  # a unit that cannot be read is not the staged one
            if storage.commit(record.label, run).progress(run) is Progress.PUBLISHED:
                return None  # what is staged is by now the former unit, or a copy
    if record is not None and record.run == run:
        outputs = tuple(
            JournaledOutput(output.shown, output.path, table_of(output.path).token_of(run)) for output in record.outputs
        )
        keep = record.job.get("keep")
        return Journal(record.label, run, keep if isinstance(keep, int) else sys.maxsize, outputs)
    raise DamagedError(f"{storage.path_of(JOURNAL)} is damaged, and no staged unit shows what it held", GIVE_UP)
