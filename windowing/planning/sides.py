"""Both sides of a join as one sequence: its columns, and how a row of each side has them (semantics section 16).

The columns of the right side come first, as `Join.stored` names them, then `SIDE`, then those of the left. A row has
null in the columns of the other side. But the key and the order have one column for both, that of the left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from ..columns.arrays import combined
from ..columns.sort_keys import is_sortable
from ..enrichment.binding import ComparedPair, bind_keys, bind_pair, bind_taken
from ..errors import ConfigError, DataError, naming_option
from ..expressions.binding import bind_condition
from ..kinds.registry import kind_of
from ..language.enrichment import Pair
from ..language.joins import LEFT, RIGHT, SIDE, Join
from ..language.spec import Batched, Joined, SideWindows, Sliding, WindowSpec
from ..ports import StreamInfo
from .row_order import OrderBy, choose_event_time, choose_order, time_columns

SIDES: Final = {LEFT: "left", RIGHT: "right"}
"""What users see of the sides of rows: under ``union``, in rejects and where rows are explained."""
_CALLED: Final = ("the left", "the right")
"""What messages call them."""


def side_names(sides: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return what users see of `SIDE`, string; names stay as they are."""
    own = combined(sides)
    return own if pa.types.is_string(own.type) else pa.array([None, *SIDES.values(), "both"]).take(own)


def with_side_names(schema: pa.Schema, join: Join | None) -> pa.Schema:
    """Return the columns of rows as rejects have them: of a join `SIDE` as `side_names` gives it."""
    if join is None or SIDE not in schema.names:
        return schema
    return schema.set(schema.get_field_index(SIDE), pa.field(SIDE, pa.string()))


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides of a join with a path, bound to their columns. It pickles.

    ``join``: with the keys and orders that hold, whether it has said them or the job has.
    ``keys``, ``orders``: their columns, each with the type of both.
    ``left``, ``right``: the columns of each side.
    ``schema``: those of the one sequence.
    ``least``: the first column after the order by which rows of the left sort, where they are a stream; right rows have
        its least value, so that they come first; None: there is none.
    """

    join: Join
    keys: tuple[ComparedPair, ...]
    orders: tuple[ComparedPair, ...]
    left: pa.Schema
    right: pa.Schema
    schema: pa.Schema
    least: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(pair.left for pair in self.keys)

    @property
    def order_by(self) -> tuple[str, ...]:
        return tuple(pair.left for pair in self.orders)

    @property
    def of_right(self) -> dict[str, str]:
        """The columns of the one sequence that rows of the right have, with those of the right itself."""
        stored = {self.join.stored(name): name for name in self.right.names if name not in self.join.right_key}
        stored = {name: own for name, own in stored.items() if name in self.schema.names}
        return stored | {pair.left: pair.right for pair in (*self.keys, *self.orders)}

    def reads(self, side: int, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that a side itself needs for ``columns`` of the one sequence. ``side``: LEFT or RIGHT."""
        own = {name: name for name in self.left.names} if side == LEFT else self.of_right
        return tuple(dict.fromkeys(own[name] for name in columns if name in own))

    def padded(self, rows: pa.Table, side: int, columns: Sequence[str]) -> pa.Table:
        """Return rows of one side with ``columns`` of the one sequence; texts in dictionaries stay in them.

        ``rows``: with the columns that `reads` names; their number counts where they have none. Raises `DataError`
        for a key or an order that the type of both sides does not hold.
        """
        own = {name: name for name in self.left.names} if side == LEFT else self.of_right
        found = [self._column(rows, side, own.get(name), self.schema.field(name)) for name in columns]
        return pa.Table.from_arrays(found, names=list(columns)) if found else rows.select([])

    def _column(self, rows: pa.Table, side: int, own: str | None, field: pa.Field) -> pa.ChunkedArray | pa.Array:
        if field.name == SIDE:
            value = SIDES[side] if pa.types.is_string(field.type) else side
            return pa.repeat(pa.scalar(value, field.type), rows.num_rows)
        if own is None and field.name == self.least:
            return _least(field.type, rows.num_rows)
        if own is None:
            return pa.nulls(rows.num_rows, field.type)
        column = rows.column(own)
        if column.type == field.type or pa.types.is_dictionary(column.type):
            return column
        try:
            return column.cast(field.type)
        except pa.ArrowInvalid as error:
            what = f"--join {self.join.name}: column {own!r} has a value that is no {field.type}: {error}"
            raise DataError(what, "give both columns one type that holds all values") from None


def _least(dtype: pa.DataType, size: int) -> pa.Array:
    if pa.types.is_floating(dtype):
        return pa.repeat(pa.scalar(-np.inf, dtype), size)
    if pa.types.is_integer(dtype) or pa.types.is_temporal(dtype):
        width = np.dtype(f"i{dtype.bit_width // 8}")
        least = 0 if pa.types.is_unsigned_integer(dtype) else np.iinfo(width).min
        return pa.array(np.full(size, least, width)).view(dtype)
    return pa.repeat(pa.scalar("", dtype), size) if pa.types.is_string(dtype) else pa.nulls(size, dtype)


def bind_sides(
    join: Join,
    spec: WindowSpec,
    left: pa.Schema,
    right: pa.Schema,
    key: Sequence[str] = (),
    order_by: OrderBy = None,
    of_folders: Collection[str] = (),
    stream: StreamInfo | None = None,
    right_own: Collection[str] = (),
    computed: Mapping[str, str] = {},
) -> Sides:
    """Bind both sides of a join with a path to their columns.

    ``key``, ``order_by``: as the job says them. ``of_folders``, ``stream``: of the left, as `make_plan` takes them.
    ``right_own``: columns that the right has as a stream of wincli, which are taken only by name. ``computed``: the
    option that computes a column of the left, by its name, or by what names of several begin with, ``NAME_``. Raises
    `ConfigError` for columns that are missing or computed, do not compare or would have one name, and where the job and
    the join disagree.
    """
    who, spec = f"--join {join.name}", spec.window if isinstance(spec, Joined) else spec
    if order_by == "arrival":
        raise ConfigError(f"{who}: two logs have no common order of arrival", "order by columns of both")
    join = replace(join, keys=join_keys(join, key))
    for name in (*(pair.left for pair in join.keys), *(join_order(join, order_by) or ())):
        of = next((of for own, of in computed.items() if name.startswith(own) and own in (name, f"{own[:-1]}_")), None)
        if name not in left.names and of is not None:
            what = f"{who}: {name!r} is computed by {of}, and rows of both sides meet by columns of their logs"
            raise ConfigError(what, "compute it in a stage before, as with window count(1), let and emit rows")
    keys = bind_keys(who, join.keys, left, right, _CALLED)
    orders = _orders(who, join, spec, left, order_by, time_columns(left, left, key, of_folders))
    ordering = tuple(bind_pair(who, pair, left, right, _CALLED) for pair in orders)
    for pair in ordering:
        if not is_sortable(pair.type):
            raise ConfigError(f"{who}: order {pair.left!r} is {pair.type}", "order by numbers, texts or times")
    join = replace(join, orders=orders)
    emission = [] if stream is None else [name for name in stream.order if name not in (each.left for each in orders)]
    fields = _fields(who, join, spec, left, right, right_own, {each.left: each.type for each in (*keys, *ordering)})
    least = None if join.strict else next(iter(emission), None)  # null sorts last
    return Sides(join, keys, ordering, left, right, fields, least)


def joined(spec: WindowSpec, join: Join) -> WindowSpec:
    """Return a window over both sides: of pairs, but under ``union`` over the rows of both as they are."""
    return spec if join.how == "union" else Joined(spec, join)


def join_keys(join: Join, key: Sequence[str]) -> tuple[Pair, ...]:
    """Return the keys of a join, which it says, or the job does. Raises `ConfigError` where they differ."""
    if join.keys and key and {*key} != {pair.left for pair in join.keys}:
        what = (
            f"--join {join.name} joins on {', '.join(pair.left for pair in join.keys)}, and the key is {', '.join(key)}"
        )
        raise ConfigError(what, "leave one of both out")
    if not key:
        return join.keys
    said = {pair.left: pair for pair in join.keys}
    return tuple(said.get(name, Pair(name, name)) for name in key)


def join_order(join: Join, order_by: OrderBy) -> OrderBy:
    """Return the order of a join, which it says, or the job does. Raises `ConfigError` where they differ."""
    said = tuple(pair.left for pair in join.orders)
    if said and order_by is not None and said != tuple(order_by):
        text = order_by if isinstance(order_by, str) else ", ".join(order_by)
        what = f"--join {join.name} is by {', '.join(said)}, and --order-by is {text}"
        asked = text.split(", ")
        pairs = zip(asked, (pair.right for pair in join.orders), strict=False)
        named = ", ".join(str(Pair(own, other)) for own, other in pairs)
        is_other = len(asked) == len(said) and all(pair.left == pair.right for pair in join.orders)
        raise ConfigError(what, "leave one of both out" + f"; by {named} orders each side by its own" * is_other)
    return said or order_by


def _orders(
    who: str, join: Join, spec: WindowSpec, left: pa.Schema, order_by: OrderBy, times: Sequence[str]
) -> tuple[Pair, ...]:
    names = join_order(join, order_by) or ()
    if order_by is None and not names:
        window = joined(spec, join)
        if kind_of(window).needs.watermark:
            names = (choose_event_time(window, left, None, times),)
        else:
            names = choose_order(window, left, None, times).columns or (tuple(times) if len(times) == 1 else ())
    if not names:
        raise ConfigError(f"{who}: two logs have no common order of arrival", f"say by COLUMN in {who}, or --order-by")
    return join.orders or tuple(Pair(name, name) for name in names)


def _fields(
    who: str,
    join: Join,
    spec: WindowSpec,
    left: pa.Schema,
    right: pa.Schema,
    right_own: Collection[str],
    common: dict[str, pa.DataType],
) -> pa.Schema:
    """Return the columns of the one sequence. ``common``: the types of the key and the order."""
    if join.where is not None:
        with naming_option(who):
            bind_condition(join.where, right)
    taken = join.columns(name for name in right.names if name not in right_own)
    given = [(own, name) for name, own in taken.items()]
    _, fields = bind_taken(who, join.name, given, [*left.names, SIDE], right, _CALLED[1])
    stored = [field for field, (own, _) in zip(fields, given, strict=True) if own not in join.right_key]
    others = [*(join.where.columns if join.where is not None else ()), *of_right_side(spec)]
    for own in dict.fromkeys(others):
        if own in right.names and join.stored(own) not in (*left.names, *(field.name for field in stored)):
            stored.append(pa.field(join.stored(own), right.field(own).type))
    if SIDE in left.names:
        raise ConfigError(f"{who}: the left has a column {SIDE!r}, and joins have another", "rename it")
    side = pa.field(SIDE, pa.string() if join.how == "union" else pa.int8())
    own_fields = [field.with_type(common.get(field.name, field.type)) for field in left]
    return pa.schema([*stored, side, *own_fields])


def of_right_side(spec: WindowSpec) -> tuple[str, ...]:
    """Return the columns of the right that a window on each side names, under their own names."""
    side: Sliding | Batched | None = spec.right if isinstance(spec, SideWindows) else None
    if isinstance(side, Sliding):
        return tuple(each.column for each in side.evict.distances if each.column is not None)
    return () if side is None else (*side.partition_by, *([] if side.unique is None else [side.unique]))


def merge_sides(sides: Sides, left: pa.Table | None, right: pa.Table | None) -> pa.Table:
    """Return the rows of both sides as they arrive: the right first, or the left where the join is strict."""
    given = [(RIGHT, right), (LEFT, left)]
    parts = [
        sides.padded(rows, side, sides.schema.names)
        for side, rows in (reversed(given) if sides.join.strict else given)
        if rows is not None
    ]
    plain = [pa.table([_decoded(column) for column in part.columns], schema=sides.schema) for part in parts]
    return pa.concat_tables([sides.schema.empty_table(), *plain])


def _decoded(column: pa.ChunkedArray) -> pa.Array:
    whole = combined(column)
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
