"""Hypothesis profiles for all tests: the default, and ``--hypothesis-profile=deep``. The engines of DataFrames."""

import pytest

import support.strategies  # noqa: F401 - registers them
from support.dataframe_engines import ENGINES


def pytest_addoption(parser: pytest.Parser) -> None:
    """Choose what runs the tests of DataFrames that go everywhere."""
    parser.addoption("--spark", choices=ENGINES, default="classic", help="what runs the tests of DataFrames")
