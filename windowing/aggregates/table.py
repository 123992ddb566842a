"""The table of aggregates as data: one row each, with its parameters, result type, functions and a line of help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, is_measurable, is_number, truth
from ..columns.sort_keys import is_sortable
from ..errors import ConfigError, did_you_mean, install_extra
from ..language.spec import HIDDEN, AggregateCall, Column
from ..language.tokens import decimal_text
from ..rows.membership import Membership, Memberships, Ranges, as_simplest, with_filter
from . import arithmetic, over_time, selection, sketches, user
from .inputs import Inputs, Ranked, Spans, TwoPhase, entries_of, plain, plain_type
from .moments import KURTOSIS, SKEWNESS


@dataclass(frozen=True, slots=True)
class Kind:
    """Which arguments one parameter accepts.

    ``words``: description for messages.
    ``fits``: predicate over the plain type of a column or the value of a literal.
    ``literal``: whether the parameter takes a literal; otherwise it takes a column.
    ``widest``: the type that a column without any value has here, as the widest of those that fit; None: it has none.
    ``is_optional``: whether the parameter may be left out; those after it may be, too.
    """

    words: str
    fits: Callable[[Any], bool]
    literal: bool = False
    widest: pa.DataType | None = None
    is_optional: bool = False

    def type_of(self, dtype: pa.DataType) -> pa.DataType:
        """Return the type in which an aggregate takes a column, from its plain type.

        A column of type null has no type yet, and takes any.
        """
        return self.widest if self.widest is not None and pa.types.is_null(dtype) else dtype


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: a row of the table.

    ``name``: name in the window language.
    ``parameters``: which arguments each of its parameters accepts, by name, in order.
    ``result``: maps the plain types of the column arguments to the type of the result.
    ``doc``: one line of help.
    ``compute``: returns the values of all panes.
    ``phases``: the same in two phases, so that rows are aggregated before an exchange; None: it takes all rows at once.
    ``is_long``: whether the values of many panes at once may take much memory, so that few are computed at a time.
    ``needs``: the package that it needs, an extra; empty: none.
    ``clock``: whether it also takes the clock of each row, as its last column.
    ``holds_on``: whether a value of a key holds until its next one, so that it takes `Inputs.spans`.
    ``reads``: the columns that it reads beside its arguments.
    """

    name: str
    parameters: dict[str, Kind]
    result: Callable[..., pa.DataType]
    doc: str
    compute: Callable[[Inputs], pa.Array]
    phases: TwoPhase | None = None
    is_long: bool = False
    needs: str = ""
    clock: bool = False
    holds_on: bool = False
    reads: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.parameters)})"

    def types_of(self, dtypes: Sequence[pa.DataType]) -> list[pa.DataType]:
        """Return the types in which it takes its column arguments, from their plain types."""
        kinds = (kind for kind in self.parameters.values() if not kind.literal)
        return [kind.type_of(dtype) for kind, dtype in zip(kinds, dtypes, strict=False)]


def _is_time(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(dtype) and is_sortable(dtype))


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


_ANY = Kind("a column", lambda _: True)
_ANY_OR_NONE = replace(_ANY, is_optional=True)
_NUMBER = Kind("a number", is_number, widest=pa.float64())
_COUNTABLE = Kind("a number", lambda t: is_number(t) or pa.types.is_boolean(t), widest=pa.float64())
_SUMMABLE = Kind("a number", lambda t: _COUNTABLE.fits(t) or pa.types.is_duration(t), widest=pa.float64())
_DISTANT = Kind("a number, a date or a time", lambda t: is_number(t) or _is_time(t), widest=pa.float64())
_SORTABLE = Kind("values that sort", is_sortable)
_BOOLEAN = Kind("a boolean", pa.types.is_boolean, widest=pa.bool_())
_HASHABLE_WORDS = "a number, text, binary, a boolean, a date or a timestamp"
_HASHABLE = Kind(_HASHABLE_WORDS, sketches.is_hashable, widest=pa.string())
_TEXT = Kind("text", _is_text, widest=pa.string())
_FILLABLE = Kind("an aggregate, as in locf(last(x))", lambda _: False)
_PLACE = Kind("a whole number", lambda v: isinstance(v, Fraction) and v.denominator == 1 and abs(v) < 2**62, True)
_SHARE = Kind("a number from 0 to 1", lambda v: isinstance(v, Fraction) and 0 <= v <= 1, True)
_METHOD, _TIES = (
    Kind(f"one of {', '.join(map(repr, words))}", words.__contains__, True, is_optional=True)
    for words in (arithmetic.METHODS, selection.TIES)
)
_SEPARATOR = Kind("a text in quotes", lambda v: isinstance(v, str), True)


def _always(dtype: pa.DataType) -> Callable[..., pa.DataType]:
    return lambda *_: dtype


def _own(dtype: pa.DataType, *_: pa.DataType) -> pa.DataType:
    return dtype


def _sum_type(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(dtype):
        return pa.decimal128(38, dtype.scale)
    if pa.types.is_duration(dtype):
        return dtype
    return pa.float64() if pa.types.is_floating(dtype) else pa.int64()


def _product_type(dtype: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(dtype) else pa.float64()


def _range_type(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_date(dtype):
        return pa.duration("s" if pa.types.is_date32(dtype) else "ms")
    if pa.types.is_temporal(dtype):
        return pa.duration(dtype.unit)
    return dtype if pa.types.is_floating(dtype) else _sum_type(dtype)


def _twice(compute: Callable[[Inputs], pa.Array], in_order: bool = False) -> TwoPhase:
    """Return two phases of which each does the same."""
    return TwoPhase(1, lambda inputs: [compute(inputs)], compute, in_order)


BEGINS, UNTIL = HIDDEN + "begins", HIDDEN + "until"
"""From when to when a row is inside of its window: instants of its bounds, as int64 ticks or floats (section 18)."""
_INT64, _FLOAT64, _BINARY = _always(pa.int64()), _always(pa.float64()), _always(pa.binary())
_SMALLEST, _LARGEST = selection.extremes(False), selection.extremes(True)
_FIRST, _LAST = selection.nths(0), selection.nths(-1)
_ROWS = (
    Aggregate("count", {"x": _ANY_OR_NONE}, _INT64, "rows; with a column, its values that are not null",
              selection.counts, arithmetic.COUNT_PHASES),
    Aggregate("count_distinct", {"x": _SORTABLE}, _INT64, "different values",
              selection.distinct_counts),
    Aggregate("sum", {"x": _SUMMABLE}, _sum_type, "sum; exact for integers and decimals",
              arithmetic.sums, arithmetic.SUM_PHASES),
    Aggregate("mean", {"x": _COUNTABLE}, _FLOAT64, "arithmetic mean",
              arithmetic.means, arithmetic.MEAN_PHASES),
    Aggregate("min", {"x": _SORTABLE}, _own, "smallest value, NaN skipped",
              _SMALLEST, _twice(_SMALLEST)),
    Aggregate("max", {"x": _SORTABLE}, _own, "largest value, NaN skipped",
              _LARGEST, _twice(_LARGEST)),
    Aggregate("first", {"x": _ANY}, _own, "first value in order",
              _FIRST, _twice(_FIRST, in_order=True)),
    Aggregate("last", {"x": _ANY}, _own, "last value in order",
              _LAST, _twice(_LAST, in_order=True)),
    Aggregate("nth", {"x": _ANY, "i": _PLACE}, _own, "value number i from 0, or from the newest: -1",
              selection.nths(None), selection.NTH_PHASES),
    Aggregate("var", {"x": _NUMBER}, _FLOAT64, "sample variance, null for one value",
              arithmetic.variance(False, True), arithmetic.spread_phases(False, True)),
    Aggregate("stddev", {"x": _NUMBER}, _FLOAT64, "sample standard deviation",
              arithmetic.variance(True, True), arithmetic.spread_phases(True, True)),
    Aggregate("var_pop", {"x": _NUMBER}, _FLOAT64, "population variance",
              arithmetic.variance(False, False), arithmetic.spread_phases(False, False)),
    Aggregate("stddev_pop", {"x": _NUMBER}, _FLOAT64, "population standard deviation",
              arithmetic.variance(True, False), arithmetic.spread_phases(True, False)),
    Aggregate("skew", {"x": _NUMBER}, _FLOAT64, "sample skewness, null for less than 3 values",
              arithmetic.shape(SKEWNESS, True), arithmetic.shape_phases(SKEWNESS, True)),
    Aggregate("kurtosis", {"x": _NUMBER}, _FLOAT64, "sample excess kurtosis, null for less than 4 values",
              arithmetic.shape(KURTOSIS, True), arithmetic.shape_phases(KURTOSIS, True)),
    Aggregate("skew_pop", {"x": _NUMBER}, _FLOAT64, "population skewness",
              arithmetic.shape(SKEWNESS, False), arithmetic.shape_phases(SKEWNESS, False)),
    Aggregate("kurtosis_pop", {"x": _NUMBER}, _FLOAT64, "population excess kurtosis",
              arithmetic.shape(KURTOSIS, False), arithmetic.shape_phases(KURTOSIS, False)),
    Aggregate("median", {"x": _NUMBER}, _FLOAT64, "middle value, or half way between the middle two",
              arithmetic.quantiles),
    Aggregate("quantile", {"x": _NUMBER, "q": _SHARE, "method": _METHOD}, _FLOAT64, "quantile q, linear between values",
              arithmetic.quantiles),
    Aggregate("mad", {"x": _NUMBER}, _FLOAT64, "median distance from the median",
              arithmetic.median_deviations),
    Aggregate("rank", {"x": _SORTABLE, "ties": _TIES}, _FLOAT64, "rank of the newest value",
              selection.ranks),
    Aggregate("mode", {"x": _SORTABLE}, _own, "most frequent value, the first to appear among equals",
              selection.modes),
    Aggregate("arg_min", {"y": _ANY, "x": _SORTABLE}, _own, "y of the first row with smallest x",
              selection.arg_extremes(False), selection.arg_extreme_phases(False)),
    Aggregate("arg_max", {"y": _ANY, "x": _SORTABLE}, _own, "y of the first row with largest x",
              selection.arg_extremes(True), selection.arg_extreme_phases(True)),
    Aggregate("collect", {"x": _ANY}, pa.list_, "list of the values in order",
              selection.lists, is_long=True),
    Aggregate("collect_distinct", {"x": _SORTABLE}, pa.list_, "list of the different values",
              selection.distinct_lists, is_long=True),
    Aggregate("wavg", {"x": _NUMBER, "w": _NUMBER}, _FLOAT64, "mean of x weighted by w",
              arithmetic.weighted_means),
    Aggregate("product", {"x": _NUMBER}, _product_type, "product; exact for integers",
              arithmetic.products),
    Aggregate("integral", {"x": _COUNTABLE}, _FLOAT64, "x times seconds, each value holding until the next",
              over_time.integrals, holds_on=True),
    Aggregate("twa", {"x": _COUNTABLE}, _FLOAT64, "mean of x weighted by how long each value holds",
              over_time.time_weighted_means, holds_on=True),
    Aggregate("slope", {"x": _NUMBER}, _FLOAT64, "least squares of x over the clock, per second",
              over_time.slopes, clock=True),
    Aggregate("locf", {"AGG": _FILLABLE}, _own, "an aggregate, or its value of the last window that had one",
              _LAST),
    Aggregate("bool_and", {"x": _BOOLEAN}, _own, "whether all are true",
              _SMALLEST, _twice(_SMALLEST)),
    Aggregate("bool_or", {"x": _BOOLEAN}, _own, "whether any is true",
              _LARGEST, _twice(_LARGEST)),
    Aggregate("string_join", {"x": _TEXT, "sep": _SEPARATOR}, _own, "texts in order with sep between",
              selection.joins, is_long=True),
    Aggregate("range", {"x": _DISTANT}, _range_type, "largest less smallest value",
              arithmetic.value_ranges, arithmetic.RANGE_PHASES),
    Aggregate("min_count", {"x": _SORTABLE}, _INT64, "how often the smallest value occurs",
              selection.extreme_counts(False), selection.extreme_count_phases(False)),
    Aggregate("max_count", {"x": _SORTABLE}, _INT64, "how often the largest value occurs",
              selection.extreme_counts(True), selection.extreme_count_phases(True)),
    Aggregate("max_overlap", {}, _INT64, "the most rows that last at one instant, with --ends",
              selection.most_at_once, reads=(BEGINS, UNTIL)),
    Aggregate("approx_count_distinct", {"x": _HASHABLE}, _INT64, "different values, estimated",
              sketches.approx_distinct_counts(), sketches.phases(sketches.approx_distinct_counts(is_merged=True)),
              is_long=True, needs="datasketches"),
    Aggregate("approx_quantile", {"x": _NUMBER, "q": _SHARE}, _FLOAT64, "a value near quantile q",
              sketches.approx_quantiles),
    Aggregate("hll_sketch", {"x": _HASHABLE}, _BINARY, "sketch of the different values, for hll_union",
              sketches.hll_sketches(), sketches.phases(sketches.hll_sketches(is_merged=True)), is_long=True),
    Aggregate("kll_sketch", {"x": _NUMBER}, _BINARY, "sketch of the distribution, for kll_sketch_merge",
              sketches.kll_sketches, is_long=True),
)  # fmt: skip

TABLE: dict[str, Aggregate] = {row.name: row for row in _ROWS}
"""Every built-in aggregate by name, in the order of semantics section 9."""


def aggregate_of(call: AggregateCall) -> Aggregate:
    """Return what a call is of: a row of the table, or a user function as one, whose results `bind` has checked."""
    if ":" not in call.function:
        return TABLE[call.function]
    own = user.value_type(call.function, user.load(call.function))
    return Aggregate(call.function, {}, lambda *_: own, "", user.values(call), user.phases(call), is_long=True)


# Binding: an aggregate call is checked against a schema, so every mistake is reported before a row is read.


@dataclass(frozen=True, slots=True)
class Bound:
    """A call that fits its columns. It holds names and types and no code, so it pickles.

    ``name``: name of the result column.
    ``type``: type of the result column.
    ``columns``: names of the columns that the call reads, each once.
    ``call``: the call as parsed.
    ``filter``: the boolean column of the rows that a user function looks at; None: all rows of the pane.
    ``is_second_step``: whether the columns hold what the first phase of a partial aggregation left (`TwoPhase`).
    ``clock``: the column of the clock, where the aggregate takes it, too; None: it does not.
    """

    name: str
    type: pa.DataType
    columns: tuple[str, ...]
    call: AggregateCall
    is_second_step: bool = False
    filter: str | None = None
    clock: str | None = None

    @property
    def text(self) -> str:
        return self.call.text

    @property
    def is_user_function(self) -> bool:
        return ":" in self.call.function

    @property
    def is_long(self) -> bool:
        """As of its aggregate; those of a user function may always be."""
        return self.is_user_function or TABLE[self.call.function].is_long

    @property
    def holds_on(self) -> bool:
        """As of its aggregate."""
        return not self.is_user_function and TABLE[self.call.function].holds_on

    @property
    def carries(self) -> bool:
        """Whether something goes on from each window of a key to the next: a value that holds, or that fills."""
        return self.holds_on or self.call.fills


def columns_of(call: AggregateCall) -> tuple[str, ...]:
    """Return the names of the columns that a call reads, each once, in the order of the arguments."""
    return tuple(dict.fromkeys(a.name for a in call.arguments if isinstance(a, Column)))


def reads_rows(call: AggregateCall) -> bool:
    """Whether a call reads columns beside its arguments, so that a filter is none of these."""
    return call.function in TABLE and bool(TABLE[call.function].reads)


def bind(call: AggregateCall, schema: pa.Schema, clock: str | None = None) -> Bound:
    """Check a call against the columns of a schema and find the type of its result (semantics section 9).

    ``clock``: the column of the clock; None: there is none.

    Raises `ConfigError` for an unknown function or column, wrong arguments, or a type that does not fit.
    """
    text = call.text
    for name in columns_of(call):
        if name not in schema.names:
            raise ConfigError(f"{text}: there is no column {name}", did_you_mean(name, schema.names))
    types = {name: plain_type(schema.field(name).type) for name in columns_of(call)}
    if ":" in call.function:
        if not columns_of(call):
            raise ConfigError(f"{text}: it reads no column", "give it at least one")
        function = user.load(call.function)
        user.check_arguments(text, function, call.arguments)
        user.check_merge(text, call.function, function, [a for a in call.arguments if not isinstance(a, Column)])
        return Bound(call.name, user.value_type(call.function, function), columns_of(call), call)
    if call.function not in TABLE:
        raise ConfigError(f"{text}: there is no aggregate {call.function}", did_you_mean(call.function, TABLE))
    aggregate = TABLE[call.function]
    _check_arguments(aggregate, call, types)
    if aggregate.needs and find_spec(aggregate.needs) is None:
        raise ConfigError(f"{text}: the package {aggregate.needs} is not installed", install_extra("sketch"))
    given = aggregate.types_of([types[a.name] for a in call.arguments if isinstance(a, Column)])
    columns = (*columns_of(call), *aggregate.reads)
    if aggregate.clock or aggregate.holds_on:
        if clock is None:
            raise ConfigError(f"{call.function} needs a clock", "say --order-by, with a column of times or numbers")
        if not is_measurable(plain_type(schema.field(clock).type)):
            what = f"{call.function} needs a clock, and column {clock!r} is {schema.field(clock).type}"
            raise ConfigError(what, "say --order-by, with a column of times or numbers")
        columns = tuple(dict.fromkeys([*columns, clock]))
    return Bound(call.name, aggregate.result(*given), columns, call, clock=clock if aggregate.clock else None)


def _check_arguments(aggregate: Aggregate, call: AggregateCall, types: dict[str, pa.DataType]) -> None:
    arguments: tuple[Any, ...] = call.arguments
    write, takes, given = f"write {aggregate.signature}", len(aggregate.parameters), len(arguments)
    required = sum(not kind.is_optional for kind in aggregate.parameters.values())
    if not required <= given <= takes:
        bound = "at least " if given < required < takes else "at most " if required < takes else ""
        takes = required if given < required else takes
        words = f"{bound}{takes} argument{'' if takes == 1 else 's'}"
        raise ConfigError(f"{call.text}: {aggregate.name} takes {words} and got {given}", write)
    for (name, kind), argument in zip(aggregate.parameters.items(), arguments, strict=False):
        is_column = isinstance(argument, Column)
        if kind.literal:
            if is_column or not kind.fits(argument):
                what = f"the column {argument.name}" if is_column else _literal_text(argument)
                raise ConfigError(f"{call.text}: {name} is {what}", f"{name} must be {kind.words}")
            continue
        if not is_column:
            raise ConfigError(f"{call.text}: {_literal_text(argument)} is not a column", write)
        dtype = kind.type_of(types[argument.name])
        if not kind.fits(dtype):
            words = "text" if _is_text(dtype) else "boolean" if pa.types.is_boolean(dtype) else str(dtype)
            what = f"{call.text}: column {argument.name} is {words}"
            raise ConfigError(what, f"{aggregate.name} needs {kind.words}")


def _literal_text(literal: Fraction | str) -> str:
    return f"'{literal}'" if isinstance(literal, str) else decimal_text(literal)


# Bound calls over panes: one array per call.


_ONE, _TWO = np.array([0]), np.array([2])
_BOUNDS = np.array([0, 2])
_FORMS: tuple[Membership, ...] = (
    Ranges(_ONE, _TWO, _ONE, True),
    Ranges(_ONE, _TWO, _ONE, False),
    Memberships(np.array([0, 1]), np.array([0, 1]), np.array([2, 2]), _BOUNDS, _BOUNDS),
    Memberships(np.array([0, 1]), np.array([1, 0]), np.array([2, 1]), _BOUNDS, _BOUNDS),
)
"""Panes in every form over two rows, for `warm`. Disjoint panes come first; only the last ones are not ranges."""
_RANKS = np.array([0, 2])
"""Ranks of the two rows. A pane with both rows has a hole, a pane with one row has none, so every kernel runs."""


Results: TypeAlias = dict[tuple[str, ...], dict[str, Any]]
"""Intermediate results that calls over the same panes of the same rows share, by the columns that the calls read."""


def compute(
    bound: Bound,
    rows: pa.RecordBatch,
    membership: Membership,
    rank: Ints | None = None,
    cached: Results | None = None,
    spans: Spans | None = None,
) -> pa.Array:
    """Return the value of one call for each pane, of length P and type ``bound.type`` (semantics section 9).

    The value of a pane depends, to the bit, only on the pane's own rows and their ranks; rows outside the pane do not
    matter. ``rank``: int64 (n,), how many rows of its sequence came before each row, ever; ascending within each
    sequence. With None the places of the entries in their sequence are the ranks, from 0. ``cached``: intermediate
    results of earlier calls over the same panes; they save time and change no value. ``spans``: what the panes cover of
    the clock, where values last.

    Nulls are skipped; a pane without values is null, counts are 0. Raises `PaneOverflow` where an integer or decimal
    does not fit, and `PaneFailed` (a `DataError`) for a user function.
    """
    membership = as_simplest(membership)
    if bound.filter is not None:
        membership, rank = with_filter(membership, truth(rows, bound.filter)), None
    find = _phases(bound).merge if bound.is_second_step else aggregate_of(bound.call).compute
    inputs = _inputs(bound, rows, membership, rank, {} if cached is None else cached)
    return find(inputs if spans is None else replace(inputs, spans=spans))


def is_mergeable(bound: Bound, schema: pa.Schema, are_neighbours: bool) -> bool:
    """Whether a call over columns of these types can be computed in two phases.

    ``are_neighbours``: as `TwoPhase.in_order` wants rows.
    """
    phases = aggregate_of(bound.call).phases
    if phases is None or (phases.in_order and not are_neighbours):
        return False
    types = [plain_type(schema.field(name).type) for name in bound.columns]
    return phases.fits(types, [a for a in bound.call.arguments if not isinstance(a, Column)])


def in_two_phases(bound: Bound, prefix: str) -> Bound:
    """Return the second phase of a call that `is_mergeable`, over columns whose names begin with ``prefix``."""
    names = tuple(f"{prefix}_{i}" for i in range(_phases(bound).columns))
    return replace(bound, columns=names, is_second_step=True, filter=None)


def split(bound: Bound, rows: pa.RecordBatch, panes: Ranges) -> list[pa.Array]:
    """Return the partial aggregates of each pane, as the columns that `in_two_phases` names.

    The call `is_mergeable`, and ``panes`` are disjoint. Raises `PaneFailed` for a user function.
    """
    if bound.filter is not None:
        panes = with_filter(panes, truth(rows, bound.filter))
    return _phases(bound).split(_inputs(bound, rows, panes, None, {}))


def warm(bounds: Sequence[Bound], schema: pa.Schema, overlapping: bool = True) -> None:
    """Run the kernels that calls need on two null rows, so that the compiled kernels are on disk for all processes.

    ``overlapping``: whether panes may share rows; if not, only the kernels for disjoint panes run. User functions are
    not called.
    """
    names = sorted({name for bound in bounds for name in bound.columns})
    rows = pa.RecordBatch.from_arrays([pa.nulls(2, schema.field(name).type) for name in names], names=names)
    for bound, form in product(bounds, _FORMS if overlapping else _FORMS[:1]):
        if not (bound.is_user_function or bound.holds_on):
            compute(bound, rows, form, _RANKS)


def _inputs(bound: Bound, rows: pa.RecordBatch, membership: Membership, rank: Ints | None, cached: Results) -> Inputs:
    arguments = bound.call.arguments
    names = tuple(a.name for a in arguments if isinstance(a, Column))
    beside = reads_rows(bound.call)
    read = bound.columns if bound.is_second_step or beside else names
    columns = [plain(rows.column(name)) for name in read]
    if not bound.is_second_step and not bound.is_user_function and not beside:
        wanted = TABLE[bound.call.function].types_of([column.type for column in columns])
        columns = [
            column if column.type == dtype else column.cast(dtype)
            for column, dtype in zip(columns, wanted, strict=True)
        ]
        columns += [] if bound.clock is None else [plain(rows.column(bound.clock))]
    return Inputs(
        columns=tuple(
            (column if membership.row is None or bound.holds_on else column.take(pa.array(membership.row)))
            for column in columns
        ),
        names=names,
        literals=tuple(a for a in arguments if not isinstance(a, Column)),
        ranked=Ranked(entries_of(membership), rank, membership.row),
        type=bound.type,
        call=bound.text,
        cache=cached.setdefault((*read, *([] if bound.clock is None else [bound.clock])), {}),
    )


def _phases(bound: Bound) -> TwoPhase:
    phases = aggregate_of(bound.call).phases
    assert phases is not None
    return phases
