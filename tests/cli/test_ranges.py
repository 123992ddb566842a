"""Ranges of days onto a state on Spark: through all phases, and that a correction ends where it has to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from support.day_results import as_one, day, in_order, records, span
from support.processes import Ran, manifest
from support.two_stage_log import DAYS, JOB, SMALL, write_log

Run = Callable[..., Ran]


def change(path: Path) -> None:
    """Give the last rows of a day other values."""
    log = pq.read_table(path)
    x = log["x"].to_numpy().copy()
    x[-25:] += 1.0
    pq.write_table(log.set_column(2, "x", pa.array(x)), path, row_group_size=90)


def test_backfill_gives_the_result_of_one_run_and_a_correction_ends_where_nothing_changes(
    run: Run, spark_run: Run, tmp_path: Path
) -> None:
    write_log(tmp_path / "log")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    first = spark_run("job.yaml", "--state", "st", *SMALL, *span(1, DAYS))
    assert first.code == 0, first.err
    assert len(manifest(tmp_path / "visits" / f"dt={day(1)}")["parts"]) > 1
    seen = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/dt=*/*") if path.parts[-3] != "log"}
    change(tmp_path / "log" / f"dt={day(2)}" / "a.parquet")
    ran = spark_run("job.yaml", "--state", "st", *SMALL, *span(2, 2))
    assert ran.notes[-1] == f"the correction reached {day(3)}; {day(4)} stays as it was"
    touched = {path.parts[-2] for path in seen if path.stat().st_mtime_ns != seen[path]}
    assert touched == {f"dt={day(n)}" for n in (2, 3)}

    whole = {
        **JOB,
        "input": "log/*",
        "output": "whole",
        "stages": [{**JOB["stages"][0], "output": "one"}, JOB["stages"][1]],
    }
    (tmp_path / "whole.yaml").write_text(yaml.safe_dump(whole))
    assert run("whole.yaml", "--state", "st-one").code == 0
    units = list(records(tmp_path / "st").values())
    for some, one in (("visits", "one"), ("out", "whole")):
        found = as_one(in_order([tmp_path / some / f"dt={day(n)}" for n in range(1, DAYS + 1)]), units)
        assert found.num_rows > 200
        assert found.equals(in_order([tmp_path / one]))
    held = [stage["counts"]["held"] for stage in units[-1]["stages"]]
    assert held == [manifest(tmp_path / name)["counts"]["held"] for name in ("one", "whole")]


def test_units_at_the_same_time_give_the_parts_of_one_after_the_other(run: Run, spark_run: Run, tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    beside = {**JOB, "output": "beside", "stages": [{**JOB["stages"][0], "output": "own"}, JOB["stages"][1]]}
    for name, job in (("job", JOB), ("beside", beside)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(job))
    assert run("job.yaml", *SMALL, *span(1, 2)).code == 0
    ran = spark_run("beside.yaml", *SMALL, *span(1, 2), "--jobs", "2")
    assert ran.code == 0, ran.err
    for one, other in (("visits", "own"), ("out", "beside")):
        found = {path.relative_to(tmp_path / one): path.read_bytes() for path in (tmp_path / one).rglob("part-*")}
        assert len(found) > 2
        assert found == {
            path.relative_to(tmp_path / other): path.read_bytes() for path in (tmp_path / other).rglob("part-*")
        }
