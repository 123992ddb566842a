"""The grammar of expressions: their tokens become a tree, by the powers with which operators bind (section 11).

An operand is read with all that binds it from behind; then, while an operator follows that binds more tightly than what
stands before the operand, the two become one operand. Operators of one power are one node, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ..errors import Span, SpecError
from .nodes import Kind, Node
from .tokens import KEYWORDS, MOST_LEVELS, TOKEN_AMOUNT, UNITS, Token, interval_parts, read_tokens

_ANY, _OR, _AND, _NOT, _COMPARISON, _CONCAT, _SUM, _PRODUCT, _ZONE, _SIGN = range(10)
"""The powers of operators, the loosest first."""
_CHAINS: Final[dict[str, tuple[Kind, int]]] = {
    "or": ("or", _OR), "and": ("and", _AND), "||": ("concat", _CONCAT), "+": ("sum", _SUM), "-": ("sum", _SUM),
    "*": ("product", _PRODUCT), "/": ("product", _PRODUCT), "%": ("product", _PRODUCT),
}  # fmt: skip
_COMPARES: Final = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS: Final = frozenset({"is", "in", "between", "like", "ilike"})
_INFIX: Final = frozenset({"and", "or", *_TESTS})
_TIME_ZONE: Final = ["at", "time", "zone"]
_DEEPEST: Final = 220  # levels of a tree: operators add to those of the brackets
_DEEP: Final = "give a part of it a name of its own"


def read_tree(source: str) -> Node:
    """Return the tree of an expression. Raises `SpecError` where the text is none."""
    parser = _Parser(source)
    try:
        root = parser.whole()
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

    def whole(self) -> Node:
        node = self.expression(_ANY)
        if self.at < len(self.tokens):
            raise self.misplaced()
        return node

    def expression(self, power: int) -> Node:
        """Read an operand, and the operators behind it that bind more tightly than ``power``."""
        left, bound = self.operand(power), _SIGN
        while power < (ahead := self.infix()) <= bound:  # behind x IN (1) no operator binds more tightly than IN
            if ahead == _COMPARISON:
                if ahead == bound or self.is_compared:
                    do = "put one of the two comparisons in brackets"
                    raise self.error("a second comparison follows a first one", self.tokens[self.at].span, do)
                left = self.comparison(left)
            elif ahead == _ZONE:
                self.at += len(_TIME_ZONE)
                left = _node("call", ("timezone",), [self.expression(_ZONE), left])
            else:
                left = self.chain(left, *_CHAINS[self.sign()])
            bound = ahead
        return left

    def infix(self) -> int:
        """Return the power of the operator ahead; `_ANY` where none is."""
        sign = self.sign()
        if sign in _CHAINS:
            return _CHAINS[sign][1]
        if sign in _COMPARES or sign in _TESTS or (self.word() == "not" and self.word(1) in _TESTS - {"is"}):
            return _COMPARISON
        return _ZONE if [self.word(ahead) for ahead in range(3)] == _TIME_ZONE else _ANY

    def chain(self, first: Node, kind: Kind, power: int) -> Node:
        operands, signs = [first], []
        while _CHAINS.get(sign := self.sign()) == (kind, power):
            self.at += 1
            signs.append(sign)
            operands.append(self.expression(power))
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
        node = self.expression(_COMPARISON)
        self.is_compared = before
        return node

    def operand(self, power: int) -> Node:
        sign = self.sign()
        if sign not in {"-", "+", "not"}:
            return self.behind(self.leaf())
        token = self.tokens[self.at]
        if sign == "not" and power > _COMPARISON:
            raise self.error("NOT cannot stand here", token.span, "put it and what it negates in brackets")
        self.at += 1
        with self.deeper(token):
            operand = self.expression(_NOT if sign == "not" else _SIGN)
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
                    node = _node("item", (), [node, self.expression(_ANY)])
            else:
                node = _node("cast", ("cast", *self.type_until(self.type_end())), [node], self.last)
        return node

    def leaf(self) -> Node:
        token = self.take()
        if token.kind == "word":
            return self.word_leaf(token, token.value.lower())
        if token.kind == "number":
            return self.amount(token) or Node("number", (token.text,), (), token.span)
        if token.kind != "symbol":
            return Node("column" if token.kind == "quoted" else "text", (token.value,), (), token.span)
        if token.value != "(":
            raise self.misplaced_at(token)
        with self.within(token, ")"):
            return self.expression(_ANY)

    def amount(self, token: Token) -> Node | None:
        """Return the interval that a number with a unit is, such as ``5m``; None where it has none."""
        found = TOKEN_AMOUNT.fullmatch(token.text)
        assert found is not None
        if not found[2]:
            return None
        if found[2].lower() not in UNITS:
            do = "the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes"
            raise self.error(f"unknown unit {found[2]!r}", token.span, do)
        parts = interval_parts(found[1], found[2])
        if parts is None:
            raise self.error("an interval is a whole number of nanoseconds or months, below 2**63", token.span)
        return Node("interval", tuple(map(str, parts)), (), token.span)

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
        if following.kind == "number" and (node := self.amount(following)) is not None:
            return Node(node.kind, node.value, (), Span(token.span.start, following.span.stop))
        found = TOKEN_AMOUNT.fullmatch(following.value)
        unit = (found[2] or "") if found else ""
        if not unit and self.at < len(self.tokens) and self.tokens[self.at].kind == "word":
            unit = self.take().value
        span = Span(token.span.start, self.last.stop)
        parts = interval_parts(found[1], unit) if found and unit.lower() in UNITS else None
        if parts is None:
            raise self.error("this interval cannot be read", span, "write it like INTERVAL '5' MINUTE or 5m")
        return Node("interval", tuple(map(str, parts)), (), span)

    def call(self, word: str, token: Token) -> Node:
        if word == "extract" and self.word(1) and self.sign(2) in {"from", ","}:
            part = self.tokens[self.at + 1]  # extract(hour from ts): the part is a text, and FROM a comma
            self.tokens[self.at + 1] = Token("text", f"'{part.text.lower()}'", part.span)
        operands = self.listed("from" if word == "extract" else ",")
        return Node("call", (word,), tuple(operands), Span(token.span.start, self.last.stop))

    def listed(self, comma: str = ",") -> list[Node]:
        """Read expressions in brackets, perhaps none; ``comma``: what may stand between them beside a comma."""
        with self.within(self.take(), ")"):
            found = [] if self.sign() == ")" else [self.expression(_ANY)]
            while found and (self.skip(",") or self.skip(comma)):
                found.append(self.expression(_ANY))
        return found

    def case(self, token: Token) -> Node:
        before, self.is_compared = self.is_compared, False
        with self.deeper(token):
            of = [] if self.word() == "when" else [self.expression(_ANY)]
            operands = list(of)
            while self.skip("when"):
                operands.append(self.expression(_ANY))
                if not self.skip("then"):
                    raise self.misplaced("a condition of CASE is followed by THEN")
                operands.append(self.expression(_ANY))
            default = [self.expression(_ANY)] if self.skip("else") else []
            if len(operands) == len(of) or not self.skip("end"):
                raise self.misplaced("write CASE WHEN a THEN b ELSE c END")
        self.is_compared = before
        return _node("case", ("of" if of else "", "else" if default else ""), [*operands, *default])

    def cast(self, word: str) -> Node:
        opened = self.take()
        with self.within(opened, ")"):
            operand = self.expression(_ANY)
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

    def word(self, ahead: int = 0) -> str:
        """Return the word at the token ``ahead`` in lower case; empty where there is none."""
        token = self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else None
        return token.value.lower() if token is not None and token.kind == "word" else ""

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
