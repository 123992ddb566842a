"""Expressions: what users write, as values (section 11)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ..errors import Span, SpecError
from .nodes import Kind, Node, walk
from .printing import canonical
from .words import WORD, Words, read_words

# From the tree of the SQL parser to the tree of an expression.


_FRAMES: Final = 20_000  # Python frames while the SQL parser works: it takes some 40 for each level of the nesting
_CHAINS: Final = {
    "Add": ("sum", "+"), "Sub": ("sum", "-"), "Mul": ("product", "*"), "Div": ("product", "/"), "Mod": ("product", "%"),
    "DPipe": ("concat", "||"), "And": ("and", "and"), "Or": ("or", "or"),
}  # fmt: skip
_COMPARISONS: Final = {
    "EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=",
    "NullSafeEQ": "is not distinct from", "NullSafeNEQ": "is distinct from",
}  # fmt: skip
_FAMILY: Final = frozenset({*_COMPARISONS, "In", "Between", "Like", "ILike", "Is"})
_LITERALS: Final = frozenset({"number", "text", "timestamp", "timestamptz", "date", "interval", "constant"})
_MOST_LEVELS: Final = 220  # of the tree: postfix operators add to those of the brackets


def read_tree(words: Words) -> Node:
    """Return the tree of an expression. Raises `SpecError` where the text is none."""
    try:
        return _Reader(words).read(_sql_tree(words), 0)
    except RecursionError:
        raise words.error("an expression is nested too deeply", Span(0, 1)) from None


def _sql_tree(words: Words) -> Any:
    """Return the tree of sqlglot, which is imported here: a job without expressions does not load it."""
    from sqlglot import errors, parse_one  # noqa: PLC0415

    stand_ins = words.stand_ins()
    try:
        with _frames():
            return parse_one(" ".join(stand_ins), read="duckdb")
    except errors.SqlglotError as error:
        raise words.error(*_unreadable(words, stand_ins, error)) from None


@contextmanager
def _frames() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _unreadable(words: Words, stand_ins: list[str], error: Any) -> tuple[str, Span]:
    places = [each["col"] for each in getattr(error, "errors", ()) if each.get("col")]
    end, found = 0, words.tokens[-1]
    for token, text in zip(words.tokens, stand_ins, strict=True):
        end += len(text) + 1
        if places and end > places[0]:
            found = token
            break
    if found is words.tokens[-1]:
        return f"an expression cannot end with {_shown(words, found)} here", found.span
    return f"{_shown(words, found)} cannot stand here", found.span


def _shown(words: Words, token: Any) -> str:
    return repr(words.source[token.span.start : token.span.stop])


def _is_comparison(found: Any) -> bool:
    inner = found.this if type(found).__name__ == "Not" else found
    return type(inner).__name__ in _FAMILY


class _Reader:
    """Reads nodes of sqlglot; the method of a node has the name of its class in lower case."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def read(self, found: Any, level: int) -> Node:
        name = type(found).__name__
        if level > _MOST_LEVELS:
            raise self.words.error("an expression is nested too deeply", self._span(found))
        if name in _CHAINS:
            return self._chain(found, level)
        if name in _FAMILY and any(
            map(_is_comparison, [found.args.get(each) for each in ("this", "expression", "low", "high")])
        ):
            raise self._refuse(found, "put one of the two comparisons in brackets")
        if name in _COMPARISONS:
            return self._node("compare", (_COMPARISONS[name],), self._two(found, level))
        method = getattr(self, f"_read_{name.lower()}", None)
        if method is None:
            raise self._refuse(found)
        return cast(Callable[[Any, int], Node], method)(found, level + 1)

    def _chain(self, found: Any, level: int) -> Node:
        kind = _CHAINS[type(found).__name__][0]
        rest: list[tuple[str, Any]] = []
        while _CHAINS.get(type(found).__name__, ("",))[0] == kind:
            rest.append((_CHAINS[type(found).__name__][1], found.args.get("expression")))
            found = found.this
        operands = [self.read(found, level + 1), *(self.read(each, level + 1) for _, each in reversed(rest))]
        signs = tuple(sign for sign, _ in reversed(rest))
        return self._node(cast(Kind, kind), signs if kind in {"sum", "product"} else (), tuple(operands))

    def _two(self, found: Any, level: int) -> tuple[Node, ...]:
        return self.read(found.this, level + 1), self.read(found.args.get("expression"), level + 1)

    def _read_paren(self, found: Any, level: int) -> Node:
        return self.read(found.this, level)

    def _read_column(self, found: Any, _level: int) -> Node:
        parts = [found.args.get(each) for each in ("catalog", "db", "table", "this")]
        named = [part for part in parts if part is not None]
        node = self._leaf(named[0])
        for part in named[1:]:
            node = self._field(node, part)
        return node

    def _read_dot(self, found: Any, level: int) -> Node:
        return self._field(self.read(found.this, level), found.args["expression"])

    def _read_bracket(self, found: Any, level: int) -> Node:
        if len(found.expressions) != 1 or type(found.expressions[0]).__name__ == "Slice":
            raise self._refuse(found)
        return self._node("item", (), (self.read(found.this, level), self.read(found.expressions[0], level)))

    def _read_neg(self, found: Any, level: int) -> Node:
        operand = self.read(found.this, level)
        if operand.kind == "number":
            digits = operand.value[0]
            return Node("number", (digits[1:] if digits[0] == "-" else f"-{digits}",), (), operand.span)
        return self._node("negate", (), (operand,))

    def _read_not(self, found: Any, level: int) -> Node:
        operand = self.read(found.this, level)
        if operand.kind in {"is null", "in", "between"}:  # as in NOT x IN (1): equal to x NOT IN (1)
            return Node(operand.kind, ("" if operand.value[0] else "not",), operand.operands, operand.span)
        return self._node("not", (), (operand,))

    def _read_is(self, found: Any, level: int) -> Node:
        if type(found.args["expression"]).__name__ != "Null":
            raise self._refuse(found, "IS is followed by NULL, NOT NULL or [NOT] DISTINCT FROM")
        return self._node("is null", ("",), (self.read(found.this, level),))

    def _read_in(self, found: Any, level: int) -> Node:
        if not found.expressions or any(found.args.get(each) for each in ("query", "unnest", "field")):
            raise self._refuse(found, "IN is followed by values in brackets: IN (1, 2)")
        items = tuple(self.read(each, level) for each in found.expressions)
        return self._node("in", ("",), (self.read(found.this, level), *items))

    def _read_between(self, found: Any, level: int) -> Node:
        if found.args.get("symmetric"):
            raise self._refuse(found)
        return self._node(
            "between", ("",), tuple(self.read(found.args[each], level) for each in ("this", "low", "high"))
        )

    def _read_like(self, found: Any, level: int) -> Node:
        return self._like("like", found, level)

    def _read_ilike(self, found: Any, level: int) -> Node:
        return self._like("ilike", found, level)

    def _like(self, word: str, found: Any, level: int) -> Node:
        return self._node("like", (word, "not" if found.args.get("negate") else ""), self._two(found, level))

    def _read_case(self, found: Any, level: int) -> Node:
        first, default = found.args.get("this"), found.args.get("default")
        operands = [] if first is None else [self.read(first, level)]
        for each in found.args["ifs"]:
            operands += [self.read(each.this, level), self.read(each.args["true"], level)]
        operands += [] if default is None else [self.read(default, level)]
        return self._node("case", ("" if first is None else "of", "" if default is None else "else"), tuple(operands))

    def _read_cast(self, found: Any, level: int) -> Node:
        return self._cast("cast", found, level)

    def _read_trycast(self, found: Any, level: int) -> Node:
        return self._cast("try_cast", found, level)

    def _cast(self, word: str, found: Any, level: int) -> Node:
        index = str(found.args["to"].args.get("kind"))
        token = self.words.tokens[int(index)] if index.isdigit() else None
        if token is None or token.kind != "type":
            raise self._refuse(found, "write CAST(x AS type)")
        return self._node("cast", (word, token.value), (self.read(found.this, level),), token.span)

    def _read_attimezone(self, found: Any, level: int) -> Node:
        time, zone = self.read(found.this, level), self.read(found.args["zone"], level)
        return self._node("call", ("timezone",), (zone, time))

    def _read_anonymous(self, found: Any, level: int) -> Node:
        index = int(str(found.this)[1:])
        operands = tuple(self.read(each, level) for each in found.expressions)
        return Node("call", (self.words.tokens[index].value,), operands, self.words.call_span(index))

    def _leaf(self, identifier: Any) -> Node:
        name = str(identifier.this)
        if not name.isdigit():  # a keyword that the SQL parser takes for a name
            found = next(each for each in self.words.tokens if each.value == name.lower())
            do = f'as the name of a column it goes in double quotes: "{name}"'
            raise self.words.error(f"{name!r} is a word of the language", found.span, do)
        token = self.words.tokens[int(name)]
        if token.kind == "name":
            return Node("column", (token.value,), (), token.span)
        if token.kind not in _LITERALS:
            raise self.words.error(f"{_shown(self.words, token)} cannot stand here", token.span)
        if token.kind == "timestamptz":
            return Node("timestamp", (token.value, "timestamptz"), (), token.span)
        values = {"timestamp": (token.value, "timestamp"), "interval": tuple(token.value.split())}
        return Node(cast(Kind, token.kind), values.get(token.kind, (token.value,)), (), token.span)

    def _field(self, of: Node, identifier: Any) -> Node:
        name = str(getattr(identifier, "this", ""))
        token = self.words.tokens[int(name)] if name.isdigit() else None
        if token is None or token.kind != "name" or of.kind not in {"column", "field", "item", "call"}:
            raise self.words.error("a dot stands between a column and the name of a field", of.span)
        return Node("field", (token.value,), (of,), Span(of.span.start, token.span.stop))

    def _node(self, kind: Kind, value: tuple[str, ...], operands: tuple[Node, ...], also: Span | None = None) -> Node:
        spans = [each.span for each in operands] + ([also] if also else [])
        return Node(kind, value, operands, Span(min(s.start for s in spans), max(s.stop for s in spans)))

    def _refuse(self, found: Any, do: str | None = None) -> Exception:
        return self.words.error("this is no part of an expression", self._span(found), do)

    def _span(self, found: Any) -> Span:
        names = (str(getattr(each, "this", "")) for each in (found.walk() if hasattr(found, "walk") else ()))
        spans = [
            self.words.tokens[int(name)].span for name in names if name.isdigit() and int(name) < len(self.words.tokens)
        ]
        whole = spans or [Span(0, len(self.words.source))]
        return Span(min(s.start for s in whole), max(s.stop for s in whole))


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

    Only the form is checked: neither its columns nor its functions need to exist. The name of a column alone is read
    without the SQL parser. Raises `SpecError` with the span at fault.

    >>> str(parse_expression("a+b*2>5m and not c in (1,2)"))
    "a + b * 2 > INTERVAL '5' MINUTE AND c NOT IN (1, 2)"
    """
    found = _NAME.fullmatch(text)
    if found is not None and (found[1] is None or found[1].lower() not in _CONSTANTS):
        name = found[1] or found[2].replace('""', '"')
        start = len(text) - len(text.lstrip())
        return expression_of(Node("column", (name,), (), Span(start, len(text.rstrip()))), text)
    return expression_of(read_tree(read_words(text)), text)


def expression_of(root: Node, source: str) -> Expression:
    """Return the expression of a tree, whose spans are places in ``source``."""
    return Expression(canonical(root), root, source)
