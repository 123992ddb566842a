"""Hypothesis profiles for all tests: the default, and ``--hypothesis-profile=deep``."""

import tests.strategies  # noqa: F401 - registers them
