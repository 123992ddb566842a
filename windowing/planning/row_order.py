"""Choosing the columns that order the rows, with the reason (semantics section 1)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from ..columns.arrays import is_instant, is_measurable
from ..columns.sort_keys import is_sortable
from ..errors import ClockError, ConfigError, did_you_mean
from ..kinds.registry import kind_of
from ..language.spec import WindowSpec

_STAMP = re.compile(r"_(at|tie)(_\d+)?")  # of a result: when its panes came out
OrderBy = Sequence[str] | Literal["arrival"] | None


@dataclass(frozen=True, slots=True)
class Order:
    """The order of the rows.

    ``columns``: the order columns, most significant first; none means arrival order.
    ``why``: the reason for this choice, for notes and manifests.
    """

    columns: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return ", ".join(self.columns) if self.columns else "arrival"


def time_columns(
    schema: pa.Schema, inputs: pa.Schema, key: Sequence[str], of_folders: Collection[str] = ()
) -> list[str]:
    """Return the columns of ``schema`` that may be a clock without being named: timestamps and dates.

    ``inputs``: the columns of the input alone. Where none of them has a type, as in a CSV file without rows, no column
    has a value, and the first that is not in the key stands for the time. Where one has a type, the time may be there
    in another form, so nothing stands for it. ``of_folders``: columns whose values are in names of folders, such as
    ``dt=2026-11-01``: a date there says which unit a file is of, so it counts only where no other column is a time.
    """
    found = _instants(schema)
    found = [name for name in found if name not in of_folders] or found
    if found or not all(pa.types.is_null(field.type) for field in inputs):
        return found
    return [name for name in inputs.names if name not in key][:1]


def choose_order(spec: WindowSpec, schema: pa.Schema, order_by: OrderBy, times: Sequence[str]) -> Order:
    """Choose the order of a window over columns of ``schema``.

    ``times``: its `time_columns`. ``order_by`` decides where it is given. Otherwise the order column is the attribute
    of the window, if it is a timestamp or a date; else the only one of ``times``, where the window needs a clock; else
    there is none. Raises `ConfigError` for columns that are missing or cannot be sorted, and where the choice of the
    clock is ambiguous.
    """
    order = _explicit_order(schema, order_by) if order_by is not None else _default(spec, schema, times)
    if kind_of(spec).needs.clock:
        if not order.columns:
            raise ConfigError(f"the window {spec} needs a clock, and arrival order has none", "say --order-by COLUMN")
        check_is_clock(schema, order.columns[0], "order by a time or a number")
    return order


def choose_event_time(spec: WindowSpec, schema: pa.Schema, name: str | None, times: Sequence[str]) -> str:
    """Choose the column of event time: ``name`` if given, else the only one of ``times``, the `time_columns`.

    Raises `ConfigError` where it is missing or is no clock, and where the choice is ambiguous.
    """
    if name is None:
        if len(times) != 1:
            raise _no_clock(spec, "an event time", schema, times, "--event-time")
        return times[0]
    if name not in schema.names:
        raise ConfigError(f"there is no column {name!r} for --event-time", did_you_mean(name, schema.names))
    check_is_clock(schema, name, "say --event-time with a time or a number")
    return name


def instead_of(schema: pa.Schema, name: str, otherwise: str) -> str:
    """Return the advice where a column that has no order is named: of a struct its fields; ``otherwise``: of others."""
    kind = schema.field(name).type
    fields = [kind.field(at) for at in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    named = [field.name for field in fields if is_sortable(field.type)]
    return _field_advice(name, named) if named else otherwise


def field_advice(schema: pa.Schema, name: str) -> str | None:
    """Return the advice where a name that is no column leads to a field of a struct, such as ``u.id``; else None."""
    of, _, field = name.partition(".")
    is_struct = of in schema.names and pa.types.is_struct(schema.field(of).type)
    return _field_advice(of, [field]) if is_struct and schema.field(of).type.get_field_index(field) >= 0 else None


def _field_advice(name: str, fields: Sequence[str]) -> str:
    each = f"{name}.{fields[0]}" if len(fields) == 1 else f"one of its fields, {name}.{f', {name}.'.join(fields[:5])}"
    return f"make {each} a column: --let {name}_{fields[0]}={name}.{fields[0]}, and name {name}_{fields[0]}"


def _explicit_order(schema: pa.Schema, order_by: Sequence[str] | str) -> Order:
    if order_by == "arrival":
        return Order((), "asked for")
    if isinstance(order_by, str):
        order_by = (order_by,)
    for name in order_by:
        if name not in schema.names:
            do = field_advice(schema, name) or did_you_mean(name, schema.names)
            raise ConfigError(f"there is no column {name!r} to order by", do)
        if not is_sortable(schema.field(name).type):
            do = instead_of(schema, name, "order by another")
            raise ConfigError(f"column {name!r} is {schema.field(name).type}, which has no order", do)
    return Order(tuple(order_by), "asked for")


def _default(spec: WindowSpec, schema: pa.Schema, times: Sequence[str]) -> Order:
    for name in kind_of(spec).needs.attributes:
        if name in schema.names and is_instant(schema.field(name).type) and name != kind_of(spec).needs.ends:
            return Order((name,), "the window's attribute is a time")
    if kind_of(spec).needs.watermark:
        return Order((), "event-time panes take rows as they arrived")
    if not kind_of(spec).needs.clock:
        return Order((), "no time to order by is named by the window")
    if len(times) != 1:
        raise _no_clock(spec, "a clock", schema, times, "--order-by")
    others = ", ".join(name for name in _instants(schema) if name not in (*times, kind_of(spec).needs.ends))
    beside = f" beside {others} of the folders" if others else ""
    why = f"the only time column{beside}, and the window needs a clock"
    dtype = schema.field(times[0]).type
    if pa.types.is_date(dtype):  # another column may hold the time of day
        why += "; it has no time of day, so each row stands at its midnight"
    if pa.types.is_null(dtype):
        why = "the window needs a clock, and no column has a value"
    return Order((times[0],), why)


def _instants(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if is_instant(field.type) and not _STAMP.fullmatch(field.name)]


def _no_clock(spec: WindowSpec, what: str, schema: pa.Schema, times: Sequence[str], option: str) -> ConfigError:
    """Return the error; beside dates its advice names the only timestamp. ``times``: what may be chosen."""
    if not times:
        text = f"the window {spec} needs {what}, and the input has no timestamp or date column"
        return ClockError(text, f"say {option} COLUMN")
    dates = [name for name in times if pa.types.is_date(schema.field(name).type)]
    stamps = [name for name in times if name not in dates]
    if len(stamps) == 1 and dates:
        found = f"the input has {stamps[0]} and the {'date' if len(dates) == 1 else 'dates'} {', '.join(dates)}"
        return ConfigError(f"the window {spec} needs {what}, and {found}", f"say {option} {stamps[0]}")
    return ConfigError(f"the window {spec} needs {what}, and the input has {', '.join(times)}", f"say {option} COLUMN")


def check_is_clock(schema: pa.Schema, name: str, do: str) -> None:
    """Raise `ClockError` where a column has no values that can be read in seconds."""
    dtype = schema.field(name).type
    if pa.types.is_time(dtype) or not (is_measurable(dtype) or pa.types.is_null(dtype)):
        raise ClockError(f"column {name!r} is {dtype}, which is no clock", do, name)
