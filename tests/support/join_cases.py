"""The cases of ``tests/cases/joins.json``: facts of other systems, and of the semantics, about joins over windows.

``left``, ``right``: the inputs. ``then``: a second stage over the result. ``units``: how many rows each unit has.
``expect``: columns and rows; ``ordered``: in this order. ``differs``: why wincli has another answer, which is ``here``.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any

import pyarrow as pa

from references import joins, matched_rows
from references.tumbling import Count, Delta, Row, Time, read, tumbling
from support.places import CASES
from wincli.windowing.expressions.syntax import parse_expression

Case = dict[str, Any]
ALL: list[Case] = json.loads((CASES / "joins.json").read_text(encoding="utf-8"))["cases"]


def table(side: dict[str, Any]) -> pa.Table:
    """An input of a case; a column of whole numbers and others is one of floats."""
    columns = [list(column) for column in zip(*side["rows"], strict=True)] or [[] for _ in side["cols"]]
    floats = [any(isinstance(value, float) for value in column) for column in columns]
    columns = [
        [float(v) if is_float and v is not None else v for v in c] for c, is_float in zip(columns, floats, strict=True)
    ]
    return pa.table(columns, side["cols"])


def request(case: Case, path: str) -> str:
    """The text of ``--join`` over a path, which takes the right key where the case looks at it."""
    keys, right = _names(case, "on")[1], case["right"]["cols"]
    text = case["join"].replace("=R ", f"={path} ", 1)
    if any(f"r_{name}" in case["expect"]["cols"] for name in keys):
        return f"{text} take {', '.join(right)}"
    return text


def inputs_by_unit(case: Case) -> list[tuple[pa.Table, pa.Table]]:
    """The left and the right rows of each unit."""
    left, right = table(case["left"]), table(case["right"])
    if "units" not in case:
        return [(left, right)]
    (a, _), (b, _) = case["units"]["left"], case["units"]["right"]
    return [(left[:a], right[:b]), (left[a:], right[b:])]


def answer(case: Case) -> list[list[Any]]:
    """What wincli shall say."""
    return list(case.get("here", case["expect"]["rows"]))


def is_answer(case: Case, found: list[list[Any]]) -> bool:
    wanted = answer(case)
    if not case["expect"]["ordered"]:
        found, wanted = sorted(found, key=repr), sorted(wanted, key=repr)
    return len(found) == len(wanted) and all(map(_is_alike, found, wanted))


def _is_alike(found: list[Any], wanted: list[Any]) -> bool:
    return all(
        one == other or (isinstance(one, float) and other is not None and math.isclose(one, other, rel_tol=1e-12))
        for one, other in zip(found, wanted, strict=True)
    )


def _names(case: Case, word: str) -> tuple[list[str], list[str]]:
    """The names behind ``on`` or ``by``, on the left and on the right."""
    found = re.search(rf"\b{word} ((?:\w+(?:=\w+)?)(?:, ?\w+(?:=\w+)?)*)", case["join"])
    pairs = [pair.strip().partition("=") for pair in found[1].split(",")] if found else []
    return [one for one, _, _ in pairs], [other or one for one, _, other in pairs]


# --- by the reference ---------------------------------------------------------------------------------------------


def by_reference(case: Case) -> list[list[Any]]:
    """The rows of the expected columns, by the rules of section 16."""
    tables = inputs_by_unit(case)
    how = next(
        (word for word in ("left", "right", "full", "semi", "anti", "union") if f" {word}" in case["join"]), "inner"
    )
    (keys, other_keys), (orders, other_orders) = _names(case, "on"), _names(case, "by")
    clocks = [t[name].type for pair in tables for t, (name,) in zip(pair, (orders, other_orders), strict=True)]
    join = joins.Join(
        name=case["join"].partition("=")[0],
        keys=list(zip(keys, other_keys, strict=True)),
        orders=list(zip(orders, other_orders, strict=True)),
        how=how,
        strict=" strict" in case["join"],
        left_where=condition_of(case.get("where")),
        match=condition_of(case.get("match")),
        left_columns=tables[0][0].column_names,
        right_columns=tables[0][1].column_names,
        kind=pa.float64() if pa.float64() in clocks else pa.int64(),
        at_end=case.get("at_end", "flush"),
    )  # fmt: skip
    nights = [(list(read(left).values()), list(read(right).values())) for left, right in tables]
    both = joins.sides(nights, join, late="redo" if "units" in case else "reject")
    lots = lots_of(both, case["window"], case.get("emit", "entered"))
    rows = [row for lot in lots for row in _rows(join, lot, case.get("agg", []))]
    rows = _then(rows, case["then"]) if "then" in case else rows
    return [[_plain(row[name]) for name in case["expect"]["cols"]] for row in rows]


def condition_of(text: str | None) -> Any:
    """A condition of a row, or of a pair; None is always true."""
    if text is None:
        return lambda _: True
    root = parse_expression(text).root
    return lambda row: matched_rows.value(root, matched_rows.Place([row], 0, (), frozenset()))


def lots_of(both: joins.Sides, window: str, emit: Any) -> list[joins.Lot]:
    """The lots of a window, by its text."""
    one, _, other = window.partition(" join ")
    if other:
        if one.startswith("sliding, "):
            return joins.side_windows(both, _eviction(one.removeprefix("sliding, ")), _eviction(other), emit)
        return joins.side_windows(both, _clause(one), _clause(other), emit)
    window, _, within = window.partition(" within ")
    word, arguments = re.fullmatch(r"(\w+)\((.*)\)", window).groups()  # type: ignore[union-attr]
    parts = [part.strip() for part in arguments.split(",")]
    if word == "around":
        return joins.around(both, Fraction(parts[0]), Fraction(parts[1]), "prevailing" in parts)
    if word == "at":
        return joins.at(both, [Fraction(part) for part in parts], Fraction(within) if within else None)
    rows, policy = joins.merged_rows(both), Time(Fraction(arguments), both.join.kind)
    key, order = [name for name, _ in both.join.keys], [name for name, _ in both.join.orders]
    own = tumbling(rows, policy if word == "time" else Count(int(arguments)), key=key, order=order)
    return joins.one_window(both, own.panes)


def _eviction(text: str) -> Count | Delta | Time:
    word, arguments = re.fullmatch(r"(\w+)\((.*)\)", text).groups()  # type: ignore[union-attr]
    if word == "delta":
        name, _, amount = arguments.partition(", ")
        return Delta(name, Fraction(amount), pa.int64())
    return Count(int(arguments)) if word == "count" else Time(Fraction(arguments), pa.int64())


def _clause(text: str) -> joins.Clause:
    def number(word: str) -> Any:
        found = re.search(rf"\b{word} ([\d.]+)", text)
        return Fraction(found[1]) if found else None

    retain, part = number("retain"), re.search(r"partition by (\w+(?:, \w+)*)", text)
    names, unique = part[1].split(", ") if part else [], re.search(r"with unique (\w+)", text)
    every = number("every")
    every = int(every) if every and number("within") is None else every
    return joins.Clause(number("within"), every, retain and int(retain), unique and unique[1], names)


def _rows(join: joins.Join, lot: joins.Lot, calls: list[str]) -> list[Row]:
    told = {"_at": lot.at, "window_start": lot.start, "window_end": lot.end}
    if not calls:
        return [join.row(pair) | told for pair in lot.pairs]
    rows = [join.row(pair) for pair in lot.pairs if None not in pair]
    head = join.row((lot.pairs[0][0], None)) if lot.pairs else {}
    return [head | aggregates_of(rows, calls) | told]


def aggregates_of(rows: list[Row], calls: list[str]) -> Row:
    """What ``--agg`` says of rows, by name."""
    taken = tuple((place, None) for place in range(len(rows)))
    named = [call.partition("=") for call in calls]
    return {name: matched_rows.of_match(text, rows, taken, ()) for name, _, text in named}


def _then(rows: list[Row], then: dict[str, Any]) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in then["by"]), []).append(row)
    return [
        dict(zip(then["by"], key, strict=True)) | aggregates_of(group, then["agg"]) for key, group in groups.items()
    ]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value
