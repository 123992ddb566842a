"""The panes of a result, a row each, with what a report counts of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.errors import WincliError, shown
from ....windowing.language.parser import parse_aggregate
from ....windowing.language.spec import AggregateCall
from ...console.lanes import Lane
from ..results.result import ResultFolder

Scale = Literal["time", "number", "window"]
"""What windows lie along: times in microseconds since 1970 in UTC, numbers, or the numbers of the windows."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What windows lie along.

    ``scale``: the kind of its values.
    ``name``: the order column that it shows; of the scale ``window`` the word for it.
    ``is_utc``: whether the times are instants, shown in UTC; else they are local times of the data.
    """

    scale: Scale
    name: str
    is_utc: bool = False


WINDOW, START, END, REASON, TIMING, ROW = "window", "window_start", "window_end", "closed_by", "timing", "_row"


@dataclass(frozen=True, slots=True)
class PaneColumns:
    """Where a result says what of its panes.

    ``keys``, ``types``: the columns of the key, and their types.
    ``rows``: the column with the number of rows of a pane; None where there is none.
    ``is_emitted_rows``: whether each row of the result is a row of a pane.
    ``is_one``: whether each row of the result is a pane.
    ``is_sorted``: whether all panes of a key come one after another.
    """

    keys: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    axis: Axis
    rows: str | None
    is_emitted_rows: bool
    is_one: bool
    is_sorted: bool
    names: tuple[str, ...]

    @property
    def has_rows(self) -> bool:
        return self.rows is not None or self.is_emitted_rows


NUMBER, BEGIN, STOP, PLACED, ROWS, CLOSED, LATE = (
    "__number", "__begin", "__stop", "__placed", "__rows", "__closed", "__late",
)  # fmt: skip
"""The columns of panes beside their key: the number of the window; from where to where it reaches, as in `Lane`;
whether it has both; its rows, and why it was emitted, where the result says so; whether it holds late rows."""


def pane_columns(result: ResultFolder) -> PaneColumns | None:
    """Return where a result says what; None where it numbers no windows."""
    schema, manifest = result.schema, result.manifest
    if WINDOW not in schema.names:
        return None
    stages = manifest["job"]["stages"]
    stage = stages[min(len(manifest.get("stages", ())), len(stages) - 1)]  # the one that wrote the result
    keys = tuple(name for name in stage.get("key") or () if name in schema.names)
    emit = "operator" if stage.get("operator") else stage.get("emit") or "aggregates"
    counted = _count_column(stage.get("agg") or ("count()",)) if emit == "aggregates" else None
    rows = counted if counted in schema.names else None
    wanted = [*keys, WINDOW, START, END, REASON, TIMING, rows, *([ROW] if emit == "rows" else [])]
    return PaneColumns(
        keys,
        tuple(schema.field(name).type for name in keys),
        _axis(schema, manifest["order"]["columns"]),
        rows,
        is_emitted_rows=emit == "rows" and ROW in schema.names,
        is_one=emit == "aggregates" and not stage.get("group_by"),
        is_sorted=not stage.get("partition_by"),
        names=tuple(dict.fromkeys(name for name in wanted if name in schema.names)),
    )


def panes_of(result: ResultFolder, columns: PaneColumns) -> Iterator[pa.Table]:
    """Yield the panes of a result in its order, a batch at a time: the columns of the key, then `NUMBER` and so on.

    Raises as `StoredRows.tables` does.
    """
    held: pa.Table | None = None
    for table in result.rows.tables(columns.names):
        windows = table.filter(pc.is_valid(table[WINDOW]))
        if not windows.num_rows:
            continue
        numbers = windows[WINDOW].cast(pa.int64())
        begins, stops, placed = numbers, numbers, np.ones(len(numbers), np.bool_)
        if columns.axis.scale != "window":
            placed = pc.and_(pc.is_valid(windows[START]), pc.is_valid(windows[END])).to_numpy()
            begins, stops = (axis_values(windows[name], columns.axis.scale) for name in (START, END))
        if columns.axis.scale == "number":
            placed &= np.isfinite(begins) & np.isfinite(stops)
        own = {NUMBER: numbers, BEGIN: begins, STOP: stops, PLACED: placed, LATE: np.zeros(len(numbers), np.bool_)}
        if TIMING in windows.column_names:
            own[LATE] = pc.equal(windows[TIMING], "late").fill_null(False)
        if columns.rows is not None:
            own[ROWS] = windows[columns.rows].fill_null(0).cast(pa.int64())
        elif columns.is_emitted_rows:
            own[ROWS] = pc.is_valid(windows[ROW]).cast(pa.int64())
        if REASON in windows.column_names:
            own[CLOSED] = windows[REASON]
        panes = pa.table({name: windows[name] for name in columns.keys} | own)
        if columns.is_one:
            yield panes
            continue
        found = _grouped(panes if held is None else pa.concat_tables([held, panes]))
        held, whole = found.slice(found.num_rows - 1), found.slice(0, found.num_rows - 1)
        if whole.num_rows:
            yield whole
    if held is not None:
        yield held


def _grouped(panes: pa.Table) -> pa.Table:
    """Return one row for each run of rows with one key and number; its rows are the sum of theirs."""
    differs = np.zeros(panes.num_rows - 1, np.bool_)
    for column in panes.columns[: panes.column_names.index(NUMBER) + 1]:
        differs |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).fill_null(True).to_numpy()
    begins = np.flatnonzero(np.append(True, differs))
    found = panes.take(begins)
    if ROWS not in panes.column_names:
        return found
    sums = np.add.reduceat(panes[ROWS].to_numpy(), begins)
    return found.set_column(found.column_names.index(ROWS), ROWS, pa.array(sums))


def axis_values(column: pa.ChunkedArray, scale: Scale) -> np.ndarray:
    """Return order values as microseconds since 1970, int64, or as float64; 0 for null."""
    if scale == "number":
        return pc.fill_null(pc.cast(column, pa.float64(), safe=False), 0.0).to_numpy()
    if pa.types.is_date(column.type):
        column = pc.cast(column, pa.timestamp("s"))
    zone = column.type.tz
    counts = pc.cast(column, pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return pc.fill_null(counts, 0).to_numpy()


def _axis(schema: pa.Schema, order: Sequence[str]) -> Axis:
    """Return what the windows lie along: their bounds, or their numbers where these have no measure."""
    if {START, END} <= set(schema.names) and (order or TIMING in schema.names):  # else they are null
        kind, types = schema.field(START).type, pa.types
        if types.is_timestamp(kind) or types.is_date(kind):
            return Axis("time", order[0] if order else START, types.is_timestamp(kind) and kind.tz is not None)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            return Axis("number", order[0] if order else START)
    return Axis("window", "number of the window")


def _count_column(aggregates: Sequence[str]) -> str | None:
    for text in aggregates:
        try:
            call = parse_aggregate(text)
        except WincliError:
            continue
        if isinstance(call, AggregateCall) and (call.function, call.arguments, call.where) == ("count", (), None):
            return call.name
    return None


# The windows of some keys as bars on lanes.


def empty_lane(key: Key, is_chosen: bool, has_rows: bool) -> Lane:
    """Return the lane of a key before any of its windows is known."""
    values = (value.as_py() for value in key.values())
    texts = (each.decode("utf-8", "backslashreplace") if isinstance(each, bytes) else str(each) for each in values)
    none = np.zeros(0, np.int64)
    return Lane(", ".join(map(shown, texts)), none, none, none if has_rows else None, none, is_chosen)


Key = Mapping[str, Any]
"""Column of the key to scalar."""
Choice = Mapping[str, Sequence[pa.Scalar]]
"""Column of the key to the values of which one must be there."""


def is_chosen(keys: pa.Table, choice: Choice) -> np.ndarray:
    """Whether each key fits, bool of shape (n,)."""
    found = np.ones(keys.num_rows, np.bool_)
    for name, values in choice.items():
        among = pa.array([value.as_py() for value in values], keys[name].type)
        found &= pc.is_in(keys[name], value_set=among).to_numpy()
    return found


def add_panes(lanes: list[Lane], keys: Sequence[Key], panes: pa.Table, most: int) -> None:
    """Add to the lane of each key its panes that have a place; where it has more than ``most`` bars, some share one."""
    # Each value of a key must be one of those of a lane: then all panes of lanes are left, and few others.
    wanted = {name: [key[name] for key in keys] for name in (keys[0] if keys else ())}
    near = panes.filter(pa.array(panes[PLACED].to_numpy() & is_chosen(panes, wanted)))
    for at, key in enumerate(keys if near.num_rows else ()):
        mine = _of_key(near, key)
        rows = mine[ROWS].to_numpy() if ROWS in mine.column_names else None
        lanes[at] = lanes[at].with_windows(mine[BEGIN].to_numpy(), mine[STOP].to_numpy(), rows, most)


def add_held(lanes: list[Lane], keys: Sequence[Key], table: pa.Table, scale: Scale) -> None:
    """Tell each lane of the rows that a state holds of its key; ``table``: as `OpenWindowRows` has them."""
    for at, key in enumerate(keys):
        found = _of_key(table, key)
        if found.num_rows and found["first"][0].is_valid and found["last"][0].is_valid:
            start, end = (axis_values(found[name], scale)[0].item() for name in ("first", "last"))
            lanes[at] = replace(lanes[at], held=(start, end, found["rows"][0].as_py()))


def _of_key(table: pa.Table, key: Key) -> pa.Table:
    for name, value in key.items():
        table = table.filter(pc.equal(table[name], value))
    return table
