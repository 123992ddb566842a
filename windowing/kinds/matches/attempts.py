"""A start without a match: how far it comes, and what would have had to come there (semantics section 15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from .automaton import Automaton
from .found import Rows
from .matched import TRUE, Readers, says, see_row


class Attempt(NamedTuple):
    """The last row that the ways from a start meet.

    ``row``: the row that none of them takes; where some are open behind all rows, or at the limit, the row there.
    ``is_open``: whether some are.
    ``symbols``: the symbols of which one would have had to come there, by number, `ANY_ROW` among them, in the order of
        the pattern.
    """

    row: int
    is_open: bool
    symbols: list[int]


_Way = tuple[int, bytes]
"""A node, and the words that conditions read of the rows so far."""


def attempt(automaton: Automaton, rows: Rows, readers: Readers | None, start: int, stop: int) -> Attempt:
    """Follow all ways from a start that has no match, over the rows before ``stop``.

    ``stop``: the end of the rows of the key, or the first row behind the limit of the start. ``readers``: of conditions
    that read matched rows; None: there are none. Takes steps for each row and way.
    """
    words = 0 if readers is None else int(readers.offset[-1])
    ways: Iterable[_Way] = [(automaton.end, np.zeros(words, np.int64).tobytes())]
    for row in range(start, stop):
        taken = dict.fromkeys(each for way in ways for each in _behind(automaton, rows, readers, way, row))
        if not taken:
            return Attempt(row, False, _awaited(automaton, ways))
        ways = taken
    return Attempt(stop, True, _awaited(automaton, ways))


def _behind(automaton: Automaton, rows: Rows, readers: Readers | None, way: _Way, row: int) -> Iterator[_Way]:
    """Yield the ways behind a row of one that meets it."""
    for node in _next(automaton, way[0]):
        places = _places(automaton, node)
        met = [(place, _with_row(automaton, rows, readers, way, place, row)) for place in places]
        taken = [(place, words) for place, words in met if words is not None]
        if taken or node < automaton.places:
            yield from taken
        else:
            yield node, way[1]


def _next(automaton: Automaton, node: int) -> list[int]:
    """Return the places and waits that meet the row that comes."""
    if automaton.places <= node < automaton.end:
        return [node]
    return [each for each in automaton.behind(node) if each != automaton.end]


def _places(automaton: Automaton, node: int) -> list[int]:
    return [node] if node < automaton.places else automaton.behind(node)


def _with_row(
    automaton: Automaton, rows: Rows, readers: Readers | None, way: _Way, place: int, row: int
) -> bytes | None:
    """Return the words of a way with a row that it takes at a place; None: it does not take it."""
    symbol, words = int(automaton.symbol[place]), np.frombuffer(way[1], np.int64).copy()
    if symbol >= 0 and not int(rows.symbols[row]) >> symbol & 1:
        return None
    if readers is not None:
        see_row(readers, words, symbol, row)
        if symbol >= 0 and readers.program[symbol] >= 0 and says(readers, symbol, words, row) != TRUE:
            return None
    return words.tobytes()


def _awaited(automaton: Automaton, ways: Iterable[_Way]) -> list[int]:
    nodes = {node for way in ways for node in _next(automaton, way[0])}
    places = {place for node in nodes for place in _places(automaton, node)}
    return list(dict.fromkeys(int(automaton.symbol[place]) for place in sorted(places)))
