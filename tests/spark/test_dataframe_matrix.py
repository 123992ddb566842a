"""Windows over a DataFrame are those of the table, floats to the bit: all kinds, keyed and not, on each engine.

    pytest tests/spark/test_dataframe_matrix.py                      classic Spark
    pytest tests/spark/test_dataframe_matrix.py --spark connect      Spark Connect
    pytest tests/spark/test_dataframe_matrix.py --spark sail         Sail, with a client that it knows

``-m "not nightly"`` leaves a sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import wincli
from support.dataframe_engines import CALLS, ROWS, dataframe_log, shuffled
from support.table_equality import check_windows

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore:all rows go through one partition"),
]
SAMPLE: dict[str, dict[str, Any]] = {
    "gap(t, 100)": {"group_by": "kind"},
    "time(600)": {},
    "when(x > 0.9) or count(20)": {"let": "y=x - lag(x)", "having": "n > 1"},
    "gap(t, 100) or delta(t, 900)": {"let": "kk=upper(k)", "key": "kk", "where": "x > 0.2"},
    "sliding, count(3), count(1)": {"emit": "entered", "aggregates": None},
    "timeInterval, intervalDuration(600)": {"event_time": "t"},
    "count(7), partitioned, partitionCount(5)": {"key": "k"},
    "punct()": {"marks": "is_end"},
}
MORE: dict[str, dict[str, Any]] = {
    "count(7)": {"distinct": "kind count 3"},
    "delta(t, 600)": {"distinct": "kk within 300", "let": "kk=upper(kind)"},
    'calendar(day, tz="Europe/Paris")': {},
    'cron("30 */6 * * *", "Europe/Paris")': {},
    "change(kind)": {},
    "punct(kind = 'c')": {},
    "while(x > 0.3) or time(900)": {},
    "from(x > 0.7, until=is_end)": {},
    "reaches(sum(x), 4) or change(kind)": {},
    "time(700)": {"closed": "right", "empty": "row"},
    "time(800)": {"empty": "mark"},
    "delta(t, previous(max(x), 300))": {},
    "sliding, time(1000), time(500)": {},
    "time(900) every 300": {},
    "sliding, delta(t, 700), count(2)": {"partial": True},
    "sliding, count(3), when(is_end)": {},
    "retain 3 with unique kind": {},
    "within 900 every 2 retain 2": {},
    "partition by kind retain 2 every 3": {},
    "timeInterval, intervalDuration(600), creationPeriod(200), discardAge(500)": {"event_time": "t"},
    "time(600), partitioned, partitionAge(1200)": {"key": "k", "emit_evicted": True},
}
UNKEYED = {"time(600)", "punct()", "when(x > 0.9) or count(20)"}
CASES = [
    pytest.param(
        *(window, keyed),
        id=f"{window}-{'keyed' if keyed else 'unkeyed'}",
        marks=() if window in SAMPLE and (keyed or window in UNKEYED) else pytest.mark.nightly,
    )
    for window, own in {**SAMPLE, **MORE}.items()
    for keyed in ([True] if "key" in own else [True, False])
]


@pytest.fixture(scope="module")
def log() -> pa.Table:
    return dataframe_log()


@pytest.mark.parametrize(("window", "keyed"), CASES)
def test_windows_are_those_of_the_table(spark: SparkSession, log: pa.Table, window: str, keyed: bool) -> None:
    own = {**SAMPLE, **MORE}[window]
    options: dict[str, Any] = {"key": "k" if keyed else [], "order_by": "t", "aggregates": CALLS, **own}
    found = wincli.windows(shuffled(spark, log, 1), window, arrival="id", **options).toArrow()
    whole = wincli.aggregate(log, window, **options)
    assert len(whole)
    check_windows(found, whole)


def test_equal_rows_give_equal_bits_without_an_arrival(spark: SparkSession, log: pa.Table) -> None:
    log = log.set_column(2, "t", pa.array((np.arange(ROWS) // 40) * 10**6).cast(pa.timestamp("us", tz="UTC")))
    log = log.append_column("zero", pa.array(np.where(np.arange(ROWS) % 2, 0.0, -0.0)))
    calls = ["n=count()", "sum(x)", "first(zero)", "ids=collect(id)"]
    results = [
        wincli.windows(shuffled(spark, log, seed), "count(9)", key="k", order_by="t", aggregates=calls).toArrow()
        for seed in (1, 2)
    ]
    check_windows(*results)
