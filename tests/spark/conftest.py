"""Sessions of DataFrames, each started by the first test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.dataframe_engines import remote_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def remote(request: pytest.FixtureRequest) -> Iterator[SparkSession | None]:
    """What ``--spark`` names, if that is behind a server."""
    engine = request.config.getoption("--spark")
    if engine == "classic":
        yield None
        return
    with remote_session(engine) as found:
        yield found


@pytest.fixture(scope="module")
def spark(remote: SparkSession | None, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session of ``--spark``: for classic Spark that of all tests."""
    if remote is not None:
        yield remote
        return
    from pyspark.sql import SparkSession

    classic = SparkSession(request.getfixturevalue("session").context)
    classic.conf.set("spark.sql.shuffle.partitions", "3")
    yield classic
    SparkSession._instantiatedSession = None
