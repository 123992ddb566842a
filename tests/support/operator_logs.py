"""Logs that operators are called for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from support import strategies as my
from support.keeping_operators import KEEPER
from wincli.windowing.in_memory import aggregate

KINDS = [pa.int64(), pa.float64(), pa.decimal128(18, 3), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.date32()]
ENDS = st.sampled_from(["flush", "drop"])


@dataclass(frozen=True, slots=True)
class Log:
    """Rows with ``id``, attribute ``a``, ``flag``, perhaps a key ``k``, a ``clock`` and a second order column ``t``."""

    table: pa.Table
    key: tuple[str, ...]
    order: tuple[str, ...]

    def kind(self, name: str) -> pa.DataType:
        return self.table.schema.field(name).type


@st.composite
def logs(draw: st.DrawFn, clocked: bool = False, falling: bool = False, kinds: Sequence[pa.DataType] = KINDS) -> Log:
    """``clocked``: ordered by the clock; else perhaps in arrival order. ``falling``: the clock may fall a lot."""
    size = draw(st.integers(0, 25))

    def some(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    kind = draw(st.sampled_from(kinds))
    clock = accumulate(some(my.STEPS if falling else my.NEAR), initial=draw(st.integers(-50, 100)))
    columns = {
        "id": pa.array(range(size), pa.int64()),
        "a": pa.array(list(accumulate(some(my.STEPS), initial=0))[1:], pa.int64()),
        "flag": pa.array(some(st.booleans()), pa.bool_()),
        "k": pa.array(some(st.sampled_from(["x", "y", "z"])), pa.string()),
        "clock": my.array([my.value_of(n, kind) for n in clock][1:], kind),
        "t": pa.array(some(st.integers(0, 2)), pa.int8()),
    }
    orders = [("clock",), ("clock", "t")] if clocked else [(), ("clock",), ("t", "clock")]
    return Log(pa.table(columns), draw(st.sampled_from([(), ("k",)])), draw(st.sampled_from(orders)))


def log_of(
    a: Sequence[int | None] | None = None, clock: Sequence[int] | None = None, key: tuple[str, ...] = (), **more: Any
) -> Log:
    """A log ordered by a clock that goes 10, 11, 12, ... unless given."""
    size = len(a if a is not None else clock or ())
    columns = {"id": pa.array(range(size), pa.int64()), **more}
    columns["a"] = pa.array(list(range(size)) if a is None else list(a), pa.int64())
    columns["clock"] = pa.array(list(range(10, 10 + size)) if clock is None else list(clock), pa.int64())
    return Log(pa.table(columns), key, ("clock",))


def given_by(log: Log, window: str, operator: str = KEEPER, **options: Any) -> pa.Table:
    """What an operator gives for a window over a log."""
    order: Any = list(log.order) or "arrival"
    return aggregate(log.table, window, key=log.key, order_by=order, operator=operator, **options)
