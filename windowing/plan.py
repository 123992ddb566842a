"""A plan: a window bound to the columns it is to run over, and the shape of what comes out (design section 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import pyarrow as pa

from windowing.aggregates import Bound, bind, columns_of
from windowing.columns import is_measurable, is_sortable
from windowing.errors import ConfigError
from windowing.names import did_you_mean
from windowing.order import Order, OrderBy, choose_order
from windowing.spec import AggregateCall, Count, Delta, Gap, Punct, Time, Tumbling, WindowSpec, attributes
from windowing.stream import StreamInfo
from windowing.tumbling import time_grid

AtEnd = Literal["flush", "drop"]
Empty = Literal["skip", "mark", "row"]
POS = "_pos"
MARK = "_mark"
_COMPUTED = (Count, Delta, Time, Punct, Gap)
_FIXED = ("window", "window_start", "window_end", "closed_by")


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a scan has to know.

    ``order``: what the user ordered by. ``sort``: the columns that sort rows, arrival being the last resort; longer
    than ``order`` where the input is a stream. ``at``: the sort columns that go out as ``_at``, ``_at_2``, ...
    ``pos``: the column that goes out as ``_pos``, or None for the arrival position. ``ties``: the other sort columns,
    which go out as ``_tie``, ``_tie_2``, ... so that the order survives one stage more. ``schema``: of the result,
    stream columns included unless ``plain``.
    """

    spec: Tumbling
    key: tuple[str, ...]
    order: Order
    sort: tuple[str, ...]
    at: tuple[str, ...]
    pos: str | None
    ties: tuple[str, ...]
    aggregates: tuple[Bound, ...]
    at_end: AtEnd
    empty: Empty
    origin: Fraction
    plain: bool
    schema: pa.Schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that the tasks read, each once."""
        return tuple(dict.fromkeys([*self.key, *self.values]))

    @property
    def values(self) -> tuple[str, ...]:
        """The columns that sequences hold: all that are needed but for keys that are nothing else, each once."""
        used = [*self.sort, *attributes(self.spec), *(c for b in self.aggregates for c in b.columns)]
        return tuple(dict.fromkeys(used))

    @property
    def at_names(self) -> tuple[str, ...]:
        """Names of the result's columns of order values."""
        count = 1 if not self.sort or isinstance(self.spec.policy, Time) else len(self.at)
        return tuple(numbered("_at", i) for i in range(count))

    @property
    def stamp_names(self) -> tuple[str, ...]:
        """Names of the result's columns that say which row brought a pane out."""
        return (*self.at_names, POS, *(numbered("_tie", i) for i in range(len(self.ties))))

    @property
    def takes_marks(self) -> bool:
        """Whether incoming marks matter: only to ``punct()``."""
        return self.spec.policy == Punct()

    @property
    def watches_falls(self) -> str | None:
        """The attribute whose falls are worth a note: a number compared in arrival order."""
        policy = self.spec.policy
        return policy.attribute if isinstance(policy, Delta | Gap) and not self.order.columns else None


def _no_reason(_: str) -> str | None:
    return None


def make_plan(
    spec: WindowSpec,
    schema: pa.Schema,
    key: Sequence[str] = (),
    order_by: OrderBy = None,
    calls: Sequence[AggregateCall] = (AggregateCall("count", "count"),),
    at_end: AtEnd = "flush",
    empty: Empty = "skip",
    origin: Fraction = Fraction(0),
    plain: bool = False,
    stream: StreamInfo | None = None,
    explain: Callable[[str], str | None] = _no_reason,
) -> Plan:
    """Bind a window to the columns of ``schema``.

    ``stream``: how the input, if it is an earlier result, stands in emission order. ``explain``: what made a column
    text, if anything did that a message should name.

    Raises `ConfigError` for kinds that are not computed yet, columns that are not there or do not fit, options that
    do not go together, and output names that clash.
    """
    tumbling = _computed(spec)
    _check_key(tumbling, schema, key)
    _check_attributes(tumbling, schema, explain)
    _check_empty(tumbling, empty)
    order = choose_order(tumbling, schema, order_by)
    aggregates = tuple(bind(call, _known_columns(call, schema)) for call in calls)
    emission = stream.order if stream else ()
    sort = tuple(dict.fromkeys([*order.columns, *emission]))
    at = tuple(dict.fromkeys([*order.columns, *(stream.at if stream else ())]))
    pos = POS if stream else None
    by_tick = isinstance(tumbling.policy, Time)
    ties = () if by_tick else tuple(name for name in sort if name not in (*at, pos))
    result = _result_schema(tumbling, schema, tuple(key), at, ties, aggregates, origin, plain)
    return Plan(tumbling, tuple(key), order, sort, at, pos, ties, aggregates, at_end, empty, origin, plain, result)


def _computed(spec: WindowSpec) -> Tumbling:
    """Only tumbling kinds other than ``calendar`` are computed; the language knows more."""
    computed = isinstance(spec, Tumbling) and isinstance(spec.policy, _COMPUTED) and spec.eviction is None
    if not (computed and isinstance(spec, Tumbling)):
        raise ConfigError(
            f"the window {spec} is understood, but this version does not compute it yet",
            "it computes tumbling count, delta, time, punct and gap windows without partition eviction",
        )
    return spec


def _check_key(spec: Tumbling, schema: pa.Schema, key: Sequence[str]) -> None:
    if spec.partitioned and not key:
        raise ConfigError("the window is partitioned, but there is no key", "say --key COLUMN")
    if len(set(key)) != len(key):
        raise ConfigError(f"a column is twice in the key {', '.join(key)}", "name it once")
    for name in key:
        dtype = _field(schema, name, "the key").type
        if not is_sortable(dtype):
            raise ConfigError(f"column {name!r} is {dtype}, which does not sort", "a key must")


def _check_attributes(spec: Tumbling, schema: pa.Schema, explain: Callable[[str], str | None]) -> None:
    for name in attributes(spec):
        dtype = _field(schema, name, str(spec.policy)).type
        if pa.types.is_null(dtype):
            continue  # an input without a single value: no row will come to need it
        if isinstance(spec.policy, Punct) and not pa.types.is_boolean(dtype):
            raise ConfigError(f"punct({name}) needs a boolean column, and {name!r} is {dtype}", "use another column")
        if isinstance(spec.policy, Delta | Gap) and not is_measurable(dtype):
            because = explain(name)
            raise ConfigError(
                f"{spec.policy} needs a number, a timestamp or a date, and column {name!r} is {dtype}"
                + (f": {because}" if because else ""),
                f'with --schema "{name}:timestamp" (or int64, float64) such rows are rejected'
                if because
                else "name another column, or cast it",
            )


def _check_empty(spec: Tumbling, empty: Empty) -> None:
    if empty != "skip" and not isinstance(spec.policy, Time):
        raise ConfigError(f"--empty {empty} is for time windows, and this one is {spec.policy}", "leave it out")


def _field(schema: pa.Schema, name: str, role: str) -> pa.Field:
    if name not in schema.names:
        raise ConfigError(f"there is no column {name!r} for {role}", did_you_mean(name, schema.names))
    return schema.field(name)


def _known_columns(call: AggregateCall, schema: pa.Schema) -> pa.Schema:
    for name in columns_of(call):
        _field(schema, name, str(call))
    return schema


def _result_schema(
    spec: Tumbling,
    schema: pa.Schema,
    key: tuple[str, ...],
    at: tuple[str, ...],
    ties: tuple[str, ...],
    aggregates: Sequence[Bound],
    origin: Fraction,
    plain: bool,
) -> pa.Schema:
    bounds, at_types = _order_types(spec, schema, at, origin)
    fields = [schema.field(name).with_nullable(True) for name in key]
    fields += [pa.field("window", pa.int64()), pa.field("window_start", bounds), pa.field("window_end", bounds)]
    fields += [pa.field("closed_by", pa.string())]
    fields += [pa.field(bound.name, bound.type) for bound in aggregates]
    if not plain:
        fields += [pa.field(numbered("_at", i), dtype) for i, dtype in enumerate(at_types)]
        fields += [pa.field(POS, pa.int64())]
        fields += [pa.field(numbered("_tie", i), schema.field(name).type) for i, name in enumerate(ties)]
        fields += [pa.field(MARK, pa.string())]
    _check_names([field.name for field in fields])
    return pa.schema([field.remove_metadata() for field in fields])


def _order_types(
    spec: Tumbling, schema: pa.Schema, at: tuple[str, ...], origin: Fraction
) -> tuple[pa.DataType, list[pa.DataType]]:
    """Type of the window bounds and of the ``_at`` columns; int64 (and null) in arrival order."""
    if not at:
        return pa.int64(), [pa.int64()]
    first = schema.field(at[0]).type
    if isinstance(spec.policy, Time):
        bounds = time_grid(first, spec.policy.seconds, origin).type
        return bounds, [bounds]
    return first, [schema.field(name).type for name in at]


def numbered(name: str, index: int) -> str:
    """The index-th of some columns, from 0: ``_at``, ``_at_2``, ``_at_3``, ..."""
    return name if index == 0 else f"{name}_{index + 1}"


def stream_of(plan: Plan) -> StreamInfo:
    """How the result of a plan is read back as a stream: in the order of the rows that caused its panes."""
    own = (*plan.at, plan.pos, *plan.ties)
    names = dict(zip(own, plan.stamp_names, strict=True)) if plan.ties else {}
    order = tuple(names[column] for column in plan.sort) if plan.ties else plan.stamp_names
    return StreamInfo((*order, "window", *plan.key), plan.at_names)


def _check_names(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        hint = "keys may not be called " + ", ".join(_FIXED) + "; name aggregates apart with --agg NAME=..."
        raise ConfigError(f"the result would have two columns {twice[0]!r}", hint)
