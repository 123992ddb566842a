"""The input of all units of a state, opened again: the rows that units took, and those that they rejected as late.

A unit rejects the rows that sort before the last row of the units before it, so these are in no window, of whatever
unit. Where the state does not hold that last row any more, it is found among the rows again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from .....readers.merged_source import MergedSource, SourceRange, merge
from .....readers.source import FileSource
from .....windowing.columns.sort_keys import last_in_order
from .....windowing.engine.exchange.read_chunk import read_rows
from .....windowing.engine.tasks.sizing import Chunk
from .....windowing.engine.tasks.task import FILES, TaskContext, with_projection
from .....windowing.errors import ConfigError
from .....windowing.ports import Split
from .....windowing.scan.row_validation import split_by_reason
from .....writers.state.layout import is_state
from .....writers.state.state import StateView, read_state
from .....writers.state.unit_record import UNIT_DISTANCE, UnitRecord
from ....planning.request import JobRequest
from ....planning.stage_plans import StagePlan, plan_stages
from ....run.incremental_run import known_by
from ....run.late_rows import row_expressions
from .recorded_input import open_files

_POSITION = "position"


@dataclass(frozen=True, slots=True)
class RecordedUnits:
    """The rows of all units of a state.

    ``source``: those that the units took, whose windows are those of one run over them.
    ``late``: those that they rejected because they sort before the rows of earlier units; None: there are none.
    """

    source: MergedSource
    late: MergedSource | None


def open_units(request: JobRequest, manifest: Mapping[str, Any]) -> RecordedUnits:
    """Open the input of all units of a state.

    Raises `ConfigError` where the state is not there, `InputError` where a file of a unit is gone or has changed.
    """
    path = request.job.state
    if path is None or not is_state(path):
        what = f"this result is a unit on the state {path}, and that is not here"
        raise ConfigError(what, "run this where the job was run")
    state = read_state(path)
    records = sorted(state.records, key=lambda record: record.ordinal)
    if not any(record.run == manifest.get("run") for record in records):
        raise ConfigError(f"the state {path} has no unit that wrote this result", "run the unit again")
    taken: list[SourceRange] = []
    late: list[SourceRange] = []
    for record in records:
        if not record.inputs:
            continue
        shift = record.ordinal * UNIT_DISTANCE
        source = open_files(request, record.inputs, known_by(record, path, request)).source
        own = SourceRange(source, shift, expressions=row_expressions(request))
        last = _last_before(request, state, record, taken) if _has_late(record) else None
        taken.append(replace(own, after=last))
        late += [] if last is None else [replace(own, before=last)]
    return RecordedUnits(merge(taken), merge(late) if late else None)


def _has_late(record: UnitRecord) -> bool:
    """Whether the first stage of a unit has rejected rows as late."""
    return bool(record.stages[0].counts["rejected"].get("late"))


def _last_before(
    request: JobRequest, state: StateView, record: UnitRecord, taken: Sequence[SourceRange]
) -> pa.Table | None:
    """Return the last row of the units before one, its order columns alone; None: a watermark says what is late."""
    before = next((each for each in state.records if each.label == record.previous), None)
    if before is not None and state.storage.has_data(before):
        return state.storage.files(before, before.stages[0].name).read_table(_POSITION)
    return _found_last(request, [each.source for each in taken])


def _found_last(request: JobRequest, sources: Sequence[FileSource]) -> pa.Table | None:
    """Find the last of the rows that units have taken. Late rows among them do not matter: they sort before others."""
    found: list[pa.Table] = []
    for source in sources:
        stage = plan_stages(request, source)[0]
        if not stage.plan.order.columns:
            return None
        nowhere: Any = None  # nothing is written
        work = with_projection(TaskContext(stage.plan, source, nowhere, stage.marks))
        parts = [part for split in source.splits for part in source.parts_of(split)]
        found += [last for part in parts if (last := _last_of(work, part)) is not None]
    # the types of a later unit may be wider
    return last_in_order(pa.concat_tables(found, promote_options="permissive")) if found else None


def _last_of(work: TaskContext, part: Split) -> pa.Table | None:
    read = read_rows(work, Chunk(0, part.base, [part]))
    rows = read.rows
    if read.reasons is not None:
        rows = rows.take(pa.array(split_by_reason(read.reasons)[0]))
    return last_in_order(pa.Table.from_batches([rows]).select(list(work.plan.order.columns)))


def check_marks_of_late(units: RecordedUnits, stage: StagePlan) -> None:
    """Raise `ConfigError` where the end of a file is a mark, and late rows may have taken it with them."""
    if units.late is not None and stage.plan.takes_marks and stage.marks == FILES:
        what = "units of this state rejected rows that came late, and ends of files are marks, which may have been late"
        raise ConfigError(what, "wincli why explains such windows where the marks are a column")
