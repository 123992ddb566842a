"""The batched clause of the window language: within, every, retain, with unique (section 6)."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from ..errors import Span, SpecError
from ..support.suggest import nearest
from . import spec
from .tokens import Cursor

_CLAUSES: Final = ("within", "every", "retain", "with")
_COMPUTE: Final = "compute it as a column first, or put a name with other characters in double quotes"
_ORDER: Final = "the order is [partition by K] within D [every P] [retain N] [with unique K]"


def read_batched(cursor: Cursor) -> spec.Batched:
    """Parse a batched clause, up to the first token that cannot belong to it. Raises `SpecError`."""
    by = _partition_by(cursor)
    if cursor.skip("within"):
        within, every, retain = _within(cursor)
        return spec.Batched(within, every, retain, False, _unique(cursor), by)
    if not cursor.skip("retain"):
        raise cursor.unknown("clause", ("within", "retain"))
    if cursor.keyword() == "all":
        return _retain_all(cursor, by)
    retain, rows = _retain(cursor)
    return spec.Batched(None, rows, retain, False, _unique(cursor), by)


def stray(cursor: Cursor) -> SpecError:
    """Return (not raise) an error about the token after the end of a batched clause."""
    token = cursor.peek()
    near = nearest(token.text, _CLAUSES) if token.text.lower() not in _CLAUSES else None
    do = _ORDER if near is None else f"did you mean {near!r}?"
    return cursor.error(f"expected the end, found {token}", token.span, do)


def _partition_by(cursor: Cursor) -> tuple[str, ...]:
    if not cursor.skip("partition"):
        return ()
    token = cursor.peek()
    if not cursor.skip("by"):
        raise cursor.error(f"expected 'by' after 'partition', found {token}", token.span, _ORDER)
    columns = [_partition_column(cursor)]
    while cursor.skip(","):
        columns.append(_partition_column(cursor))
    return tuple(columns)


def _partition_column(cursor: Cursor) -> str:
    token = cursor.take()
    column, after = cursor.column(token, "write partition by COLUMN, .."), cursor.peek()
    if after.kind == "symbol" and after.text in "(+-*/%":
        span = Span(token.span.start, after.span.stop)
        raise cursor.error("partition by takes columns, not expressions", span, _COMPUTE)
    return column


def _within(cursor: Cursor) -> tuple[Fraction, Fraction | None, int | None]:
    within = cursor.duration(cursor.take(), "write within 5m")
    every = cursor.duration(cursor.take(), "next to within, every is a duration") if cursor.skip("every") else None
    if not cursor.skip("retain"):
        return within, every, None
    if cursor.keyword() == "all":
        raise cursor.error("retain all stands alone", cursor.peek().span, "leave out either it or within")
    return within, every, cursor.count(cursor.take(), "write retain n")


def _retain(cursor: Cursor) -> tuple[int, int | None]:
    retain = cursor.count(cursor.take(), "write retain n or retain all")
    if not cursor.skip("every"):
        return retain, None
    return retain, cursor.count(cursor.take(), "next to a lone retain, every is a number of rows")


def _retain_all(cursor: Cursor, by: tuple[str, ...]) -> spec.Batched:
    token = cursor.take()
    if by:
        raise cursor.error("retain all takes no 'partition by'", token.span, "leave it out, or use the option --key")
    if cursor.keyword() in {"every", "with"}:
        raise cursor.error(f"retain all takes no {cursor.keyword()!r}", cursor.peek().span, "it stands alone")
    return spec.Batched(retain_all=True)


def _unique(cursor: Cursor) -> str | None:
    if not cursor.skip("with"):
        return None
    token = cursor.peek()
    if not cursor.skip("unique"):
        raise cursor.error(f"expected 'unique' after 'with', found {token}", token.span, _ORDER)
    return cursor.column(cursor.take(), "write with unique COLUMN")
