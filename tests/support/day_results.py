"""Results of days, hours and plain runs read back, and set beside that of one run over all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from support.processes import manifest, table

APART = 10**12
"""How far the arrival positions of units are apart."""
RUN_THAT_JOB = "run the job that made it, or name another state"
"""What to do about the state of another job."""


def day(n: int) -> str:
    """The label of a day of November."""
    return f"2026-11-{n:02}"


def span(first: int, last: int) -> tuple[str, ...]:
    """The flags of a range of days, the last one included."""
    return "--start", day(first), "--end", day(last + 1) if last < 30 else "2026-12-01"


def put_day(folder: Path, n: int, rows: pa.Table, name: str = "a", row_group_size: int | None = None) -> None:
    """Write rows of a day, as a file of its partition of ``log``."""
    place = folder / "log" / f"dt={day(n)}"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, place / f"{name}.parquet", row_group_size=row_group_size)


def rows_but(folder: Path, *left_out: str) -> list[str]:
    """All rows of the results below a folder as texts, but for these columns, in an order of their own."""
    files = [str(path) for path in folder.rglob("part-*") if path.parent.name != "_rejected"]
    read = ds.dataset(files, format="parquet").to_table()
    return sorted(map(repr, read.drop_columns([name for name in read.column_names if name in left_out]).to_pylist()))


def records(state: Path) -> dict[str, dict[str, Any]]:
    """The records of a state by unit."""
    read = [json.loads(path.read_text()) for path in state.glob("*/unit.json")]
    return {record["label"]: record for record in sorted(read, key=lambda record: record["ordinal"])}


def kept(state: Path) -> list[str]:
    """The units of a state that hold more than their record."""
    return sorted(path.parent.name for path in state.glob("*/unit.json") if len([*path.parent.iterdir()]) > 1)


def in_order(outputs: Sequence[Path]) -> pa.Table:
    """The rows of results together, as they were emitted."""
    order = [(name, "ascending") for name in manifest(outputs[0])["stream"]["order"]]
    return pa.concat_tables([table(output) for output in outputs]).sort_by(order).combine_chunks()


def as_one(found: pa.Table, units: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of units with the arrival positions that one run over all of them would give; ``units``: their records."""
    first, starts = 0, {}
    for record in units:
        starts[record["ordinal"]] = first
        first += record["stages"][0]["counts"]["rows_in"]
    told = found["_pos"].to_pylist()
    positions = [at if at is None or at < 0 else starts[at // APART] + at % APART for at in told]
    return found.set_column(found.column_names.index("_pos"), "_pos", pa.array(positions, pa.int64()))


def total(state: Path) -> dict[str, Any]:
    """The account of the first stage over all units, those between which rows pass checked one by one."""
    summed: dict[str, Any] = {"rejected": {}}
    held = 0
    for record in records(state).values():
        counts = record["stages"][0]["counts"]
        assert counts["carried"] == held
        held = counts["held"]
        out = counts["windowed"] + counts["filtered"] + sum(counts["rejected"].values()) + counts["dropped_at_end"]
        assert counts["rows_in"] + counts["carried"] == out + held
        for name in ("rows_in", "windowed", "filtered", "dropped_at_end", "panes_hidden"):
            summed[name] = summed.get(name, 0) + counts[name]
        for reason, rows in counts["rejected"].items():
            summed["rejected"][reason] = summed["rejected"].get(reason, 0) + rows
    return {**summed, "held": held, "carried": 0}
