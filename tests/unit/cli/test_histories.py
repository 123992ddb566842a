"""Backfills on a state in pieces (``--jobs``): to the byte what the same units give one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.day_results import day, records, span
from support.histories import in_pieces, put_history, run_both, tree
from support.iceberg_catalog import Lake
from support.in_process import wincli_here
from support.s3_server import S3Bucket
from wincli.cli.run import adoption

AGG = ("-a", "n=count()", "-a", "s=sum(x)", "-a", "l=last(x)")
KEYED = ("-k", "user", "--order-by", "ts", *AGG)
JOBS = {
    "gap": ("-w", "gap(ts, 20m)", *KEYED),
    "no key": ("-w", "gap(ts, 20m)", "--order-by", "ts", *AGG),
    "grid": ("-w", "time(2h)", *KEYED, "--empty", "row"),
    "count": ("-w", "count(5) or gap(ts, 30m)", *KEYED),
    "sliding": ("-w", "sliding, time(3h), time(40m)", *KEYED),
    "event time": ("-w", "timeInterval, intervalDuration(2h)", "--event-time", "ts", *KEYED),
    "lag": ("-w", "gap(ts, 20m)", *KEYED, "--let", "d=a - lag(a)", "-a", "q=sum(d)"),
    "folders": ("-w", "gap(ts, 20m)", *KEYED, "--partition-by", "long=n > 2"),
}
ENDS = [(), ("--at-end", "flush"), ("--late", "redo"), ("--output-format", "csv"), ("--max-rejects", "3")]
DAYS = 6


@settings(max_examples=4)
@given(st.data())
@pytest.mark.parametrize("job", JOBS)
def test_pieces_give_what_one_unit_after_the_other_gives(
    job: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder, days = tmp_path_factory.mktemp("history"), data.draw(st.integers(2, 8))
    put_history(folder, days, data.draw(st.integers(0, 10_000)), data.draw(st.sampled_from([8, 60])))
    longest, ahead, patience = (data.draw(st.integers(1, most)) for most in (5, 3, 4))
    with in_pieces(longest, ahead, patience, pace=data.draw(st.integers(0, 4))):
        run_both(folder, days, *JOBS[job], *data.draw(st.sampled_from(ENDS)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    put_history(tmp_path, DAYS, 2, 60)
    return tmp_path


def test_all_units_behind_the_first_of_a_piece_are_taken_over(log: Path) -> None:
    with in_pieces(longest=32, ahead=1, patience=8) as taken:
        run_both(log, DAYS, *JOBS["gap"])
    assert taken.units == [day(n) for n in range(3, DAYS + 1)]
    assert list(records(log / "st-two")) == [day(n) for n in range(1, DAYS + 1)]


def test_units_are_made_ready_by_their_process_where_it_is_ahead(tmp_path: Path) -> None:
    put_history(tmp_path, 9, 2, 60)
    with in_pieces(longest=32, ahead=1, patience=8, pace=3) as taken:
        run_both(tmp_path, 9, *JOBS["gap"])
    assert taken.units == [day(n) for n in range(3, 10)]
    assert taken.ready >= 3


def test_a_correction_that_redoes_a_range_is_taken_over_too(log: Path) -> None:
    flags = (*JOBS["gap"], *span(1, DAYS), "--jobs", "2", "--state", "st", "log", "out")
    with in_pieces(longest=32, ahead=1, patience=8) as taken:
        assert wincli_here("run", *flags, cwd=log).code == 0
        before = {label: unit["state"] for label, unit in records(log / "st").items()}
        assert wincli_here("run", *flags, "--redo", cwd=log).code == 0
    assert taken.units == 2 * [day(n) for n in range(3, DAYS + 1)]
    assert {label: unit["state"] for label, unit in records(log / "st").items()} == before
    assert {unit["reruns"] for unit in records(log / "st").values()} == {1}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (("-w", "gap(ts, 20m)", *KEYED, "--having", "window > 2"), "the job asks for the numbers of windows"),
        (("-w", "gap(ts, 20m)", *KEYED, "-a", "p=product(x)"), "product(..) depends on the number of rows before"),
        (("-w", "retain all", "--order-by", "ts", "-a", "n=count()"), "retain all keeps the rows of all units"),
        (
            ("-w", "count(9), partitioned, tupleCount(50)", *KEYED),
            "tumbling, count(9), partitioned, tupleCount(50) c",
        ),
        (("-w", "count(7)", *KEYED), "after 2 units tumbling, count(7) still depends on those before"),
    ],
)
def test_a_note_says_why_units_run_one_after_the_other(log: Path, job: tuple[str, ...], why: str) -> None:
    with in_pieces(longest=32, ahead=1, patience=2) as taken:
        _, two = run_both(log, DAYS, *job)
    assert any(note.startswith(f"units run one after the other: {why}") for note in two.notes), two.notes
    assert not taken.units


def test_a_unit_that_fails_in_a_piece_fails_where_it_is_run_and_nothing_after_it_is_done(log: Path) -> None:
    (log / "log" / f"dt={day(5)}" / "a.parquet").write_bytes(b"no parquet")
    with in_pieces(longest=32, ahead=1, patience=8) as taken:
        _, two = run_both(log, DAYS, *JOBS["gap"])
    assert two.code == 3
    assert taken.units == [day(3), day(4)]
    assert list(records(log / "st-two")) == [day(n) for n in range(1, 5)]


def test_a_unit_whose_input_changes_after_it_was_computed_is_run(log: Path) -> None:
    put_history(log / "other", DAYS, 3, 60)
    changed = log / "log" / f"dt={day(4)}" / "a.parquet"
    with in_pieces(longest=32, ahead=1, patience=8) as taken, pytest.MonkeyPatch.context() as patch:
        was = adoption.Pieces.end

        def end(self: adoption.Pieces, step: adoption.PieceStep, *told: object) -> None:
            was(self, step, *told)  # type: ignore[arg-type]
            if step.unit.label == day(3):
                changed.write_bytes((log / "other" / "log" / f"dt={day(4)}" / "a.parquet").read_bytes())

        patch.setattr(adoption.Pieces, "end", end)
        flags = (*JOBS["gap"], *span(1, DAYS))
        two = wincli_here("run", *flags, "--jobs", "2", "--state", "st-two", "log", "out-two", cwd=log)
    assert two.code == 0
    assert day(4) not in taken.units
    assert day(3) in taken.units
    one = wincli_here("run", *flags, "--state", "st-one", "log", "out-one", cwd=log)
    assert one.code == 0
    found = [
        {n: [s["counts"] for s in u["stages"]] for n, u in records(log / f"st-{w}").items()} for w in ("one", "two")
    ]
    assert found[0] == found[1]


# Elsewhere than in folders.


def in_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.select(sorted(table.column_names)).to_pylist()))


def state_files(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}
    assert len(found) > DAYS
    return found


def in_any_run(objects: dict[str, bytes]) -> list[tuple[str, bytes]]:
    """The tables of a state in a store, by names without the ids of runs."""
    found = [(re.sub("[0-9a-f]{12}", "ID", name), each) for name, each in objects.items() if name.endswith(".parquet")]
    assert len(found) > DAYS
    return sorted(found)


def test_results_in_a_delta_table_are_taken_over(log: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    with in_pieces() as taken:
        for jobs in ("1", "2"):
            flags = ("--output-format", "delta", *span(1, DAYS), "--jobs", jobs, "--state", f"st-{jobs}")
            ran = wincli_here("run", *JOBS["gap"], *flags, "log", f"out-{jobs}/day={{date}}", cwd=log)
            assert ran.code == 0, ran.err
    assert taken.units == [day(n) for n in range(3, DAYS + 1)]
    one, two = (deltalake.DeltaTable(str(log / f"out-{jobs}")) for jobs in ("1", "2"))
    assert one.version() == two.version()
    assert in_order(one.to_pyarrow_dataset().to_table()) == in_order(two.to_pyarrow_dataset().to_table())
    assert state_files(log / "st-1") == state_files(log / "st-2")


def test_results_in_an_iceberg_table_are_taken_over(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyiceberg")
    lake = Lake(log / "lake")
    lake.set_environment(monkeypatch)
    lake.make()
    with in_pieces() as taken:
        for jobs in ("1", "2"):
            flags = (*span(1, DAYS), "--jobs", jobs, "--state", f"st-{jobs}")
            ran = wincli_here("run", *JOBS["gap"], *flags, "log", f"iceberg://lake/logs.out{jobs}", cwd=log)
            assert ran.code == 0, ran.err
    assert taken.units == [day(n) for n in range(3, DAYS + 1)]
    assert in_order(lake.rows("out1")) == in_order(lake.rows("out2"))
    assert state_files(log / "st-1") == state_files(log / "st-2")


def test_with_a_state_in_a_store_units_are_taken_over(log: Path, s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    with in_pieces(pace=3) as taken:
        for way, jobs in (("one", "1"), ("two", "2")):
            flags = (*span(1, DAYS), "--jobs", jobs, "--state", f"{s3.uri}/st-{way}")
            ran = wincli_here("run", *JOBS["gap"], *flags, "log", f"out-{way}", cwd=log)
            assert ran.code == 0, ran.err
    assert taken.units == [day(n) for n in range(3, DAYS + 1)]
    assert tree(log / "out-one", "-one") == tree(log / "out-two", "-two")
    one, two = (
        {
            name.removeprefix(f"st-{way}/"): s3.client.get_object(Bucket=s3.name, Key=name)["Body"].read()
            for name in s3.names(f"st-{way}/")
        }
        for way in ("one", "two")
    )
    assert in_any_run(one) == in_any_run(two)
