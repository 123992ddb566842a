"""Aggregates of panes (semantics section 9): `bind` a call to a schema, then `compute` it over ranges of rows."""

from windowing.aggregates.bind import Bound, bind, columns_of
from windowing.aggregates.compute import Found, compute, split, warm
from windowing.aggregates.inputs import PaneFailed, PaneOverflow
from windowing.aggregates.partials import in_two_steps, is_mergeable
from windowing.aggregates.table import TABLE, Aggregate

__all__ = [
    "TABLE",
    "Aggregate",
    "Bound",
    "Found",
    "PaneFailed",
    "PaneOverflow",
    "bind",
    "columns_of",
    "compute",
    "in_two_steps",
    "is_mergeable",
    "split",
    "warm",
]
