"""Validation of a window and its options against each other and the schema, before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ..columns.numeric import is_measurable
from ..columns.sort_keys import is_sortable
from ..errors import ClockError, ConfigError
from ..language.options import Options, sort_key
from ..language.spec import (
    Batched,
    Calendar,
    Delta,
    Gap,
    Policy,
    Punct,
    Sliding,
    Time,
    TimeInterval,
    Tumbling,
    WindowSpec,
    attributes,
)
from ..support.suggest import did_you_mean
from .row_order import Order

Explain = Callable[[str], str | None]


def policies(spec: WindowSpec) -> tuple[Policy, ...]:
    """Return the policies of a tumbling or sliding window, in the order of its text; none for other kinds."""
    match spec:
        case Tumbling(policy):
            return (policy,)
        case Sliding(evict, trigger):
            return evict, trigger
        case _:
            return ()


def check_amount(spec: WindowSpec) -> tuple[str, ...]:
    """Return the attributes that a window compares by an amount, without repeats."""
    names = [policy.attribute for policy in policies(spec) if isinstance(policy, Delta | Gap)]
    return tuple(dict.fromkeys(names))


def check_window(spec: WindowSpec, schema: pa.Schema, key: Sequence[str], explain: Explain) -> None:
    """Raise `ConfigError` where the key or an attribute of a window is missing or has the wrong type."""
    _check_key(spec, schema, key)
    for name in attributes(spec):
        dtype = field_of(schema, name, str(spec)).type
        if not pa.types.is_null(dtype):  # a column of type null has no value at all, so no row needs the check
            _check_attribute(spec, name, dtype, explain)


def check_options(
    spec: WindowSpec, schema: pa.Schema, key: Sequence[str], order: Order, options: Options, calls: int
) -> None:
    """Raise `ConfigError` where options cannot be combined with the window, its key or order, or each other.

    ``calls``: how many aggregates the user requested.
    """
    for option, fits, windows in _fitting(spec, options):
        if not fits:
            raise ConfigError(f"{option} is for {windows}, and this one is {spec}", "leave it out")
    if options.operator and isinstance(spec, Tumbling | Sliding) and spec.eviction is not None:
        raise ConfigError(f"--operator does not go with {spec.eviction}", "leave one of them out")
    _check_groups(schema, key, options)
    _check_sort(schema, options)
    _check_rows(options, calls)
    if isinstance(spec, TimeInterval):
        _check_event_order(order, options)


def field_of(schema: pa.Schema, name: str, role: str) -> pa.Field:
    """Return a column by name. Raises `ConfigError` where there is none; ``role``: what the column is for."""
    if name not in schema.names:
        raise ConfigError(f"there is no column {name!r} for {role}", did_you_mean(name, schema.names))
    return schema.field(name)


def _fitting(spec: WindowSpec, options: Options) -> Iterator[tuple[str, bool, str]]:
    """Yield each given option that only some windows take: its text, whether it fits, and the windows it is for."""
    timed = isinstance(spec, Tumbling) and isinstance(spec.policy, Time | Calendar)
    interval, sliding = isinstance(spec, TimeInterval), isinstance(spec, Sliding)
    evicting = isinstance(spec, Tumbling) and spec.eviction is not None
    if options.empty != "skip":
        yield f"--empty {options.empty}", timed, "time and calendar windows"
    if options.origin:
        yield "--origin", _has_ticks(spec), "windows on a grid of ticks"
    if options.partial:
        yield "--partial", sliding, "sliding windows"
    if options.event_time is not None:
        yield "--event-time", interval, "timeInterval windows"
    if options.lag:
        yield "--lag", interval, "timeInterval windows"
    if options.min_gap:
        yield "--min-gap", interval, "timeInterval windows"
    if options.emit_evicted:
        yield "--emit-evicted", evicting, "tumbling windows with partition eviction"
    if options.emit in {"entered", "left"}:
        yield f"--emit {options.emit}", sliding or isinstance(spec, Batched), "sliding and batched windows"
    if options.emit == "left":
        yield "--emit left", not (isinstance(spec, Batched) and spec.retain_all), "windows that rows leave"


def _has_ticks(spec: WindowSpec) -> bool:
    """Return whether a window uses ticks that ``--origin`` moves."""
    match spec:
        case Tumbling(Time()) | Sliding(_, Time()):
            return True
        case Batched(within=within, every=every):
            return within is not None and every is not None
    return False


def _check_key(spec: WindowSpec, schema: pa.Schema, key: Sequence[str]) -> None:
    if not isinstance(spec, Batched) and spec.partitioned and not key:
        raise ConfigError("the window is partitioned, but there is no key", "say --key COLUMN")
    if isinstance(spec, Tumbling | Sliding) and spec.eviction is not None and not key:
        raise ConfigError(f"{spec.eviction} evicts keys, but there is no key", "say --key COLUMN")
    _check_once(key, "the key")
    for name in key:
        dtype = field_of(schema, name, "the key").type
        if not is_sortable(dtype):
            raise ConfigError(f"column {name!r} is {dtype}, which does not sort", "a key must")


def _check_once(names: Sequence[str], what: str) -> None:
    if len(set(names)) != len(names):
        raise ConfigError(f"a column is twice in {what} {', '.join(names)}", "name it once")


def _check_attribute(spec: WindowSpec, name: str, dtype: pa.DataType, explain: Explain) -> None:
    if isinstance(spec, Batched) and not is_sortable(dtype):
        raise ConfigError(f"column {name!r} is {dtype}, whose values cannot be compared", "name another column")
    for policy in policies(spec):
        if isinstance(policy, Punct) and policy.column == name and not pa.types.is_boolean(dtype):
            raise ConfigError(f"punct({name}) needs a boolean column, and {name!r} is {dtype}", "use another column")
        if isinstance(policy, Delta | Gap) and policy.attribute == name and not is_measurable(dtype):
            because = explain(name)
            raise ClockError(
                f"{policy} needs a number, a timestamp or a date, and column {name!r} is {dtype}"
                + (f": {because}" if because else ""),
                f'with --schema "{name}:timestamp" (or int64, float64) such rows are rejected'
                if because
                else "name another column, or cast it",
                name,
            )


def _check_groups(schema: pa.Schema, key: Sequence[str], options: Options) -> None:
    _check_once(options.group_by, "--group-by")
    for name in options.group_by:
        if name in key:
            raise ConfigError(f"column {name!r} is in the key, so each pane is one group of it", "group by others")
        dtype = field_of(schema, name, "--group-by").type
        if not is_sortable(dtype):
            raise ConfigError(f"column {name!r} is {dtype}, which does not sort", "group by another")


def _check_sort(schema: pa.Schema, options: Options) -> None:
    for text in options.sort_by:
        field = field_of(schema, sort_key(text, schema.names).name, "--sort-by")
        if not is_sortable(field.type):
            raise ConfigError(f"column {field.name!r} is {field.type}, which does not sort", "sort by another")


def _check_rows(options: Options, calls: int) -> None:
    """Raise `ConfigError` for aggregates or groups where rows are written unchanged."""
    shown = "--operator" if options.operator else f"--emit {options.emit}"
    if options.operator and options.emit != "aggregates":
        raise ConfigError(
            f"--operator says itself what comes out, so --emit {options.emit} has no meaning", "leave one out"
        )
    if options.operator or options.emit != "aggregates":
        if calls:
            raise ConfigError(f"{shown} writes rows, so --agg has no meaning", "leave one of them out")
        if options.group_by:
            do = "leave one of them out" if options.operator else "sort them with --sort-by"
            raise ConfigError(f"{shown} writes rows, so --group-by has no meaning", do)
    if options.sort_by and (options.operator or options.emit == "aggregates"):
        do = "leave it out" if options.operator else "say --emit rows, or leave it out"
        raise ConfigError("--sort-by sorts the rows of a pane", do)


def _check_event_order(order: Order, options: Options) -> None:
    if order.columns and order.columns != (options.event_time,):
        raise ConfigError(
            f"event-time panes take rows as they arrived, or ordered by {options.event_time} alone",
            f"leave out --order-by, or say --order-by {options.event_time}",
        )
    if order.columns and options.min_gap:
        raise ConfigError("--min-gap is for rows in arrival order", "leave out --order-by or --min-gap")
