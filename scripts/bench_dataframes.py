"""The contest of `scripts/bench --contest dataframes`: windows over a DataFrame, and what Spark itself takes."""

from __future__ import annotations

from pathlib import Path

from bench_contests import Entrant, log_of, script

SPARK = """
import sys
from pyspark.sql import SparkSession, functions as F
import wincli
data, out = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.driver.memory", "12g")
         .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
rows = spark.read.parquet(data).select("user", "ts", "amount")
"""

WINDOWS = (
    SPARK
    + """
windows = wincli.windows(rows, "delta(ts, 60)", key="user", order_by="ts",
                         aggregates=["count()", "sum(amount)", "max(amount)"])
windows.write.parquet(out, mode="overwrite")
"""
)

SAIL = """
import sys
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession
import wincli
data, out = sys.argv[1:]
server = SparkConnectServer()
server.start(background=True)
spark = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
rows = spark.read.parquet(data).select("user", "ts", "amount")
windows = wincli.windows(rows, "delta(ts, 60)", key="user", order_by="ts",
                         aggregates=["count()", "sum(amount)", "max(amount)"])
windows.write.parquet(out, mode="overwrite")
spark.stop()  # before its server, or it hangs
server.stop()
"""
SAIL_PYTHON = Path(__file__).resolve().parent.parent / ".venv-sail" / "bin" / "python"

SORT = (
    SPARK
    + 'rows.repartition("user").sortWithinPartitions("user", "ts").write.format("noop").mode("overwrite").save()\n'
)

SESSIONS = (
    SPARK
    + """
windows = rows.groupBy("user", F.session_window("ts", "60 seconds")).agg(
    F.count("*").alias("count"), F.sum("amount").alias("sum"), F.max("amount").alias("max"))
windows.write.parquet(out, mode="overwrite")
"""
)


def contests(millions: int) -> dict[str, tuple[Entrant, ...]]:
    """Return the contest over a log of ``millions`` million rows. The others are compared with the first entrant."""
    events = log_of(millions)
    return {
        "dataframes": (
            Entrant("wincli.windows, delta", *events, script(WINDOWS)),
            Entrant("repartition and sort, written nowhere", *events, script(SORT)),
            Entrant("session_window", *events, script(SESSIONS)),
            *([Entrant("wincli.windows on Sail", *events, _on_sail)] if SAIL_PYTHON.exists() else []),
        )
    }


def _on_sail(data: Path, out: Path) -> list[str]:
    """Return the command line on Sail, in the environment that scripts/test makes for it."""
    # PySpark's client looks for a whole Spark, which it does not need, if it is not said where there is one.
    return ["env", "-u", "PYSPARK_PYTHON", "SPARK_HOME=/", str(SAIL_PYTHON), "-c", SAIL, str(data), str(out)]
