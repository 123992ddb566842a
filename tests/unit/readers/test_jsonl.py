"""JSON Lines: types over the whole data, one reject for each line that is no object, and what is deep or too wide."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import ROOT, TESTS
from support.readers import column, read_all, source, types
from support.strategies import examples
from wincli.readers.formats import jsonl
from wincli.readers.values.kinds import NOTHING, TEXT, join
from wincli.readers.values.record_bounds import DEEPEST, are_deep, are_objects, locate_lines
from wincli.windowing.errors import ConfigError, InputError
from wincli.writers.output.sink import check_types


@pytest.fixture
def lines(tmp_path: Path) -> Any:
    def write(*rows: Any) -> Path:
        path = tmp_path / "x.jsonl"
        texts = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        path.write_bytes(b"".join(text + b"\n" for text in texts))
        return path

    return write


@pytest.mark.parametrize("split_bytes", [1, 1 << 20])
def test_types_are_inferred_over_the_whole_data(lines: Any, split_bytes: int) -> None:
    opened = source(
        lines(
            {"i": 1, "f": 1, "b": True, "t": "2020-01-01", "s": "2020-01-01", "l": [1], "n": None, "g": 1},
            {"i": None, "f": 2.5, "t": "2020-01-01T10:00:00.5", "s": "x", "l": [1.5], "o": {"p": 1}, "g": 2**64},
            {"z": "2020-01-01T10:00:00.123456789+02:00", "o": {"q": "2020-01-01"}},
        ),
        split_bytes=split_bytes,
    )
    assert types(opened) == {
        **{"i": "int64", "f": "double", "b": "bool", "t": "timestamp[us]", "s": "string", "l": "list<item: double>"},
        **{"n": "null", "g": "double", "o": "struct<p: int64, q: string>", "z": "timestamp[ns, tz=UTC]"},
    }
    first, second, third = read_all(opened).rows
    assert (first["t"], first["s"], first["g"]) == (dt.datetime(2020, 1, 1), "2020-01-01", 1.0)
    assert (second["f"], second["o"], second["g"]) == (2.5, {"p": 1, "q": None}, 2.0**64)
    assert third["o"] == {"p": None, "q": "2020-01-01"}


@pytest.mark.parametrize("split_bytes", [1, 60, 1 << 20])
def test_values_of_several_kinds_become_their_texts(lines: Any, split_bytes: int) -> None:
    rows = [b'{"u":12}', b'{"u":"x"}', b'{"u":1.50}', b'{"u":true}', b'{"u":null}', b'{"u":{"k":[1,2.5]}}', b"{}"]
    opened = source(lines(*rows), split_bytes=split_bytes)
    assert column(opened, "u") == ["12", "x", "1.50", "true", None, '{"k": [1, 2.5]}', None]
    assert str(opened.explain_type("u")).endswith("x.jsonl has 'x' at line 2")


def test_one_line_among_many_that_is_torn_or_of_another_kind_does_no_harm_to_the_others(lines: Any) -> None:
    rows: list[Any] = [{"u": i, "k": i} for i in range(3000)]
    rows[2500]["u"] = "x"
    rows[2710] = b'{"u":2710,"k":"x'
    path = lines(*rows)
    every = read_all(source(path))
    kept = [i for i in range(3000) if i != 2710]
    assert types(source(path)) == {"u": "string", "k": "int64"}
    assert [row["u"] for row in every.rows] == ["x" if i == 2500 else str(i) for i in kept]
    assert [row["k"] for row in every.rows] == kept
    assert [r["_row"] for r in every.rejects] == [2711]
    assert every.pos == read_all(source(path), ["k"]).pos == read_all(source(path), []).pos == kept


# Lines that are not one object each


NO_OBJECT, TOO_DEEP = "the line is not one JSON object", "the line nests more than 100 levels"
SHAPES = {"lists": ("[", "]", ""), "objects": ('{"a":', "}", "1"), "both": ('[{"b":', "}]", "null")}


def nested(levels: int, shape: str = "lists") -> bytes:
    """An object that nests so many levels, itself included."""
    opens, closes, inner = SHAPES[shape]
    step = 2 if shape == "both" else 1
    if (levels - 1) % step:
        inner, levels = f"[{inner}]", levels - 1
    return f'{{"x":{opens * ((levels - 1) // step)}{inner}{closes * ((levels - 1) // step)}}}'.encode()


TORN = [
    *(b"\0" * 20, b" \0 ", b"\f", b"null", b"true", b'"}"', b"{", b"}", b'null{"a":1}', b'{"a":1}null'),
    *(b'{"a":1}null{"a":2}', b'\xef\xbb\xbf{"a":1}', b'{"a":', b"nonsense", b"[1]", b"5", b'{"a":1}{"a":2}'),
    *(b'{"a":"\xff"}', b'{"a":1},', b'{"a": 01e999}', b'{"a": 1.e999}', b'{"a": 1e999x}'),
    *(b'{"a": "\\ud800", "b": 1e999}', b'{"x":"' + b"[" * 300_000 + b"}"),
]
DEEP = [
    *(nested(levels, shape) for levels in (DEEPEST + 1, 1_500, 20_000, 300_000) for shape in SHAPES),
    *(b'{"x":' + b"[" * 300_000 + b"}", b'{"x":' * 5_000 + b"}", b"[" * 5_000),
]


@pytest.mark.parametrize(
    ("rows", "bad"),
    [
        *(([b'{"a":1}', b"", torn, b" \t", b'{"a":2}', b"\r", b'{"a":3}'], {3: NO_OBJECT}) for torn in TORN),
        *(([b'{"a":1}', deep, b'{"a":2}'], {2: TOO_DEEP}) for deep in DEEP),
        ([b'{"a":1}', b"5", nested(101), b"[" * 5_000, b'{"a":2}'], {2: NO_OBJECT, 3: TOO_DEEP, 4: TOO_DEEP}),
        ([b"null", b'{"a":1}'], {1: NO_OBJECT}),
        ([b"", b" \tnull", b"null\r", b' {"a":1}\t\r', b"null"], dict.fromkeys([2, 3, 5], NO_OBJECT)),
        ([b'{"a":1}{"a":2}', b'{"a":', b"3}", b'{"a":4}'], dict.fromkeys([1, 2, 3], NO_OBJECT)),
        ([b'{"a":1}{"a":2}', b'{"a":{}', b"}", b'{"a":4}'], dict.fromkeys([1, 2, 3], NO_OBJECT)),
        ([b'{"a":1}', b'{"a":2} {"a":3}', b'{"b":[{}', b"{}]}", b"{}{}"], dict.fromkeys([2, 3, 4, 5], NO_OBJECT)),
        (
            [b'{"a":1}{"a":2}', b'{"b":"}', b'{"}', b'{"b":{"c":1}', b'{"a":4}'],
            dict.fromkeys([1, 2, 3, 4], NO_OBJECT),
        ),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_torn_and_deep_lines_are_rejects_with_their_line_and_text_and_hide_no_others(
    lines: Any, rows: list[bytes], bad: dict[int, str]
) -> None:
    path = lines(*rows)
    there = [number for number, row in enumerate(rows, 1) if row.strip(b" \t\r")]
    good = [number for number in there if number not in bad]
    for split_bytes in (1, 2, 7, 20, 1 << 20) if path.stat().st_size < 200 else (1 << 20,):
        every = read_all(source(path, split_bytes=split_bytes))
        assert every.rows == [json.loads(rows[number - 1]) for number in good]
        assert (every.lines, every.pos) == (good, [there.index(number) for number in good])
        assert [tuple(reject.values()) for reject in every.rejects] == [
            ("unparsable", str(path), number, detail, rows[number - 1].decode(errors="backslashreplace"))
            for number, detail in bad.items()
        ]


def test_a_line_that_nests_as_deep_as_it_may_is_read(lines: Any) -> None:
    for shape in SHAPES:
        opened = source(lines(b'{"a":1}', nested(DEEPEST, shape)))
        assert read_all(opened).rows[1]["x"] is not None
        assert [row["a"] for row in read_all(opened, ["a"]).rows] == [1, None]


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('[]{}"\\ab', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\', max_size=2), inner, max_size=3),
    max_leaves=30,
)


@examples(150, deadline=None)
@given(
    st.lists(st.dictionaries(st.text("ab[", max_size=2), VALUES, max_size=3), min_size=1, max_size=5), st.integers(1, 6)
)
def test_depth_is_counted_as_a_parser_would(objects: list[dict[str, Any]], levels: int) -> None:
    """Around some levels more, so that the limit is met: what is deep does not depend on how it is written."""
    wrapped = [*objects, {"a": ["[" * 500, '"[' * 300, "\\" * 3 + '"' + "{" * 300, '{"a":' * 200], "b": [[1]] * 200}]
    for _ in range(DEEPEST - levels):
        wrapped = [{"w": value} for value in wrapped]
    data = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in wrapped).encode()
    want = [depth_of(value) > DEEPEST for value in wrapped]
    assert are_deep(data, locate_lines(data)[0]).tolist() == want
    assert are_objects(data, locate_lines(data)[0]).tolist() == [not deep for deep in want]


@examples(200, deadline=None)
@given(
    st.lists(st.sampled_from([b"", b" ", b"\t\r", b"{}", b" {}", b"x y", b"\xc3\xa9", b"{}\r", b"\x00"])), st.booleans()
)
def test_lines_that_are_not_blank_are_found_with_their_numbers(parts: list[bytes], ends: bool) -> None:
    data = b"\n".join(parts) + b"\n" * ends
    records, line_ends = locate_lines(data)
    parts = data.split(b"\n")
    kept = [at for at, part in enumerate(parts) if part.strip(b" \t\r")]
    assert line_ends == len(parts) - 1
    assert records.lines.tolist() == kept
    assert [data[a:b] for a, b in zip(records.starts, records.stops, strict=True)] == [parts[at] for at in kept]


def test_a_column_that_nests_deeper_than_results_can_hold_is_refused() -> None:
    kind = pa.int64()
    for _ in range(60):
        kind = pa.list_(kind)
    with pytest.raises(ConfigError, match=r"parquet cannot hold column 'x' of type list<.{50,60}\.\.; leave it out"):
        check_types("parquet", pa.schema([("x", kind)]))
    check_types("jsonl", pa.schema([("x", kind)]))


@pytest.mark.parametrize("split_bytes", [1, 1 << 20])
def test_a_number_beyond_floats_is_infinite_or_text_and_rejects_no_row(lines: Any, split_bytes: int) -> None:
    opened = source(lines({"y": 1.5, "l": [2.5]}, b'{"y": -1e999, "l": [1e400]}'), split_bytes=split_bytes)
    assert read_all(opened).rows == [{"y": 1.5, "l": [2.5]}, {"y": -math.inf, "l": [math.inf]}]
    for big in (b"[-1e999]", b"-1e999", b'{"p": [1, 2E+400]}', b"1.5e0999"):
        rows = {"a": 1, "y": None}, b'{"a": 2, "y": ' + big + b"}", b"torn", {"a": 3}
        opened = source(lines(*rows), split_bytes=split_bytes)
        for names in (["a"], None):
            every = read_all(opened, names)
            assert [row["a"] for row in every.rows] == [1, 2, 3]
            assert [r["_row"] for r in every.rejects] == [3]


def test_given_types_reject_what_does_not_fit(lines: Any) -> None:
    path = lines({"a": 1, "k": 1}, {"a": "7", "k": 2}, {"a": "x", "k": 3}, {"a": 1.5, "k": 4}, {"k": 5})
    every = read_all(source(path, schema="a:int"))
    assert every.rows == [{"a": 1, "k": 1}, {"a": 7, "k": 2}, {"a": None, "k": 5}]
    assert [(r["_row"], r["_detail"]) for r in every.rejects] == [
        (3, "column a: 'x' is not an integer"),
        (4, "column a: '1.5' is not an integer"),
    ]


def test_compressed_lines_and_a_byte_order_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wincli.readers.files.byte_ranges.STEP", 64)
    text = b"\xef\xbb\xbf" + b"".join(b'{"a":%d}\r\n' % i for i in range(50)) + b"torn\n"
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(text))
    every = read_all(source(tmp_path / "x.jsonl.gz"))
    assert [row["a"] for row in every.rows] == list(range(50))
    assert every.lines == list(range(1, 51))
    assert [r["_row"] for r in every.rejects] == [51]
    (tmp_path / "y.jsonl").write_bytes(text)
    assert read_all(source(tmp_path / "y.jsonl", split_bytes=9)).rows == every.rows


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([{}], pa.struct([])),
        ([{}, {}, None], pa.struct([])),
        ([{}, {"p": 1}], pa.struct([("p", pa.int64())])),
        ([[{}], []], pa.list_(pa.struct([]))),
        ([{}, 5], pa.string()),
    ],
)
def test_empty_objects_are_structs_without_fields(lines: Any, values: list[Any], kind: pa.DataType) -> None:
    path = lines(*({"o": value, "k": 1} for value in values))
    for split_bytes in (1, 7, 20, 1 << 20):
        opened = source(path, split_bytes=split_bytes)
        assert opened.schema == pa.schema([("o", kind), ("k", pa.int64())])
        every = read_all(opened)
        assert (len(every.rows), every.rejects) == (len(values), [])
        assert every.rows == read_all(source(path)).rows
    for other, joined in ((pa.struct([]), pa.struct([])), (NOTHING, pa.struct([])), (pa.list_(pa.null()), TEXT)):
        assert join(pa.struct([]), other) == joined


# A name of its own in each line: memory stays bounded


NAMES = """
import resource, sys
from support.readers import source

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source(sys.argv[1])
before = peak()
print(*(len(source(path).schema) for path in sys.argv[2:]))
print(peak() - before >> 10)
"""


def test_names_that_are_values_take_no_memory_for_each_row(tmp_path: Path) -> None:
    """2,000 names in as many lines are 4 million cells, nearly all null: 0.2 GiB where each was made."""
    paths = [tmp_path / "small.jsonl"]
    paths[0].write_text('{"ts":1}\n')
    for kind, line in enumerate(('{"ts":1,"n%d":1}', '{"ts":1,"m":{"n%d":1}}', '{"ts":1,"n%d":"\\u0041"}')):
        paths.append(tmp_path / f"{kind}.jsonl")
        paths[-1].write_text("".join(line % number + "\n" for number in range(2000)))
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", NAMES, *map(str, paths)]
    done = subprocess.run(command, env=env, cwd=ROOT, text=True, capture_output=True, check=True)
    names, mib = done.stdout.splitlines()
    assert names == "2001 2 2001"
    assert int(mib) < 140


@pytest.mark.parametrize("line", ['{"n%d":1}', '{"m":{"n%d":1}}'])
def test_more_names_than_any_table_has_are_an_error(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jsonl._MOST_NAMES == 20_000
    monkeypatch.setattr(jsonl, "_MOST_NAMES", 500)
    path = tmp_path / "a.jsonl"
    for names in (500, 501):
        path.write_text("".join(line % number + "\n" for number in range(names)))
        if names == 500:
            source(path)
    with pytest.raises(InputError, match=r"a.jsonl has more than 500 different names .* are they values\?"):
        source(path)


def test_rows_of_columns_that_most_rows_lack_are_refused_where_nulls_would_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "_MOST_CELLS", 1 << 15)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"n{number}":1}}\n' for number in range(200)))
    with pytest.raises(InputError, match=r"200 rows of 200 columns are more than 32,768 values.*--split-size"):
        read_all(source(path))
