from __future__ import annotations

import json
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.readers import column, read_all, source
from wincli.windowing.errors import DamagedError, InputError
from wincli.windowing.ports import OWN, StreamInfo
from wincli.windowing.support.checksum import seal

STREAM = {"order": ["_at", "_pos", "window", "k"], "at": ["_at"]}


def part(path: Path, rows: int) -> dict[str, Any]:
    """What a manifest says of a part."""
    return {"name": path.name, "rows": rows, "bytes": path.stat().st_size}


def result(folder: Path, *parts: list[int], stream: Any = STREAM, **more: Any) -> Path:
    """Write a result of wincli with the given ``n`` in each part."""
    (folder / "_wincli").mkdir(parents=True)
    names = [f"part-{i:05d}.parquet" for i in range(len(parts))]
    for name, values in zip(names, parts, strict=True):
        table = pa.table({"n": values, "_at": values, "_pos": values, "_mark": pa.array(["window"] * len(values))})
        pq.write_table(table, folder / name)
    told = [part(folder / name, len(values)) for name, values in zip(names, parts, strict=True)]
    manifest = {"stream": stream, "parts": told, **more}
    (folder / "_wincli/manifest.json").write_text(json.dumps(manifest))
    (folder / "_SUCCESS").touch()
    return folder


def test_a_result_is_a_stream(tmp_path: Path) -> None:
    opened = source(result(tmp_path / "out", [1, 2], [3]))
    assert opened.stream == StreamInfo(("_at", "_pos", "window", "k"), ("_at",))
    assert opened.schema.names == ["n", "_at", "_pos", "_mark"]
    assert column(opened, "n") == [1, 2, 3]


def test_manifest_decides_which_files_are_read_and_in_which_order(tmp_path: Path) -> None:
    out = result(tmp_path / "out", [1], [2], [3])
    manifest = json.loads((out / "_wincli/manifest.json").read_text())
    manifest["parts"] = [manifest["parts"][2], manifest["parts"][0]]
    (out / "_wincli/manifest.json").write_text(json.dumps(manifest))
    assert column(source(out), "n") == [3, 1]
    (out / "part-00002.parquet").unlink()
    with pytest.raises(InputError, match=r"out lacks part-00002\.parquet, which its manifest names"):
        source(out)
    (out / "part-00000.parquet").unlink()
    with pytest.raises(InputError, match=r"out lacks part-00002\.parquet, which its manifest names"):
        source(out)


def test_results_below_one_folder_are_one_stream_after_another(tmp_path: Path) -> None:
    result(tmp_path / "in/dt=2026-11-02", [3])
    result(tmp_path / "in/dt=2026-11-01", [1], [2])
    opened = source(tmp_path / "in")
    assert opened.stream == StreamInfo(("_stream", "_at", "_pos", "window", "k"), ("_at",), ("_stream", *OWN))
    assert opened.schema.names == ["n", "_at", "_pos", "_mark", "dt", "_stream"]
    assert opened.schema.field("_stream").type == pa.int64()
    assert [(row["n"], row["_stream"], row["dt"].day) for row in read_all(opened).rows] == [
        (1, 0, 1),
        (2, 0, 1),
        (3, 1, 2),
    ]


def test_a_plain_result_is_an_ordinary_input(tmp_path: Path) -> None:
    opened = source(result(tmp_path / "out", [1], [2], stream=None))
    assert opened.stream is None
    assert column(opened, "n") == [1, 2]
    pq.write_table(pa.table({"n": [9]}), tmp_path / "a.parquet")
    assert column(source(tmp_path), "n") == [9, 1, 2]


def test_results_that_do_not_go_together(tmp_path: Path) -> None:
    result(tmp_path / "a", [1])
    result(tmp_path / "b", [1], stream={"order": ["_at", "_at_2"], "at": ["_at", "_at_2"]})
    with pytest.raises(InputError, match=r"/a and .*/b are results that are ordered differently; read them one by one"):
        source(tmp_path)
    pq.write_table(pa.table({"n": [9]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"/a is a result of wincli and .*x\.parquet is not"):
        source(tmp_path / "a", tmp_path / "x.parquet")


def test_one_part_of_a_result_is_an_ordinary_file(tmp_path: Path) -> None:
    assert source(result(tmp_path / "out", [1]) / "part-00000.parquet").stream is None


def test_types_of_a_text_result_come_from_its_manifest(tmp_path: Path) -> None:
    out = result(tmp_path / "out", stream=STREAM)
    (out / "part-00000.csv").write_text("code,m,t,d,_at\n007,1.50,2020-01-01 00:00:00.000000Z,5,\n")
    types = {
        "code": "string",
        "m": "decimal128(38, 2)",
        "t": "timestamp[us, tz=UTC]",
        "d": "duration[us]",
        "_at": "int64",
    }
    manifest = {
        "stream": STREAM,
        "parts": [part(out / "part-00000.csv", 1)],
        "schema": [{"name": name, "type": kind} for name, kind in types.items()],
    }
    (out / "_wincli/manifest.json").write_text(json.dumps(manifest))
    opened = source(out)
    assert {field.name: str(field.type) for field in opened.schema} == types
    assert read_all(opened).rows[0]["code"] == "007"
    assert str(read_all(opened).rows[0]["m"]) == "1.50"
    assert read_all(opened).rows[0]["d"].microseconds == 5


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"parts":[{}],"stream":null}', '{"parts":[],"stream":{}}', "[]", "[" * 300_000]
)
def test_a_manifest_that_does_not_read_is_named(tmp_path: Path, text: str) -> None:
    out = result(tmp_path / "out", [1])
    (out / "_wincli/manifest.json").write_text(text)
    with pytest.raises(InputError, match=r"out/_wincli/manifest\.json is no manifest of wincli"):
        source(out)


def test_a_manifest_with_another_checksum_is_named(tmp_path: Path) -> None:
    out = result(tmp_path / "out", [1], [2])
    path = out / "_wincli/manifest.json"
    path.write_text(json.dumps(seal(json.loads(path.read_text()))))
    assert column(source(out), "n") == [1, 2]
    path.write_text(path.read_text().replace('"_pos"', '"_qos"', 1))
    with pytest.raises(
        InputError, match=r"manifest\.json is no manifest of wincli: its checksum is of other content; wri"
    ):
        source(out)


def test_a_part_that_was_cut_is_named(tmp_path: Path) -> None:
    out = result(tmp_path / "out", [1, 2], [3, 4])
    path = out / "part-00001.parquet"
    pq.write_table(pq.read_table(path).slice(0, 1), path)
    with pytest.raises(
        DamagedError, match=r"out has [\d,]+ bytes in part-00001.parquet, and its manifest says [\d,]+; w"
    ):
        source(out)
    manifest = json.loads((out / "_wincli/manifest.json").read_text())
    manifest["parts"][1] = part(path, 2)
    (out / "_wincli/manifest.json").write_text(json.dumps(manifest))
    said = r"rows of .*out/part-00001.parquet: 1, and the manifest of that result says 2; write the result again"
    with pytest.raises(DamagedError, match=said):
        source(out)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_part_of_text_with_other_rows_is_named(tmp_path: Path, form: str) -> None:
    (tmp_path / "_wincli").mkdir()
    path = tmp_path / f"part-00000.{form}"
    path.write_text({"csv": "n,_at,_pos\n1,1,1\n2,2,2\n", "jsonl": '{"n":1,"_at":1,"_pos":1}\n' * 2}[form])
    for rows, is_whole in ((2, True), (3, False)):
        (tmp_path / "_wincli/manifest.json").write_text(json.dumps({"stream": STREAM, "parts": [part(path, rows)]}))
        if is_whole:
            assert len(column(source(tmp_path), "n")) == 2
        else:
            with pytest.raises(
                DamagedError, match=r"rows of .*/part-00000\..*: 2, and the manifest of that result says 3"
            ):
                source(tmp_path)


ROUND = {
    "s": pa.array(["", None, 'a "b",\nc']),
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
def test_a_result_comes_back_as_it_was_written(tmp_path: Path, form: str) -> None:
    table = pa.table(ROUND)
    out = tmp_path / "out"
    (out / "_wincli").mkdir(parents=True)
    path = out / f"part-00000.{form}"
    with path.open("wb") as file:
        import_module(f"wincli.writers.formats.{form}").ENCODER.encode([table], table.schema, file)
    schema = [{"name": field.name, "type": str(field.type)} for field in table.schema]
    manifest = {"stream": STREAM, "parts": [part(path, 3)], "schema": schema}
    (out / "_wincli/manifest.json").write_text(json.dumps(manifest))
    opened = source(out, multiline=form == "csv")
    assert opened.schema == table.schema
    rows = opened.read(opened.splits[0], table.column_names).rows
    assert {name: rows[name].to_pylist() for name in ROUND if name != "n"} == {
        name: ROUND[name].to_pylist() for name in ROUND if name != "n"
    }
    assert rows["n"].cast(pa.int64()).to_pylist() == [1, None, -1]


def test_results_of_other_types_are_read_as_files_that_differ_are(tmp_path: Path) -> None:
    for name, kind, values in (("a", "double", "1.5"), ("b", "int64", "2")):
        folder = tmp_path / "in" / name
        (folder / "_wincli").mkdir(parents=True)
        (folder / "part-00000.csv").write_text(f"window,s\n0,{values}\n")
        schema = [{"name": "window", "type": "int64"}, {"name": "s", "type": kind}]
        told = {"parts": [part(folder / "part-00000.csv", 1)], "schema": schema, "stream": None}
        (folder / "_wincli/manifest.json").write_text(json.dumps(told))
    opened = source(tmp_path / "in")
    assert opened.schema.field("s").type == pa.float64()
    assert opened.schema.field("window").type == pa.int64()
