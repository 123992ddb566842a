"""The Parquet files of a stage: written by any process, read back with the same values and types."""

from __future__ import annotations

import datetime as dt
import errno
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from windowing.engine.ports import Part
from windowing.errors import InputError, OutputError
from writers.state_files import StageFiles

ROOT = Path(__file__).parents[2]
TYPES: list[tuple[pa.DataType, object]] = [
    (pa.null(), None),
    (pa.bool_(), True),
    (pa.int8(), -1),
    (pa.uint64(), 2**64 - 1),
    (pa.float16(), 1.5),
    (pa.float64(), float("inf")),
    (pa.decimal128(38, 3), Decimal("1.250")),
    (pa.decimal256(50, 3), Decimal("1.250")),
    (pa.string(), "é"),
    (pa.large_string(), "x"),
    (pa.binary(), b"\0"),
    (pa.binary(2), b"ab"),
    (pa.date32(), dt.date(2026, 11, 1)),
    (pa.date64(), dt.date(2026, 11, 1)),
    (pa.time32("s"), dt.time(1, 2, 3)),
    (pa.time64("us"), dt.time(1, 2, 3, 4)),
    (pa.timestamp("s"), dt.datetime(2026, 11, 1)),
    (pa.timestamp("s", "Europe/Paris"), dt.datetime(2026, 11, 1, tzinfo=dt.UTC)),
    (pa.timestamp("us", "UTC"), dt.datetime(2026, 11, 1, 0, 0, 0, 1, dt.UTC)),
    (pa.timestamp("ns"), 1),
    (pa.duration("s"), 5),
    (pa.list_(pa.int32()), [1, None]),
    (pa.list_(pa.int8(), 2), [1, 2]),
    (pa.struct([("a", pa.timestamp("s"))]), {"a": dt.datetime(2026, 11, 1)}),
    (pa.dictionary(pa.int32(), pa.string()), "é"),
    (pa.dictionary(pa.int8(), pa.string()), "é"),
]


def files(folder: Path) -> StageFiles:
    return StageFiles(str(folder), "state/d1/s")


@pytest.mark.parametrize(("kind", "value"), TYPES, ids=lambda told: str(told) if isinstance(told, pa.DataType) else "")
def test_every_type_reads_back(tmp_path: Path, kind: pa.DataType, value: object) -> None:
    table = pa.table({"x": pa.array([value, None, value], kind)})
    part = files(tmp_path).write_rows(0, table)
    again = files(tmp_path).read_part(part)
    assert again.schema == table.schema
    assert again.equals(table)


def test_a_dictionary_of_numbers_comes_back_plain(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([5, None, 5]).dictionary_encode()})
    files(tmp_path).write_table("position", table)
    assert files(tmp_path).read_table("position") == pa.table({"x": [5, None, 5]})


def test_it_works_in_another_process(tmp_path: Path) -> None:
    code = "import pickle, sys, pyarrow as pa\nfiles = pickle.loads(sys.stdin.buffer.read())\n"
    code += "files.write_keys(2, pa.table({'user': ['ann'], '__rows': [5]}))"
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(files(tmp_path)), check=True, cwd=ROOT)
    (part,) = files(tmp_path).parts("keys")
    assert files(tmp_path).read_part(part).to_pylist() == [{"user": "ann", "__rows": 5}]


def test_parts_are_listed_by_index_with_their_rows(tmp_path: Path) -> None:
    stage = files(tmp_path)
    written = [stage.write_rows(i, pa.table({"n": [0] * rows})) for i, rows in ((100_000, 1), (2, 3), (99_999, 0))]
    stage.write_keys(7, pa.table({"k": [1]}))
    stage.write_table("advances", pa.table({"w": [1]}))
    (tmp_path / ".rows-00001.parquet.0123456789ab").write_text("half")
    (tmp_path / "rows-odd.parquet").write_text("not ours")
    assert stage.parts("rows") == (written[1], written[2], written[0])
    assert stage.parts("rows")[0] == Part("rows-00002.parquet", 3, (tmp_path / "rows-00002.parquet").stat().st_size)
    assert [part.name for part in stage.parts("keys")] == ["keys-00007.parquet"]


def test_nothing_there(tmp_path: Path) -> None:
    assert files(tmp_path).read_table("advances") is None
    assert files(tmp_path).parts("rows") == ()
    assert files(tmp_path / "none").parts("keys") == ()


def test_a_retried_task_replaces_what_it_wrote(tmp_path: Path) -> None:
    stage = files(tmp_path)
    stage.write_rows(0, pa.table({"n": [1, 2]}))
    part = stage.write_rows(0, pa.table({"n": [3]}))
    assert stage.parts("rows") == (part,)
    assert stage.read_part(part)["n"].to_pylist() == [3]
    assert [path.name for path in tmp_path.iterdir()] == ["rows-00000.parquet"]


def test_others_can_read_it(tmp_path: Path) -> None:
    files(tmp_path).write_rows(0, pa.table({"user": ["ann", None], "n": [1, 2]}))
    found = duckdb.connect().execute(f"select * from '{tmp_path}/rows-*.parquet' order by n").fetchall()
    assert found == [("ann", 1), (None, 2)]
    column = parquet.read_metadata(tmp_path / "rows-00000.parquet").row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = files(tmp_path)
    part = stage.write_rows(0, pa.table({"n": [1]}))

    def full(table: pa.Table, path: Path, **_: object) -> None:
        path.write_text("half")
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(parquet, "write_table", full)
    said = r"cannot write state/d1/s/rows-00000.parquet: the disk is full; nothing was written; free some space"
    with pytest.raises(OutputError, match=said):
        stage.write_rows(0, pa.table({"n": [2]}))
    assert [path.name for path in tmp_path.iterdir()] == ["rows-00000.parquet"]
    assert stage.read_part(part)["n"].to_pylist() == [1]


def test_a_folder_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="the folder is not there any more"):
        files(tmp_path / "gone").write_keys(0, pa.table({"n": [2]}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PAR1 but not really", None])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    stage = files(tmp_path)
    part = stage.write_rows(0, pa.table({"n": [1]}))
    path = tmp_path / part.name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(InputError, match=r"^cannot read state/d1/s/rows-00000.parquet: .*; restore it, or go on from"):
        stage.read_part(part)
    if content is not None:
        with pytest.raises(InputError, match=r"^cannot read state/d1/s/rows-00000.parquet: "):
            stage.parts("rows")
