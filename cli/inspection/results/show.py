"""``wincli show``: the rows of a result, its rejects, or the open windows of a state, as a table, JSON or CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import pyarrow as pa

from ....windowing.errors import ConfigError, shown
from ....windowing.spark.workers.no_pandas import block_pandas
from ....windowing.support.suggest import did_you_mean
from ....writers.formats.encoder import encoder_of
from ...console.messages import Messages
from ...console.streams import bold, print_lines, terminal_width
from ...console.table import head_line, lay_out, row_lines
from .key_values import condition_of, parse_only
from .shown_rows import ShownRows, rows_at

Form = Literal["table", "jsonl", "csv", "drawing"]
_SAMPLE = 1000
"""Rows by which the columns of a table are laid out."""
_LINES = 1 << 14
"""Rows that become lines of a table at once."""


@dataclass(frozen=True, slots=True)
class ShowRequest:
    """What is to be shown.

    ``path``: the folder of a result, of results, or of a state.
    ``unit``, ``stage``, ``rejects``: which rows of it, as `rows_at` takes them.
    ``head``: how many rows; None: all.
    ``where``: a condition (semantics section 11); None: all rows.
    ``only``: values of columns, ``NAME=VALUE``.
    ``columns``: which columns, in this order; empty: all.
    ``form``: how.
    """

    path: str
    unit: str | None = None
    stage: str | None = None
    rejects: bool = False
    head: int | None = None
    where: str | None = None
    only: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    form: Form = "table"


def print_rows(request: ShowRequest, messages: Messages) -> None:
    """Print the rows that are requested to stdout.

    Raises `InputError` where there are none of wincli or they cannot be read, `ConfigError` and `SpecError` where
    columns or the condition do not fit, `DataError` for a value that CSV or JSON has no form for.
    """
    block_pandas()
    rows = rows_at(request.path, unit=request.unit, stage=request.stage, rejects=request.rejects)
    names = chosen_columns(request.columns, rows.schema.names)
    where = condition_of(request.where, parse_only(request.only, rows.schema))
    if request.form == "drawing":
        from .bars import print_bars  # noqa: PLC0415 - numpy is for drawings alone

        print_bars(rows, where, request.columns, request.head, messages)
        return
    tables = _first(rows.tables(names, where), request.head)
    if request.form == "table":
        _print_table(rows, names, tables, messages)
    else:
        _print_encoded(pa.schema([rows.schema.field(name) for name in names]), tables, request.form)


def chosen_columns(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that are named, or all. Raises `ConfigError` for one that is not among ``names``."""
    for name in given:
        if name not in names:
            raise ConfigError(f"--columns: there is no column {name!r}", did_you_mean(name, names))
    return list(dict.fromkeys(given)) or list(names)


def _first(tables: Iterable[pa.Table], most: int | None) -> Iterator[pa.Table]:
    """Yield tables up to a number of rows, and read no further."""
    left = most
    for table in tables:
        yield table if left is None else table.slice(0, left)
        if left is not None:
            left -= table.num_rows
            if left <= 0:
                return


def _print_table(rows: ShownRows, names: Sequence[str], tables: Iterable[pa.Table], messages: Messages) -> None:
    pieces = (table.slice(at, _LINES) for table in tables for at in range(0, table.num_rows, _LINES))
    first = next(pieces, None)
    empty = pa.schema([rows.schema.field(name) for name in names]).empty_table()
    layout = lay_out(empty if first is None else first.slice(0, _SAMPLE), terminal_width())
    lines = (line for piece in chain([] if first is None else [first], pieces) for line in row_lines(layout, piece))
    print_lines(chain([bold(head_line(layout))], lines))
    if first is None:
        messages.note("there is no such row")
    if layout.left_out:
        left_out = ", ".join(map(shown, layout.left_out))
        messages.note(f"the terminal has no room for {left_out}; --columns says which columns to show")


def _print_encoded(schema: pa.Schema, tables: Iterable[pa.Table], form: Literal["jsonl", "csv"]) -> None:
    sys.stdout.flush()
    encoder_of(form).encode(tables, schema, sys.stdout.buffer)
    sys.stdout.buffer.flush()
