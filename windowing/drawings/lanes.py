"""The picture of a result: lanes of the drawn keys on one axis, and in words what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..columns.arrays import combined
from ..errors import shown
from ..planning.plan import Plan
from ..streaming.batch_rows import BatchRows
from .labels import measure_of, texts_of, without_date
from .picture import Axis, Lane, Measure, Picture, Row
from .result_panes import OwnColumns, count_panes, drawn_panes, of_key
from .selection import Selection


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """The rows of a table as the window sees them.

    ``batch``: those that have a place.
    ``total``: how many rows the table has; of a result without those that are only marks.
    ``rejected``: how many of them are rejected, by the reason.
    """

    batch: BatchRows
    total: int
    rejected: Mapping[str, int]


def make_picture(
    plan: Plan, own: OwnColumns, result: pa.Table, placed: PlacedRows, chosen: Selection, limit_panes: int
) -> Picture:
    """Return the picture of the chosen rows, and of the panes of ``result`` that show them."""
    batch = placed.batch
    sequences = batch.sequences
    lanes = tuple(_lane(plan, own, batch, result, chosen, i, limit_panes) for i in range(len(chosen.totals)))
    keys = 1 if sequences.keys is None else sequences.keys.num_rows
    panes = count_panes(result)
    more_panes = panes - sum(len(lane.panes) + lane.more_panes for lane in lanes)
    more = keys - len(lanes), len(sequences) - sum(chosen.totals), more_panes
    notes = (*_left_out(*more), *_without_place(placed))
    axis = _axis(plan, batch, chosen, _ticks(plan, lanes))
    return Picture(shown(str(plan.spec)), _about(plan, placed.total, keys, panes), axis, lanes, notes)


def _ticks(plan: Plan, lanes: tuple[Lane, ...]) -> tuple[Measure, ...]:
    """Return the grid of a window of the clock as far as its panes show it: bounds, or instants where panes overlap."""
    panes = [pane for lane in lanes for pane in lane.panes]
    found = [each for pane in panes for each in ([pane.tick] if plan.kind.overlaps else [pane.start, pane.end])]
    return tuple(sorted({each for each in found if each is not None}))


def _marks(before: list[int]) -> tuple[int, ...]:
    """Return marks by the place before each; several between the same two drawn rows are one."""
    return tuple(dict.fromkeys(count - 1 for count in before))


def _axis(plan: Plan, batch: BatchRows, chosen: Selection, ticks: tuple[Measure, ...]) -> Axis:
    name = plan.order.columns[0] if plan.order.columns else plan.options.event_time
    marks = tuple(count - 1 for count in chosen.marks) if plan.takes_marks else ()
    if name is None:
        return Axis("arrival", tuple(map(str, batch.sequences.pos[chosen.rows])), None, marks, ticks)
    values = combined(batch.sequences.rows.column(name)).take(pa.array(chosen.rows))
    label, texts = without_date(shown(name), texts_of(values))
    found = [measure_of(value) for value in values] if plan.order.columns else [None]
    measures: tuple[Measure, ...] = tuple(value for value in found if value is not None)
    return Axis(label, tuple(texts), measures if len(measures) == len(values) else None, marks, ticks)


def _lane(
    plan: Plan, own: OwnColumns, batch: BatchRows, result: pa.Table, chosen: Selection, lane: int, limit_panes: int
) -> Lane:
    places = np.flatnonzero(chosen.lane == lane)
    rows = tuple(Row(int(place), int(batch.sequences.pos[chosen.rows[place]])) for place in places)
    mine = of_key(result, chosen.keys, lane)
    more_rows = chosen.totals[lane] - len(rows)
    panes = drawn_panes(plan, own, mine, not more_rows, limit_panes)
    return Lane(_label(chosen.keys, lane), rows, tuple(panes), more_rows, count_panes(mine) - len(panes))


def _label(keys: pa.Table | None, lane: int) -> str:
    if keys is None:
        return ""
    return ", ".join(texts_of(combined(column.slice(lane, 1)))[0] for column in keys.columns)


def _about(plan: Plan, rows: int, keys: int, panes: int) -> str:
    counts = [counted(rows, "row"), *([counted(keys, "key")] if plan.key else []), counted(panes, "pane")]
    key = f"key {', '.join(plan.key)}; " if plan.key else ""
    return shown(f"{key}order {plan.order}; {', '.join(counts)}")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _left_out(keys: int, rows: int, panes: int) -> list[str]:
    if not keys:
        return []
    return [f"{counted(keys, 'more key')} with {counted(rows, 'row')} and {counted(panes, 'pane')}"]


def _without_place(placed: PlacedRows) -> list[str]:
    """Say how many rows are rejected and why, and how many a condition leaves out."""
    rejected = sum(placed.rejected.values())
    left_out = placed.total - len(placed.batch.sequences) - rejected
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in placed.rejected.items())
    notes = [f"{counted(rejected, 'row')} rejected: {reasons}"] if rejected else []
    return notes + ([f"{counted(left_out, 'row')} left out by where"] if left_out else [])
