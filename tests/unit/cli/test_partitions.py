"""``--partition-by`` from the command line: the same rows as without it, in every mode of a run."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyarrow import dataset as ds

from support.day_results import day, put_day, span
from support.in_process import done
from support.processes import manifest

HOURS = 96
WINDOW = ("--window", "count(5)", "--key", "user", "--group-by", "day", "--agg", "total=sum(x)", "--agg", "n=count()")


def log(hours: range = range(HOURS)) -> pa.Table:
    first = dt.datetime(2026, 11, 1)
    times = [first + dt.timedelta(hours=hour) for hour in hours]
    users = ["007", "b/c", "é", ".."]
    return pa.table({
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "day": [time.date() for time in times],
        "user": [users[hour % 4] if hour % 13 else None for hour in hours],
        "x": [float(hour) for hour in hours],
    })  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    pq.write_table(log(), tmp_path / "in" / "a.parquet", row_group_size=10)
    return tmp_path


def rows(folder: Path, **kinds: pa.DataType) -> list[str]:
    """Return the rows of a result as texts, in one order, its columns by name."""
    hive = ds.partitioning(pa.schema(list(kinds.items())), flavor="hive") if kinds else None
    table = ds.dataset(folder, partitioning=hive, exclude_invalid_files=False).to_table()
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist())


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("part-*"))


def test_the_rows_are_those_of_a_result_without_partitions_however_the_work_is_cut(place: Path) -> None:
    done(place, "run", *WINDOW, "in", "whole")
    ran = done(place, "run", *WINDOW, "--partition-by", "day,user", "in", "out")
    assert "8 rejected (null_key 8)" in ran.err
    assert "day=2026-11-02/user=b%2Fc/part-00000.parquet" in files(place / "out")
    told = manifest(place / "out")
    assert sorted(part["name"] for part in told["parts"]) == files(place / "out")
    assert {"user", "day"} <= {column["name"] for column in told["schema"]}
    assert told["job"]["stages"][0]["partition_by"] == ["day", "user"]
    small = ("--slice-size", "1KiB", "--split-size", "1KiB", "--max-open-files", "1")
    done(place, "run", *WINDOW, *small, "--partition-by", "day,user", "in", "small")
    for out in ("out", "small"):
        assert rows(place / out, day=pa.date32(), user=pa.string()) == rows(place / "whole")


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "orc"])
def test_a_next_run_reads_the_same_stream_with_the_same_types(place: Path, form: str) -> None:
    """The key ``007`` stays a text, and rows come in emission order, whatever folders they lie in."""
    more = ("--output-format", form)
    collected = ("--agg", "users=collect(user)", "--agg", "days=collect(day)", "--agg", "t=sum(total)")
    done(place, "run", *WINDOW, *more, "in", "whole")
    done(place, "run", *WINDOW, *more, "--partition-by", "user,day", "in", "out")
    for name in ("whole", "out"):
        done(place, "run", "--window", "count(3)", *collected, name, f"of-{name}")
    assert rows(place / "of-out") == rows(place / "of-whole")
    assert len(rows(place / "of-out")) > 9


def test_types_that_only_a_manifest_knows_come_back(place: Path) -> None:
    by = "first_at,mean,user,bits"
    aggregates = ("--agg", "first_at=first(ts)", "--agg", "mean=mean(x)", "--agg", "bits=sum(x)", "--agg", "n=count()")
    for name, more in (("out", ("--partition-by", by)), ("whole", ())):
        done(place, "run", "--window", "count(5)", "--key", "user", *aggregates, *more, "in", name)
        done(place, "run", "--window", "count(1)", "--emit", "rows", name, f"of-{name}")
    found, expected = (pq.read_table(place / f"of-{name}", partitioning=None) for name in ("out", "whole"))
    for name in by.split(","):
        assert found[name].combine_chunks().equals(expected[name].combine_chunks()), name


def test_expressions_over_the_result_name_folders(place: Path) -> None:
    """Their values are columns for the next run, and what they read stays in the files."""
    slot = "slot=case when total > 300 then 'high, very' else 'low' end"
    by = f"hour=date_trunc('hour', at), day=cast(at as date), {slot},user"
    made = ("--window", "count(5)", "--key", "user", "--agg", "at=first(ts)", "--agg", "total=sum(x)")
    done(place, "run", *made, "--partition-by", by, "in", "out")
    names = {name.rpartition("/")[0] for name in files(place / "out")}
    assert "hour=2026-11-01 01%3A00%3A00/day=2026-11-01/slot=low/user=b%2Fc" in names
    done(place, "run", "--window", "count(1)", "--emit", "rows", "out", "next")
    found = pq.read_table(place / "next")
    assert found.num_rows == len(rows(place / "out"))
    assert found["slot"].to_pylist() == ["high, very" if total > 300 else "low" for total in found["total"].to_pylist()]
    assert found["hour"].to_pylist() == found["at"].to_pylist()
    assert found["day"].to_pylist() == [at.date() for at in found["at"].to_pylist()]


def test_an_expression_that_fails_for_a_row_of_the_result_ends_the_run(place: Path) -> None:
    ran = done(place, "run", *WINDOW, "--partition-by", "n_of_user=cast(user as int)", "in", "out", code=4)
    assert "fails for a row of the result: '..' is no INTEGER; use TRY_CAST" in ran.err
    assert not (place / "out").exists()
    done(place, "run", *WINDOW, "--partition-by", "n_of_user=try_cast(user as int)", "in", "out")
    assert {name.partition("/")[0] for name in files(place / "out")} == {
        "n_of_user=7", "n_of_user=__HIVE_DEFAULT_PARTITION__",
    }  # fmt: skip


def test_stages_of_a_job_have_partitions_of_their_own(place: Path) -> None:
    first = {"window": "count(5)", "key": "user", "group_by": "day", "agg": "total=sum(x)", "output": "mid"}
    last = {"window": "count(3)", "agg": ["total=sum(total)", "who=first(user)"]}
    for name, stages in {
        "plain": [{**first, "output": "mid0"}, last],
        "cut": [{**first, "partition_by": "day"}, {**last, "partition_by": ["who"], "output_format": "csv"}],
    }.items():
        job = {"input": "in", "output": f"out-{name}", "stages": stages}
        (place / f"{name}.yaml").write_text(yaml.safe_dump(job))
        done(place, "run", f"{name}.yaml")
    assert rows(place / "mid", day=pa.date32()) == rows(place / "mid0")
    assert all(name.startswith("day=2026-11-0") for name in files(place / "mid"))
    assert {name.partition("/")[0] for name in files(place / "out-cut")} == {
        f"who={who}" for who in ("007", "b%2Fc", "é", "..")
    }


def test_mark_only_rows_stand_with_null_and_mark_the_next_stage(place: Path) -> None:
    window = ("--window", "punct()", "--key", "user", "--agg", "n=count()")
    pq.write_table(log(range(0)), place / "in" / "b.parquet")
    second = ("--window", "punct()", "--agg", "n=sum(n)", "--agg", "users=collect(user)")
    done(place, "run", *window, "in", "whole")
    done(place, "run", *window, "--partition-by", "user", "in", "out")
    assert "user=__HIVE_DEFAULT_PARTITION__/part-00000.parquet" in files(place / "out")
    for name in ("whole", "out"):
        done(place, "run", *second, name, f"of-{name}")
    assert rows(place / "of-out") == rows(place / "of-whole")
    done(place, "run", *window, "--partition-by", "user", "--plain", "in", "plain")
    assert not any("__HIVE" in name for name in files(place / "plain"))


def test_units_of_a_state_have_folders_and_a_lost_file_is_written_again(place: Path) -> None:
    for n in (1, 2, 3):
        put_day(place, n, log(range(24 * n - 24, 24 * n)))
    job = ("--window", "gap(ts, 7h)", "--key", "user", "--agg", "n=count()", "--agg", "closed=last(day)", *span(1, 3))
    done(place, "run", *job, "--state", "st0", "log/dt={date}", "whole/{date}")
    command = (*job, "--state", "st", "--partition-by", "closed,user", "log/dt={date}", "out/{date}")
    done(place, "run", *command)
    kinds = {"closed": pa.date32(), "user": pa.string()}
    lost = next((place / "out" / day(2)).rglob("part-*"))
    lost.unlink()
    assert lost.name in done(place, "status", "st").out
    done(place, "run", *command)
    for n in (1, 2, 3):
        assert rows(place / "out" / day(n), **kinds) == rows(place / "whole" / day(n))


MISTAKES = {
    "usr": "--partition-by names 'usr', which the result does not have",
    "d=totl + 1": "totl",
    "day=total": "the result has a column 'day'",
    "d=lag(total)": "a result has no rows before",
    "d=total +": "an expression cannot end with '+' here",
    "'day": "has a quote that is not closed",
    "_mark": "readers pass over folders whose name begins with _",
}


def test_mistakes_are_one_line_and_nothing_is_written(place: Path) -> None:
    for given, message in MISTAKES.items():
        ran = done(place, "run", *WINDOW, "--partition-by", given, "in", "out", code=2)
        assert (message in ran.err, "Traceback" in ran.err) == (True, False), ran.err
    assert "--max-open-files" in done(place, "run", *WINDOW, "--max-open-files", "0", "in", "out", code=2).err
    assert not (place / "out").exists()


def test_a_result_without_rows_is_read_as_one(place: Path) -> None:
    never = ("--window", "count(1000)", "--key", "user", "--agg", "n=count()", "--at-end", "drop")
    done(place, "run", *never, "--partition-by", "user", "in", "out")
    assert files(place / "out") == ["user=__HIVE_DEFAULT_PARTITION__/part-00000.parquet"]
    assert "0 rows in" in done(place, "run", "--window", "count(2)", "--key", "user", "out", "next").err
