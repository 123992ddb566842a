"""Expectations: what a job demands of each unit before it is committed (semantics section 14).

An expectation is a text: ``EXPR`` over the numbers of a unit, or ``all(EXPR)`` or ``any(EXPR)`` over the rows of the
result. ``warn: `` before it says that it only warns; a job file may write that as ``{expr: .., on_fail: warn}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..windowing.errors import ConfigError, SpecError
from ..windowing.expressions.syntax import Expression, parse_expression
from ..windowing.support.suggest import short

Scope: TypeAlias = Literal["numbers", "all", "any"]
OnFail: TypeAlias = Literal["fail", "warn"]

_WARN = re.compile(r"\s*warn\s*:")
_OVER_ROWS = re.compile(r"\s*(all|any)\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a job demands.

    ``scope``: whether it is about the numbers of a unit, about all rows of the result, or about any of them.
    ``expression``: what must be true.
    ``on_fail``: whether the unit fails, or a note is enough.
    """

    scope: Scope
    expression: Expression
    on_fail: OnFail = "fail"

    def __str__(self) -> str:
        text = str(self.expression)
        return text if self.scope == "numbers" else f"{self.scope}({text})"


def parse_expectation(text: str) -> Expectation:
    """Parse an expectation. Raises `SpecError` with the span at fault, `ConfigError` for an empty one."""
    begin = found.end() if (found := _WARN.match(text)) else 0
    on_fail: OnFail = "warn" if begin else "fail"
    if not text[begin:].strip():
        raise ConfigError(f"{short(text)!r} has no expression", "say it as 'rows_rejected = 0'")
    over = _OVER_ROWS.match(text, begin)
    if over is None or _closing(text, over.end()) != len(text.rstrip()) - 1:
        return Expectation("numbers", _parsed(text, begin, len(text)), on_fail)
    scope: Scope = "all" if over[1].lower() == "all" else "any"
    return Expectation(scope, _parsed(text, over.end(), len(text.rstrip()) - 1), on_fail)


def expectation_text(expression: str, on_fail: str) -> str:
    """Return the text of an expectation that a job file writes as a mapping. Raises `ConfigError` for other words."""
    if on_fail not in ("fail", "warn"):
        raise ConfigError(f"on_fail cannot be {short(on_fail)!r}", "say fail or warn")
    return f"warn: {expression}" if on_fail == "warn" else expression


def _parsed(text: str, begin: int, stop: int) -> Expression:
    """Parse a part of a text, with blanks in place of the rest, so that spans are places in the whole text."""
    part = " " * begin + text[begin:stop]
    if not part.strip():
        raise ConfigError(f"{short(text)!r} has no expression", "say it as all(latency < 30)")
    try:
        return parse_expression(part)
    except SpecError as error:
        raise SpecError(error.what, text, error.span, error.do) from None


def _closing(text: str, begin: int) -> int:
    """Return the place of the parenthesis that closes one before ``begin``; -1 where none does."""
    depth = 1
    for place, letter in _outside_quotes(text, begin):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place
    return -1


def _outside_quotes(text: str, begin: int) -> Iterator[tuple[int, str]]:
    quote = ""
    for place in range(begin, len(text)):
        letter = text[place]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            yield place, letter
