"""What came of cases, as text for people: a line for each case, and of those that fail what differs, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....windowing.errors import shown
from ....windowing.support.addresses.redaction import redacted
from ...console.amounts import count_of
from ...console.table import cell_width, cut_to, padded
from .compare import Mismatch, RowPair
from .outcome import CaseOutcome

_RED, _GREEN, _BOLD, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"
_MOST_PAIRS = 20
_WIDEST = 40


def outcome_lines(outcome: CaseOutcome, is_coloured: bool) -> Iterator[str]:
    """Yield the lines on one case."""
    word = _paint("ok  ", _GREEN, is_coloured) if outcome.passes else _paint("FAIL", _RED + _BOLD, is_coloured)
    yield f"{word}  {_clean(outcome.case.name)}  ({outcome.seconds * 1000:,.0f} ms)"
    if outcome.error is not None:
        yield from (f"      {_clean(line)}" for line in outcome.error.splitlines())
    for mismatch in outcome.mismatches:
        yield f"      {_clean(headline(mismatch))}"
        yield from (f"      {line}".rstrip() for line in difference(mismatch, is_coloured))
    if outcome.drawing is not None:
        yield ""
        yield from (f"      {_clean(line)}".rstrip() for line in outcome.drawing.rstrip().splitlines())
        yield ""


def closing_line(outcomes: Sequence[CaseOutcome], path: str) -> str:
    """Return the last line: how many cases there were, and how many of them failed."""
    failed = sum(not outcome.passes for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    words = f"{failed:,} of them not as expected" if failed else "all as expected"
    return f"{_clean(path)}: {count_of(len(outcomes), 'case')}, {words} ({seconds * 1000:,.0f} ms)"


def headline(mismatch: Mismatch) -> str:
    """Return in words how many rows are not as expected."""
    if not mismatch.pairs:
        return f"{mismatch.what}: all are there, in another order"
    differ = sum(pair.expected is not None and pair.found is not None for pair in mismatch.pairs)
    missing = sum(pair.found is None for pair in mismatch.pairs)
    unexpected = sum(pair.expected is None for pair in mismatch.pairs)
    counts = ((differ, "differ" if differ != 1 else "differs"), (missing, "missing"), (unexpected, "not expected"))
    return f"{mismatch.what}: {', '.join(f'{n} {word}' for n, word in counts if n)}, {mismatch.same} as expected"


def difference(mismatch: Mismatch, is_coloured: bool) -> list[str]:
    """Return the rows that differ as a table: ``-`` is expected, ``+`` was found, ``^`` marks cells that differ."""
    if not mismatch.pairs:
        return []
    pairs = mismatch.pairs[:_MOST_PAIRS]
    rows = [("  ", mismatch.columns), *(line for pair in pairs for line in _lines(pair))]
    cells = [[cut_to(_clean(cell), _WIDEST) for cell in row] for _, row in rows]
    widths = [max(map(cell_width, column)) for column in zip(*cells, strict=True)]
    marks = _marks(pairs, widths)
    lines = []
    for number, ((sign, _), row) in enumerate(zip(rows, cells, strict=True)):
        text = sign + "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        lines.append(_paint(text, {"- ": _RED, "+ ": _GREEN}.get(sign, ""), is_coloured))
        if number in marks:
            lines.append(marks[number])
    more = len(mismatch.pairs) - len(pairs)
    return [*lines, *([f"  and {count_of(more, 'row')} more"] if more else [])]


def _lines(pair: RowPair) -> Iterator[tuple[str, tuple[str, ...]]]:
    if pair.expected is not None:
        yield "- ", pair.expected
    if pair.found is not None:
        yield "+ ", pair.found


def _marks(pairs: Sequence[RowPair], widths: Sequence[int]) -> dict[int, str]:
    """Return, by the line of the table above it, the line that points at the cells of a pair that differ."""
    marks, at = {}, 0
    for pair in pairs:
        at += (pair.expected is not None) + (pair.found is not None)
        if any(pair.differs):
            signs = (
                "^" * width if differs else " " * width for differs, width in zip(pair.differs, widths, strict=True)
            )
            marks[at] = ("  " + "  ".join(signs)).rstrip()
    return marks


def _clean(text: str) -> str:
    return redacted(shown(text))


def _paint(text: str, colour: str, is_coloured: bool) -> str:
    return f"{colour}{text}{_PLAIN}" if is_coloured and colour else text
