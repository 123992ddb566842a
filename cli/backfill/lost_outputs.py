"""Lost outputs: outputs of finished units that were deleted, whole or in part, or replaced."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from ...windowing.errors import DamagedError, WincliError
from ...windowing.support.checksum import PLACE
from ...writers.commit.contract import Content, Table
from ...writers.commit.tables import table_of
from ...writers.folders.os_errors import reason
from ...writers.state.unit_record import WrittenOutput


@dataclass(frozen=True, slots=True)
class RerunReason:
    """The reason to reprocess a unit although its input has not changed.

    ``text``: the reason in words, for messages.
    ``is_free``: whether the unit may run without ``--redo``, because its output replaces nothing.
    """

    text: str
    is_free: bool


def loss_of(outputs: Sequence[WrittenOutput], run: str) -> RerunReason | None:
    """Return the first loss among the outputs that the run with the id ``run`` wrote; None where all are complete.

    Compares manifests, and names and sizes of files.
    """
    return next((loss for output in outputs if (loss := _loss(output, run, outputs))), None)


def local_loss_of(outputs: Sequence[WrittenOutput], run: str) -> RerunReason | None:
    """Return the first loss among outputs on local file systems only, which can be checked at any time."""
    return loss_of([output for output in outputs if "://" not in output.path], run)


def missing_unit_error(label: str, previous: str) -> DamagedError:
    """Return the error for a unit that began from a unit of which the state has no record any more."""
    what = f"{label} began from {previous}, which is no longer in the state"
    return DamagedError(what, f"restore the folder {previous} of the state, or run {previous} again before it")


def _loss(output: WrittenOutput, run: str, outputs: Sequence[WrittenOutput]) -> RerunReason | None:
    its = f"its output {output.shown}"
    try:
        return _loss_at(table_of(output.path), its, run, outputs)
    except (OSError, WincliError) as error:
        why = reason(error) if isinstance(error, OSError) else error.what
        return RerunReason(f"{its} cannot be looked at ({why})", is_free=False)


def _loss_at(table: Table, its: str, run: str, outputs: Sequence[WrittenOutput]) -> RerunReason | None:
    content = table.content()
    if content is Content.NO_FOLDER:
        raise NotADirectoryError(errno.ENOTDIR, "a file")
    if content is Content.VACANT:
        return RerunReason(f"{its} is gone", is_free=True)
    manifest = table.manifest()
    if manifest is None:
        is_ours = content is Content.RESULT
        return RerunReason(f"{its} has {'a damaged' if is_ours else 'no'} manifest", is_free=is_ours)
    here = table.place.path
    is_moved = (there := manifest.get(PLACE, here)) != here  # as a whole, or in the place of another output of the run
    if manifest.get("run") != run or (is_moved and there in [table_of(each.path).place.path for each in outputs]):
        return RerunReason(f"{its} holds another result", is_free=False)
    missing = table.missing(manifest)
    return RerunReason(f"{its} {missing}", is_free=True) if missing else None
