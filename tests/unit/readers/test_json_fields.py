"""Plain lines of JSON: what is read of them without a parser is what Arrow's parser gives."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.readers.formats.jsonl import _read_plain, _read_range, infer_lines, infer_plain
from wincli.readers.values.json_fields import JsonLines, fields_of, kinds_of_lines
from wincli.readers.values.kinds import type_of
from wincli.readers.values.record_bounds import locate_lines
from wincli.readers.values.types import ColumnType, column_type

LAW = examples(150, deadline=None)
TIMES = ["2020-01-01", "2020-01-01T10:00:00.5", "2020-01-01T10:00:00Z", "2020-01-01 10:00:00.123456789", "2020-13-01"]
VALUES = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.integers(-9, 9)),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "1", "é", "a\\b", 'say "hi"', *TIMES]),
    st.lists(st.integers(0, 5), max_size=2),
)
CELLS = st.sampled_from(
    [st.integers(-9, 9), st.floats(-9, 9), st.booleans(), st.sampled_from(TIMES), st.text("ab", max_size=2), VALUES]
)
TYPES = st.sampled_from(["int64", "float64", "bool", "string", "date", "timestamp", "timestamp_ns", "timestamptz"])


@st.composite
def lines(draw: st.DrawFn) -> JsonLines:
    cells = {name: draw(CELLS) for name in ("a", "b", "ü")}
    blank = draw(st.sampled_from([("", ""), (" ", " "), ("\t", "  ")]))
    out = []
    for _ in range(draw(st.integers(1, 6))):
        row: dict[str, Any] = {name: draw(cell) for name, cell in cells.items() if draw(st.integers(0, 4))}
        names = draw(st.permutations(list(row)))
        text = json.dumps(
            {name: row[name] for name in names}, ensure_ascii=False, separators=("," + blank[0], ":" + blank[1])
        )
        out.append(blank[0] + text + blank[1] + draw(st.sampled_from(["\n", "\r\n", "\n\n"])))
    return lines_of("".join(out).encode())


def lines_of(data: bytes) -> JsonLines:
    return JsonLines(data, locate_lines(data)[0])


@LAW
@given(text=lines())
def test_plain_lines_have_the_columns_and_types_that_the_parser_finds(text: JsonLines) -> None:
    found = infer_plain(text.data)
    if found is not None:
        plain, rows, line_ends = found
        assert (rows, line_ends) == (len(text), text.data.count(b"\n"))
        parsed = infer_lines(text, 0, len(text))
        assert [(name, type_of(kind)) for name, kind in plain.items()] == [
            (name, type_of(kind)) for name, kind in parsed.items()
        ]


@LAW
@given(text=lines(), types=st.tuples(TYPES, TYPES))
def test_plain_lines_read_as_the_parser_reads_them(text: JsonLines, types: tuple[str, str]) -> None:
    want = {name: column_type(kind) for name, kind in zip(("ü", "a"), types, strict=True)}
    plain = _read_plain(text.data, want)
    if plain is not None:
        table, details = _read_range(text, 0, len(text), want)
        assert plain[0].equals(table.combine_chunks())
        assert plain[1] == details


def test_a_log_is_plain() -> None:
    text = lines_of(
        b'{"ts": "2026-11-01T00:00:00.5", "user": "u1", "n": -1}\n {"user":"u2","x":1.5 , "ok" : true}\r\n{}'
    )
    found = kinds_of_lines(text.data)
    assert found is not None
    assert tuple(found[0]) == ("ts", "user", "n", "x", "ok")
    table, *_ = _read_plain(text.data, {"user": ColumnType(pa.string()), "x": ColumnType(pa.float64())}) or (None,)
    assert table.to_pylist() == [{"user": "u1", "x": None}, {"user": "u2", "x": 1.5}, {"user": None, "x": None}]


OTHERS = [
    *('{"a": 1, "a": 2}', '{"a": 01}', '{"a": 1.}', '{"a": .5}', '{"a": -}', '{"a": 1e400}', '{"a": nul}'),
    *('{"a": trueish}', '{"a": "x}', '{"a": "\\u0041"}', '{"a": "\t"}', '{"a": [1]}', '{"a": {}}', '{"a": 1'),
    *('{"a": 1} {"a": 2}', '{"a": 1,}', '{"a" 1}', "{a: 1}", "null", "[]", '{"a": NaN}', '{,"a": 1}', '{"a": t'),
    '{"a":',
]


@pytest.mark.parametrize("line", OTHERS)
def test_other_lines_are_left_to_the_parser(line: str) -> None:
    text = f'{{"a": 1}}\n{line}'.encode()
    assert fields_of(text, ["a"]) is None
    assert kinds_of_lines(text) is None
