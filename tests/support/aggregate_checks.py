"""What tests of aggregates share: columns of every type, laws over them, and how an answer is held against its twin."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from references.aggregates import TooWideError, expected
from support.strategies import examples
from wincli.windowing.aggregates.inputs import PaneOverflow
from wincli.windowing.aggregates.table import bind, compute
from wincli.windowing.language.spec import AggregateCall, Column
from wincli.windowing.rows.membership import Membership, gathered

EXACT = {"sum", "mean", "wavg", "var", "stddev", "var_pop", "stddev_pop"}
"""Aggregates whose floats are the ones nearest to the exact values."""

FEW = examples(12, deadline=None)

TAME = st.floats(-1e100, 1e100).filter(lambda v: v == 0 or abs(v) > 1e-100)
PLAIN = st.sampled_from([0.0, -0.0, 0.1, -0.1, 1.0, 1e16, -1e16, 3.5]) | TAME
WILD = PLAIN | st.sampled_from([math.nan, math.inf, -math.inf])
MONEY = st.integers(-(10**9), 10**9).map(lambda n: decimal.Decimal(n).scaleb(-2))
WIDE = st.integers(-(10**38) + 1, 10**38 - 1).map(
    lambda n: decimal.Context(prec=40).create_decimal(n).scaleb(-5, decimal.Context(prec=40))
)
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
    """Columns c0, c1, .. with nulls in some."""
    arrays = []
    for dtype, values in kinds:
        some = draw(st.sampled_from([values, values | st.none()]))
        arrays.append(pa.array(draw(st.lists(some, min_size=size, max_size=size)), dtype))
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(kinds))])


def rows_of(contents: Membership) -> list[list[int]]:
    """The rows of each pane, in order."""
    rows, bounds = gathered(contents, 0, len(contents))
    return [rows[lo:hi].tolist() for lo, hi in pairwise(bounds)]


def run(function: str, rows: pa.RecordBatch, literals: list[Any], contents: Membership) -> list[Any]:
    bound = bind(call(function, *map(Column, rows.schema.names), *literals), rows.schema)
    result = compute(bound, rows, contents)
    assert result.type == bound.type
    assert len(result) == len(contents)
    result.validate(full=True)
    return list(result.to_pylist())


def check(function: str, rows: pa.RecordBatch, contents: Membership, literals: Sequence[Any] = ()) -> None:
    literals, panes = list(literals), rows_of(contents)
    columns = [column.to_pylist() for column in rows.columns]
    plain = [int(v) if isinstance(v, Fraction) and function == "nth" else v for v in literals]
    try:
        wanted = expected(function, columns, plain, panes)
    except TooWideError:
        with pytest.raises(PaneOverflow) as caught:
            run(function, rows, literals, contents)
        assert caught.value.pane == first_overflow(function, columns, plain, panes)
        assert caught.value.column == "c0"
        return
    if function == "range" and rows.schema.types[0] in (pa.float16(), pa.float32()):
        narrow = rows.schema.types[0].to_pandas_dtype()
        wanted = [None if value is None else float(narrow(value)) for value in wanted]
    got = run(function, rows, literals, contents)
    for have, want in zip(got, wanted, strict=True):
        same = repr(have) == repr(want) if function in EXACT else near(have, want, slack(function, columns))
        assert same, (function, have, want)


def slack(function: str, columns: list[list[Any]]) -> float:
    """What may be lost to cancellation of the two floats of a quantile."""
    share = {"quantile": 1e-15, "median": 1e-15}.get(function, 0.0)
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


@dataclass(frozen=True, slots=True)
class Law:
    """Functions that give what their twins give; ``literals`` are what some of them take beside the columns."""

    functions: tuple[str, ...]
    columns: tuple[Kind, ...]
    literals: Mapping[str, st.SearchStrategy[Any]]

    def check(self, data: st.DataObject, samples: Callable[..., st.SearchStrategy[Any]]) -> None:
        """Draw rows and panes from ``samples`` of the columns, and compare."""
        rows, panes = data.draw(samples(*self.columns))
        for function in self.functions:
            literal = self.literals.get(function)
            check(function, rows, panes, [] if literal is None else [data.draw(literal)])


def laws(
    kinds: Mapping[str, Kind],
    *functions: str,
    beside: Mapping[str, Kind] | None = None,
    **literals: st.SearchStrategy[Any],
) -> list[Any]:
    """A parameter ``law`` for a column of each of the kinds, with one of each kind in ``beside`` for a second one."""
    columns = {name: (kind,) for name, kind in kinds.items()}
    if beside is not None:
        columns = {f"{a} {b}": (kinds[a], beside[b]) for a in kinds for b in beside}
    every = (*functions, *literals)
    return [pytest.param(Law(every, some, literals), id=f"{every[0]} {name}") for name, some in columns.items()]


def named(*names: str) -> dict[str, Kind]:
    return {name: EVERYTHING[name] for name in names}


WEIGHTS = {"weights": (pa.float64(), st.sampled_from([0.0, 0.25, 1.0, 2.5, 100.0, math.inf, math.nan]))}
SEPARATORS = st.text("-, ", max_size=2)

SAFE = st.floats(0.01, 100.0) | st.floats(-100.0, -0.01) | st.sampled_from([0.0, -0.0, math.inf, math.nan])
"""Factors whose products of twenty stay far from both ends of the floats."""
FACTORS = {**NUMBERS, **{f"float{w}": (NUMBERS[f"float{w}"][0], SAFE) for w in (16, 32, 64)}}

LAWS = [
    *laws(NUMBERS, "sum", "mean", "median", "range", quantile=st.integers(0, 1000).map(lambda n: Fraction(n, 1000))),
    *laws(TIMES, "range"),
    *laws(named("duration"), "sum"),
    *laws({n: kind for n, kind in NUMBERS.items() if kind[1] is not WIDE}, "var", "stddev", "var_pop", "stddev_pop"),
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
]
