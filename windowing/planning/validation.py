"""Validation of a window and its options against each other and the schema, before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import pyarrow as pa

from ..aggregates.table import Bound
from ..clock.tick_grid import DIGITS, EpochUnit, epoch_unit
from ..columns.arrays import is_measurable
from ..columns.sort_keys import is_sortable
from ..errors import ConfigError, did_you_mean
from ..kinds.lasting import check_ends
from ..kinds.needs import Explain, Option
from ..kinds.registry import kind_of
from ..kinds.tumbling.kind import clock_policies
from ..language.distinct import Distinct
from ..language.operands import operand_column
from ..language.options import Options, sort_key
from ..language.programs import has_duration, uses_previous
from ..language.spec import HIDDEN, Lasting, RowPattern, TableWindows, Tumbling, WindowSpec
from ..language.tokens import Duration, decimal_text, listed
from ..rows.lag_columns import LagColumn
from ..rows.projection import Projection, no_order
from .pane_columns import check_free
from .row_order import Order, OrderBy, check_is_clock, field_advice, instead_of


def check_order_known(
    projection: Projection, spec: WindowSpec, key: Sequence[str], order_by: Sequence[str], options: Options
) -> None:
    """Raise `ConfigError` where a column with ``lag`` is used before rows are in order, or is to be written."""
    late = {column.name: column for column in projection.lags}
    if not late:
        return
    if options.emit != "aggregates" or options.operator is not None:
        shown = next((column for name, column in late.items() if not name.startswith(HIDDEN)), None)
        if shown is not None:
            label = "--operator" if options.operator else f"--emit {options.emit}"
            what = f"{label} shows rows as they are, and {_late_text(shown)} is known of rows in order alone"
            raise ConfigError(what, "use it in aggregates, or leave it out")
    kind = kind_of(spec)
    uses = {
        "--key": key,
        "--order-by": () if isinstance(order_by, str) else order_by,
        "--event-time": (options.event_time,),
        "--ends": (options.ends,),
        "--group-by": options.group_by,
        "--distinct": () if options.distinct is None else options.distinct.columns,
        "--sort-by": [sort_key(text, projection.schema.names).name for text in options.sort_by],
        str(spec): set(kind.needs.attributes).difference(map(operand_column, kind.needs.operands)),
    }
    for label, names in uses.items():
        for name in names:
            if name in late:
                raise no_order(label, _late_text(late[name]))


def check_marks(projection: Projection, name: str | None) -> None:
    """Raise `ConfigError` where the column of marks is one with ``lag``."""
    for column in projection.lags:
        if column.name == name:
            raise no_order("--marks", _late_text(column))


def _late_text(column: LagColumn) -> str:
    return f"{column.label!r}, which uses lag(),"


def lasting(spec: WindowSpec, options: Options, order_by: OrderBy) -> WindowSpec:
    """Return the window over rows that last, where they do. Raises `ConfigError` where they cannot be in it."""
    if options.ends is None or isinstance(spec, Lasting):
        return spec
    if "ends" not in kind_of(spec).needs.options or not isinstance(spec, Tumbling | TableWindows):
        clock = order_by[0] if order_by and not isinstance(order_by, str) else "ts"
        merge = f"split({clock} > max({options.ends}))"
        what = f"--ends is for {listed([*clock_policies(), 'table'])} windows"
        raise ConfigError(what, f"intervals that overlap merge with {merge}")
    if options.operator is not None:
        raise ConfigError("--operator does not go with --ends: it sees rows that enter and leave", "leave one out")
    return Lasting(spec, options.ends)


def check_lasting(spec: WindowSpec, schema: pa.Schema, order: Order, options: Options) -> None:
    """Raise `ConfigError` where rows cannot last until the values of a column, or cannot have columns of windows."""
    check_free(schema, kind_of(spec).needs.pane_columns)
    if options.ends is not None:
        check_ends(schema, order.columns[0], options.ends)


def check_window(spec: WindowSpec, schema: pa.Schema, key: Sequence[str], explain: Explain) -> None:
    """Raise `ConfigError` where the key or an attribute of a window is missing or has the wrong type."""
    needs = kind_of(spec).needs
    if needs.partitioned and not key:
        raise ConfigError("the window is partitioned, but there is no key", "say --key COLUMN")
    if needs.eviction is not None and not key:
        raise ConfigError(f"{needs.eviction} evicts keys, but there is no key", "say --key COLUMN")
    _check_once(key, "the key")
    for name in key:
        _check_sorts(schema, name, "the key", "a key must")
    for name in needs.attributes:
        dtype = field_of(schema, name, str(spec)).type
        if not pa.types.is_null(dtype):  # a column of type null has no value at all, so no row needs the check
            kind_of(spec).check_attribute(name, dtype, explain)
    kind_of(spec).check_types(schema)


def _check_sorts(schema: pa.Schema, name: str, role: str, otherwise: str) -> None:
    dtype = field_of(schema, name, role).type
    if not is_sortable(dtype):
        raise ConfigError(f"column {name!r} is {dtype}, which does not sort", instead_of(schema, name, otherwise))


def check_options(
    spec: WindowSpec, schema: pa.Schema, key: Sequence[str], order: Order, options: Options, calls: int
) -> None:
    """Raise `ConfigError` where options cannot be combined with the window, its key or order, or each other.

    ``calls``: how many aggregates the user requested.
    """
    needs, clock = kind_of(spec).needs, f"{listed([*clock_policies(), 'table'])} windows"
    given: tuple[tuple[str, bool, Option, str], ...] = (
        (f"--empty {options.empty}", options.empty != "skip", "empty", clock),
        (f"--closed {options.closed}", options.closed != "left", "closed", clock),
        ("--origin", bool(options.origin), "origin", "windows on a grid of ticks"),
        ("--partial", options.partial, "partial", "sliding windows"),
        ("--event-time", options.event_time is not None, "event time", "timeInterval windows"),
        ("--lag", bool(options.lag), "event time", "timeInterval windows"),
        ("--min-gap", bool(options.min_gap), "event time", "timeInterval windows"),
        ("--emit-evicted", options.emit_evicted, "emit evicted", "tumbling windows with partition eviction"),
        (f"--emit {options.emit}", options.emit in {"entered", "left"}, "changes", "sliding and batched windows"),
        ("--emit left", options.emit == "left", "left", "windows that rows leave"),
    )
    for option, is_given, needed, windows in given:
        if is_given and needed in needs.unfit:
            raise ConfigError(f"{option} does not go with {needs.unfit[needed]}", "leave one out")
        if is_given and needed not in needs.options:
            raise ConfigError(f"{option} is for {windows}, and this one is {spec}", "leave it out")
    of_table = isinstance(spec.window if isinstance(spec, Lasting) else spec, TableWindows)
    if options.empty == "mark" and of_table:
        raise ConfigError(f"--empty mark is for windows that follow one another, and this one is {spec}", "say row")
    if options.closed == "right" and needs.eviction is not None:
        raise ConfigError(f"--closed right does not go with {needs.eviction}", "leave one of them out")
    _check_once(options.group_by, "--group-by")
    for name in options.group_by:
        if name in key:
            raise ConfigError(f"column {name!r} is in the key, so each pane is one group of it", "group by others")
        _check_sorts(schema, name, "--group-by", "group by another")
    for text in options.sort_by:
        _check_sorts(schema, sort_key(text, schema.names).name, "--sort-by", "sort by another")
    _check_distinct(options.distinct, schema, order)
    _check_max_ahead(options.max_ahead, spec, schema, order)
    _check_rows(options, calls)
    _check_matches(spec, options)
    if needs.watermark:
        if order.columns and order.columns != (options.event_time,):
            raise ConfigError(
                f"event-time panes take rows as they arrived, or ordered by {options.event_time} alone",
                f"leave out --order-by, or say --order-by {options.event_time}",
            )
        if order.columns and options.min_gap:
            raise ConfigError("--min-gap is for rows in arrival order", "leave out --order-by or --min-gap")


def _check_matches(spec: WindowSpec, options: Options) -> None:
    if not isinstance(spec, RowPattern):
        if options.max_open_rows != Options().max_open_rows:
            raise ConfigError(
                f"--max-open-rows is for match and funnel windows, and this one is {spec}", "leave it out"
            )
    elif options.operator is not None and spec.is_overlapping:
        what = "--operator does not go with overlapping: a row would enter and leave more than once"
        raise ConfigError(what, "leave one out, or run it with change(window) over a result of --emit rows")


def _check_distinct(distinct: Distinct | None, schema: pa.Schema, order: Order) -> None:
    if distinct is None:
        return
    for name in distinct.columns:
        _check_sorts(schema, name, "--distinct", "name another")
    if distinct.within is None:
        return
    if not order.columns:
        raise ConfigError("--distinct: within needs a clock", "say --order-by, or count N")
    check_is_clock(schema, order.columns[0], "order by a time or a number")


def _check_max_ahead(ahead: Fraction | None, spec: WindowSpec, schema: pa.Schema, order: Order) -> None:
    has_clock = ahead is None or kind_of(spec).needs.watermark
    if ahead is not None and order.columns:
        dtype = schema.field(order.columns[0]).type
        has_clock = pa.types.is_null(dtype) or (is_measurable(dtype) and not pa.types.is_time(dtype))
    if not has_clock:
        raise ConfigError("--max-ahead needs rows with a time or number to order by", "say --order-by COLUMN")


def check_over_time(spec: WindowSpec, aggregates: Sequence[Bound], options: Options) -> None:
    """Raise `ConfigError` for an aggregate that goes on from window to window of a key, where windows do not."""
    for bound in aggregates:
        name = "locf" if bound.call.fills else bound.call.function
        if bound.carries and not kind_of(spec).needs.go_on:
            what = f"{name} needs rows in order of time and windows that do not overlap in their rows"
            raise ConfigError(f"{what}, and this one is {spec}", "use a tumbling window, such as time(60)")
        if bound.carries and options.group_by:
            what = f"{name} goes on from window to window of a key, and --group-by divides windows"
            raise ConfigError(what, f"make the groups keys of their own: --key {','.join(options.group_by)}")


def field_of(schema: pa.Schema, name: str, role: str) -> pa.Field:
    """Return a column by name. Raises `ConfigError` where there is none; ``role``: what the column is for."""
    if name not in schema.names:
        known = [each for each in schema.names if not each.startswith(HIDDEN)]
        words = name.split()
        are_several = len(words) > 1 and all(word in known for word in words)
        do = f"write commas between columns: {','.join(words)}" if are_several else did_you_mean(name, known)
        raise ConfigError(f"there is no column {name!r} for {role}", field_advice(schema, name) or do)
    return schema.field(name)


def _check_once(names: Sequence[str], what: str) -> None:
    if len(set(names)) != len(names):
        raise ConfigError(f"a column is twice in {what} {', '.join(names)}", "name it once")


def _check_rows(options: Options, calls: int) -> None:
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


# Times in a window over columns of numbers, which say no unit: ``gap(ts, 1m)`` where ``ts`` counts milliseconds.


_SAMPLED = 1000


class Epoch(NamedTuple):
    """What the values of a column of numbers look like.

    ``unit``: the unit in which they count time since 1970; None where they look like another form of times.
    ``advice``: how to read them as times.
    """

    unit: EpochUnit | None
    advice: str


Look = Callable[[str], Epoch | None]
"""Looks at some values of a column; None where they do not look like times, or there is nothing to look at."""


def no_look(_: str) -> Epoch | None:
    """Look at nothing."""
    return None


def look_at(rows: pa.Table) -> Look:
    """Return how to look at the columns of a table in memory."""

    def look(column: str) -> Epoch | None:
        if column not in rows.column_names:
            return None
        known = rows[column].drop_null()
        places = pa.array(range(0, len(known), max(1, len(known) // _SAMPLED)), pa.int64())
        sample = known.take(places).cast(pa.float64(), safe=False)
        unit = epoch_unit(sample.to_pylist(), len(sample))
        if unit is None:
            return None
        return Epoch(unit, f'column {column!r} counts {unit} since 1970: cast it to pa.timestamp("{unit}")')

    return look


def check_units(spec: WindowSpec, schema: pa.Schema, clock: str | None, options: Options, look: Look) -> None:
    """Raise `ConfigError` where a time of a window, written with a unit, meets numbers that are not seconds.

    Nothing says that an integer counts seconds, so no time goes with it. Floats and decimals count seconds, unless
    their values are instants in a finer unit. ``clock``: the column of the clock, None where there is none.
    """
    for written, seconds, column in _times(spec, schema, clock, options):
        dtype = schema.field(column).type
        if not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)):
            continue
        epoch = look(column)
        # how far ahead a row may be says no unit of windows: seconds, unless values look like another unit
        is_strict = pa.types.is_integer(dtype) and (seconds is None or seconds is not options.max_ahead)
        if is_strict or (epoch is not None and epoch.unit not in (None, "s")):
            raise _error(written, seconds, column, dtype, epoch)


def _error(written: str, seconds: Fraction | None, column: str, dtype: pa.DataType, epoch: Epoch | None) -> ConfigError:
    if pa.types.is_integer(dtype):
        what = f"{written} is a time, and column {column!r} is {dtype}, numbers without a unit"
    else:
        what = f"{written} is a time, and column {column!r} is {dtype}, whose numbers are no seconds"
    if epoch is None:
        advice = f'read it as a time, as with --schema "{column}:timestamp(unix_ms)" (or unix, unix_us, unix_ns)'
    else:
        advice = epoch.advice
    if seconds is None:
        return ConfigError(what, f"{advice}; or make it a plain number, in the unit of the column")
    plain, goes_on = decimal_text(seconds), "a state of earlier runs goes on"
    if epoch is None or epoch.unit in (None, "s"):
        return ConfigError(what, f"{advice}; or say it without a unit: {plain}, with which {goes_on}")
    wanted = f"{decimal_text(seconds * 10 ** DIGITS[epoch.unit])} for {epoch.unit}"
    return ConfigError(what, f"{advice}; or say it without a unit: {wanted}; {goes_on} with {plain}")


def _times(
    spec: WindowSpec, schema: pa.Schema, clock: str | None, options: Options
) -> Iterator[tuple[str, Fraction | None, str]]:
    """Yield each time as it was written, its seconds (None: rows say them), and the column that it is compared with."""
    given = {"--origin": options.origin, "--lag": options.lag, "--min-gap": options.min_gap}
    given |= {} if options.max_ahead is None else {"--max-ahead": options.max_ahead}
    for option, amount in given.items():
        if isinstance(amount, Duration) and amount and clock is not None:
            yield f"{option} {amount.written}", amount, clock
    within = None if options.distinct is None else options.distinct.within
    if isinstance(within, Duration) and within and clock is not None:
        yield f"--distinct within {within.written}", within, clock
    for named, amount in spec.distances:
        column = clock if named is None else named
        if column is None:
            continue
        if isinstance(amount, Duration) and amount:
            yield amount.written, amount, column
        elif not isinstance(amount, Fraction):
            if not isinstance(amount, str) and uses_previous(amount):
                is_duration = has_duration(amount.root)
            else:
                is_duration = pa.types.is_duration(schema.field(operand_column(amount)).type)
            if is_duration:
                yield str(amount), None, column
