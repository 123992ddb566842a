"""The call rule of the language: a name and its arguments in parentheses, as tokens without values yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from ..errors import Span, SpecError
from ..expressions.tokens import Token
from .tokens import Cursor, Times

_T = TypeVar("_T")
_OPENING, _CLOSING, _SIGNS = frozenset("([{"), frozenset(")]}"), frozenset("(+-")


class Form(NamedTuple):
    """The form of a call.

    ``text``: how the call is written, for messages.
    ``least``: the smallest number of arguments.
    ``most``: the largest number of arguments.
    ``takes``: the number of arguments in words, for messages.
    ``named``: whether arguments may be given by name.
    ``column``: whether the first argument is a column.
    ``words``: what the first argument can be, where it is one of a few words.
    ``expressions``: the first argument from which on arguments may be expressions, of more than one token; None: none.
    ``names``: the names of arguments that may be expressions, in which ``a = 5`` is no name.
    """

    text: str
    least: int = 1
    most: int = 1
    takes: str = "1 argument"
    named: bool = False
    column: bool = False
    words: tuple[str, ...] = ()
    expressions: int | None = None
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.text.partition("(")[0]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, ``value`` or ``name=value``.

    ``name``: its name, or None.
    ``value``: its value.
    """

    name: Token | None
    value: Token


@dataclass(frozen=True, slots=True)
class Call:
    """A call with a valid number of arguments.

    ``arguments``: the arguments, in the order of the text.
    ``do``: the advice of error messages, which shows the form of the call.
    """

    arguments: tuple[Argument, ...]
    do: str

    @property
    def first(self) -> Token:
        return self.arguments[0].value

    @property
    def second(self) -> Token:
        return self.arguments[1].value


class Distance(NamedTuple):
    """An amount that differences of a column are compared with.

    ``column``: the column; None: that of the clock.
    ``amount``: a number, or the operand that says it row by row.
    """

    column: str | None
    amount: Any


class Policy:
    """A policy: what ends a tumbling window, or what evicts rows of a sliding window or triggers it.

    Each is a frozen value; its ``str`` is its place in the canonical text of a spec.
    """

    __slots__ = ()

    @property
    def alternatives(self) -> tuple[Policy, ...]:
        """The policies of which the first ends a window: this one, or those between ``or``."""
        return (self,)

    @property
    def looks_at_window_before(self) -> bool:
        """Whether an amount asks for the window before (section 13)."""
        return False

    @property
    def operands(self) -> tuple[Any, ...]:
        """What the policy takes that may be an expression: `windowing.language.conditions.Operand`."""
        return ()

    @property
    def distances(self) -> tuple[Distance, ...]:
        return ()

    @property
    def zones(self) -> tuple[str, ...]:
        return ()

    @property
    def opening(self) -> str | None:
        """What the policy says of where windows begin, a sentence; None: nothing."""
        return None

    @property
    def stretch(self) -> str | None:
        """What its windows are, where these are stretches of the clock, as a part of a sentence; None: they are not."""
        return None

    def ending(self, times: Times) -> str:
        """Return when the policy ends a window, as the rest of a sentence that begins with ``a window ends``.

        It is empty where the policy ends none.
        """
        raise NotImplementedError(times)


class Rule(NamedTuple, Generic[_T]):
    """How a call is written and read.

    ``form``: its form.
    ``read``: the function that makes its value of the call; its last argument is the smallest ``count``.
    ``closed_by``: why its windows are emitted; empty: its own name says so.
    """

    form: Form
    read: Callable[[Cursor, Call, int], _T]
    closed_by: str = ""

    @property
    def reason(self) -> str:
        return self.closed_by or self.form.name


def read_call(cursor: Cursor, form: Form) -> Call:
    """Parse a call of a policy, an option or a setting; the cursor is at its name.

    Raises `SpecError` for too few or too many arguments, and for named ones where the form has none.
    """
    start = cursor.take().span.start
    do = f"write it as {form.text}"
    arguments = read_arguments(cursor, do, form)
    if not form.least <= len(arguments) <= form.most:
        what = f"{form.name} takes {form.takes}, found {len(arguments)}"
        raise cursor.error(what, Span(start, cursor.last.span.stop), do)
    named = [argument.name for argument in arguments if argument.name is not None]
    if named and not form.named and not form.names:
        raise cursor.error(f"there is no argument called {named[0]}", named[0].span, do)
    return Call(arguments, do)


def read_arguments(cursor: Cursor, do: str, form: Form | None = None) -> tuple[Argument, ...]:
    """Parse any number of arguments in parentheses; ``do``: the advice of a `SpecError`.

    ``form``: says which arguments may be expressions; None: each is one token.
    """
    opening = cursor.peek()
    if not cursor.skip("("):
        raise cursor.error(f"expected '(', found {opening}", opening.span, do)
    if cursor.skip(")"):
        return ()
    expressions, names = (form.expressions, form.names) if form is not None else (None, ())
    found: list[Argument] = []
    while not found or cursor.skip(","):
        is_operand = expressions is not None and len(found) >= expressions
        name: Token | None = None
        # In an expression ``a = 5`` has no name, unless the form has one like that.
        if cursor.at("=", 1) and (cursor.keyword() in names if is_operand else cursor.keyword()):
            name = cursor.take()
            cursor.take()
        if not is_operand and cursor.peek().kind in {"symbol", "end"}:
            raise _broken(cursor, opening, "expected an argument", do)
        found.append(Argument(name, read_expression(cursor, opening, do) if is_operand else cursor.take()))
    if not cursor.skip(")"):
        raise _broken(cursor, opening, "expected ',' or ')'", do)
    return tuple(found)


def read_expression(cursor: Cursor, opening: Token, do: str) -> Token:
    """Take the tokens up to the comma or the parenthesis behind them as one; ``opening``: the parenthesis around them.

    Raises `SpecError` where there is none, with the advice ``do``.
    """
    first, depth, count = cursor.peek(), 0, 0
    if first.kind == "symbol" and first.text not in _SIGNS:
        raise _broken(cursor, opening, "expected an argument", do)
    while cursor.peek().kind != "end" and (depth or not (cursor.at(",") or cursor.at(")"))):
        text = cursor.take().text
        depth += (text in _OPENING) - (text in _CLOSING)
        count += 1
    if not count or cursor.peek().kind == "end":
        raise _broken(cursor, opening, "expected an argument", do)
    if count == 1:
        return first
    span = Span(first.span.start, cursor.last.span.stop)
    return Token("expression", cursor.source[span.start : span.stop], span)


def _broken(cursor: Cursor, opening: Token, expected: str, do: str) -> SpecError:
    token = cursor.peek()
    if token.kind == "end":
        return cursor.error("this parenthesis is never closed", opening.span, do)
    if cursor.last is opening and token.text == "*":
        return cursor.error("'*' is no column", token.span, "write count() to count rows")
    if token.kind == "symbol" and token.text not in ",)":
        do = f"{do}, and put a name with other characters in double quotes"
    return cursor.error(f"{expected}, found {token}", token.span, do)
