"""The whole command where a disk, or somebody, has damaged what units left: noticed, told, and mended."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from pyarrow import parquet

from support.day_results import day, kept, records, span
from support.in_process import done, wincli_here
from support.month_log import SESSIONS, Log, Seen, changed, corrections
from support.processes import Ran, manifest, rows, write
from wincli.writers.state.journal import StateStaging


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Four days, of which three are done."""
    log = Log(tmp_path)
    for n in range(1, 5):
        log.write(n)
    log.run(*span(1, 3))
    return log


def status(folder: Path, path: str = "st", code: int = 0) -> list[str]:
    ran = done(folder, "status", path, code=code)
    return (ran.out or ran.err).splitlines()


def noted(ran: Ran, *notes: str) -> None:
    assert [note for note in ran.notes if note in notes] == [*notes], ran.notes


def night(folder: Path, n: int, *more: str, code: int = 0) -> Ran:
    """Run the job of sessions on the log of a night, ``a1.csv`` and so on, as a plain run on the state ``st``."""
    command = ("run", "-w", "gap(ts, 5)", "-k", "user", "--order-by", "ts", "--state", "st")
    return done(folder, *command, f"a{n}.csv", f"out/{n}", *more, code=code)


def write_nights(folder: Path, *times: str) -> None:
    """Write the logs of nights; ``times``: those of a user's rows, such as ``1 4``."""
    for n, each in enumerate(times, 1):
        write(folder, **{f"a{n}__csv": "\n".join(["ts,user", *(f"{time},a" for time in each.split()), ""])})


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 4
    path.write_bytes(content)


RESTORE = (
    "restore it; a unit of a range may be run again with --redo, "
    "the last plain run with --mode overwrite after wincli state forget"
)


def cut(path: Path) -> None:
    """Leave a file that is whole as Parquet and has a row less."""
    table = parquet.read_table(path)
    parquet.write_table(table.slice(0, table.num_rows - 1), path, compression="zstd")


# What the windows hold


PARTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "rows-00000.parquet": (lambda path: path.unlink(), "it is gone"),
    "keys-00000.parquet": (lambda path: flip(path, -60), "its checksum"),
    "position.parquet": (
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        r"it has [\d,]+ bytes, not the [\d,]+ of",
    ),
}


def test_a_state_that_is_damaged_is_not_gone_on_from_and_can_be_redone(log: Log) -> None:
    for n, (name, (spoil, said)) in enumerate(PARTS.items(), 3):
        log.write(n + 1)
        spoil(log.state / day(n) / "window" / name)
        before = Seen.of(log)
        ran = log.run(*span(1, n + 1), code=3)
        line = rf"wincli: error: {day(n + 1)}: st/{day(n)}/window/{name} is damaged: {said}.*; {RESTORE}"
        assert re.fullmatch(line, ran.err.splitlines()[-1]), ran.err
        assert before.touched(log) == []
        log.run(*span(n, n), "--redo")
        log.run(*span(1, n + 1))
    assert log.is_that_of_one_run()


def test_a_day_that_leaves_what_it_had_left_before_the_damage_moves_no_other(log: Log) -> None:
    log.run(*span(4, 4))
    (log.state / day(3) / "window/rows-00000.parquet").unlink()
    before = Seen.of(log)
    log.run(*span(3, 3), "--redo")
    assert before.touched(log) == [3]
    assert log.is_that_of_one_run()
    as_of_0_4_1(log.state)
    cut(log.state / day(3) / "window/rows-00000.parquet")
    before = Seen.of(log)
    log.run(*span(3, 3), "--redo")
    assert before.touched(log) == [3, 4]
    assert log.is_that_of_one_run()


def test_status_reports_files_that_differ_from_the_record(log: Log) -> None:
    folder = log.state / day(3) / "window"
    (folder / "rows-00000.parquet").unlink()
    shutil.copy(log.state / day(2) / "window/rows-00000.parquet", log.state / day(2) / "window/rows-00001.parquet")
    assert status(log.folder)[-2:] == [
        f"damaged: st/{day(2)}/window/rows-00001.parquet is damaged: no run has written it there; {RESTORE}",
        f"damaged: st/{day(3)}/window/rows-00000.parquet is damaged: it is gone; {RESTORE}",
    ]
    told = json.loads(wincli_here("status", "st", "--json", cwd=log.folder).out)
    assert len(told["damage"]) == 2


@pytest.mark.parametrize("spoiled", ["window/rows-00000.parquet", "unit.json"])
def test_remedy_of_the_error_repairs_the_last_plain_run(tmp_path: Path, spoiled: str) -> None:
    write_nights(tmp_path, "1", "2", "30")
    night(tmp_path, 1)
    night(tmp_path, 2)
    flip(tmp_path / "st/run-000002" / spoiled, 100)
    said = night(tmp_path, 3, code=3).err.splitlines()[-1]
    assert not (tmp_path / "out/3").exists()
    assert "the last plain run" in said
    assert "--mode overwrite" in said
    shutil.rmtree(tmp_path / "st/run-000002")
    night(tmp_path, 2, "--mode", "overwrite")
    night(tmp_path, 3)
    assert rows(tmp_path / "out/3", "count") == [2]


# The record


def test_a_flipped_bit_of_a_record_is_one_line_for_every_command(log: Log) -> None:
    path = log.state / day(2) / "unit.json"
    flip(path, path.read_bytes().index(b'"rows_in": ') + 11)
    said = (
        f"wincli: error: {log.state}/{day(2)}/unit.json is damaged: it is not the record that was written there; "
        "restore it; a unit of a range, or the last plain run, may be deleted, folder and all, "
        "and run again with --mode overwrite"
    )
    assert status(log.folder, code=3) == [said]
    assert log.run(*span(1, 4), code=3).err.splitlines() == [said]


def test_a_unit_whose_record_was_deleted_is_run_again_and_so_is_what_follows(log: Log) -> None:
    shutil.rmtree(log.state / day(2))
    ran = log.run(*span(3, 4), code=3)
    said = f"{day(3)} began from {day(2)}, which is no longer in the state"
    do = f"restore the folder {day(2)} of the state, or run {day(2)} again before it"
    assert ran.err.splitlines()[-1] == f"wincli: error: {said}; {do}"
    log.run(*span(1, 4), "--mode", "overwrite")
    assert log.is_that_of_one_run()


def test_a_plain_run_whose_record_was_deleted_is_missed(tmp_path: Path) -> None:
    write_nights(tmp_path, "1", "2", "3", "4")
    for n in (1, 2, 3):
        night(tmp_path, n)
    shutil.rmtree(tmp_path / "st/run-000002")
    said = night(tmp_path, 4, code=3).err.splitlines()[-1]
    assert "run-000003 began from run-000002, which is no longer in the state; restore" in said


def as_of_0_4_1(state: Path) -> None:
    """Take away what 0.4.1 did not write."""
    for path in state.glob("*/unit.json"):
        told = json.loads(path.read_text())
        del told["checksum"]
        for stage in told["stages"]:
            for part in stage["parts"]:
                del part["checksum"]
        path.write_text(json.dumps({**told, "format": 1}, indent=2))
    (state / ".wincli-state").write_text('{\n  "format": 1\n}\n')


def test_a_plain_run_of_an_older_version_is_run_again_with_the_defaults_of_what_it_did_not_ask(tmp_path: Path) -> None:
    write_nights(tmp_path, "1 4", "2 12")
    night(tmp_path, 1, "--late", "redo")
    as_of_0_4_1(tmp_path / "st")
    path = tmp_path / "st/run-000001/unit.json"
    told = json.loads(path.read_text())
    for key in ("multiline", "exit_code_noop"):
        del told["job"][key]
    for key in ("marks", "emit_evicted"):
        del told["job"]["stages"][0][key]
    path.write_text(json.dumps(told))
    noted(night(tmp_path, 2, "--late", "redo"), "run-000001 is run again: it takes 1 late row of run-000002")
    assert rows(tmp_path / "out/2", "window", "count") == [(0, 3)]


# The journal


def test_a_journal_that_is_damaged_is_made_anew_by_the_next_run(log: Log) -> None:
    with mock.patch.object(StateStaging, "publish", side_effect=KeyboardInterrupt):
        log.run(*span(4, 4), code=130)
    (log.state / ".journal.json").write_bytes(b"{")
    assert f"commit: {day(4)} was killed while it was put in place; run again" in status(log.folder)
    ran = log.run(*span(1, 4))
    said = f"unit {day(4)} was complete when its run was killed in st, and has been put in place"
    noted(ran, "the journal of the state st was damaged; it was made anew from the unit that it named", said)
    assert log.is_that_of_one_run()


# Outputs


OUTPUTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (shutil.rmtree, "is gone"),
    "emptied": (lambda out: (shutil.rmtree(out), out.mkdir()), "is gone"),
    "a part gone": (lambda out: (out / "part-00000.parquet").unlink(), "lacks part-00000.parquet"),
    "a part cut": (lambda out: cut(out / "part-00000.parquet"), r"has [\d,]+ bytes in part-00000.parquet, not [\d,]+"),
    "not whole": (lambda out: (out / "_SUCCESS").unlink(), "lacks _SUCCESS"),
    "a bit of it": (lambda out: flip(out / "_wincli/manifest.json", 99), "has a damaged _wincli/manifest.json"),
}


def test_a_unit_of_the_range_that_has_lost_its_output_is_run_again(log: Log) -> None:
    log.run(*span(4, 4))
    out = log.folder / f"out/dt={day(2)}"
    for spoil, said in OUTPUTS.values():
        spoil(out)
        (line,) = [line for line in status(log.folder) if line.startswith("lost: ")]
        its = "its output" if said == "is gone" else f"its output out/dt={day(2)}"
        assert re.fullmatch(f"lost: {day(2)}: {its} {said}; run it again with --redo", line)
        before, runs = Seen.of(log), records(log.state)
        ran = log.run(*span(1, 4))
        (note,) = [note for note in ran.notes if "is run again" in note]
        assert re.fullmatch(f"{day(2)} is run again: its output out/dt={day(2)} {said}", note)
        assert before.touched(log) == [2]
        assert records(log.state)[day(2)]["state"] == runs[day(2)]["state"]
        assert corrections(ran) == [f"the correction reached {day(2)}; {day(3)}..{day(4)} stay as they were"]
    assert log.is_that_of_one_run()
    assert not any(line.startswith("lost: ") for line in status(log.folder))
    shutil.rmtree(log.folder / f"out/dt={day(1)}")
    assert not any("is run again" in note for note in log.run(*span(4, 4)).notes)  # it is outside of the range
    assert not (log.folder / f"out/dt={day(1)}").exists()
    shutil.rmtree(log.folder / "out")
    labels = ", ".join(map(day, (1, 2, 3, 4)))
    assert status(log.folder)[-1] == f"lost: {labels}: its output is gone; run it again with --redo"
    log.run(*span(1, 4))
    assert log.is_that_of_one_run()


def test_output_with_another_result_is_kept_without_redo(log: Log) -> None:
    out = f"out/dt={day(2)}"
    other = ("run", "-w", "count(2)", f"log/dt={day(1)}", out, "--mode", "overwrite")
    done(log.folder, *other)
    run = manifest(log.folder / out)["spec"]
    ran = log.run(*span(1, 4))
    said = f"its output {out} holds another result"
    noted(ran, f"{day(2)} is done, but {said}; --redo runs it again and replaces that")
    assert manifest(log.folder / out)["spec"] == run
    assert status(log.folder)[-1] == f"lost: {day(2)}: {said}; run it again with --redo"
    log.run(*span(2, 2), "--redo")
    assert log.is_that_of_one_run()


@pytest.mark.parametrize("why", ["its input is gone", "the state before it is no longer kept"])
def test_what_cannot_be_run_again_does_not_stop_the_units_after_it(log: Log, why: str) -> None:
    if why == "its input is gone":
        shutil.rmtree(log.folder / "log" / f"dt={day(2)}")
    else:
        log.run(*span(4, 4), "--keep", "1")
        assert kept(log.state) == [day(4)]
        log.write(5)
    shutil.rmtree(log.folder / f"out/dt={day(2)}")
    ran = log.run(*span(1, 5))
    noted(ran, f"{day(2)} is done, but its output out/dt={day(2)} is gone, and {why}")
    assert day(4 if why == "its input is gone" else 5) in records(log.state)


def test_a_plain_run_that_has_lost_its_output_is_run_again(tmp_path: Path) -> None:
    write_nights(tmp_path, "1", "2 9")
    night(tmp_path, 1)
    night(tmp_path, 2)
    found = rows(tmp_path / "out/2", "window", "count")
    shutil.rmtree(tmp_path / "out")
    noted(night(tmp_path, 2), "run-000002 is run again: its output out/2 is gone")
    assert rows(tmp_path / "out/2", "window", "count") == found
    assert [*records(tmp_path / "st")] == ["run-000001", "run-000002"]
    assert night(tmp_path, 2).err == "wincli: nothing to do: run-000002 of st has read this input\n"


def test_a_result_that_lacks_all_its_parts_is_damaged_and_no_gap(tmp_path: Path) -> None:
    write(tmp_path, a__csv="ts,user\n1,a\n")
    done(tmp_path, "run", "-w", "count(2)", "a.csv", f"in/{day(1)}")
    (tmp_path / f"in/{day(1)}/part-00000.parquet").unlink()
    assert status(tmp_path, f"in/{day(1)}")[-1] == (
        f"damaged: in/{day(1)} lacks part-00000.parquet; write the result again"
    )
    ran = done(tmp_path, "run", "-w", "punct()", *span(1, 1), "in/{date}", "out/{date}", code=3)
    assert f"in/{day(1)} is a result that lacks its parts; write the result again" in ran.err


def test_a_result_that_lost_rows_is_not_read_as_a_stream(tmp_path: Path) -> None:
    write(tmp_path, a__csv="ts\n1\n2\n9\n20\n")
    done(tmp_path, "run", "-w", "gap(ts, 5)", "a.csv", "out")
    cut(tmp_path / "out/part-00000.parquet")
    ran = wincli_here("run", "-w", "count(2)", "out", "then", cwd=tmp_path)
    said = r"out has [\d,]+ bytes in part-00000.parquet, and its manifest says [\d,]+; write the result again"
    assert ran.code == 3
    assert re.fullmatch(f"wincli: error: {said}", ran.err.splitlines()[-1])
    said = r"damaged: out has [\d,]+ bytes in part-00000.parquet, not [\d,]+; write the result again"
    assert re.fullmatch(said, status(tmp_path, "out")[-1])


def test_a_damaged_manifest_is_one_line_for_status_and_no_result_for_a_run(tmp_path: Path) -> None:
    write(tmp_path, a__csv="ts\n1\n2\n9\n20\n")
    command = ("run", "-w", "gap(ts, 5)", "a.csv", "out")
    done(tmp_path, *command)
    for text in ("{}", "[]", "{", '{"job": []}', '{"job": {}, "counts": {}}', "[" * 100_000):
        (tmp_path / "out/_wincli/manifest.json").write_text(text)
        (line,) = status(tmp_path, "out", code=3)
        assert line == "wincli: error: out/_wincli/manifest.json is no manifest of wincli; write the result again"
        said = done(tmp_path, *command, code=2).err.splitlines()[-1]
        assert said.startswith("wincli: error: output out already holds a result; nothing was touched")
    done(tmp_path, *command, "--mode", "overwrite")


# Options that may change over a range


@pytest.mark.parametrize("is_done", [False, True], ids=["with the last day", "when all days are done"])
def test_flush_is_added(log: Log, is_done: bool) -> None:
    if is_done:
        log.run(*span(1, 4))
    before = Seen.of(log)
    ran = log.run(*span(1, 4), "--at-end", "flush")
    if is_done:
        noted(ran, f"{day(4)} is run again: it was ended with hold, and is to be ended with flush")
    assert before.touched(log) == [4]
    assert [record["stages"][0]["counts"]["held"] > 0 for record in records(log.state).values()] == [True] * 3 + [False]
    again = log.run(*span(1, 4), "--at-end", "flush", "--exit-code-noop", "9", code=9)
    assert not any("is run again" in note for note in again.notes)
    done(log.folder, "run", *SESSIONS, "log", "one")
    windows = sum(len(rows(out, "user", "window", "n")) for out in log.outputs())
    assert windows == len(rows(log.folder / "one", "user", "window", "n"))


@pytest.mark.parametrize(("last", "was", "then"), [(4, "flush", "hold"), (3, "hold", "flush")])
def test_a_unit_that_ended_otherwise_stays_so_without_redo(log: Log, last: int, was: str, then: str) -> None:
    """Neither is a flush undone, nor is a day flushed before days that are done."""
    log.run(*span(4, 4), "--at-end", was)
    ran = log.run(*span(1, last), "--at-end", then, "--exit-code-noop", "9", code=9)
    said = f"{day(last)} is done, but it was ended with {was}, and is to be ended with {then}"
    noted(ran, f"{said}; --redo runs it again and replaces that")
    if then == "hold":
        log.run(*span(4, 4), "--redo")
        assert log.is_that_of_one_run()


def test_a_day_that_is_corrected_ends_as_it_did(log: Log) -> None:
    log.run(*span(4, 4))
    log.write(2, changed("20:00"))
    log.run(*span(1, 4), "--at-end", "flush")
    ends = [record["job"]["stages"][0]["at_end"] for record in records(log.state).values()]
    assert ends == ["hold", "hold", "hold", "flush"]


def test_a_plain_run_is_flushed_afterwards_and_stays_as_it_is_where_its_output_holds_another_result(
    tmp_path: Path,
) -> None:
    write_nights(tmp_path, "1", "2 9")
    night(tmp_path, 1)
    night(tmp_path, 2)
    assert len(rows(tmp_path / "out/2", "window", "count")) == 1
    ran = night(tmp_path, 2, "--at-end", "flush")
    noted(ran, "run-000002 is run again: it was ended with hold, and is to be ended with flush")
    assert len(rows(tmp_path / "out/2", "window", "count")) == 2
    done(tmp_path, "run", "-w", "count(2)", "a1.csv", "out/2", "--mode", "overwrite")
    ran = night(tmp_path, 2, "--at-end", "flush")
    noted(ran, "run-000002 is done, but its output out/2 holds another result; it stays as it is")
    assert ran.err.splitlines()[-1] == "wincli: nothing to do: run-000002 of st has read this input"


def test_late_redo_is_added_to_a_range(log: Log) -> None:
    late = log.folder / "log" / f"dt={day(4)}" / "late.csv"
    late.write_text(f"ts,user,x\n{day(2)}T10:00:00,a,5\n")
    log.run(*span(1, 4), "--late", "redo")
    assert [bool(record["borrowed"]) for record in records(log.state).values()] == [False, True, False, False]
    again = log.run(*span(1, 4), "--exit-code-noop", "9", code=9)
    assert not any("is run again" in note for note in again.notes)


def test_the_state_may_be_named_by_another_path(log: Log) -> None:
    ran = log.run(*span(1, 4), "--state", str(log.state))
    assert len(records(log.state)) == 4
    assert not any("is run again" in note for note in ran.notes)


OTHERS = {
    "window": (["-w", "gap(ts, 1h)"], "its window is gap(ts, 2h), not gap(ts, 1h)"),
    "key": (["-k", "x"], "its key is user, not user, x"),
    "order": (["--order-by", "x"], "its order_by is ts, not ts, x"),
    "format": (["--output-format", "csv"], "its output_format is parquet, not csv"),
    "types": (["--schema", "x:float"], "its schema is none, not x:float"),
    "two": (["-k", "x", "--partial"], "its key is user, not user, x; its partial is False, not True"),
}


def test_backfill_of_another_job_reports_the_differences_but_no_settings_of_spark(log: Log) -> None:
    secret = ("--spark-conf", "spark.hadoop.fs.s3a.secret.key=sesame")
    log.run(*span(1, 3), "--redo", *secret)
    for case, (more, different) in OTHERS.items():
        text = f"{day(1)} was done by a job that asks for something else: {different}"
        other = "begin the range after the units that are done" if case == "types" else "name another state"
        log.fails(2, f"{text}; run that job, redo the range with --redo, or {other}", *span(1, 4), *more)
    log.run(*span(1, 3), "--redo", "-a", "x=max(x)")
    assert rows(log.folder / f"out/dt={day(2)}", "user", "total", "x")[0] == ("a", 3, 3)
    different = "its agg is n=count(), total=sum(x), x=max(x), not n=count(), total=sum(x)"
    assert different in log.run(*span(1, 4), code=2).err
    assert "sesame" not in log.run(*span(1, 4), "-w", "gap(ts, 1h)", *secret, code=2).err


def test_backfill_with_other_stages_reports_the_differences(tmp_path: Path) -> None:
    write(tmp_path / "log", **{f"d{day(n).replace('-', '')}__csv": f"ts,x\n{n},1\n" for n in (1, 2)})
    stages = "stages:\n- {name: one, window: 'gap(ts, 5)', order_by: ts}\n- {name: all, window: %s}\nstate: st\n"
    command = ("log/d{date:%Y%m%d}.csv", "out/{date}", *span(1, 2))
    for window, code in (("count(2)", 0), ("count(3)", 2)):
        (tmp_path / "job.yaml").write_text(stages % window)
        ran = wincli_here("run", "job.yaml", *command, cwd=tmp_path)
        assert ran.code == code, ran.err
    assert "something else: stage all: its window is count(2), not count(3); run that job" in ran.err
