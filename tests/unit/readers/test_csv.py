from __future__ import annotations

import bz2
import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.readers import column, read_all, source, types
from support.strategies import examples
from wincli.readers.values.record_bounds import Dialect, count_line_ends, locate, tally
from wincli.windowing.errors import InputError

UTC = dt.UTC


@pytest.fixture
def csv(tmp_path: Path) -> Any:
    def write(text: str | bytes, name: str = "x.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_types_are_inferred_over_the_whole_data(csv: Any) -> None:
    rows = ["1,1,true,2020-01-01,2020-01-01 10:00:00,2020-01-01T10:00:00Z,x,", "2,2.5,FALSE,2020-01-02,2020-01-01,,,"]
    opened = source(csv("i,f,b,d,t,z,s,n\n" + "\n".join(rows) + "\n"), split_bytes=20)
    assert types(opened) == {
        **{"i": "int64", "f": "double", "b": "bool", "d": "date32[day]", "t": "timestamp[us]"},
        **{"z": "timestamp[us, tz=UTC]", "s": "string", "n": "null"},
    }
    assert [tuple(row.values()) for row in read_all(opened).rows] == [
        (
            *(1, 1.0, True, dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 10)),
            *(dt.datetime(2020, 1, 1, 10, tzinfo=UTC), "x", None),
        ),
        (2, 2.5, False, dt.date(2020, 1, 2), dt.datetime(2020, 1, 1), None, None, None),
    ]


KINDS = {
    "int64": ["1,,3", '1,""'],
    "double": ["1,99999999999999999999", "nan,1"],
    "string": [
        *("0,true", "0x1F,0x20", "1,x", "10:00:00"),
        *("2020-01-01,2020-01-01T10:00Z", "2020-01-01 00:00:00,2020-01-01 00:00:00Z"),
    ],
    "timestamp[us]": ["2020-01-01 00:00:00.123456,2020-01-01", "9999-12-31 00:00:00,2020-01-01 00:00:00.5"],
    "timestamp[ns]": ["2020-01-01 00:00:00.123456789,2020-01-01"],
    "null": ['"",""'],
}


@pytest.mark.parametrize("split_bytes", [1, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_the_type_of_a_column(csv: Any, kind: str, split_bytes: int) -> None:
    for values in KINDS[kind]:
        rows = "".join(f"{value},0\n" for value in values.split(","))
        assert types(source(csv("a,b\n" + rows), split_bytes=split_bytes))["a"] == kind, values


def test_late_values_change_the_type_of_a_large_file(csv: Any) -> None:
    head = "".join(f"{i},{i},{i},2020-01-01 00:00:00,\n" for i in range(9_000))
    tail = "1.5,x,3,2020-01-01 00:00:00.000000001,7\n"
    opened = source(csv("a,b,c,d,e\n" + head + tail))
    assert list(types(opened).values()) == ["double", "string", "int64", "timestamp[ns]", "int64"]
    assert str(opened.explain_type("b")).endswith("x.csv has 'x' at line 9002")
    assert opened.explain_type("a") is None
    assert read_all(opened).rows[-1]["e"] == 7


NO_TIMES = ["2026-06-30T23:59:60", "2026-06-30 23:59:60Z", "2026-02-30", "2026-02-30T10:00:00", "2026-01-01T24:00:00"]
NO_TIMES += ["2026-01-01T10:00:00+24:00"]


@pytest.mark.parametrize("split_bytes", [1, 1 << 20])
def test_the_first_value_that_makes_a_column_of_times_text_is_named_with_its_file_and_line(
    csv: Any, split_bytes: int
) -> None:
    for value in NO_TIMES:
        zone = value[19:] and "Z"
        time = "2026-01-01" if len(value) == 10 else f"2026-01-01T10:00:00.123456789{zone}"
        opened = source(csv(f"ts,n\n{time},1\n,2\n{value},3\n{time},4\n"), split_bytes=split_bytes)
        assert types(opened)["ts"] == "string"
        assert str(opened.explain_type("ts")).endswith(f"x.csv has {value!r} at line 4")
    for time, other in (("2026-01-01T10:00:00", "2026-01-01T11:00:00Z"), ("2026-01-01 10:00Z", "2026-01-02")):
        opened = source(csv(f"ts\n{time}\n{time}\n{other}\n{time}\n"), split_bytes=split_bytes)
        assert types(opened)["ts"] == "string"
        assert str(opened.explain_type("ts")).endswith(f"x.csv has {other!r} at line 4")


@pytest.mark.parametrize("value", NO_TIMES)
def test_what_looks_like_a_time_and_is_none_rejects_its_row_where_times_are_declared(csv: Any, value: str) -> None:
    kind = "date" if len(value) == 10 else "timestamptz" if value[19:] else "timestamp"
    layout = {"date": "%Y-%m-%d", "timestamp": "%Y-%m-%dT%H:%M:%S", "timestamptz": "%Y-%m-%dT%H:%M:%S%z"}[kind]
    for schema in (f"ts:{kind}", f"ts:{kind.removesuffix('tz')}({layout.replace('T', value[10:11])})"):
        every = read_all(source(csv(f"ts,n\n{value},1\n"), schema=schema))
        assert every.rows == []
        assert [r["_row"] for r in every.rejects] == [2]
        assert every.rejects[0]["_detail"].startswith(f"column ts: {value!r} is not a ")


def test_empty_fields_are_null_and_quoted_ones_empty_texts(csv: Any) -> None:
    opened = source(csv('s,n\n,\n"",""\nx,1\n'))
    assert read_all(opened).rows == [{"s": None, "n": None}, {"s": "", "n": None}, {"s": "x", "n": 1}]


def test_quotes_commas_byte_order_mark_and_line_ends(csv: Any) -> None:
    text = '\ufeff"a ""1""",b\r\n"x, ""y""",1\r\n\r\n5" pipe,2'
    every = read_all(source(csv(text), split_bytes=5))
    assert every.rows == [{'a "1"': 'x, "y"', "b": 1}, {'a "1"': '5" pipe', "b": 2}]
    assert every.lines == [2, 4]
    assert every.pos == [0, 1]


def test_files_without_rows_or_columns(tmp_path: Path, csv: Any) -> None:
    opened = source(csv("a,b\n"))
    assert types(opened) == {"a": "null", "b": "null"}
    assert [(s.rows, s.ends_file) for s in opened.splits] == [(0, True)]
    assert read_all(opened).rows == []
    csv("")
    csv("\n\r\n", "y.csv")
    with pytest.raises(InputError, match=r"x\.csv and the 1 files after it have no column"):
        source(tmp_path)


def test_headers(csv: Any) -> None:
    assert list(types(source(csv(",b,\n1,2,3\n")))) == ["_c0", "b", "_c2"]
    assert list(types(source(csv("\n\na\n1\n"), split_bytes=1))) == ["a"]
    assert column(source(csv("a"), schema="a:int"), "a") == []
    for content, said in {
        b"a,b,a\n1,2,3\n": r"x\.csv has 2 columns named 'a'",
        "a\n1\n".encode("utf-16"): r"x\.csv is UTF-16 text; convert it to UTF-8",
        b"\0" * 100: r"x\.csv has NUL bytes in its header",
    }.items():
        with pytest.raises(InputError, match=said):
            source(csv(content))
    wide = ",".join(f"column_{i}" for i in range(9000))
    assert len(types(source(csv(wide + "\n"), split_bytes=60_000))) == 9000


SCHEMA = "i:int,f:float,b:bool,d:date,t:timestamp,z:timestamptz,m:decimal(5,2),s:string"


def test_given_types_are_parsed_exactly(csv: Any) -> None:
    text = "i,f,b,d,t,z,m,s\n1,2,1,2020-01-01,2020-01-01 10:00,2020-01-01T10:00:00+02:00,1.5,007\n"
    assert tuple(read_all(source(csv(text), schema=SCHEMA)).rows[0].values()) == (
        *(1, 2.0, True, dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 10)),
        *(dt.datetime(2020, 1, 1, 8, tzinfo=UTC), Decimal("1.50"), "007"),
    )


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("an integer", [("int", "1.5"), ("int", "99999999999999999999"), ("int32", "3000000000")]),
        ("a number", [("float", "1,5")]),
        ("a boolean", [("bool", "yes")]),
        ("a date", [("date", "2020-02-30")]),
        ("a timestamp", [("timestamp", "garbage"), ("timestamp", "2020-01-01T00:00:00Z")]),
        ("a timestamp", [("timestamp", "2020-01-01T00:00:00.1234567"), ("timestamp(%d/%m/%y)", "31/02/20")]),
        ("a timestamp with a zone", [("timestamptz", "2020-01-01T00:00:00")]),
        ("a decimal(5,2)", [("decimal(5,2)", "1.555"), ("decimal(5,2)", "12345.6")]),
    ],
)
def test_a_field_that_does_not_parse_rejects_its_row(csv: Any, words: str, values: list[tuple[str, str]]) -> None:
    for schema, value in values:
        path = csv(f'k,v\n1,\n2,"{value}"\n3,""\n')
        every = read_all(source(path, schema=f"v:{schema}"))
        assert every.rows == [{"k": 1, "v": None}, {"k": 3, "v": None}]
        assert (every.pos, every.lines) == ([0, 2], [2, 4])
        assert [tuple(reject.values()) for reject in every.rejects] == [
            ("unparsable", str(path), 3, f"column v: {value!r} is not {words}", f'2,"{value}"')
        ]
        assert len(read_all(source(path, schema=f"v:{schema}"), ["k"]).rows) == 3  # what is not read is not judged


@pytest.mark.parametrize("split_bytes", [1, 7, 1 << 20])
def test_records_with_too_few_or_too_many_fields_or_nul_bytes_at_their_ends_are_rejects(
    csv: Any, split_bytes: int
) -> None:
    nul = "the record begins or ends with NUL bytes"
    bad = dict.fromkeys(("\x00" * 9, "\x00", "7\x00\x00", "\x00\x007", "\x00 \x00"), nul)
    bad |= {"2": "1 fields where the header has 2", "3,y,z": "3 fields where the header has 2"}
    for torn, why in bad.items():
        opened = source(csv(f'a,b\n1,x\0y\n{torn}\r\n\n2,"z,w"\n{torn}'), split_bytes=split_bytes)
        assert types(opened) == {"a": "int64", "b": "string"}
        every = read_all(opened)
        assert every.rows == [{"a": 1, "b": "x\0y"}, {"a": 2, "b": "z,w"}]
        assert (every.pos, every.lines) == ([0, 2], [2, 5])
        assert [(r["_row"], r["_detail"], r["_text"]) for r in every.rejects] == [(3, why, torn), (6, why, torn)]


def test_text_that_is_not_utf8_rejects_its_row(csv: Any) -> None:
    every = read_all(source(csv(b"a,b\nx,1\n\xff,2\n")))
    assert every.rows == [{"a": "x", "b": 1}]
    assert [r["_detail"] for r in every.rejects] == [r"column a: b'\xff' is not text in UTF-8"]


TORN = 'a,b\n1,x\n2,"y\nz"\n3,w\n'


@pytest.mark.parametrize("split_bytes", [1, 7, 1000])
def test_a_torn_quote_names_the_line_and_the_flag(csv: Any, split_bytes: int) -> None:
    with pytest.raises(InputError) as caught:
        source(csv(TORN), split_bytes=split_bytes)
    assert str(caught.value).endswith(
        "x.csv line 3: a quoted field runs over the end of the line; --multiline reads such files"
    )
    with pytest.raises(InputError, match=r"line 3: .*--multiline"):
        source(csv(gzip.compress(f'{TORN}4,"v\n'.encode()), "y.csv.gz"))


def test_line_ends_inside_quotes_with_multiline(csv: Any) -> None:
    every = read_all(source(csv(TORN), multiline=True))
    assert every.rows == [{"a": 1, "b": "x"}, {"a": 2, "b": "y\nz"}, {"a": 3, "b": "w"}]
    assert every.lines == [2, 3, 5]
    with pytest.raises(InputError, match=r"x\.csv line 3: a quoted field begins here and never ends"):
        source(csv('a,b\n1,x\n2,"y\nz\n'), multiline=True)
    assert list(types(source(csv('"a\nb",c\n1,2\n'), multiline=True))) == ["a\nb", "c"]
    with pytest.raises(InputError, match=r"x\.csv line 1: .*--multiline"):
        source(csv('"a\nb",c\n1,2\n'))


@pytest.mark.parametrize(
    ("name", "pack"),
    [("gz", gzip.compress), ("zst", lambda b: pa.Codec("zstd").compress(b, asbytes=True)), ("bz2", bz2.compress)],
)
def test_compressed_files_are_one_split(csv: Any, monkeypatch: pytest.MonkeyPatch, name: str, pack: Any) -> None:
    monkeypatch.setattr("wincli.readers.files.byte_ranges.STEP", 50)
    text = "a,b\r\n" + "".join(f"{i},x{i}\r\n" for i in range(100)) + "bad\r\n100,z"
    opened = source(csv(pack(text.encode()), f"x.csv.{name}"), split_bytes=10)
    every = read_all(opened)
    assert len(opened.splits) == 1
    assert [row["a"] for row in every.rows] == list(range(101))
    assert every.lines[-2:] == [101, 103]
    assert every.pos[-2:] == [99, 101]
    assert [r["_row"] for r in every.rejects] == [102]


@pytest.mark.parametrize(("zeros", "rows"), [(0, 1), (1, 1), (7, 1), (512, 400_000), (300_000, 1)])
def test_zeros_behind_the_end_of_a_gzip_file_are_passed_over(csv: Any, zeros: int, rows: int) -> None:
    packed = gzip.compress(b"a\n" + b"12\n" * rows) + b"\0" * zeros
    assert column(source(csv(packed, "x.csv.gz")), "a") == [12] * rows
    more = packed + gzip.compress(b"7\n") + b"\0" * zeros
    assert column(source(csv(more, "y.csv.gz")), "a") == [12] * rows + [7]


@pytest.mark.parametrize("tail", [b"junk", b"\0\0junk", b"\0" * 9 + gzip.compress(b"1\n", mtime=0)[:-1]])
def test_other_bytes_behind_the_end_of_a_gzip_file_are_damage(csv: Any, tail: bytes) -> None:
    with pytest.raises(InputError, match=r"x\.csv\.gz cannot be read: "):
        source(csv(gzip.compress(b"a\n1\n") + tail, "x.csv.gz"))


@pytest.mark.parametrize("cut", [0, 5, 30, -1, -9])
@pytest.mark.parametrize("tail", [b"", b"\0" * 512])
def test_a_truncated_file_is_named(csv: Any, cut: int, tail: bytes) -> None:
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 500)
    with pytest.raises(InputError, match=r"x\.csv\.gz cannot be read: "):
        read_all(source(csv(packed[:cut] + tail * (cut not in (0, -1)), "x.csv.gz")))


def test_records_are_cut_as_the_parser_cuts_them() -> None:
    #       0123456789
    data = b'a,"b"\r\n\r"x,\r""'
    assert locate(data, Dialect(",", False)).starts.tolist() == [0, 8, 12]
    assert tally(data, Dialect(",", False), 2).torn == 2
    records = locate(data, Dialect(",", True))
    assert (records.starts.tolist(), records.lines.tolist(), records.fields.tolist()) == ([0, 8], [0, 2], [2, 1])
    assert tally(data, Dialect(",", True), 2).whole == 8


@pytest.mark.parametrize("step", [1, 8, 64])
def test_rows_lines_and_rejects_do_not_depend_on_buffers(csv: Any, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    rows = [f'{i},"x{i}"\r\n' for i in range(60)]
    rows[7:7] = ["\r\n", "7,8,9\n", "x,late\r"]
    opened = source(csv("a,b\n" + "".join(rows)), split_bytes=200, schema="a:int")
    whole = read_all(opened)
    monkeypatch.setattr("wincli.readers.files.byte_ranges.STEP", step)
    again = source(csv("a,b\n" + "".join(rows)), split_bytes=200, schema="a:int")
    assert again.splits == opened.splits
    assert read_all(again) == whole
    assert [reject["_row"] for reject in whole.rejects] == [10, 11]


@examples(200, deadline=None)
@given(data=st.text("a\r\n", max_size=40).map(str.encode))
def test_line_ends_are_lf_and_cr_lf_and_cr(data: bytes) -> None:
    assert count_line_ends(data) == len(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")) - data.count(b"a")
