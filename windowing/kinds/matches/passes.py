"""Matches of row patterns in two passes: what can still end, from the last row back; then from each start on.

A start takes the first of its choices that can end, then the first of those behind it, and so on: what backtracking
would find, without a step back (semantics section 15). A node is a place, a wait or the end of an `Automaton`; of V
nodes, the tables here say of each row what holds of a node that stands before it.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...aggregates.inputs import frozen
from ...columns.arrays import Ints
from ...support.jit import frugal_kernel, inline
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
    has_limit, keys = bool(rows.limit), len(rows.bounds) - 1
    clock = np.asarray(rows.clock) if has_limit else np.empty(0, np.int64)
    limit, now = clock.dtype.type(rows.limit or 0), clock.dtype.type(rows.now or 0)
    waits = automaton.end - automaton.places if overlapping else 0
    follow = _words_of(automaton)
    ways = np.empty((2, follow.shape[1]), np.uint64)
    at = _Course(*(np.zeros(1, clock.dtype if name == "limit" else np.int64) for name in _Course._fields))
    at.event[0] = -1
    # enough where no row is in two matches; what is not written takes no memory
    found, undecided = _room_to_find(len(rows.symbols), clock.dtype), np.array(rows.bounds[1:], np.int64)
    tables = _room_for(2, automaton.end + 1, waits, has_limit)
    bounds, symbols, clock = (frozen(values) for values in (rows.bounds, rows.symbols, clock))
    while True:
        _find(*(automaton, follow, ways, bounds, symbols, clock, limit, now, overlapping), at, tables, found, undecided)
        if at.key[0] == keys:
            break
        if at.missing[0]:
            longest = int(np.diff(rows.bounds).max()) + 1
            size = max(int(at.missing[0]), min(2 * len(tables.stops), longest))
            tables = _room_for(size, automaton.end + 1, waits, has_limit)
        else:
            n = len(found.row)
            larger = _room_to_find(2 * n + int(at.behind[0] - at.begin[0]), clock.dtype)
            for new, old in zip(larger, found, strict=True):
                new[:n] = old
            found = larger
    matches, entries = int(at.matches[0]), int(at.entries[0])
    return Matches(
        found.key[:matches],
        np.append(0, found.stop[:matches]),
        found.row[:entries],
        found.symbol[:entries],
        found.decided[:matches],
        found.limit[:matches],
        undecided,
    )


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
    """Room for matches and for their entries, as in `Matches`. ``stop``: the end of the entries of each."""

    key: Ints
    stop: Ints
    decided: Ints
    limit: Any
    row: Ints
    symbol: npt.NDArray[np.int16]


class _Course(NamedTuple):
    """Where the forward pass stands, (1,) each.

    ``key``: the key. ``begin``, ``behind``: the rows of the block, of which there are tables.
    ``start``: the next start. ``out``: the first row behind its limit, or behind that of the start before.
    ``event``: what decides all starts so far: of row r ``2 * r + 1``, of a limit ``2 * out``; from ``2 * stop + 1``
        on, where ``stop`` is the end of the key, nothing but the end of the data does.
    ``limit``: the last limit that is among that.
    ``matches``, ``entries``: how many are found.
    ``missing``: how many rows the tables must have for the next block, where they have not.
    """

    key: Ints
    begin: Ints
    behind: Ints
    start: Ints
    out: Ints
    event: Ints
    limit: Any
    matches: Ints
    entries: Ints
    missing: Ints


def _words_of(automaton: Automaton) -> Words:
    """Return what may come next of each node as a set, (V, V / 64)."""
    nodes, v = len(automaton.bounds) - 1, automaton.follow
    words = np.zeros((nodes, (nodes + 63) // 64), np.uint64)
    owners = np.repeat(np.arange(nodes), np.diff(automaton.bounds))
    np.bitwise_or.at(words, (owners, v >> 6), np.uint64(1) << (v & 63).astype(np.uint64))
    return words


def _room_for(rows: int, nodes: int, waits: int, has_limit: bool) -> _Tables:
    words, table = ((0, (nodes + 63) // 64), (rows, nodes)) if has_limit else ((rows, (nodes + 63) // 64), (0, nodes))
    sets, times = (np.empty((2, *words), np.uint64), np.empty((2, *table), np.int32))
    return _Tables(sets[0], sets[1], times[0], times[1], np.empty((rows, waits), np.int32))


def _room_to_find(size: int, clock: npt.DTypeLike) -> _Found:
    ints = np.empty((4, size), np.int64)
    return _Found(ints[0], ints[1], ints[2], np.empty(size, clock), ints[3], np.empty(size, np.int16))


@inline
def _fits(accept: Any, bits: Any) -> Any:
    """Whether a row is taken at a place, or ends a wait."""
    return accept == 0 or accept & bits != 0


@inline
def _has(words: Any, i: Any, v: Any) -> Any:
    return (words[i, v >> 6] >> np.uint64(v & 63)) & np.uint64(1) != 0


@inline
def _add(words: Any, i: Any, v: Any) -> None:
    words[i, v >> 6] |= np.uint64(1) << np.uint64(v & 63)


@inline
def _meet(words: Any, i: Any, others: Any, j: Any) -> Any:
    common = words[i, 0] & others[j, 0]
    for k in range(1, words.shape[1]):
        common |= words[i, k] & others[j, k]
    return common != 0


@inline
def _join(words: Any, i: Any, others: Any, j: Any) -> None:
    for k in range(words.shape[1]):
        words[i, k] |= others[j, k]


@frugal_kernel
def _find_open_ways(automaton: Automaton, follow: Words, bits: Words, tables: _Tables) -> None:
    """Fill in ``can`` for m rows, of which ``bits`` are the symbols, and clear ``given_up``."""
    accept, places, end = automaton.accept, len(automaton.symbol), len(automaton.accept)
    can, given_up, m = tables.can, tables.given_up, len(bits)
    for i in range(m, -1, -1):
        for k in range(can.shape[1]):
            word = np.uint64(0)
            if i < m:
                for v in range(64 * k, min(64 * k + 64, places)):
                    if _fits(accept[v], bits[i]) and _meet(follow, v, can, i + 1):
                        word |= np.uint64(1) << np.uint64(v & 63)
            can[i, k], given_up[i, k] = word, 0
        _add(can, i, end)
        if i == m:
            continue
        for v in range(places, end):
            if _meet(follow, v, can, i) if _fits(accept[v], bits[i]) else _has(can, i + 1, v):
                _add(can, i, v)


@frugal_kernel
def _find_ends(automaton: Automaton, bits: Words, tables: _Tables) -> None:
    """Fill in ``ends`` and ``deaths`` for m rows, of which ``bits`` are the symbols."""
    accept, places, end = automaton.accept, len(automaton.symbol), len(automaton.accept)
    bounds, follow = automaton.bounds, automaton.follow
    ends, deaths, m = tables.ends, tables.deaths, len(bits)
    for v in range(end):
        ends[m, v] = deaths[m, v] = _NEVER
    ends[m, end], deaths[m, end] = m - 1, _NEVER
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


@frugal_kernel
def _find_stops(automaton: Automaton, bits: Words, stops: Table) -> None:
    """Fill in ``stops`` for m rows, of which ``bits`` are the symbols."""
    places, m = len(automaton.symbol), len(bits)
    for i in range(m, -1, -1):
        for w in range(stops.shape[1]):
            if i == m:
                stops[i, w] = _NEVER
            else:
                stops[i, w] = i if _fits(automaton.accept[places + w], bits[i]) else stops[i + 1, w]


@frugal_kernel
def _give_up(  # noqa: PLR0912 - one loop, with a branch for each kind of node
    automaton: Automaton, follow: Words, bits: Words, given_up: Words, ways: Words, way: int, i: int
) -> int:
    """Return the row of m at which the last way from node ``way`` before row ``i`` fails; m: it is open behind them.

    Ways that were given up before are not gone again: they failed at a row that is known. -1: all ways are such.
    So all calls together take as many steps as there are nodes in ``given_up``. ``ways``: (2, .), scratch.
    """
    accept, places, words = automaton.accept, len(automaton.symbol), given_up.shape[1]
    now, then = 0, 1
    for k in range(words):
        ways[now, k] = 0
    _add(ways, now, way)
    while True:
        if not _meet(ways, now, ways, now):
            return i - 1
        if i == len(bits):
            return i
        is_new = False
        for k in range(words):
            ways[now, k] &= ~given_up[i, k]
            given_up[i, k] |= ways[now, k]
            is_new |= ways[now, k] != 0
            ways[then, k] = 0
        if not is_new:
            return -1
        for k in range(words):
            left = ways[now, k]
            while left != 0:
                v = 64 * k + math.frexp(np.float64(left & (~left + np.uint64(1))))[1] - 1  # the lowest bit
                left &= left - np.uint64(1)
                if not _fits(accept[v], bits[i]):
                    if v >= places:
                        _add(ways, then, v)
                elif v < places:
                    _join(ways, then, follow, v)
                else:
                    for entry in range(automaton.bounds[v], automaton.bounds[v + 1]):
                        if _fits(accept[automaton.follow[entry]], bits[i]):
                            _join(ways, then, follow, automaton.follow[entry])
        now, then = then, now
        i += 1


@frugal_kernel
def _walk(  # noqa: PLR0912, PLR0915 - one loop, which follows the rule step by step
    automaton: Automaton,
    follow: Words,
    ways: Words,
    stop: int,
    symbols: Words,
    clock: Any,
    limit: Any,
    now: Any,
    overlapping: bool,
    at: _Course,
    tables: _Tables,
    found: _Found,
    undecided: Ints,
) -> None:
    """Go through the starts of a key whose limits are in the block, while there is room.

    ``stop``: the end of the rows of the key. ``ways``: as of `_give_up`.
    """
    accept, places, end = automaton.accept, len(automaton.symbol), len(automaton.accept)
    has_limit, never, is_over = len(clock) > 0, 2 * stop + 1, False
    key, begin, behind, matches, entries = at.key[0], at.begin[0], at.behind[0], at.matches[0], at.entries[0]
    start, out, event = at.start[0], at.out[0], at.event[0]
    while start < stop:
        if has_limit:
            while out < stop and clock[out] < clock[start] + limit:
                out += 1
            is_over = out < stop or clock[start] + limit <= now
        else:
            out = stop
        if out > behind or entries + behind - start > len(found.row):
            break
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
                elif _has(tables.can, i - begin, n):
                    chosen = n
                    break
                elif n < places and i < stop and not _fits(accept[n], symbols[i]):
                    death = i
                else:
                    bits = symbols[begin:behind]
                    death = begin + _give_up(automaton, follow, bits, tables.given_up, ways, n, i - begin)
                if death < out:
                    event = max(event, 2 * death + 1)
                elif not is_over:
                    event = never
                elif event <= 2 * out:
                    event, at.limit[0] = 2 * out, clock[start] + limit
            if chosen == end:
                break
            v = chosen
            if v < places:
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
        found.key[matches], found.stop[matches], found.limit[matches] = key, entries, at.limit[0]
        found.decided[matches] = AT_END if event >= never else event // 2 if event % 2 else BY_LIMIT
        matches += 1
        if not overlapping:
            start = i
    at.start[0], at.out[0], at.event[0], at.matches[0], at.entries[0] = start, out, event, matches, entries


@frugal_kernel
def _find(
    automaton: Automaton,
    follow: Words,
    ways: Words,
    keys: Ints,
    symbols: Words,
    clock: Any,
    limit: Any,
    now: Any,
    overlapping: bool,
    at: _Course,
    tables: _Tables,
    found: _Found,
    undecided: Ints,
) -> None:
    """Find the matches from where ``at`` stands, up to the end of all keys, or as far as there is room.

    A limit cuts the rows of a key into blocks that overlap: with a start, all rows before its limit are in the block.
    So memory is that of the longest limit. A block has twice the rows of its first limit, so none is seen often.
    """
    at.missing[0] = 0
    while at.key[0] < len(keys) - 1:
        stop = keys[at.key[0] + 1]
        _walk(automaton, follow, ways, stop, symbols, clock, limit, now, overlapping, at, tables, found, undecided)
        start, out = at.start[0], at.out[0]
        if start == stop:
            at.key[0] += 1
            at.behind[0], at.out[0], at.event[0] = stop, stop, -1
        elif out > at.behind[0]:
            behind = max(out, min(stop, start + max(2 * (out - start), _LEAST_BLOCK)))
            if behind - start >= len(tables.stops):
                at.missing[0] = behind - start + 1
                return
            at.begin[0], at.behind[0] = start, behind
            bits = symbols[start:behind]
            if len(clock) > 0:
                _find_ends(automaton, bits, tables)
            else:
                _find_open_ways(automaton, follow, bits, tables)
            if tables.stops.shape[1] > 0:
                _find_stops(automaton, bits, tables.stops)
        else:
            return
