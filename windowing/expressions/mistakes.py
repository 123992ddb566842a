"""Errors about a place in an expression, which stay readable however long the expression is."""

from __future__ import annotations

from typing import Final

from ..errors import Span, SpecError

_MOST: Final = 160  # characters of the source that a message shows


def mistake(what: str, source: str, span: Span, do: str | None = None) -> SpecError:
    """Return (not raise) an error about a span of a source; of a long source it shows what is around the span."""
    if len(source) <= _MOST:
        return SpecError(what, source, span, do)
    start = max(0, min(span.start - _MOST // 2, len(source) - _MOST))
    excerpt = source[start : start + _MOST]
    before, after = "..." if start else "", "..." if start + _MOST < len(source) else ""
    shift = len(before) - start
    stop = min(span.stop, start + _MOST)
    return SpecError(what, f"{before}{excerpt}{after}", Span(span.start + shift, stop + shift), do)
