"""Expressions: what users write, as values, and their grammar (section 11).

The tokens become a tree by the powers with which operators bind. An operand is read with all that binds it from behind;
then, while an operator follows that binds more tightly than what stands before the operand, the two become one operand.
Operators of one power are one node, however many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from ..errors import Span, SpecError
from .nodes import ANY, COMPARISON, NOT, POWERS, SIGN, ZONE, Kind, Node, canonical, walk
from .tokens import KEYWORDS, MOST_LEVELS, TOKEN_AMOUNT, UNITS, WORD, Token, read_tokens

_NAME: Final = re.compile(rf'\s*(?:({WORD})|"((?:[^"]|"")+)")\s*')
_CONSTANTS: Final = frozenset({"true", "false", "null"})
_CHAINS: Final[dict[str, Kind]] = {
    "or": "or", "and": "and", "||": "concat", "+": "sum", "-": "sum", "*": "product", "/": "product", "%": "product",
}  # fmt: skip
_COMPARES: Final = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS: Final = frozenset({"is", "in", "between", "like", "ilike"})
_INFIX: Final = frozenset({"and", "or", *_TESTS})
_TIME_ZONE: Final = ["at", "time", "zone"]
_DEEPEST: Final = 220  # levels of a tree: operators add to those of the brackets
_DEEP: Final = "give a part of it a name of its own"


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
    return expression_of(_tree_of(text), text)


def expression_of(root: Node, source: str) -> Expression:
    """Return the expression of a tree, whose spans are places in ``source``."""
    return Expression(canonical(root), root, source)


def _tree_of(source: str) -> Node:
    parser = _Parser(source)
    try:
        root = parser.expression(ANY)
        if parser.at < len(parser.tokens):
            raise parser.misplaced()
    except RecursionError:
        raise SpecError("an expression is nested too deeply", source, Span(0, 1), _DEEP) from None
    level, nodes = 0, [root]
    while nodes:
        level, nodes = level + 1, [operand for node in nodes for operand in node.operands]
        if level > _DEEPEST:
            raise SpecError("an expression is nested too deeply", source, root.span, _DEEP)
    return root


class _Parser:
    """A position in the tokens of one text.

    ``at``: the number of the next token.
    ``opened``: the brackets around it.
    ``level``: how many brackets, CASEs and prefixes are around it.
    ``is_compared``: whether it is in an operand of a comparison, with no bracket between them: another comparison there
        would be read differently by different SQL systems.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = read_tokens(source)
        self.at = self.level = 0
        self.is_compared = False
        self.opened: list[Token] = []

    def expression(self, power: int) -> Node:
        """Read an operand, and the operators behind it that bind more tightly than ``power``."""
        left, bound = self.operand(power), SIGN
        while power < (ahead := self.infix()) <= bound:  # behind x IN (1) no operator binds more tightly than IN
            if ahead == COMPARISON:
                if ahead == bound or self.is_compared:
                    do = "put one of the two comparisons in brackets"
                    raise self.error("a second comparison follows a first one", self.tokens[self.at].span, do)
                left = self.comparison(left)
            elif ahead == ZONE:
                self.at += len(_TIME_ZONE)
                left = _node("call", ("timezone",), [self.expression(ZONE), left])
            else:
                left = self.chain(left, _CHAINS[self.sign()])
            bound = ahead
        return left

    def infix(self) -> int:
        """Return the power of the operator ahead; `ANY` where none is."""
        sign = self.sign()
        if sign in _CHAINS:
            return POWERS[_CHAINS[sign]]
        if sign in _COMPARES or sign in _TESTS or (sign == "not" and self.sign(1) in _TESTS - {"is"}):
            return COMPARISON
        return ZONE if [self.sign(ahead) for ahead in range(3)] == _TIME_ZONE else ANY

    def chain(self, first: Node, kind: Kind) -> Node:
        operands, signs = [first], []
        while _CHAINS.get(sign := self.sign()) == kind:
            self.at += 1
            signs.append(sign)
            operands.append(self.expression(POWERS[kind]))
        return _node(kind, tuple(signs) if kind in {"sum", "product"} else (), operands)

    def comparison(self, left: Node) -> Node:
        if self.sign() in _COMPARES:
            sign = _COMPARES[self.take().value]
            return _node("compare", (sign,), [left, self.compared()])
        negated = "not" if self.skip("not") else ""
        word = self.take().value.lower()
        if word == "is":
            negated = "not" if self.skip("not") else ""
            if self.skip("null"):
                return _node("is null", (negated,), [left])
            if self.skip("distinct") and self.skip("from"):
                sign = f"is {'not ' if negated else ''}distinct from"
                return _node("compare", (sign,), [left, self.compared()])
            raise self.misplaced("IS is followed by NULL, NOT NULL or [NOT] DISTINCT FROM")
        if word == "in":
            if self.sign() != "(" or self.sign(1) == ")":
                raise self.misplaced("IN is followed by values in brackets: IN (1, 2)")
            return _node("in", (negated,), [left, *self.listed()])
        if word == "between":
            low = self.compared()
            if not self.skip("and"):
                raise self.misplaced("BETWEEN has two values: BETWEEN 1 AND 2")
            return _node("between", (negated,), [left, low, self.compared()])
        return _node("like", (word, negated), [left, self.compared()])

    def compared(self) -> Node:
        before, self.is_compared = self.is_compared, True
        node = self.expression(COMPARISON)
        self.is_compared = before
        return node

    def operand(self, power: int) -> Node:
        sign = self.sign()
        if sign not in {"-", "+", "not"}:
            return self.behind(self.leaf())
        token = self.tokens[self.at]
        if sign == "not" and power > COMPARISON:
            raise self.error("NOT cannot stand here", token.span, "put it and what it negates in brackets")
        self.at += 1
        with self.deeper(token):
            operand = self.expression(NOT if sign == "not" else SIGN)
        if sign == "+":
            return operand
        if sign == "not":
            if operand.kind in {"is null", "in", "between"}:  # NOT x IN (1) is equal to x NOT IN (1)
                return _node(operand.kind, ("" if operand.value[0] else "not",), operand.operands, operand.span)
            return _node("not", (), [operand])
        if operand.kind == "number":
            digits = operand.value[0]
            return Node("number", (digits[1:] if digits[0] == "-" else f"-{digits}",), (), operand.span)
        return _node("negate", (), [operand])

    def behind(self, node: Node) -> Node:
        """Read what binds an operand from behind: fields, items and types."""
        count = 0
        while (sign := self.sign()) in {".", "[", "::"}:
            token, count = self.take(), count + 1
            self.check_level(token, count)
            if sign == ".":
                name = self.take_if("word", "quoted")
                if node.kind not in {"column", "field", "item", "call"}:
                    raise self.error("a dot stands between a column and the name of a field", node.span)
                node = _node("field", (name.value,), [node], name.span)
            elif sign == "[":
                with self.within(token, "]"):
                    node = _node("item", (), [node, self.expression(ANY)])
            else:
                node = _node("cast", ("cast", *self.type_until(self.type_end())), [node], self.last)
        return node

    def leaf(self) -> Node:
        token = self.take()
        if token.kind == "word":
            return self.word_leaf(token, token.value.lower())
        if token.kind == "number":
            return self.amount(token)
        if token.kind != "symbol":
            return Node("column" if token.kind == "quoted" else "text", (token.value,), (), token.span)
        if token.value != "(":
            raise self.misplaced_at(token)
        with self.within(token, ")"):
            return self.expression(ANY)

    def amount(self, token: Token) -> Node:
        """Return what a number is: an interval where it has a unit, such as ``5m``."""
        found = TOKEN_AMOUNT.fullmatch(token.text)
        assert found is not None
        if not found[2]:
            return Node("number", (token.text,), (), token.span)
        if found[2].lower() not in UNITS:
            do = "the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes"
            raise self.error(f"unknown unit {found[2]!r}", token.span, do)
        node = _interval(found[1], found[2], token.span)
        if node is None:
            raise self.error("an interval is a whole number of nanoseconds or months, below 2**63", token.span)
        return node

    def word_leaf(self, token: Token, word: str) -> Node:
        if word == "case":
            return self.case(token)
        if word in {"cast", "try_cast"} and self.sign() == "(":
            return self.cast(word)
        if word in {"true", "false", "null"}:
            return Node("constant", (word,), (), token.span)
        if word in KEYWORDS:
            if word in _INFIX:
                raise self.misplaced_at(token)
            do = f'as the name of a column it goes in double quotes: "{token.value}"'
            raise self.error(f"{token.value!r} is a word of the language", token.span, do)
        if self.sign() == "(":
            return self.call(word, token)
        return self.literal(word, token) or Node("column", (token.value,), (), token.span)

    def literal(self, word: str, token: Token) -> Node | None:
        """Read a literal that a word begins, such as ``DATE '2026-11-02'``; None where it begins none."""
        if self.at == len(self.tokens):
            return None
        following = self.tokens[self.at]
        if word in {"timestamp", "timestamptz", "date"} and following.kind == "text":
            self.at += 1
            span = Span(token.span.start, following.span.stop)
            if word == "date":
                return Node("date", (following.value,), (), span)
            return Node("timestamp", (following.value, word), (), span)
        if word != "interval" or following.kind not in {"text", "number"}:
            return None
        self.at += 1
        if following.kind == "number" and (amount := self.amount(following)).kind == "interval":
            return replace(amount, span=Span(token.span.start, following.span.stop))
        found = TOKEN_AMOUNT.fullmatch(following.value)
        unit = (found[2] or "") if found else ""
        if not unit and self.at < len(self.tokens) and self.tokens[self.at].kind == "word":
            unit = self.take().value
        span = Span(token.span.start, self.last.stop)
        node = _interval(found[1], unit, span) if found and unit.lower() in UNITS else None
        if node is None:
            raise self.error("this interval cannot be read", span, "write it like INTERVAL '5' MINUTE or 5m")
        return node

    def call(self, word: str, token: Token) -> Node:
        if word == "extract" and self.sign(2) in {"from", ","}:
            part = self.tokens[self.at + 1]  # extract(hour from ts): the part is a text, and FROM a comma
            if part.kind == "word":
                self.tokens[self.at + 1] = Token("text", f"'{part.text.lower()}'", part.span)
        operands = self.listed("from" if word == "extract" else ",")
        return Node("call", (word,), tuple(operands), Span(token.span.start, self.last.stop))

    def listed(self, comma: str = ",") -> list[Node]:
        """Read expressions in brackets, perhaps none; ``comma``: what may stand between them beside a comma."""
        with self.within(self.take(), ")"):
            found = [] if self.sign() == ")" else [self.expression(ANY)]
            while found and (self.skip(",") or self.skip(comma)):
                found.append(self.expression(ANY))
        return found

    def case(self, token: Token) -> Node:
        before, self.is_compared = self.is_compared, False
        with self.deeper(token):
            of = [] if self.sign() == "when" else [self.expression(ANY)]
            operands = list(of)
            while self.skip("when"):
                operands.append(self.expression(ANY))
                if not self.skip("then"):
                    raise self.misplaced("a condition of CASE is followed by THEN")
                operands.append(self.expression(ANY))
            default = [self.expression(ANY)] if self.skip("else") else []
            if len(operands) == len(of) or not self.skip("end"):
                raise self.misplaced("write CASE WHEN a THEN b ELSE c END")
        self.is_compared = before
        return _node("case", ("of" if of else "", "else" if default else ""), [*operands, *default])

    def cast(self, word: str) -> Node:
        opened = self.take()
        with self.within(opened, ")"):
            operand = self.expression(ANY)
            if not self.skip("as"):
                raise self.misplaced("write CAST(x AS type)")
            ahead = depth = 0
            while (sign := self.sign(ahead)) != ")" or depth:
                depth += (sign == "(") - (sign == ")")
                ahead += 1
                if self.at + ahead > len(self.tokens):
                    raise self.error("this bracket is never closed", opened.span)
            return _node("cast", (word, *self.type_until(self.at + ahead)), [operand], self.last)

    def type_end(self) -> int:
        """Return the number of the token behind the type that follows ``::``: a word, perhaps with brackets."""
        ahead = 1
        while (opened := self.sign(ahead)) in {"(", "["}:
            closer = ")" if opened == "(" else "]"
            left = range(ahead, len(self.tokens) - self.at)
            ahead = next((at + 1 for at in left if self.sign(at) == closer), 0)
            if not ahead:
                raise self.error("this bracket is never closed", self.tokens[self.at + left[0]].span)
        return self.at + ahead

    def type_until(self, end: int) -> tuple[str]:
        """Read a type up to the token ``end``: as it is written, in lower case."""
        first = self.take_if("word")
        self.at = end
        return (" ".join(self.source[first.span.start : self.last.stop].lower().split()),)

    # The cursor.

    @property
    def last(self) -> Span:
        return self.tokens[self.at - 1].span

    def sign(self, ahead: int = 0) -> str:
        """Return the symbol or the word at the token ``ahead``; empty where there is none."""
        token = self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else None
        return token.value.lower() if token is not None and token.kind in {"word", "symbol"} else ""

    def take(self) -> Token:
        if self.at == len(self.tokens):
            raise self.misplaced()
        self.at += 1
        return self.tokens[self.at - 1]

    def take_if(self, *kinds: str) -> Token:
        if self.at < len(self.tokens) and self.tokens[self.at].kind not in kinds:
            raise self.misplaced()
        return self.take()

    def skip(self, text: str) -> bool:
        is_there = self.sign() == text
        self.at += is_there
        return is_there

    @contextmanager
    def within(self, opened: Token, closer: str) -> Iterator[None]:
        """Read what stands in brackets, of which the first has been read, and the last."""
        before, self.is_compared = self.is_compared, False
        self.opened.append(opened)
        with self.deeper(opened):
            yield
            if not self.skip(closer):
                raise self.misplaced()
        self.opened.pop()
        self.is_compared = before

    @contextmanager
    def deeper(self, token: Token) -> Iterator[None]:
        self.level += 1
        self.check_level(token)
        yield
        self.level -= 1

    def check_level(self, token: Token, more: int = 0) -> None:
        if self.level + more > MOST_LEVELS:
            raise self.error(f"an expression is nested more than {MOST_LEVELS} levels deep", token.span, _DEEP)

    # Mistakes.

    def error(self, what: str, span: Span, do: str | None = None) -> SpecError:
        return SpecError(what, self.source, span, do)

    def misplaced(self, do: str | None = None) -> SpecError:
        """Return (not raise) the error of the next token, or of the last one where there is none."""
        if self.at < len(self.tokens):
            return self.misplaced_at(self.tokens[self.at], do)
        if self.opened:
            return self.error("this bracket is never closed", self.opened[-1].span, do)
        shown = repr(self.source[self.last.start : self.last.stop])
        return self.error(f"an expression cannot end with {shown} here", self.last, do)

    def misplaced_at(self, token: Token, do: str | None = None) -> SpecError:
        pair = {")": "(", "]": "["}.get(token.value) if token.kind == "symbol" else None
        if pair is not None and (not self.opened or self.opened[-1].value != pair):
            return self.error("this bracket closes nothing", token.span, do)
        shown = repr(self.source[token.span.start : token.span.stop])
        return self.error(f"{shown} cannot stand here", token.span, do)


def _node(kind: Kind, value: tuple[str, ...], operands: Sequence[Node], also: Span | None = None) -> Node:
    spans = [each.span for each in operands] + ([also] if also else [])
    return Node(kind, value, tuple(operands), Span(min(s.start for s in spans), max(s.stop for s in spans)))


def _interval(amount: str, unit: str, span: Span) -> Node | None:
    """Return an amount of a unit as months and nanoseconds; None where it is no whole number of them, or too large."""
    if len(amount) > 400 or len(amount.lower().partition("e")[2]) > 3:  # 1e999999999 would not fit into memory
        return None
    months, nanoseconds = UNITS[unit.lower()]
    exact = Fraction(amount) * (months or nanoseconds)
    if exact.denominator != 1 or abs(exact) >= 2**63:
        return None
    return Node("interval", (str(exact), "0") if months else ("0", str(exact)), (), span)
