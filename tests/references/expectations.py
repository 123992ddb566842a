"""What a job demands, row at a time (semantics section 14): the numbers of a run, and SQL's three-valued conditions.

A condition is a nested tuple: ``("column", name)``, ``("value", 3)``, or a sign and its operands.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, TypeAlias

Node: TypeAlias = tuple[Any, ...]
Row: TypeAlias = dict[str, Any]

COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne
}  # fmt: skip


class FailsError(Exception):
    """An expression that has no value for a row."""


@dataclass(frozen=True, slots=True)
class Job:
    """A window of ``size`` rows a user, in the order of ``ts``, with the largest ``x`` of each.

    ``where``, ``having``: conditions of rows and of results; None: all.
    ``at_end``: what becomes of open windows.
    """

    size: int
    where: Node | None
    having: Node | None
    at_end: str


def text_of(node: Node) -> str:
    """The condition as SQL."""
    sign, *rest = node
    if sign in ("column", "value"):
        return str(rest[0])
    if sign in ("all", "any"):
        return f"{sign}({text_of(rest[0])})"
    if sign == "is null":
        return f"({text_of(rest[0])} is null)"
    if sign == "not":
        return f"(not {text_of(rest[0])})"
    return f"({text_of(rest[0])} {sign} {text_of(rest[1])})"


def value_of(node: Node, row: Row) -> Any:
    """Compute a condition for one row; None is SQL's null. Raises `FailsError`."""
    sign, *rest = node
    if sign == "column":
        return row[rest[0]]
    if sign == "value":
        return rest[0]
    return _combined(sign, [value_of(each, row) for each in rest])  # both sides, whatever the first says


def _combined(sign: str, found: list[Any]) -> Any:
    if sign == "is null":
        return found[0] is None
    if sign == "not":
        return None if found[0] is None else not found[0]
    if sign in ("and", "or"):
        decisive = sign == "or"
        return decisive if decisive in found else (None if None in found else not decisive)
    if None in found:
        return None
    return _modulo(*found) if sign == "%" else COMPARISONS[sign](*found)


def _modulo(left: int, right: int) -> int:
    if right == 0:
        raise FailsError
    return abs(left) % abs(right) * (-1 if left < 0 else 1)  # with the sign of the first


def is_true(node: Node | None, row: Row) -> bool:
    """Whether a condition is true: not where it is null, nor where it fails. None is true."""
    try:
        return node is None or value_of(node, row) is True
    except FailsError:
        return False


def fails(node: Node | None, row: Row) -> bool:
    """Whether a condition has no value for a row."""
    try:
        if node is not None:
            value_of(node, row)
    except FailsError:
        return True
    return False


def columns_of(node: Node) -> set[str]:
    if node[0] == "column":
        return {node[1]}
    return set().union(*(columns_of(each) for each in node[1:] if isinstance(each, tuple)))


@dataclass(slots=True)
class Outcome:
    """What a run comes to: its numbers, and the rows of its result."""

    numbers: dict[str, Any]
    results: list[Row]


def run(job: Job, rows: list[Row], carried: dict[str, list[Row]] | None = None, last: Any = None) -> Outcome:
    """Run a job over rows, as they arrive.

    ``carried``: the rows of open windows by user, to which those that stay open are written.
    ``last``: the last order value of the runs before.
    """
    counts = dict.fromkeys(("rows_in", "rows_filtered", "rows_rejected", "late", "windows", "panes_hidden", "held"), 0)
    open_rows: dict[str, list[Row]] = defaultdict(list) if carried is None else carried
    kept: list[Row] = []
    for row in rows:
        counts["rows_in"] += 1
        if fails(job.where, row):
            counts["rows_rejected"] += 1
        elif not is_true(job.where, row):
            counts["rows_filtered"] += 1
        elif row["user"] is None or row["ts"] is None:
            counts["rows_rejected"] += 1
        elif last is not None and row["ts"] < last:
            counts["rows_rejected"] += 1
            counts["late"] += 1
        else:
            kept.append(row)
    panes = []
    for row in sorted(kept, key=lambda row: row["ts"]):
        pane = open_rows.setdefault(row["user"], [])
        pane.append(row)
        if len(pane) == job.size:
            panes.append(open_rows.pop(row["user"]))
    if job.at_end == "flush":
        panes += [pane for pane in open_rows.values() if pane]
    elif job.at_end == "hold":
        counts["held"] = sum(map(len, open_rows.values()))
    results = [_result(pane) for pane in panes]
    shown = [row for row in results if is_true(job.having, row)]
    counts["windows"], counts["panes_hidden"] = len(shown), len(results) - len(shown)
    times = [row["ts"] for row in kept]
    numbers: Row = {**counts, "first_at": min(times, default=None), "last_at": max(times, default=None)}
    for share, number in (("rejected_share", "rows_rejected"), ("late_share", "late")):
        numbers[share] = counts[number] / counts["rows_in"] if rows else 0.0
    return Outcome(numbers, shown)


def _result(pane: list[Row]) -> Row:
    values = [row["x"] for row in pane if row["x"] is not None]
    return {"user": pane[0]["user"], "n": len(pane), "top": max(values, default=None)}


def judged(expectation: Node, outcome: Outcome) -> tuple[bool, Row]:
    """Whether an expectation holds, and the numbers that decide it."""
    if expectation[0] not in ("all", "any"):
        return is_true(expectation, outcome.numbers), {name: outcome.numbers[name] for name in columns_of(expectation)}
    true = [is_true(expectation[1], row) for row in outcome.results]
    holds = all(true) if expectation[0] == "all" else any(true)
    return holds, {"rows": len(true), "true": sum(true)}
