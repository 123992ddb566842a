"""Single units: what became of their outputs, and what is written about them."""

from __future__ import annotations

import errno
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ...conf.ranges import Unit
from ...windowing.errors import WincliError
from ...windowing.support.address import Address
from ...windowing.support.amounts import count_of
from ...windowing.support.checksum import PLACE
from ...writers.commit.contract import Content, Table
from ...writers.commit.result_files import damaged_manifest
from ...writers.commit.tables import table_of
from ...writers.places.os_errors import reason
from ...writers.state.state import State
from ...writers.state.unit_record import UnitRecord, WrittenOutput
from ..console.messages import Messages
from ..console.row_account import WORDS
from .context import RunContext, now
from .steps import REDO, STALE, RerunReason

# Lost outputs: outputs of finished units that were deleted, whole or in part, or replaced.


def loss_of(outputs: Sequence[WrittenOutput], run: str) -> RerunReason | None:
    """Return the first loss among the outputs that the run with the id ``run`` wrote; None where all are complete.

    Compares manifests, and names and sizes of files.
    """
    for output in outputs:
        its = f"its output {output.shown}"
        try:
            loss = _loss_at(table_of(output.path), its, run, outputs)
        except (OSError, WincliError) as error:
            why = reason(error) if isinstance(error, OSError) else error.what
            loss = RerunReason(f"{its} cannot be looked at ({why})", is_free=False)
        if loss is not None:
            return loss
    return None


def local_loss_of(outputs: Sequence[WrittenOutput], run: str) -> RerunReason | None:
    """Return the first loss among outputs on local file systems only, which can be checked at any time."""
    return loss_of([output for output in outputs if Address.of(output.path).is_path], run)


def _loss_at(table: Table, its: str, run: str, outputs: Sequence[WrittenOutput]) -> RerunReason | None:
    content = table.content()
    if content is Content.NO_FOLDER:
        raise NotADirectoryError(errno.ENOTDIR, "a file")
    if content is Content.VACANT:
        return RerunReason(f"{its} is gone", is_free=True)
    manifest = table.manifest()
    if manifest is None:
        is_ours = content is Content.RESULT
        damaged = damaged_manifest(table.place)
        return RerunReason(f"{its} has {f'a damaged {damaged}' if damaged else 'no manifest'}", is_free=is_ours)
    here = table.place.path
    is_moved = (there := manifest.get(PLACE, here)) != here  # as a whole, or in the place of another output of the run
    if manifest.get("run") != run or (is_moved and there in [table_of(each.path).place.path for each in outputs]):
        return RerunReason(f"{its} holds another result", is_free=False)
    missing = table.missing(manifest)
    return RerunReason(f"{its} {missing}", is_free=True) if missing else None


class UnitRecords(Protocol):
    """The finished units of a state, as `State` has them."""

    @property
    def records(self) -> Sequence[UnitRecord]:
        """The records of all finished units, by ordinal."""

    def record(self, label: str) -> UnitRecord | None:
        """Return the record of a unit, None where the unit is not done."""

    def has_data(self, label: str) -> bool:
        """Whether a unit is done and its window state is still there."""

    def forgotten(self) -> Container[str]:
        """Return the labels of the units that were taken out of the state on purpose (`wincli state`)."""


# What is written about single units: the note that one is done, and in the state why one has failed.


_REASON = "why the unit before runs again"


def report_unit(record: UnitRecord, messages: Messages) -> None:
    """Write the note that one unit is done: its rows, windows, rejects and held rows."""
    rows, windows, rejected, held = record.rows_in, record.out, record.rejected, record.held
    words = [
        f"{count_of(rows, 'row')} in",
        f"{count_of(windows, 'window')} out",
        f"{sum(rejected.values()):,} rejected",
    ]
    words += [f"{held:,} {WORDS['held']}"] if held else []
    messages.note(
        f"{record.label}: {', '.join(words)}",
        unit=record.label,
        rows_in=rows,
        windows_out=windows,
        rejected=rejected,
        held=held,
    )


def note_of_unit(context: RunContext, text: str, **fields: Any) -> None:
    """Write a note of a backfill; where units run again one after the other for one reason, only that of the first.

    The others are details: the reason is a correction before them, or what the user asked for.
    """
    reason = fields.get("why")
    is_repeated = reason in (STALE, REDO) and context.announced.get(_REASON) == reason
    context.announced[_REASON] = reason
    (context.messages.detail if is_repeated else context.messages.note)(text, **fields)


@contextmanager
def recording_failure(state: State, unit: Unit, context: RunContext) -> Iterator[None]:
    """Record in the state why a unit failed, for ``wincli status``, and raise the error again."""
    try:
        yield
    except WincliError as error:
        state.fail(unit.label, context.messages.clean(error.what), now())
        raise
