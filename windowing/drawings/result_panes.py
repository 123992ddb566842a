"""Panes of a drawing, from the result of a scan whose aggregates say which drawn rows each pane shows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import combined
from ..errors import shown
from ..planning.plan import Plan
from ..planning.result_schema import MARK, OUTPUTS, POS
from .labels import after, cut, measure_of, texts_of
from .picture import Measure, Pane
from .selection import places_of

_SIDES = ("start", "end")
_ABOUT = frozenset({*OUTPUTS, MARK})


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """The columns of the result that a drawing asks for.

    ``bits``: the sums of `selection.with_bits`.
    ``count``: the number of rows.
    ``is_default``: whether the caller asked for no aggregates, so that ``count`` says all that there is.
    """

    bits: list[str]
    count: str
    is_default: bool

    @property
    def aggregates(self) -> dict[str, str]:
        """The aggregates, by the names of their columns."""
        return {**{name: f"sum({name[1:]})" for name in self.bits}, self.count: "count()"}

    @property
    def hidden(self) -> set[str]:
        """The columns that are not told with a pane."""
        return {*self.bits, self.count, *(["count"] if self.is_default else [])}


def count_panes(result: pa.Table) -> int:
    """Return how many panes a result has; all its other rows are mark-only."""
    return len(result) - int(result.column("window").null_count)


def of_key(result: pa.Table, keys: pa.Table | None, lane: int) -> pa.Table:
    """Return the rows of a result that are panes of a key; of all panes where there is no key."""
    mask = pc.is_valid(result.column("window"))
    if keys is not None:
        for name, column in zip(keys.column_names, keys.columns, strict=True):
            mask = pc.and_(mask, pc.equal(result.column(name), column[lane]))
    return result.filter(mask)


def drawn_panes(plan: Plan, own: OwnColumns, result: pa.Table, is_whole: bool, most: int) -> list[Pane]:
    """Return the first ``most`` panes of a key that show a drawn row, or no row and stand among those.

    ``result``: the panes of the key. ``is_whole``: whether all rows of the key are drawn.
    """
    shows = _any([pc.not_equal(result.column(name).fill_null(0), 0) for name in own.bits])
    empty = pc.equal(result.column(own.count), 0)
    if not is_whole:
        last = pc.max(result.column("window").filter(shows)).as_py()
        empty = pc.and_(empty, pc.less(result.column("window"), -1 if last is None else last))
    return _panes(plan, own, result.filter(pc.or_(shows, empty)).slice(0, most).combine_chunks())


def _any(masks: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    found = masks[0]
    for mask in masks[1:]:
        found = pc.or_(found, mask)
    return found


def _panes(plan: Plan, own: OwnColumns, found: pa.Table) -> list[Pane]:
    """Make a pane of each row of a result."""
    told, ticks, has_bounds = _told(plan, own, found), _ticks(plan, found), _has_bounds(plan)
    panes = []
    for i, row in enumerate(found.select(["window", "closed_by", own.count, *own.bits]).to_pylist()):
        places = tuple(places_of([row[name] for name in own.bits]))
        start, end = (measure_of(found.column(f"window_{side}")[i]) if has_bounds else None for side in _SIDES)
        about = tuple((name, texts[i]) for name, texts in told if texts[i])
        panes.append(Pane(row["window"], places, row[own.count] or 0, row["closed_by"], start, end, ticks[i], about))
    return panes


def _has_bounds(plan: Plan) -> bool:
    """Whether bounds of panes are values of the axis."""
    return bool(plan.order.columns) and _bounds_type(plan) is not None


def _bounds_type(plan: Plan) -> pa.DataType | None:
    clock = plan.options.event_time or (plan.order.columns[0] if plan.order.columns else None)
    if clock is None:
        return None
    return plan.kind.bounds_type(plan.projection.schema.field(clock).type, plan.options.origin)


def _told(plan: Plan, own: OwnColumns, found: pa.Table) -> list[tuple[str, list[str]]]:
    """Return what is told of each pane, by name: bounds, the tick, timing and output, without a name; aggregates."""
    told: list[tuple[str, list[str]]] = []
    if _bounds_type(plan) is not None:
        told.append(("", _bounds(found)))
    if plan.kind.overlaps and "_at" in found.column_names:
        at = zip(_short(found.column("_at")), _by_tick(found), strict=True)
        told.append(("", [f"@{text}" if by_tick else "" for text, by_tick in at]))
    if plan.options.event_time:
        told.append(("", _short(found.column("timing"))))
        told.append(("", [f"output {index}" for index in found.column("index").to_pylist()]))
    names = plan.schema.names[plan.schema.names.index("closed_by") + 1 :]
    for name in names:
        if name not in own.hidden and name not in _ABOUT and name not in plan.stream_names:
            told.append((cut(shown(name), 20), _short(found.column(name))))
    return told


def _bounds(found: pa.Table) -> list[str]:
    if not len(found):
        return []
    texts = texts_of(pa.concat_arrays([combined(found.column(f"window_{side}")) for side in _SIDES]))
    return [
        f"{start}..{after(start, end)}" for start, end in zip(texts[: len(found)], texts[len(found) :], strict=True)
    ]


def _by_tick(found: pa.Table) -> list[bool]:
    return pc.equal(found.column(POS), -1).fill_null(False).to_pylist()


def _ticks(plan: Plan, found: pa.Table) -> list[Measure | None]:
    if not plan.order.columns or "_at" not in found.column_names:
        return [None] * len(found)
    at = zip(combined(found.column("_at")), _by_tick(found), strict=True)
    return [measure_of(value) if by_tick else None for value, by_tick in at]


def _short(column: pa.ChunkedArray) -> list[str]:
    return texts_of(combined(column))
