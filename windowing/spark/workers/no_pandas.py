"""Arrow without pandas: 0.4 s less for the driver, and as much for the workers, where pandas is installed.

Arrow imports pandas when it is first given a list, to know its objects if they come up. Where no code of the user's
runs they cannot.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

NO_PANDAS = "WINCLI_WORKER_BARE"
"""Environment variable: where it is set, workers go without pandas."""


class _NoPandas:
    """A finder that says that there is no pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)
        return None


def block_pandas() -> None:
    """Let Arrow look for pandas now, and find none. Whoever else asks for pandas gets it, before and after."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, and not before Java has been started

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
