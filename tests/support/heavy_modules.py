"""Modules that take long to import, which help, completion and errors do without."""

from __future__ import annotations

HEAVY = {"pyspark", "py4j", "numpy", "pyarrow", "numba", "pandas", "yaml", "rich"}
