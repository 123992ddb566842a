"""Types of columns: which holds two, which a text gives, and what files, folders and earlier runs give a column."""

from __future__ import annotations

import datetime as dt
import gzip
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path

import pyarrow as pa
import pytest

from support.places import TESTS
from support.readers import put, source
from wincli.readers.source import FileSource
from wincli.readers.values.kinds import join, kind_of_texts, type_of
from wincli.readers.values.types import arrow_type, unify
from wincli.windowing.errors import ConfigError, InputError
from wincli.windowing.support.column_types import common_type, plain, type_of_text

TYPES = [
    *(pa.null(), pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()),
    *(pa.decimal128(10, 2), pa.decimal128(5, 4), pa.bool_(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.duration("ms"), pa.duration("us")),
    *(pa.list_(pa.int64()), pa.list_(pa.float64()), pa.struct([("x", pa.int64())]), pa.struct([("y", pa.string())])),
]


PAIRS = (TESTS / "cases/common_types.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", PAIRS)
def test_the_type_that_holds_both(line: str) -> None:
    pair, _, wide = line.partition(" = ")
    a, b = map(type_of_text, pair.split(" + "))
    assert a is not None
    assert b is not None
    assert common_type(a, b) == common_type(b, a) == (None if wide == "none" else type_of_text(wide))


def test_instants_of_two_zones_keep_the_zone_that_comes_first_and_the_finest_unit() -> None:
    paris, utc = pa.timestamp("ms", "Europe/Paris"), pa.timestamp("ns", "UTC")
    assert common_type(paris, utc) == pa.timestamp("ns", "Europe/Paris")
    assert common_type(utc, paris) == utc


IN_RESULTS = [
    *(pa.int64(), pa.uint64(), pa.float64(), pa.float32(), pa.bool_(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Paris"), pa.duration("us")),
    *(pa.decimal128(38, 2), pa.list_(pa.string()), pa.list_(pa.list_(pa.timestamp("us"))), pa.null()),
]


@pytest.mark.parametrize(
    ("read", "kinds"),
    [
        (arrow_type, IN_RESULTS),
        (type_of_text, [*TYPES, *IN_RESULTS, pa.time32("ms"), pa.time64("ns"), pa.float16()]),
        (type_of_text, [pa.list_(pa.struct([("a", pa.decimal128(9, 3))]))]),
    ],
)
def test_a_type_is_read_back_from_its_text(read: Callable[[str], pa.DataType], kinds: list[pa.DataType]) -> None:
    assert [read(str(kind)) for kind in kinds] == kinds


NOT_READ = [pa.struct([("x", pa.int64())]), pa.list_(pa.date32()), pa.list_(pa.binary()), pa.float16(), pa.date64()]


def test_a_type_that_texts_of_results_are_not_read_back_as_is_no_type() -> None:
    texts = ["map<string, int64>", "list<item: nonsense>", *map(str, NOT_READ)]
    assert [arrow_type(text) for text in texts] == [None] * len(texts)
    assert arrow_type("large_list<element: large_string not null> not null") == pa.list_(pa.string())


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
        (pa.large_list(pa.large_string()), pa.list_(pa.string())),
        (pa.struct([pa.field("a", pa.int64(), False), pa.field("b c", pa.map_(pa.string(), pa.int8()))]), None),
        (pa.date64(), pa.date32()),
        (pa.binary(4), None),
    ],
    ids=str,
)
def test_the_text_of_a_type_gives_its_plain_form_or_none(kind: pa.DataType, form: pa.DataType | None) -> None:
    assert type_of_text(str(kind)) == form


def test_widening_is_symmetric_and_neutral_to_itself() -> None:
    for a, b in product(TYPES, TYPES):
        wide, again = common_type(a, b), common_type(b, a)
        if pa.types.is_struct(a) and pa.types.is_struct(b):
            assert {f.name for f in wide} == {f.name for f in again}
        else:
            assert again == wide
        assert common_type(a, a) == a
        assert wide is None or common_type(wide, a) == wide


def test_plain_types_have_no_dictionaries_views_or_large_offsets() -> None:
    assert plain(pa.dictionary(pa.int8(), pa.large_string())) == pa.string()
    assert plain(pa.list_(pa.field("element", pa.string_view()))) == pa.list_(pa.string())
    assert plain(pa.struct([("x", pa.large_binary())])) == pa.struct([("x", pa.binary())])
    assert plain(pa.int16()) == pa.int16()


TEXTS = {
    "2020-01-01": pa.date32(),
    "9999-12-31": pa.date32(),
    "2020-01-01 10:00:00": pa.timestamp("us"),
    "2020-01-01T10:00:00.123456": pa.timestamp("us"),
    "2020-01-01 10:00:00.1234567": pa.timestamp("ns"),
    "9999-12-31T00:00:00": pa.timestamp("us"),
    "2020-01-01T10:00:00Z": pa.timestamp("us", "UTC"),
    "2020-01-01T10:00:00.123456789+02:00": pa.timestamp("ns", "UTC"),
    "12:30": pa.string(),
    "x": pa.string(),
}


def kind_of_all(texts: list[str | None]) -> int:
    return kind_of_texts(pa.chunked_array([pa.array(texts, pa.string())]))


def test_the_type_of_a_column_is_that_of_its_values_joined_in_any_order() -> None:
    for text, kind in TEXTS.items():
        assert type_of(kind_of_all([text, None])) == kind
    for texts in permutations(TEXTS, 3):
        a, b, c = (kind_of_all([text]) for text in texts)
        assert type_of(kind_of_all(list(texts))) == type_of(join(join(a, b), c)) == type_of(join(a, join(b, c)))


def test_columns_come_in_order_of_first_appearance() -> None:
    one, two = pa.schema([("a", pa.int64()), ("b", pa.null())]), pa.schema([("c", pa.bool_()), ("b", pa.string())])
    schema, places = unify([("1", one), ("2", two)], {})
    assert schema == pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])
    assert places == {"a": "1", "b": "2", "c": "2"}


def test_known_types_come_first_and_columns_that_only_they_have_come_last() -> None:
    paris, utc = pa.timestamp("us", "Europe/Paris"), pa.timestamp("us", "UTC")
    known = [("the state", pa.schema([("x", pa.int64()), ("gone", pa.string()), ("at", paris), ("y", pa.float64())]))]
    file = ("1", pa.schema([("at", utc), ("y", pa.int8()), ("x", pa.float32()), ("new", pa.null())]))
    schema, places = unify([file], {}, known)
    fields = [("at", paris), ("y", pa.float64()), ("x", pa.float64()), ("new", pa.null()), ("gone", pa.string())]
    assert schema == pa.schema(fields)
    assert places == {"at": "the state", "y": "the state", "x": "1", "new": "1", "gone": "the state"}


@pytest.mark.parametrize(
    ("a", "b", "is_text", "entry"),
    [
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False, "'n:timestamptz'"),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), True, "'n:string'"),
        (pa.decimal128(9, 2), pa.float64(), False, "'n:float64'"),
        (pa.uint64(), pa.int64(), False, "'n:decimal(20,0)'"),
        (pa.bool_(), pa.int64(), False, "'n:string'"),
        (pa.list_(pa.int64()), pa.string(), True, "no type of --schema"),
    ],
)
def test_the_entry_reads_the_values_of_both_types(a: pa.DataType, b: pa.DataType, is_text: bool, entry: str) -> None:
    with pytest.raises(InputError) as caught:
        unify([("1", pa.schema([("n", a)])), ("2", pa.schema([("n", b)]))], {}, is_text=is_text)
    assert entry in caught.value.do


# Types that files of one run, and earlier runs, give a column: one rule joins them, in every format


TEN = dt.datetime(2026, 11, 1, 10)
PARIS, UTC = pa.timestamp("us", "Europe/Paris"), pa.timestamp("us", "UTC")
EARLIER = "the state st at 2026-11-01"


def read(opened: FileSource) -> pa.Table:
    return pa.concat_tables([opened.read(split, opened.schema.names).rows for split in opened.splits])


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("one", "two", "schema", "kind"),
    [
        (pa.array([TEN], pa.timestamp("ms", "Europe/Paris")), pa.array([TEN], UTC), "", PARIS),
        (pa.array([TEN], pa.timestamp("us")), pa.array([TEN], PARIS), "t:timestamptz", UTC),
        (pa.array([TEN.time()], pa.time32("s")), pa.array([TEN.time()], pa.time64("us")), "", pa.time64("us")),
    ],
)
def test_times_of_two_files_are_one_column_in_the_zone_of_the_first_and_the_finest_unit(
    tmp_path: Path, one: pa.Array, two: pa.Array, schema: str, kind: pa.DataType
) -> None:
    paths = [put(tmp_path / f"{i}.parquet", {"t": column}) for i, column in enumerate((one, two))]
    if schema:
        said = r"column 't' is timestamp\[us\] in .*0\.parquet and timestamp\[us, tz=E.*--schema 't:timestamptz'"
        with pytest.raises(InputError, match=said):
            source(*paths)
    opened = source(*paths, schema=schema)
    assert opened.schema.field("t").type == kind
    utc = UTC if pa.types.is_timestamp(kind) else kind
    assert read(opened)["t"].cast(utc) == pa.chunked_array([pa.array([TEN if utc == UTC else TEN.time()] * 2, utc)])


KNOWN = pa.schema([("ts", pa.timestamp("us")), ("user", pa.string()), ("n", pa.int64()), ("x", pa.float64())])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("a.csv", content) for content in (b"", b"\n\n", b"ts,user,n,x\n", b"n,ts\n")),
        *(("a.jsonl", b""), ("a.jsonl.gz", gzip.compress(b"", mtime=0))),
    ],
)
def test_an_empty_text_has_the_columns_that_are_known(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    opened = source(path, known=[(EARLIER, KNOWN)])
    assert {field.name: field.type for field in opened.schema} == {field.name: field.type for field in KNOWN}
    assert read(opened).num_rows == 0


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "orc"])
def test_columns_without_a_value_or_without_a_column_take_the_known_type(tmp_path: Path, form: str) -> None:
    nothing = {} if form == "orc" else {"n": pa.nulls(1)}  # ORC has no column without a type
    found = read(source(put(tmp_path / f"a.{form}", {**nothing, "other": [1]}), known=[(EARLIER, KNOWN)]))
    assert found["n"] == pa.chunked_array([pa.nulls(1, pa.int64())])
    assert found["ts"] == pa.chunked_array([pa.nulls(1, pa.timestamp("us"))])
    assert found["other"].to_pylist() == [1]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "orc"])
def test_a_narrower_file_is_read_in_the_known_type_and_a_wider_one_in_its_own(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / f"a.{form}", {"n": pa.array([1.5], pa.float32()), "x": pa.array([7], pa.int8())})
    opened = source(path, known=[(EARLIER, KNOWN)])
    assert read(opened).select(["n", "x"]) == pa.table({"n": [1.5], "x": [7.0]})
    assert opened.type_places["n"] == str(path)
    assert opened.type_places["x"] == EARLIER


def test_values_of_folders_join_the_known_types(tmp_path: Path) -> None:
    folders = [tmp_path / "in" / "hour=05", tmp_path / "in" / "hour=__HIVE_DEFAULT_PARTITION__"]
    none = tmp_path / "none" / "hour=__HIVE_DEFAULT_PARTITION__"
    for folder in (*folders, none):
        folder.mkdir(parents=True)
        text(folder / "a.csv", "a\n1\n")
    known = pa.schema([("hour", pa.float64())])
    assert read(source(tmp_path / "in", known=[(EARLIER, known)]))["hour"].to_pylist() == [5.0, None]
    assert read(source(tmp_path / "none", known=[(EARLIER, known)]))["hour"] == pa.chunked_array(
        [pa.nulls(1, pa.float64())]
    )
    with pytest.raises(InputError, match="column 'hour' is bool in the state st at 2026-11-01 and int64"):
        source(tmp_path / "in", known=[(EARLIER, pa.schema([("hour", pa.bool_())]))])


def test_what_cannot_be_joined_with_what_is_known_names_the_entry_that_keeps_it(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "n\n-\n")
    with pytest.raises(InputError) as caught:
        source(path, known=[(EARLIER, KNOWN)])
    assert str(caught.value) == (
        f"column 'n' is int64 in {EARLIER} and string in {path}; read it as it was, with --schema 'n:int64'"
    )
    assert source(path, known=[(EARLIER, KNOWN)], schema="n:int64").schema.field("n").type == pa.int64()


def test_a_declared_column_that_no_file_has_is_null_if_the_job_names_it_else_a_typing_error(tmp_path: Path) -> None:
    path = text(tmp_path / "a.jsonl", '{"amount": 1}\n')
    found = read(source(path, schema="b:float", named=["b"]))
    assert found["b"] == pa.chunked_array([pa.nulls(1, pa.float64())])
    with pytest.raises(ConfigError, match=r"the schema names column 'amont', which no file has; did you mean 'amount'"):
        source(path, schema="amont:float", named=["amount"])


def test_a_file_of_no_bytes_has_the_declared_columns(tmp_path: Path) -> None:
    opened = source(text(tmp_path / "a.csv", ""), schema="a:int,b:timestamp")
    assert opened.schema == pa.schema([("a", pa.int64()), ("b", pa.timestamp("us"))])
    with pytest.raises(InputError, match=r"a\.csv has no column"):
        source(tmp_path / "a.csv")


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_columnar_file_of_no_bytes_is_damaged_whatever_is_known(tmp_path: Path, form: str) -> None:
    with pytest.raises(InputError, match=f"a.{form}"):
        source(text(tmp_path / f"a.{form}", ""), known=[(EARLIER, KNOWN)])
