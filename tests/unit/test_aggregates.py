"""Laws of the aggregates: each is what its row-at-a-time twin says, for any type, nulls, NaN and any panes."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aggregate_reference import REFERENCE, TooWideError, expected
from windowing.aggregates import TABLE, PaneOverflow, bind, compute, kernels, quantile_kernels, warm
from windowing.spec import AggregateCall, Column

FEW = settings(max_examples=12, deadline=None)

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

NUMBERS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
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
TIMES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "date32": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    "date64": (pa.date64(), st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    "timestamp": (pa.timestamp("us"), MOMENT),
    "timestamp with zone": (pa.timestamp("us", "Europe/Paris"), MOMENT.map(lambda m: m.replace(tzinfo=dt.UTC))),
    "duration": (pa.duration("us"), st.timedeltas(dt.timedelta(-1000), dt.timedelta(1000))),
}
SORTABLE: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
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
EVERYTHING: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    **SORTABLE,
    "list": (pa.list_(pa.int64()), st.lists(SMALL, max_size=3)),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.string()}), st.fixed_dictionaries({"a": SMALL, "b": st.text("ab")})),
}


def call(function: str, *arguments: Column | Fraction | str) -> AggregateCall:
    return AggregateCall("out", function, arguments)


@st.composite
def samples(
    draw: st.DrawFn, *kinds: tuple[pa.DataType, st.SearchStrategy[Any]]
) -> tuple[pa.RecordBatch, list[tuple[int, int]]]:
    """Columns c0, c1, .. with nulls in some, and panes in any order: empty, overlapping, the whole."""
    size = draw(st.integers(0, 12))
    arrays = []
    for dtype, values in kinds:
        some = draw(st.sampled_from([values, values | st.none()]))
        column = draw(st.lists(some, min_size=size, max_size=size))
        arrays.append(pa.array(column, dtype))
    bound = st.integers(0, size)
    panes = draw(st.lists(st.tuples(bound, bound).map(lambda p: (min(p), max(p))), max_size=6))
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(kinds))]), [*panes, (0, size)]


def bounds(panes: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([lo for lo, _ in panes], np.int64), np.array([hi for _, hi in panes], np.int64)


def run(function: str, rows: pa.RecordBatch, literals: list[Any], panes: list[tuple[int, int]]) -> list[Any]:
    bound = bind(call(function, *map(Column, rows.schema.names), *literals), rows.schema)
    result = compute(bound, rows, *bounds(panes))
    assert result.type == bound.type
    assert len(result) == len(panes)
    result.validate(full=True)
    return list(result.to_pylist())


def check(function: str, rows: pa.RecordBatch, panes: list[tuple[int, int]], literals: list[Any] | None = None) -> None:
    literals = literals or []
    columns = [column.to_pylist() for column in rows.columns]
    plain = [int(v) if isinstance(v, Fraction) and function == "nth" else v for v in literals]
    try:
        wanted = expected(function, columns, plain, panes)
    except TooWideError:
        with pytest.raises(PaneOverflow) as caught:
            run(function, rows, literals, panes)
        assert caught.value.pane == first_overflow(function, columns, plain, panes)
        assert caught.value.column == "c0"
        return
    if function == "range" and rows.schema.types[0] in (pa.float16(), pa.float32()):
        narrow = rows.schema.types[0].to_pandas_dtype()
        wanted = [None if value is None else float(narrow(value)) for value in wanted]
    got = run(function, rows, literals, panes)
    for have, want in zip(got, wanted, strict=True):
        assert near(have, want, slack(function, columns)), (function, have, want)


def slack(function: str, columns: list[list[Any]]) -> float:
    """What may be lost to cancellation: the last bits of a double-double, or of the two floats of a quantile."""
    share = {"sum": 1e-29, "mean": 1e-29, "wavg": 1e-29, "quantile": 1e-15, "median": 1e-15}.get(function, 0.0)
    numbers = [v for column in columns for v in column if isinstance(v, (int, float, decimal.Decimal))]
    return share * sum(abs(float(v)) for v in numbers if math.isfinite(v))


def first_overflow(function: str, columns: list[list[Any]], literals: list[Any], panes: list[tuple[int, int]]) -> int:
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


def each(kinds: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("kind", [pytest.param(kind, id=name) for name, kind in kinds.items()])


def test_every_aggregate_has_a_twin() -> None:
    assert list(REFERENCE) == list(TABLE)


def test_an_example_drawn() -> None:
    """Rows and panes, the third one empty, the last one over all.

    row     0    1    2    3    4    5
    x       3    -    1    1    2    -
    panes   [---------)    [---------)
                 [----)    |
            [-----------------------------)
    """
    rows = pa.RecordBatch.from_pydict({"x": pa.array([3, None, 1, 1, 2, None])})
    panes = [(0, 2), (3, 5), (1, 2), (3, 3), (0, 6)]
    assert run("count", rows, [], panes) == [1, 2, 0, 0, 4]
    assert run("sum", rows, [], panes) == [3, 3, None, None, 7]
    assert run("min", rows, [], panes) == [3, 1, None, None, 1]
    assert run("min_count", rows, [], panes) == [1, 1, 0, 0, 2]
    assert run("last", rows, [], panes) == [3, 2, None, None, 2]
    assert run("median", rows, [], panes) == [3.0, 1.5, None, None, 1.5]
    assert run("collect", rows, [], panes) == [[3], [1, 2], None, None, [3, 1, 1, 2]]


def test_count_of_rows_counts_nulls_too() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([None, 1, None])})
    bound = bind(call("count"), rows.schema)
    assert bound.columns == ()
    assert compute(bound, rows, *bounds([(0, 3), (1, 1), (2, 3)])).to_pylist() == [3, 0, 1]


@each(NUMBERS)
@FEW
@given(data=st.data(), share=st.integers(0, 1000).map(lambda n: Fraction(n, 1000)))
def test_of_numbers(kind: Any, data: st.DataObject, share: Fraction) -> None:
    rows, panes = data.draw(samples(kind))
    for function in ("sum", "mean", "median", "product", "range"):
        check(function, rows, panes)
    check("quantile", rows, panes, [share])


@each(TIMES)
@FEW
@given(data=st.data())
def test_of_times(kind: Any, data: st.DataObject) -> None:
    check("range", *data.draw(samples(kind)))


@pytest.mark.parametrize("kind", ["bool", "duration"])
@FEW
@given(data=st.data())
def test_sums_of_what_is_no_number(kind: str, data: st.DataObject) -> None:
    check("sum", *data.draw(samples(SORTABLE[kind])))


@each({name: kind for name, kind in NUMBERS.items() if kind[1] is not WIDE})
@FEW
@given(data=st.data())
def test_deviations(kind: Any, data: st.DataObject) -> None:
    rows, panes = data.draw(samples(kind))
    for function in ("var", "stddev", "var_pop", "stddev_pop"):
        check(function, rows, panes)


@each(SORTABLE)
@FEW
@given(data=st.data())
def test_of_values_that_sort(kind: Any, data: st.DataObject) -> None:
    rows, panes = data.draw(samples(kind))
    for function in ("min", "max", "mode", "count_distinct", "collect_distinct", "min_count", "max_count"):
        check(function, rows, panes)


@each(EVERYTHING)
@FEW
@given(data=st.data(), place=st.integers(-4, 4))
def test_of_any_type(kind: Any, data: st.DataObject, place: int) -> None:
    rows, panes = data.draw(samples(kind))
    for function in ("count", "first", "last", "collect"):
        check(function, rows, panes)
    check("nth", rows, panes, [Fraction(place)])


@pytest.mark.parametrize("by", ["small ints", "float64", "string", "timestamp", "decimal(38,5)"])
@pytest.mark.parametrize("target", ["string", "list", "float64"])
@FEW
@given(data=st.data())
def test_arg_extremes(target: str, by: str, data: st.DataObject) -> None:
    rows, panes = data.draw(samples(EVERYTHING[target], EVERYTHING[by]))
    check("arg_min", rows, panes)
    check("arg_max", rows, panes)


@pytest.mark.parametrize("kind", ["small ints", "float64", "decimal(12,2)", "float32"])
@FEW
@given(data=st.data())
def test_weighted_means(kind: str, data: st.DataObject) -> None:
    weights = (pa.float64(), st.sampled_from([0.0, 0.25, 1.0, 2.5, 100.0, math.inf, math.nan]))
    dtype, values = NUMBERS[kind]
    check("wavg", *data.draw(samples((dtype, values), weights)))


@FEW
@given(data=st.data())
def test_of_booleans(data: st.DataObject) -> None:
    rows, panes = data.draw(samples(SORTABLE["bool"]))
    for function in ("bool_and", "bool_or", "mean"):
        check(function, rows, panes)


@pytest.mark.parametrize("kind", ["string", "large string", "string view", "dictionary"])
@FEW
@given(data=st.data(), separator=st.text("-, ", max_size=2))
def test_string_joins(kind: str, data: st.DataObject, separator: str) -> None:
    check("string_join", *data.draw(samples(SORTABLE[kind])), [separator])


@pytest.mark.parametrize(
    "function", ["sum", "mean", "var", "wavg", "quantile", "min", "mode", "collect", "string_join"]
)
@FEW
@given(data=st.data())
def test_a_pane_does_not_see_how_the_work_was_cut(function: str, data: st.DataObject) -> None:
    """The same bits from the whole batch, from a slice of it that just holds the pane, and from a copy of that."""
    kind = SORTABLE["string"] if function == "string_join" else (pa.float64(), WILD)
    rows, panes = data.draw(samples(*[kind] * (2 if function == "wavg" else 1)))
    literals: list[Any] = {"quantile": [Fraction(9, 10)], "string_join": ["-"]}.get(function, [])
    whole = run(function, rows, literals, panes)
    for (lo, hi), value in zip(panes, whole, strict=True):
        part = rows.slice(lo, hi - lo)
        copy = pa.RecordBatch.from_pylist(part.to_pylist(), rows.schema)
        assert repr(run(function, part, literals, [(0, hi - lo)])) == repr([value])
        assert repr(run(function, copy, literals, [(0, hi - lo)])) == repr([value])


def test_long_panes_select_the_right_quantile() -> None:
    numbers = random.Random(7)
    shapes = {
        "random": [numbers.random() for _ in range(5000)],
        "ascending": [float(i) for i in range(5000)],
        "organ pipe": [float(min(i, 5000 - i)) for i in range(5000)],
        "equal": [1.0] * 5000,
    }
    for values in shapes.values():
        rows = pa.RecordBatch.from_pydict({"x": values})
        for share in (Fraction(0), Fraction(333, 1000), Fraction(95, 100), Fraction(1)):
            check("quantile", rows, [(0, 5000), (10, 4000)], [share])


def test_nothing_to_compute_gives_nothing() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([], pa.float64())})
    for name, aggregate in TABLE.items():
        if len(aggregate.parameters) == 1 and not name.startswith("bool"):
            assert run(name, rows, [], []) == []


def test_each_kernel_is_compiled_for_one_layout_of_arrays() -> None:
    """After `warm`, no real call compiles anything: not for read-only, writable, sliced, strided or holed arrays."""
    schema = pa.schema({"f": pa.float64(), "i": pa.int64(), "s": pa.string()})
    calls = [call(f, Column(c)) for f in ("sum", "max", "mode", "median", "var") for c in ("f", "i")]
    bound = [
        bind(c, schema) for c in [*calls, call("count"), call("count_distinct", Column("s")), call("min", Column("s"))]
    ]
    warm(bound, schema)
    before = compiled()
    for values in ([1.0, 2.0, 3.0, 4.0], [1.0, None, 3.0, None]):
        rows = pa.RecordBatch.from_arrays(
            [pa.array(values), pa.array(values).cast(pa.int64()), pa.array(values).cast(pa.string())], schema=schema
        )
        lo, hi = np.array([0, 9, 1, 9], np.int64)[::2], np.array([2, 3], np.int64)
        hi.flags.writeable = False
        for one in bound:
            compute(one, rows, lo, hi)
            compute(one, rows.slice(1), lo, hi)
    assert compiled() == before


def compiled() -> int:
    every = {**vars(kernels), **vars(quantile_kernels)}
    return sum(len(value.signatures) for value in every.values() if hasattr(value, "signatures"))
