"""A row pattern written out: which rows may come next, in order of preference (semantics section 15)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints, Mask
from ...language.patterns import Alternation, Concatenation, FollowedBy, Pattern, Repetition, RowPattern, Symbol
from .found import ANY_ROW, Rows


class Automaton(NamedTuple):
    """P places, each of which takes a row, and W waits, which pass rows over.

    Places are the nodes 0 to P - 1 in the order of the text, waits the nodes P to P + W - 1. P + W is the end.

    ``symbol``: int16 (P,), the number of the symbol of each place, or `ANY_ROW`.
    ``accept``: uint64 (P + W,), the symbols by which a row is taken at a place, or ends a wait, as bits; 0: any row.
    ``bounds``: int64 (P + W + 2,), the entries of each node in ``follow``.
    ``follow``: int32, the nodes that may come next, each once, the most preferred first. Of a place, behind its row:
        places, waits, and as the last the end. Of a wait: the places that may take the row by which it ends. Of the
        end: those with which a match begins: places, and as the last the end, for a match without a row.
    """

    symbol: npt.NDArray[np.int16]
    accept: npt.NDArray[np.uint64]
    bounds: Ints
    follow: npt.NDArray[np.int32]

    @property
    def places(self) -> int:
        return len(self.symbol)

    @property
    def end(self) -> int:
        return len(self.accept)

    @property
    def has_waits(self) -> bool:
        return self.end > self.places

    @property
    def takes_any(self) -> bool:
        """Whether any row may be taken: the pattern has ``.``."""
        return ANY_ROW in self.symbol

    def behind(self, node: int) -> list[int]:
        """Return what may come next of a node."""
        nodes: list[int] = self.follow[self.bounds[node] : self.bounds[node + 1]].tolist()
        return nodes


def automaton_of(pattern: RowPattern) -> Automaton:
    """Write a pattern out. Symbols are numbered as its conditions are."""
    numbers: dict[str | None, int] = {name: number for number, (name, _) in enumerate(pattern.conditions)}
    text = _Text([], [])
    end = _Point()
    start = text.write(pattern.pattern, end)
    begins: dict[_Point, list[_Point]] = {}
    for wait in text.waits:  # those inside of another were written before it
        begins[wait] = _at_once(_reached(wait.ways[0], wait.closes), begins)
    text.places.reverse()
    text.waits.reverse()
    number_of = {point: number for number, point in enumerate((*text.places, *text.waits, end))}
    follow = [_reached(place.ways[0]) for place in text.places]
    follow += [begins[wait] for wait in text.waits]
    follow.append(_at_once(_reached(start), begins))
    symbol = [numbers.get(place.symbol, ANY_ROW) for place in text.places]
    of_place = dict(zip(text.places, symbol, strict=True))
    accept = [_bits([number]) for number in symbol]
    accept += [_bits(of_place[place] for place in begins[wait]) for wait in text.waits]
    return Automaton(
        np.array(symbol, np.int16),
        np.array(accept, np.uint64),
        np.cumsum([0, *map(len, follow)], dtype=np.int64),
        np.array([number_of[point] for points in follow for point in points], np.int32),
    )


def possible(automaton: Automaton, rows: Rows) -> Mask:
    """Return which rows a match may take, bool (n,)."""
    return np.ones(len(rows.symbols), np.bool_) if automaton.takes_any else rows.symbols != 0


def _bits(symbols: Iterable[int]) -> int:
    bits = 0
    for symbol in symbols:
        if symbol == ANY_ROW:
            return 0
        bits |= 1 << symbol
    return bits


@dataclass(slots=True, eq=False)
class _Point:
    """A point between the rows of a pattern that is written out.

    ``ways``: the points that are reached from it, the most preferred first. Of a place: the one behind its row, of a
        wait: the one where what it waits for begins.
    ``symbol``: of a place: its symbol.
    ``is_node``: whether it is a place, a wait or the end.
    ``round``: of an open loop: the point where a round begins.
    ``closes``: where a round ends: its loop, of which ``ways`` are those out of it. Of a wait: the end of what it
        waits for.
    """

    ways: tuple[_Point, ...] = ()
    symbol: str | None = None
    is_node: bool = True
    round: _Point | None = None
    closes: _Point | None = None


@dataclass(frozen=True, slots=True)
class _Text:
    """Writes a pattern out from its end to its begin. ``places``, ``waits``: those written, the last first."""

    places: list[_Point]
    waits: list[_Point]

    def write(self, pattern: Pattern, then: _Point) -> _Point:
        """Return the point where ``pattern`` begins, with ``then`` behind it."""
        match pattern:
            case Symbol(name):
                self.places.append(_Point((then,), name))
                return self.places[-1]
            case Concatenation(parts):
                for part in reversed(parts):
                    then = self.write(part, then)
                return then
            case Alternation(parts):
                ways = [self.write(part, then) for part in reversed(parts)]
                return _Point(tuple(reversed(ways)), is_node=False)
            case FollowedBy(of):
                end = _Point((then,), is_node=False)
                wait = _Point((self.write(of, end),), closes=end)
                self.waits.append(wait)
                return wait
            case Repetition():
                return self._rounds(pattern, then)

    def _rounds(self, pattern: Repetition, then: _Point) -> _Point:
        def choice(more: _Point) -> tuple[_Point, ...]:
            return (then, more) if pattern.is_reluctant else (more, then)

        begin = then
        if pattern.most is None:
            begin = _Point(is_node=False)
            begin.round = self.write(pattern.of, _Point((then,), is_node=False, closes=begin))
            begin.ways = choice(begin.round)
        else:
            for _ in range(pattern.most - pattern.least):
                begin = _Point(choice(self.write(pattern.of, begin)), is_node=False)
        for _ in range(pattern.least):
            begin = self.write(pattern.of, begin)
        return begin


def _reached(begin: _Point, border: _Point | None = None) -> list[_Point]:
    """Return the places, waits and the end that are reached from a point without a row, the most preferred first.

    What is less preferred than the end is left out, as it is never chosen. Nothing is reached through ``border``.
    """
    found: dict[_Point, None] = {}
    seen = set()
    # with the open loops of which a round has begun since the last row, the innermost last
    stack: list[tuple[_Point, tuple[_Point, ...]]] = [(begin, ())]
    while stack:
        state = stack.pop()
        point, loops = state
        if state in seen or point is border:
            continue
        seen.add(state)
        if point.is_node:
            found[point] = None
            if not point.ways:
                break
        elif point.closes is None:
            for way in reversed(point.ways):
                stack.append((way, (*loops, point) if way is point.round else loops))
        elif loops and loops[-1] is point.closes:  # a round without a row is the last
            stack.append((point.ways[0], loops[:-1]))
        else:
            stack.append((point.closes, loops))
    return list(found)


def _at_once(points: Iterable[_Point], begins: dict[_Point, list[_Point]]) -> list[_Point]:
    """Return the places that may take the row that comes, where no row may be passed over, and the end."""
    return list(dict.fromkeys(place for point in points for place in begins.get(point, [point])))
