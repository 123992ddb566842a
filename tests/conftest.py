"""Hypothesis profiles: the default, and ``--hypothesis-profile=deep``. Engines of DataFrames, Spark, the S3 server."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import support.strategies  # noqa: F401 - registers them
from support.dataframe_engines import ENGINES
from support.processes import MASTER
from support.s3_server import s3, s3_server  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from wincli.windowing.spark.boot import SparkExecutor

LONG = (
    *("test_kills.py", "test_session.py", "test_cli_signals.py", "test_dataframe_state.py", "test_working_folder.py"),
    *("test_ports.py", "test_dataframes.py", "test_results.py", "test_exchange.py", "test_small_jobs.py"),
    *("test_ranges.py", "test_installs.py", "test_dataframe_columns.py", "test_late.py"),
    *("test_chains.py", "test_cli_streams.py", "test_live_windows.py", "test_dataframe_matrix.py", "test_cli_java.py"),
    *("test_dataframe_errors.py", "test_cli_kinds.py", "test_cli_secrets.py", "test_cli_messages.py"),
    *("test_condition_cases.py", "test_fault_runs.py", "test_segments.py", "test_chained_results.py", "test_laws.py"),
    *("test_previous.py", "test_any_cut.py", "test_lags.py"),
    *("test_journal_kill.py", "test_late_data.py"),
    *("test_browser.py", "test_conditions.py", "test_incremental_runs.py"),
    *("test_sliding.py", "test_tumbling_laws.py", "test_jit.py", "test_sketches.py", "test_lake_matrix.py"),
    *("test_why_laws.py", "test_jobs.py", "test_preaggregate.py", "test_damage.py"),
    *("test_completion.py", "test_init.py", "test_quiet_nights.py", "test_lake_tables.py", "test_hostile_page.py"),
)
"""The files whose tests take long together, the longest first: those of the command line and Spark, then the others.

They begin first: else one process would run the last one alone.
"""


@pytest.fixture(autouse=True, scope="session")
def _unsynced_files() -> Iterator[None]:
    """Let no test wait for the disk (fsync), which is slow: none takes the power away, and a kill loses nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        yield


@pytest.fixture(scope="session")
def session() -> Iterator[SparkExecutor]:
    """One Spark for all tests of a process, started by the first that asks for it."""
    from wincli.conf.spark import spark_settings
    from wincli.windowing.spark.boot import start

    with start(MASTER, {}, spark_settings(MASTER, {})) as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    """Choose what runs the tests of DataFrames that go everywhere."""
    parser.addoption("--spark", choices=ENGINES, default="classic", help="what runs the tests of DataFrames")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let long files begin first, for the reason that `LONG` gives."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from modules and tests, and let it seldom look at the rest: a tenth of the time."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


def pytest_sessionfinish() -> None:
    """Let all go that was kept, or extension modules complain in the end that nobody has released their classes."""
    gc.unfreeze()
