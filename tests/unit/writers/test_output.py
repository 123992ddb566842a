"""An output from the first check to the swap, in one process."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from support.places import ROOT
from wincli.windowing.columns.row_hashes import RowHasher
from wincli.windowing.engine.rejects import reject_schema
from wincli.windowing.errors import ConfigError, OutputError
from wincli.windowing.ports import Part, ResultPart, Sink
from wincli.windowing.support.checksum import checksum
from wincli.windowing.support.formats import FORMATS
from wincli.writers.commit import tables as folder_swap
from wincli.writers.formats import csv
from wincli.writers.formats.encoder import Encoder, Open, Write
from wincli.writers.output.output import open_output
from wincli.writers.places import atomic_files
from wincli.writers.places.lock import Owner

OWNER = Owner(os.getpid(), "here", "2026-11-01T00:00:00Z")
SCHEMA = pa.schema([("user", pa.string()), ("window", pa.int64())])
REJECTS = reject_schema(pa.schema([("user", pa.string())]))


def rows(*windows: int) -> pa.Table:
    return pa.table({"user": ["ann"] * len(windows), "window": windows}, schema=SCHEMA)


def manifest(parts: list[Part], rejects: list[Part] | None = None) -> dict[str, Any]:
    return {"parts": [{"name": p.name} for p in parts], "rejects": [{"name": p.name} for p in rejects or []]}


def put(out: Path, *windows: int, mode: Any = "error", format: Any = "parquet") -> None:
    with open_output(str(out), mode, [], OWNER) as output:
        output.commit(manifest([output.sink(format, SCHEMA, REJECTS).write_part(0, [rows(*windows)])]))


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def windows_in(out: Path) -> list[int]:
    return pq.read_table(out, partitioning=None)["window"].to_pylist()


# The whole of a result


def test_a_result_has_parts_rejects_manifest_and_success(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "new/er/out"), "error", [], OWNER) as output:
        sink = output.sink("parquet", SCHEMA, REJECTS)
        parts = [sink.write_part(1, [rows(2, 3)]), sink.write_part(0, [rows(1)])]
        rejects = [sink.write_rejects(0, pa.table({"reason": ["late"], "line": [7], "row": [{"user": "ann"}]}))]
        output.commit({**manifest(parts, rejects), "spec": "count(1)"})
    out = tmp_path / "new/er/out"
    assert tree(tmp_path / "new/er") == [
        "out/_SUCCESS",
        "out/_rejected/rejects-00000.ndjson",
        "out/_wincli/manifest.json",
        "out/part-00000.parquet",
        "out/part-00001.parquet",
    ]
    assert windows_in(out) == [1, 2, 3]
    assert json.loads((out / "_wincli/manifest.json").read_text())["spec"] == "count(1)"
    digest = str(RowHasher(SCHEMA).digest(rows(2, 3)))
    content = (out / "part-00001.parquet").read_bytes()
    known = (checksum(content), digest, None, checksum(content))
    assert parts[0] == ResultPart("part-00001.parquet", 2, len(content), *known)
    assert (out / "_rejected/rejects-00000.ndjson").read_text() == (
        '{"reason":"late","file":null,"line":7,"detail":null,"text":null,"row":{"user":"ann"}}\n'
    )


def test_a_sink_works_elsewhere_by_its_path(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        sink = pickle.loads(pickle.dumps(output.sink("csv", SCHEMA, REJECTS)))
        output.commit(manifest([sink.write_part(3, [rows(5)])]))
    assert (tmp_path / "out/part-00003.csv").read_text() == '"user","window"\n"ann",5\n'


def test_a_retried_task_replaces_its_part(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        sink: Sink = output.sink("parquet", SCHEMA, REJECTS)
        sink.write_part(0, [rows(1, 2)])
        output.commit(manifest([sink.write_part(0, [rows(3)])]))
    assert windows_in(tmp_path / "out") == [3]


@pytest.mark.parametrize("stage", [None, "one"])
def test_parts_can_be_given_up(tmp_path: Path, stage: str | None) -> None:
    """Those of which nobody has been told, too, but no rejects and no part of another stage."""
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        last = output.sink("parquet", SCHEMA, REJECTS)
        sink = last if stage is None else last.for_next_stage(stage)
        sink.discard()
        other = last.for_next_stage("two").write_part(0, [rows(0)])
        sink.write_part(0, [rows(1)])
        sink.write_part(1, [rows(2)])
        rejects = [sink.write_rejects(0, pa.table({"reason": ["late"], "line": [7], "row": [{"user": "ann"}]}))]
        sink.discard()
        last.for_next_stage("two").delete_intermediate()
        parts = [last.write_part(2, [rows(3)])]
        output.commit(manifest(parts, rejects))
    assert other.rows == 1
    assert windows_in(tmp_path / "out") == [3]


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_a_part_of_no_tables_and_one_of_unlike_tables(tmp_path: Path, format: Any) -> None:
    encoded = pa.array(["bob"]).dictionary_encode()
    tables = [
        pa.table({"user": ["ann"], "window": [1]}),
        pa.table({"window": [2], "more": [0], "user": encoded}),
    ]
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        sink = output.sink(format, SCHEMA, REJECTS)
        assert sink.write_part(0, []).rows == 0
        part = sink.write_part(1, tables)
        assert part.rows == 2
        output.commit(manifest([Part(f"part-00000.{format}", 0, 0), part]))
    if format == "parquet":
        assert pq.read_schema(tmp_path / "out/part-00000.parquet") == SCHEMA
        assert windows_in(tmp_path / "out") == [1, 2]
    else:
        assert (tmp_path / f"out/part-00001.{format}").read_text().count("bob") == 1


def test_types_that_a_format_cannot_hold_are_refused_at_once(tmp_path: Path) -> None:
    odd = pa.schema([("a", pa.int64()), ("gap", pa.month_day_nano_interval())])
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        for format in FORMATS:
            with pytest.raises(ConfigError, match=f"{format} cannot hold column 'gap' of type month_day_nano_interval"):
                output.sink(format, odd, REJECTS)
        with pytest.raises(ConfigError, match="two columns named 'a'"):
            output.sink("csv", pa.schema([("a", pa.int64()), ("a", pa.int64())]), REJECTS)


def test_a_missing_column_is_not_made_up(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output, pytest.raises(KeyError):
        output.sink("csv", SCHEMA, REJECTS).write_part(0, [pa.table({"user": ["ann"]})])


# Leaving without a commit


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutputError("x"), None])
def test_without_a_commit_no_trace_is_left(tmp_path: Path, error: Any) -> None:
    put(tmp_path / "old", 1)
    before = sorted(tmp_path.rglob("*"))
    for out in ("new/er/out", "old"):
        try:
            with open_output(str(tmp_path / out), "overwrite", [], OWNER) as output:
                output.sink("parquet", SCHEMA, REJECTS).write_part(0, [rows(2)])
                if error:
                    raise error
        except (KeyboardInterrupt, OutputError):
            assert error
    assert sorted(tmp_path.rglob("*")) == before
    assert windows_in(tmp_path / "old") == [1]


def test_tasks_that_still_write_lose_their_folder(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        sink = output.sink("parquet", SCHEMA, REJECTS)
    for write in (
        lambda: sink.write_part(0, [rows(1)]),
        lambda: sink.write_rejects(0, pa.table({"reason": ["late"]})),
    ):
        with pytest.raises(OutputError, match="the folder is not there any more; nothing was written"):
            write()
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_is_not_hidden_by_a_failing_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    def interrupted() -> None:
        with open_output(str(tmp_path / "out"), "error", [], OWNER):
            monkeypatch.setattr(folder_swap, "remove_beside", refuse)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    assert "could not remove" in caught.value.__notes__[0]


# What is refused


def test_mode_error_refuses_a_result_and_touches_nothing(tmp_path: Path) -> None:
    put(tmp_path / "out", 1)
    with pytest.raises(ConfigError, match=r"already holds a result.*--mode overwrite"):
        put(tmp_path / "out", 2)
    assert windows_in(tmp_path / "out") == [1]
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_a_folder_of_other_data_is_never_replaced(tmp_path: Path, mode: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.tex").write_text("mine")
    with pytest.raises(ConfigError, match="not empty and was not written by wincli; nothing was touched"):
        put(tmp_path / "out", 1, mode=mode)
    assert tree(tmp_path) == ["out/thesis.tex"]


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_an_empty_folder_is_as_good_as_none(tmp_path: Path, mode: str) -> None:
    (tmp_path / "out").mkdir(mode=0o750)
    put(tmp_path / "out", 1, mode=mode)
    assert windows_in(tmp_path / "out") == [1]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o750


def test_a_file_is_not_an_output(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ConfigError, match="is not a folder; name a folder"):
        put(tmp_path / "out", 1)
    with pytest.raises(OutputError, match="a part of the path is a file, not a folder; nothing was written"):
        put(tmp_path / "out/below", 1)


@pytest.mark.parametrize("below", ["", "/out", "/b/out"])
def test_a_name_that_is_too_long(tmp_path: Path, below: str) -> None:
    with pytest.raises(OutputError, match="the name is too long; nothing was written; choose a shorter name"):
        put(tmp_path / f"a/{'x' * 256}{below}", 1)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "the output path is empty"),
        ("/", "is a mount point"),
        ("gopher://x/y", "results are written to local folders, s3"),
    ],
)
def test_paths_that_cannot_be_an_output(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message), open_output(path, "error", [], OWNER):
        pass


def test_an_output_filled_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def run() -> None:
        with open_output(str(tmp_path / "out"), "overwrite", [], OWNER) as output:
            (tmp_path / "out").mkdir()
            (tmp_path / "out/other").write_text("")
            output.commit(manifest([]))

    with pytest.raises(ConfigError, match="nothing was touched"):
        run()
    assert tree(tmp_path) == ["out/other"]


def test_a_part_that_is_not_there_stops_the_commit(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        output.sink("csv", SCHEMA, REJECTS).write_part(0, [rows(1)])
        with pytest.raises(OutputError, match=r"part-00007\.csv was written by a task but is not here.*workers share"):
            output.commit(manifest([Part("part-00000.csv", 1, 1), Part("part-00007.csv", 1, 1)]))
    assert names(tmp_path) == []


def test_a_part_that_nobody_knows_stops_the_commit(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        output.sink("csv", SCHEMA, REJECTS).write_part(0, [rows(1)])
        with pytest.raises(OutputError, match=r"no task knows of part-00000\.csv; nothing was written"):
            output.commit(manifest([]))
    assert names(tmp_path) == []


def test_what_a_killed_attempt_left_does_not_come_along(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        part = output.sink("csv", SCHEMA, REJECTS).write_part(0, [rows(1)])
        Path(output.staging, ".part-00000.csv.0123456789ab").write_text("half")
        output.commit(manifest([part]))
    assert tree(tmp_path / "out") == ["_SUCCESS", "_wincli/manifest.json", "part-00000.csv"]


def test_a_file_system_that_cannot_sync_folders_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(fd: int) -> None:
        raise OSError(errno.EINVAL, "not here")

    monkeypatch.setattr(os, "fsync", fsync)
    put(tmp_path / "out", 1)
    assert windows_in(tmp_path / "out") == [1]


# Swapping


@pytest.mark.parametrize("can_exchange", [True, False])
def test_overwrite_replaces_the_whole_result(
    tmp_path: Path, can_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "out", 1, format="csv")
    (tmp_path / "out").chmod(0o700)
    if not can_exchange:
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    put(tmp_path / "out", 2, mode="overwrite")
    assert tree(tmp_path) == ["out/_SUCCESS", "out/_wincli/manifest.json", "out/part-00000.parquet"]
    assert windows_in(tmp_path / "out") == [2]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700


def test_exchange_swaps_two_names_or_reports_that_it_cannot(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    (one / "1").write_text("")
    if atomic_files.exchange(one, other):
        assert tree(tmp_path) == ["other/1"]
    else:
        assert tree(tmp_path) == ["one/1"]
    if sys.platform == "linux":
        with pytest.raises(FileNotFoundError):
            atomic_files.exchange(one, tmp_path / "none")


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_swap_that_fails_leaves_the_old_result(
    tmp_path: Path, can_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "out", 1)
    rename = Path.rename

    def fail(self: Path, target: Any) -> Path:
        if str(target).endswith("/out") and ".wincli-new-" in self.name:
            raise OSError(errno.EXDEV, "cross-device")
        return rename(self, target)

    def cannot(*_: Path) -> bool:
        if can_exchange:
            raise OSError(errno.EXDEV, "cross-device")
        return False

    monkeypatch.setattr(Path, "rename", fail)
    monkeypatch.setattr(atomic_files, "exchange", cannot)
    with pytest.raises(OutputError, match="nothing was written; write to a folder that can be renamed"):
        put(tmp_path / "out", 2, mode="overwrite")
    assert windows_in(tmp_path / "out") == [1]
    assert names(tmp_path) == ["out"]


def test_old_result_that_cannot_be_deleted_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "out", 1)

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "no", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", refuse)
        with pytest.raises(OutputError, match=r"the new result is in .*out, but the old one cannot be deleted: perm"):
            put(tmp_path / "out", 2, mode="overwrite")
    assert windows_in(tmp_path / "out") == [2]
    put(tmp_path / "out", 3, mode="overwrite")
    assert names(tmp_path) == ["out"]


def test_the_output_may_be_a_link_and_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/out")
    put(tmp_path / "link", 1)
    put(tmp_path / "link", 2, mode="overwrite")
    assert (tmp_path / "link").is_symlink()
    assert windows_in(tmp_path / "real/out") == [2]


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "a b'*[c]", ".hidden", "-rf"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    put(tmp_path / name, 1)
    put(tmp_path / name, 2, mode="overwrite")
    assert windows_in(tmp_path / name) == [2]
    assert names(tmp_path) == [name]


def test_a_relative_path_and_a_file_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path("out"), 1)
    with open_output(f"file://{tmp_path}/out", "overwrite", [], OWNER) as output:
        output.commit(manifest([output.sink("parquet", SCHEMA, REJECTS).write_part(0, [rows(2)])]))
    assert windows_in(tmp_path / "out") == [2]


# Disks that refuse


def failing(code: int) -> Open:
    @contextmanager
    def begin(schema: pa.Schema, file: Any) -> Iterator[Write]:
        file.write(b"half")
        yield lambda table: None
        raise OSError(code, os.strerror(code))

    return begin


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSPC, "the disk is full; nothing was written; free some space there"),
        (errno.EDQUOT, "the disk quota is used up; nothing was written"),
        (errno.EROFS, "the disk is read-only; nothing was written; write to a disk"),
        (errno.EIO, "the disk reported an error; nothing was written"),
        (errno.EMFILE, "Too many open files; nothing was written"),
    ],
)
def test_a_part_that_cannot_be_written_is_named(
    tmp_path: Path, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_output(str(tmp_path / "out"), "error", [], OWNER) as output:
        sink = output.sink("csv", SCHEMA, REJECTS)
        monkeypatch.setattr(csv, "ENCODER", Encoder(failing(code)))
        with pytest.raises(OutputError, match=f"cannot write {tmp_path}/out/part-00004.csv: {message}"):
            sink.write_part(4, [rows(1)])
        assert names(Path(output.staging)) == []


CHILD = """
import os, resource, sys
import numpy as np, pyarrow as pa
from wincli.windowing.errors import OutputError
from wincli.writers.places.lock import Owner
from wincli.writers.output.output import open_output

schema = pa.schema([("x", pa.float64())])
def run(format, out):
    rows = pa.table({"x": np.random.default_rng(0).random(100_000)})
    try:
        with open_output(out, "error", [], Owner(1, "here", "now")) as output:
            output.sink(format, schema, schema).write_part(0, [rows])
    except OutputError as error:
        print(error)
exec(sys.argv[1])
"""


def child(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", CHILD, code], check=True, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_real_limit_on_file_size(tmp_path: Path) -> None:
    forms = ("parquet", "csv", "jsonl")
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    told = child(f"{limit}; [run(form, {str(tmp_path)!r} + form) for form in {forms}]")
    do = "raise the limit on file sizes (ulimit -f), or write to another disk"
    said = f"the file is too large for this system; nothing was written; {do}"
    assert told.splitlines() == [f"cannot write {tmp_path}{form}/part-00000.{form}: {said}" for form in forms]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that other users can enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_folder_without_permission(open_to_all: Path) -> None:
    drop_root = "os.geteuid() or os.setuid(65534)"
    mine = open_to_all / "mine"
    mine.mkdir(mode=0o555)
    said, again = child(f"{drop_root}; [run('csv', {str(mine)!r} + out) for out in ('/out', '/new/out')]").splitlines()
    assert said.startswith(f"cannot write {mine}/out: permission denied; nothing was written; get the right to write")
    assert "permission denied" in again
    assert list(mine.iterdir()) == []
