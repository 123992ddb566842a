"""The whole command without a state: results that are there already, and ranges of units that do not go on."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.day_results import day, span
from support.in_process import done
from support.processes import Ran, manifest, rows, tree, write
from support.s3_server import S3Bucket
from wincli.writers.places.lock import Owner

COUNTS = ("-w", "count(2)", "-a", "ids=collect(id)")


def run(folder: Path, *args: str, code: int = 0) -> Ran:
    return done(folder, "run", *args, code=code)


def error(folder: Path, code: int, *args: str) -> str:
    """Run what must fail and leave no trace; return what it says."""
    before = tree(folder)
    ran = run(folder, "-q", *args, code=code)
    assert tree(folder) == before
    return ran.err.removeprefix("wincli: error: ").rstrip("\n")


# One result


def test_the_same_again_does_nothing(tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv="id\n1\n2\n3\n")
    run(tmp_path, *COUNTS, "in", "out")
    before = tree(tmp_path)
    again = run(tmp_path, *COUNTS, "in", "out", "--exit-code-noop", "7", "--split-size", "1KiB", code=7)
    assert again.err == "wincli: nothing to do: out holds the result of this job and input\n"
    assert tree(tmp_path) == before
    made = (tmp_path / "out/_wincli/manifest.json").stat().st_ino
    assert run(tmp_path, *COUNTS, "in", "out", "--mode", "overwrite").summary == "3 rows in, 2 windows out, 0 rejected"
    assert (tmp_path / "out/_wincli/manifest.json").stat().st_ino != made


def test_what_a_kill_has_left_beside_a_whole_result_goes_with_the_next_run(tmp_path: Path, s3: S3Bucket) -> None:
    for n in (1, 2):
        write(tmp_path / "in" / f"dt={day(n)}", a__csv="id\n1\n2\n3\n")
    dead = Owner(2**22 + 1, socket.gethostname(), "2026-11-01T00:00:00+00:00").to_json()
    for out, more in (("out", span(1, 2)), ("one", ()), (f"{s3.uri}/out", span(1, 2))):
        source = "in" if more else f"in/dt={day(1)}"
        run(tmp_path, *COUNTS, *more, source, out)
        name = f".dt={day(2)}" if more else ".one"
        if out.startswith("s3"):
            lease = {**json.loads(dead), "token": "x", "expires": time.time() + 60}
            s3.client.put_object(Bucket=s3.name, Key=f"out/{name}.wincli-lock", Body=json.dumps(lease).encode())
        else:
            above = tmp_path / out if more else tmp_path
            (above / f"{name}.wincli-lock").write_bytes(dead)
            (above / f"{name}.wincli-old-0123456789ab").mkdir()
        run(tmp_path, *COUNTS, *more, source, out)
    assert [path for path in tmp_path.rglob("*") if ".wincli-" in path.name] == []
    assert [each for each in s3.names() if ".wincli-" in each] == []


HARMS: dict[str, Callable[[Path], object]] = {
    "no sign of success": lambda out: (out / "_SUCCESS").unlink(),
    "no part": lambda out: (out / "part-00000.parquet").unlink(),
    "a torn manifest": lambda out: (out / "_wincli/manifest.json").write_text("{"),
    "a torn part": lambda out: (out / "part-00000.parquet").write_bytes(b"PAR1"),
}


def test_another_job_input_or_a_result_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv="id\n1\n2\n3\n")
    run(tmp_path, *COUNTS, "in", "out")
    refused = "output out already holds a result; nothing was touched"
    refused += "; choose another output, or replace it with --mode overwrite"
    assert error(tmp_path, 2, "-w", "count(3)", "in", "out") == refused
    write(tmp_path / "in", b__csv="id\n4\n")
    assert error(tmp_path, 2, *COUNTS, "in", "out") == refused
    (tmp_path / "in/b.csv").unlink()
    for name, harm in HARMS.items():
        run(tmp_path, *COUNTS, "in", "out", "--mode", "overwrite")
        harm(tmp_path / "out")
        assert error(tmp_path, 2, *COUNTS, "in", "out") == refused, name


def test_a_job_of_two_outputs_is_done_once_both_are_whole_and_replaces_only_its_own(tmp_path: Path) -> None:
    write(tmp_path / "in", **{f"{day(n)}__csv": f"id\n{n}\n" for n in (1, 2)})
    job = "input: in/{date}.csv\noutput: out/{date}\nstages:\n- {window: count(2), output: 'mid/{date}'}\n"
    (tmp_path / "job.yaml").write_text(f"{job}- window: count(1)\n")
    (tmp_path / "other.yaml").write_text(f"{job}- window: count(3)\n")
    run(tmp_path, "job.yaml", *span(1, 2))
    assert "nothing to do" in run(tmp_path, "job.yaml", *span(1, 2)).err
    for name, harm in HARMS.items():
        harm(tmp_path / "mid" / day(2))
        assert run(tmp_path, "job.yaml", *span(1, 2)).summary.startswith("1 unit done"), name
    shutil.rmtree(tmp_path / "mid" / day(2))
    assert f"output out/{day(2)} already holds a result" in error(tmp_path, 2, "other.yaml", *span(2, 2))


# A result and units of a range in one folder, which a glob would read together

INTO_RESULT = (
    "output {out}{below} is inside {out}, which holds a result of its own: who reads {out} would read both; "
    "nothing was touched; choose another output, or move {out} away"
)


@pytest.fixture
def days(tmp_path: Path) -> Path:
    for n in (1, 2):
        write(tmp_path / f"in/dt={day(n)}", a__csv=f"id\n{n}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("out", "below", "more"),
    [
        ("out", f"/dt={day(1)}", ()),
        ("out/{date}", f"/{day(1)}", ("--late", "redo", "--state", "state")),
        ("out/{date:%Y/%m/%d}", "/2026/11/01", ("--jobs", "2")),
    ],
)
def test_a_range_into_a_plain_result_is_refused(days: Path, out: str, below: str, more: tuple[str, ...]) -> None:
    run(days, *COUNTS, "in", "out")
    refused = f"wincli: error: {day(1)}: {INTO_RESULT.format(out='out', below=below)}\n"
    before = {name: file for name, file in tree(days).items() if not name.startswith("state")}
    for command in ("run", "plan"):
        assert done(days, command, "-q", *COUNTS, *span(1, 2), *more, "in", out, code=2).err == refused
    assert {name: file for name, file in tree(days).items() if not name.startswith("state")} == before
    assert not list((days / "state").glob("*/unit.json"))


def test_a_range_into_the_folders_of_a_partitioned_result_is_refused(days: Path) -> None:
    run(days, *COUNTS, "--partition-by", "dt=date '2026-11-01'", "in", "out")
    assert error(days, 2, *COUNTS, *span(1, 2), "in", "out") == f"{day(1)}: " + INTO_RESULT.format(
        out="out", below=f"/dt={day(1)}"
    )


@pytest.mark.parametrize("out", ["out", "out/{date:%Y/%m/%d}"])
@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_a_plain_run_into_the_units_of_a_range_is_refused_and_names_one(days: Path, out: str, mode: str) -> None:
    run(days, *COUNTS, *span(1, 2), "in", out)
    unit = "2026/11/01" if "date" in out else f"dt={day(1)}"
    refused = (
        f"output out holds other results in its folders, such as {unit}; nothing was touched; "
        "choose another output, or say --start and --end if these are units of a range"
    )
    given = (*COUNTS, "--mode", mode, "in", "out")
    assert error(days, 2, *given) == refused
    assert done(days, "plan", "-q", *given, code=2).err == f"wincli: error: {refused}\n"


def test_a_result_among_units_is_not_replaced_with_them(days: Path) -> None:
    """Up to version 0.12 a range wrote its units into a plain result; to replace that would delete them."""
    run(days, *COUNTS, "in", "out")
    run(days, *COUNTS, *span(1, 2), "in", "units")
    (days / f"units/dt={day(1)}").rename(days / f"out/dt={day(1)}")
    assert f"such as dt={day(1)}" in error(days, 2, *COUNTS, "--mode", "overwrite", "in", "out")


def test_a_range_and_a_plain_result_of_a_delta_table_do_not_mix(days: Path) -> None:
    form = ("--output-format", "delta")
    run(days, *COUNTS, *form, "in", "one")
    run(days, *COUNTS, *form, *span(1, 2), "in", "units")
    said = error(days, 3, *COUNTS, *form, *span(1, 2), "in", "one")
    assert f"the table one/dt={day(1)} has no column 'dt', so it has no partition dt={day(1)}" in said
    said = error(days, 2, *COUNTS, *form, "--mode", "overwrite", "in", "units")
    assert said.startswith("the table units is partitioned by dt, and this result by nothing")


# Ranges


def test_days_are_done_once_and_again_when_their_files_change(tmp_path: Path) -> None:
    for n in (1, 2, 4):
        write(tmp_path / "in" / f"dt={day(n)}", a__csv=f"id\n{n}\n{n}0\n{n}00\n")
    command = (*COUNTS, "in", "out", *span(1, 5), "--exit-code-noop", "99")
    first = run(tmp_path, *command)
    assert first.summary == "3 units done, 2 gaps, 9 rows in, 6 windows out, 0 rejected"
    assert f"no input, passed over: {day(3)}, {day(5)}" in first.notes
    assert [rows(tmp_path / "out" / f"dt={day(n)}", "ids") for n in (1, 4)] == [[[1, 10], [100]], [[4, 40], [400]]]
    assert manifest(tmp_path / "out" / f"dt={day(2)}")["counts"]["rows_in"] == 3
    before = tree(tmp_path)
    second = run(tmp_path, *command, code=99)
    assert second.err.splitlines()[-1] == "wincli: nothing to do -> out"
    assert f"already done with the same input: {day(1)}..{day(2)}, {day(4)}" in second.notes
    assert tree(tmp_path) == before
    write(tmp_path / "in" / f"dt={day(2)}", b__csv="id\n7\n")
    write(tmp_path / "in" / f"dt={day(3)}", a__csv="id\n3\n")
    third = run(tmp_path, *command)
    assert third.summary == "2 units done (1 again), 2 skipped, 1 gap, 5 rows in, 3 windows out, 0 rejected"
    assert not any(note.startswith("the correction reached") for note in third.notes)  # each unit stands alone
    assert rows(tmp_path / "out" / f"dt={day(2)}", "ids") == [[2, 20], [200, 7]]
    run(tmp_path, *command, "--redo")
    assert len(list((tmp_path / "out").iterdir())) == 4
