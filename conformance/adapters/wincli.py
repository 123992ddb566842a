"""wincli answers a case: `wincli.aggregate`, in this process."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import wincli
from wincli.conformance.kit import Answer, Case, Rows, plain

_NAMES = {"agg": "aggregates"}
"""What `wincli.aggregate` calls a key of job files."""


def answer(case: Case) -> Answer:
    """The rows of the answer in their order, and the rejected rows: their places, from 0, and why."""
    given = case.given.table()
    options: dict[str, Any] = {_NAMES.get(key, key): value for key, value in case.spec.items()}
    options["rejected"] = "column"
    if case.marks:
        options["marks"] = list(case.marks)
    if "windows" in options:
        options["windows"] = {options["windows"]: case.tables[options["windows"].split()[0]].table()}
    if case.tables and "join" in options:
        options["join"] = {options["join"]: case.tables[options["join"].split()[0]].table()}
    cuts = list(accumulate(case.units, initial=0)) if case.units else [0, given.num_rows]
    state: Any = "new"
    results = []
    for number, (low, high) in enumerate(pairwise(cuts)):
        if not case.units:
            results.append(wincli.aggregate(given, **options))
            continue
        is_last = number == len(case.units) - 1
        at_end = case.spec.get("at_end", "flush") if is_last else "hold"
        found, state = wincli.aggregate(given[low:high], **{**options, "state": state, "at_end": at_end})
        results.append(found)
    rows, rejects = [], []
    for result in results:
        for row in result.to_pylist():
            refused = row.pop("_rejected", None)
            if refused is not None:
                place = place_of(case.given, refused["row"])
                rejects += [] if place is None else [(place, refused["reason"])]
            elif row.get("_mark") != "only" or "_mark" in case.columns:
                rows.append([plain(row[name]) for name in case.columns])
    return Answer(case.columns, rows, rejects=rejects)


def place_of(given: Rows, row: dict[str, Any]) -> int | None:
    """The place of a rejected row among those given: the first that has its values; None: it is of another table."""
    rows = given.table().to_pylist()
    return next((at for at, each in enumerate(rows) if repr(each) == repr({name: row[name] for name in each})), None)
