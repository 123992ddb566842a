"""Windows over a table as a drawing, for notebooks and terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import Calls, Clock, Names, Rows, Seconds, as_names, as_table, plan_of_call
from ..errors import ConfigError
from ..in_memory import aggregate
from ..language.options import AtEnd, Closed, Empty
from ..language.spec import WindowSpec
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..planning.row_order import OrderBy
from ..streaming.batch_rows import GivenSignals, Progress, read_batch
from ..streaming.row_rejects import RowRejects
from .lanes import BITS, OwnColumns, PlacedRows, choose, make_picture, with_bits
from .picture import Picture
from .svg import picture_svg
from .text import picture_text

# A drawing of windows: a value that prints as text and shows as SVG in notebooks.


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


def draw(
    table: Rows,
    window: str | WindowSpec,
    *,
    key: Names = (),
    order_by: OrderBy = None,
    aggregates: Calls | None = None,
    at_end: AtEnd = "flush",
    empty: Empty = "skip",
    closed: Closed = "left",
    origin: Seconds | None = None,
    marks: str | Sequence[int] | None = None,
    clock: Clock | None = None,
    since: Clock | None = None,
    let: Calls = (),
    where: str | None = None,
    having: str | None = None,
    partial: bool = False,
    event_time: str | None = None,
    lag: Seconds = 0,
    min_gap: Seconds = 0,
    emit_evicted: bool = False,
    watermarks: Sequence[tuple[int, Seconds]] | None = None,
    rejected: Literal["drop", "error"] = "drop",
    only: Mapping[str, Any] | None = None,
    limit: int = 40,
    limit_keys: int = 5,
    limit_panes: int = 40,
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
    given = {name: value for name, value in locals().items() if name not in _OWN}
    limits = {"limit": limit, "limit_keys": limit_keys, "limit_panes": limit_panes}
    return draw_with(table, given, limits, only or {})


def draw_with(
    table: Rows, given: Mapping[str, Any], limits: Mapping[str, int], only: Mapping[str, Any], busiest: bool = False
) -> Drawing:
    """Draw the windows over a table as `draw` does; raise as it does.

    ``given``: its arguments that `aggregate` has, too; ``limits``: the others that are numbers. ``busiest``: whether to
    draw the keys with the most rows, in place of the first.
    """
    _check(limits, given["rejected"])
    table = as_table(table)
    placed = _placed_rows(table, given)
    sequences, marks = placed.batch.sequences, placed.batch.signals.marks
    chosen = choose(sequences, marks, only, limits["limit"], limits["limit_keys"], busiest)
    # Columns with names that nothing else has: neither the table nor an expression of the call.
    columns = -(-len(chosen.rows) // BITS)
    used = " ".join([*table.column_names, *map(str, given.values())])
    stem = "drawn"
    while stem in used:
        stem += "_"
    own = OwnColumns([f"_{stem}{i}" for i in range(max(columns, 1))], f"_{stem}n", given["aggregates"] is None)
    call = {**given, "aggregates": _with_own(given["aggregates"], own)}
    drawn = with_bits(table, [name[1:] for name in own.bits], placed.batch.sequences, chosen.rows)
    plan = _plan(drawn, call)
    result = aggregate(drawn, **call)
    return Drawing(make_picture(plan, own, result, placed, chosen, limits["limit_panes"]))


_MOST = {"limit": 1000, "limit_keys": 100, "limit_panes": 1000}
_OWN = frozenset({"table", "only", *_MOST})


def _check(limits: Mapping[str, int], rejected: str) -> None:
    for name, asked in limits.items():
        if not 1 <= asked <= _MOST[name]:
            what = f"{name}: {asked} is not from 1 to {_MOST[name]:,}"
            raise ConfigError(what, "say how many to draw, or leave it out")
    if rejected not in ("drop", "error"):
        raise ConfigError(f"rejected: {rejected!r} is neither 'drop' nor 'error'", "say one of these")


def _plan(table: pa.Table, given: Mapping[str, Any]) -> Plan:
    as_in_aggregate = {"group_by": (), "emit": "aggregates", "sort_by": (), "operator": None, "plain": False}
    return plan_of_call(table.schema, {**given, **as_in_aggregate})


def _placed_rows(table: pa.Table, given: Mapping[str, Any]) -> PlacedRows:
    plan = _plan(table, given)
    levels = given["watermarks"]
    found = None if levels is None else [(rows, Fraction(seconds)) for rows, seconds in levels]
    pos, rejects = np.arange(table.num_rows), RowRejects(given["rejected"])
    batch = read_batch(plan, Progress(), table, pos, GivenSignals(given["marks"], found), rejects)
    marks_only = pc.sum(pc.equal(table.column(MARK), "only")).as_py() if plan.reads_result else 0
    return PlacedRows(batch, table.num_rows - (marks_only or 0), rejects.counts)


def _with_own(aggregates: Calls | None, own: OwnColumns) -> Calls:
    if isinstance(aggregates, Mapping):
        return {**aggregates, **own.aggregates}
    calls = ["count()"] if aggregates is None else as_names(aggregates, "aggregates")
    return [*calls, *(f"{name}={call}" for name, call in own.aggregates.items())]
