"""Panes of a drawing, from the result of a scan whose aggregates say which drawn rows each pane shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import combined
from ..planning.plan import Plan
from ..planning.result_schema import POS
from .labels import after, cut, measure_of, texts_of
from .picture import Measure, Pane
from .selection import places_of


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


def count_panes(plan: Plan, result: pa.Table) -> int:
    """Return how many panes a result has."""
    result = result.filter(pc.is_valid(result.column("window")))
    if not plan.options.group_by:
        return len(result)
    return len(result.select([*plan.key, "window"]).group_by([*plan.key, "window"]).aggregate([]))


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
    found = result.filter(pc.or_(shows, empty))
    numbers = pc.unique(found.column("window")).slice(0, most)
    return _panes(plan, own, found.filter(pc.is_in(found.column("window"), numbers)).combine_chunks())


def _any(masks: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    found = masks[0]
    for mask in masks[1:]:
        found = pc.or_(found, mask)
    return found


def _panes(plan: Plan, own: OwnColumns, found: pa.Table) -> list[Pane]:
    """Make panes of result rows, which are in the order of windows and groups."""
    told = _told(plan, own, found)
    columns = {name: found.column(name).to_pylist() for name in ("window", "closed_by", own.count, *own.bits)}
    has_bounds = _has_bounds(plan)
    ticks = _ticks(plan, found)
    panes = []
    for number, lines in groupby(range(len(found)), key=columns["window"].__getitem__):
        rows = list(lines)
        places = {place for row in rows for place in places_of([columns[name][row] for name in own.bits])}
        start, end = (measure_of(found.column(f"window_{side}")[rows[0]]) for side in ("start", "end"))
        panes.append(
            Pane(
                number,
                tuple(sorted(places)),
                sum(columns[own.count][row] or 0 for row in rows),
                columns["closed_by"][rows[0]],
                start if has_bounds else None,
                end if has_bounds else None,
                ticks[rows[0]],
                _told_of_groups(told, rows),
            )
        )
    return panes


def _has_bounds(plan: Plan) -> bool:
    """Whether bounds of panes are values of the axis."""
    return bool(plan.order.columns) and _bounds_type(plan) is not None


def _bounds_type(plan: Plan) -> pa.DataType | None:
    clock = plan.options.event_time or (plan.order.columns[0] if plan.order.columns else None)
    if clock is None:
        return None
    return plan.kind.bounds_type(plan.projection.schema.field(clock).type, plan.options.origin)


def _told(plan: Plan, own: OwnColumns, found: pa.Table) -> dict[str, list[str]]:
    """Return what is told of each result row: bounds, the tick, timing and index, groups, and aggregates."""
    told: dict[str, list[str]] = {}
    if _bounds_type(plan) is not None:
        start, end = (_short(found.column(f"window_{side}")) for side in ("start", "end"))
        told["bounds"] = [f"{low}..{after(low, high)}" for low, high in zip(start, end, strict=True)]
    if plan.kind.overlaps and "_at" in found.column_names:
        at = zip(_short(found.column("_at")), _by_tick(found), strict=True)
        told["at"] = [f"@{text}" if by_tick else "" for text, by_tick in at]
    if "timing" in found.column_names:
        told["timing"] = _short(found.column("timing"))
        told["index"] = [f"output {index}" for index in found.column("index").to_pylist()]
    names = [bound.name for bound in plan.aggregates] + [column.name for column in plan.results]
    for name in dict.fromkeys([*plan.options.group_by, *names]):
        if name not in own.hidden and name in found.column_names:
            told[f"={name}"] = _short(found.column(name))
    return told


def _by_tick(found: pa.Table) -> list[bool]:
    return pc.equal(found.column(POS), -1).fill_null(False).to_pylist()


def _ticks(plan: Plan, found: pa.Table) -> list[Measure | None]:
    if not plan.order.columns or "_at" not in found.column_names:
        return [None] * len(found)
    at = zip(combined(found.column("_at")), _by_tick(found), strict=True)
    return [measure_of(value) if by_tick else None for value, by_tick in at]


def _short(column: pa.ChunkedArray) -> list[str]:
    return texts_of(combined(column))


def _told_of_groups(told: Mapping[str, list[str]], rows: list[int]) -> tuple[tuple[str, str], ...]:
    """What is told of a pane: once of all its groups, and then of each group."""
    pairs = [("", values[rows[0]]) for name, values in told.items() if not name.startswith("=")]
    for row in rows:
        pairs += [(cut(name[1:], 20), values[row]) for name, values in told.items() if name.startswith("=")]
    return tuple((name, text) for name, text in pairs if text)
