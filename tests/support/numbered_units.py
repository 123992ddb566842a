"""Units of a state, and outputs, that hold one number each."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from wincli.writers.output.output import Output, open_output
from wincli.writers.places.lock import Owner
from wincli.writers.state.journal import StateStaging, commit_together
from wincli.writers.state.state import State, open_state
from wincli.writers.state.unit_record import OpenWindows, StageRecord, UnitRecord

ME = Owner(os.getpid(), "here", "2026-11-08T02:00:00+00:00")
SCHEMA = pa.schema([("n", pa.int64())])


def record_of(staging: StateStaging, value: int) -> UnitRecord:
    """Write what the stage ``s`` holds, and return the record of the unit."""
    part = staging.stage("s").write_rows(0, pa.table({"n": [value]}))
    stage = StageRecord("s", {}, {"value": value}, {}, 1, (part,), OpenWindows(0, 0, None))
    now = "2026-11-08T02:00:00+00:00"
    return UnitRecord(
        staging.label, staging.ordinal, None, None, None, (), staging.outputs, (stage,), "", now, now, {}, {},
        "", None, {},
    )  # fmt: skip


def result(output: Output, value: int) -> tuple[Output, dict[str, Any]]:
    """Write the part of an output, and return it with its manifest."""
    part = output.sink("csv", SCHEMA, SCHEMA).write_part(0, [pa.table({"n": [value]})])
    return output, {"parts": [{"name": part.name}], "rejects": [], "value": value}


def run_unit(state: State, value: int, outputs: Sequence[Path] = (), ordinal: int = 0, keep: int = 10) -> UnitRecord:
    """Commit the unit ``u<ordinal>``."""
    paths = [str(path) for path in outputs]
    with ExitStack() as stack:
        staging = stack.enter_context(state.begin(f"u{ordinal}", ordinal, paths))
        opened = [stack.enter_context(open_output(path, "overwrite", [], ME)) for path in paths]
        return commit_together(staging, record_of(staging, value), [result(o, value) for o in opened], keep)


def put(root: Path, value: int, outputs: Sequence[Path] = (), ordinal: int = 0, keep: int = 10) -> UnitRecord:
    """Open a state, commit one unit, and close it."""
    with open_state(str(root), ME) as state:
        return run_unit(state, value, outputs, ordinal, keep)


def state_value(state: State, label: str = "u0") -> int | None:
    """The number that a unit holds, None where it is not done or its data is gone."""
    if not state.has_data(label):
        return None
    files = state.stage(label, "s")
    (value,) = (n for part in files.parts("rows") for n in files.read_part(part)["n"].to_pylist())
    record = state.record(label)
    assert record is not None
    assert record.stages[0].registers == {"value": value}
    return value


def value_of(out: Path) -> int | None:
    """The number that an output says, None where there is none."""
    if not out.exists():
        return None
    value: int = json.loads((out / "_wincli/manifest.json").read_text())["value"]
    assert (out / "part-00000.csv").read_text() == f'"n"\n{value}\n'
    return value
