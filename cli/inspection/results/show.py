"""``wincli show``: the rows of a result, its rejects, or the open windows of a state, as a table, JSON or CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.columns.arrays import combined, measures
from ....windowing.errors import ConfigError, did_you_mean, shown
from ....windowing.expressions.syntax import Expression
from ....windowing.spark.fork_server import block_pandas
from ....writers.formats.encoder import encoder_of
from ...console.lanes import Lane, lane_lines
from ...console.messages import Messages
from ...console.streams import bold, print_lines, terminal_width
from ...console.table import head_line, is_number, lay_out, row_lines, texts_of
from .shown_rows import ShownRows, condition_of, parse_only, rows_at

Form = Literal["table", "jsonl", "csv", "drawing"]
_SAMPLE = 1000
"""Rows by which the columns of a table are laid out."""
_LINES = 1 << 14
"""Rows that become lines of a table at once."""


def print_rows(
    path: str,
    messages: Messages,
    *,
    unit: str | None = None,
    stage: str | None = None,
    rejects: bool = False,
    head: int | None = None,
    where: str | None = None,
    only: Sequence[str] = (),
    columns: Sequence[str] = (),
    form: Form = "table",
) -> None:
    """Print rows of a result, of the results of a range, or of a state to stdout.

    ``unit``, ``stage``, ``rejects``: which rows, as `rows_at` takes them. ``head``: how many; None: all. ``where``: a
    condition (semantics section 11). ``only``: values of columns, ``NAME=VALUE``. ``columns``: which columns, in this
    order; empty: all. Raises `InputError` where there are none of wincli or they cannot be read, `ConfigError` and
    `SpecError` where columns or the condition do not fit, `DataError` for a value that CSV or JSON has no form for.
    """
    block_pandas()
    rows = rows_at(path, unit=unit, stage=stage, rejects=rejects)
    for name in columns:
        if name not in rows.schema.names:
            raise ConfigError(f"--columns: there is no column {name!r}", did_you_mean(name, rows.schema.names))
    names = list(dict.fromkeys(columns)) or list(rows.schema.names)
    condition = condition_of(where, parse_only(only, rows.schema))
    if form == "drawing":
        print_bars(rows, condition, columns, head, messages)
        return
    tables = _first(rows.tables(names, condition), head)
    schema = pa.schema([rows.schema.field(name) for name in names])
    if form != "table":
        sys.stdout.flush()
        encoder_of(form).encode(tables, schema, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    pieces = (table.slice(at, _LINES) for table in tables for at in range(0, table.num_rows, _LINES))
    first = next(pieces, None)
    layout = lay_out(schema.empty_table() if first is None else first.slice(0, _SAMPLE), terminal_width())
    lines = (line for piece in chain([] if first is None else [first], pieces) for line in row_lines(layout, piece))
    print_lines(chain([bold(head_line(layout))], lines))
    if first is None:
        messages.note("there is no such row")
    if layout.left_out:
        left_out = ", ".join(map(shown, layout.left_out))
        messages.note(f"the terminal has no room for {left_out}; --columns says which columns to show")


def _first(tables: Iterator[pa.Table], most: int | None) -> Iterator[pa.Table]:
    left = most
    for table in tables:
        yield table if left is None else table.slice(0, left)
        if left is not None:
            left -= table.num_rows
            if left <= 0:
                return


# The windows of a result as bars over time, one lane for each key, above one aggregate as a line of blocks.


BOUNDS = ("window_start", "window_end")
_OWN = frozenset({"window", *BOUNDS, "closed_by", "timing", "index"})
_KEYS = 5
_ROWS = 100_000
"""Windows that are drawn at most: nobody can tell more of them apart."""
_WIDTH = 100
_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = ".:-=+*#@"
Numbers = npt.NDArray[np.float64]


def print_bars(
    rows: ShownRows, where: Expression | None, columns: Sequence[str], head: int | None, messages: Messages
) -> None:
    """Draw the windows of the first keys for which ``where`` is true.

    ``columns``: the first of them that is a number is the line. ``head``: how many windows; None: as many as can
    be seen apart. Raises `ConfigError` where the rows are no windows with bounds.
    """
    if not set(BOUNDS) <= set(rows.schema.names):
        raise ConfigError("--draw: these rows are no windows with bounds", "draw the result itself")
    # The first column that is a number: of those that the user names, or of the aggregates.
    numbers = [field.name for field in rows.schema if is_number(field.type)]
    for name in columns:
        if name not in numbers:
            raise ConfigError(f"--draw: {name!r} is no column of numbers", "name an aggregate with --columns")
    after = rows.schema.names[rows.schema.names.index("window") :]
    own = (name for name in after if name in numbers and name not in _OWN and not name.startswith("_"))
    value = next(iter(columns), None) or next(own, None)
    lanes, ends, more = _read_lanes(rows, where, value, min(head or _ROWS, _ROWS))
    if not lanes:
        messages.note("there is no such window")
        return
    blocks = _BLOCKS
    try:
        blocks.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        blocks = _PLAIN
    print_lines(lane_lines(lanes, ends, value, terminal_width() or _WIDTH, blocks, bold))
    if more:
        messages.note("there are more windows; --only NAME=VALUE and --where choose those to draw")


def _read_lanes(
    rows: ShownRows, where: Expression | None, value: str | None, most: int
) -> tuple[list[Lane], tuple[str, str], bool]:
    """Read the windows of the first `_KEYS` keys, at most ``most``, by their starts.

    Returns them with the ends of their axis, as texts, and whether there are more windows.
    """
    key = list(takewhile(lambda name: name != "window", rows.schema.names))
    names = [*key, "window", *BOUNDS, *([] if value is None else [value])]
    found, left = [pa.schema([rows.schema.field(name) for name in names]).empty_table()], most
    for each in rows.tables(names, where):
        found.append(each.slice(0, max(left, 0)))
        left -= each.num_rows
        if left < 0:  # there are more
            break
    table = pa.concat_tables(found)
    table = table.filter(pc.and_(pc.is_valid(table["window"]), pc.is_valid(table[BOUNDS[0]])))
    if not table.num_rows:
        return [], ("", ""), left < 0
    labels = pc.binary_join_element_wise(*(texts_of(table[name]) for name in key), ", ") if key else None
    chosen = [""] if labels is None else labels.unique().to_pylist()
    lanes = []
    for label in chosen[:_KEYS]:
        mine = table if labels is None else table.filter(pc.equal(labels, label))
        start, end = (_numbers(combined(mine[name])) for name in BOUNDS)
        order = np.argsort(start, kind="stable")
        values = None if value is None else _numbers(combined(mine[value]))[order]
        ends = np.fmax(end, start)[order]  # an end may be null
        lanes.append(Lane(label, start[order], ends, values, np.ones(len(start), np.int64)))
    bounds = pa.concat_arrays([combined(table[name]) for name in BOUNDS]).sort()
    numbers = _numbers(bounds)
    low, high = min(lane.starts.min() for lane in lanes), max(lane.ends.max() for lane in lanes)
    first, last = (texts_of(bounds.slice(int(np.searchsorted(numbers, at)), 1))[0].as_py() for at in (low, high))
    return lanes, (first, last), left < 0 or len(chosen) > _KEYS


def _numbers(values: pa.Array) -> Numbers:
    """Return values as float64, null as NaN: enough to place a bar."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    filled = np.asarray(measures(values.drop_null()), np.float64)
    out = np.full(len(values), np.nan)
    out[values.is_valid().to_numpy(zero_copy_only=False)] = filled
    return out
