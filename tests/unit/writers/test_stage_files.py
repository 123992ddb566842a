"""The Parquet files of a stage: written by any process, read back with the same values and types."""

from __future__ import annotations

import errno
import pickle
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import parquet

from support.strategies import examples
from wincli.windowing.errors import DamagedError, OutputError
from wincli.windowing.ports import Part
from wincli.windowing.state.state_tables import DecidingNumbers
from wincli.windowing.support.checksum import Checked
from wincli.writers.state.stage_files import LocalStage, ParquetStateFiles, Sameness, same_tables


def files(folder: Path) -> ParquetStateFiles:
    """The files of a folder, as a task in another process has them."""
    found: ParquetStateFiles = pickle.loads(pickle.dumps(ParquetStateFiles(LocalStage(str(folder)), "state/d1/s")))
    return found


def test_a_dictionary_of_numbers_comes_back_plain(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([5, None, 5]).dictionary_encode()})
    files(tmp_path).write_table("position", table)
    assert files(tmp_path).read_table("position") == pa.table({"x": [5, None, 5]})


def test_parts_are_listed_by_index_with_their_rows(tmp_path: Path) -> None:
    stage = files(tmp_path)
    written = [stage.write_rows(i, pa.table({"n": [0] * rows})) for i, rows in ((100_000, 1), (2, 3), (99_999, 0))]
    stage.write_keys(7, pa.table({"k": [1]}))
    stage.write_table("advances", pa.table({"w": [1]}))
    (tmp_path / ".rows-00001.parquet.0123456789ab").write_text("half")
    (tmp_path / "rows-odd.txt").write_text("not ours")
    assert stage.parts("rows") == tuple(replace(written[i], checksum=None, digest=None) for i in (1, 2, 0))
    size = (tmp_path / "rows-00002.parquet").stat().st_size
    assert stage.parts("rows")[0] == Part("rows-00002.parquet", 3, size)
    assert [part.name for part in stage.parts("keys")] == ["keys-00007.parquet"]


def test_nothing_there(tmp_path: Path) -> None:
    assert files(tmp_path).read_table("advances") is None
    assert files(tmp_path).parts("rows") == ()
    assert files(tmp_path / "none").parts("keys") == ()
    with pytest.raises(OutputError, match="the folder is not there any more"):  # nor is it made again
        files(tmp_path / "gone").write_keys(0, pa.table({"n": [2]}))
    assert list(tmp_path.iterdir()) == []


def test_a_retried_task_replaces_what_it_wrote_but_not_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = files(tmp_path)
    stage.write_rows(0, pa.table({"n": [1, 2]}))
    part = stage.write_rows(0, pa.table({"n": [3]}))

    def full(table: pa.Table, file: Checked, **_: object) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(parquet, "write_table", full)
    said = r"cannot write state/d1/s/rows-00000.parquet: the disk is full; nothing was written; free some space"
    with pytest.raises(OutputError, match=said):
        stage.write_rows(0, pa.table({"n": [4]}))
    assert stage.parts("rows") == (replace(part, checksum=None, digest=None),)
    assert stage.read_part(part)["n"].to_pylist() == [3]
    assert [path.name for path in tmp_path.iterdir()] == ["rows-00000.parquet"]


def test_others_can_read_it(tmp_path: Path) -> None:
    files(tmp_path).write_rows(0, pa.table({"user": ["ann", None], "n": [1, 2]}))
    found = duckdb.connect().execute(f"select * from '{tmp_path}/rows-*.parquet' order by n").fetchall()
    assert found == [("ann", 1), (None, 2)]
    column = parquet.read_metadata(tmp_path / "rows-00000.parquet").row_group(0).column(0)
    assert column.compression == "ZSTD"


@pytest.mark.parametrize("content", [b"", b"PAR1 but not really", None])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    stage = files(tmp_path)
    part = stage.write_rows(0, pa.table({"n": [1]}))
    path = tmp_path / part.name
    path.unlink() if content is None else path.write_bytes(content)
    said = r"^state/d1/s/rows-00000.parquet is damaged: .*; restore it; a unit of a range may be run again with .*$"
    with pytest.raises(DamagedError, match=said):
        stage.read_part(part)
    if content is not None:
        with pytest.raises(DamagedError, match=said):
            stage.parts("rows")


# What the record of the unit says


def recorded(folder: Path) -> tuple[ParquetStateFiles, list[Part]]:
    """A stage as a finished unit has it: rows, keys and a position, with their parts."""
    stage = files(folder)
    rows = pa.table({"n": list(range(1000)), "__pos": list(range(1000))})
    parts = [stage.write_rows(0, rows), stage.write_keys(0, pa.table({"k": [1]}))]
    parts.append(stage.write_table("position", pa.table({"ts": [9]})))
    return replace(stage, recorded=tuple(parts)), parts


def read_all(stage: ParquetStateFiles) -> None:
    for kind in ("rows", "keys"):
        for part in stage.parts(kind):  # type: ignore[arg-type]
            stage.read_part(part)
    stage.read_table("position")


def test_what_is_written_is_recorded_with_its_size_and_checksum(tmp_path: Path) -> None:
    stage, parts = recorded(tmp_path)
    for part in parts:
        content = (tmp_path / part.name).read_bytes()
        assert (part.nbytes, part.checksum) == (len(content), f"crc32:{zlib.crc32(content):08x}")
    stage.check()
    read_all(stage)
    assert [part.name for part in stage.parts("rows")] == ["rows-00000.parquet"]
    assert stage.read_table("advances") is None


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_flipped_bit_anywhere_in_a_file_is_found(tmp_path: Path, data: st.DataObject) -> None:
    stage, parts = recorded(tmp_path)
    part = data.draw(st.sampled_from(parts))
    content = bytearray((tmp_path / part.name).read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    (tmp_path / part.name).write_bytes(content)
    with pytest.raises(DamagedError, match=rf"^state/d1/s/{part.name} is damaged: its checksum is crc32:\w+, not the "):
        read_all(stage)


def cut(path: Path) -> None:
    """Leave a file that is whole as Parquet and has fewer rows."""
    parquet.write_table(parquet.read_table(path).slice(0, 3), path, compression="zstd")


def also(path: Path) -> None:
    (path.parent / "rows-00007.parquet").write_bytes(path.read_bytes())


DAMAGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("rows-00000.parquet", Path.unlink, "rows-00000.parquet is damaged: it is gone"),
    ("keys-00000.parquet", Path.unlink, "keys-00000.parquet is damaged: it is gone"),
    ("position.parquet", Path.unlink, "position.parquet is damaged: it is gone"),
    ("rows-00000.parquet", cut, r"rows-00000.parquet is damaged: it has [\d,]+ bytes, not the [\d,]+ of its record"),
    ("rows-00000.parquet", lambda path: path.write_bytes(b""), r"rows-00000.parquet is damaged: it has 0 bytes, not"),
    ("rows-00000.parquet", also, "rows-00007.parquet is damaged: no run has written it there"),
]


@pytest.mark.parametrize(("name", "spoil", "said"), DAMAGES)
@pytest.mark.parametrize("has_checksums", [True, False])
def test_files_that_are_not_those_of_the_record_are_named(
    tmp_path: Path, name: str, spoil: Callable[[Path], object], said: str, has_checksums: bool
) -> None:
    """Also in a state that was written before there were checksums."""
    stage, parts = recorded(tmp_path)
    if not has_checksums:
        stage = replace(stage, recorded=tuple(replace(part, checksum=None) for part in parts))
    spoil(tmp_path / name)
    for look in (read_all, ParquetStateFiles.check):
        with pytest.raises(DamagedError, match=f"^state/d1/s/{said}"):
            look(stage)


def test_a_file_cut_to_the_same_size_is_found_by_its_rows(tmp_path: Path) -> None:
    stage, (rows, *_) = recorded(tmp_path)
    cut(tmp_path / rows.name)
    part = replace(rows, nbytes=(tmp_path / rows.name).stat().st_size, checksum=None)
    with pytest.raises(DamagedError, match=r"rows-00000.parquet is damaged: it has 3 rows, not the 1,000 that were"):
        stage.read_part(part)


def is_same(former: ParquetStateFiles, now: ParquetStateFiles) -> bool:
    return same_tables(former, now, DecidingNumbers()).decides


def test_a_damaged_former_state_is_not_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (one, _), (other, _) = recorded(tmp_path / "a"), recorded(tmp_path / "b")
    assert is_same(one, other)
    cut(tmp_path / "a/rows-00000.parquet")
    assert is_same(one, other), "by its checksums it was"
    old, now = (
        replace(files, recorded=tuple(replace(part, checksum=None) for part in files.recorded or ()))
        for files in (one, other)
    )
    assert not is_same(old, now)
    with pytest.raises(DamagedError):
        is_same(now, old)


def test_states_that_are_cut_otherwise_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    table = pa.table({"n": [1, 2], "__pos": [7, 9]})
    one, other = files(tmp_path), files(tmp_path / "b")
    whole = replace(one, recorded=(one.write_rows(0, table),))
    parts = replace(other, recorded=tuple(other.write_rows(i, table.slice(i, 1)) for i in (0, 1)))
    assert is_same(whole, parts)
    moved = replace(one, recorded=(one.write_rows(0, table.set_column(1, "__pos", pa.array([9, 7]))),))
    assert not is_same(moved, parts)


@pytest.mark.parametrize("name", ["position", "table-users"])
def test_a_position_or_the_rows_of_an_enrich_table_make_a_state_another(tmp_path: Path, name: str) -> None:
    stages = []
    for at, value in enumerate((1, 1, 2)):
        (tmp_path / f"{at}").mkdir()
        part = files(tmp_path / f"{at}").write_table(name, pa.table({"n": [value]}))
        stages.append(replace(files(tmp_path / f"{at}"), recorded=(replace(part, checksum=None, digest=None),)))
    one, same, other = stages
    (tmp_path / "none").mkdir()
    assert is_same(one, same)
    assert not is_same(one, other)
    assert not is_same(one, replace(files(tmp_path / "none"), recorded=()))


KEYS = {
    "k": ["a", "b"],
    "__rows": [7, 4],
    "__begin": [0, 0],
    "__windows": [3, 2],
    "__full": [False, False],
    "__baseline": pa.nulls(2),
}
ROWS = {"k": ["a"], "n": [1], "__pos": [7], "__rank": [6], "__shown": [False], "__last": [False]}
NEW_KEY = {"k": ["a", "b", "c"], "__rows": [7, 4, 1], "__begin": [0, 0, 0], "__windows": [3, 2, 1]}
NEW_KEY |= {"__full": [False] * 3, "__baseline": pa.nulls(3)}
CASES: list[tuple[DecidingNumbers, dict[str, object], dict[str, object], Sameness]] = [
    (DecidingNumbers(False, False), {"__rows": [8, 4]}, {"__rank": [7]}, Sameness(True, True)),
    (DecidingNumbers(False, False), {"__rows": [8, 4], "__windows": [4, 2]}, {}, Sameness(True, False)),
    (DecidingNumbers(False, False), NEW_KEY, {}, Sameness(True, False)),
    (DecidingNumbers(True, False), {"__windows": [4, 2]}, {}, Sameness(False, False)),
    (DecidingNumbers(False, True), {"__rows": [8, 4]}, {"__rank": [7]}, Sameness(False, True)),
    (DecidingNumbers(False, False, every=2), {"__rows": [8, 4]}, {}, Sameness(False, True)),
    (DecidingNumbers(False, False, every=2), {"__rows": [9, 4]}, {}, Sameness(True, True)),
    (DecidingNumbers(False, False, held=7), {"__rows": [9, 4]}, {}, Sameness(True, True)),
    (DecidingNumbers(False, False, held=8), {"__rows": [9, 4]}, {}, Sameness(False, True)),
    (DecidingNumbers(False, False), {"__full": [True, False]}, {}, Sameness(False, True)),
    (DecidingNumbers(False, False), {}, {"n": [2]}, Sameness(False, True)),
    (DecidingNumbers(False, False, carried=frozenset({"n"})), {}, {"n": [2]}, Sameness(True, True)),
]


@pytest.mark.parametrize(("deciding", "keys", "rows", "expected"), CASES)
def test_of_the_numbers_that_a_state_counts_only_those_that_decide_make_it_another(
    tmp_path: Path, deciding: DecidingNumbers, keys: dict[str, object], rows: dict[str, object], expected: Sameness
) -> None:
    both = []
    for name, more, held in (("a", {}, {}), ("b", keys, rows)):
        (tmp_path / name).mkdir()
        stage = files(tmp_path / name)
        tables = pa.table({**KEYS, **more}), pa.table({**ROWS, **held})
        both.append(replace(stage, recorded=(stage.write_keys(0, tables[0]), stage.write_rows(0, tables[1]))))
    assert same_tables(both[0], both[1], deciding) == expected
