"""What ``--join`` says, and the windows around and at a row of its left side (semantics section 16)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from ..errors import Span
from ..expressions.syntax import Expression, parse_expression
from .calls import Distance, Form, read_call, read_expression
from .enrichment import Pair, Taken, path_text, read_pair, read_take, unquoted
from .operands import read_placed
from .tokens import SECONDS, Cursor, decimal_text

How = Literal["inner", "left", "right", "full", "semi", "anti", "union"]
HOWS: Final[tuple[str, ...]] = get_args(How)
FORM: Final = (
    "write it as NAME[=PATH] [on KEY[=KEY2],..] [by ORDER[=ORDER2],..] [inner|left|right|full|semi|anti|union] "
    "[strict] [where (EXPR)] [take COL [as NAME],..]"
)
SIDE: Final = "_side"
"""The column that says of which side a row of the one sequence is; of the result only under ``union``."""
LEFT, RIGHT, BOTH = 1, 2, 3
"""Its values within the program, int8; ``union`` writes ``left`` and ``right``."""
MET, TOLD = 4, 16
"""In a state of one log: `MET` times a side, the row had a partner on it; `TOLD`, that is said, and `LEFT` and `RIGHT`
are the sides on which the row is still there. Without it what shows the row is a partner, on each of its sides."""


@dataclass(frozen=True, slots=True)
class Join:
    """A request to join another log, or the same, written as `FORM` says. Its ``str`` is its canonical text.

    ``name``: with which the names of the right columns begin.
    ``path``: where the right side is; None: the input itself, whose rows may be on both sides.
    ``keys``: the columns that must be equal; may be empty.
    ``orders``: the order columns of both sides; empty: those that the left is ordered by.
    ``how``: which rows come out without a partner.
    ``strict``: whether the left row is first where both sides have the same order values.
    ``where``: the condition of right rows, under their own names; None: all.
    ``take``: the columns to take of the right; None: all but keys.
    """

    name: str
    path: str | None = None
    keys: tuple[Pair, ...] = ()
    orders: tuple[Pair, ...] = ()
    how: How = "inner"
    strict: bool = False
    where: Expression | None = None
    take: tuple[Taken, ...] | None = None

    @property
    def without_place(self) -> Join:
        """The request with ``*`` in place of a path: what all runs of a state have in common."""
        return self if self.path is None else replace(self, path="*")

    @property
    def right_key(self) -> dict[str, str]:
        """The key columns of the right, each with that of the left."""
        return {pair.right: pair.left for pair in self.keys}

    def columns(self, right: Iterable[str]) -> dict[str, str]:
        """Return the columns that pairs have of the right: their names, each with that on its own side.

        ``right``: the columns of the right side.
        """
        if self.take is None:
            return {f"{self.name}_{name}": name for name in right if name not in self.right_key}
        return {each.name or f"{self.name}_{each.column}": each.column for each in self.take}

    def stored(self, right: str) -> str:
        """Return the name in the one sequence of a column of the right: its own, where there is one log."""
        if self.path is None:
            return right
        taken = (name for name, column in self.columns([right]).items() if column == right)
        return self.right_key.get(right) or next(taken, f"{self.name}_{right}")

    def __str__(self) -> str:
        path = "" if self.path is None else f"={path_text(self.path, _BARE_PATH)}"
        clauses = (
            f"on {', '.join(map(str, self.keys))}" if self.keys else "",
            f"by {', '.join(map(str, self.orders))}" if self.orders else "",
            "" if self.how == "inner" else self.how,
            "strict" if self.strict else "",
            "" if self.where is None else f"where ({self.where})",
            "" if self.take is None else f"take {', '.join(map(str, self.take))}",
        )
        return " ".join([self.name + path, *filter(None, clauses)])


@dataclass(frozen=True, slots=True)
class Around:
    """``around(B, A[, prevailing])``: one pane for each left row (16.4).

    ``before``, ``after``: from how long before the left row until how long after it, both inclusive, in seconds or
        units of a number; either may be negative, and their sum is not.
    ``prevailing``: whether the newest right row at or before the interval is in, too.
    """

    before: Fraction
    after: Fraction
    prevailing: bool = False

    @property
    def distances(self) -> tuple[Distance, ...]:
        return (Distance(None, self.before), Distance(None, self.after))

    def __str__(self) -> str:
        prevailing = ", prevailing" if self.prevailing else ""
        return f"around({decimal_text(self.before)}, {decimal_text(self.after)}{prevailing})"


@dataclass(frozen=True, slots=True)
class At:
    """``at(O, ..) [within D]``: the newest right row at each offset of the left row (16.5).

    ``offsets``: in seconds or units of a number, as written.
    ``within``: how old the right row may be, inclusive; None: any age.
    """

    offsets: tuple[Fraction, ...]
    within: Fraction | None = None

    @property
    def distances(self) -> tuple[Distance, ...]:
        return tuple(Distance(None, each) for each in (*self.offsets, *([] if self.within is None else [self.within])))

    def __str__(self) -> str:
        within = "" if self.within is None else f" within {decimal_text(self.within)}"
        return f"at({', '.join(map(decimal_text, self.offsets))}){within}"


# How a request is read.


CLAUSES: Final = ("on", "by", *HOWS, "strict", "where", "take")
"""The words with which clauses of a request begin."""
_CLAUSE: Final = rf"(?:{'|'.join(CLAUSES)})(?=[\s(]|\Z)"
"""A word of the clauses, and not the beginning of a path such as ``right.csv``."""
_HEAD: Final = re.compile(
    rf"""\s*(?P<name>[^\W\d]\w*)(?:\s*=\s*
    (?P<path>'(?:[^']|'')*'|"(?:[^"]|"")*"|(?!{_CLAUSE})\S.*?)(?=\s+{_CLAUSE}|\s*\Z))?""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_BARE_PATH: Final = re.compile(rf"(?!['\"])(?!{_CLAUSE})(?!.*\s{_CLAUSE})\S(?:.*\S)?", re.DOTALL | re.IGNORECASE)


def parse_join(text: str) -> Join:
    """Parse a join, written as `FORM` says; the clauses may stand in any order, ``take`` last.

    A path that holds a word of the clauses is written in quotes. Raises `SpecError` with the span at fault.
    """
    head = _HEAD.match(text)
    cursor = Cursor(text, 0 if head is None else head.end())
    if head is None:
        raise cursor.error(
            f"a join begins with NAME or NAME=PATH, and here is {cursor.peek()}", cursor.peek().span, FORM
        )
    if cursor.at("="):
        raise cursor.error("expected a path behind '='", cursor.peek().span, FORM)
    clauses: dict[str, Any] = {}
    while cursor.peek().kind != "end" and cursor.keyword() != "take":
        token, word = cursor.peek(), cursor.keyword()
        if not clauses and head["path"] is None and token.text in (".", "/", ":"):
            raise cursor.error("a join begins with NAME=PATH, and here is a path", Span(0, token.span.stop), FORM)
        if word not in CLAUSES:
            raise cursor.unknown("clause", CLAUSES)
        clause = "how" if word in HOWS else word
        if clause in clauses:
            what = f"a join has one of {', '.join(HOWS)}" if clause == "how" else f"{word} is given twice"
            raise cursor.error(what, token.span, "leave this one out")
        cursor.take()
        clauses[clause] = _clause(cursor, clause, word)
    on, by, where = clauses.get("on", ()), clauses.get("by", ()), clauses.get("where")
    take = read_take(cursor, on, FORM)
    path = None if head["path"] is None else unquoted(head["path"])
    return Join(head["name"], path, on, by, clauses.get("how", "inner"), "strict" in clauses, where, take)


def _clause(cursor: Cursor, clause: str, word: str) -> Any:
    if clause in ("how", "strict"):
        return word
    if clause == "where":
        return _where(cursor)
    pairs: list[Pair] = []
    while not pairs or cursor.skip(","):
        token, pair = cursor.peek(), read_pair(cursor, FORM)
        if any(pair.left == other.left or pair.right == other.right for other in pairs):
            raise cursor.error(f"column {token} is there twice", token.span, "name it once")
        pairs.append(pair)
    return tuple(pairs)


def _where(cursor: Cursor) -> Expression:
    opening, do = cursor.peek(), "write it as where (kind = 'pay')"
    if not cursor.skip("("):
        raise cursor.error(f"expected '(' behind where, found {opening}", opening.span, do)
    inside = read_expression(cursor, opening, do)
    closing = cursor.peek()
    if not cursor.skip(")"):
        raise cursor.error(f"expected ')', found {closing}", closing.span, do)
    return read_placed(cursor, inside.span.start, lambda: parse_expression(inside.text))


# The windows that only joins have, as the grammar of `windowing.language.parser` says them.


_MOST_OFFSETS: Final = 1_000  # of `at`: more than any curve of markouts has, but calls are bounded
_AROUND: Final = Form("around(before, after)", 2, 3, "2 or 3 arguments")
_AT: Final = Form("at(offset, ..)", 1, _MOST_OFFSETS, "at least 1 argument")


def read_around(cursor: Cursor) -> Around:
    """Parse ``around(B, A[, prevailing])``. Raises `SpecError`."""
    call = read_call(cursor, _AROUND)
    before, after = (cursor.number(each.value, SECONDS, call.do) for each in call.arguments[:2])
    if before + after < 0:
        span = Span(call.first.span.start, call.second.span.stop)
        do = "write for example around(-1s, 1h): from 1 s after a row until 1 h after it"
        raise cursor.error("this interval holds no instant: it ends before it begins", span, do)
    flag = call.arguments[2].value if len(call.arguments) > 2 else None
    if flag is not None and (flag.kind != "word" or flag.text.lower() != "prevailing"):
        raise cursor.error(f"expected prevailing, found {flag}", flag.span, "write around(5s, 0, prevailing)")
    return Around(before, after, flag is not None)


def read_at(cursor: Cursor) -> At:
    """Parse ``at(O, ..) [within D]``. Raises `SpecError`."""
    call = read_call(cursor, _AT)
    offsets: list[Fraction] = []
    for each in call.arguments:
        offset = cursor.number(each.value, SECONDS, call.do)
        if offset in offsets:
            raise cursor.error(f"the offset {each.value.text} is given twice", each.value.span, "name it once")
        offsets.append(offset)
    within = cursor.duration(cursor.take(), "write it as within 5m", zero=True) if cursor.skip("within") else None
    return At(tuple(offsets), within)
