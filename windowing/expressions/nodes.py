"""The tree of an expression: one class of node, which knows where it stands in the text.

A chain of operators of one precedence is one node, however long it is: ``a + b - c`` has three operands. So the depth
of a tree is the nesting of the text, which has a limit, and never the number of its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ..errors import Span

Kind: TypeAlias = Literal[
    "column", "field", "item", "number", "text", "timestamp", "date", "interval", "constant", "call", "negate", "not",
    "sum", "product", "concat", "compare", "and", "or", "is null", "in", "between", "like", "case", "cast",
]  # fmt: skip

NOWHERE = Span(0, 0)


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
