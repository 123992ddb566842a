"""Lines of JSON that nest deeper than parsers can follow: rejects, each by itself; what is near is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.readers import read_all, source
from support.strategies import examples
from wincli.readers.values.record_bounds import DEEPEST, are_deep, are_objects, locate_lines
from wincli.windowing.errors import ConfigError
from wincli.writers.output.sink import check_types

SHAPES = {"lists": ("[", "]", ""), "objects": ('{"a":', "}", "1"), "both": ('[{"b":', "}]", "null")}


def nested(levels: int, shape: str = "lists") -> str:
    """An object that nests so many levels, itself included."""
    opens, closes, inner = SHAPES[shape]
    step = 2 if shape == "both" else 1
    if (levels - 1) % step:
        inner, levels = f"[{inner}]", levels - 1
    return f'{{"x":{opens * ((levels - 1) // step)}{inner}{closes * ((levels - 1) // step)}}}'


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("levels", [DEEPEST + 1, 1_500, 20_000, 300_000])
def test_a_line_that_nests_too_deep_is_one_reject(tmp_path: Path, levels: int, shape: str) -> None:
    deep = nested(levels, shape)
    path = write(tmp_path / "a.jsonl", '{"a":1}', deep, '{"a":2}', '{"a":"[[["}')
    got = read_all(source(path))
    assert [row["a"] for row in got.rows] == ["1", "2", "[[["]
    assert got.pos == [0, 2, 3]
    reject = {"_reason": "unparsable", "_file": str(path), "_row": 2, "_text": deep}
    assert got.rejects == [{**reject, "_detail": "the line nests more than 100 levels"}]


def test_a_line_that_nests_as_deep_as_it_may_is_read(tmp_path: Path) -> None:
    for shape in SHAPES:
        opened = source(write(tmp_path / "a.jsonl", '{"a":1}', nested(DEEPEST, shape)))
        assert read_all(opened).rows[1]["x"] is not None
        assert [row["a"] for row in read_all(opened, ["a"]).rows] == [1, None]


def test_lines_that_are_torn_in_the_depth_are_rejects(tmp_path: Path) -> None:
    torn = ['{"x":' + "[" * 300_000 + "}", '{"x":' * 5_000 + "}", '{"x":"' + "[" * 300_000 + "}", "[" * 5_000]
    got = read_all(source(write(tmp_path / "a.jsonl", '{"a":1}', *torn, '{"a":2}')))
    assert [row["a"] for row in got.rows] == [1, 2]
    object_ = "the line is not one JSON object"
    assert [r["_detail"] for r in got.rejects] == ["the line nests more than 100 levels"] * 2 + [object_] + [
        "the line nests more than 100 levels"
    ]


def test_brackets_in_texts_and_side_by_side_are_no_depth(tmp_path: Path) -> None:
    texts = ["[" * 500, '"[' * 300, "\\" * 3 + '"' + "{" * 300, '{"a":' * 200]
    lines = [json.dumps({"a": text, "b": [[1]] * 200}) for text in texts]
    got = read_all(source(write(tmp_path / "a.jsonl", *lines)))
    assert [row["a"] for row in got.rows] == texts
    assert not got.rejects


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
    wrapped = list(objects)
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
def test_lines_that_are_not_blank_are_found_with_their_numbers(lines: list[bytes], ends: bool) -> None:
    data = b"\n".join(lines) + b"\n" * ends
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
