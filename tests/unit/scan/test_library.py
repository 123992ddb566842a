"""`wincli.aggregate`: tables of other libraries as they are, a text as one name, calls by name, plain results."""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import re
import subprocess
import sys
from contextlib import suppress
from itertools import product
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wincli
from wincli.windowing.errors import ConfigError, SpecError, WincliError

LOG = pa.table({
    "user": ["ann", "bob", "ann", "ann", "bob"], "kind": ["a", "a", "b", "a", "b"],
    "t": [0, 10, 45, 70, 90], "amount": [5.0, 1.0, 2.5, 4.0, 3.0],
})  # fmt: skip
SPENT = [("ann", 7.5), ("ann", 4.0), ("bob", 1.0), ("bob", 3.0)]


class Capsule:
    """Some library's table, of which nothing is known but that it has a stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def spent(table: Any) -> list[tuple[Any, ...]]:
    out = wincli.aggregate(table, "delta(t, 60)", key="user", order_by="t", aggregates={"spent": "sum(amount)"})
    return [tuple(row.values()) for row in out.select(["user", "spent"]).to_pylist()]


TABLES = {
    "Arrow table": lambda: LOG.slice(0),
    "record batch": lambda: LOG.to_batches()[0],
    "reader": lambda: LOG.to_reader(max_chunksize=2),
    "pandas": LOG.to_pandas,
    "pandas with an index": lambda: LOG.to_pandas().set_index("t", drop=False).rename_axis("i"),
    "pandas categories": lambda: LOG.to_pandas().astype({"user": "category"}),
    "pandas of Arrow types": lambda: LOG.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda: pl.DataFrame(LOG),
    "Polars categories": lambda: pl.DataFrame(LOG).with_columns(pl.col("user").cast(pl.Categorical)),
    "Polars in chunks": lambda: pl.concat([pl.DataFrame(LOG[:2]), pl.DataFrame(LOG[2:])], rechunk=False),
    "DuckDB": lambda: duckdb.from_arrow(LOG),
    "DuckDB enum": lambda: duckdb.from_arrow(LOG).project("user::enum('ann', 'bob') as user, t, amount"),
    "capsule": lambda: Capsule(LOG),
    "views": lambda: LOG.cast(LOG.schema.set(0, pa.field("user", pa.string_view()))),
    "large text": lambda: LOG.cast(LOG.schema.set(0, pa.field("user", pa.large_string()))),
    "run ends": lambda: LOG.set_column(0, "user", pa.compute.run_end_encode(LOG["user"])),
    "dictionary": lambda: LOG.set_column(0, "user", LOG["user"].dictionary_encode()),
}


@pytest.mark.parametrize("kind", list(TABLES))
def test_tables_of_any_library_are_taken_as_they_are(kind: str) -> None:
    assert spent(TABLES[kind]()) == SPENT


def test_every_type_of_polars_and_duckdb_comes_through() -> None:
    rows: dict[str, list[Any]] = {
        "t": [dt.datetime(2026, 1, 1, 0, 0, second) for second in (1, 2, 3)],
        "text": ["a", "a text that is longer than a view holds", None],
        "cents": [decimal.Decimal("0.10"), decimal.Decimal("0.20"), None],
        "bytes": [b"a", b"b", None],
    }
    calls = {"texts": "collect(text)", "cents": "sum(cents)", "least": "min(bytes)", "last": "last(t)"}
    wanted = {"texts": rows["text"][:2], "cents": decimal.Decimal("0.30"), "least": b"a", "last": rows["t"][2]}
    frame = pl.DataFrame(rows)
    for table in (frame, duckdb.from_arrow(frame.to_arrow())):
        found = wincli.aggregate(table, "count(3)", aggregates=calls)
        assert found.select(list(calls)).to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"t": [1]}, "builtins.dict is no table"),
        ([1, 2], "builtins.list is no table"),
        (None, "builtins.NoneType is no table"),
        ("log.csv", "builtins.str is no table"),
        (pl.DataFrame(LOG).lazy(), "LazyFrame is no table, nor anything with __arrow_c_stream__; collect() it"),
        (pl.Series("t", [1, 2]), "Series is no table"),
        (pa.array([1, 2]), "Int64Array is no table"),
    ],
)
def test_what_is_no_table_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match="is no table") as caught:
        wincli.aggregate(given, "count(2)")
    assert message in str(caught.value)


def test_a_text_is_one_name() -> None:
    names: dict[str, Any] = {"key": "user", "order_by": "t", "aggregates": "spent=sum(amount)", "group_by": "kind"}
    one = wincli.aggregate(LOG, "count(2)", **names)
    several: dict[str, Any] = {name: [text] for name, text in names.items()}
    assert one.equals(wincli.aggregate(LOG, "count(2)", **several))
    rows = wincli.aggregate(LOG, "count(5)", order_by="arrival", emit="rows", sort_by="amount desc")
    assert rows["amount"].to_pylist() == [5.0, 4.0, 3.0, 2.5, 1.0]
    with pytest.raises(ConfigError, match=r"'usr'.*did you mean 'user'"):  # named whole
        wincli.aggregate(LOG, "count(2)", key="usr")


@pytest.mark.parametrize("option", ["key", "order_by", "group_by", "sort_by", "aggregates"])
@pytest.mark.parametrize("value", [3, ["user", 3]])
def test_names_that_are_no_texts_are_refused(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{option}: 3 is no name"):
        wincli.aggregate(LOG, "count(2)", **{option: value})


INSTANTS = pa.table({"at": pa.array([0, 8, 4000, 7], pa.timestamp("s")), "user": list("abab")})
LATE: dict[str, Any] = {"window": "timeInterval, intervalDuration(10)", "event_time": "at", "rejected": "drop"}


@pytest.mark.parametrize(
    ("option", "text", "seconds", "others"),
    [
        ("max_ahead", "1h", 3600, LATE),
        ("max_ahead", "66.5m", 3990, LATE),
        ("lag", "66m", 3960, LATE),
        ("min_gap", "2h", 7200, LATE),
        ("origin", "3s", 3, {"window": "time(5)", "order_by": "at"}),
        ("origin", "-1", -1, {"window": "time(5)", "order_by": "at"}),
        ("origin", "1970-01-01T00:00:02", 2, {"window": "time(5)", "order_by": "at"}),
    ],
)
def test_texts_of_times_are_read_as_on_the_command_line(
    option: str, text: str, seconds: int, others: dict[str, Any]
) -> None:
    found, wanted = (wincli.aggregate(INSTANTS, **{option: each}, **others) for each in (text, seconds))
    assert found.equals(wanted)


ODD: list[Any] = [
    0, -1, 1.5, float("nan"), float("inf"), True, "", " ", "soon", "1h", "-1", "é", '"', [], [None], ["at"], (), {},
    {1: 2}, {"a": 1}, {"": INSTANTS}, [INSTANTS], INSTANTS, b"x", object(), dt.date(2026, 1, 1), dt.timedelta(1),
    2**70, 10**400,
]  # fmt: skip
ASKED = [
    "key", "aggregates", "at_end", "empty", "closed", "origin", "ends", "clock", "since", "let", "where", "distinct",
    "having", "event_time", "lag", "min_gap", "max_ahead", "max_open_rows", "windows", "group_by", "emit", "sort_by",
    "operator", "order_by", "marks", "watermarks", "rejected", "state", "window",
]  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("others", [{"window": "time(7)", "order_by": "at"}, LATE, {"window": "punct()"}])
def test_an_argument_of_any_type_is_taken_or_refused(name: str, others: dict[str, Any]) -> None:
    calls = [call for call in (wincli.aggregate, wincli.draw) if name in inspect.signature(call).parameters]
    for value, call in product(ODD, calls):
        with suppress(WincliError):
            call(INSTANTS, **{**others, "rejected": "drop", name: value})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_ahead": -1}, "max_ahead '-1' is no duration: expected a duration of 0 or more, found '-1'"),
        ({"max_ahead": "soon"}, "max_ahead 'soon' is no duration: expected a number, found 'soon'"),
        ({"lag": dt.timedelta(1)}, "lag: datetime.timedelta(days=1) is no number of seconds"),
        ({"origin": "6x"}, "origin '6x' is no time: unknown unit 'x' in '6x'"),
        ({"clock": "noon"}, "the clock cannot stand at 'noon'"),
        ({"empty": "none"}, "empty cannot be 'none'; say skip or mark or row"),
        ({"max_open_rows": 1.5}, "max_open_rows: 1.5 is no whole number above 0; give one, such as 1000"),
        ({"partial": "no"}, "partial: 'no' is a text; give True or False"),
        ({"distinct": ["user"]}, "distinct: ['user'] is no text"),
        ({"windows": {1: INSTANTS}}, "windows: 1 is no text"),
        ({"windows": []}, "windows: builtins.list is no mapping of texts to tables"),
        ({"marks": [1.5]}, "marks: [1.5] is neither a column nor numbers of rows"),
        ({"watermarks": [1]}, "watermarks: [1] is no list of pairs"),
    ],
)
def test_an_argument_that_is_refused_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        wincli.aggregate(INSTANTS, "time(7)", **{"order_by": "at", **given})


def test_aggregates_by_name_are_those_with_a_name_and_have_no_other() -> None:
    by_name = wincli.aggregate(LOG, "count(2)", aggregates={"n": "count()", "odd name": "max(amount)", "m": "m=min(t)"})
    assert by_name.select(["n", "odd name", "m"]).to_pylist()[0] == {"n": 2, "odd name": 5.0, "m": 0}
    with pytest.raises(ConfigError, match=r"'spent' is 'paid=sum.amount.', which says another name; leave paid= out"):
        wincli.aggregate(LOG, "count(2)", aggregates={"spent": "paid=sum(amount)"})
    with pytest.raises(SpecError):
        wincli.aggregate(LOG, "count(2)", aggregates={"spent": "sum("})


def test_a_plain_result_has_no_stream_columns_nor_mark_only_rows() -> None:
    shifts = pa.table({"made": [3, 1, 4]})
    whole = wincli.aggregate(shifts, "punct()", aggregates={"made": "sum(made)"}, marks=[0, 2])
    plain = wincli.aggregate(shifts, "punct()", aggregates={"made": "sum(made)"}, marks=[0, 2], plain=True)
    assert whole["_mark"].to_pylist() == ["window", "window", "only"]
    assert plain.column_names == [name for name in whole.column_names if not name.startswith("_")]
    assert plain["made"].to_pylist() == [4, 4]
    ticks = pa.table({"t": [0, 35]})
    marked = wincli.aggregate(ticks, "time(10)", order_by="t", empty="mark")
    assert (len(marked), len(wincli.aggregate(ticks, "time(10)", order_by="t", empty="mark", plain=True))) == (4, 2)


WITHOUT_FRAMES = """
import sys

class Refused:
    def find_spec(self, name, *_):
        if name in {"pandas", "polars", "duckdb"}:
            raise ImportError(name)

sys.meta_path.insert(0, Refused())
import pyarrow as pa
import wincli
print(wincli.aggregate(pa.table({"a": [1]}), "count(1)").num_rows)
"""


def test_no_library_of_frames_needs_to_be_there() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_FRAMES], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout == "1\n"
