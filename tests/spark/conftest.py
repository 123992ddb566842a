"""One Spark for the whole run of the tests, started by the first that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from wincli.conf.spark import spark_settings
from wincli.windowing.spark.boot import SparkExecutor, start

MASTER = "local[2]"


@pytest.fixture(scope="session")
def session() -> Iterator[SparkExecutor]:
    with start(MASTER, {}, spark_settings(MASTER, {})) as running:
        yield running


@pytest.fixture(scope="module")
def spark(session: SparkExecutor) -> Iterator[SparkSession]:
    yield SparkSession(session.context)
    SparkSession._instantiatedSession = None
