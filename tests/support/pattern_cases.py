"""The cases of ``tests/cases/patterns.json``: facts of other systems, and of the semantics, about row patterns.

``how``: ``greatest``: of the answer only the greatest value of the last column counts, for each of the others;
``no_empty``: rows of matches without a row, which wincli does not show; ``order`` false: the order is not told.
``nights``: where a new night begins. ``account``: counts of all nights. ``mistake``: the window is refused.
``allow``: why wincli has another answer than the source, which is ``here``, or refuses the window.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pyarrow as pa

from support.places import CASES

Case = dict[str, Any]
ALL: list[Case] = json.loads((CASES / "patterns.json").read_text(encoding="utf-8"))["cases"]


ANSWERED = [case for case in ALL if not case.get("mistake")]


def options(case: Case, name: str) -> list[str]:
    """The values of an option that may stand several times."""
    args = case["args"]
    return [args[i + 1] for i, arg in enumerate(args) if arg == name]


def table(case: Case, rows: list[list[Any]]) -> pa.Table:
    types = {"timestamp[us]": pa.timestamp("us"), "float64": pa.float64(), "int64": pa.int64(), "string": pa.string()}
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in case["cols"]]
    fields = zip(columns, case["cols"].values(), strict=True)
    return pa.table([pa.array(values, types[kind]) for values, kind in fields], names=list(case["cols"]))


def nights(case: Case) -> list[list[list[Any]]]:
    """The rows of each night."""
    cuts = [0, *case.get("nights", []), len(case["rows"])]
    return [case["rows"][low:high] for low, high in pairwise(cuts)]


def is_answer(case: Case, found: list[list[Any]]) -> bool:
    """Whether rows of the selected columns are what wincli shall say, which may differ from what the source says."""
    differs = "here" in case and _is_like(case, found, case["expect"])
    return _is_like(case, found, case.get("here", case["expect"])) and not differs


def _is_like(case: Case, found: list[list[Any]], expected: list[list[Any]]) -> bool:
    how = case.get("how", {})
    wanted = [row for row in expected if row not in how.get("no_empty", [])]
    wanted = [[_plain(value) for value in row] for row in wanted]
    if how.get("greatest"):
        best: dict[tuple[Any, ...], Any] = {}
        for *names, value in found:
            best[*names] = max(value, best.get((*names,), value))
        found = [[*names, value] for names, value in best.items()]
    if how.get("order") is False or how.get("greatest"):
        found, wanted = sorted(found, key=repr), sorted(wanted, key=repr)
    return len(found) == len(wanted) and all(map(_is_alike, found, wanted))


def _is_alike(found: list[Any], wanted: list[Any]) -> bool:
    return len(found) == len(wanted) and all(
        math.isclose(one, other, rel_tol=1e-12) if isinstance(other, float) and one is not None else one == other
        for one, other in zip(found, wanted, strict=True)
    )


def _plain(value: Any) -> Any:
    """A value as wanted; an instant, ``["@", nanoseconds]``, as microseconds."""
    return value[1] // 1000 if isinstance(value, list) and value[:1] == ["@"] else value
