"""Results on disk, compared by Spark."""

from __future__ import annotations

from pathlib import Path

import chispa
from pyspark.sql import SparkSession

from wincli.windowing.spark.boot import SparkExecutor


def check_same_rows(session: SparkExecutor, one: Path, other: Path) -> None:
    """Assert that the parts in two folders hold the same rows, in any order."""
    sql = SparkSession(session.context)
    try:
        rows, others = (sql.read.parquet(f"{folder}/part-*.parquet") for folder in (one, other))
        chispa.assert_df_equality(rows, others, ignore_row_order=True)
    finally:
        SparkSession._instantiatedSession = None
