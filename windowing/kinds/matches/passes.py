"""Matches of row patterns in two passes: what can still end, from the last row back; then from each start on.

A start takes the first of its choices that can end, then the first of those behind it, and so on: what backtracking
would find, without a step back (semantics section 15). A node is a place, a wait or the end of an `Automaton`; of V
nodes, the tables here say of each row what holds of a node that stands before it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints
from ...support.jit import inline, kernel
from .automaton import Automaton
from .found import AT_END, BY_LIMIT, Matches, Rows

Words = npt.NDArray[np.uint64]
"""Sets of nodes: node v is bit ``v % 64`` of word ``v // 64`` of a row."""
Table = npt.NDArray[np.int32]

_NEVER: Final = 2**31 - 1
"""A row behind all rows."""
_LEAST_BLOCK: Final = 4096


def find_matches(automaton: Automaton, rows: Rows, overlapping: bool) -> Matches:
    """Return the matches in the rows of all keys. ``overlapping``: the next may begin behind the first row of one."""
    has_limit = bool(rows.limit)
    clock = np.asarray(rows.clock) if has_limit else np.empty(0, np.int64)
    limit, now = clock.dtype.type(rows.limit or 0), clock.dtype.type(rows.now or 0)
    return Matches(*_find(automaton, rows.bounds, rows.symbols, clock, has_limit, limit, now, overlapping))


class _Tables(NamedTuple):
    """What is known of the m rows of a block, and of the place behind them.

    Without a limit:

    ``can``: (m + 1, V / 64), the nodes from which the end can be reached.
    ``given_up``: the same, the nodes that are on ways which starts so far preferred to what they found.

    With a limit:

    ``ends``: (m + 1, V), the earliest row with which a match ends, or `_NEVER`.
    ``deaths``: (m + 1, V), the row at which the last way on fails; `_NEVER`: one ends, or is open behind all rows.

    ``stops``: (m + 1, W), the row that ends a wait. Only with ``overlapping``: else no row is passed over twice.
    """

    can: Words
    given_up: Words
    ends: Table
    deaths: Table
    stops: Table


class _Found(NamedTuple):
    """Room for matches, as in `Matches`, and for their entries."""

    key: Ints
    stop: Ints
    decided: Ints
    limit: Any
    row: Ints
    symbol: npt.NDArray[np.int16]


@inline
def _fits(accept: Any, bits: Any) -> Any:
    """Whether a row is taken at a place, or ends a wait."""
    return accept == 0 or (accept & bits) != 0


@inline
def _has(words: Any, v: Any) -> Any:
    return (words[v >> 6] >> np.uint64(v & 63)) & np.uint64(1) != 0


@inline
def _add(words: Any, v: Any) -> None:
    words[v >> 6] |= np.uint64(1) << np.uint64(v & 63)


@inline
def _meet(one: Any, other: Any) -> Any:
    for k in range(len(one)):  # noqa: SIM110 - generators do not compile
        if one[k] & other[k] != 0:
            return True
    return False


@kernel
def _find_open_ways(automaton: Automaton, follow: Words, bits: Words, tables: _Tables) -> None:
    """Fill in ``can`` for m rows, of which ``bits`` are the symbols, and clear ``given_up``."""
    accept, places, end = automaton.accept, len(automaton.symbol), len(automaton.accept)
    can, m = tables.can, len(bits)
    tables.given_up[: m + 1] = 0
    can[m] = 0
    _add(can[m], end)
    for i in range(m - 1, -1, -1):
        can[i] = 0
        _add(can[i], end)
        for v in range(places):
            if _fits(accept[v], bits[i]) and _meet(follow[v], can[i + 1]):
                _add(can[i], v)
        for v in range(places, end):
            if _meet(follow[v], can[i]) if _fits(accept[v], bits[i]) else _has(can[i + 1], v):
                _add(can[i], v)


@kernel
def _find_ends(automaton: Automaton, bits: Words, tables: _Tables) -> None:
    """Fill in ``ends`` and ``deaths`` for m rows, of which ``bits`` are the symbols."""
    accept, places, end = automaton.accept, len(automaton.symbol), len(automaton.accept)
    bounds, follow = automaton.bounds, automaton.follow
    ends, deaths, m = tables.ends, tables.deaths, len(bits)
    ends[m], deaths[m] = _NEVER, _NEVER
    ends[m, end] = m - 1
    for i in range(m - 1, -1, -1):
        ends[i, end], deaths[i, end] = i - 1, _NEVER
        for v in range(end):
            if _fits(accept[v], bits[i]):
                at = i + 1 if v < places else i
                earliest, last = np.int32(_NEVER), np.int32(i)
                for entry in range(bounds[v], bounds[v + 1]):
                    earliest = min(earliest, ends[at, follow[entry]])
                    last = max(last, deaths[at, follow[entry]])
                ends[i, v], deaths[i, v] = earliest, last
            elif v < places:
                ends[i, v], deaths[i, v] = _NEVER, i
            else:
                ends[i, v], deaths[i, v] = ends[i + 1, v], deaths[i + 1, v]


@kernel
def _find_stops(automaton: Automaton, bits: Words, stops: Table) -> None:
    """Fill in ``stops`` for m rows, of which ``bits`` are the symbols."""
    places, m = len(automaton.symbol), len(bits)
    stops[m] = _NEVER
    for i in range(m - 1, -1, -1):
        for w in range(stops.shape[1]):
            stops[i, w] = i if _fits(automaton.accept[places + w], bits[i]) else stops[i + 1, w]


@kernel
def _give_up(automaton: Automaton, follow: Words, bits: Words, given_up: Words, ways: Words, way: int, i: int) -> int:
    """Return the row of m at which the last way from node ``way`` before row ``i`` fails; m: it is open behind them.

    Ways that were given up before are not gone again: they failed at a row that is known. -1: all ways are such.
    So all calls together take as many steps as there are nodes in ``given_up``. ``ways``: (2, .), scratch.
    """
    accept, places, m = automaton.accept, len(automaton.symbol), len(bits)
    now, then = ways[0], ways[1]
    now[:] = 0
    _add(now, way)
    while i < m:
        is_new, is_open = False, False
        for k in range(len(now)):
            now[k] &= ~given_up[i, k]
            given_up[i, k] |= now[k]
            is_new |= now[k] != 0
            then[k] = 0
        if not is_new:
            return -1
        for v in range(len(accept)):
            if not _has(now, v):
                continue
            if not _fits(accept[v], bits[i]):
                if v >= places:
                    _add(then, v)
                    is_open = True
                continue
            if v < places:
                then |= follow[v]
                is_open = True
                continue
            for entry in range(automaton.bounds[v], automaton.bounds[v + 1]):
                place = automaton.follow[entry]
                if _fits(accept[place], bits[i]):
                    then |= follow[place]
                    is_open = True
        if not is_open:
            return i
        now, then = then, now
        i += 1
    return m


@kernel
def _words_of(automaton: Automaton) -> Words:
    """Return what may come next of each node as a set, (V, V / 64)."""
    nodes = len(automaton.accept) + 1
    words = np.zeros((nodes, (nodes + 63) // 64), np.uint64)
    for v in range(nodes):
        for entry in range(automaton.bounds[v], automaton.bounds[v + 1]):
            _add(words[v], automaton.follow[entry])
    return words


@kernel
def _room_for(rows: int, nodes: int, waits: int, has_limit: bool) -> _Tables:
    in_words, in_table = (0, rows) if has_limit else (rows, 0)
    words = (nodes + 63) // 64
    return _Tables(
        np.empty((in_words, words), np.uint64),
        np.empty((in_words, words), np.uint64),
        np.empty((in_table, nodes), np.int32),
        np.empty((in_table, nodes), np.int32),
        np.empty((rows, waits), np.int32),
    )


@kernel
def _longer(values: Any) -> Any:
    longer = np.empty(2 * len(values), values.dtype)
    longer[: len(values)] = values
    return longer


@kernel
def _with_room(found: _Found, matches: int, entries: int) -> _Found:
    """Return room for one more match and one more entry."""
    key, stop, decided, limit, row, symbol = found
    if matches == len(key):
        key, stop, decided, limit = _longer(key), _longer(stop), _longer(decided), _longer(limit)
    if entries == len(row):
        row, symbol = _longer(row), _longer(symbol)
    return _Found(key, stop, decided, limit, row, symbol)


@kernel
def _find(  # noqa: PLR0912, PLR0915 - one loop, which follows the rule step by step
    automaton: Automaton,
    keys: Ints,
    symbols: Words,
    clock: Any,
    has_limit: bool,
    limit: Any,
    now: Any,
    overlapping: bool,
) -> tuple[Any, ...]:
    """Return the fields of `Matches`.

    A limit cuts the rows of a key into blocks that overlap: with a start, all rows before its limit are in the block.
    So memory is that of the longest limit. A block has twice the rows of its first limit, so none is seen often.

    ``event``: what decides all starts so far: of row r ``2 * r + 1``, of a limit ``2 * out``, where ``out`` is the
        first row behind it; from ``never`` on nothing but the end of the data.
    """
    accept, places, end = automaton.accept, len(automaton.symbol), len(automaton.accept)
    waits = end - places if overlapping else 0
    words = _words_of(automaton)
    ways = np.empty((2, words.shape[1]), np.uint64)
    tables = _room_for(1, end + 1, waits, has_limit)
    ints = np.empty(16, np.int64)
    found = _Found(ints, ints.copy(), ints.copy(), np.empty(16, clock.dtype), ints.copy(), np.empty(16, np.int16))
    undecided = keys[1:].copy()
    matches = entries = 0
    for key in range(len(keys) - 1):
        start, stop = keys[key], keys[key + 1]
        begin = behind = out = start
        event, event_limit, never, is_over = np.int64(-1), limit, 2 * stop + 1, False
        while start < stop:
            if has_limit:
                while out < stop and clock[out] < clock[start] + limit:
                    out += 1
                is_over = out < stop or clock[start] + limit <= now
            else:
                out = stop
            if out > behind:
                begin, behind = start, max(out, min(stop, start + max(2 * (out - start), _LEAST_BLOCK)))
                if behind - begin >= len(tables.stops):
                    size = max(behind - begin + 1, min(2 * len(tables.stops), stop - begin + 1))
                    tables = _room_for(size, end + 1, waits, has_limit)
                bits = symbols[begin:behind]
                if has_limit:
                    _find_ends(automaton, bits, tables)
                else:
                    _find_open_ways(automaton, words, bits, tables)
                if waits:
                    _find_stops(automaton, bits, tables.stops)
            first, v, i = entries, end, start
            while True:
                chosen = end
                for entry in range(automaton.bounds[v], automaton.bounds[v + 1]):
                    n = automaton.follow[entry]
                    if has_limit:
                        if begin + tables.ends[i - begin, n] < out:
                            chosen = n
                            break
                        death = begin + tables.deaths[i - begin, n]
                    elif _has(tables.can[i - begin], n):
                        chosen = n
                        break
                    elif n < places and i < stop and not _fits(accept[n], symbols[i]):
                        death = i
                    else:
                        bits = symbols[begin:behind]
                        death = begin + _give_up(automaton, words, bits, tables.given_up, ways, n, i - begin)
                    if death < out:
                        event = max(event, 2 * death + 1)
                    elif not is_over:
                        event = never
                    elif event <= 2 * out:
                        event, event_limit = 2 * out, clock[start] + limit
                if chosen == end:
                    break
                v = chosen
                if v < places:
                    found = _with_room(found, matches, entries)
                    found.row[entries], found.symbol[entries] = i, automaton.symbol[v]
                    entries += 1
                    i += 1
                elif overlapping:
                    i = begin + tables.stops[i - begin, v - places]
                else:
                    while not _fits(accept[v], symbols[i]):
                        i += 1
            if event >= never and undecided[key] == stop:
                undecided[key] = start
            start += 1
            if entries == first:
                continue
            event = max(event, 2 * i - 1)
            found.key[matches], found.stop[matches], found.limit[matches] = key, entries, event_limit
            found.decided[matches] = AT_END if event >= never else event // 2 if event % 2 else BY_LIMIT
            matches += 1
            if not overlapping:
                start = i
    bounds = np.zeros(matches + 1, np.int64)
    bounds[1:] = found.stop[:matches]
    return (
        found.key[:matches].copy(),
        bounds,
        found.row[:entries].copy(),
        found.symbol[:entries].copy(),
        found.decided[:matches].copy(),
        found.limit[:matches].copy(),
        undecided,
    )
