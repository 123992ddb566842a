"""The window state of a unit as the one table that users keep (docs/state.md#as-one-table)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...windowing.arguments import as_table
from ...windowing.errors import ConfigError
from ...windowing.state.one_table import (
    HIDDEN,
    NEXT,
    OF_STATE,
    PART,
    PARTS,
    REGISTERS,
    ROWS,
    STATE,
    Registers,
    state_table,
)
from ...windowing.state.state_tables import LAST, POS, RANK, SHOWN
from ...windowing.state.state_tables import read_state as window_state
from ...windowing.streaming.kept_state import FORMAT
from ...windowing.support.column_types import type_of_text
from ...windowing.support.suggest import did_you_mean
from .stage_files import ParquetStateFiles
from .state import read_state as view_of
from .unit_record import UNIT_DISTANCE, StageRecord, UnitRecord


def read_state(folder: str, *, unit: str | None = None, stage: str | None = None) -> pa.Table:
    """Return the state that ``wincli run --state`` keeps, as a table from which `wincli.aggregate` and `windows` go on.

    ``folder``: the folder of the state. ``unit``: after which unit; None: the newest. ``stage``: of which stage; None:
    the only one.

    Raises `ConfigError` where there is no such state, unit or stage, or it is no longer kept, `DamagedError` where its
    files are not what was written.
    """
    view = view_of(folder)
    record = record_of(view.records, unit, folder)
    found = stage_of(record, stage, folder)
    if not view.storage.has_data(record) and found.parts:
        raise ConfigError(f"{folder} no longer keeps the windows of {record.label}", "take a newer unit")
    return _one_table(view.storage.files(record, found.name), found, (record.ordinal + 1) * UNIT_DISTANCE)


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


def _one_table(files: ParquetStateFiles, stage: StageRecord, next_pos: int) -> pa.Table:
    """Return the table of a stage. ``next_pos``: the arrival position of the next row."""
    job = {"format": FORMAT, **stage.identity}
    key, order = list(job["key"]), list(job["order"])
    keys, rows = (_read(files, kind) for kind in ("keys", "rows"))
    position, advances = (files.read_table(name) for name in ("position", "advances"))
    clock, watermark = stage.registers["clock"], stage.registers["watermark"]
    registers = Registers(json.dumps(job), next_pos, clock, watermark, position, advances)
    if rows is None:
        rows = _no_rows(keys, key, job["columns"])
    schema = _schema(keys, rows, key, registers)
    if keys is None:
        return state_table(schema, registers, None, None)
    values = [name for name in rows.column_names if name not in key and name not in (POS, RANK, SHOWN, LAST)]
    return state_table(schema, registers, window_state(keys, rows, key, order, values), None)


def _read(files: ParquetStateFiles, kind: Any) -> pa.Table | None:
    tables = [as_table(files.read_part(part)) for part in files.parts(kind)]
    filled = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(filled) if filled else None


def _no_rows(keys: pa.Table | None, key: Sequence[str], columns: Mapping[str, str]) -> pa.Table:
    """Return a table of rows without a row; its types are those of the identity of the job."""
    types = {name: dtype for name, text in columns.items() if (dtype := type_of_text(text)) is not None}
    types |= {} if keys is None else {name: keys.schema.field(name).type for name in key}
    state = {POS: pa.int64(), RANK: pa.int64(), SHOWN: pa.bool_(), LAST: pa.bool_()}
    return pa.schema({**{name: types[name] for name in key if name in types}, **types, **state}).empty_table()


def _schema(keys: pa.Table | None, rows: pa.Table, key: Sequence[str], registers: Registers) -> pa.Schema:
    for name in key:
        if name in OF_STATE:
            raise ConfigError(f"the key column {name!r} has the name of a column of states", "rename it")
    own = [field for field in ([] if keys is None else keys.schema) if field.name not in key]
    own = [field.with_name(field.name.removeprefix(HIDDEN)) for field in own if not pa.types.is_null(field.type)]
    held = [field for field in rows.schema if field.name not in key]
    measures = [pa.field(name, _measure(getattr(registers, name))) for name in ("clock", "watermark")]
    told = [pa.field("job", pa.string()), pa.field("rows", pa.int64()), *measures]
    if registers.position is not None:
        told.append(pa.field("position", pa.struct(list(registers.position.schema))))
    if registers.advances is not None:
        told.append(pa.field("advances", pa.list_(pa.struct(list(registers.advances.schema)))))
    of_key = pa.struct([*own, (PARTS, pa.int64()), (NEXT, pa.int64())])
    columns = [(PART, pa.int64()), (STATE, of_key), (ROWS, pa.list_(pa.struct(held))), (REGISTERS, pa.struct(told))]
    return pa.schema([*(rows.schema.field(name) for name in key), *columns])


def _measure(value: float | None) -> pa.DataType:
    return pa.float64() if isinstance(value, float) else pa.int64()
