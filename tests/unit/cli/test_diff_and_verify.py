"""`wincli diff` and `wincli verify` over results of runs: what they print, exit with, and find."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from support.day_results import day, span
from support.in_process import done, wincli_here
from wincli.cli.inspection.comparison.text import verify
from wincli.cli.inspection.results.result import open_result_folder
from wincli.windowing.errors import WincliError
from wincli.windowing.support.checksum import seal

SPENT = ("--window", "time(1h)", "--key", "user", "--agg", "count()", "--agg", "spent=sum(n)")
ROWS = [(minute, "ab"[minute % 2], minute) for minute in range(0, 240, 7)]


def _log(rows: list[tuple[int, str, int]], date: str = "2026-11-01") -> str:
    return "ts,user,n\n" + "".join(f"{date} {m // 60:02}:{m % 60:02}:00,{user},{n}\n" for m, user, n in rows)


def _run(tmp_path: Path, name: str, rows: list[tuple[int, str, int]], *more: str) -> None:
    (tmp_path / f"{name}.csv").write_text(_log(rows))
    done(tmp_path, "run", "-q", *SPENT, *more, f"{name}.csv", name)


def _diff(tmp_path: Path, *args: str, code: int = 1) -> str:
    return done(tmp_path, "diff", *args, code=code).out


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Results `a` and `b`: in `b` a row of a in hour 1 has another value, and the rows of b in hour 3 are gone."""
    _run(tmp_path, "a", ROWS)
    _run(tmp_path, "b", [(m, u, n + 1000 * (m == 70)) for m, u, n in ROWS if (m < 180 or u == "a")])
    return tmp_path


def test_windows_that_differ_are_named_with_both_values(two: Path) -> None:
    out = _diff(two, "a", "b", "--sort", "spent")
    assert out.splitlines()[2] == "2 windows differ: 1 changed, 1 only in A, 0 only in B"
    assert "(+1,000)" in out
    found = json.loads(_diff(two, "a", "b", "--json"))
    windows = {(each["kind"], each["window"]["user"]) for each in found["listed"]}
    assert windows == {("changed", "a"), ("only in A", "b")}
    assert json.loads(_diff(two, "a", "b", "--tolerance", "10", "--json"))["changed"] == 0
    assert found["change_of_sums"]["spent"] == 1000 - sum(n for m, u, n in ROWS if m >= 180 and u == "b")


def test_equal_results_are_told_by_digests_whatever_their_format(tmp_path: Path) -> None:
    _run(tmp_path, "a", ROWS)
    for name in ("csv", "jsonl", "orc"):
        _run(tmp_path, name, ROWS, "--output-format", name)
        part = tmp_path / name / f"part-00000.{name}"
        part.write_bytes(b"x" * part.stat().st_size)  # nobody reads it
        assert json.loads(_diff(tmp_path, "a", name, "--json", code=0))["units"][0]["by_digest"] is True


def _write_days(tmp_path: Path, *days: int) -> None:
    for at in days:
        (tmp_path / "in" / f"dt={day(at)}").mkdir(parents=True)
        (tmp_path / "in" / f"dt={day(at)}" / "x.csv").write_text(_log(ROWS, day(at)))


def test_the_results_of_a_range_are_compared_unit_by_unit(tmp_path: Path) -> None:
    _write_days(tmp_path, 1, 2, 3)
    run = ("run", "-q", *SPENT, "--schema", "dt:string")
    done(tmp_path, *run, *span(1, 3), "in", "a")
    (tmp_path / "in" / f"dt={day(2)}" / "x.csv").write_text(_log([(0, "c", 1), *ROWS], day(2)))
    done(tmp_path, *run, *span(1, 2), "in", "b")
    found = json.loads(_diff(tmp_path, "a", "b", "--json"))
    assert [unit["by_digest"] for unit in found["units"]] == [True, False, False]
    assert [(unit["only_in_a"], unit["only_in_b"]) for unit in found["units"]] == [(0, 0), (0, 1), (8, 0)]
    text = _diff(tmp_path, "a", "b")
    assert f"{day(3)}: only A has it, with 8 rows" in text
    assert "1 unit is equal" in text


def test_columns_that_one_side_lacks_are_a_difference(two: Path) -> None:
    _run(two, "c", ROWS, "--agg", "most=max(n)")
    assert "columns only in B: most" in _diff(two, "a", "c")
    assert done(two, "verify", "a").out == "a: 1 result, 1 file, 8 rows: all as it was written\n"


def _damage(tmp_path: Path) -> list[str]:
    found: list[str] = json.loads(done(tmp_path, "verify", "out", "--json", code=4).out)["damage"]
    return found


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_damage_is_found_wherever_it_is(tmp_path: Path, format: str) -> None:
    _run(tmp_path, "out", [*ROWS, (5, "", 3)], "--output-format", format)
    part = tmp_path / "out" / f"part-00000.{format}"
    content = part.read_bytes()
    if format == "csv":
        part.write_bytes(content.replace(b",4,", b",5,", 1))
        (line,) = _damage(tmp_path)
        assert "its checksum is" in line
        part.write_bytes(content.replace(b"\n", b" ", 2).replace(b" ", b"\n", 1))
        assert _damage(tmp_path)
    else:
        part.write_bytes(content[:-9] + b"123456789")
        assert "its checksum is" in _damage(tmp_path)[0]
    part.write_bytes(content[:-1])
    assert f"it has {len(content) - 1:,} bytes, not {len(content):,}" in _damage(tmp_path)[0]
    part.unlink()
    assert _damage(tmp_path)[0].endswith("it is gone")
    part.write_bytes(content)
    (tmp_path / "out" / "more.csv").write_text("x")
    assert _damage(tmp_path)[0].endswith("more.csv: no run has written it there")
    (tmp_path / "out" / "more.csv").unlink()
    (rejects,) = (tmp_path / "out" / "_rejected").iterdir()
    rejects.write_bytes(rejects.read_bytes().replace(b"\n", b" "))
    assert "its checksum is" in _damage(tmp_path)[0]
    manifest = tmp_path / "out" / "_wincli" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"windowed"', '"windowd"'))
    assert "not the manifest that was written" in _damage(tmp_path)[0]


def test_a_result_without_digests_is_verified_by_its_rows(tmp_path: Path) -> None:
    _run(tmp_path, "out", ROWS)
    path = tmp_path / "out" / "_wincli" / "manifest.json"
    manifest = json.loads(path.read_text())
    for part in (manifest, *manifest["parts"]):
        del part["digest"], part["checksum"]
    del manifest["place"]  # of a version that has it, a manifest without a checksum is damaged
    path.write_text(json.dumps(manifest))
    out = done(tmp_path, "verify", "out").out
    assert "the rows were only counted" in out
    assert "1 result of an older wincli, without checksums: damage to bytes that hold no value is not" in out
    assert json.loads(done(tmp_path, "verify", "out", "--json").out)["without_checksums"] == 1
    assert _diff(tmp_path, "out", "out", code=0).splitlines()[2].startswith("no window differs, of 8 rows")


def test_a_state_is_verified_with_the_outputs_of_its_units(tmp_path: Path) -> None:
    _write_days(tmp_path, 1, 2)
    run = ("run", "-q", *SPENT, "--schema", "dt:string", "--state", "state", "--keep", "2")
    done(tmp_path, *run, *span(1, 2), "in", "out")
    out = done(tmp_path, "verify", "state").out
    assert "2 results" in out
    assert "2 window states" in out
    part = next((tmp_path / "out" / f"dt={day(2)}").glob("part-*"))
    content = part.read_bytes()
    part.write_bytes(_flipped(content, Random(1)))
    assert f"out/dt={day(2)}/{part.name}: its checksum is" in done(tmp_path, "verify", "state", code=4).out
    part.write_bytes(content)
    file = next((tmp_path / "state" / day(1)).glob("*/*.parquet"))
    content = file.read_bytes()
    file.write_bytes(_flipped(content, Random(2)))
    assert "its checksum is" in done(tmp_path, "verify", "state", code=4).out
    file.write_bytes(content)
    record = tmp_path / "state" / day(1) / "unit.json"
    told = json.loads(record.read_text())
    told["stages"][0]["parts"][0]["digest"] = f"rows1:{1:032x}"
    record.write_text(json.dumps(seal({name: value for name, value in told.items() if name != "checksum"})))
    (line,) = json.loads(done(tmp_path, "verify", "state", "--json", code=4).out)["damage"]
    assert f"state/{day(1)}/window/{told['stages'][0]['parts'][0]['name']}: its rows are not those that were" in line


def test_every_flipped_bit_of_a_state_and_its_results_is_found_and_the_file_named(tmp_path: Path) -> None:
    _write_days(tmp_path, 1, 2)
    run = ("run", "-q", *SPENT, "--schema", "dt:string", "--state", "state", "--keep", "2")
    done(tmp_path, *run, *span(1, 2), "in", "out")
    files = [path for top in ("state", "out") for path in sorted((tmp_path / top).rglob("*")) if path.is_file()]
    files = [path for path in files if path.stat().st_size and not path.name.endswith("lock")]
    assert {path.name for path in files} >= {"unit.json", ".wincli-state", "manifest.json", "position.parquet"}
    for file in files:
        content, random = file.read_bytes(), Random(file.name)
        for _ in range(2):
            file.write_bytes(_flipped(content, random))
            ran = wincli_here("verify", "state", cwd=tmp_path)
            assert ran.code in (2, 3, 4)
            assert file.name in ran.out + ran.err
        file.write_bytes(content)
    done(tmp_path, "verify", "state")


def test_a_manifest_whose_checksum_is_gone_is_damaged(tmp_path: Path) -> None:
    _run(tmp_path, "out", ROWS)
    manifest = tmp_path / "out" / "_wincli" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('  "checksum": "crc32:', '  "checksul": "crc32:'))
    (line,) = _damage(tmp_path)
    assert line.endswith("manifest.json: it is not the manifest that was written there")


REJECTED = [*ROWS, (5, "", 3)]
FLIPS = 40


def _flipped(content: bytes, random: Random) -> bytes:
    changed, bit = bytearray(content), random.randrange(8 * len(content))
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _assert_every_flip_is_found(folder: Path, name: str, checked: str) -> None:
    """Flip one random bit of a file at a time: each is found, the file is named, and the command does not fail."""
    file, random = folder / name, Random(name)
    content = file.read_bytes()
    for _ in range(FLIPS):
        file.write_bytes(_flipped(content, random))
        (line,) = verify(checked).damage
        assert f"{name}: its checksum is crc32:" in line
    file.write_bytes(content)
    assert verify(checked).damage == []


FORMS = {
    "parquet": (),
    "orc": ("--output-format", "orc"),
    "csv": ("--output-format", "csv"),
    "jsonl": ("--output-format", "jsonl"),
    "folders": ("--partition-by", "user"),
    "delta": ("--output-format", "delta"),
    "delta with folders": ("--output-format", "delta", "--partition-by", "user"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_flipped_bit_of_a_part_and_of_rejects_is_found(tmp_path: Path, form: str) -> None:
    _run(tmp_path, "out", REJECTED, *FORMS[form])
    manifest = json.loads(next((tmp_path / "out" / "_wincli").glob("manifest*.json")).read_text())
    names = [part["name"] for part in (*manifest["parts"], *manifest["rejects"])]
    assert any("rejects-" in name for name in names)
    for name in names:
        _assert_every_flip_is_found(tmp_path / "out", name, str(tmp_path / "out"))
    done(tmp_path, "verify", "out")


@pytest.mark.parametrize("format", ["csv", "orc"])
def test_parts_that_a_stage_wrote_in_another_format_have_checksums(tmp_path: Path, format: str) -> None:
    (tmp_path / "in.csv").write_text(_log(REJECTED))
    first = f"{{name: hours, window: time(1h), key: user, agg: [spent=sum(n)], output: first, output_format: {format}}}"
    last = "{name: pairs, window: count(2), key: user, agg: [sum(spent)]}"
    (tmp_path / "job.yaml").write_text(f"input: in.csv\noutput: last\nstages: [{first}, {last}]\n")
    done(tmp_path, "run", "-q", "job.yaml")
    _assert_every_flip_is_found(tmp_path / "first", f"part-00000.{format}", str(tmp_path / "first"))
    _assert_every_flip_is_found(tmp_path / "last", "part-00000.parquet", str(tmp_path / "last"))


def test_a_damaged_file_is_named_beside_one_that_is_gone(tmp_path: Path) -> None:
    _run(tmp_path, "out", ROWS, "--partition-by", "user")
    first, second = sorted((tmp_path / "out").glob("user=*/part-*"))
    first.unlink()
    second.write_bytes(b"x" * second.stat().st_size)
    gone, changed = _damage(tmp_path)
    assert gone == "out/user=a/part-00000.parquet: it is gone"
    assert changed.startswith("out/user=b/part-00000.parquet: its checksum is crc32:")


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "jsonl"])
def test_a_flipped_bit_of_an_input_that_is_a_result_is_read_or_an_error_with_the_file(
    tmp_path: Path, format: str
) -> None:
    """Readers compute no checksums, so they may read other values; but they never fail without naming the file."""
    _run(tmp_path, "out", ROWS, "--output-format", format)
    file, random = tmp_path / "out" / f"part-00000.{format}", Random(format)
    content = file.read_bytes()
    said = []
    for _ in range(FLIPS):
        file.write_bytes(_flipped(content, random))
        try:
            list(open_result_folder(str(tmp_path / "out")).rows.tables())
        except WincliError as error:
            said.append(error.what)
    assert said or format == "jsonl"
    assert [each for each in said if file.name not in each] == []


def test_a_column_name_of_a_damaged_file_that_is_no_text_is_an_error_with_the_file(tmp_path: Path) -> None:
    _run(tmp_path, "out", ROWS)
    content = (tmp_path / "out" / "part-00000.parquet").read_bytes()
    (tmp_path / "log.parquet").write_bytes(content.replace(b"closed_by", b"c\xe4osed_by"))
    ran = done(tmp_path, "run", "-q", "--window", "count(2)", "log.parquet", "next", code=3)
    assert "log.parquet cannot be read" in ran.err
