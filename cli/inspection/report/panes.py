"""The panes of a result, a row each, with what a report counts of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.errors import WincliError, shown
from ....windowing.language.parser import parse_aggregate
from ....windowing.language.spec import AggregateCall
from ..results.result import ResultFolder
from .report import Axis, HeldRows, Lane, Scale

WINDOW, START, END, REASON, TIMING, ROW = "window", "window_start", "window_end", "closed_by", "timing", "_row"


@dataclass(frozen=True, slots=True)
class PaneColumns:
    """Where a result says what of its panes.

    ``keys``, ``types``: the columns of the key, and their types.
    ``axis``: what the windows lie along.
    ``rows``: the column with the number of rows of a pane; None where there is none.
    ``is_emitted_rows``: whether each row of the result is a row of a pane.
    ``is_one``: whether each row of the result is a pane.
    ``is_sorted``: whether all panes of a key come one after another.
    ``names``: the columns to read.
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


@dataclass(frozen=True, slots=True, eq=False)
class Panes:
    """Panes, in the order of the result; all arrays have shape (panes,).

    ``keys``: the columns of the key.
    ``numbers``: the numbers of the windows, int64.
    ``starts``, ``ends``: as in `Lane`.
    ``has_place``: whether a pane has a start and an end.
    ``rows``: its rows, int64; None where the result does not say.
    ``reasons``: why it was emitted; None where the result does not say.
    ``is_late``: whether it holds late rows.
    """

    keys: pa.Table
    numbers: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    has_place: np.ndarray
    rows: np.ndarray | None
    reasons: pa.ChunkedArray | None
    is_late: np.ndarray


def stage_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of the stage that wrote a result."""
    stages: Sequence[Mapping[str, Any]] = manifest["job"]["stages"]
    return stages[min(len(manifest.get("stages", ())), len(stages) - 1)]


def pane_columns(result: ResultFolder) -> PaneColumns | None:
    """Return where a result says what; None where it numbers no windows."""
    schema, stage = result.schema, stage_of(result.manifest)
    if WINDOW not in schema.names:
        return None
    keys = tuple(name for name in stage.get("key") or () if name in schema.names)
    emit = "operator" if stage.get("operator") else stage.get("emit") or "aggregates"
    counted = _count_column(stage.get("agg") or ("count()",)) if emit == "aggregates" else None
    rows = counted if counted in schema.names else None
    is_emitted = emit == "rows"
    axis = _axis(schema, result.manifest["order"]["columns"])
    wanted = [*keys, WINDOW, START, END, REASON, TIMING, rows, *([ROW] if is_emitted else [])]
    names = tuple(dict.fromkeys(name for name in wanted if name in schema.names))
    is_one = emit == "aggregates" and not stage.get("group_by")
    types = tuple(schema.field(name).type for name in keys)
    is_emitted, is_sorted = is_emitted and ROW in schema.names, not stage.get("partition_by")
    return PaneColumns(keys, types, axis, rows, is_emitted, is_one, is_sorted, names)


def panes_of(result: ResultFolder, columns: PaneColumns) -> Iterator[Panes]:
    """Yield the panes of a result, a batch at a time. Raises as `StoredRows.tables` does."""
    held: Panes | None = None
    for table in result.rows.tables(columns.names):
        windows = table.filter(pc.is_valid(table[WINDOW]))
        if not windows.num_rows:
            continue
        starts, ends, has_place = _places(windows, columns.axis.scale)
        numbers = windows[WINDOW].to_numpy().astype(np.int64)
        late = windows[TIMING] if TIMING in windows.column_names else None
        panes = Panes(
            windows.select(columns.keys),
            numbers,
            starts,
            ends,
            has_place,
            _rows(windows, columns),
            windows[REASON] if REASON in windows.column_names else None,
            np.zeros(len(numbers), np.bool_) if late is None else pc.equal(late, "late").fill_null(False).to_numpy(),
        )
        if columns.is_one:
            yield panes
            continue
        found = _grouped(panes)
        found = found if held is None else _joined(held, found, columns)
        held, whole = _part(found, -1, None), _part(found, 0, -1)
        if len(whole.numbers):
            yield whole
    if held is not None:
        yield held


def _rows(table: pa.Table, columns: PaneColumns) -> np.ndarray | None:
    if columns.rows is not None:
        return table[columns.rows].fill_null(0).to_numpy().astype(np.int64)
    return pc.is_valid(table[ROW]).to_numpy().astype(np.int64) if columns.is_emitted_rows else None


def _grouped(panes: Panes) -> Panes:
    is_new = np.ones(len(panes.numbers), np.bool_)
    is_new[1:] = panes.numbers[1:] != panes.numbers[:-1]
    for column in panes.keys.columns:
        differs = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        is_new[1:] |= differs.fill_null(True).to_numpy()
    begins = np.flatnonzero(is_new)
    rows = None if panes.rows is None else np.add.reduceat(panes.rows, begins)
    return replace(_taken(panes, begins), rows=rows)


def _joined(held: Panes, found: Panes, columns: PaneColumns) -> Panes:
    rows = None if held.rows is None or found.rows is None else np.concatenate([held.rows, found.rows])
    reasons = None
    if held.reasons is not None and found.reasons is not None:
        reasons = pa.chunked_array([*held.reasons.chunks, *found.reasons.chunks])
    both = Panes(
        pa.concat_tables([held.keys, found.keys]) if columns.keys else found.keys,
        np.concatenate([held.numbers, found.numbers]),
        np.concatenate([held.starts, found.starts]),
        np.concatenate([held.ends, found.ends]),
        np.concatenate([held.has_place, found.has_place]),
        rows,
        reasons,
        np.concatenate([held.is_late, found.is_late]),
    )
    return _grouped(both)


def _part(panes: Panes, begin: int, stop: int | None) -> Panes:
    return _taken(panes, np.arange(len(panes.numbers))[begin:stop])


def _taken(panes: Panes, places: np.ndarray) -> Panes:
    return Panes(
        panes.keys.take(places) if panes.keys.num_columns else panes.keys,
        panes.numbers[places],
        panes.starts[places],
        panes.ends[places],
        panes.has_place[places],
        None if panes.rows is None else panes.rows[places],
        None if panes.reasons is None else panes.reasons.take(places),
        panes.is_late[places],
    )


def _places(table: pa.Table, scale: Scale) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if scale == "window":
        numbers = table[WINDOW].to_numpy().astype(np.int64)
        return numbers, numbers, np.ones(len(numbers), np.bool_)
    has_place = pc.and_(pc.is_valid(table[START]), pc.is_valid(table[END])).to_numpy()
    starts, ends = (axis_values(table[name], scale) for name in (START, END))
    if scale == "number":
        has_place &= np.isfinite(starts) & np.isfinite(ends)
    return starts, ends, has_place


def axis_values(column: pa.ChunkedArray, scale: Scale) -> np.ndarray:
    """Return order values as microseconds since 1970, int64, or as float64; 0 for null."""
    if scale == "number":
        return pc.fill_null(pc.cast(column, pa.float64(), safe=False), 0.0).to_numpy()
    if pa.types.is_date(column.type):
        column = pc.cast(column, pa.timestamp("s"))
    zone = column.type.tz
    counts = pc.cast(column, pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return pc.fill_null(counts, 0).to_numpy()


def scale_of(kind: pa.DataType) -> Scale | None:
    """Return the scale of a type of order values; None where it has no measure."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "time"
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "number" if is_number else None


def _axis(schema: pa.Schema, order: Sequence[str]) -> Axis:
    """Return what the windows lie along: their bounds, or their numbers where these have no measure."""
    has_bounds = {START, END} <= set(schema.names) and (order or TIMING in schema.names)  # else they are null
    scale = scale_of(schema.field(START).type) if has_bounds else None
    if scale is None:
        return Axis("window", "number of the window")
    kind = schema.field(START).type
    return Axis(scale, order[0] if order else START, pa.types.is_timestamp(kind) and kind.tz is not None)


def _count_column(aggregates: Sequence[str]) -> str | None:
    for text in aggregates:
        try:
            call = parse_aggregate(text)
        except WincliError:
            continue
        if isinstance(call, AggregateCall) and (call.function, call.arguments, call.where) == ("count", (), None):
            return call.name
    return None


# The windows of some keys as bars: where a key has too many, successive windows share one.


class LaneBars:
    """Gathers the ``lane`` of one key, of at most ``most`` bars. ``key``: column to scalar."""

    def __init__(self, key: Mapping[str, Any], is_chosen: bool, has_rows: bool, most: int) -> None:
        self.key = key
        self.most = most
        none = np.zeros(0, np.int64)
        rows, sizes = (0, none) if has_rows else (None, None)
        self.lane = Lane(key_text(key), is_chosen, 0, rows, none, none, sizes, none)

    def add(self, starts: np.ndarray, ends: np.ndarray, rows: np.ndarray | None) -> None:
        """Add windows of the key, in the order in which they came out. ``rows``: None where the lane has no sizes."""
        if not len(starts):
            return
        lane = self.lane
        lane = replace(
            lane,
            windows=lane.windows + len(starts),
            rows=None if rows is None or lane.rows is None else lane.rows + int(rows.sum()),
            starts=np.concatenate([lane.starts, starts]),
            ends=np.concatenate([lane.ends, ends]),
            sizes=None if rows is None or lane.sizes is None else np.concatenate([lane.sizes, rows]),
            counts=np.concatenate([lane.counts, np.ones(len(starts), np.int64)]),
        )
        while len(lane.starts) > self.most:
            lane = lane.halved()
        self.lane = lane


def key_text(key: Mapping[str, Any]) -> str:
    """Return the values of a key as text: ``u7``, or ``eu, shop 3`` where several columns make it."""
    texts = (value.as_py() for value in key.values())
    return ", ".join(
        shown(text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text)) for text in texts
    )


Choice = Mapping[str, Sequence[pa.Scalar]]
"""Column of the key to the values of which one must be there."""


def is_chosen(keys: pa.Table, choice: Choice) -> np.ndarray:
    """Whether each key fits, bool of shape (n,)."""
    found = np.ones(keys.num_rows, np.bool_)
    for name, values in choice.items():
        among = pa.array([value.as_py() for value in values], keys[name].type)
        found &= pc.is_in(keys[name], value_set=among).to_numpy()
    return found


def add_panes(lanes: Sequence[LaneBars], panes: Panes) -> None:
    """Add to each lane the panes of its key that have a place."""
    if not lanes:
        return
    # Whether each value of a key is one of those of a lane: all that belong to a lane are, and few others.
    near = panes.has_place
    if panes.keys.num_columns:
        wanted = {name: [lane.key[name] for lane in lanes] for name in panes.keys.column_names}
        near = near & is_chosen(panes.keys, wanted)
    candidates = np.flatnonzero(near)
    if not len(candidates):
        return
    keys = panes.keys.take(candidates) if panes.keys.num_columns else panes.keys
    for lane in lanes:
        places = candidates[matches(keys, lane.key, len(candidates))]
        lane.add(panes.starts[places], panes.ends[places], None if panes.rows is None else panes.rows[places])


def add_held(lanes: Sequence[LaneBars], table: pa.Table, scale: Scale) -> None:
    """Tell each lane of the rows that a state holds of its key; ``table``: as `OpenWindowRows` has them."""
    for lane in lanes:
        found = table.filter(pa.array(matches(table, lane.key, table.num_rows)))
        if found.num_rows and found["first"][0].is_valid and found["last"][0].is_valid:
            start, end = (axis_values(found[name], scale)[0].item() for name in ("first", "last"))
            lane.lane = replace(lane.lane, held=HeldRows(start, end, found["rows"][0].as_py()))


def matches(keys: pa.Table, wanted: Mapping[str, Any], n: int) -> np.ndarray:
    """Whether each of ``n`` keys has these values, bool of shape (n,)."""
    found = np.ones(n, np.bool_)
    for name, value in wanted.items():
        found &= pc.equal(keys[name], value).fill_null(False).to_numpy()
    return found
