"""`wincli diff` and `wincli verify` over results of runs: what they print, exit with, and find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.day_results import day, span
from support.in_process import wincli_here
from support.processes import Ran

SPENT = ("--window", "time(1h)", "--key", "user", "--agg", "count()", "--agg", "spent=sum(n)")
ROWS = [(minute, "ab"[minute % 2], minute) for minute in range(0, 240, 7)]


def _log(rows: list[tuple[int, str, int]], date: str = "2026-11-01") -> str:
    return "ts,user,n\n" + "".join(f"{date} {m // 60:02}:{m % 60:02}:00,{user},{n}\n" for m, user, n in rows)


def _run(tmp_path: Path, name: str, rows: list[tuple[int, str, int]], *more: str) -> None:
    (tmp_path / f"{name}.csv").write_text(_log(rows))
    assert wincli_here("run", "-q", *SPENT, *more, f"{name}.csv", name, cwd=tmp_path).code == 0


def _diff(tmp_path: Path, *args: str) -> Ran:
    return wincli_here("diff", *args, cwd=tmp_path)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Results `a` and `b`: in `b` a row of a in hour 1 has another value, and the rows of b in hour 3 are gone."""
    _run(tmp_path, "a", ROWS)
    _run(tmp_path, "b", [(m, u, n + 1000 * (m == 70)) for m, u, n in ROWS if (m < 180 or u == "a")])
    return tmp_path


def test_windows_that_differ_are_named_with_both_values(two: Path) -> None:
    ran = _diff(two, "a", "b", "--sort", "spent")
    assert ran.code == 1
    assert ran.out.splitlines()[2] == "2 windows differ: 1 changed, 1 only in A, 0 only in B"
    assert "(+1,000)" in ran.out
    found = json.loads(_diff(two, "a", "b", "--json").out)
    windows = {(each["kind"], each["window"]["user"]) for each in found["listed"]}
    assert windows == {("changed", "a"), ("only in A", "b")}
    assert found["change_of_sums"]["spent"] == 1000 - sum(n for m, u, n in ROWS if m >= 180 and u == "b")


def test_equal_results_are_told_by_digests_whatever_their_format(tmp_path: Path) -> None:
    _run(tmp_path, "a", ROWS)
    for name in ("csv", "jsonl", "orc"):
        _run(tmp_path, name, ROWS, "--output-format", name)
        part = tmp_path / name / f"part-00000.{name}"
        part.write_bytes(b"x" * part.stat().st_size)  # nobody reads it
        ran = _diff(tmp_path, "a", name, "--json")
        assert (ran.code, json.loads(ran.out)["units"][0]["by_digest"]) == (0, True)


def test_a_tolerance_makes_near_numbers_equal(two: Path) -> None:
    ran = _diff(two, "a", "b", "--tolerance", "10", "--json")
    assert (ran.code, json.loads(ran.out)["changed"]) == (1, 0)


def test_the_results_of_a_range_are_compared_unit_by_unit(tmp_path: Path) -> None:
    for at in (1, 2, 3):
        (tmp_path / "in" / f"dt={day(at)}").mkdir(parents=True)
        (tmp_path / "in" / f"dt={day(at)}" / "x.csv").write_text(_log(ROWS, day(at)))
    run = ("run", "-q", *SPENT, "--schema", "dt:string")
    assert wincli_here(*run, *span(1, 3), "in", "a", cwd=tmp_path).code == 0
    (tmp_path / "in" / f"dt={day(2)}" / "x.csv").write_text(_log([(0, "c", 1), *ROWS], day(2)))
    assert wincli_here(*run, *span(1, 2), "in", "b", cwd=tmp_path).code == 0
    found = json.loads(_diff(tmp_path, "a", "b", "--json").out)
    assert [unit["by_digest"] for unit in found["units"]] == [True, False, False]
    assert [(unit["only_in_a"], unit["only_in_b"]) for unit in found["units"]] == [(0, 0), (0, 1), (8, 0)]
    text = _diff(tmp_path, "a", "b").out
    assert f"{day(3)}: only A has it, with 8 rows" in text
    assert "1 unit is equal" in text


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("a", "nowhere"), 3, "no file or folder nowhere"),
        (("a", "a.csv"), 3, "no result of wincli"),
        (("a", "b", "--by", "usr"), 2, "did you mean 'user'"),
        (("a", "b", "--columns", "spend"), 2, "did you mean 'spent'"),
        (("a", "b", "--sort", "user"), 2, "no column of numbers"),
        (("a", "b", "--tolerance", "-1"), 2, "tolerance"),
    ],
)
def test_mistakes_are_told_in_one_line(two: Path, args: tuple[str, ...], code: int, says: str) -> None:
    ran = _diff(two, *args)
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert says in ran.err


def test_columns_that_one_side_lacks_are_a_difference(two: Path) -> None:
    _run(two, "c", ROWS, "--agg", "most=max(n)")
    ran = _diff(two, "a", "c")
    assert ran.code == 1
    assert "columns only in B: most" in ran.out


def test_a_result_that_is_as_it_was_written_verifies(two: Path) -> None:
    ran = wincli_here("verify", "a", cwd=two)
    assert (ran.code, ran.out) == (0, "a: 1 result, 1 file, 8 rows: all as it was written\n")


def _damage(tmp_path: Path) -> list[str]:
    ran = wincli_here("verify", "out", "--json", cwd=tmp_path)
    assert ran.code == 4
    found: list[str] = json.loads(ran.out)["damage"]
    return found


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_damage_is_found_wherever_it_is(tmp_path: Path, format: str) -> None:
    _run(tmp_path, "out", [*ROWS, (5, "", 3)], "--output-format", format)
    part = tmp_path / "out" / f"part-00000.{format}"
    content = part.read_bytes()
    if format == "csv":
        part.write_bytes(content.replace(b",4,", b",5,", 1))
        (line,) = _damage(tmp_path)
        assert "its rows are not those that were written" in line
        part.write_bytes(content.replace(b"\n", b" ", 2).replace(b" ", b"\n", 1))
        assert _damage(tmp_path)
    else:
        part.write_bytes(content[:-9] + b"123456789")
        assert "cannot be read" in _damage(tmp_path)[0]
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
    assert "it has 0 lines, not 1" in _damage(tmp_path)[0]
    manifest = tmp_path / "out" / "_wincli" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"windowed"', '"windowd"'))
    assert "not the manifest that was written" in _damage(tmp_path)[0]


def test_a_result_without_digests_is_verified_by_its_rows(tmp_path: Path) -> None:
    _run(tmp_path, "out", ROWS)
    path = tmp_path / "out" / "_wincli" / "manifest.json"
    manifest = json.loads(path.read_text())
    for part in (manifest, *manifest["parts"]):
        del part["digest"]
    del manifest["checksum"]
    path.write_text(json.dumps(manifest))
    ran = wincli_here("verify", "out", cwd=tmp_path)
    assert ran.code == 0
    assert "the rows were only counted" in ran.out
    assert _diff(tmp_path, "out", "out").out.splitlines()[2].startswith("no window differs, of 8 rows")


def test_a_state_is_verified_with_the_outputs_of_its_units(tmp_path: Path) -> None:
    for at in (1, 2):
        (tmp_path / "in" / f"dt={day(at)}").mkdir(parents=True)
        (tmp_path / "in" / f"dt={day(at)}" / "x.csv").write_text(_log(ROWS, day(at)))
    run = ("run", "-q", *SPENT, "--schema", "dt:string", "--state", "state", "--keep", "2")
    assert wincli_here(*run, *span(1, 2), "in", "out", cwd=tmp_path).code == 0
    ran = wincli_here("verify", "state", cwd=tmp_path)
    assert ran.code == 0, ran.out
    assert "2 results" in ran.out
    assert "2 window states" in ran.out
    file = next((tmp_path / "state" / day(1)).glob("*/*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    ran = wincli_here("verify", "state", cwd=tmp_path)
    assert ran.code == 4
    assert "its checksum is" in ran.out
