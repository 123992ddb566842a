"""The arguments of `wincli.aggregate` and its siblings, in the forms that users have: tables, names, aggregates."""

from __future__ import annotations

import datetime as dt
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar

import pyarrow as pa

from .aggregates.inputs import plain, plain_type
from .columns.arrays import scale_of
from .enrichment.window_table import GivenTable, window_table
from .errors import ConfigError, SpecError
from .expressions.syntax import parse_expression
from .language.distinct import parse_distinct
from .language.enrichment import parse_windows
from .language.options import WINDOW_OPTIONS, AtEnd, Closed, Emit, Empty, Options
from .language.parser import parse_aggregate, parse_let, parse_window
from .language.spec import AggregateCall, AggregateExpression, default_name
from .language.tokens import column_text
from .planning.plan import Plan, make_plan
from .planning.result_schema import stream_of_columns
from .planning.validation import look_at, no_look
from .support.option import Option, with_parameters


class Stream(Protocol):
    """A table with Arrow's C stream interface, as pandas, Polars and DuckDB have it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Stream
Names: TypeAlias = str | Sequence[str]
Calls: TypeAlias = str | Sequence[str] | Mapping[str, str]
Seconds: TypeAlias = int | float | str | Fraction
Clock: TypeAlias = int | float | Fraction | dt.datetime


class DrawnArguments(TypedDict, total=False):
    """The arguments of a window that `draw` takes, and all its siblings: ``**options: Unpack[DrawnArguments]``."""

    key: Names
    aggregates: Calls | None
    at_end: AtEnd | None
    empty: Empty
    closed: Closed
    origin: Seconds | None
    ends: str | None
    clock: Clock | None
    since: Clock | None
    let: Calls
    where: str | None
    distinct: str | None
    having: str | None
    partial: bool
    event_time: str | None
    lag: Seconds
    min_gap: Seconds
    max_ahead: Seconds | None
    emit_evicted: bool
    windows: Mapping[str, Rows] | None


class WindowArguments(DrawnArguments, total=False):
    """The arguments of a window that `aggregate`, `aggregate_stream` and `windows` take: a drawing has all rows."""

    group_by: Names
    emit: Emit
    sort_by: Names
    operator: str | None
    plain: bool


_BESIDE_OPTIONS: dict[str, tuple[Any, str]] = {
    "key": ((), "The names of the key columns; a text is one name."),
    "aggregates": (None, "Texts, or a mapping of column names to texts; count() by default."),
    "clock": (None, "The time of the clock after the last row: seconds, or an instant."),
    "since": (None, "The time of the clock before the first row: seconds, or an instant."),
    "windows": (None, "Tables of windows, by the text of --windows without a path: NAME [on KEY] from START to END."),
    "plain": (False, "Leave out mark-only rows and stream columns."),
}
"""The default and the help of the arguments that no option of the command line declares."""
F = TypeVar("F", bound=Callable[..., Any])


def takes(arguments: type) -> Callable[[F], F]:
    """Show arguments that ``**options`` takes in the signature and in the help of a function, with their defaults.

    ``arguments``: the `TypedDict` of ``**options``. An option has the help and the default of its declaration, but for
    ``at_end``, whose default a state decides.
    """
    known = {each.attribute: (getattr(Options(), each.attribute), each.key_help) for each in WINDOW_OPTIONS}
    known |= {"at_end": (None, known["at_end"][1])} | _BESIDE_OPTIONS

    def show(function: F) -> F:
        shown, lines = [], ["Arguments of all ways to windows; times and durations are in seconds:", ""]
        for name, hint in arguments.__annotations__.items():
            default, text = known[name]
            default = int(default) if isinstance(default, Fraction) else default
            kind = inspect.Parameter.KEYWORD_ONLY
            shown.append(inspect.Parameter(name, kind, default=default, annotation=hint.__forward_arg__))
            lines.append(textwrap.fill(f"``{name}``: {text}", 112, subsequent_indent="    "))
        text = textwrap.indent("\n".join(lines), "    ")
        function.__doc__ = f"{function.__doc__ or ''}\n{text}\n"
        return with_parameters(function, shown)

    return show


def refuse_others(function: Callable[..., Any], options: Mapping[str, object]) -> None:
    """Raise `TypeError`, as Python does, for an argument that is not in the signature of a function."""
    known = inspect.signature(function).parameters
    for name in options:
        if name not in known:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")


def as_table(rows: Rows) -> pa.Table:
    """Return rows as a table of plain types. Raises `ConfigError` for anything that is no table."""
    table = rows if isinstance(rows, pa.Table) else as_reader(rows).read_all()
    fields = [pa.field(field.name, plain_type(field.type), field.nullable) for field in table.schema]
    columns = [plain_column(column, field.type) for column, field in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def plain_column(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    """Return a column as one of a plain type."""
    if column.type == dtype:
        return column
    return pa.chunked_array([plain(chunk).cast(dtype) for chunk in column.chunks], dtype)


def as_reader(rows: Rows) -> pa.RecordBatchReader:
    """Return rows as a reader of batches, of the types that they have. Raises as `as_table` does."""
    return rows if isinstance(rows, pa.RecordBatchReader) else _imported(rows)


def as_names(names: Names, option: str) -> tuple[str, ...]:
    """Return names as a tuple; a text is one name. Raises `ConfigError` for anything but a text or a list of texts."""
    found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Sequence) else (names,)
    for name in found:
        if not isinstance(name, str):
            raise ConfigError(f"{option}: {name!r} is no name", "give a text, or a list of texts")
    return found


def as_calls(aggregates: Calls) -> list[AggregateCall | AggregateExpression]:
    """Parse aggregates: one text, several, or a mapping of column names to texts. Raises `SpecError`, `ConfigError`."""
    if not isinstance(aggregates, Mapping):
        return [parse_aggregate(text) for text in as_names(aggregates, "aggregates")]
    texts = as_names(list(aggregates.values()), "aggregates")
    return [_named(name, text) for name, text in zip(as_names(list(aggregates), "aggregates"), texts, strict=True)]


def as_options(given: Mapping[str, Any]) -> Options:
    """Return the options among the arguments of a call, by their names. Raises `ConfigError` for what is no name."""
    values = {each.attribute: _value(each, given[each.attribute]) for each in WINDOW_OPTIONS if each.attribute in given}
    at_end = values.get("at_end") or ("flush" if given.get("state") is None else "hold")
    return Options(**{**values, "at_end": at_end}, plain=given.get("plain", False))


def _value(declared: Option, given: Any) -> Any:
    """Return an argument as a window takes it: names as a tuple, durations and times as exact seconds."""
    if declared.kind == "names":
        return as_names(given, declared.name)
    if declared.kind == "origin":
        return Fraction(given or 0)
    if declared.kind == "lets":
        if isinstance(given, Mapping):
            return tuple((name, parse_expression(text)) for name, text in given.items())
        return tuple(parse_let(text) for text in as_names(given, "let"))
    if declared.kind in ("expression", "distinct"):
        read: Callable[[str], Any] = parse_expression if declared.kind == "expression" else parse_distinct
        return None if given is None else read(given)
    return Fraction(given) if declared.kind == "duration" and given is not None else given


def _named(name: str, text: str) -> AggregateCall | AggregateExpression:
    try:
        call = parse_aggregate(text)
    except SpecError:
        return parse_aggregate(f"{column_text(name)}={text}")  # arithmetic needs a name
    if isinstance(call, AggregateExpression):
        return replace(call, name=name)
    own = f"{'locf_' if call.fills else ''}{default_name(call.function, call.arguments)}"
    if call.name not in {name, own}:
        raise ConfigError(f"aggregates: {name!r} is {text!r}, which says another name", f"leave {call.name}= out")
    return replace(call, name=name)


def _imported(rows: Any) -> pa.RecordBatchReader:
    try:
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(rows)
        if hasattr(rows, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(rows)]).to_reader()
    except pa.ArrowInvalid as error:
        raise ConfigError(f"{_kind(rows)} is no table ({error})", "give a table with named columns") from None
    do = "collect() it" if hasattr(rows, "collect") else "give a table of Arrow, pandas, Polars or DuckDB"
    raise ConfigError(f"{_kind(rows)} is no table, nor anything with __arrow_c_stream__", do)


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def plan_of_call(schema: pa.Schema, given: Mapping[str, Any], rows: pa.Table | None = None) -> Plan:
    """Return the plan of a call over columns of ``schema``. Raises as the parser and `make_plan` do.

    ``given``: the arguments of the call by their names: ``window``, ``order_by``, those of `WindowArguments` that were
        given, and ``state``, if there is one.
    ``rows``: some or all rows, where they are there already; only messages and checks of units look at them.
    A table with the columns of a result is read as a stream, in the order in which its panes came out.
    """
    window, order, aggregates = given["window"], given["order_by"], given.get("aggregates")
    spec = parse_window(window) if isinstance(window, str) else window
    options = as_options(given)
    calls = None if aggregates is None else as_calls(aggregates)
    if order is not None and order != "arrival":
        order = as_names(order, "order_by")
    stream, look = stream_of_columns(schema), no_look if rows is None else look_at(rows)
    windows = given.get("windows") or {}
    if not isinstance(windows, Mapping):
        do = 'write windows={"NAME [on KEY] from START to END": table}'
        raise ConfigError(f"windows: {_kind(windows)} is no mapping of texts to tables", do)
    tables = {parse_windows(text, False): as_table(each) for text, each in windows.items()}
    opened = [GivenTable(request, each.schema) for request, each in tables.items()]
    key = as_names(given.get("key", ()), "key")
    plan = make_plan(spec, schema, key, order, calls, options, stream, look=look, tables=opened)
    for request, each in tables.items():
        if plan.windows is None or plan.windows.bound.request != request:
            do = f"give the window table({request.name}), or leave it out"
            raise ConfigError(f"windows: {request.name!r} is used by no window", do)
        plan = replace(plan, windows=window_table(plan.windows.bound, each))
    return plan


def clock_measure(plan: Plan, clock: Clock | None) -> int | float | None:
    """Return an instant in measures of the clock column; None where there is no such column."""
    if clock is None or plan.clock is None:
        return None
    if isinstance(clock, dt.datetime):
        since = clock.replace(tzinfo=clock.tzinfo or dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        clock = Fraction(since // dt.timedelta(microseconds=1), 10**6)
    scale = scale_of(plan.projection.schema.field(plan.clock).type)
    if scale.per_second is None:
        return float(clock)
    ticks = scale.floor(Fraction(clock))
    if not -(2**63) <= ticks < 2**63:
        raise ConfigError(f"the clock cannot stand at {clock}: column {plan.clock!r} has 64 bit", "give seconds")
    return ticks
