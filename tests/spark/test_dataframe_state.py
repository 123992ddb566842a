"""Windows over DataFrames go on from a state: in parts, between the library and Spark, and refuse what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import wincli
from support.dataframe_engines import dataframe_log, sample, shuffled
from support.in_process import wincli_here
from support.table_equality import check_windows
from wincli.windowing.errors import ConfigError

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore:all rows go through one partition"),
]
CALLS = ["n=count()", "sum(x)", "first(t)", "ids=collect(id)"]
WINDOWS: dict[str, dict[str, Any]] = {
    "count(7)": {"distinct": "kind within 300"},
    "time(600)": {},
    "gap(t, 100) or delta(t, 900)": {"let": "kk=upper(k)", "key": "kk", "where": "x > 0.2"},
    "when(x > 0.9) or count(20)": {"let": "y=x - lag(x)", "aggregates": [*CALLS, "last(y)"]},
    "sliding, count(3), count(1)": {"emit": "entered", "aggregates": None},
    "timeInterval, intervalDuration(600)": {"event_time": "t"},
    "punct()": {"marks": "is_end"},
}


@pytest.fixture(scope="module")
def log() -> pa.Table:
    return dataframe_log()


@pytest.mark.parametrize("window", sample(WINDOWS, "gap(t, 100) or delta(t, 900)", "punct()"))
def test_parts_give_the_windows_of_all_rows(spark: SparkSession, log: pa.Table, window: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"key": "k", "order_by": "t", "aggregates": CALLS, **WINDOWS[window]}
    whole = wincli.windows(shuffled(spark, log, 1), window, **options).toArrow()
    state: Any = "new"
    results = []
    for place, part in enumerate([log[:200], log[200:230], log[230:]]):
        at_end: Any = "flush" if place == 2 else "hold"
        result, state = wincli.windows(shuffled(spark, part, 2), window, **options, state=state, at_end=at_end)
        results.append(result.toArrow())
        state.write.parquet(str(tmp_path / f"{place}"))
        state = spark.read.parquet(str(tmp_path / f"{place}"))
    check_windows(pa.concat_tables(results), whole)


@pytest.mark.parametrize("by_spark", [(True, False), (False, True)], ids=["to the library", "to Spark"])
def test_states_go_between_the_library_and_spark(
    spark: SparkSession, log: pa.Table, by_spark: tuple[bool, bool]
) -> None:
    job: dict[str, Any] = {"window": "time(600)", "key": "k", "order_by": "t", "aggregates": CALLS}
    whole = wincli.aggregate(log, **job)
    first, state = part_of(spark, log[:300], by_spark[0], job | {"state": "new"})
    second, _ = part_of(spark, log[300:], by_spark[1], job | {"state": state, "at_end": "flush"})
    found = pa.concat_tables([each.cast(whole.schema) for each in (first, second)])
    check_windows(*(each.drop_columns(["_pos"]) for each in (found, whole)))


def part_of(spark: SparkSession, log: pa.Table, by_spark: bool, job: dict[str, Any]) -> list[pa.Table]:
    if not by_spark:
        return list(wincli.aggregate(log, **job))
    prior = job["state"] if isinstance(job["state"], str) else spark.createDataFrame(job["state"])
    return [each.toArrow() for each in wincli.windows(shuffled(spark, log, 1), **job | {"state": prior})]


def test_a_state_of_the_command_line_goes_on_over_a_dataframe(
    spark: SparkSession, log: pa.Table, tmp_path: Path
) -> None:
    job = ("run", "-w", "time(600)", "-k", "k", "--order-by", "t", "--agg", "sum(x)", "--state", "st")
    for place, part in (("1", log[:300]), ("2", log[300:])):
        pq.write_table(part, tmp_path / f"{place}.parquet")
    assert wincli_here(*job, "1.parquet", "one", cwd=tmp_path).code == 0
    state = spark.createDataFrame(wincli.read_state(str(tmp_path / "st")))
    assert wincli_here(*job, "2.parquet", "two", cwd=tmp_path).code == 0
    two = ds.dataset(tmp_path / "two", exclude_invalid_files=True).to_table().drop_columns(["_pos"])
    options: dict[str, Any] = {"key": "k", "order_by": "t", "aggregates": "sum(x)"}
    result, after = wincli.windows(shuffled(spark, log[300:], 1), "time(600)", **options, state=state)
    check_windows(result.toArrow().drop_columns(["_pos"]), two)
    wincli.write_state(after.toArrow(), str(tmp_path / "made"))
    left, wanted = (wincli.read_state(str(tmp_path / name)) for name in ("made", "st"))
    one, other = (each["_rows"].combine_chunks().flatten().field("x") for each in (left, wanted))
    assert one.equals(other)


def test_rejected_rows_are_beside_windows_and_late_rows_among_them(spark: SparkSession, log: pa.Table) -> None:
    job: dict[str, Any] = {"window": "count(7)", "key": "k", "order_by": "t", "rejected": "column"}
    _, state = wincli.windows(shuffled(spark, log[300:], 1), **job, state="new")
    result, after = wincli.windows(shuffled(spark, log[290:], 1), **job, state=state)
    reasons = result.where("_rejected is not null").select("_rejected.reason", "_rejected.row.id").toArrow()
    late = {row["id"] for row in reasons.to_pylist() if row["reason"] == "late"}
    assert late == set(log["id"].to_pylist()[290:-1]) - {
        row["id"] for row in log.to_pylist() if row["t"] == log["t"][-1]
    }
    assert after.where("_part >= 0").count() == 12


def test_a_state_of_another_job_is_refused(spark: SparkSession, log: pa.Table) -> None:
    df = shuffled(spark, log, 1)
    _, state = wincli.windows(df, "count(7)", key="k", order_by="t", aggregates="count()", state="new")
    with pytest.raises(ConfigError, match=r"the state is of another job: it does not hold _rows\.x"):
        wincli.windows(df, "count(7)", key="k", order_by="t", aggregates="sum(x)", state=state)
    with pytest.raises(ConfigError, match="the state has no column '_part'"):
        wincli.windows(df, "count(7)", key="k", order_by="t", state=df)
    for key in ("k", []):
        _, state = wincli.windows(df, "count(7)", key=key, order_by="t", state="new")
        result, _ = wincli.windows(df, "count(8)", key=key, order_by="t", state=state)
        with pytest.raises(ConfigError, match=r"its window is tumbling, count\(7\), not tumbling, count\(8\)"):
            count(result)


@wincli.unwrap_errors()
def count(df: DataFrame) -> int:
    return df.count()


def test_columns_of_wider_and_narrower_types_go_on_from_a_state(spark: SparkSession) -> None:
    options: dict[str, Any] = {"key": "k", "order_by": "t", "aggregates": ["n=count()", "s=sum(x)", "l=collect(x)"]}
    parts = [
        "SELECT id AS t, cast(id % 2 AS int) AS k, cast(id AS int) AS x FROM range(0, 7)",
        "SELECT cast(id AS double) AS t, id % 2 AS k, id + 0.5D AS x FROM range(8, 12)",
        "SELECT cast(id AS int) AS t, cast(id % 2 AS smallint) AS k, cast(id AS int) AS x FROM range(13, 30, 4)",
    ]
    state: Any = "new"
    results = []
    for place, query in enumerate(parts):
        at_end: Any = "flush" if place == len(parts) - 1 else "hold"
        result, state = wincli.windows(spark.sql(query), "gap(t, 3)", **options, state=state, at_end=at_end)
        results += result.select("k", "n", "s", "l").collect()
    whole = wincli.windows(spark.sql(" UNION ALL ".join(parts)), "gap(t, 3)", **options)
    found = sorted(map(tuple, results))
    assert found == sorted(map(tuple, whole.select("k", "n", "s", "l").collect())) != []
    text = "column 'x' is double in the state and string in the rows"
    with pytest.raises(ConfigError, match=text):
        wincli.windows(spark.sql("SELECT 1D AS t, 1L AS k, 'a' AS x"), "gap(t, 3)", **options, state=state)
