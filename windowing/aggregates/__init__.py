"""Aggregates of panes (semantics section 9): `bind` a call to a schema, then `compute` it over ranges of rows."""

from .bind import Bound, bind, columns_of
from .compute import Found, compute, split, warm
from .inputs import PaneFailed, PaneOverflow
from .partials import in_two_steps, is_mergeable
from .table import TABLE, Aggregate

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
