"""Aggregates of panes: a call bound to a schema, then computed over ranges of rows, exactly."""

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
