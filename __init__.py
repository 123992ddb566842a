"""Exact stream windows over historical event logs: over a table, a stream, a Spark DataFrame, and files by ``wincli``.

Users import from here alone. Everything is loaded on first use, since the command line must start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .windowing.dataframes.task_errors import find_error, unwrap_errors
    from .windowing.dataframes.windows import windowed, windows
    from .windowing.drawings.draw import draw
    from .windowing.errors import (
        ClockError,
        ConfigError,
        DamagedError,
        DataError,
        InputError,
        MistakesError,
        OutputError,
        PartitionWarning,
        SparkError,
        SpecError,
        WincliError,
    )
    from .windowing.in_memory import aggregate
    from .windowing.operator import Operator, PaneInfo
    from .windowing.streaming.aggregate_stream import aggregate_stream
    from .writers.state.tables import read_state, write_state

    __version__: str

__all__ = [
    "ClockError",
    "ConfigError",
    "DamagedError",
    "DataError",
    "InputError",
    "MistakesError",
    "Operator",
    "OutputError",
    "PaneInfo",
    "PartitionWarning",
    "SparkError",
    "SpecError",
    "WincliError",
    "__version__",
    "aggregate",
    "aggregate_stream",
    "draw",
    "find_error",
    "read_state",
    "unwrap_errors",
    "windowed",
    "windows",
    "write_state",
]

_MODULES = {
    "aggregate": "windowing.in_memory",
    "aggregate_stream": "windowing.streaming.aggregate_stream",
    "find_error": "windowing.dataframes.task_errors",
    "unwrap_errors": "windowing.dataframes.task_errors",
    "read_state": "writers.state.tables",
    "write_state": "writers.state.tables",
    "Operator": "windowing.operator",
    "PaneInfo": "windowing.operator",
    "draw": "windowing.drawings.draw",
    "windowed": "windowing.dataframes.windows",
    "windows": "windowing.dataframes.windows",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("wincli")
    if name in __all__:
        return getattr(import_module(f".{_MODULES.get(name, 'windowing.errors')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
