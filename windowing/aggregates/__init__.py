"""Aggregates of panes (semantics section 9): `bind` a call to a schema, then `compute` it over ranges of rows.

Imports `windowing.columns`, `windowing.errors`, `windowing.language`, `windowing.panes`, `windowing.support`. Imported
by `windowing.arguments`, `windowing.dataframes`, `windowing.emit`, `windowing.engine`, `windowing.kinds`,
`windowing.planning`.
"""

from .compute import Results, compute, in_two_phases, is_mergeable, split, warm
from .inputs import PaneFailed, PaneOverflow
from .table import TABLE, Aggregate, Bound, bind, columns_of

__all__ = [
    "TABLE",
    "Aggregate",
    "Bound",
    "PaneFailed",
    "PaneOverflow",
    "Results",
    "bind",
    "columns_of",
    "compute",
    "in_two_phases",
    "is_mergeable",
    "split",
    "warm",
]
