"""A session of the Spark that the tests of DataFrames run on: classic, Spark Connect, or Sail."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

KIND = os.environ.get("WINCLI_SPARK", "classic")
"""``classic``, ``connect`` or ``sail``: one process has one of them."""


@contextmanager
def remote_session() -> Iterator[SparkSession]:
    """Start the Spark that `KIND` names, and stop it: the client of Sail before its server."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if KIND == "connect":
        spark = SparkSession.builder.remote("local[2]").getOrCreate()
        yield spark
        spark.stop()
        return
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer()
    server.start(background=True)
    _, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
    yield spark
    spark.stop()
    server.stop()
