"""How the rows of a DataFrame are laid out for a window: what decides partitions, their order, and the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions

from ..columns.sort_keys import is_sortable
from ..enrichment.window_table import OF_KEYS
from ..errors import ConfigError
from ..language.spec import HIDDEN
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..streaming.keyed_scan import COARSE_BITS

# One integer that sorts the rows of a partition: Spark sorts by one integer with a radix sort, and compares no text.
#
# It is the bucket of the key and a coarse form of the first order column (`windowing.streaming.keyed_scan.CODE`).
# What it leaves open, tasks decide, a bucket at a time.


_EXACT = 1 << 48
"""Measures below this are as they are; those above are told apart in steps of 2^15."""
_LAST = (1 << (COARSE_BITS - 1)) - 1
_LARGEST = (1 << 63) - 1


def sort_code(key: Sequence[Column], order: Column, dtype: pa.DataType) -> Column:
    """Return the code of each row, as `CODE` says. ``order``: the first order column, of type ``dtype``."""
    code = functions.shiftleft(_bucket(key), COARSE_BITS)
    return code + _coarse(order, dtype) if is_coarse(dtype) else code


def sort_keys(column: Column, dtype: pa.DataType) -> list[Column]:
    """Return by what a column sorts rows, nulls last: its values, then what tells equal values apart.

    Zeros of both signs are equal: some sort one before the other, and some do not tell them apart at all.
    """
    if not pa.types.is_floating(dtype):
        return [column.asc_nulls_last()]
    sign = functions.atan2(column.cast("double"), functions.lit(-1.0))
    return [(column + functions.lit(0.0)).asc_nulls_last(), sign.asc_nulls_last()]


def first_code(key: Sequence[Column]) -> Column:
    """Return a code below that of all rows of the bucket of a key, and above those of the bucket before."""
    return functions.shiftleft(_bucket(key), COARSE_BITS) - functions.lit(1 << (COARSE_BITS - 1))


def _bucket(key: Sequence[Column]) -> Column:
    """Return the bucket of a key: from -2^12 on and below 2^12, so that no code needs more than 64 bit."""
    return functions.shiftright(functions.xxhash64(*key), COARSE_BITS + 1)


def bucket_of(code: Column) -> Column:
    """Return the bucket of a code."""
    return functions.shiftright(code + functions.lit(1 << (COARSE_BITS - 1)), COARSE_BITS)


def is_coarse(dtype: pa.DataType) -> bool:
    """Whether values of a type have a coarse form, so that codes sort by it, too."""
    types = pa.types
    return bool(
        types.is_integer(dtype) or types.is_floating(dtype) or types.is_timestamp(dtype) or types.is_date32(dtype)
    )


def _coarse(order: Column, dtype: pa.DataType) -> Column:
    """Return a number above -2^49 and below 2^49 that never falls where ``order`` rises; for null the largest."""
    number = _whole_number(order, dtype)
    size = functions.abs(number)
    steps = functions.shiftright(size - functions.lit(_EXACT), 15) + functions.lit(_EXACT)
    far = functions.when(number < 0, -steps).otherwise(steps)
    code = functions.when(size < functions.lit(_EXACT), number).otherwise(far)
    return functions.coalesce(code, functions.lit(_LAST))


def _whole_number(order: Column, dtype: pa.DataType) -> Column:
    """Return a number above -2^63 that never falls where ``order`` rises."""
    if pa.types.is_timestamp(dtype):
        if dtype.tz is not None:
            return functions.unix_micros(order)
        # Seconds of local time, in no time zone: Spark gives microseconds of instants only.
        return functions.unix_timestamp(order)
    if pa.types.is_date32(dtype):
        return functions.unix_date(order).cast("bigint")
    if pa.types.is_floating(dtype):
        finite = functions.nanvl(order.cast("double"), functions.lit(0.0)) * 1024
        low = functions.greatest(finite, functions.lit(-4e18))
        return functions.least(low, functions.lit(4e18)).cast("bigint")
    return functions.greatest(order.cast("bigint"), functions.lit(-_LARGEST))


FIRST = f"{HIDDEN}first"
"""The column of rows of both sides of a join that puts the side first that a row of the other sees: 0, then 1."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of the rows of a window. As text it says what will happen.

    ``why``: the reason for one partition; empty where there are several.
    ``order``: the columns that sort the rows of a key, or all rows.
    ``ties``: the columns that put rows in order that tie in these.
    ``coarse``: whether Spark sorts by codes alone, and tasks do the rest; else Spark sorts by the columns, too.
    ``clock``: the column whose largest value over all rows is read first; None: it is not needed.
    ``prepare``: whether expressions are computed before the rows are moved.
    """

    why: str
    key: tuple[str, ...]
    order: tuple[str, ...]
    ties: tuple[str, ...]
    coarse: bool
    clock: str | None
    prepare: bool
    columns: tuple[str, ...]

    @property
    def by_key(self) -> bool:
        """Whether rows of one key share a partition and partitions run side by side; else there is one partition."""
        return not self.why

    def __str__(self) -> str:
        lines = ["expressions are computed before rows are moved"] if self.prepare else []
        lines += [f"the clock ends at the largest {self.clock} of all rows, which is read first"] if self.clock else []
        where = f"by {', '.join(self.key)}" if self.by_key else f"all rows in one, since {self.why}"
        lines.append(f"partitions: {where}")
        order = ", ".join([*self.key, *self.order])
        lines.append(f"order: {order}" + (f"; ties by {', '.join(self.ties)}" if self.ties else ""))
        return "\n".join(lines)


def layout_of(plan: Plan, arrival: str | None, mark: str | None, has_state: bool = False) -> Layout:
    """Choose the layout of a window.

    ``arrival``: the column of arrival positions, if any. ``mark``: the column of marks, if any. ``has_state``: whether
    windows go on from a state. Raises `ConfigError` where nothing orders the rows, or a column that would decide
    between rows that tie has no order.
    """
    why = _coupling(plan, has_state)
    by_key = not why
    computed = {column.name for column in plan.projection.computed}
    order = tuple(dict.fromkeys([*plan.sort, *([arrival] if arrival else [])]))
    if not order:
        raise ConfigError("rows of a DataFrame have no order of their own", "say order_by or arrival")
    key = plan.key if by_key else ()
    prepare = plan.projection.where is not None or bool(computed & {*key, *order, mark})
    marks = (mark, MARK if plan.reads_result else None) if plan.takes_marks else ()
    extra = (arrival, *marks, FIRST if FIRST in plan.projection.schema.names else None)
    read = plan.columns if prepare else plan.projection.needs(plan.columns)
    columns = tuple(dict.fromkeys([*read, *(name for name in extra if name)]))
    ties = tuple(name for name in columns if name not in {*key, *order})
    ties = tuple(sorted(ties, key=lambda name: name != FIRST))
    types = {name: plan.projection.schema.field(name).type for name in (*order, *ties)}
    ties = tuple(name for name in ties if _is_decisive(name, types[name], arrival))
    coarse = by_key and is_coarse(types[order[0]]) and all(is_sortable(types[name]) for name in ties)
    clock = plan.order.columns[0] if by_key and plan.uses_clock else None
    return Layout(why, key, order, ties, coarse, clock, prepare, columns)


def _is_decisive(name: str, dtype: pa.DataType, arrival: str | None) -> bool:
    """Whether rows that tie can be put in order by a column.

    Raises `ConfigError` where they cannot, and no ``arrival`` decides before it.
    """
    if not _has_map(dtype):
        return True
    if arrival is None:
        what = (
            f"rows that tie are put in order by the columns of the window, and {name!r} is {dtype}, which has no order"
        )
        raise ConfigError(what, "say arrival, a column that tells rows apart")
    return False


def _has_map(dtype: pa.DataType) -> bool:
    if pa.types.is_map(dtype):
        return True
    return pa.types.is_nested(dtype) and any(_has_map(dtype.field(i).type) for i in range(dtype.num_fields))


def _coupling(plan: Plan, has_state: bool) -> str:
    """Return why the keys of a window cannot be apart; empty where they can."""

    reasons = (
        (not plan.key, "there is no key"),
        (plan.takes_marks, "marks end the windows of all keys"),
        (plan.kind.needs.watermark, "there is one watermark for all keys"),
        (plan.kind.needs.eviction is not None, "the eviction of a key depends on the others"),
        (plan.options.max_ahead is not None, "max_ahead looks at the last rows of all keys"),
        (plan.options.empty == "mark", "a tick without a window is one for all keys"),
        (plan.windows is not None and has_state, "the state has the windows of the table once for all keys"),
        (plan.windows is not None and plan.windows.bound.empty == OF_KEYS, "keys of the table may have no rows"),
    )
    return next((why for is_so, why in reasons if is_so), "")


# Columns by their place: what they are called while Spark moves rows, so that users may call them what they like.
#
# PySpark passes no column to tasks whose name has a dot or a backtick, and names of users may be those of the columns
# that are added. Tasks get the columns in their order, and know the names.


def by_place(df: DataFrame, schema: pa.Schema) -> tuple[DataFrame, dict[str, Column]]:
    """Return a DataFrame with its columns called by their places, and the columns by their names in ``schema``."""
    return df.toDF(*place_names(len(schema))), columns_of(schema.names)


def columns_of(names: Sequence[str]) -> dict[str, Column]:
    """Return the columns of a DataFrame that is called by places, by their names."""
    return {name: functions.col(place) for name, place in zip(names, place_names(len(names)), strict=True)}


def select(rows: DataFrame, columns: Mapping[str, Column], names: Sequence[str]) -> DataFrame:
    """Return some columns, called by the places that they then have."""
    return rows.select(
        *(columns[name].alias(place) for name, place in zip(names, place_names(len(names)), strict=True))
    )


def place_names(count: int) -> list[str]:
    """Return what columns are called."""
    return [f"c{place}" for place in range(count)]


def column(name: str) -> Column:
    """Return a column by its whole name, with dots and spaces as they are."""
    return functions.col(f"`{name.replace('`', '``')}`")
