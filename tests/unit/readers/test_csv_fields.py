"""Records of small CSV files: what is read of them without a parser is what Arrow's parser gives."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.readers.formats.csv import _plain, _quick
from wincli.readers.values.record_bounds import Dialect, count_line_ends, locate
from wincli.readers.values.types import column_type

LAW = examples(200, deadline=None)
DIALECT = Dialect(",", False)
TYPES = ("int64", "float64", "string", "date", "timestamp", "timestamp_ns", "timestamptz", "bool", "decimal(9,2)")
TIMES = ["2020-01-01", "2020-02-30", "2020-01-01T10:00:00.5", "2020-01-01 10:00:00Z", "1500-01-01", "20-1-1"]
VALUES = st.one_of(
    st.sampled_from(["", '""', "x", '"x y"', '"a""b"', 'a"b', " 1", "0x1F", "nan", "1e400", "007", "-0", "é", *TIMES]),
    st.integers(-(2**65), 2**65).map(str),
    st.integers(-99, 99).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(TIMES).map('"{}"'.format),
)
CELLS = st.sampled_from(
    [
        st.integers(-99, 99).map(str),
        st.floats(-99, 99).map(repr),
        st.sampled_from([*TIMES[2:4], ""]),
        st.text("ab", max_size=9).map('"{}"'.format),
        VALUES,
    ]
)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    cells = [draw(CELLS) for _ in range(3)]
    rows = [",".join(draw(cell) for cell in cells) for _ in range(draw(st.integers(1, 6)))]
    return "".join(row + draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"])) for row in rows).encode()


@LAW
@given(data=records(), types=st.tuples(*[st.sampled_from(TYPES)] * 2), has_end=st.booleans())
def test_plain_records_read_as_the_parser_reads_them(data: bytes, types: tuple[str, str], has_end: bool) -> None:
    data = data if has_end else data.rstrip(b"\r\n")
    want = {name: column_type(kind) for name, kind in zip("ca", types, strict=True)}
    plain = _plain(data, DIALECT, ["a", "b", "c"], want) if data else None
    if plain is not None:
        expected = _quick(data, DIALECT, ["a", "b", "c"], want)
        assert plain.equals(pa.table({name: expected[name].cast(kind.type) for name, kind in want.items()}))
        assert plain.num_rows == len(locate(data, DIALECT).starts)


@pytest.mark.parametrize("data", [b"1\n", b"1,2,3\n", b'"a""b",1\n', b'"a"b,1\n', b'"a\n",1\n', b'"a', b"\xff,1\n"])
def test_other_records_are_left_to_the_parser(data: bytes) -> None:
    assert _plain(data, DIALECT, ["a", "b"], {"a": column_type("string")}) is None


def test_an_empty_field_is_null_and_a_quoted_one_is_an_empty_text() -> None:
    want = {"b": column_type("string"), "a": column_type("float64")}
    table = _plain(b'1.5,""\n,\n"2",x', DIALECT, ["a", "b"], want)
    assert table is not None
    assert table.to_pydict() == {"b": ["", None, "x"], "a": [1.5, None, 2.0]}


@LAW
@given(data=st.text("a\r\n", max_size=40).map(str.encode))
def test_line_ends_are_lf_and_cr_lf_and_cr(data: bytes) -> None:
    assert count_line_ends(data) == len(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")) - data.count(b"a")
