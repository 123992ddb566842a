"""Results of wincli as inputs: the parts that their manifests name, in that order and of those types, or an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.readers import column, put, read_all, source, types
from wincli.windowing.errors import DamagedError, InputError
from wincli.windowing.ports import OWN, StreamInfo
from wincli.windowing.support.checksum import seal

STREAM = {"order": ["_at", "_pos", "window", "k"], "at": ["_at"]}
MANIFEST = "_wincli/manifest.json"


def describe(folder: Path, rows: Sequence[int], stream: Any = STREAM, **more: Any) -> Path:
    """Write the manifest of the parts that are in a folder; ``rows``: of each."""
    parts = [
        {"name": path.name, "rows": n, "bytes": path.stat().st_size}
        for path, n in zip(sorted(folder.glob("part-*")), rows, strict=True)
    ]
    (folder / "_wincli").mkdir(exist_ok=True)
    (folder / MANIFEST).write_text(json.dumps({"stream": stream, "parts": parts, **more}))
    return folder


def result(folder: Path, *parts: list[int], stream: Any = STREAM) -> Path:
    """Write a result of wincli with the given ``n`` in each part."""
    folder.mkdir(parents=True)
    for i, values in enumerate(parts):
        own = {"n": values, "_at": values, "_pos": values, "_mark": pa.array(["window"] * len(values))}
        put(folder / f"part-{i:05d}.parquet", own)
    return describe(folder, [len(values) for values in parts], stream)


def test_a_result_is_a_stream_of_the_parts_that_its_manifest_names_in_its_order(tmp_path: Path) -> None:
    out = result(tmp_path / "out", [1, 2], [3], [4])
    opened = source(out)
    assert opened.stream == StreamInfo(("_at", "_pos", "window", "k"), ("_at",))
    assert opened.schema.names == ["n", "_at", "_pos", "_mark"]
    assert column(opened, "n") == [1, 2, 3, 4]
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["parts"] = [manifest["parts"][2], manifest["parts"][0]]
    (out / MANIFEST).write_text(json.dumps(manifest))
    assert column(source(out), "n") == [4, 1, 2]
    for lost in ("part-00002.parquet", "part-00000.parquet"):
        (out / lost).unlink()
        with pytest.raises(InputError, match=r"out lacks part-00002\.parquet, which its manifest names"):
            source(out)


def test_results_below_one_folder_are_one_stream_after_another(tmp_path: Path) -> None:
    result(tmp_path / "in/dt=2026-11-02", [3])
    result(tmp_path / "in/dt=2026-11-01", [1], [2])
    opened = source(tmp_path / "in")
    assert opened.stream == StreamInfo(("_stream", "_at", "_pos", "window", "k"), ("_at",), ("_stream", *OWN))
    assert opened.schema.names == ["n", "_at", "_pos", "_mark", "dt", "_stream"]
    assert opened.schema.field("_stream").type == pa.int64()
    found = [(row["n"], row["_stream"], row["dt"].day) for row in read_all(opened).rows]
    assert found == [(1, 0, 1), (2, 0, 1), (3, 1, 2)]


def test_a_plain_result_and_one_part_of_a_result_are_ordinary_inputs(tmp_path: Path) -> None:
    opened = source(result(tmp_path / "out", [1], [2], stream=None))
    assert opened.stream is None
    assert column(opened, "n") == [1, 2]
    put(tmp_path / "a.parquet", {"n": [9]})
    assert column(source(tmp_path), "n") == [9, 1, 2]
    assert source(result(tmp_path / "stream", [1]) / "part-00000.parquet").stream is None


def test_results_that_do_not_go_together(tmp_path: Path) -> None:
    result(tmp_path / "a", [1])
    result(tmp_path / "b", [1], stream={"order": ["_at", "_at_2"], "at": ["_at", "_at_2"]})
    with pytest.raises(InputError, match=r"/a and .*/b are results that are ordered differently; read them one by one"):
        source(tmp_path)
    put(tmp_path / "x.parquet", {"n": [9]})
    with pytest.raises(InputError, match=r"/a is a result of wincli and .*x\.parquet is not"):
        source(tmp_path / "a", tmp_path / "x.parquet")


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"parts":[{}],"stream":null}', '{"parts":[],"stream":{}}', "[]", "[" * 300_000, "changed"]
)
def test_a_manifest_that_does_not_read_or_has_another_checksum_is_named(tmp_path: Path, text: str) -> None:
    path = result(tmp_path / "out", [1], [2]) / MANIFEST
    why = r"is no manifest of wincli"
    if text == "changed":
        path.write_text(json.dumps(seal(json.loads(path.read_text()))))
        assert column(source(tmp_path), "n") == [1, 2]
        text = path.read_text().replace('"_pos"', '"_qos"', 1)
        why += ": its checksum is of other content; wri"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"out/_wincli/manifest\.json {why}"):
        source(tmp_path / "out")


def test_a_part_that_was_cut_is_named(tmp_path: Path) -> None:
    out = result(tmp_path / "out", [1, 2], [3, 4])
    path = out / "part-00001.parquet"
    pq.write_table(pq.read_table(path).slice(0, 1), path)
    said = r"out has [\d,]+ bytes in part-00001.parquet, and its manifest says [\d,]+; w"
    with pytest.raises(DamagedError, match=said):
        source(out)
    describe(out, [2, 2])
    said = r"rows of .*out/part-00001.parquet: 1, and the manifest of that result says 2; write the result again"
    with pytest.raises(DamagedError, match=said):
        source(out)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_part_of_text_with_other_rows_is_named(tmp_path: Path, form: str) -> None:
    put(tmp_path / f"part-00000.{form}", {"n": [1, 2], "_at": [1, 2], "_pos": [1, 2]})
    assert column(source(describe(tmp_path, [2])), "n") == [1, 2]
    with pytest.raises(DamagedError, match=r"rows of .*/part-00000\..*: 2, and the manifest of that result says 3"):
        source(describe(tmp_path, [3]))


ROUND = {
    "s": pa.array(["", None, 'a "b",\nc']),
    "digits": pa.array(["007", None, "1"]),
    "b": pa.array([b"\x00\xff", None, b""]),
    "i": pa.array([2**62, None, -1]),
    "u": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "f": pa.array([2.0, None, 0.1]),
    "o": pa.array([True, None, False]),
    "d": pa.array([0, None, 2932896], pa.date32()),
    "t": pa.array([1, None, 253402300799999999], pa.timestamp("us")),
    "n": pa.array([1, None, -1], pa.timestamp("ns")),
    "z": pa.array([1, None, -(10**15)], pa.timestamp("us", "UTC")),
    "w": pa.array([1, None, 86399999999], pa.time64("us")),
    "r": pa.array([5, None, -5], pa.duration("us")),
    "m": pa.array([Decimal("12.50"), None, Decimal("-0.01")], pa.decimal128(38, 2)),
    "l": pa.array([["x", None], None, []], pa.list_(pa.string())),
    "k": pa.array([[1.5], None, []], pa.list_(pa.float64())),
    "e": pa.array([None, None, None], pa.string()),
}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_result_comes_back_as_it_was_written_in_the_types_of_its_manifest(tmp_path: Path, form: str) -> None:
    table = pa.table(ROUND)
    with (tmp_path / f"part-00000.{form}").open("wb") as file:
        import_module(f"wincli.writers.formats.{form}").ENCODER.encode([table], table.schema, file)
    told = [{"name": field.name, "type": str(field.type)} for field in table.schema]
    opened = source(describe(tmp_path, [3], schema=told), multiline=form == "csv")
    assert opened.schema == table.schema
    assert opened.read(opened.splits[0], table.column_names).rows.combine_chunks() == table.combine_chunks()


def test_results_of_other_types_are_read_as_files_that_differ_are(tmp_path: Path) -> None:
    for name, kind, values in (("a", "double", "1.5"), ("b", "int64", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part-00000.csv").write_text(f"window,s\n0,{values}\n")
        told = [{"name": "window", "type": "int64"}, {"name": "s", "type": kind}]
        describe(tmp_path / name, [1], None, schema=told)
    assert types(source(tmp_path)) == {"window": "int64", "s": "double"}
