"""The record of a unit as text, there and back, and the manifest of a result."""

from __future__ import annotations

import json
import platform
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.columns.row_digest import RowDigest
from wincli.windowing.errors import ConfigError, DamagedError
from wincli.windowing.ports import Counts, InputFile, Part, ResultPart, StreamInfo
from wincli.windowing.support.checksum import checksum
from wincli.writers.output.manifest import build_manifest
from wincli.writers.state.unit_record import BorrowedRows, OpenWindows, StageRecord, UnitRecord, WrittenOutput

TEXT = st.text(max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXT, PLAIN, max_size=3)
MAYBE = st.none() | TEXT
FILES = st.lists(st.builds(InputFile, TEXT, st.integers(0), MAYBE), max_size=2).map(tuple)
PARTS_OF_STAGES = st.lists(st.builds(Part, TEXT, st.integers(0), st.integers(0), MAYBE), max_size=2).map(tuple)
OPEN = st.builds(OpenWindows, st.integers(0), st.integers(0), MAYBE)
STAGES = st.builds(StageRecord, TEXT, OBJECTS, OBJECTS, OBJECTS, st.integers(0), PARTS_OF_STAGES, OPEN)
OF_TYPES: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXT,
    "str | None": MAYBE,
    "int": st.integers(),
    "Mapping[str, Any]": OBJECTS,
    "Mapping[str, float]": st.dictionaries(TEXT, st.floats(0, 1e9), max_size=2),
    "Mapping[str, str | None]": st.dictionaries(TEXT, MAYBE, max_size=2),
    "Mapping[str, tuple[InputFile, ...]]": st.dictionaries(TEXT, FILES, max_size=2),
    "tuple[str, ...]": st.lists(TEXT, max_size=2).map(tuple),
    "tuple[str | None, ...]": st.lists(MAYBE, max_size=2).map(tuple),
    "tuple[InputFile, ...]": FILES,
    "tuple[WrittenOutput, ...]": st.lists(st.builds(WrittenOutput, TEXT, TEXT), max_size=2).map(tuple),
    "tuple[StageRecord, ...]": st.lists(STAGES, max_size=2).map(tuple),
    "tuple[BorrowedRows, ...]": st.lists(st.builds(BorrowedRows, TEXT, FILES), max_size=2).map(tuple),
    "tuple[Mapping[str, Any], ...]": st.lists(OBJECTS, max_size=2).map(tuple),
}
OF_FIELDS = {field.name: OF_TYPES[str(field.type)] for field in fields(UnitRecord)}
RUN = st.none() | st.text(min_size=1, max_size=8)
RECORDS = st.builds(UnitRecord, **{**OF_FIELDS, "numbers": RUN, "began_numbers": RUN})


@given(RECORDS)
def test_a_record_reads_back_as_it_was(record: UnitRecord) -> None:
    text = record.to_json()
    assert UnitRecord.from_json(text, "unit.json") == record
    assert UnitRecord.from_json(text.encode(), "unit.json").to_json() == text


COUNTS = {"rows_in": 4, "windowed": 1, "filtered": 0, "dropped_at_end": 0, "held": 2, "rejected": {"late": 1}}
PARTS = tuple(
    Part(name, 2, 9, "crc32:0000000f", f"rows1:{at:032x}")
    for at, name in enumerate(("keys-00000.parquet", "rows-00000.parquet"), 1)
)
STAGE = StageRecord(
    "window", {"key": ["user"]}, {"clock": 17, "watermark": None}, COUNTS | {"carried": 0}, 5, PARTS,
    OpenWindows(1, 1, "7"),
)  # fmt: skip
LOG = InputFile("in/é.csv", 3, None)
RECORD = UnitRecord(
    "2026-11-02", 20759, "2026-11-02", "2026-11-03", "2026-11-01", (LOG,), (WrittenOutput("out", "/home/ann/out"),),
    (STAGE,), "0f", "t0", "t1", {"scan": 1.5}, {"wincli": None}, "0e", "0d",
    {"input": ["in"], "output": "out", "stages": [{}]}, ("2026-11-01",), (BorrowedRows("2026-11-03", (LOG,)),),
    digests=(None,),
)  # fmt: skip


def test_its_text_is_readable_and_in_a_fixed_order() -> None:
    told = json.loads(RECORD.to_json())
    assert told.pop("checksum") == checksum(json.dumps(told, sort_keys=True, separators=(",", ":")).encode())
    file = {"path": "in/é.csv", "size": 3, "mtime": None}
    stage = {
        "name": "window",
        "identity": {"key": ["user"]},
        "registers": {"clock": 17, "watermark": None},
        "counts": COUNTS | {"carried": 0},
        "windows": 5,
        "parts": [
            {"name": name, "rows": 2, "nbytes": 9, "checksum": "crc32:0000000f", "digest": f"rows1:{at:032x}"}
            for at, name in enumerate(("keys-00000.parquet", "rows-00000.parquet"), 1)
        ],
        "open": {"windows": 1, "keys": 1, "oldest": "7"},
        "digest": f"rows1:{3:032x}",
    }
    assert list(told.items()) == [
        ("format", 3),
        ("label", "2026-11-02"),
        ("ordinal", 20759),
        ("start", "2026-11-02"),
        ("end", "2026-11-03"),
        ("previous", "2026-11-01"),
        ("inputs", [file]),
        ("outputs", [{"shown": "out", "path": "/home/ann/out"}]),
        ("stages", [stage]),
        ("run", "0f"),
        ("started", "t0"),
        ("finished", "t1"),
        ("seconds", {"scan": 1.5}),
        ("versions", {"wincli": None}),
        ("state", "0e"),
        ("began", "0d"),
        ("job", {"input": ["in"], "output": "out", "stages": [{}]}),
        ("lent", ["2026-11-01"]),
        ("borrowed", [{"label": "2026-11-03", "files": [file]}]),
        ("enrich", {}),
        ("digests", [None]),
    ]
    assert RECORD.to_json().startswith('{\n  "format": 3,\n  "label": "2026-11-02",\n')
    assert '"in/é.csv"' in RECORD.to_json()


def test_newer_format_is_an_error() -> None:
    said = r"s/d/unit.json was written by a newer wincli: it has format 4, and this one knows 3; use that version"
    with pytest.raises(ConfigError, match=said):
        UnitRecord.from_json('{"format": 4, "new": []}', "s/d/unit.json")


SAID = r"^s/d/unit.json is damaged: it is not the record that was written there; restore it; a unit of a range, or"
NO_RECORDS: list[Any] = [
    *["", "{", "[]", "{}", '"format"', '{"format": 1}', '{"format": 1, "inputs": [3]}', '{"format": "2"}', "[" * 9999],
    *['{"format": 2}', '{"format": 3}', '{"format": 4, "checksum": "crc32:00000000"}', b"\xff", b"\0"],
]


@pytest.mark.parametrize("text", NO_RECORDS, ids=range(len(NO_RECORDS)))
def test_file_that_is_no_record_is_an_error(text: Any) -> None:
    with pytest.raises(DamagedError, match=SAID):
        UnitRecord.from_json(text, "s/d/unit.json")


def test_a_flipped_bit_in_any_byte_of_a_record_is_found_or_is_white_space() -> None:
    content = RECORD.to_json().encode()
    read: dict[int, UnitRecord] = {}
    for bit in range(0, 8 * len(content), 3):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with suppress(DamagedError):
            read[bit] = UnitRecord.from_json(bytes(flipped), "s/d/unit.json")
    assert all(record == RECORD for record in read.values())
    assert all(content[bit // 8 : bit // 8 + 1].isspace() for bit in read)


def test_a_cut_record_is_found() -> None:
    content = RECORD.to_json().encode()
    for length in range(len(content) - 1):
        with pytest.raises(DamagedError, match=SAID):
            UnitRecord.from_json(content[:length], "s/d/unit.json")


def old(**changed: Any) -> str:
    """The record as 0.4.1 would have written it: without checksums and digests."""
    told = json.loads(RECORD.to_json())
    del told["checksum"], told["digests"], told["stages"][0]["digest"]
    for part in told["stages"][0]["parts"]:
        del part["checksum"], part["digest"]
    return json.dumps({**told, "format": 1, **changed}, indent=2)


def old_stage(**changed: Any) -> dict[str, Any]:
    return {"stages": [json.loads(old())["stages"][0] | changed]}


def test_a_record_without_checksums_reads() -> None:
    stage = replace(STAGE, parts=tuple(Part(part.name, 2, 9) for part in PARTS))
    record = UnitRecord.from_json(old(), "s/d/unit.json")
    assert record == replace(RECORD, stages=(stage,), digests=())
    assert record.stages[0].digest is None


@pytest.mark.parametrize(
    "changed",
    [
        *[{"ordinal": "20759"}, {"label": 5}, {"previous": 3}, {"job": {}}, {"job": {"stages": [{}]}}, {"laben": "x"}],
        *(old_stage(**told) for told in [{"counts": {}}, {"registers": {}}, {"windows": "5"}, {"open": {}}]),
        *[old_stage(parts=[{"name": "p"}]), old_stage(counts=COUNTS | {"carried": 0, "rejected": {"late": "1"}})],
    ],
    ids=range(12),
)
def test_record_without_checksums_and_with_a_missing_field_is_an_error(changed: dict[str, Any]) -> None:
    with pytest.raises(DamagedError, match=SAID):
        UnitRecord.from_json(old(**changed), "s/d/unit.json")


# The manifest of a result


def manifest(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "job": {"window": "delta(ts,60)", "mode": "error"},
        "spec": "tumbling, delta(ts, 60)",
        "schema": pa.schema([("user", pa.dictionary(pa.int32(), pa.string())), ("_at", pa.timestamp("us", "UTC"))]),
        "order": ["ts"],
        "order_why": "the attribute named by the window",
        "inputs": [InputFile("in/a.parquet", 7, "2026-11-01T00:00:00Z"), InputFile("s3://b/c", 9, None)],
        "counts": Counts(rows_in=10, windowed=9, rejected={"null_key": 1}),
        "parts": [Part("part-00000.parquet", 3, 100), Part("part-00001.parquet", 4, 200)],
        "rejects": [Part("_rejected/part-00000.parquet", 1, 50)],
        "seconds": {"plan": 0.12345, "scan": 2},
        "stream": StreamInfo(("_at", "_pos"), ("_at",), ("window", "_at", "_pos")),
    }
    return build_manifest(**{**given, **changes})


def test_manifest_has_the_request_inputs_and_outputs() -> None:
    made = json.loads(json.dumps(manifest()))
    versions = made.pop("versions")
    assert made == {
        "format": 1,
        "spec": "tumbling, delta(ts, 60)",
        "job": {"window": "delta(ts,60)", "mode": "error"},
        "schema": [{"name": "user", "type": "string"}, {"name": "_at", "type": "timestamp[us, tz=UTC]"}],
        "order": {"columns": ["ts"], "why": "the attribute named by the window"},
        "stream": {"order": ["_at", "_pos"], "at": ["_at"], "own": ["window", "_at", "_pos"]},
        "inputs": [
            {"path": "in/a.parquet", "size": 7, "mtime": "2026-11-01T00:00:00Z"},
            {"path": "s3://b/c", "size": 9, "mtime": None},
        ],
        "inputs_skipped": 0,
        "inputs_cut_at": None,
        "enrich": {},
        "stages": [],
        "counts": {
            "rows_in": 10,
            "windowed": 9,
            "filtered": 0,
            "dropped_at_end": 0,
            "held": 0,
            "carried": 0,
            "panes_hidden": 0,
            "rejected": {"null_key": 1},
        },
        "expectations": [],
        "rows_out": 7,
        "digest": None,
        "parts": [
            {"name": "part-00000.parquet", "rows": 3, "bytes": 100},
            {"name": "part-00001.parquet", "rows": 4, "bytes": 200},
        ],
        "rejects": [{"name": "_rejected/part-00000.parquet", "rows": 1, "bytes": 50}],
        "seconds": {"plan": 0.123, "scan": 2.0},
    }
    assert set(versions) == {"wincli", "python", "pyspark", "pyarrow", "numpy", "numba"}
    assert (versions["pyarrow"], versions["python"]) == (pa.__version__, platform.python_version())


def test_manifest_keys_are_always_in_the_same_order_though_a_result_has_no_stream() -> None:
    least = manifest(stream=None, job={}, parts=[], seconds={})
    assert list(manifest()) == list(least)
    assert least["stream"] is None


def test_the_digest_of_a_result_is_the_sum_of_those_of_its_parts_if_all_have_one() -> None:
    parts = [ResultPart(f"part-{at}", 1, 1, digest=str(RowDigest(at, 2**64 - 1))) for at in (1, 2)]
    assert manifest(parts=parts)["digest"] == str(RowDigest(3, 2**64 - 2))
    assert [part["digest"] for part in manifest(parts=parts)["parts"]] == [part.digest for part in parts]
    assert manifest(parts=[*parts, ResultPart("part-3", 1, 1)])["digest"] is None
