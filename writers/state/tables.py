"""The window state of a unit as the one table that users keep (docs/state.md#as-one-table)."""

from __future__ import annotations

import datetime as dt
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...windowing.arguments import Rows, as_table
from ...windowing.clock.watermark import Belief, advance_table, advances_of
from ...windowing.columns.arrays import Ints, combined
from ...windowing.errors import ConfigError, did_you_mean
from ...windowing.ports import Counts, Part
from ...windowing.rows.sequence import group_codes
from ...windowing.state.carry import Carry, Registers
from ...windowing.state.one_table import (
    HIDDEN,
    NEXT,
    OF_STATE,
    PART,
    PARTS,
    REGISTERS,
    ROWS,
    STATE,
    belief_type,
    check_columns,
    job_of,
    keys_and_rows,
    no_registers,
    registers_of,
    state_table,
)
from ...windowing.state.state_tables import BASELINE, BEGIN, FULL, LAST, POS, RANK, SHOWN, WINDOWS
from ...windowing.state.state_tables import ROWS as ROWS_TABLE
from ...windowing.state.state_tables import read_state as window_state
from ...windowing.streaming.kept_state import FORMAT, no_such_format
from ...windowing.support.column_types import type_of_text
from ..output.versions import versions
from ..places.lock import Owner
from .journal import commit_together
from .stage_files import ParquetStateFiles
from .state import open_state
from .state import read_state as view_of
from .unit_record import UNIT_DISTANCE, OpenWindows, StageRecord, UnitRecord


def read_state(folder: str, *, unit: str | None = None, stage: str | None = None) -> pa.Table:
    """Return the state that ``wincli run --state`` keeps, as a table from which `wincli.aggregate` and `windows` go on.

    ``folder``: the folder of the state. ``unit``: after which unit; None: the newest. ``stage``: of which stage; None:
    the only one.

    Raises `ConfigError` where there is no such state, unit or stage, or it is no longer kept, `DamagedError` where its
    files are not what was written.
    """
    record, found, files = kept_stage(folder, unit, stage, "take a newer unit")
    # The table of a stage. ``next_pos``: the arrival position of the next row.
    job = {"format": FORMAT, **found.identity}
    key, order = list(job["key"]), list(job["order"])
    keys, rows = (_read(files, kind) for kind in ("keys", "rows"))
    position, advances, windows = (files.read_table(name) for name in ("position", "advances", "windows"))
    clock, watermark = found.registers["clock"], found.registers["watermark"]
    before = (record.ordinal + 1) * UNIT_DISTANCE
    belief = Belief(**found.registers["belief"]) if "belief" in found.registers else None
    told = None if advances is None else advances_of(advances)
    registers = Registers(before, clock, watermark, position, told, windows, belief)
    if rows is None:
        # A table of rows without a row; its types are those of the identity of the job.
        columns = job["columns"]
        types = {name: dtype for name, text in columns.items() if (dtype := type_of_text(text)) is not None}
        types |= {} if keys is None else {name: keys.schema.field(name).type for name in key}
        state = {POS: pa.int64(), RANK: pa.int64(), SHOWN: pa.bool_(), LAST: pa.bool_()}
        rows = pa.schema({**{name: types[name] for name in key if name in types}, **types, **state}).empty_table()
    schema = _schema(keys, rows, key, registers)
    if keys is None:
        return state_table(schema, json.dumps(job), Carry(registers))
    values = [name for name in rows.column_names if name not in key and name not in (POS, RANK, SHOWN, LAST)]
    return state_table(schema, json.dumps(job), Carry(registers, window_state(keys, rows, key, order, values)))


def kept_stage(
    folder: str, unit: str | None, stage: str | None, do: str
) -> tuple[UnitRecord, StageRecord, ParquetStateFiles]:
    """Return the records of a unit and of a stage of a state, and the files with the windows of that stage.

    ``unit``, ``stage``: None as in `record_of` and `stage_of`. ``do``: the advice where the state no longer keeps them,
    which is a `ConfigError`, as is a state, unit or stage that is not there.
    """
    view = view_of(folder)
    record = record_of(view.records, unit, folder)
    found = stage_of(record, stage, folder)
    if not view.storage.has_data(record) and found.parts:
        raise ConfigError(f"{folder} no longer keeps the windows of {record.label}", do)
    return record, found, view.storage.files(record, found.name)


def record_of(records: Sequence[UnitRecord], unit: str | None, folder: str) -> UnitRecord:
    """Return the record of a unit of a state; None: of the newest. Raises `ConfigError` where there is none."""
    if not records:
        raise ConfigError(f"the state {folder} has no unit yet", "run a job with it first")
    labels = [record.label for record in records]
    if unit is not None and unit not in labels:
        raise ConfigError(f"the state {folder} has no unit {unit!r}", did_you_mean(unit, labels))
    return records[-1] if unit is None else records[labels.index(unit)]


def stage_of(record: UnitRecord, stage: str | None, folder: str) -> StageRecord:
    """Return the record of a stage; None: of the only one. Raises `ConfigError` where there is none, or several."""
    names = [each.name for each in record.stages]
    if stage is None and len(names) > 1:
        raise ConfigError(f"the state {folder} has {len(names)} stages", f"say stage: {', '.join(names)}")
    if stage is not None and stage not in names:
        raise ConfigError(f"the state {folder} has no stage {stage!r}", did_you_mean(stage, names))
    return record.stages[0 if stage is None else names.index(stage)]


def _read(files: ParquetStateFiles, kind: Any) -> pa.Table | None:
    tables = [as_table(files.read_part(part)) for part in files.parts(kind)]
    filled = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(filled) if filled else None


def _schema(keys: pa.Table | None, rows: pa.Table, key: Sequence[str], registers: Registers) -> pa.Schema:
    for name in key:
        if name in OF_STATE:
            raise ConfigError(f"the key column {name!r} has the name of a column of states", "rename it")
    own = [field for field in ([] if keys is None else keys.schema) if field.name not in key]
    own = [field.with_name(field.name.removeprefix(HIDDEN)) for field in own if not pa.types.is_null(field.type)]
    held = [field for field in rows.schema if field.name not in key]
    measures = [
        pa.field(name, pa.float64() if isinstance(getattr(registers, name), float) else pa.int64())
        for name in ("clock", "watermark")
    ]
    told = [pa.field("job", pa.string()), pa.field("rows", pa.int64()), *measures]
    if registers.belief is not None:
        told.append(pa.field("belief", belief_type(measures[1].type)))
    if registers.position is not None:
        told.append(pa.field("position", pa.struct(list(registers.position.schema))))
    if registers.advances is not None:
        advances = advance_table(registers.advances)
        told.append(pa.field("advances", pa.list_(pa.struct(list(advances.schema)))))
    if registers.windows is not None:
        told.append(pa.field("windows", pa.list_(pa.struct(list(registers.windows.schema)))))
    of_key = pa.struct([*own, (PARTS, pa.int64()), (NEXT, pa.int64())])
    columns = [(PART, pa.int64()), (STATE, of_key), (ROWS, pa.list_(pa.struct(held))), (REGISTERS, pa.struct(told))]
    return pa.schema([*(rows.schema.field(name) for name in key), *columns])


# A new state of ``wincli run --state`` from the one table that users keep (docs/state.md#as-one-table).


_LABEL = "run-000001"
_ROWS_OF_PART = 1 << 20


def write_state(state: Rows, folder: str, *, stage: str = "window") -> None:
    """Make a state in a new folder, from which ``wincli run --state`` goes on with its next run.

    ``state``: what `wincli.aggregate`, `windows` or `read_state` return. ``stage``: the name of the job's only stage.
    Ranges of days, hours or weeks need a state of their own. The unit that is written has no input and no output, so
    late rows cannot be moved to it: reject them (``--late reject``).

    Raises `ConfigError` where the folder has units already, or the table is no whole state.
    """
    table = as_table(state)
    check_columns(table.column_names)
    job = job_of(table)
    if job is None:
        raise no_registers()
    identity = json.loads(job)
    if identity.pop("format", None) != FORMAT:
        raise no_such_format(json.loads(job).get("format"))
    key = list(identity["key"])
    registers = registers_of(table)
    keys, held_rows, _ = keys_and_rows(pa.table({n: combined(table.column(n)) for n in table.column_names}), key)
    # In the types of the job: other libraries have large text, and other time zones.
    types = {name: dtype for name, text in identity["columns"].items() if (dtype := type_of_text(text)) is not None}
    first = [*key, ROWS_TABLE, BEGIN, WINDOWS, FULL, BASELINE]
    keys = _cast(keys.select([*first, *(n for n in keys.column_names if n not in first)]), types)
    held_rows = _cast(held_rows, types)
    began = _now()
    with open_state(folder, Owner(os.getpid(), socket.gethostname(), began)) as opened:
        if opened.records:
            raise ConfigError(f"the state {folder} has units already", "name a new folder")
        with opened.begin(_LABEL, 0, []) as staging:
            files = staging.stage(stage)
            advances = None if registers.advances is None else advance_table(registers.advances)
            rows, advances = _numbered(held_rows, advances)
            parts = _write_parts(files, keys, rows, key)
            if registers.position is not None:
                parts.append(files.write_table("position", registers.position))
            if advances is not None:
                parts.append(files.write_table("advances", advances))
            if registers.windows is not None:
                parts.append(files.write_table("windows", registers.windows))
            is_shown = combined(rows.column(SHOWN)).to_numpy(zero_copy_only=False)
            held_count = int(np.count_nonzero(~is_shown))
            counts = Counts(held=held_count, carried=held_count).recorded()
            kept = int(np.count_nonzero(_counts(keys, rows, key)))
            record = StageRecord(
                stage, dict(identity), registers.plain, counts, 0, tuple(parts), OpenWindows(kept, kept, None)
            )
            stages = [{"name": stage, "at_end": "hold"}]
            as_run = {"input": [], "output": "", "stages": stages, "state": folder, "keep": 1}
            run, ended = staging.token, _now()
            unit = UnitRecord(
                label=_LABEL, ordinal=0, start=None, end=None, previous=None, inputs=(), outputs=(), stages=(record,),
                run=run, started=began, finished=ended, seconds={}, versions=versions(), state=run, began=None,
                job=as_run,
            )  # fmt: skip
            commit_together(staging, unit, [], 1)


def _write_parts(files: ParquetStateFiles, keys: pa.Table, rows: pa.Table, key: list[str]) -> list[Part]:
    if not keys.num_rows:
        return []
    bounds = np.concatenate([[0], np.cumsum(_counts(keys, rows, key))])
    weight = np.arange(keys.num_rows) + bounds[:-1]
    cuts = np.flatnonzero(np.diff(weight // _ROWS_OF_PART, prepend=-1))
    parts = []
    for index, (low, high) in enumerate(zip(cuts, [*cuts[1:], keys.num_rows], strict=True)):
        parts.append(files.write_keys(index, keys[low:high]))
        if bounds[high] > bounds[low]:
            parts.append(files.write_rows(index, rows[bounds[low] : bounds[high]]))
    return parts


def _counts(keys: pa.Table, rows: pa.Table, key: list[str]) -> Ints:
    """Return the number of rows of each key, int64 (K,)."""
    if not key:
        return np.full(keys.num_rows, rows.num_rows)
    both = pa.concat_tables([keys.select(key), rows.select(key)])
    codes, _ = group_codes([combined(column) for column in both.columns])
    return np.bincount(codes[keys.num_rows :], minlength=keys.num_rows)


def _numbered(rows: pa.Table, advances: pa.Table | None) -> tuple[pa.Table, pa.Table | None]:
    """Return rows and advances with arrival positions that are below those of the next run; only their order counts."""
    tables = [rows] if advances is None else [rows, advances]
    pos = np.concatenate([combined(table.column(POS)).to_numpy() for table in tables])
    if len(pos) and pos.max() >= UNIT_DISTANCE:
        pos = np.unique(pos, return_inverse=True)[1]
    at = rows.column_names.index(POS)
    numbered = rows.set_column(at, POS, pa.array(pos[: rows.num_rows], pa.int64()))
    if advances is None:
        return numbered, None
    later = pa.array(pos[rows.num_rows :], pa.int64())
    return numbered, advances.set_column(advances.column_names.index(POS), POS, later)


def _cast(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    return table.cast(pa.schema([field.with_type(types.get(field.name, field.type)) for field in table.schema]))


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
