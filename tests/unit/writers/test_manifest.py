"""The manifest as a value."""

from __future__ import annotations

import json
import platform
from typing import Any

import pyarrow as pa

from wincli.windowing.columns.row_hashes import RowDigest
from wincli.windowing.ports import Counts, InputFile, Part, ResultPart, StreamInfo
from wincli.writers.output.manifest import build_manifest
from wincli.writers.output.versions import versions


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


def test_manifest_keys_are_always_in_the_same_order() -> None:
    assert list(manifest()) == list(manifest(stream=None, job={}, parts=[], seconds={}))


def test_a_result_without_stream_columns_has_no_stream() -> None:
    assert manifest(stream=None)["stream"] is None


def test_the_digest_of_a_result_is_the_sum_of_those_of_its_parts() -> None:
    parts = [ResultPart(f"part-{at}", 1, 1, digest=str(RowDigest(at, 2**64 - 1))) for at in (1, 2)]
    assert manifest(parts=parts)["digest"] == str(RowDigest(3, 2**64 - 2))
    assert [part["digest"] for part in manifest(parts=parts)["parts"]] == [part.digest for part in parts]


def test_a_result_with_a_part_that_has_no_digest_has_none() -> None:
    parts = [ResultPart("part-0", 1, 1, digest=str(RowDigest())), ResultPart("part-1", 1, 1)]
    assert manifest(parts=parts)["digest"] is None


def test_versions_are_those_in_use() -> None:
    assert versions()["pyarrow"] == pa.__version__
    assert versions()["python"] == platform.python_version()
