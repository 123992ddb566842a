"""A case as one query of SQL, for engines with window functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wincli.conformance.kit import Answer, CannotSayError, Case

from .joins import joined
from .query import Dialect, Query
from .windows import of_window

Execute = Callable[[Case, str], tuple[Sequence[str], Sequence[Sequence[Any]]]]
"""Runs a query over the tables of a case: the names of its columns, and its rows."""


def query_of(case: Case, dialect: Dialect) -> tuple[str, Query]:
    """The last part of the query of a case. Raises `CannotSayError`."""
    query = Query(case, dialect)
    window = query.asked.window
    if "join" in case.spec:
        return joined(query), query
    if case.spec.get("emit") in ("entered", "left"):
        raise CannotSayError("rows that enter and leave")
    query.base()
    return of_window(query, window), query


def run(case: Case, dialect: Dialect, execute: Execute) -> Answer:
    """Ask an engine. Raises `CannotSayError`."""
    last, query = query_of(case, dialect)
    columns, found = execute(case, query.text(last))
    kept = [at for at, name in enumerate(columns) if name in case.columns]
    return Answer([columns[at] for at in kept], [[row[at] for at in kept] for row in found], query.note)
