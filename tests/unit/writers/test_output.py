"""An output from the first check to the swap, in one process."""

from __future__ import annotations

import errno
import json
import os
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

from support.numbered_units import ME, names, tree
from support.places import ROOT
from wincli.windowing.columns.row_hashes import RowHasher
from wincli.windowing.engine.rejects import reject_schema
from wincli.windowing.errors import ConfigError, OutputError
from wincli.windowing.ports import Part, ResultPart, Sink
from wincli.windowing.support.checksum import checksum
from wincli.windowing.support.file_systems import file_system_of
from wincli.windowing.support.formats import FORMATS
from wincli.writers.commit import tables as folder_swap
from wincli.writers.formats import csv
from wincli.writers.formats.encoder import Encoder, Open, Write
from wincli.writers.output.output import open_output, refuse_each_other, refuse_overlap
from wincli.writers.places import atomic_files
from wincli.writers.places.place import Place, locate

SCHEMA = pa.schema([("user", pa.string()), ("window", pa.int64())])
REJECTS = reject_schema(pa.schema([("user", pa.string())]))
REJECTED = pa.table({"reason": ["late"], "line": [7], "row": [{"user": "ann"}]})
LONG = "x" * 256


def rows(*windows: int) -> pa.Table:
    return pa.table({"user": ["ann"] * len(windows), "window": windows}, schema=SCHEMA)


def manifest(parts: list[Part], rejects: list[Part] | None = None) -> dict[str, Any]:
    return {"parts": [{"name": p.name} for p in parts], "rejects": [{"name": p.name} for p in rejects or []]}


def put(out: Path | str, *windows: int, mode: Any = "error", format: Any = "parquet") -> None:
    with open_output(str(out), mode, [], ME) as output:
        output.commit(manifest([output.sink(format, SCHEMA, REJECTS).write_part(0, [rows(*windows)])]))


def windows_in(out: Path) -> list[int]:
    return pq.read_table(out, partitioning=None)["window"].to_pylist()


# The whole of a result


def test_a_result_has_the_last_parts_of_its_tasks_rejects_manifest_and_success(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "new/er/out"), "error", [], ME) as output:
        sink: Sink = output.sink("parquet", SCHEMA, REJECTS)
        sink.write_part(0, [rows(7, 8)])  # the task is tried again
        parts = [sink.write_part(1, [rows(2, 3)]), sink.write_part(0, [rows(1)])]
        Path(output.staging, ".part-00000.parquet.0123456789ab").write_text("half")  # of an attempt that was killed
        output.commit({**manifest(parts, [sink.write_rejects(0, REJECTED)]), "spec": "count(1)"})
    out = tmp_path / "new/er/out"
    assert sorted(tree(tmp_path / "new/er")) == [
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


@pytest.mark.parametrize("stage", [None, "one"])
def test_parts_can_be_given_up(tmp_path: Path, stage: str | None) -> None:
    """Those of which nobody has been told, too, but no rejects and no part of another stage."""
    with open_output(str(tmp_path / "out"), "error", [], ME) as output:
        last = output.sink("parquet", SCHEMA, REJECTS)
        sink = last if stage is None else last.for_next_stage(stage)
        sink.discard()
        other = last.for_next_stage("two").write_part(0, [rows(0)])
        sink.write_part(0, [rows(1)])
        sink.write_part(1, [rows(2)])
        rejects = [sink.write_rejects(0, REJECTED)]
        sink.discard()
        last.for_next_stage("two").delete_intermediate()
        parts = [last.write_part(2, [rows(3)])]
        output.commit(manifest(parts, rejects))
    assert other.rows == 1
    assert windows_in(tmp_path / "out") == [3]


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_a_part_may_have_no_tables_or_unlike_ones_but_lack_no_column(tmp_path: Path, format: Any) -> None:
    encoded = pa.array(["bob"]).dictionary_encode()
    tables = [
        pa.table({"user": ["ann"], "window": [1]}),
        pa.table({"window": [2], "more": [0], "user": encoded}),
    ]
    with open_output(str(tmp_path / "out"), "error", [], ME) as output:
        sink = output.sink(format, SCHEMA, REJECTS)
        assert sink.write_part(0, []).rows == 0
        with pytest.raises(KeyError):
            sink.write_part(1, [pa.table({"user": ["ann"]})])
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
    with open_output(str(tmp_path / "out"), "error", [], ME) as output:
        for format in FORMATS:
            with pytest.raises(ConfigError, match=f"{format} cannot hold column 'gap' of type month_day_nano_interval"):
                output.sink(format, odd, REJECTS)
        with pytest.raises(ConfigError, match="two columns named 'a'"):
            output.sink("csv", pa.schema([("a", pa.int64()), ("a", pa.int64())]), REJECTS)


# Leaving without a commit: that it leaves no trace, units of a state show with outputs of theirs


def test_tasks_that_still_write_lose_their_folder(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], ME) as output:
        sink = output.sink("parquet", SCHEMA, REJECTS)
    for write in (lambda: sink.write_part(0, [rows(1)]), lambda: sink.write_rejects(0, REJECTED)):
        with pytest.raises(OutputError, match="the folder is not there any more; nothing was written"):
            write()
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_is_not_hidden_by_a_failing_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    def interrupted() -> None:
        with open_output(str(tmp_path / "out"), "error", [], ME):
            monkeypatch.setattr(folder_swap, "remove_beside", refuse)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    assert "could not remove" in caught.value.__notes__[0]


# What is refused


@pytest.mark.parametrize("mode", ["error", "overwrite"])
@pytest.mark.parametrize(
    ("there", "out", "error", "message"),
    [
        ("out/thesis.tex", "out", ConfigError, "not empty and was not written by wincli; nothing was touched"),
        ("out", "out", ConfigError, "is not a folder; name a folder"),
        ("out", "out/below", OutputError, "a part of the path is a file, not a folder; nothing was written"),
        ("b", f"a/{LONG}", OutputError, "the name is too long; nothing was written; choose a shorter name"),
        ("b", f"a/{LONG}/out", OutputError, "the name is too long; nothing was written; choose a shorter name"),
        ("b", f"a/{LONG}/b/out", OutputError, "the name is too long; nothing was written; choose a shorter name"),
    ],
)
def test_where_no_result_can_be_put_nothing_is_touched(
    tmp_path: Path, there: str, out: str, error: type[Exception], message: str, mode: str
) -> None:
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("mine")
    with pytest.raises(error, match=message):
        put(tmp_path / out, 1, mode=mode)
    assert tree(tmp_path) == {there: b"mine"}
    assert names(tmp_path) == [there.split("/", maxsplit=1)[0]]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "the output path is empty"),
        ("/", "is a mount point"),
        ("gopher://x/y", "results are written to local folders, s3"),
        ("{out}", r"already holds a result.*--mode overwrite"),
    ],
)
def test_paths_that_cannot_be_a_new_output(tmp_path: Path, path: str, message: str) -> None:
    put(tmp_path / "out", 1)
    with (
        pytest.raises(ConfigError, match=message),
        open_output(path.format(out=tmp_path / "out"), "error", [], ME),
    ):
        pass
    assert windows_in(tmp_path / "out") == [1]
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_an_empty_folder_is_as_good_as_none(tmp_path: Path, mode: str) -> None:
    (tmp_path / "out").mkdir(mode=0o750)
    put(tmp_path / "out", 1, mode=mode)
    assert windows_in(tmp_path / "out") == [1]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o750


def test_an_output_filled_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "overwrite", [], ME) as output:
        (tmp_path / "out").mkdir()
        (tmp_path / "out/other").write_text("")
        with pytest.raises(ConfigError, match="nothing was touched"):
            output.commit(manifest([]))
    assert tree(tmp_path) == {"out/other": b""}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([0, 7], r"part-00007\.csv was written by a task but is not here.*workers share"),
        ([], r"no task knows of part-00000\.csv; nothing was written"),
    ],
)
def test_parts_that_are_others_than_tasks_told_stop_the_commit(tmp_path: Path, told: list[int], message: str) -> None:
    with open_output(str(tmp_path / "out"), "error", [], ME) as output:
        output.sink("csv", SCHEMA, REJECTS).write_part(0, [rows(1)])
        with pytest.raises(OutputError, match=message):
            output.commit(manifest([Part(f"part-{number:05}.csv", 1, 1) for number in told]))
    assert names(tmp_path) == []


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
    assert sorted(tree(tmp_path)) == ["out/_SUCCESS", "out/_wincli/manifest.json", "out/part-00000.parquet"]
    assert windows_in(tmp_path / "out") == [2]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700


def test_exchange_swaps_two_names_or_reports_that_it_cannot(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    (one / "1").write_text("")
    assert [*tree(tmp_path)] == ["one/1"]
    has_swapped = atomic_files.exchange(one, other)
    assert [*tree(tmp_path)] == (["other/1"] if has_swapped else ["one/1"])
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


@pytest.mark.parametrize(
    ("path", "where"),
    [
        *((name, name) for name in ("x" * 255, "ü" * 127, "a b'*[c]", ".hidden", "-rf")),
        ("link", "real/out"),
        ("file://{here}/out", "out"),
    ],
)
def test_an_output_may_have_any_name_and_be_relative_a_link_or_a_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/out")
    for number in (1, 2):
        put(path.format(here=tmp_path), number, mode="overwrite")
        assert windows_in(tmp_path / where) == [number]
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == sorted({"real", "link", where.split("/", maxsplit=1)[0]})


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
    with open_output(str(tmp_path / "out"), "error", [], ME) as output:
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

mine, yours = sys.argv[1:3]
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
for format in ("parquet", "csv", "jsonl"):
    run(format, yours + "/" + format)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
os.geteuid() or os.setuid(65534)
run("csv", mine + "/out")
run("csv", mine + "/new/out")
"""


def test_real_limits_of_rights_and_of_the_size_of_files() -> None:
    with tempfile.TemporaryDirectory() as folder:  # other users can enter it, which pytest's own they cannot
        Path(folder).chmod(0o755)
        mine, yours = Path(folder, "mine"), Path(folder, "yours")
        mine.mkdir(mode=0o555)
        yours.mkdir()
        command = [sys.executable, "-c", CHILD, str(mine), str(yours)]
        told = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
        do = "raise the limit on file sizes (ulimit -f), or write to another disk"
        said = f"the file is too large for this system; nothing was written; {do}"
        forms = ("parquet", "csv", "jsonl")
        assert told[:3] == [f"cannot write {yours}/{form}/part-00000.{form}: {said}" for form in forms]
        assert told[3].startswith(f"cannot write {mine}/out: permission denied; nothing was written; get the right to")
        assert "permission denied" in told[4]
        assert [*mine.iterdir(), *yours.iterdir()] == []


# No run may read what it writes


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs/2026").mkdir(parents=True)
    (tmp_path / "logs/2026/a.csv").write_text("")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/part-00000.csv").write_text("")
    (tmp_path / "link").symlink_to("logs")
    return tmp_path


@pytest.mark.parametrize(
    ("out", "source", "how"),
    [
        ("logs", "logs", "is the input logs itself"),
        ("logs/", "./logs", "is the input"),
        ("link", "logs", "is the input"),
        ("logs/out", "logs", "is inside the input logs"),
        ("logs/2026/deep/out", "logs", "is inside the input"),
        ("logs/out", "link", "is inside the input"),
        ("link/out", "logs", "is inside the input"),
        ("logs", "logs/2026", "contains the input logs/2026"),
        ("logs", "link/2026/a.csv", "contains the input"),
        (".", "logs", "contains the input logs"),
        ("logs/2026/a.csv", "logs/2026/a.csv", "is the input"),
        ("logs/out", "logs/*", "is inside the input logs/[*]"),
        ("logs/out/x", "logs/o?t", "is inside the input"),
        ("logs/a/b/out", "logs/**/*.csv", "is inside the input"),
        ("logs", "logs/*.csv", "contains the input"),
        ("logs", "logs/**/*.csv", "is inside the input"),
        ("out", "*/part-*.csv", "contains the input"),
        ("logs/out", "file://{here}/logs", "is inside the input"),
    ],
)
def test_refused(here: Path, out: str, source: str, how: str) -> None:
    with pytest.raises(ConfigError, match=f"output {out} {how}") as caught:
        refuse_overlap(locate(out), [source.format(here=here)])
    assert str(caught.value).endswith("choose an output folder apart from it")


@pytest.mark.parametrize(
    ("out", "source"),
    [
        ("out", "logs"),
        ("logs2", "logs"),
        ("logs", "logs2"),
        ("out", "logs/**"),
        ("logs/out", "logs/*.csv"),
        ("logs/out", "logs/2026"),
        ("logs/2026/out", "logs/2026/a.csv"),
        ("new", "*/part-*.csv"),
        ("out", "s3://bucket/out?region=eu-west-1"),
    ],
)
def test_apart(here: Path, out: str, source: str) -> None:
    refuse_overlap(locate(out), [source])


def test_a_file_with_brackets_in_its_name_is_no_glob(here: Path) -> None:
    (here / "logs[1]").mkdir()
    with pytest.raises(ConfigError, match="is inside the input"):
        refuse_overlap(locate("logs[1]/out"), ["logs[1]"])


def test_every_input_is_looked_at(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"contains the input out/part-00000\.csv"):
        refuse_overlap(locate("out"), ["logs", "out/part-00000.csv"])


def test_in_a_store_too() -> None:
    store, _ = file_system_of("s3://bucket/data/in?region=eu-west-1")
    for inner, how in (("in/out", "is inside"), ("in", "is the input"), ("", "contains")):
        out = Place("s3://..", store, f"bucket/data/{inner}".rstrip("/"))
        with pytest.raises(ConfigError, match=how):
            refuse_overlap(out, ["s3://bucket/data/in?region=eu-west-1"])
    refuse_overlap(Place("s3://..", store, "bucket/data/in2"), ["s3://bucket/data/in?region=eu-west-1"])


def test_a_root_holds_everything_and_a_glob_may_begin_there(here: Path) -> None:
    with pytest.raises(ConfigError, match="is inside the input /"):
        refuse_overlap(locate("out"), ["/"])
    refuse_overlap(locate("logs"), ["/*.csv"])
    with pytest.raises(ConfigError, match="is inside the input"):
        refuse_overlap(locate("out"), ["/*/**"])


def test_outputs_of_a_job_are_compared_with_all_others(here: Path) -> None:
    many = [f"deep/{n}" for n in range(3000)]
    refuse_each_other(many)
    refuse_each_other(["a", "ab", "b/a", "b/ab", "a-b"])
    for outputs, words in (
        ([*many, "deep/7"], "deep/7 and deep/7 are the same output"),
        ([*many, "deep/7/x/y"], "output deep/7/x/y is inside output deep/7"),
        ([*many, "deep"], "output deep/0 is inside output deep"),
        (["link", "logs"], "link and logs are the same output"),
        (["link/x", "logs"], "output link/x is inside output logs"),
    ):
        with pytest.raises(ConfigError, match=words):
            refuse_each_other(outputs)
