"""Windows over a table as a drawing, for notebooks and terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import (
    Calls,
    DrawnArguments,
    Rows,
    Seconds,
    as_levels,
    as_marks,
    as_names,
    as_table,
    merged,
    plan_of_call,
    refuse_others,
    takes,
)
from ..columns.arrays import Ints, combined
from ..columns.sort_keys import sort_keys
from ..errors import ConfigError, did_you_mean, shown
from ..in_memory import aggregate
from ..language.enrichment import Taken
from ..language.joins import RIGHT, SIDE, parse_join
from ..language.patterns import MATCHED_AS, STEPS
from ..language.spec import Joined, WindowSpec
from ..planning.matched_calls import gives_steps, steps_of
from ..planning.plan import Plan
from ..planning.result_schema import MARK, OUTPUTS, POS
from ..planning.row_order import OrderBy
from ..rows.marks import Marks
from ..rows.sequence import Sequences
from ..state.carry import Registers
from ..streaming.batch_rows import BatchRows, GivenSignals, read_batch
from ..streaming.row_rejects import RowRejects
from ..support.amounts import count_of
from .picture import (
    Axis,
    Lane,
    Measure,
    Pane,
    Picture,
    after,
    cut,
    measure_of,
    texts_of,
    without_date,
)
from .svg import picture_svg
from .text import picture_text

# Which rows of which keys are drawn, and the columns by which a scan says in which panes they are.


BITS = 62
"""Rows that one int64 column tells apart: sums of different powers of two below this do not overflow."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that are drawn.

    ``keys``: the keys that are drawn; None without a key.
    ``rows``: int64, the drawn rows among those of the sequences, in their total order over all keys.
    ``lane``: int64, for each of ``rows`` the number of its key among ``keys``.
    ``totals``: how many rows each key has, drawn or not.
    ``marks``: before each window mark, how many of ``rows`` stand.
    """

    keys: pa.Table | None
    rows: Ints
    lane: Ints
    totals: tuple[int, ...]
    marks: tuple[int, ...]


def choose(
    sequences: Sequences, marks: Marks, only: Mapping[str, Any], rows: int, keys: int, busiest: bool = False
) -> Selection:
    """Choose the first ``rows`` rows of the first ``keys`` keys, of those that have the values in ``only``.

    ``busiest``: the keys with the most rows are chosen, and not the first; they stand in ascending order all the same.
    Raises `ConfigError` for an ``only`` that no key has.
    """
    picks = _picks(sequences.keys, only)
    if busiest:
        counts = sequences.bounds[picks + 1] - sequences.bounds[picks]
        picks = picks[np.sort(np.argsort(-counts, kind="stable")[:keys])]
    picks = picks[:keys]
    bounds = [(int(sequences.bounds[pick]), int(sequences.bounds[pick + 1])) for pick in picks]
    found = [np.arange(low, min(high, low + rows)) for low, high in bounds]
    lane = np.repeat(np.arange(len(found)), [len(each) for each in found])
    candidates = np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)
    order, before = _in_total_order(sequences, candidates, marks)
    order, before = order[:rows], [count for count in before if count < rows or len(order) == len(sequences)]
    chosen = None if sequences.keys is None else sequences.keys.take(pa.array(picks))
    totals = tuple(high - low for low, high in bounds)
    return Selection(chosen, candidates[order], lane[order], totals, tuple(dict.fromkeys(before)))


def with_bits(table: pa.Table, names: list[str], sequences: Sequences, rows: Ints) -> pa.Table:
    """Add columns that hold, for the i-th drawn row, the i-th power of two, and else 0.

    The sum of such a column over a pane says which drawn rows are in the pane, whatever the kind of window. ``names``:
    one column for each `BITS` rows.
    """
    for number, name in enumerate(names):
        bits = np.zeros(table.num_rows, np.int64)
        mine = rows[number * BITS : (number + 1) * BITS]
        bits[sequences.pos[mine]] = np.int64(1) << np.arange(len(mine))
        table = table.append_column(name, pa.array(bits))
    return table


def places_of(sums: list[int | None]) -> list[int]:
    """Return the places of the drawn rows whose powers of two are in the sums of a pane, ascending."""
    return [number * BITS + bit for number, found in enumerate(sums) for bit in range(BITS) if (found or 0) >> bit & 1]


def _in_total_order(sequences: Sequences, rows: Ints, marks: Marks) -> tuple[Ints, list[int]]:
    names = list(sequences.order)
    taken = sequences.rows.select(names).take(pa.array(rows))
    pos, after = np.concatenate([sequences.pos[rows], marks.pos]), np.repeat([0, 1], [len(rows), len(marks)])
    has_place = np.append(np.ones(len(rows), np.bool_), marks.pos >= 0)  # a mark before all rows has no order value
    words = [
        sort_keys(combined(pa.chunked_array([column, marks.rows.column(name).cast(column.type)])))
        for name, column in zip(names, taken.columns, strict=True)
    ]
    order = np.lexsort([after, pos, *reversed(words), has_place])
    is_row = order < len(rows)
    return order[is_row], [int(count) for count in np.cumsum(is_row)[~is_row]]


def _picks(keys: pa.Table | None, only: Mapping[str, Any]) -> Ints:
    if keys is None:
        if only:
            raise ConfigError("only: there is no key", "say key, or leave it out")
        return np.zeros(1, np.int64)
    chosen = np.ones(keys.num_rows, np.bool_)
    for name, value in only.items():
        if name not in keys.column_names:
            raise ConfigError(f"only: there is no key column {name!r}", did_you_mean(name, keys.column_names))
        kind = keys.column(name).type
        try:
            wanted = pa.array(list(value) if isinstance(value, list | tuple | set) else [value], kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise ConfigError(f"only: the key is {kind} ({error})", "give values of that type") from None
        chosen &= pc.is_in(keys.column(name), wanted).to_numpy()
    if only and not chosen.any():
        raise ConfigError(f"only: no key has {dict(only)!r}", "look at the values of the key columns")
    return np.flatnonzero(chosen)


# Panes of a drawing, from the result of a scan whose aggregates say which drawn rows each pane shows.


_SIDES = ("start", "end")
_ABOUT = frozenset({*OUTPUTS, MARK})


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """The columns of the result that a drawing asks for.

    ``bits``: the sums of `selection.with_bits`.
    ``count``: the number of rows.
    ``way``: as what a match takes its rows; None: the window is no match.
    ``silent``: those of other columns of which nothing is told.
    """

    bits: list[str]
    count: str
    way: str | None
    silent: frozenset[str]

    @property
    def aggregates(self) -> dict[str, str]:
        way = {} if self.way is None else {self.way: f"collect({MATCHED_AS})"}
        return {**{name: f"sum({name[1:]})" for name in self.bits}, self.count: "count()", **way}

    @property
    def hidden(self) -> set[str]:
        return {*self.bits, self.count, str(self.way), *self.silent}


def count_panes(result: pa.Table) -> int:
    """Return how many panes a result has; all its other rows are mark-only."""
    return len(result) - int(result.column("window").null_count)


def drawn_panes(plan: Plan, own: OwnColumns, result: pa.Table, is_whole: bool, most: int) -> list[Pane]:
    """Return the first ``most`` panes of a key that show a drawn row, or no row and stand among those.

    ``result``: the panes of the key. ``is_whole``: whether all rows of the key are drawn.
    """
    shows = reduce(pc.or_, (pc.not_equal(result.column(name).fill_null(0), 0) for name in own.bits))
    empty = pc.equal(result.column(own.count), 0)
    if not is_whole:
        last = pc.max(result.column("window").filter(shows)).as_py()
        empty = pc.and_(empty, pc.less(result.column("window"), -1 if last is None else last))
    found = result.filter(pc.or_(shows, empty)).slice(0, most).combine_chunks()
    told, ticks = _told(plan, own, found), list[Measure | None]([None] * len(found))
    if plan.order.columns and "_at" in found.column_names:
        at = zip(combined(found.column("_at")), _by_tick(found), strict=True)
        ticks = [measure_of(value) if by_tick else None for value, by_tick in at]
    has_bounds = bool(plan.order.columns) and _bounds_type(plan) is not None
    panes = []
    ways = [[]] * len(found) if own.way is None else found.column(own.way).to_pylist()
    for i, row in enumerate(found.select(["window", "closed_by", own.count, *own.bits]).to_pylist()):
        places = tuple(places_of([row[name] for name in own.bits]))
        start, end = (measure_of(found.column(f"window_{side}")[i]) if has_bounds else None for side in _SIDES)
        about = tuple((name, texts[i]) for name, texts in told if texts[i])
        count, taken = row[own.count] or 0, tuple(map(shown, ways[i][: len(places)]))
        panes.append(Pane(row["window"], places, count, row["closed_by"], start, end, ticks[i], taken, about))
    return panes


def _bounds_type(plan: Plan) -> pa.DataType | None:
    clock = plan.options.event_time or (plan.order.columns[0] if plan.order.columns else None)
    if clock is None:
        return None
    return plan.times(plan.projection.schema.field(clock).type).bounds


def _told(plan: Plan, own: OwnColumns, found: pa.Table) -> list[tuple[str, list[str]]]:
    """Return what is told of each pane, by name: bounds, the tick, timing and output, without a name; aggregates."""
    told: list[tuple[str, list[str]]] = []
    if _bounds_type(plan) is not None:
        texts = texts_of(pa.concat_arrays([combined(found.column(f"window_{side}")) for side in _SIDES]))
        ends = zip(texts[: len(found)], texts[len(found) :], strict=True)
        told.append(("", [f"{start}..{after(start, end)}" for start, end in ends]))
    if plan.kind.needs.overlaps and plan.kind.needs.ends is None and "_at" in found.column_names:
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


def _by_tick(found: pa.Table) -> list[bool]:
    return pc.equal(found.column(POS), -1).fill_null(False).to_pylist()


def _short(column: pa.ChunkedArray) -> list[str]:
    return texts_of(combined(column))


def panes_of_pairs(table: pa.Table, given: Mapping[str, Any], own: OwnColumns, places: Ints, stem: str) -> pa.Table:
    """Return the panes of a join with ``own.bits`` and ``own.count``, found by what pairs they have.

    ``table``, ``given``: as `merged` returns them. ``stem``: a name that no column has.
    ``places``: int64, of each row its place among the drawn rows; -1: it is not drawn.
    """
    join, calls, pos = given["join"], given.get("aggregates"), pa.array(np.arange(len(table)))
    join = parse_join(join) if isinstance(join, str) else join
    names = (stem, f"{join.name}_{stem}")  # of the left and of the right row of a pair, what says which it is
    if join.take is not None:
        join = replace(join, take=(*join.take, Taken(stem, None)))
    numbered = table.append_column(stem, pos)
    if join.path is not None:
        numbered = numbered.add_column(0, names[1], pos)
    more = {f"_{name}": f"collect_distinct({name})" for name in names}
    call = {**given, "join": join, "aggregates": None if calls is None else with_calls(calls, more)}
    found = aggregate(numbered, **call)
    found = found.filter(pc.is_valid(found["window"]))
    if calls is None:
        ends = pc.is_valid(combined(found[MARK])).to_numpy(zero_copy_only=False)
        result, pane = found.take(pa.array(np.flatnonzero(ends))), np.tile(np.cumsum(ends) - ends, 2)
        columns = [combined(found[name].fill_null(-1)).to_numpy() for name in names]
    else:
        result, lists = found, [combined(found[name]) for name in more]
        own_row = [] if stem not in found.column_names else [combined(found[stem]).to_numpy()]
        pane = np.concatenate([pc.list_parent_indices(each).to_numpy() for each in lists])
        pane = np.concatenate([pane, *(np.arange(len(each)) for each in own_row)])
        columns = [*(each.flatten().to_numpy() for each in lists), *own_row]
    which, size = np.concatenate(columns).astype(np.int64), max(1, len(places))
    shows = np.unique(pane[which >= 0] * size + which[which >= 0])
    pane, place = shows // size, places[shows % size]
    for number, name in enumerate(own.bits):
        bits, mine = np.zeros(len(result), np.int64), (place >= 0) & (place // BITS == number)
        np.bitwise_or.at(bits, pane[mine], np.int64(1) << place[mine] % BITS)
        result = result.append_column(name, pa.array(bits))
    return result.append_column(own.count, pa.array(np.bincount(pane, minlength=len(result))))


def with_calls(calls: Calls, more: Mapping[str, str]) -> Calls:
    """Return aggregates with others, texts by name."""
    if isinstance(calls, Mapping):
        return {**calls, **more}
    return [*as_names(calls, "aggregates"), *(f"{name}={text}" for name, text in more.items())]


# The picture of a result: lanes of the drawn keys on one axis, and in words what is left out.


def make_picture(
    plan: Plan, own: OwnColumns, result: pa.Table, batch: BatchRows, total: int, rejected: Mapping[str, int],
    chosen: Selection, limit_panes: int,
) -> Picture:  # fmt: skip
    """Return the picture of the chosen rows, and of the panes of ``result`` that show them.

    ``batch``: the rows that have a place. ``total``: how many rows the table has; of a result without those that are
    only marks. ``rejected``: how many of them are rejected, by the reason.
    """
    sequences = batch.sequences
    lanes = tuple(_lane(plan, own, batch, result, chosen, i, limit_panes) for i in range(len(chosen.totals)))
    keys = 1 if sequences.keys is None else sequences.keys.num_rows
    panes = count_panes(result)
    notes = []
    if more_keys := keys - len(lanes):
        more_rows = len(sequences) - sum(chosen.totals)
        more_panes = panes - sum(len(lane.panes) + lane.more_panes for lane in lanes)
        more = f"{count_of(more_keys, 'more key')} with {count_of(more_rows, 'row')} and {count_of(more_panes, 'pane')}"
        notes.append(more)
    if count := sum(rejected.values()):
        reasons = ", ".join(f"{reason} {each:,}" for reason, each in rejected.items())
        notes.append(f"{count_of(count, 'row')} rejected: {reasons}")
    if left_out := total - len(sequences) - count:
        notes.append(f"{count_of(left_out, 'row')} left out by where")
    # The grid of a window of the clock as far as its panes show it: bounds, or instants where panes overlap.
    drawn = [pane for lane in lanes for pane in lane.panes]
    has_bounds = not plan.kind.needs.overlaps or plan.kind.needs.ends is not None
    found = [each for pane in drawn for each in ([pane.start, pane.end] if has_bounds else [pane.tick])]
    axis = _axis(plan, batch, chosen, tuple(sorted({each for each in found if each is not None})))
    counts = [count_of(total, "row"), *([count_of(keys, "key")] if plan.key else []), count_of(panes, "pane")]
    key = f"key {', '.join(plan.key)}; " if plan.key else ""
    about = shown(f"{key}order {plan.order}; {', '.join(counts)}")
    return Picture(shown(str(plan.spec)), about, axis, lanes, tuple(notes))


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
    places, right = np.flatnonzero(chosen.lane == lane), None
    if isinstance(plan.spec, Joined):
        sides = combined(batch.sequences.rows.column(SIDE)).to_numpy()[chosen.rows[places]]
        right = frozenset(places[sides == RIGHT].tolist())
    rows = dict(zip(places.tolist(), batch.sequences.pos[chosen.rows[places]].tolist(), strict=True))
    is_mine = pc.is_valid(result.column("window"))
    keys = {} if chosen.keys is None else dict(zip(chosen.keys.column_names, chosen.keys.columns, strict=True))
    for name, column in keys.items():
        is_mine = pc.and_(is_mine, pc.equal(result.column(name), column[lane]))
    mine = result.filter(is_mine)
    more_rows = chosen.totals[lane] - len(rows)
    panes = drawn_panes(plan, own, mine, not more_rows, limit_panes)
    label = ", ".join(_short(column.slice(lane, 1))[0] for column in keys.values())
    return Lane(label, rows, tuple(panes), more_rows, count_panes(mine) - len(panes), right)


# A drawing of windows: a value that prints as text and shows as SVG in notebooks.


_MOST = {"limit": 1000, "limit_keys": 100, "limit_panes": 1000}


@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """Windows over rows, drawn.

    ``picture``: what is drawn. ``str()`` is a text of at most 100 characters a line, `svg` an image.
    """

    picture: Picture

    def __str__(self) -> str:
        return picture_text(self.picture)

    def __repr__(self) -> str:
        return str(self)

    def svg(self) -> str:
        """Return the drawing as an SVG document, which needs no other file and suits light and dark pages."""
        return picture_svg(self.picture)

    def _repr_svg_(self) -> str:
        return self.svg()


@takes(DrawnArguments)
def draw(
    table: Rows,
    window: str | WindowSpec,
    *,
    order_by: OrderBy = None,
    marks: str | Sequence[int] | None = None,
    watermarks: Sequence[tuple[int, Seconds]] | None = None,
    rejected: Literal["drop", "error"] = "drop",
    only: Mapping[str, Any] | None = None,
    limit: int = 40,
    limit_keys: int = 5,
    limit_panes: int = 40,
    **options: Unpack[DrawnArguments],
) -> Drawing:
    """Draw the windows over a table: as text by ``str``, as SVG where notebooks show the value.

    The windows are those of `aggregate` over all rows, whose arguments these are. Panes are drawn with all their rows,
    so there is no ``emit`` and no ``group_by``; rejected rows are left out by default, and counted. Of large tables a
    part is drawn, and the drawing says how much is left out:

    ``only``: the keys that are drawn: by key columns, a value, or a list of values.
    ``limit_keys``: how many of these keys, in ascending order; at most 100.
    ``limit``: how many rows of these keys, from the first in the order of the window; at most 1,000.
    ``limit_panes``: how many panes of each key, from the first that shows a row which is drawn; at most 1,000.

    Memory and time are as of two calls of `aggregate` without long aggregates. Raises as `aggregate`, and
    `ConfigError` for another limit or an ``only`` that no key has.

    >>> draw(pa.table({"t": [0, 2, 5, 7, 11, 12]}), "count(4)")
    window:  tumbling, count(4)
             order arrival; 6 rows, 2 panes
    <BLANKLINE>
    arrival:  0  1  2  3  4  5
    rows:     a  b  c  d  e  f
     pane 0: [a  b  c  d]        count  4 rows
     pane 1:             [e  f>  end    2 rows
    """
    refuse_others(draw, options)
    own = {"window": window, "order_by": order_by, "marks": marks, "watermarks": watermarks, "rejected": rejected}
    limits = {"limit": limit, "limit_keys": limit_keys, "limit_panes": limit_panes}
    return draw_with(table, {**options, **own}, limits, only or {})


def draw_with(
    table: Rows, given: Mapping[str, Any], limits: Mapping[str, int], only: Mapping[str, Any], busiest: bool = False
) -> Drawing:
    """Draw the windows over a table as `draw` does; raise as it does.

    ``given``: its arguments that `aggregate` has, too; ``limits``: the others that are numbers. ``busiest``: whether to
    draw the keys with the most rows, in place of the first.
    """
    for name, asked in limits.items():
        if not 1 <= asked <= _MOST[name]:
            what = f"{name}: {asked} is not from 1 to {_MOST[name]:,}"
            raise ConfigError(what, "say how many to draw, or leave it out")
    if given["rejected"] not in ("drop", "error"):
        raise ConfigError(f"rejected: {given['rejected']!r} is neither 'drop' nor 'error'", "say one of these")
    table, given = merged(as_table(table), given)
    plan, levels = plan_of_call(table.schema, given), as_levels(given["watermarks"])
    given = {name: value for name, value in given.items() if name != "stream"}
    pos, rejects = np.arange(table.num_rows), RowRejects(given["rejected"])
    batch = read_batch(plan, Registers(), table, pos, GivenSignals(as_marks(given["marks"]), levels), rejects)
    only_marks = pc.sum(pc.equal(table.column(MARK), "only")).as_py() if plan.reads_result else 0
    total = table.num_rows - (only_marks or 0)
    chosen = choose(batch.sequences, batch.signals.marks, only, limits["limit"], limits["limit_keys"], busiest)
    # Columns with names that nothing else has: neither the table nor an expression of the call.
    columns = -(-len(chosen.rows) // BITS)
    used = " ".join([*table.column_names, *map(str, given.values())])
    stem = "drawn"
    while stem in used:
        stem += "_"
    bits, way = [f"_{stem}{i}" for i in range(max(columns, 1))], None
    if MATCHED_AS in plan.kind.needs.pane_columns:
        way = f"_{stem}w"
    if isinstance(plan.spec, Joined):
        places = np.full(len(table), -1)
        places[batch.sequences.pos[chosen.rows]] = np.arange(len(chosen.rows))
        named = plan.schema.names if given.get("aggregates") is None else plan.of_left
        own = OwnColumns(bits, f"_{stem}n", None, frozenset(named))
        result = panes_of_pairs(table, given, own, places, stem)
        picture = make_picture(plan, own, result, batch, total, rejects.counts, chosen, limits["limit_panes"])
        return Drawing(picture)
    calls: Calls | None = given.get("aggregates")
    silent = ["count"] if calls is None else []
    if calls is None and gives_steps(plan.spec, plan.options):
        calls = {each.name: each.text for each in steps_of(plan.spec, plan.order.columns[0])}
        silent = [name for name in calls if name != STEPS]  # the axis says when
    own = OwnColumns(bits, f"_{stem}n", way, frozenset(silent))
    call = {**given, "aggregates": with_calls(["count()"] if calls is None else calls, own.aggregates)}
    drawn = with_bits(table, [name[1:] for name in own.bits], batch.sequences, chosen.rows)
    plan = plan_of_call(drawn.schema, call)
    result = aggregate(drawn, **call)
    return Drawing(make_picture(plan, own, result, batch, total, rejects.counts, chosen, limits["limit_panes"]))
