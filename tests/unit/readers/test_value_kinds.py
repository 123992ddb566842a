"""Kinds by bytes: they say what Arrow's inference says of every value alone, or that only Arrow can tell."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.readers import source
from support.strategies import examples
from wincli.readers.formats.csv import infer_csv
from wincli.readers.values.kinds import BOOL, DATE, FLOAT, INT, NOTHING, STAMP, TEXT, ZONED, Kind, join, type_of
from wincli.readers.values.record_bounds import Dialect, tally
from wincli.readers.values.value_kinds import UNSURE, digits_end, field_end, plain_end, quoted_end

DIALECT = Dialect(",", multiline=False)
LAW = examples(200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBERS = st.text("0123456789.-+eE", max_size=22)
DIGITS = st.integers(0, 99).map("{:02}".format)
TIMES = st.builds(
    "{}{}-{}-{}{}{}:{}:{}{}{}".format,
    *(st.sampled_from(["16", "17", "20", "21", "22", "23", "99"]), DIGITS, DIGITS, DIGITS),
    *(st.sampled_from(["T", " ", "t", "", "  "]), DIGITS, DIGITS, DIGITS),
    *(st.sampled_from(["", ".", ".5", ".123456", ".1234567", ".123456789"]), st.sampled_from(["", "Z", "z", "+01:00"])),
)
DATES = st.builds(
    "{}{}-{}-{}".format, st.sampled_from(["16", "20", "22"]), DIGITS, st.sampled_from(["02", "12"]), DIGITS
)
WORDS = st.sampled_from(
    ["nan", "NaN", "nan(1)", "inf", "Infinity", "-inf", "true", "tRUE", "TRUE", "False", "faLse", "_"]
)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters='"\r\n\0,'), max_size=12)
VALUES = NUMBERS | TIMES | DATES | WORDS | PLAIN


def seen(field: str) -> int:
    kinds = np.zeros(2, np.int64)
    tally(f"{field},x\n".encode(), DIALECT, 2, kinds)
    return int(kinds[0])


def arrows(field: str) -> Kind:
    return infer_csv(f"{field},x\n".encode(), DIALECT, ["a", "b"], ["a"])["a"]


@LAW
@given(value=VALUES, quoted=st.booleans())
def test_a_kind_by_bytes_is_the_kind_that_arrow_infers(value: str, quoted: bool) -> None:
    field = f'"{value}"' if quoted else value
    assert seen(field) in (arrows(field), UNSURE)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (NOTHING, ["", '""']),
        (INT, ["-7", "007", '"12"', "9" * 18]),
        (FLOAT, ["2.50", "1e-05"]),
        (BOOL, ["true", "FALSE"]),
        (DATE, ["2024-02-29"]),
        (STAMP, ["2024-01-01 23:59:59.999999"]),
        (ZONED, ["2024-01-01T00:00:00Z"]),
        (TEXT, ["u00253", "é", '"say ""hi"""']),
        (UNSURE, ["9" * 19, "1e999", "2023-02-29", "2024-01-01 23:59:59.1234567", '"1"2', " 1", "0x1F"]),
    ],
)
def test_common_values_have_their_kind_at_once(kind: int, values: list[str]) -> None:
    assert {value: seen(value) for value in values} == dict.fromkeys(values, kind)


@LAW
@given(fields=st.lists(VALUES.filter(lambda text: text.strip() != ""), min_size=1, max_size=8), size=st.integers(1, 40))
def test_the_type_of_a_column_is_that_of_its_values_one_by_one(tmp_path: Path, fields: list[str], size: int) -> None:
    file = tmp_path / "x.csv"
    file.write_text("".join(["a,b\n", *(f"{field},1\n" for field in fields)]))
    expected = type_of(reduce(join, [arrows(field) for field in fields], NOTHING))
    assert source(file, split_bytes=size).schema.field("a").type == expected


# Loops over bytes that take eight at a time find what a loop over single bytes finds


WORDS_LAW = examples(300, deadline=None)
BYTES = st.one_of(
    st.binary(max_size=40), st.lists(st.sampled_from(b'0189:/,"\\\n\r\x1f \x80\xff,a'), max_size=40).map(bytes)
)


def first(data: bytes, start: int, ends: object) -> int:
    """Return where the first byte stands for which a condition is true; the size for none."""
    assert callable(ends)
    return next((at for at in range(start, len(data)) if ends(data[at])), len(data))


@WORDS_LAW
@given(data=BYTES, start=st.integers(0, 9))
def test_the_first_byte_of_each_sort_is_found(data: bytes, start: int) -> None:
    start = min(start, len(data))
    view, n = np.frombuffer(data, np.uint8), len(data)
    assert digits_end(view, start, n) == first(data, start, lambda byte: not 48 <= byte <= 57)
    assert field_end(view, start, n, 44) == first(data, start, lambda byte: byte in b",\r\n")
    assert quoted_end(view, start, n) == first(data, start, lambda byte: byte in b'"\r\n')
    assert plain_end(view, start, n) == first(data, start, lambda byte: byte in b'"\\' or byte < 32)
