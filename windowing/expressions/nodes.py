"""The tree of an expression: one class of node, which knows where it stands in the text; and its canonical text.

A chain of operators of one precedence is one node, however long it is: ``a + b - c`` has three operands. So the depth
of a tree is the nesting of the text, which has a limit, and never the number of its terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from ..errors import Span
from .tokens import KEYWORDS, UNITS, WORD, quoted

Kind: TypeAlias = Literal[
    "column", "field", "item", "number", "text", "timestamp", "date", "interval", "constant", "call", "negate", "not",
    "sum", "product", "concat", "compare", "and", "or", "is null", "in", "between", "like", "case", "cast",
]  # fmt: skip

NOWHERE = Span(0, 0)

ANY, OR, AND, NOT, COMPARISON, CONCAT, SUM, PRODUCT, ZONE, SIGN, OPERAND = range(11)
"""How tightly operators bind, the loosest first; below all of them whatever an expression is, above all an operand."""
POWERS: Final[dict[Kind, int]] = {
    "or": OR, "and": AND, "not": NOT, "compare": COMPARISON, "is null": COMPARISON, "in": COMPARISON,
    "between": COMPARISON, "like": COMPARISON, "concat": CONCAT, "sum": SUM, "product": PRODUCT, "negate": SIGN,
}  # fmt: skip
"""By what each kind of node binds its operands; those of other kinds stand in brackets, or alone."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression. Equal parts are equal wherever they stand.

    ``kind``: what it is.
    ``value``: what its kind needs beside its operands.
        column, field: (name,). number: (digits, perhaps with a sign). text: (the text without quotes,).
        timestamp, date: (the text without quotes,), and ``timestamptz`` or ``timestamp`` as the second of a timestamp.
        interval: (months, nanoseconds), as digits. constant: (``true``, ``false`` or ``null``,).
        call: (name in lower case,). sum, product: an operator for each operand but the first.
        compare: (operator,), one of ``= <> < <= > >=``, ``is distinct from`` and ``is not distinct from``.
        is null, in, between: (``not`` or an empty text,). like: (``like`` or ``ilike``, and its ``not``).
        case: (``of`` where it compares a first operand, ``else`` where its last operand is that of ELSE; else empty).
        cast: (``cast`` or ``try_cast``, the type as written, in lower case).
    ``operands``: the parts that it is made of, in the order of the text.
    ``span``: its characters in the source.
    """

    kind: Kind
    value: tuple[str, ...] = ()
    operands: tuple[Node, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, in the order of the text."""
    yield node
    for operand in node.operands:
        yield from walk(operand)


def moved(node: Node, place: Callable[[int], int]) -> Node:
    """Return a tree whose spans are places in another text. ``place``: where a place of this text is in the other."""
    span = Span(place(node.span.start), place(node.span.stop))
    return replace(node, operands=tuple(moved(operand, place) for operand in node.operands), span=span)


def transform(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return a tree in which ``change`` has replaced nodes, the upper ones first; None keeps a node and goes below."""
    changed = change(node)
    if changed is not None:
        return changed
    operands = tuple(transform(operand, change) for operand in node.operands)
    return replace(node, operands=operands) if operands != node.operands else node


# The canonical text of an expression: one text for equal trees, which parses to an equal tree, and is SQL.


_BARE = re.compile(WORD)
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
    return quoted(name, '"')


def _at(node: Node, power: int) -> str:
    """The text of an operand, in brackets unless it binds more tightly than ``power``."""
    text = canonical(node)
    its_power = SIGN if node.kind == "number" and text.startswith("-") else POWERS.get(node.kind, OPERAND)
    return text if its_power > power else f"({text})"


def _chain(node: Node) -> str:
    power = POWERS[node.kind]
    signs = node.value or (({"and": "AND", "or": "OR", "concat": "||"}[node.kind],) * (len(node.operands) - 1))
    rest = (f" {sign} {_at(each, power)}" for sign, each in zip(signs, node.operands[1:], strict=True))
    return _at(node.operands[0], power) + "".join(rest)


def _comparison(node: Node) -> str:
    first, *others = (_at(each, COMPARISON) for each in node.operands)
    negated = "NOT " if "not" in node.value else ""
    match node.kind:
        case "is null":
            return f"{first} IS {negated}NULL"
        case "in":
            return f"{first} {negated}IN ({', '.join(map(canonical, node.operands[1:]))})"
        case "between":
            return f"{first} {negated}BETWEEN {others[0]} AND {others[1]}"
        case _:
            return f"{first} {negated}{node.value[0].upper()} {others[0]}"


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


def _literal(node: Node) -> str:
    words = [] if node.kind == "text" else ["DATE"] if node.kind == "date" else [node.value[1].upper()]
    return " ".join([*words, quoted(node.value[0], "'")])


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
    "field": lambda node: f"{_at(node.operands[0], SIGN)}.{name_text(node.value[0])}",
    "item": lambda node: f"{_at(node.operands[0], SIGN)}[{canonical(node.operands[1])}]",
    "text": _literal, "timestamp": _literal, "date": _literal,
    "interval": _interval,
    "constant": lambda node: node.value[0].upper(),
    "call": _call,
    "negate": lambda node: f"-{_at(node.operands[0], SIGN)}",
    "not": lambda node: f"NOT {_at(node.operands[0], NOT)}",
    "sum": _chain, "product": _chain, "concat": _chain, "and": _chain, "or": _chain,
    "compare": _comparison, "is null": _comparison, "in": _comparison, "between": _comparison, "like": _comparison,
    "case": _case,
    "cast": lambda node: f"{node.value[0].upper()}({canonical(node.operands[0])} AS {node.value[1].upper()})",
}  # fmt: skip
