"""The arguments of `wincli.aggregate` and its siblings, in the forms that users have: tables, names, aggregates."""

from __future__ import annotations

import datetime as dt
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import index
from typing import Any, Final, Protocol, TypeAlias, TypedDict, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from .aggregates.inputs import plain, plain_type
from .columns.arrays import scale_of
from .enrichment.window_table import GivenTable, window_table
from .errors import ConfigError, SpecError, short
from .expressions.syntax import Expression, parse_expression
from .language.distinct import parse_distinct
from .language.enrichment import parse_windows
from .language.joins import Join, parse_join
from .language.options import WINDOW_OPTIONS, AtEnd, Closed, Emit, Empty, Options
from .language.parser import duration_seconds, origin_seconds, parse_aggregate, parse_let, parse_window
from .language.spec import AggregateCall, AggregateExpression, WindowSpec, default_name
from .language.tokens import column_text
from .planning.plan import Plan, make_plan
from .planning.result_schema import MARK, stream_of_columns
from .planning.sides import Sides, bind_sides, merge_sides
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
    join: str | Mapping[str, Rows] | None
    match: str | None
    having: str | None
    partial: bool
    event_time: str | None
    lag: Seconds
    min_gap: Seconds
    max_ahead: Seconds | None
    max_open_rows: int
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
    """Return the options among the arguments of a call, by their names. Raises `ConfigError`, `SpecError`.

    One that is None has its default.
    """
    declared = [each for each in WINDOW_OPTIONS if given.get(each.attribute) is not None]
    values = {each.attribute: _value(each, given[each.attribute]) for each in declared}
    at_end = values.get("at_end") or ("flush" if given.get("state") is None else "hold")
    return Options(**{**values, "at_end": at_end}, plain=given.get("plain", False))


def _value(declared: Option, given: Any) -> Any:
    """Return an argument as a window takes it: names as a tuple, durations and times as exact seconds."""
    name, kind = declared.name, declared.kind
    if kind in ("duration", "origin"):
        return _seconds(declared, given)
    if kind in _AS_GIVEN:
        return _AS_GIVEN[kind](given, name)
    if isinstance(given, Join):  # of two tables, which are merged by now
        return given
    if kind == "join" and isinstance(given, Mapping):
        raise ConfigError(
            "join: two tables are joined by aggregate() or windows()", "give it both, or join one with itself"
        )
    text = as_text(given, name)
    if kind == "word" and text not in declared.words:
        raise ConfigError(f"{name} cannot be {text!r}", f"say {' or '.join(declared.words)}")
    return _OF_TEXT[kind](text) if kind in _OF_TEXT else text


_OF_TEXT: Final[Mapping[str, Callable[[str], Any]]] = {
    "expression": parse_expression, "distinct": parse_distinct, "join": parse_join,
}  # fmt: skip


def _as_lets(given: Any, option: str) -> tuple[tuple[str, Expression], ...]:
    if not isinstance(given, Mapping):
        return tuple(parse_let(text) for text in as_names(given, option))
    texts = as_names(list(given.values()), option)
    return tuple((as_text(new, option), parse_expression(text)) for new, text in zip(given, texts, strict=True))


def _as_switch(given: Any, option: str) -> bool:
    if isinstance(given, str):  # any text is true in Python
        raise ConfigError(f"{option}: {short(repr(given))} is a text", "give True or False")
    return bool(given)


def as_count(given: Any, option: str) -> int:
    """Return an argument that must be a whole number above 0. Raises `ConfigError` where it is none."""
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise ConfigError(f"{option}: {short(repr(given))} is no whole number above 0", "give one, such as 1000")
    return given


def as_text(given: Any, option: str) -> str:
    """Return an argument that must be a text. Raises `ConfigError` where it is none."""
    if not isinstance(given, str):
        raise ConfigError(f"{option}: {short(repr(given))} is no text", "give a text")
    return given


def exact(given: Any, option: str) -> Fraction:
    """Return a number of seconds, exactly. Raises `ConfigError` for what is no number, or not finite."""
    try:
        return Fraction(given)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{option}: {short(repr(given))} is no number of seconds", "give a number") from None


_AS_GIVEN: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "names": as_names, "lets": _as_lets, "switch": _as_switch, "number": as_count,
}  # fmt: skip
"""What reads arguments that need be no text, by the kind of their option."""


def _seconds(declared: Option, given: Any) -> Fraction:
    if not isinstance(given, str):
        seconds = exact(given, declared.name)
        if declared.kind == "origin" or seconds >= 0:
            return seconds
        given = str(given)  # for the message
    try:
        return origin_seconds(given) if declared.kind == "origin" else duration_seconds(given)
    except ConfigError as error:
        raise ConfigError(f"{declared.name} {error.what}", error.do) from None


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
        given, and ``state``, if there is one; or as `merged` returns them.
    ``rows``: some or all rows, where they are there already; only messages and checks of units look at them.
    A table with the columns of a result is read as a stream, in the order in which its panes came out.
    """
    window, order, aggregates = given["window"], given["order_by"], given.get("aggregates")
    spec = window if isinstance(window, WindowSpec) else parse_window(as_text(window, "window"))
    options = as_options(given)
    calls = None if aggregates is None else as_calls(aggregates)
    if order is not None and order != "arrival":
        order = as_names(order, "order_by")
    stream = given["stream"] if "stream" in given else stream_of_columns(schema)
    look = no_look if rows is None else look_at(rows)
    windows = {} if given.get("windows") is None else given["windows"]
    if not isinstance(windows, Mapping):
        do = 'write windows={"NAME [on KEY] from START to END": table}'
        raise ConfigError(f"windows: {_kind(windows)} is no mapping of texts to tables", do)
    tables = {parse_windows(as_text(text, "windows"), False): as_table(each) for text, each in windows.items()}
    opened = [GivenTable(request, each.schema) for request, each in tables.items()]
    key = as_names(given.get("key", ()), "key")
    plan = make_plan(spec, schema, key, order, calls, options, stream, look=look, tables=opened)
    for request, each in tables.items():
        if plan.windows is None or plan.windows.bound.request != request:
            do = f"give the window table({request.name}), or leave it out"
            raise ConfigError(f"windows: {request.name!r} is used by no window", do)
        plan = replace(plan, windows=window_table(plan.windows.bound, each))
    return plan


def merged(left: pa.Table, given: Mapping[str, Any]) -> tuple[pa.Table, Mapping[str, Any]]:
    """Return the rows of a call, with those of the table that it joins, and its arguments over both.

    ``given``: the arguments as `plan_of_call` takes them; as they are where ``join`` has no table. Raises as the parser
    and `bind_sides` do.
    """
    if not isinstance(given.get("join"), Mapping):
        return left, given
    text, rows = joined_rows(given)
    right = as_table(rows)
    if stream_of_columns(right.schema) is not None:
        right = right.filter(pc.fill_null(pc.not_equal(right[MARK], "only"), True))
    sides, now = sides_of_call(left.schema, right.schema, text, given)
    return merge_sides(sides, left, right), {**given, **now}


def joined_rows(given: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the text of a join, and the rows that are its right side. Raises `ConfigError` where several are given."""
    tables = given["join"]
    if len(tables) != 1:
        do = 'write join={"NAME on KEY left": table}; more joins are more calls'
        raise ConfigError(f"join: {len(tables)} tables are given, and a call joins one", do)
    [(text, rows)] = tables.items()
    return as_text(text, "join"), rows


def sides_of_call(
    left: pa.Schema, right: pa.Schema, text: str, given: Mapping[str, Any]
) -> tuple[Sides, dict[str, Any]]:
    """Return both sides of a join of a call, and the arguments that it decides. Raises as the parser and `bind_sides`.

    ``text``: that of the join. ``given``: the arguments as `plan_of_call` takes them.
    """
    join = parse_join(text)
    if join.path is not None:
        raise ConfigError(f"join: {join.path!r} is a path, and a table is given", f"write {join.name} alone")
    window, order_by = given["window"], given["order_by"]
    spec = window if isinstance(window, WindowSpec) else parse_window(as_text(window, "window"))
    order_by = order_by if order_by is None or order_by == "arrival" else as_names(order_by, "order_by")
    stream, of_right = stream_of_columns(left), stream_of_columns(right)
    own = () if of_right is None else of_right.own
    key = as_names(given.get("key", ()), "key")
    lets = {name: "--let" for name, _ in _as_lets(given.get("let") or [], "let")}
    sides = bind_sides(replace(join, path="*"), spec, left, right, key, order_by, (), stream, own, lets)
    return sides, {"join": sides.join, "key": sides.key, "order_by": sides.order_by, "stream": stream}


def clock_measure(plan: Plan, clock: Clock | None) -> int | float | None:
    """Return an instant in measures of the clock column; None where there is no such column."""
    if clock is None or plan.clock is None:
        return None
    if isinstance(clock, dt.datetime):
        since = clock.replace(tzinfo=clock.tzinfo or dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        clock = Fraction(since // dt.timedelta(microseconds=1), 10**6)
    scale = scale_of(plan.projection.schema.field(plan.clock).type)
    try:
        measure = float(clock) if scale.per_second is None else scale.floor(Fraction(clock))
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"the clock cannot stand at {short(repr(clock))}", "give seconds, or an instant") from None
    if isinstance(measure, int) and not -(2**63) <= measure < 2**63:
        raise ConfigError(f"the clock cannot stand at {clock}: column {plan.clock!r} has 64 bit", "give seconds")
    return measure


def as_levels(watermarks: object) -> list[tuple[int, Fraction]] | None:
    """Return watermarks as pairs of a number of rows and exact seconds. Raises `ConfigError` for anything else."""
    if watermarks is None:
        return None
    try:
        return [(index(rows), exact(seconds, "watermarks")) for rows, seconds in watermarks]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        what = f"watermarks: {short(repr(watermarks))} is no list of pairs"
        raise ConfigError(what, "give (number of rows, seconds) for each") from None


def as_marks(marks: Any) -> str | list[int] | None:
    """Return marks as the name of a column, or as numbers of rows. Raises `ConfigError` for anything else."""
    if marks is None or isinstance(marks, str):
        return marks
    try:
        return [index(place) for place in marks]
    except TypeError:
        what = f"marks: {short(repr(marks))} is neither a column nor numbers of rows"
        raise ConfigError(what, "name a boolean column, or say after how many rows each mark is") from None
