"""Laws of text formats: how a file is cut shows nowhere, every record is a row or a reject, and memory is bounded."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.readers import read_all, source
from support.strategies import examples
from wincli.readers.files import byte_ranges
from wincli.readers.formats import csv as csv_reader
from wincli.readers.source import FileSource
from wincli.windowing.errors import ConfigError, InputError

NUMBERS = ["", '""', "1", "-7", " 12", "0x1F", "2.5", "1e3", "nan", "99999999999999999999", '"1"', "+3"]
TIMES = [
    *("", '""', "2020-01-01", "2020-01-01 10:00:00", "2020-01-01T10:00:00.25", "2020-01-01 10:00:00.123456789"),
    *("9999-12-31", "9999-12-31 00:00:00", "2020-01-01T10:00:00Z", "2020-01-01T10:00:00.5+02:00", "12:30:00"),
]
WORDS = ["", '""', "true", "FALSE", "0", "x", "a b", '5" pipe', '"a,b"', '"say ""hi"""', '"x"y', "é"]
FIELDS = st.sampled_from([NUMBERS, TIMES, WORDS, NUMBERS + TIMES + WORDS])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TYPES = ["int", "float", "bool", "string", "date", "timestamp", "timestamp_ns", "timestamptz", "decimal(10,2)"]
LAYOUTS = ["timestamp(%Y-%m-%d %H:%M:%S)", "date(%Y-%m-%d)"]
SCHEMAS = st.just("") | st.sampled_from([f"a:{name}" for name in TYPES + LAYOUTS])
LAW = examples(60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def csv_texts(draw: st.DrawFn) -> str:
    width = draw(st.integers(1, 3))
    kinds = [draw(st.lists(st.sampled_from(draw(FIELDS)), min_size=1, max_size=4)) for _ in range(width)]
    out = ",".join("abc"[:width]) + draw(ENDS)
    for _ in range(draw(st.integers(0, 12))):
        row = [draw(st.sampled_from(kind)) for kind in kinds]
        if draw(st.integers(0, 9)) == 0:
            row = draw(st.sampled_from([[*row, "z"], row[:-1] or [*row, "z"], ["\0\0"], [*row[:-1], row[-1] + "\0"]]))
        out += ",".join(row) + draw(ENDS) + (draw(ENDS) if draw(st.integers(0, 9)) == 0 else "")
    return out.rstrip("\r\n") if draw(st.booleans()) else out


def facts(opened: FileSource) -> tuple[Any, ...]:
    every = read_all(opened)
    rejects = [tuple(reject.values()) for reject in every.rejects]
    return opened.schema, repr(every.rows), every.pos, every.lines, rejects, sum(s.rows for s in opened.splits)


@LAW
@given(text=csv_texts(), split_bytes=st.integers(1, 60), piece=st.integers(1, 60), schema=SCHEMAS)
def test_a_csv_file_reads_the_same_however_it_is_cut_compressed_or_not_and_multiline(
    tmp_path: Path, text: str, split_bytes: int, piece: int, schema: str
) -> None:
    plain, packed = tmp_path / "x.csv", tmp_path / "x.csv.gz"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    expected = facts(source(plain, schema=schema))
    cut = source(plain, schema=schema, split_bytes=split_bytes)
    assert facts(cut) == expected
    for other in (source(packed, schema=schema), source(plain, schema=schema, multiline=True)):
        found = facts(other)
        assert found[:4] == expected[:4]
        assert found[5] == expected[5]
        assert [r[2:] for r in found[4]] == [r[2:] for r in expected[4]]
    for whole in (cut, source(packed, schema=schema)):
        parts = (part for split in whole.splits for part in whole.pieces_of(split, piece))
        pieces = [replace(part, index=index) for index, part in enumerate(parts)]
        assert facts(replace(whole, splits=tuple(pieces))) == facts(whole)
        assert [part.ends_file for part in pieces] == [part is pieces[-1] for part in pieces]


@LAW
@given(
    rows=st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\0")) for _ in range(2)])),
    multiline=st.booleans(),
    data=st.data(),
)
def test_texts_come_back_as_pythons_csv_wrote_them(
    tmp_path: Path, rows: list[tuple[str, str]], multiline: bool, data: st.DataObject
) -> None:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("a", "b"), *rows])
    file = tmp_path / "x.csv"
    file.write_bytes(out.getvalue().encode())
    torn = any("\n" in field or "\r" in field for row in rows for field in row)
    opens = {"schema": "a:string,b:string", "split_bytes": data.draw(st.integers(1, 30)), "multiline": multiline}
    if torn and not multiline:
        with pytest.raises(InputError, match="--multiline"):
            source(file, **opens)
    else:
        assert [(row["a"], row["b"]) for row in read_all(source(file, **opens)).rows] == rows


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "é", "2020-01-01", "2020-01-01T10:00:00", "2020-01-01T10:00:00.5Z", "1"])
    | st.lists(st.integers(0, 5), max_size=2)
    | st.fixed_dictionaries({"p": st.integers(0, 5)}, optional={"q": st.text("ab")})
)
KINDS = [
    st.integers(-9, 9),
    st.floats(-9, 9) | st.integers(-9, 9),
    st.sampled_from(["2020-01-01", "2020-01-01T10:00:00.5"]),
    st.text("ab", max_size=2),
    st.fixed_dictionaries({"p": st.integers(0, 5)}, optional={"q": st.text("ab")}),
    st.lists(st.integers(0, 5), max_size=2),
    VALUES,
]
TORN = st.sampled_from(
    [
        *('{"a":1', "nonsense", "\0\0\0", " \0 ", "\f", '{"a":[-1e999]}', '{"b":1e999}', "[1]", '{"a":1}{"a":2}'),
        *('{"a":\x01}', "5", '{"a":"\\ud800"}'),
    ]
)


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    kinds = {name: draw(st.sampled_from(KINDS)) for name in "abc"}
    out = b""
    for _ in range(draw(st.integers(1, 10))):
        row = {name: draw(kind) for name, kind in kinds.items() if draw(st.integers(0, 4))}
        line = draw(TORN) if draw(st.integers(0, 9)) == 0 else json.dumps(row, ensure_ascii=draw(st.booleans()))
        out += line.encode() + draw(st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"]))
    return out.rstrip() if draw(st.booleans()) else out


@LAW
@given(text=json_texts(), split_bytes=st.integers(1, 80), schema=SCHEMAS)
def test_json_lines_read_the_same_however_they_are_cut(
    tmp_path: Path, text: bytes, split_bytes: int, schema: str
) -> None:
    file, packed = tmp_path / "x.jsonl", tmp_path / "x.jsonl.gz"
    file.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    try:
        expected = facts(source(file, schema=schema))
    except (InputError, ConfigError) as error:
        assert "no column" in str(error) or "no file has" in str(error)  # noqa: PT017 - nothing else may fail
        return
    assert facts(source(file, schema=schema, split_bytes=split_bytes)) == expected
    assert facts(source(packed, schema=schema))[1:4] == expected[1:4]


@LAW
@given(rows=st.lists(st.fixed_dictionaries({"a": st.integers(-9, 9), "b": st.text(max_size=3)}), min_size=1))
def test_json_values_come_back_as_they_were_written(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_all(source(file, schema="a:int,b:string", split_bytes=40)).rows == rows


LINES = {"csv": b"1,%b\n", "jsonl": b'{"ts":1,"x":"%b"}\n'}


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz", "a.jsonl.gz"])
def test_record_longer_than_the_limit_is_an_error_and_a_shorter_one_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert byte_ranges.MAX_RECORD == csv_reader.MAX_RECORD == 16 << 20
    limit = 3 << 20
    for module in (byte_ranges, csv_reader):
        monkeypatch.setattr(module, "MAX_RECORD", limit)
    form = name.split(".")[1]
    for letters in (limit - 64, limit + (2 << 20)):
        content = b"ts,x\n" * (form == "csv") + b"".join(LINES[form] % (b"x" * n) for n in (1, letters, 1))
        (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
        if letters < limit:
            assert [len(row["x"]) for row in read_all(source(tmp_path / name)).rows] == [1, letters, 1]
    with pytest.raises(InputError, match=rf"{name} has a record longer than 3 MiB"):
        read_all(source(tmp_path / name))
    if form == "csv":  # a record ends with CR, too
        content = b"ts,x\r" + (b"1," + b"x" * 4_000 + b"\r") * 1_000
        (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
        assert len(read_all(source(tmp_path / name)).rows) == 1_000
