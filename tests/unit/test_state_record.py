"""The record of a unit as text, there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowing.engine.ports import InputFile, Part
from windowing.errors import ConfigError, InputError
from writers.record import Loan, OpenWindows, StageRecord, UnitRecord, WrittenOutput

TEXT = st.text(max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXT, PLAIN, max_size=3)
MAYBE = st.none() | TEXT
STAGES = st.builds(
    StageRecord,
    TEXT,
    OBJECTS,
    OBJECTS,
    OBJECTS,
    st.integers(0),
    st.lists(st.builds(Part, TEXT, st.integers(0), st.integers(0)), max_size=2).map(tuple),
    st.builds(OpenWindows, st.integers(0), st.integers(0), MAYBE),
)
FILES = st.lists(st.builds(InputFile, TEXT, st.integers(0), MAYBE), max_size=2).map(tuple)
RECORDS = st.builds(
    UnitRecord,
    TEXT,
    st.integers(),
    MAYBE,
    MAYBE,
    MAYBE,
    FILES,
    st.lists(st.builds(WrittenOutput, TEXT, TEXT), max_size=2).map(tuple),
    st.lists(STAGES, max_size=2).map(tuple),
    TEXT,
    TEXT,
    TEXT,
    st.dictionaries(TEXT, st.floats(0, 1e9), max_size=2),
    st.dictionaries(TEXT, MAYBE, max_size=2),
    TEXT,
    MAYBE,
    OBJECTS,
    st.lists(TEXT, max_size=2).map(tuple),
    st.lists(st.builds(Loan, TEXT, FILES), max_size=2).map(tuple),
)


@given(RECORDS)
def test_a_record_reads_back_as_it_was(record: UnitRecord) -> None:
    text = record.to_json()
    assert UnitRecord.from_json(text, "unit.json") == record
    assert UnitRecord.from_json(text.encode(), "unit.json").to_json() == text


def test_its_text_is_readable_and_in_a_fixed_order() -> None:
    stage = StageRecord(
        "s", {"spec": "é"}, {}, {"held": 2}, 5, (Part("rows-00000.parquet", 2, 9),), OpenWindows(1, 1, "7")
    )
    files, outputs = (InputFile("in/a.csv", 3, None),), (WrittenOutput("out", "/home/ann/out"),)
    record = UnitRecord(
        "d2", 2, "a", "b", "d1", files, outputs, (stage,), "0f", "t0", "t1", {"scan": 1.5}, {"wincli": None},
        "0e", "0d", {"keep": 10}, ("d1",), (Loan("d3", files),),
    )  # fmt: skip
    assert json.loads(record.to_json()) == {
        "format": 1,
        "label": "d2",
        "ordinal": 2,
        "start": "a",
        "end": "b",
        "previous": "d1",
        "inputs": [{"path": "in/a.csv", "size": 3, "mtime": None}],
        "outputs": [{"shown": "out", "path": "/home/ann/out"}],
        "stages": [
            {
                "name": "s",
                "identity": {"spec": "é"},
                "registers": {},
                "counts": {"held": 2},
                "windows": 5,
                "parts": [{"name": "rows-00000.parquet", "rows": 2, "nbytes": 9}],
                "open": {"windows": 1, "keys": 1, "oldest": "7"},
            }
        ],
        "run": "0f",
        "started": "t0",
        "finished": "t1",
        "seconds": {"scan": 1.5},
        "versions": {"wincli": None},
        "state": "0e",
        "began": "0d",
        "job": {"keep": 10},
        "lent": ["d1"],
        "borrowed": [{"label": "d3", "files": [{"path": "in/a.csv", "size": 3, "mtime": None}]}],
    }
    assert record.to_json().startswith('{\n  "format": 1,\n  "label": "d2",\n')
    assert '"é"' in record.to_json()


def test_a_newer_format_is_told() -> None:
    said = r"s/d/unit.json was written by a newer wincli: it has format 2, and this one knows 1; use that version"
    with pytest.raises(ConfigError, match=said):
        UnitRecord.from_json('{"format": 2, "new": []}', "s/d/unit.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"format"', '{"format": 1}', '{"format": 1, "inputs": [3]}'])
def test_what_is_no_record_is_told(text: Any) -> None:
    with pytest.raises(InputError, match=r"s/d/unit.json is damaged: it is not the record of a unit; restore it"):
        UnitRecord.from_json(text, "s/d/unit.json")
