"""``-`` as IN and OUT: stdin is read as files are, and stdout gets the result and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from support.in_process import wincli_here
from support.processes import Ran, manifest, rows
from wincli.cli.run import standard_streams
from wincli.cli.run.request import parse_job
from wincli.writers.formats import csv
from wincli.writers.formats import orc as orc_parts
from wincli.writers.formats import parquet as parquet_parts
from wincli.writers.output.sink import write_whole

CSV = "user,amount\na,1\nb,2\na,3\n"
LINES = '{"user":"a","amount":1}\n{"user":"b","amount":2}\n{"user":"a","amount":3}\n'
TOTALS = '"user","window","window_start","window_end","closed_by","total"\n"a",0,,,"count",4\n"b",0,,,"end",2\n'
WINDOW = ("-w", "count(2)", "-k", "user", "-a", "total=sum(amount)")


@contextlib.contextmanager
def put(number: int, file: int) -> Iterator[None]:
    """Let a file descriptor be another one."""
    kept = os.dup(number)
    os.dup2(file, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def run(folder: Path, *args: str, stdin: bytes = b"") -> Ran:
    """Run with stdin and stdout of its own; ``out`` is what the file descriptor 1 got."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as taken:
        given.write(stdin)
        given.seek(0)
        with put(0, given.fileno()), put(1, taken.fileno()):
            ran = wincli_here("run", *args, cwd=folder)
        taken.seek(0)
        assert ran.out == ""
        return Ran(ran.code, taken.read().decode("utf-8", "surrogateescape"), ran.err)


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing stays in the folder for temporary files."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    yield
    assert list((tmp_path / "tmp").iterdir()) == []


def as_parquet() -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table({"user": ["a", "b", "a"], "amount": [1, 2, 3]}), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("given", "flags", "form"),
    [
        (CSV.encode(), (), "csv"),
        (LINES.encode(), (), "jsonl"),
        (f"\ufeff{LINES}".encode(), (), "jsonl"),
        (as_parquet(), (), "parquet"),
        (CSV.encode(), ("--input-format", "csv"), None),
    ],
)
def test_stdin_to_stdout_is_plain_csv_and_nothing_else(
    tmp_path: Path, given: bytes, flags: tuple[str, ...], form: str | None
) -> None:
    ran = run(tmp_path, *WINDOW, "-", "-", *flags, stdin=given)
    assert (ran.code, ran.out) == (0, TOTALS)
    noted = [] if form is None else [f"stdin is read as {form}, by its first bytes; --input-format says otherwise"]
    assert [note for note in ran.notes if "stdin" in note] == noted
    assert ran.err.splitlines()[-1].endswith("-> stdout")


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_stdout_in_another_format(tmp_path: Path, form: str) -> None:
    ran = run(tmp_path, *WINDOW, "-", "-", "--output-format", form, "--no-plain", stdin=CSV.encode())
    assert ran.code == 0
    if form == "jsonl":
        found = [json.loads(line) for line in ran.out.splitlines()]
    else:
        found = parquet.read_table(io.BytesIO(ran.out.encode("utf-8", "surrogateescape"))).to_pylist()
    assert [(row["user"], row["total"], row["_mark"]) for row in found] == [("a", 4, "window"), ("b", 2, "window")]


def test_stdin_into_a_folder_is_called_stdin_in_manifest_and_rejects(tmp_path: Path) -> None:
    ran = run(tmp_path, *WINDOW, "-", "out", "--schema", "amount:int", stdin=(CSV + "c,x\n").encode())
    assert ran.code == 0
    assert rows(tmp_path / "out", "user", "total") == [("a", 4), ("b", 2)]
    (told,) = manifest(tmp_path / "out")["inputs"]
    assert told["path"] == "stdin"
    assert manifest(tmp_path / "out")["job"]["input"] == ["-"]
    assert "1 rejected (unparsable 1), see _rejected" in ran.err


def test_rejects_with_a_result_on_stdout_are_counted_with_a_hint(tmp_path: Path) -> None:
    given = (CSV + "c,x\n").encode()
    ran = run(tmp_path, *WINDOW, "-", "-", "--schema", "amount:int", stdin=given)
    assert (ran.code, ran.out) == (0, TOTALS)
    assert "1 rejected (unparsable 1), which a folder as OUT would keep" in ran.err
    ran = run(tmp_path, *WINDOW, "-", "-", "--schema", "amount:int", "--max-rejects", "0", stdin=given)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.endswith("run without --max-rejects, and into a folder, to see them in _rejected\n")


def test_files_to_stdout_and_several_inputs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "b.csv").write_text("user,amount\nc,5\n")
    ran = run(tmp_path, *WINDOW, "a.csv", "b.csv", "-")
    assert ran.out == TOTALS + '"c",0,,,"end",5\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv", "tmp"]


def test_what_user_code_prints_goes_to_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of the user's writes to the file descriptor 1, as a library in C would."""
    (tmp_path / "noisy.py").write_text(
        "import os\ndef total(x) -> int:\n    os.write(1, b'noise\\n')\n    return int(sum(x))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with tempfile.TemporaryFile() as taken:
        with put(2, taken.fileno()):
            ran = run(tmp_path, "-w", "count(3)", "-a", "noisy:total(amount)", "-", "-", stdin=CSV.encode())
        taken.seek(0)
        assert b"noise" in taken.read()
    sys.modules.pop("noisy", None)
    assert ran.code == 0, ran.err
    assert "noise" not in ran.out


@pytest.mark.parametrize(
    ("given", "flags", "code", "told"),
    [
        (b"", (), 3, "stdin is empty"),
        (b" \n", (), 3, "stdin is empty"),
        (b"\x1f\x8b\x08\0", (), 3, "stdin is compressed with gzip; pipe it through zcat"),
        (b'[{"user": "a"}]', (), 3, "pipe it through jq -c '.[]'"),
        (CSV.encode(), ("-k", "usr"), 2, "there is no column 'usr' for the key"),
        (b"", ("--master", "spark://head:7077"), 2, "the tasks of spark://head:7077 run on others"),
    ],
)
def test_an_error_leaves_stdout_empty_and_names_stdin(
    tmp_path: Path, given: bytes, flags: tuple[str, ...], code: int, told: str
) -> None:
    ran = run(tmp_path, *WINDOW, *flags, "-", "-", stdin=given)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    reads, writes = os.pipe()
    os.close(reads)
    with put(1, writes):
        os.close(writes)
        ran = wincli_here("run", *WINDOW, "a.csv", "-", cwd=tmp_path)
    assert ran.code == 141
    assert [line for line in ran.err.splitlines() if ": note: " not in line] == []


def test_a_full_stdout_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    with Path("/dev/full").open("wb") as full, put(1, full.fileno()):
        ran = wincli_here("run", *WINDOW, "a.csv", "-", cwd=tmp_path)
    assert ran.code == 3
    assert "stdout cannot be written: the disk is full; name a folder as OUT" in ran.err


@pytest.mark.parametrize("most", [0, 1, 1 << 10, 3 << 20, 1 << 30])
def test_stdin_that_is_read_in_two_goes_is_whole(tmp_path: Path, most: int) -> None:
    content = CSV.encode() + b"a,7\n" * (1 << 20)
    job, notes = parse_job({"paths": ("-", "out"), "window": "count(2)"}), list[str]()
    pipes = standard_streams.Pipes(tmp_path, None, "csv")
    with tempfile.TemporaryFile(dir=tmp_path) as given:
        given.write(content)
        given.seek(0)
        with put(0, given.fileno()):
            assert pipes.is_all_within(most, job, notes.append) == (len(content) <= most)
            filled = pipes.filled(job, notes.append)
            assert pipes.filled(job, notes.append).places == filled.places
    assert filled.places.stdin is not None
    assert Path(filled.places.stdin.path).read_bytes() == content
    assert len(notes) == 1


def test_the_spool_is_nobody_elses_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    filled = standard_streams.Pipes.filled

    def look(self: standard_streams.Pipes, *args: object) -> object:
        found = filled(self, *args)  # type: ignore[arg-type]
        assert found.places.stdin is not None
        seen.extend(stat.S_IMODE(Path(path).stat().st_mode) for path in (found.places.stdin.path, self.folder))
        return found

    monkeypatch.setattr(standard_streams.Pipes, "filled", look)
    assert run(tmp_path, *WINDOW, "-", "-", stdin=CSV.encode()).code == 0
    assert seen == [0o600, 0o700]


# Parts in one piece


def test_parts_follow_each_other_with_one_header(tmp_path: Path) -> None:
    schema = pa.schema({'a "line"\nend': pa.int64(), "b": pa.string()})
    for number, values in {0: [1, 2], 10: [3], 100000: [4], 2: []}.items():
        table = pa.table([pa.array(values, pa.int64()), pa.array(["x\ny"] * len(values), pa.string())], schema=schema)
        for form, module in (("csv", csv), ("parquet", parquet_parts), ("orc", orc_parts)):
            with pa.OSFile(str(tmp_path / form) + f"-{number}", "wb") as file:
                module.ENCODER.encode([table], schema, file)
    for form in ("csv", "parquet", "orc"):
        (tmp_path / f"as_{form}").mkdir()
        for number in (0, 10, 100000, 2):
            (tmp_path / f"{form}-{number}").rename(tmp_path / f"as_{form}" / f"part-{number:05d}.{form}")
    out = io.BytesIO()
    write_whole(tmp_path / "as_csv", "csv", out)
    assert out.getvalue().decode() == '"a ""line""\nend","b"\n1,"x\ny"\n2,"x\ny"\n3,"x\ny"\n4,"x\ny"\n'
    out = io.BytesIO()
    write_whole(tmp_path / "as_parquet", "parquet", out)
    assert parquet.read_table(io.BytesIO(out.getvalue())).column(0).to_pylist() == [1, 2, 3, 4]
    out = io.BytesIO()
    write_whole(tmp_path / "as_orc", "orc", out)
    assert orc.read_table(io.BytesIO(out.getvalue())).column(0).to_pylist() == [1, 2, 3, 4]
