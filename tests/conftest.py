"""Hypothesis profiles for all tests: the default, and ``--hypothesis-profile=deep``."""

import support.strategies  # noqa: F401 - registers them
