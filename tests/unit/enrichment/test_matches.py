"""Which row of a table a row of the input gets: against a reference, DuckDB and Polars, however the input is cut."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from unittest import mock

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.enrichment import matches
from support.in_memory_engine import MemorySink, MemorySource
from wincli.windowing.engine import enrich
from wincli.windowing.engine.enrich import TableState, load_tables
from wincli.windowing.enrichment.binding import bind_enrichment
from wincli.windowing.enrichment.step import Enrich
from wincli.windowing.errors import DataError
from wincli.windowing.language.enrichment import DIRECTIONS, parse_enrichment
from wincli.windowing.local_executor import LocalExecutor

EPOCH = dt.datetime(2026, 11, 1)
DAYS = [EPOCH, EPOCH.replace(day=2), EPOCH.replace(day=3)]

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [0, 1, -5, None]),
    "wide": (pa.int64(), [0, 1, -5, 2**62, None]),
    "unsigned": (pa.uint64(), [0, 2**64 - 1, 1, None]),
    "float": (pa.float64(), [0.0, -0.0, 1.0, math.nan, None]),
    "text": (pa.string(), ["", "a", "b", "ab", None]),
    "large": (pa.large_string(), ["", "a", "c", None]),
    "bool": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [dt.date(2026, 11, 1), dt.date(1970, 1, 1), None]),
    "decimal": (pa.decimal128(30, 2), [Decimal("1.00"), Decimal("-2.50"), None]),
    "bytes": (pa.binary(), [b"", b"a", b"\xff", None]),
}
ORDERS: dict[str, tuple[pa.DataType, list[Any], str, Any]] = {
    "int": (pa.int64(), [0, 1, 2, 5, -(2**62), 2**62, None], "2", 2),
    "float": (pa.float64(), [0.0, -0.0, 0.5, 2.0, math.inf, -math.inf, math.nan, None], "1.5", 1.5),
    "us": (pa.timestamp("us"), [EPOCH + dt.timedelta(seconds=i / 2) for i in range(7)] + [None], "1.5s", 1.5),
    "s": (pa.timestamp("s"), [EPOCH + dt.timedelta(seconds=i) for i in range(4)] + [None], "1s", 1),
    "day": (pa.date32(), [dt.date(2026, 11, 1 + i) for i in range(4)] + [None], "1d", 86400),
}


def enriched(
    texts: Sequence[str],
    left: pa.Table,
    tables: Sequence[pa.Table],
    cuts: Sequence[int] = (),
    right_cuts: Sequence[int] = (),
    *,
    is_large: bool = False,
    state: TableState | None = None,
    seed: int | None = None,
) -> MemorySource:
    """The rows of ``left`` with columns of each table; ``is_large``: through an exchange."""
    source = MemorySource([left], [cuts])
    sources = tuple(MemorySource([table], [right_cuts]) for table in tables)
    for text, table in zip(texts, sources, strict=True):
        one = Enrich(bind_enrichment(parse_enrichment(text), source.schema, table.schema), table)
        source = source.with_steps([*source.steps, one])
    executor = LocalExecutor(2, pickles=True, seed=seed, is_one_machine=seed is None)
    with mock.patch.object(enrich, "SMALL_TABLE", -1 if is_large else 1 << 20):
        return load_tables(source, MemorySink(), executor, state, 200)[0]


def broadcast(
    text: str, left: pa.Table, right: pa.Table, cuts: Sequence[int] = (), right_cuts: Sequence[int] = ()
) -> MemorySource:
    """A table that tasks read whole."""
    return enriched([text], left, [right], cuts, right_cuts)


def read_all(source: MemorySource, columns: Sequence[str] | None = None, dictionary: Sequence[str] = ()) -> pa.Table:
    names = list(columns or source.schema.names)
    tables = [source.read(split, names, dictionary).rows for split in source.splits]
    schema = pa.schema([source.schema.field(name) for name in names])
    return pa.concat_tables([table.cast(schema) for table in tables])


@st.composite
def tables(draw: st.DrawFn, key: str, order: str, is_unique: bool = False) -> pa.Table:
    kind, keys = KEYS[key]
    order_kind, orders, *_ = ORDERS[order]
    size = draw(st.integers(0, 12))
    chosen = [draw(st.sampled_from(keys)) for _ in range(size)]
    if is_unique:
        chosen = list({(0.0 if each == 0 and key == "float" else each): each for each in chosen}.values())
    ats = [draw(st.sampled_from(orders)) for _ in chosen]
    return pa.table(
        {
            "k": pa.array(chosen, kind),
            "j": pa.array([draw(st.sampled_from([1, 2])) if not is_unique else 1 for _ in chosen], pa.int64()),
            "t": pa.array(ats, order_kind),
            "v": pa.array(range(len(chosen)), pa.int64()),
            "w": pa.array([f"w{i % 3}" for i in range(len(chosen))]),
        }
    )


def seconds(amount: Any, order: str) -> Any:
    return dt.timedelta(seconds=amount) if order in {"us", "s", "day"} else amount


@given(st.data(), st.sampled_from(sorted(KEYS)), st.sampled_from(sorted(ORDERS)))
def test_as_of_gives_the_row_next_to_it_in_its_direction(data: st.DataObject, key: str, order: str) -> None:
    left, right = data.draw(tables(key, order)), data.draw(tables(key, order))
    strict, bounded, both = data.draw(st.booleans()), data.draw(st.booleans()), data.draw(st.booleans())
    _, _, within, amount = ORDERS[order]
    direction = data.draw(st.sampled_from(DIRECTIONS))
    keys, bound = "k, j" if both else "k", f" within {within}" * bounded + " strict" * strict
    text = f"p=x on {keys} asof {direction} t{bound}"
    cuts, is_large = data.draw(st.lists(st.integers(0, 12), max_size=3)), data.draw(st.booleans())
    seed = data.draw(st.none() | st.integers(0, 9))
    source = enriched([text], left, [right], cuts, cuts, is_large=is_large, seed=seed)
    dictionary = ["p_w"] if data.draw(st.booleans()) else []
    found = read_all(source, dictionary=dictionary)
    expected = matches(
        left.to_pylist(),
        right.to_pylist(),
        [("k", "k"), ("j", "j")] if both else [("k", "k")],
        ("t", "t"),
        seconds(amount, order) if bounded else None,
        strict,
        direction,
    )
    assert found["p_v"].to_pylist() == expected
    assert found["p_w"].to_pylist() == [None if place is None else f"w{place % 3}" for place in expected]
    assert found.select(left.column_names).equals(left) or key == "float" or order == "float"


@given(st.data(), st.sampled_from(sorted(KEYS)))
def test_lookup_gives_the_row_of_the_key(data: st.DataObject, key: str) -> None:
    left, right = data.draw(tables(key, "int")), data.draw(tables(key, "int", is_unique=True))
    source = enriched(["p=x on k take v, w as word"], left, [right], is_large=data.draw(st.booleans()))
    found = read_all(source, ["p_v", "word"], ["word"])
    assert found["p_v"].to_pylist() == matches(left.to_pylist(), right.to_pylist(), [("k", "k")])


@given(st.data(), st.sampled_from(["int", "text", "wide", "large", "day"]), st.sampled_from(["int", "us", "s"]))
def test_as_of_is_the_join_of_duckdb(data: st.DataObject, key: str, order: str) -> None:
    """DuckDB does not say which of several rows of one instant it takes, so these differ in their order."""
    left, right = data.draw(tables(key, order)), data.draw(tables(key, order))
    strict, direction = data.draw(st.booleans()), data.draw(st.sampled_from(["backward", "forward"]))
    right = pa.Table.from_pylist(
        list({(row["k"], row["t"]): row for row in right.to_pylist()}.values()), schema=right.schema
    )
    found = read_all(broadcast(f"p=x on k asof {direction} t{' strict' * strict}", left, right))
    with duckdb.connect() as db:
        db.register("l", left)
        db.register("r", right)
        sign = (">" if direction == "backward" else "<") + "=" * (not strict)
        query = f"select l.v, r.v from l asof left join r on l.k = r.k and l.t {sign} r.t order by l.v"
        assert list(zip(found["v"].to_pylist(), found["p_v"].to_pylist(), strict=True)) == db.execute(query).fetchall()


@given(st.data(), st.sampled_from(["int", "us"]), st.booleans(), st.sampled_from(["backward", "forward"]))
def test_as_of_within_a_tolerance_is_the_join_of_polars(
    data: st.DataObject, order: str, strict: bool, direction: Any
) -> None:
    left, right = (data.draw(tables("text", order)).drop_columns(["j", "w"]) for _ in range(2))
    left, right = (table.filter(table["t"].is_valid()).sort_by("t") for table in (left, right))
    right = right.filter(right["k"].is_valid())
    _, _, within, amount = ORDERS[order]
    found = read_all(broadcast(f"p=x on k asof {direction} t within {within}{' strict' * strict}", left, right))
    joined = pl.DataFrame(pl.from_arrow(left)).join_asof(
        pl.DataFrame(pl.from_arrow(right)),
        on="t",
        by="k",
        strategy=direction,
        tolerance=seconds(amount, order),
        allow_exact_matches=not strict,
        check_sortedness=False,
    )
    assert found["p_v"].to_pylist() == joined["v_right"].to_list()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1, 2], pa.int8()), pa.array([2, 3], pa.uint32())),
        (pa.array([1, 2], pa.int64()), pa.array([2, 3], pa.uint64())),
        (pa.array([1, 2], pa.int64()), pa.array([2.0, 2.5])),
        (pa.array([Decimal("1.5"), Decimal(2)]), pa.array([2, 3])),
        (pa.array(["a", "b"]), pa.array(["b", "c"], pa.large_string())),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"])),
        (pa.array([b"a", b"b"]), pa.array([b"b", b"c"], pa.binary(1))),
        (pa.array(DAYS[:2], pa.timestamp("s")), pa.array(DAYS[1:], pa.timestamp("ns"))),
        (pa.array(DAYS[:2], pa.timestamp("ms")), pa.array([day.date() for day in DAYS[1:]])),
    ],
    ids=str,
)  # fmt: skip
def test_types_that_differ_are_compared_by_value(left: pa.Array, right: pa.Array) -> None:
    if pa.types.is_dictionary(left.type):
        left = left.dictionary_decode()
    found = read_all(broadcast("p=x on k", pa.table({"k": left}), pa.table({"k": right, "v": [7, 8]})))
    assert found["p_v"].to_pylist() == [None, 7]


def test_the_last_of_one_instant_counts_and_far_distances_do_not_wrap() -> None:
    right = pa.table({"k": ["a"] * 4, "t": [5, 1, 5, 1], "v": [0, 1, 2, 3]})
    found = read_all(broadcast("p=x on k asof t", pa.table({"k": ["a"] * 3, "t": [1, 4, 5]}), right, right_cuts=[1, 3]))
    assert found["p_v"].to_pylist() == [3, 3, 2]
    far, near = ({"k": ["a"], "t": [end], "v": [1]} for end in (2**63 - 1, -(2**63)))
    for within, value in ((" within 9223372036854775807", None), ("", 1)):
        found = read_all(broadcast(f"p=x on k asof t{within}", pa.table(far).drop("v"), pa.table(near)))
        assert found["p_v"].to_pylist() == [value]


@pytest.mark.parametrize(
    ("how", "pandas"),
    [
        ("asof t", ["a", "a", "d"]),
        ("asof t strict", ["a", "a", "b"]),
        ("asof t within 1", [None, None, "d"]),
        ("asof forward t", ["b", "b", "c"]),
        ("asof forward t strict", ["b", "b", None]),
        ("asof forward t within 1", [None, None, "c"]),
        ("asof nearest t", ["a", "a", "d"]),
        ("asof nearest t strict", ["a", "a", "b"]),
        ("asof nearest t within 1", [None, None, "d"]),
    ],
)
@pytest.mark.parametrize("is_large", [False, True])
def test_directions_as_pandas_has_them_drawn(how: str, pandas: list[str | None], is_large: bool) -> None:
    """Answers of ``merge_asof`` of pandas 3.1.1: of two equally near rows the one before; of Polars the one after.

    left         5 5     8
    right    3       7   8 8
             a       b   c d
    """
    left = pa.table({"k": [1] * 3, "t": [5, 5, 8]})
    right = pa.table({"k": [1] * 4, "t": [3, 7, 8, 8], "v": ["a", "b", "c", "d"]})
    assert (
        read_all(enriched([f"p=x on k {how}"], left, [right], [1], [2], is_large=is_large))["p_v"].to_pylist() == pandas
    )


def test_far_distances_of_both_directions_do_not_wrap() -> None:
    end = 2**63
    left = pa.table({"k": [1, 1, 2], "t": [0, -2, -end]})
    right = pa.table({"k": [1, 1, 2], "t": [-end, end - 1, end - 1], "v": [0, 1, 2]})
    assert read_all(broadcast("p=x on k asof nearest t", left, right))["p_v"].to_pylist() == [1, 0, 2]
    assert read_all(broadcast("p=x on k asof nearest t within 5", left, right))["p_v"].to_pylist() == [None] * 3


def test_a_long_log_in_any_order_of_time_finds_its_rows() -> None:
    size = 3_000
    right = pa.table({"k": ["a"] * size, "t": range(0, 2 * size, 2), "v": range(size)})
    times = [*range(2 * size), *range(2 * size, 0, -7), 5, 2 * size, 0, -1]
    found = read_all(broadcast("p=x on k asof t take v", pa.table({"k": ["a"] * len(times), "t": times}), right))
    assert found["p_v"].to_pylist() == [min(at // 2, size - 1) if at >= 0 else None for at in times]
    left = pa.table({"k": ["a"] * len(times), "t": times})
    found = read_all(broadcast("p=x on k asof forward t take v", left, right))
    last = 2 * size - 2
    assert found["p_v"].to_pylist() == [max(0, -(-at // 2)) if at <= last else None for at in times]


LARGE = pytest.mark.parametrize("is_large", [False, True])


@LARGE
def test_a_duplicate_key_is_an_error_with_both_places(is_large: bool) -> None:
    right = pa.table({"k": ["b", "a", "c", "a", "b", None, None], "v": range(7)})
    what = r"--enrich p: key 'a' is there twice: in file-0 \(row 2\) and in file-0 \(row 4\); keep one row for each key"
    with pytest.raises(DataError, match=what):
        enriched(["p=x on k"], pa.table({"k": ["a"]}), [right], right_cuts=[2, 3], is_large=is_large)


@LARGE
def test_a_later_enrichment_may_use_columns_of_an_earlier_one(is_large: bool) -> None:
    left = pa.table({"user": ["u", "v", "w"], "t": [5, 6, 7]})
    teams = pa.table({"user": ["u", "v"], "team": ["red", "blue"]})
    ranks = pa.table({"team": ["red", "blue", "red"], "t": [1, 7, 6], "rank": [10, 20, 30]})
    texts = ["home=x on user take team", "r=y on home_team=team asof t take rank as rank"]
    found = read_all(enriched(texts, left, [teams, ranks], [1], is_large=is_large))
    assert found["home_team"].to_pylist() == ["red", "blue", None]
    assert found["rank"].to_pylist() == [10, None, None]


@LARGE
def test_positions_may_be_moved_and_splits_divided_after_tables_are_read(is_large: bool) -> None:
    left = pa.table({"k": ["a", "b", "c", "a"], "t": [1, 2, 3, 4]})
    right = pa.table({"k": ["a", "c", "a"], "t": [0, 0, 4], "v": ["x", "y", "z"]})
    source = enriched(["p=x on k asof t"], left, [right], [2], is_large=is_large)
    moved = source.moved(1000)
    parts = [part for split in moved.splits for part in moved.parts_of(split)]
    batches = [moved.read(part, ["p_v", "t"]) for part in parts]
    assert [batch.pos.tolist() for batch in batches] == [[1000], [1001], [1002], [1003]]
    assert [batch.rows["p_v"].to_pylist() for batch in batches] == [["x"], [None], ["y"], ["z"]]


@LARGE
@pytest.mark.parametrize("how", ["on k", "on k asof t", "on k asof t within 300", "on t asof k strict"])
def test_columns_without_type_match_nothing(how: str, is_large: bool) -> None:
    typed = pa.table({"k": pa.array([1, 2]), "t": pa.array([1, 2]), "v": ["a", "b"]})
    left, right = (typed.set_column(at, name, pa.nulls(2)) for at, name in ((0, "k"), (1, "t")))
    for one, other in ((left, typed), (typed, left), (left, left), (right, right), (left, right), (left, right[:0])):
        found = read_all(enriched([f"p=x {how} take v"], one.drop("v"), [other], is_large=is_large))
        texts = how == "on k" and one is right and other is right
        assert found["p_v"].to_pylist() == (["a", "b"] if texts else [None, None])


@LARGE
def test_a_column_without_any_match_is_null(is_large: bool) -> None:
    left, empty = pa.table({"k": ["a", None]}), pa.table({"k": pa.array([], pa.string()), "v": pa.array([], pa.int8())})
    for rows in (left, left.slice(0, 0)):
        found = read_all(enriched(["p=x on k"], rows, [empty], is_large=is_large))
        assert found["p_v"].to_pylist() == [None] * len(rows)
