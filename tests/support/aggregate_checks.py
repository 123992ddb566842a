"""What tests of aggregates share: columns of every type, laws over them, and how an answer is held against its twin."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from references.aggregates import TooWideError, expected
from support.strategies import examples
from wincli.windowing.aggregates.arithmetic import METHODS
from wincli.windowing.aggregates.inputs import PaneOverflow
from wincli.windowing.aggregates.selection import TIES
from wincli.windowing.aggregates.table import Bound, bind, compute, in_two_phases, is_mergeable, split
from wincli.windowing.language.spec import AggregateCall, Column
from wincli.windowing.rows.membership import Membership, Ranges, gathered

SHAPES = ("skew", "kurtosis", "skew_pop", "kurtosis_pop")
EXACT = {"sum", "mean", "wavg", "var", "stddev", "var_pop", "stddev_pop", *SHAPES}
"""Aggregates whose floats are the ones nearest to the exact values."""

FEW = examples(12, deadline=None)

TAME = st.floats(-1e100, 1e100).filter(lambda v: v == 0 or abs(v) > 1e-100)
PLAIN = st.sampled_from([0.0, -0.0, 0.1, -0.1, 1.0, 1e16, -1e16, 3.5]) | TAME
WILD = PLAIN | st.sampled_from([math.nan, math.inf, -math.inf])


def money(digits: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    context = decimal.Context(prec=80)
    whole = st.integers(1 - 10**digits, 10**digits - 1)
    return whole.map(lambda n: context.create_decimal(n).scaleb(-scale, context))


MONEY, WIDE = money(9, 2), money(38, 5)
MOMENT = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
SMALL = st.integers(-3, 3)
INT64 = st.integers(-(2**63), 2**63 - 1)

Kind = tuple[pa.DataType, st.SearchStrategy[Any]]

NUMBERS: dict[str, Kind] = {
    "small ints": (pa.int8(), SMALL),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), SMALL | INT64),
    "uint16": (pa.uint16(), st.integers(0, 2**16 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 3) | st.integers(0, 2**64 - 1)),
    "float64": (pa.float64(), WILD),
    "float32": (pa.float32(), st.floats(-1e10, 1e10, width=32) | st.sampled_from([math.nan, math.inf, -0.0])),
    "float16": (pa.float16(), st.floats(-100, 100, width=16) | st.just(math.nan)),
    "decimal(12,2)": (pa.decimal128(12, 2), MONEY),
    "decimal(38,5)": (pa.decimal128(38, 5), WIDE),
    "decimal64(12,2)": (pa.decimal64(12, 2), MONEY),
    "decimal256(60,5)": (pa.decimal256(60, 5), WIDE),
}
TIMES: dict[str, Kind] = {
    "date32": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    "date64": (pa.date64(), st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    "timestamp": (pa.timestamp("us"), MOMENT),
    "timestamp with zone": (pa.timestamp("us", "Europe/Paris"), MOMENT.map(lambda m: m.replace(tzinfo=dt.UTC))),
    "duration": (pa.duration("us"), st.timedeltas(dt.timedelta(-1000), dt.timedelta(1000))),
}
SORTABLE: dict[str, Kind] = {
    **NUMBERS,
    **TIMES,
    "time32": (pa.time32("s"), st.times().map(lambda t: t.replace(microsecond=0))),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.text("aâé\U0001f600", max_size=3)),
    "large string": (pa.large_string(), st.text("ab", max_size=3)),
    "string view": (pa.string_view(), st.text("ab", max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=2)),
    "fixed binary": (pa.binary(2), st.binary(min_size=2, max_size=2)),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), st.text("ab", max_size=2)),
    "null": (pa.null(), st.none()),
}
EVERYTHING: dict[str, Kind] = {
    **SORTABLE,
    "list": (pa.list_(pa.int64()), st.lists(SMALL, max_size=3)),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.string()}), st.fixed_dictionaries({"a": SMALL, "b": st.text("ab")})),
}


def call(function: str, *arguments: Column | Fraction | str) -> AggregateCall:
    return AggregateCall("out", function, arguments)


def batch(draw: st.DrawFn, size: int, *kinds: Kind) -> pa.RecordBatch:
    """Columns c0, c1, .. with nulls in some, as a slice of others."""
    arrays = []
    for dtype, values in kinds:
        some = draw(st.sampled_from([values, values | st.none()]))
        arrays.append(pa.array(draw(st.lists(some, min_size=size + 1, max_size=size + 1)), dtype))
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(kinds))]).slice(1)


def apart(*panes: tuple[int, int]) -> Ranges:
    """Half-open panes that share no row."""
    lo, hi = np.array(panes, np.int64).reshape(-1, 2).T
    return Ranges(lo, hi, np.zeros(len(panes), np.int64), True)


def _long(lo: Any, hi: Any) -> Ranges:
    return Ranges(lo, np.maximum.accumulate(hi), np.zeros(len(lo), np.int64), False)


_ROW, _LEAP = np.arange(700), np.arange(0, 640, 7)
LONG = {
    "short": _long(np.maximum(_ROW - 6, 0), _ROW + 1),
    "long": _long(np.maximum(_ROW - 255, 0), _ROW + 1),
    "growing": _long(np.zeros(700, np.int64), _ROW + 1),
    "shrinking": _long(_ROW, np.full(700, 700)),
    "leaping": _long(_LEAP, _LEAP + np.arange(len(_LEAP)) % 3 * 17),
}
"""Panes over one sequence of 700 rows."""


def rows_of(contents: Membership) -> list[list[int]]:
    """The rows of each pane, in order."""
    rows, bounds = gathered(contents, 0, len(contents))
    return [rows[lo:hi].tolist() for lo, hi in pairwise(bounds)]


def bound_to(function: str, rows: pa.RecordBatch, literals: Sequence[Any]) -> Bound:
    return bind(call(function, *map(Column, rows.schema.names), *literals), rows.schema)


def run(function: str, rows: pa.RecordBatch, literals: Sequence[Any], contents: Membership) -> list[Any]:
    bound = bound_to(function, rows, literals)
    result = compute(bound, rows, contents)
    assert (result.type, len(result)) == (bound.type, len(contents))
    result.validate(full=True)
    return list(result.to_pylist())


def in_parts(bound: Bound, rows: pa.RecordBatch, panes: Ranges, cuts: Sequence[int]) -> pa.Array:
    """The same in two phases: each pane is cut before some rows, and what comes of its parts is merged."""
    edges = [
        [lo, *(cut for cut in sorted(cuts) if lo <= cut <= hi), hi] for lo, hi in zip(panes.lo, panes.hi, strict=True)
    ]
    parts = [part for pane in edges for part in pairwise(pane)]
    ends = np.cumsum([0, *(len(pane) - 1 for pane in edges)])
    then = in_two_phases(bound, "part")
    columns = split(bound, rows, apart(*parts))
    merged = pa.RecordBatch.from_arrays(columns, names=list(then.columns))
    return compute(then, merged, Ranges(ends[:-1], ends[1:], ends[:-1], True))


def check(
    function: str,
    rows: pa.RecordBatch,
    contents: Membership,
    literals: Sequence[Any] = (),
    cuts: Sequence[int] = (),
) -> None:
    """Each pane has what the twin says; where they share no row, the same bits come of their parts in two phases."""
    columns = [column.to_pylist() for column in rows.columns]
    plain = [int(v) if isinstance(v, Fraction) and function == "nth" else v for v in literals]
    bound, panes = bound_to(function, rows, literals), rows_of(contents)
    ways = [lambda: run(function, rows, literals, contents)]
    if isinstance(contents, Ranges) and contents.disjoint and is_mergeable(bound, rows.schema, are_neighbours=True):
        ways.append(lambda: in_parts(bound, rows, contents, cuts).to_pylist())
    try:
        wanted = expected(function, columns, plain, panes)
    except TooWideError:
        for way in ways:
            with pytest.raises(PaneOverflow) as caught:
                way()
            assert caught.value.pane == first_overflow(function, columns, plain, panes)
            assert caught.value.column == "c0"
        return
    if function == "range" and rows.schema.types[0] in (pa.float16(), pa.float32()):
        narrow = rows.schema.types[0].to_pandas_dtype()
        wanted = [None if value is None else float(narrow(value)) for value in wanted]
    got, *merged = [way() for way in ways]
    for have, want in zip(got, wanted, strict=True):
        same = repr(have) == repr(want) if function in EXACT else near(have, want, slack(function, columns))
        assert same, (function, have, want)
    assert all(repr(each) == repr(got) for each in merged), (function, merged, got)


def slack(function: str, columns: list[list[Any]]) -> float:
    """What may be lost to cancellation of the two floats of a quantile."""
    share = dict.fromkeys(("quantile", "median", "mad"), 1e-15).get(function, 0.0)
    numbers = [v for column in columns for v in column if isinstance(v, (int, float, decimal.Decimal))]
    return share * sum(abs(float(v)) for v in numbers if math.isfinite(v))


def first_overflow(function: str, columns: list[list[Any]], literals: list[Any], panes: list[list[int]]) -> int:
    for i, pane in enumerate(panes):
        try:
            expected(function, columns, literals, [pane])
        except TooWideError:
            return i
    raise AssertionError


def near(have: Any, want: Any, slack: float) -> bool:
    """Equal; for floats within a few units in the last place, or within ``slack``."""
    if isinstance(want, float) and isinstance(have, float) and math.isfinite(want):
        return math.isclose(have, want, rel_tol=2e-15, abs_tol=slack)
    return repr(have) == repr(want) or (have == want and type(have) is type(want))


def laws(
    kinds: Mapping[str, Kind],
    *functions: str,
    beside: Mapping[str, Kind] | None = None,
    **literals: st.SearchStrategy[Any],
) -> list[Any]:
    """Functions that give what their twins give, over a column of each of the kinds and one of each in ``beside``.

    ``literals``: what some of them take beside the columns.
    """
    columns = {name: (kind,) for name, kind in kinds.items()}
    if beside is not None:
        columns = {f"{a} {b}": (kinds[a], beside[b]) for a in kinds for b in beside}
    every = {**dict.fromkeys(functions), **literals}
    return [pytest.param(every, some, id=f"{next(iter(every))} {name}") for name, some in columns.items()]


def named(*names: str) -> dict[str, Kind]:
    return {name: EVERYTHING[name] for name in names}


GRADED = st.builds(math.ldexp, st.integers(-(2**53), 2**53), st.integers(-1074, 970))
"""Floats of all sizes, with few bits or many."""
LARGEST, SUBNORMAL = 1.7976931348623157e308, 5e-324
ENDS = [0.0, -0.0, 1.0, -1.0, 3.0, 1e16, 1e308, -1e308, LARGEST, -LARGEST, SUBNORMAL, 2.0**-1022, 1e-160]
CANCELLING = [2.0**53, 1.0, -1.0, 0.5, 2.0**-60, 2.0**54, -(2.0**53), 1e308, -1e308]
EXTREMES: dict[str, Kind] = {
    "far from 0": (pa.float64(), st.integers(0, 3).map(lambda n: 1e15 + n / 8)),
    "of all sizes": (pa.float64(), GRADED),
    "subnormal": (pa.float64(), st.integers(-4, 4).map(lambda n: n * SUBNORMAL)),
    "ends of float64": (pa.float64(), st.sampled_from([*ENDS, math.nan, math.inf, -math.inf]) | st.floats()),
    "finite ends of float64": (pa.float64(), st.sampled_from(ENDS)),
    "cancelling": (pa.float64(), st.sampled_from(CANCELLING)),
    "halves": (pa.float32(), st.integers(-9, 9).map(lambda n: n / 2)),
    "nanoseconds": (pa.int64(), st.integers(0, 10**12).map(lambda n: 1_700_000_000_000_000_000 + n)),
    "ends of int64": (pa.int64(), st.sampled_from([-(2**63), 2**63 - 1, -1]) | st.integers(0, 2**60)),
    "ends of uint64": (pa.uint64(), st.sampled_from([2**64 - 1, 0, 1]) | st.integers(0, 2**64 - 1)),
    "wide decimal(38,5)": (pa.decimal128(38, 5), WIDE),
    "decimal(38,37)": (pa.decimal128(38, 37), money(38, 37)),
    "decimal(76,30)": (pa.decimal256(76, 30), money(76, 30)),
}
"""Numbers of which sums, means and deviations lose most on the way."""
WEIGHTS = {"weights": (pa.float64(), st.sampled_from([0.0, 0.25, 1.0, 2.5, 100.0, math.inf, math.nan]))}
SEPARATORS = st.text("-, ", max_size=2)

HASHABLE = [
    *("int32", "int64", "uint16", "uint64", "float64", "float32", "bool", "date32", "date64", "timestamp"),
    *("timestamp with zone", "string", "large string", "string view", "binary", "fixed binary"),
]
SHARES = st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1, 2), Fraction(999, 1000), Fraction(1)])

SAFE = st.floats(0.01, 100.0) | st.floats(-100.0, -0.01) | st.sampled_from([0.0, -0.0, math.inf, math.nan])
"""Factors whose products of twenty stay far from both ends of the floats."""
FACTORS = {**NUMBERS, **{f"float{w}": (NUMBERS[f"float{w}"][0], SAFE) for w in (16, 32, 64)}}

LAWS = [
    *laws(NUMBERS, "sum", "mean", "median", "range", quantile=st.integers(0, 1000).map(lambda n: Fraction(n, 1000))),
    *laws(TIMES, "range"),
    *laws(named("duration"), "sum"),
    *laws({**NUMBERS, **EXTREMES}, "var", "stddev", "var_pop", "stddev_pop"),
    *laws({**NUMBERS, **EXTREMES}, *SHAPES),
    *laws(NUMBERS, "mad"),
    *laws(NUMBERS, quantile=st.tuples(SHARES, st.sampled_from(METHODS))),
    *laws(SORTABLE, "rank"),
    *laws(NUMBERS, rank=st.sampled_from(TIES).map(lambda ties: (ties,))),
    *laws(EXTREMES, "sum", "mean"),
    *laws(EXTREMES, "wavg", beside={name: EXTREMES[name] for name in ("of all sizes", "ends of int64", "halves")}),
    *laws(EXTREMES, "wavg", beside={name: EXTREMES[name] for name in ("wide decimal(38,5)", "ends of float64")}),
    *laws(SORTABLE, "min", "max", "mode", "count_distinct", "collect_distinct", "min_count", "max_count"),
    *laws(EVERYTHING, "count", "first", "last", "collect", nth=st.integers(-4, 4).map(Fraction)),
    *laws(named("small ints", "float64", "decimal(12,2)"), "wavg", beside=WEIGHTS),
    *laws(named("bool"), "bool_and", "bool_or", "mean", "sum"),
    *laws(named("string", "large string", "string view", "dictionary"), string_join=SEPARATORS),
    *laws(FACTORS, "product"),
    *laws(named("float32"), "wavg", beside=WEIGHTS),
    *laws(
        named("string", "list", "float64"),
        *("arg_min", "arg_max"),
        beside=named("small ints", "float64", "string", "timestamp", "decimal(38,5)", "int64"),
    ),
    *laws(named(*HASHABLE), "hll_sketch", "approx_count_distinct"),
    *laws(named("small ints", "int64", "float64", "float32", "float16"), "kll_sketch", approx_quantile=SHARES),
]
