"""Random streams for the laws: ties, gaps, falls and extremes, in every type that sorts.

`streams` draws an Arrow table with a row number ``id``, an attribute ``a``, a flag ``flag``, up to three key columns
``k0..``, and up to two order columns ``t0..``. Profiles: the default, whose examples are the same in every run, so that
a failure is the change's own; ``full``, with twelve times as many, for the night (scripts/nightly); and ``deep`` with
thousands of random ones: ``HYPOTHESIS_PROFILE=deep`` in the environment, or ``--hypothesis-profile=deep``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from references.tumbling import seconds_per_unit

settings.register_profile(
    "default", max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", settings.get_profile("default"), max_examples=100)
settings.register_profile("deep", settings.get_profile("default"), max_examples=5_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))  # or it would be another where CI is set


_MOST = 50  # examples of one law in the profile of `scripts/test`


def examples(full: int, **others: Any) -> settings:
    """Settings of a law with so many examples in the profile ``full``; in other profiles as many in proportion."""
    share = settings().max_examples
    found = full * share // 100
    return settings(max_examples=max(1, found if share >= 100 else min(found, _MOST)), **others)


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float32(), pa.float64()]
DECIMALS = [pa.decimal128(5, 2), pa.decimal128(18, 3), pa.decimal128(38, 10)]
TIMESTAMPS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Paris")]
MEASURES = [*INTEGERS, *FLOATS, *DECIMALS, pa.date32(), *TIMESTAMPS]
"""What a delta or a gap can be over, and what a clock can read."""
SORTABLE = [*MEASURES, pa.decimal256(60, 4), pa.string(), pa.large_string(), pa.bool_(), pa.binary()]

NEAR = st.sampled_from([0, 0, 0, 1, 1, 1, 2, 2, 3, 5, 10])
STEPS = st.one_of(NEAR, NEAR, NEAR, st.sampled_from([-1, -2, -3, -50, 40, 60]))
WORDS = ["", "a", "A", "aa", "b", "Z", "é", "z\u0301", "\U0001f600", "\uffff", "a b", "1", "10", "9"]


@dataclass(frozen=True, slots=True)
class Stream:
    """A table and how to read it: ``order`` is empty for arrival."""

    table: pa.Table
    key: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def order_by(self) -> Any:
        return list(self.order) or "arrival"

    def kind(self, name: str) -> pa.DataType:
        return self.table.schema.field(name).type


# --- values -------------------------------------------------------------------------------------------------------


def limits(kind: pa.DataType) -> tuple[int, int]:
    """The lowest and highest integer that `value_of` can turn into a value of a type."""
    if pa.types.is_decimal(kind):
        top = min(10**kind.precision - 1, 2**63 - 1)  # beyond 64 bit: reason `type_overflow`
        return -top, top
    if pa.types.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        return int(info.min), int(info.max)
    if pa.types.is_date32(kind):
        return -(2**31), 2**31 - 1
    return (-(2**63), 2**63 - 1) if pa.types.is_timestamp(kind) else (-(2**20), 2**20)


def value_of(n: int, kind: pa.DataType) -> Any:
    """The n-th value of a type: the unit is one tick, one last decimal place, a tenth (float)."""
    low, high = limits(kind)
    n = max(low, min(high, n))
    if pa.types.is_decimal(kind):
        return Decimal(f"{n}E-{kind.scale}")
    if pa.types.is_floating(kind):
        return float(np.float32(n / 10)) if kind.bit_width == 32 else n / 10
    if pa.types.is_boolean(kind):
        return n % 2 == 1
    word = WORDS[n % len(WORDS)]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return word
    return word.encode() if pa.types.is_binary(kind) else n


def extremes(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """The ends of a type and what is beside them, every power of two between."""
    if pa.types.is_floating(kind):
        top = float(np.finfo(np.float32 if kind.bit_width == 32 else np.float64).max)
        edges = [0.0, -0.0, top, -top, float("inf"), float("-inf"), 1.0, 2.0**24]
        return st.one_of(st.sampled_from(edges), st.floats(allow_nan=False, width=32 if kind.bit_width == 32 else 64))
    low, high = limits(kind)
    near = st.sampled_from([low, low + 1, low + 2, high, high - 1, high - 2, 0, -1, 1])
    return st.one_of(near, st.integers(low, high)).map(lambda n: value_of(n, kind))


@st.composite
def walk(draw: st.DrawFn, kind: pa.DataType, size: int) -> list[Any]:
    """A sequence that mostly creeps up, with ties, jumps and falls, somewhere in the range of the type."""
    low, high = limits(kind)
    start = draw(st.sampled_from([0, 100, -100, 1_600_000_000, low, high - 50]))
    steps = draw(st.lists(STEPS, min_size=size, max_size=size))
    return [value_of(n, kind) for n in accumulate(steps, initial=start)][1:]


@st.composite
def column(draw: st.DrawFn, kind: pa.DataType, size: int) -> pa.Array:
    """A walk, or a lot of extremes, or a few values again and again."""
    shape = draw(st.sampled_from(["walk", "walk", "extremes", "few"]))
    if shape == "walk":
        return array(draw(walk(kind, size)), kind)
    some = extremes(kind) if shape == "extremes" else st.integers(0, 3).map(lambda n: value_of(n, kind))
    return array(draw(st.lists(some, min_size=size, max_size=size)), kind)


def array(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(list(values), kind)


# --- streams ------------------------------------------------------------------------------------------------------


@st.composite
def streams(
    draw: st.DrawFn,
    attribute: Sequence[pa.DataType] = MEASURES,
    orders: int = 2,
    max_size: int = 40,
) -> Stream:
    """Draw a stream with an attribute of one of the types, up to three keys, and up to ``orders`` order columns."""
    size = draw(st.integers(0, max_size))
    columns: dict[str, Any] = {"id": array(range(size), pa.int64())}
    columns["a"] = draw(column(draw(st.sampled_from(attribute)), size))
    columns["flag"] = array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), pa.bool_())
    key = draw(st.lists(st.sampled_from(SORTABLE), max_size=3))
    order = draw(st.lists(st.sampled_from(SORTABLE), max_size=orders))
    columns |= {f"k{index}": draw(key_column(kind, size)) for index, kind in enumerate(key)}
    columns |= {f"t{index}": draw(column(kind, size)) for index, kind in enumerate(order)}
    key_names, order_names = ([name for name in columns if name[0] == letter] for letter in "kt")
    if orders and draw(st.integers(0, 3)) == 0:  # one column in several roles
        key_names, order_names = draw(st.sampled_from(shared_roles(key_names, order_names)))
    return Stream(draw(chunked(pa.table(columns))), tuple(key_names), tuple(order_names))


def shared_roles(key: list[str], order: list[str]) -> list[tuple[list[str], list[str]]]:
    """Keys and orders of which some are the attribute, or both key and order."""
    return [(key, ["a", *order]), ([*key, "a"], order), (["a"], ["a"]), ([*order, *key], order), (key, [*order, *key])]


@st.composite
def clocked(draw: st.DrawFn) -> Stream:
    """A stream whose order column is a clock that creeps over a grid of modest size."""
    stream = draw(streams(orders=0, max_size=25))
    size = len(stream.table)
    kind = draw(st.sampled_from(MEASURES))
    steps = draw(st.lists(STEPS, min_size=size, max_size=size))
    ticks = accumulate(steps, initial=draw(st.integers(-50, 100)))
    clock = array([value_of(n, kind) for n in ticks][1:], kind)
    return replace(stream, table=stream.table.append_column("clock", clock), order=("clock",))


@st.composite
def key_column(draw: st.DrawFn, kind: pa.DataType, size: int) -> pa.Array:
    """A few keys, some of them at the ends of the type."""
    few = draw(
        st.lists(st.one_of(st.integers(0, 9).map(lambda n: value_of(n, kind)), extremes(kind)), min_size=1, max_size=4)
    )
    return array(draw(st.lists(st.sampled_from(few), min_size=size, max_size=size)), kind)


@st.composite
def chunked(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    """The same table in one piece or cut anywhere, so that chunks have offsets and may be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(table)), max_size=2)))
    edges = [0, *cuts, len(table)]
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(edges)])


# --- what a spec asks for -----------------------------------------------------------------------------------------


def text(amount: Fraction) -> str:
    """An amount as a spec writes it: plain decimal digits, exact."""
    scaled, places = amount, 0
    while scaled.denominator != 1:
        scaled, places = scaled * 10, places + 1
    return format(Decimal(f"{scaled.numerator}E-{places}"), "f")


@st.composite
def amounts(draw: st.DrawFn, kind: pa.DataType) -> Fraction:
    """A delta or gap that falls among the steps of a walk over a type, on them and between them, or far beyond."""
    if pa.types.is_floating(kind):
        return Fraction(draw(st.sampled_from(["0", "0.1", "0.2", "0.3", "0.25", "1", "2.5", "16777216"])))
    if draw(st.integers(0, 9)) == 0:
        return Fraction(draw(st.sampled_from([2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 2**64, 255, 127])))
    ticks = draw(st.sampled_from([Fraction(n) for n in (0, 0, 1, 2, 2, 3, 7, 50)] + [Fraction(1, 2), Fraction(5, 2)]))
    unit = Fraction(1, 10**kind.scale) if pa.types.is_decimal(kind) else seconds_per_unit(kind)
    return ticks * unit


@st.composite
def grids(draw: st.DrawFn, kind: pa.DataType) -> tuple[Fraction, Fraction | None]:
    """The length and the origin of a grid whose ticks are values of a type."""
    unit = Fraction(1, 10) if pa.types.is_floating(kind) else seconds_per_unit(kind)
    unit = Fraction(1, 10**kind.scale) if pa.types.is_decimal(kind) else unit
    length = draw(st.sampled_from([1, 2, 3, 5, 10, 60]))
    origin = draw(st.one_of(st.none(), st.integers(-70, 70)))
    return length * unit, None if origin is None else origin * unit


@st.composite
def marks(draw: st.DrawFn, size: int) -> list[int]:
    """Window marks, several at one place as well, before the first row and behind the last."""
    return sorted(draw(st.lists(st.integers(0, size), max_size=8)))
