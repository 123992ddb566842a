"""The rules of tables beside the input: columns of another log or table for its rows, and windows that a table has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, TypeAlias, TypeVar, cast

from ..errors import Span, SpecError
from ..expressions.tokens import quoted
from .tokens import Cursor, column_text, decimal_text

FORM: Final = (
    "write it as NAME=PATH on KEY[=KEY2],.. [asof [forward|nearest] ORDER[=ORDER2] [within D] [strict]] "
    "[take COL [as NAME],..]"
)

DIRECTIONS: Final = ("backward", "forward", "nearest")
"""Which row an as-of takes: the newest at or before, the first at or after, or the nearer of both."""

_BEHIND_ORDER: Final = ("within", "strict", "take")

WINDOWS_FORM: Final = "write it as NAME=PATH [on KEY[=KEY2],..] from START to END [take COL [as NAME],..]"

_HEAD = r"""\s*(?P<name>[^\W\d]\w*)?\s*(?P<sign>=)?\s*
    (?P<path>'(?:[^']|'')*'|"(?:[^"]|"")*"|.*?)(?=\s+(?:%s)\b|\s*\Z)"""
_FLAGS = re.VERBOSE | re.DOTALL | re.IGNORECASE
_ENRICH_HEAD, _WINDOWS_HEAD = (re.compile(_HEAD % words, _FLAGS) for words in ("on", "on|from"))
_ENRICH_PATH, _WINDOWS_PATH = (
    re.compile(rf"(?!['\"])(?!.*\s+(?:{words})\b).*\S", re.DOTALL | re.IGNORECASE) for words in ("on", "on|from")
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns that are compared: ``left`` of the input, ``right`` of the enrich table."""

    left: str
    right: str

    def __str__(self) -> str:
        left = column_text(self.left)
        return left if self.left == self.right else f"{left}={column_text(self.right)}"


@dataclass(frozen=True, slots=True)
class AsOf:
    """The order of an as-of enrich.

    ``order``: the order columns.
    ``within``: the largest distance of a match, inclusive, in seconds or units of a number; None: any.
    ``strict``: whether a match is before or after the row, and not at the same order value.
    ``direction``: one of `DIRECTIONS`.
    """

    order: Pair
    within: Fraction | None = None
    strict: bool = False
    direction: str = DIRECTIONS[0]

    def __str__(self) -> str:
        within = "" if self.within is None else f" within {decimal_text(self.within)}"
        order, left = str(self.order), self.order.left
        if self.direction != DIRECTIONS[0]:
            if left.lower() in _BEHIND_ORDER:  # bare it would make the direction a column
                order = quoted(left, '"') + order[len(left) :]
            order = f"{self.direction} {order}"
        return f"asof {order}{within}{' strict' if self.strict else ''}"


@dataclass(frozen=True, slots=True)
class Taken:
    """A column that is taken from the enrich table.

    ``column``: its name there.
    ``name``: its name in the rows; None: ``NAME_column``.
    """

    column: str
    name: str | None = None

    def __str__(self) -> str:
        return column_text(self.column) + (f" as {column_text(self.name)}" if self.name is not None else "")


@dataclass(frozen=True, slots=True)
class Enrichment:
    """A request to enrich rows. Its ``str`` is its canonical text.

    ``name``: its name, with which the names of its columns begin.
    ``path``: where the enrich table is.
    ``keys``: the columns that must be equal, at least one pair.
    ``asof``: its order; None for a plain lookup.
    ``take``: the columns to take; None: all but keys.
    """

    name: str
    path: str
    keys: tuple[Pair, ...]
    asof: AsOf | None = None
    take: tuple[Taken, ...] | None = None

    @property
    def clauses(self) -> str:
        asof = f" {self.asof}" if self.asof is not None else ""
        take = f" take {', '.join(map(str, self.take))}" if self.take is not None else ""
        return f"on {', '.join(map(str, self.keys))}{asof}{take}"

    def __str__(self) -> str:
        return f"{self.name}={path_text(self.path, _ENRICH_PATH)} {self.clauses}"


@dataclass(frozen=True, slots=True)
class WindowsFrom:
    """A request for the windows of a table, each row of it a window. Its ``str`` is its canonical text.

    ``name``: what windows call the table: ``table(NAME)``; with it the names of its columns begin.
    ``path``: where the table is.
    ``keys``: the columns whose values say which keys a window is for; none: it is for every key.
    ``start``, ``end``: the columns with the bounds.
    ``take``: the columns that the result gets; None: all but keys and bounds.
    ``of_unit``: whether it is the table of one unit, and those of units add up; else it is the whole list.
    """

    name: str
    path: str
    keys: tuple[Pair, ...]
    start: str
    end: str
    take: tuple[Taken, ...] | None = None
    of_unit: bool = False

    @property
    def clauses(self) -> str:
        keys = f"on {', '.join(map(str, self.keys))} " if self.keys else ""
        take = f" take {', '.join(map(str, self.take))}" if self.take is not None else ""
        return f"{keys}from {column_text(self.start)} to {column_text(self.end)}{take}"

    def __str__(self) -> str:
        return f"{self.name}={path_text(self.path, _WINDOWS_PATH)} {self.clauses}"


BesideRows: TypeAlias = Enrichment | WindowsFrom
"""A table that a job reads beside its input."""
T = TypeVar("T")


def with_path(table: T, path: str) -> T:
    """Return the request for a table with another path."""
    found: T = replace(cast("Any", table), path=path)
    return found


def at_unit(table: T, path: str) -> T:
    """Return the request for the table that one unit has for itself, at its path."""
    return with_path(replace(table, of_unit=True) if isinstance(table, WindowsFrom) else table, path)


def path_text(path: str, bare: re.Pattern[str]) -> str:
    """Return a path as a request has it: as it is where ``bare`` takes it, else in quotes."""
    return path if bare.fullmatch(path) else quoted(path, "'")


def unquoted(path: str) -> str:
    """Return the path that a request says, perhaps in quotes."""
    is_quoted = path[0] in "'\"" and len(path) > 1 and path[-1] == path[0]
    return path[1:-1].replace(path[0] * 2, path[0]) if is_quoted else path


def parse_enrichment(text: str) -> Enrichment:
    """Parse an enrichment, written as `FORM` says. ``backward`` may be said, too.

    A path that holds the word ``on`` is written in quotes. Raises `SpecError` with the span at fault.
    """
    name, path, start = _head(text, _ENRICH_HEAD, "an enrichment", FORM)
    cursor = Cursor(text, start)
    if not cursor.skip("on"):
        raise cursor.error("expected 'on' and keys behind the path", Span(start, start + 1), FORM)
    keys = cursor.series(read_pair)
    asof = None
    if cursor.skip("asof"):
        direction = _direction(cursor)
        order = read_pair(cursor)
        within = cursor.duration(cursor.take(), "write it as within 5m", zero=True) if cursor.skip("within") else None
        asof = AsOf(order, within, cursor.skip("strict"), direction)
    return Enrichment(name, path, keys, asof, read_take(cursor, keys, FORM))


def parse_windows(text: str, has_path: bool = True) -> WindowsFrom:
    """Parse ``NAME=PATH [on KEY[=KEY2],..] from START to END [take COL [as NAME],..]``.

    A path that holds the word ``on`` or ``from`` is written in quotes. ``has_path``: whether there is one; a table in
    memory has ``NAME`` alone. Raises `SpecError` with the span at fault.
    """
    if has_path:
        name, path, start = _head(text, _WINDOWS_HEAD, "a table of windows", WINDOWS_FORM)
        cursor = Cursor(text, start)
    else:
        cursor, path = Cursor(text), ""
        name = cursor.column(cursor.take(), WINDOWS_FORM.replace("=PATH", ""))
    keys = cursor.series(read_pair) if cursor.skip("on") else ()
    bounds = list[str]()
    for word in ("from", "to"):
        if not cursor.skip(word):
            found = cursor.peek()
            raise cursor.error(f"expected {word!r} and a column, found {found}", found.span, WINDOWS_FORM)
        bounds.append(cursor.column(cursor.take(), WINDOWS_FORM))
    return WindowsFrom(name, path, keys, bounds[0], bounds[1], read_take(cursor, keys, WINDOWS_FORM))


def read_take(cursor: Cursor, keys: Sequence[Pair], form: str) -> tuple[Taken, ...] | None:
    """Read ``take COL [as NAME],..`` where it is, and the end of a request; ``keys``: those of the right, each once."""
    take = cursor.series(_taken) if cursor.skip("take") else None
    if cursor.peek().kind != "end":
        raise cursor.error(f"expected the end, found {cursor.peek()}", cursor.peek().span, form)
    names = [taken.name or taken.column for taken in take or ()]
    for each, what in (([pair.right for pair in keys], "key"), (names, "taken")):
        twice = next((name for name in each if each.count(name) > 1), None)
        if twice is not None:
            at = cursor.source.rindex(twice)
            raise cursor.error(f"column {twice!r} is {what} twice", Span(at, at + len(twice)), "name it once")
    return take


def _head(text: str, form: re.Pattern[str], who: str, do: str) -> tuple[str, str, int]:
    found = form.match(text)
    assert found is not None
    for group, what in (("name", "a name"), ("sign", "'='"), ("path", "a path")):
        if not found[group]:
            at = found.end() if found.start(group) < 0 else found.start(group)
            at = min(at, len(text)) if group == "path" else len(text) - len(text.lstrip()) + len(found["name"] or "")
            raise SpecError(f"{who} begins with NAME=PATH; expected {what}", text, Span(at, at + 1), do)
    return found["name"], unquoted(found["path"]), found.end()


def _direction(cursor: Cursor) -> str:
    """Read a direction: a word of them with a column behind it, for alone it is a column itself."""
    word, behind = cursor.keyword(), cursor.peek(1)
    is_column = behind.kind in ("word", "quoted") and cursor.keyword(1) not in _BEHIND_ORDER
    if word not in DIRECTIONS or not is_column:
        return DIRECTIONS[0]
    cursor.take()
    return word


def read_pair(cursor: Cursor, form: str = FORM) -> Pair:
    """Read ``COL[=COL2]``."""
    left = cursor.column(cursor.take(), form)
    return Pair(left, cursor.column(cursor.take(), form) if cursor.skip("=") else left)


def _taken(cursor: Cursor) -> Taken:
    column = cursor.column(cursor.take(), FORM)
    return Taken(column, cursor.column(cursor.take(), FORM) if cursor.skip("as") else None)
