"""Expressions: what users write, as values (section 11)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ..errors import Span, SpecError
from .nodes import Node, canonical, walk
from .parser import read_tree
from .tokens import WORD

_NAME: Final = re.compile(rf'\s*(?:({WORD})|"((?:[^"]|"")+)")\s*')
_CONSTANTS: Final = frozenset({"true", "false", "null"})


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over the columns of a row. Expressions are equal where their canonical texts are.

    ``text``: the canonical text, which parses to an equal value.
    ``root``: its tree.
    ``source``: the text as written, for messages; the spans of the tree are places in it.
    """

    text: str
    root: Node = field(compare=False, repr=False)
    source: str = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.text

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it reads, without repeats; of a nested ``ctx.pid`` it is ``ctx``."""
        return tuple(dict.fromkeys(node.value[0] for node in walk(self.root) if node.kind == "column"))

    @property
    def name(self) -> str | None:
        """The column, where the expression is one and no more; else None."""
        return self.root.value[0] if self.root.kind == "column" else None

    @property
    def uses_lag(self) -> bool:
        return "lag" in self.calls

    @property
    def calls(self) -> frozenset[str]:
        return frozenset(node.value[0] for node in walk(self.root) if node.kind == "call")

    def error(self, what: str, span: Span, do: str | None = None) -> SpecError:
        """Return (not raise) an error about a span of its source."""
        return SpecError(what, self.source, span, do)


def parse_expression(text: str) -> Expression:
    """Parse an expression, such as ``price * items > 100 AND state <> 'ok'`` (section 11).

    Only the form is checked: neither its columns nor its functions need to exist. A word of the language that stands
    alone is the name of a column. Raises `SpecError` with the span at fault.

    >>> str(parse_expression("a+b*2>5m and not c in (1,2)"))
    "a + b * 2 > INTERVAL '5' MINUTE AND c NOT IN (1, 2)"
    """
    found = _NAME.fullmatch(text)
    if found is not None and (found[1] is None or found[1].lower() not in _CONSTANTS):
        name = found[1] or found[2].replace('""', '"')
        start = len(text) - len(text.lstrip())
        return expression_of(Node("column", (name,), (), Span(start, len(text.rstrip()))), text)
    return expression_of(read_tree(text), text)


def expression_of(root: Node, source: str) -> Expression:
    """Return the expression of a tree, whose spans are places in ``source``."""
    return Expression(canonical(root), root, source)
