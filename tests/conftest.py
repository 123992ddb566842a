"""Hypothesis profiles: the default, and ``--hypothesis-profile=deep``. The engines of DataFrames, the S3 server."""

import pytest

import support.strategies  # noqa: F401 - registers them
from support.dataframe_engines import ENGINES
from support.s3_server import s3, s3_server  # noqa: F401 - fixtures


def pytest_addoption(parser: pytest.Parser) -> None:
    """Choose what runs the tests of DataFrames that go everywhere."""
    parser.addoption("--spark", choices=ENGINES, default="classic", help="what runs the tests of DataFrames")
