"""Which columns put the rows in order, and why (design section 1; semantics section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from windowing.columns import is_instant, is_measurable, is_sortable
from windowing.errors import ConfigError
from windowing.names import did_you_mean
from windowing.spec import WindowSpec, attributes, needs_clock

OrderBy = Sequence[str] | Literal["arrival"] | None


@dataclass(frozen=True, slots=True)
class Order:
    """The order columns, most significant first; none means arrival order. ``why`` says what chose them."""

    columns: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return ", ".join(self.columns) if self.columns else "arrival"


def choose_order(spec: WindowSpec, schema: pa.Schema, order_by: OrderBy) -> Order:
    """Choose the order of a window over columns of ``schema``.

    ``order_by`` decides where given. Else the attribute the window names, if it is a timestamp or a date; else the
    only such column, where the window needs a clock; else arrival. Raises `ConfigError` for columns that are not
    there or do not sort, and for a clock that nothing tells.
    """
    order = _given(schema, order_by) if order_by is not None else _default(spec, schema)
    if needs_clock(spec):
        _check_clock(spec, schema, order)
    return order


def _given(schema: pa.Schema, order_by: Sequence[str] | str) -> Order:
    if order_by == "arrival":
        return Order((), "asked for")
    if isinstance(order_by, str):
        order_by = (order_by,)
    for name in order_by:
        if name not in schema.names:
            raise ConfigError(f"there is no column {name!r} to order by", did_you_mean(name, schema.names))
        if not is_sortable(schema.field(name).type):
            raise ConfigError(f"column {name!r} is {schema.field(name).type}, which has no order", "order by another")
    return Order(tuple(order_by), "asked for")


def _default(spec: WindowSpec, schema: pa.Schema) -> Order:
    for name in attributes(spec):
        if name in schema.names and is_instant(schema.field(name).type):
            return Order((name,), "the window's attribute is a time")
    if not needs_clock(spec):
        return Order((), "no time to order by is named by the window")
    instants = [field.name for field in schema if is_instant(field.type) and not field.name.startswith("_")]
    if len(instants) == 1:
        return Order((instants[0],), "the only time column, and the window needs a clock")
    found = f"the input has {', '.join(instants)}" if instants else "the input has no timestamp or date column"
    raise ConfigError(f"the window {spec} needs a clock, and {found}", "say --order-by COLUMN")


def _check_clock(spec: WindowSpec, schema: pa.Schema, order: Order) -> None:
    if not order.columns:
        raise ConfigError(f"the window {spec} needs a clock, and arrival order has none", "say --order-by COLUMN")
    dtype = schema.field(order.columns[0]).type
    time_of_day = pa.types.is_time(dtype)
    if time_of_day or not (is_measurable(dtype) or pa.types.is_null(dtype)):
        raise ConfigError(f"column {order.columns[0]!r} is {dtype}, which is no clock", "order by a time or a number")
