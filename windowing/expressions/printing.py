"""The canonical text of an expression: one text for equal trees, which parses to an equal tree, and is SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .nodes import Node
from .tokens import KEYWORDS, UNITS, WORD

_BARE = re.compile(WORD)
_OR, _AND, _NOT, _COMPARISON, _CONCAT, _SUM, _PRODUCT, _SIGN, _ATOM = range(9)
_LEVELS: Final = {
    "or": _OR, "and": _AND, "not": _NOT, "compare": _COMPARISON, "is null": _COMPARISON, "in": _COMPARISON,
    "between": _COMPARISON, "like": _COMPARISON, "concat": _CONCAT, "sum": _SUM, "product": _PRODUCT, "negate": _SIGN,
}  # fmt: skip
_SIZES: Final = [(unit, UNITS[unit]) for unit in ("year", "month", "day", "hour", "minute", "second", "millisecond",
                                                   "microsecond")]  # fmt: skip


def canonical(node: Node) -> str:
    """Return the canonical text of a node."""
    write = _WRITERS.get(node.kind)
    return node.value[0] if write is None else write(node)


def name_text(name: str) -> str:
    """Return the name of a column as it is written in an expression: bare where possible, else in double quotes."""
    if _BARE.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def _at(node: Node, level: int) -> str:
    """The text of an operand, in brackets unless it binds more tightly than ``level``."""
    text = canonical(node)
    its_level = _SIGN if node.kind == "number" and text.startswith("-") else _LEVELS.get(node.kind, _ATOM)
    return text if its_level > level else f"({text})"


def _chain(node: Node) -> str:
    level = _LEVELS[node.kind]
    signs = node.value or (({"and": "AND", "or": "OR", "concat": "||"}[node.kind],) * (len(node.operands) - 1))
    rest = (f" {sign} {_at(each, level)}" for sign, each in zip(signs, node.operands[1:], strict=True))
    return _at(node.operands[0], level) + "".join(rest)


def _compare(node: Node) -> str:
    left, right = (_at(each, _COMPARISON) for each in node.operands)
    return f"{left} {node.value[0].upper()} {right}"


def _is_null(node: Node) -> str:
    return f"{_at(node.operands[0], _COMPARISON)} IS {'NOT ' if node.value[0] else ''}NULL"


def _in(node: Node) -> str:
    items = ", ".join(map(canonical, node.operands[1:]))
    return f"{_at(node.operands[0], _COMPARISON)} {'NOT ' if node.value[0] else ''}IN ({items})"


def _between(node: Node) -> str:
    of, low, high = (_at(each, _COMPARISON) for each in node.operands)
    return f"{of} {'NOT ' if node.value[0] else ''}BETWEEN {low} AND {high}"


def _like(node: Node) -> str:
    of, pattern = (_at(each, _COMPARISON) for each in node.operands)
    return f"{of} {'NOT ' if node.value[1] else ''}{node.value[0].upper()} {pattern}"


def _case(node: Node) -> str:
    rest = list(node.operands)
    first = f" {canonical(rest.pop(0))}" if node.value[0] else ""
    default = f" ELSE {canonical(rest.pop())}" if node.value[1] else ""
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return f"CASE{first}{''.join(f' WHEN {canonical(a)} THEN {canonical(b)}' for a, b in pairs)}{default} END"


def _call(node: Node) -> str:
    name, first = node.value[0], node.operands[0] if node.operands else node
    if name == "extract" and first.kind == "text" and len(node.operands) == 2 and _BARE.fullmatch(first.value[0]):
        return f"extract({first.value[0]} FROM {canonical(node.operands[1])})"
    return f"{name_text(name)}({', '.join(map(canonical, node.operands))})"


def _interval(node: Node) -> str:
    months, nanoseconds = map(int, node.value)
    if nanoseconds % 1000:
        return f"INTERVAL '{nanoseconds}' NANOSECOND"
    for unit, (its_months, its_nanoseconds) in _SIZES:
        amount, size = (months, its_months) if months else (nanoseconds, its_nanoseconds)
        if size and amount % size == 0:
            return f"INTERVAL '{amount // size}' {unit.upper()}"
    raise AssertionError(node)


_WRITERS: Final[dict[str, Callable[[Node], str]]] = {
    "column": lambda node: name_text(node.value[0]),
    "field": lambda node: f"{_at(node.operands[0], _SIGN)}.{name_text(node.value[0])}",
    "item": lambda node: f"{_at(node.operands[0], _SIGN)}[{canonical(node.operands[1])}]",
    "text": lambda node: text_literal(node.value[0]),
    "timestamp": lambda node: f"{node.value[1].upper()} {text_literal(node.value[0])}",
    "date": lambda node: f"DATE {text_literal(node.value[0])}",
    "interval": _interval,
    "constant": lambda node: node.value[0].upper(),
    "call": _call,
    "negate": lambda node: f"-{_at(node.operands[0], _SIGN)}",
    "not": lambda node: f"NOT {_at(node.operands[0], _NOT)}",
    "sum": _chain, "product": _chain, "concat": _chain, "and": _chain, "or": _chain,
    "compare": _compare, "is null": _is_null, "in": _in, "between": _between, "like": _like, "case": _case,
    "cast": lambda node: f"{node.value[0].upper()}({canonical(node.operands[0])} AS {node.value[1].upper()})",
}  # fmt: skip
