from __future__ import annotations

import datetime as dt
import gzip
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.readers import column, read_all, source
from wincli.readers.values.kinds import NOTHING, TEXT, join
from wincli.windowing.errors import InputError


@pytest.fixture
def lines(tmp_path: Path) -> Any:
    def write(*rows: Any, name: str = "x.jsonl") -> Path:
        path = tmp_path / name
        texts = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        path.write_bytes(b"".join(text + b"\n" for text in texts))
        return path

    return write


def types(opened: Any) -> dict[str, str]:
    return {field.name: str(field.type) for field in opened.schema}


@pytest.mark.parametrize("split_bytes", [1, 1 << 20])
def test_types_are_inferred_over_the_whole_data(lines: Any, split_bytes: int) -> None:
    opened = source(
        lines(
            {"i": 1, "f": 1, "b": True, "t": "2020-01-01", "s": "2020-01-01", "l": [1], "n": None},
            {"i": None, "f": 2.5, "t": "2020-01-01T10:00:00.5", "s": "x", "l": [1.5], "o": {"p": 1}},
            {"z": "2020-01-01T10:00:00.123456789+02:00", "o": {"q": "2020-01-01"}},
        ),
        split_bytes=split_bytes,
    )
    assert types(opened) == {
        **{"i": "int64", "f": "double", "b": "bool", "t": "timestamp[us]", "s": "string", "l": "list<item: double>"},
        **{"n": "null", "o": "struct<p: int64, q: string>", "z": "timestamp[ns, tz=UTC]"},
    }
    first, second, third = read_all(opened).rows
    assert first["t"] == dt.datetime(2020, 1, 1)
    assert first["s"] == "2020-01-01"
    assert second["f"] == 2.5
    assert second["o"] == {"p": 1, "q": None}
    assert third["o"] == {"p": None, "q": "2020-01-01"}


@pytest.mark.parametrize("split_bytes", [1, 60, 1 << 20])
def test_values_of_several_kinds_become_their_texts(lines: Any, split_bytes: int) -> None:
    rows = [b'{"u":12}', b'{"u":"x"}', b'{"u":1.50}', b'{"u":true}', b'{"u":null}', b'{"u":{"k":[1,2.5]}}', b"{}"]
    opened = source(lines(*rows), split_bytes=split_bytes)
    assert column(opened, "u") == ["12", "x", "1.50", "true", None, '{"k": [1, 2.5]}', None]
    assert opened.explain_type("u").endswith("x.jsonl has 'x' at line 2")  # type: ignore[union-attr]


def test_values_of_several_kinds_far_apart(lines: Any) -> None:
    rows = [{"u": i, "k": i} for i in range(3000)]
    rows[2500]["u"] = "x"
    opened = source(lines(*rows))
    assert types(opened) == {"u": "string", "k": "int64"}
    assert column(opened, "u")[2499:2502] == ["2499", "x", "2501"]
    assert column(opened, "k") == list(range(3000))


def test_integers_beyond_64_bits_are_floats(lines: Any) -> None:
    assert column(source(lines({"a": 1}, {"a": 2**64})), "a") == [1.0, 2.0**64]


TORN = [
    b"\0" * 20,
    b" \0 ",
    b"\f",
    b"null",
    b"true",
    b'"}"',
    b"{",
    b"}",
    b'null{"a":1}',
    b'{"a":1}null',
    b'{"a":1}null{"a":2}',
    b'\xef\xbb\xbf{"a":1}',
    b'{"a":',
    b"nonsense",
    b"[1]",
    b"5",
    b'{"a":1}{"a":2}',
    b'{"a":"\xff"}',
    b'{"a":1},',
]


@pytest.mark.parametrize("split_bytes", [1, 1 << 20])
@pytest.mark.parametrize("torn", TORN)
def test_torn_lines_are_rejects_with_their_line_and_text(lines: Any, torn: bytes, split_bytes: int) -> None:
    path = lines({"a": 1}, b"", torn, b" \t", {"a": 2}, b"\r", {"a": 3})
    every = read_all(source(path, split_bytes=split_bytes))
    assert every.rows == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert every.pos == [0, 2, 3]
    assert every.lines == [1, 5, 7]
    assert every.rejects == [
        {
            **{"_reason": "unparsable", "_file": str(path), "_row": 3, "_detail": "the line is not one JSON object"},
            "_text": torn.decode(errors="backslashreplace"),
        }
    ]


@pytest.mark.parametrize("split_bytes", [1, 1 << 20])
@pytest.mark.parametrize("big", [b"[-1e999]", b"-1e999", b'{"p": [1, 2E+400]}', b"1.5e0999"])
def test_a_number_beyond_floats_rejects_no_row(lines: Any, big: bytes, split_bytes: int) -> None:
    opened = source(
        lines({"a": 1, "y": None}, b'{"a": 2, "y": ' + big + b"}", b"torn", {"a": 3}), split_bytes=split_bytes
    )
    every = read_all(opened, ["a"])
    assert [row["a"] for row in every.rows] == [1, 2, 3]
    assert [r["_row"] for r in every.rejects] == [3]
    assert [row["a"] for row in read_all(opened).rows] == [1, 2, 3]


def test_a_number_beyond_floats_is_infinite(lines: Any) -> None:
    opened = source(lines({"y": 1.5, "l": [2.5]}, b'{"y": -1e999, "l": [1e400]}'))
    assert read_all(opened).rows == [{"y": 1.5, "l": [2.5]}, {"y": -math.inf, "l": [math.inf]}]


@pytest.mark.parametrize(
    "torn", [b'{"a": 01e999}', b'{"a": 1.e999}', b'{"a": 1e999x}', b'{"a": "\\ud800", "b": 1e999}']
)
def test_a_line_with_a_number_beyond_floats_is_still_one_object(lines: Any, torn: bytes) -> None:
    assert [r["_row"] for r in read_all(source(lines({"a": 1}, torn))).rejects] == [2]


def test_a_torn_line_among_many_is_found_without_harm_to_the_others(lines: Any) -> None:
    rows: list[Any] = [{"a": i, "s": f"x{i}"} for i in range(5000)]
    rows[3210] = b'{"a":3210,"s":"x'
    every = read_all(source(lines(*rows)))
    assert [row["a"] for row in every.rows] == [i for i in range(5000) if i != 3210]
    assert [r["_row"] for r in every.rejects] == [3211]
    assert read_all(source(lines(*rows)), ["s"]).pos == every.pos
    assert read_all(source(lines(*rows)), []).pos == every.pos


def test_given_types_reject_what_does_not_fit(lines: Any) -> None:
    path = lines({"a": 1, "k": 1}, {"a": "7", "k": 2}, {"a": "x", "k": 3}, {"a": 1.5, "k": 4}, {"k": 5})
    every = read_all(source(path, schema="a:int"))
    assert every.rows == [{"a": 1, "k": 1}, {"a": 7, "k": 2}, {"a": None, "k": 5}]
    assert [(r["_row"], r["_detail"]) for r in every.rejects] == [
        (3, "column a: 'x' is not an integer"),
        (4, "column a: '1.5' is not an integer"),
    ]


def test_compressed_lines_and_a_byte_order_mark(tmp_path: Path, lines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wincli.readers.files.byte_ranges.STEP", 64)
    text = b"\xef\xbb\xbf" + b"".join(b'{"a":%d}\r\n' % i for i in range(50)) + b"torn\n"
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(text))
    every = read_all(source(tmp_path / "x.jsonl.gz"))
    assert [row["a"] for row in every.rows] == list(range(50))
    assert every.lines == list(range(1, 51))
    assert [r["_row"] for r in every.rejects] == [51]
    (tmp_path / "y.jsonl").write_bytes(text)
    assert read_all(source(tmp_path / "y.jsonl", split_bytes=9)).rows == every.rows
    (tmp_path / "z.jsonl.gz").write_bytes(gzip.compress(text)[:-12])
    with pytest.raises(InputError, match=r"z\.jsonl\.gz cannot be read"):
        source(tmp_path / "z.jsonl.gz")


def cut(path: Path) -> list[tuple[Any, ...]]:
    """Return what a file reads as, cut at every line, in the midst and not at all."""
    every = [(opened, read_all(opened)) for opened in (source(path, split_bytes=n) for n in (1, 2, 7, 20, 1 << 20))]
    return [
        (opened.schema, data.rows, data.pos, data.lines, [(r["_row"], r["_text"]) for r in data.rejects])
        for opened, data in every
    ]


@pytest.mark.parametrize(
    ("rows", "good", "bad"),
    [
        ([b"null", b'{"a":1}'], [1], [1]),
        ([b"", b" \tnull", b"null\r", b' {"a":1}\t\r', b"null"], [1], [2, 3, 5]),
        ([b'{"a":1}{"a":2}', b'{"a":', b"3}", b'{"a":4}'], [4], [1, 2, 3]),
        ([b'{"a":1}{"a":2}', b'{"a":{}', b"}", b'{"a":4}'], [4], [1, 2, 3]),
        ([b'{"a":1}', b'{"a":2} {"a":3}', b'{"b":[{}', b"{}]}", b"{}{}"], [1], [2, 3, 4, 5]),
        ([b'{"a":1}{"a":2}', b'{"b":"}', b'{"}', b'{"b":{"c":1}', b'{"a":4}'], [4], [1, 2, 3, 4]),
    ],
)
def test_torn_lines_do_not_hide_each_other(lines: Any, rows: list[bytes], good: list[int], bad: list[int]) -> None:
    first, *others = cut(lines(*rows))
    assert first[1] == [{"a": value} for value in good]
    assert first[4] == [(row, rows[row - 1].decode()) for row in bad]
    assert all(other == first for other in others)


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
    first, *others = cut(lines(*({"o": value, "k": 1} for value in values)))
    assert first[0] == pa.schema([("o", kind), ("k", pa.int64())])
    assert len(first[1]) == len(values)
    assert not first[4]
    assert all(other == first for other in others)


def test_empty_structs_join_as_other_structs_do() -> None:
    assert join(pa.struct([]), pa.struct([])) == pa.struct([])
    assert join(pa.struct([]), NOTHING) == pa.struct([])
    assert join(pa.struct([]), pa.list_(pa.null())) == TEXT
