"""The lane of conditions that read matched rows: from each start threads go over the rows (semantics section 15).

A thread is a way that can still become the match: the node where it stands, and the words that its conditions read.
Threads stand in the order in which they are preferred. Of two with the same node and words the second can find nothing
that the first does not find, too, and is given up; so is all that is less preferred than a match that was found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints
from ...errors import DataError
from ...support.jit import frugal_kernel, kernel
from .automaton import Automaton
from .found import AT_END, BY_LIMIT, Matches, Rows
from .matched import FAILED, FALSE, TRUE, Readers, says, see_row

MOST_THREADS: Final = 10_000
"""The most ways from one start that are open at once."""
_SLOTS: Final = 2**15
_UNKNOWN: Final = -1
_NOTHING, _NO_ROW = -2, -1
_COUNT, _USED, _BEST, _TURN = range(4)
_GOES_ON, _FOUND, _TOO_MANY, _OVERFLOW = range(4)


def find_matches(
    automaton: Automaton,
    rows: Rows,
    readers: Readers,
    overlapping: bool,
    name_of: Callable[[int], str],
    to_the_end: bool = True,
) -> Matches:
    """Return the matches in the rows of all keys, as ``passes.find_matches`` does.

    ``name_of``: names a row in messages. ``to_the_end``: whether matches that only the end of the data decides are
    wanted. Raises `DataError` where an integer of a condition does not fit 64 bits, and where more than `MOST_THREADS`
    ways are open.
    """
    has_limit = bool(rows.limit)
    clock = np.array(rows.clock) if has_limit else np.empty(0, np.int64)
    limit, now = clock.dtype.type(rows.limit or 0), clock.dtype.type(rows.now or 0)
    *found, problem, row = _find(
        automaton, readers, _scratch(readers), np.array(rows.bounds), np.array(rows.symbols), clock, limit, now,
        (has_limit, overlapping, to_the_end),
    )  # fmt: skip
    if problem == _OVERFLOW:
        what = f"an integer in a condition of a row pattern does not fit 64 bits at {name_of(row)}"
        raise DataError(what, "cast it to DOUBLE")
    if problem == _TOO_MANY:
        what = f"more than {MOST_THREADS:,} ways through a row pattern are open at {name_of(row)}"
        raise DataError(what, "give it fewer choices, or conditions that read fewer values, or a shorter within")
    return Matches(*found)


class _Scratch(NamedTuple):
    """Threads before a row and behind it, by turns, and the rows that they have taken.

    ``node``: int64 (2, T), where each stands; ``last``: int64 (2, T), its last row in ``row``; `_NO_ROW`: none.
    ``words``: int64 (2, T, W), what conditions read.
    ``slot``, ``turn``: int64 (`_SLOTS`,), a table of the threads behind a row, whose entries count in one turn alone.
    ``truth``: int64 (S + 1,), what the conditions say of a row behind one thread, the last for any row; ``tried``:
        int64 (S + 1, W), its words with the row.
    ``state``: int64 (4,): the threads behind the row, the entries used of ``row``, the best end found, and the turn.
    """

    node: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    slot: Ints
    turn: Ints
    truth: Ints
    tried: npt.NDArray[np.int64]
    state: Ints


def _scratch(readers: Readers) -> _Scratch:
    width, most, symbols = int(readers.offset[-1]), MOST_THREADS + 1, len(readers.program) + 1
    return _Scratch(
        np.empty((2, most), np.int64), np.empty((2, most), np.int64), np.empty((2, most, width), np.int64),
        np.zeros(_SLOTS, np.int64), np.zeros(_SLOTS, np.int64),
        np.empty(symbols, np.int64), np.empty((symbols, width), np.int64), np.zeros(4, np.int64),
    )  # fmt: skip


class _Way(NamedTuple):
    """The rows that threads have taken. ``row``; ``symbol``; ``before``: the entry taken before it, or `_NO_ROW`."""

    row: Ints
    symbol: npt.NDArray[np.int16]
    before: Ints


@frugal_kernel
def _push(scratch: _Scratch, side: int, node: int, words: Ints, last: int) -> bool:
    """Add a thread behind those that are there, if none is its equal; return whether there is room."""
    mixed = np.uint64(node)
    for w in range(len(words)):
        mixed = (mixed ^ np.uint64(words[w])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    at = np.int64(mixed & np.uint64(_SLOTS - 1))
    turn = scratch.state[_TURN]
    while scratch.turn[at] == turn:
        other = scratch.slot[at]
        if scratch.node[side, other] == node:
            is_equal = True
            for w in range(len(words)):
                is_equal &= scratch.words[side, other, w] == words[w]
            if is_equal:
                return True
        at = (at + 1) & (_SLOTS - 1)
    count = scratch.state[_COUNT]
    if count >= MOST_THREADS:
        return False
    scratch.turn[at], scratch.slot[at] = turn, count
    scratch.node[side, count], scratch.last[side, count] = node, last
    for w in range(len(words)):
        scratch.words[side, count, w] = words[w]
    scratch.state[_COUNT] = count + 1
    return True


@frugal_kernel
def _truth(symbols: Any, readers: Readers, scratch: _Scratch, symbol: int, words: Ints, row: int) -> int:
    """Return what the condition of a symbol says of a row behind a thread; once for all places of the thread."""
    known = scratch.truth[symbol]
    if known != _UNKNOWN:
        return known
    found = TRUE
    if symbol >= 0 and not (symbols[row] >> np.uint64(symbol)) & np.uint64(1):
        found = FALSE
    else:
        tried = scratch.tried[symbol]
        for w in range(len(words)):
            tried[w] = words[w]
        see_row(readers, tried, symbol, row)
        if symbol >= 0 and readers.program[symbol] >= 0:
            found = says(readers, symbol, tried, row)
    scratch.truth[symbol] = found
    return found


@frugal_kernel
def _take(
    automaton: Automaton, symbols: Any, readers: Readers, scratch: _Scratch, way: _Way, side: int, thread: int,
    place: int, row: int,
) -> int:  # fmt: skip
    """Let a thread take a row at a place, if it can."""
    symbol = automaton.symbol[place]
    found = _truth(symbols, readers, scratch, symbol, scratch.words[1 - side, thread], row)
    if found != TRUE:
        return _OVERFLOW if found == FAILED else _GOES_ON
    used, low, high = scratch.state[_USED], automaton.bounds[place], automaton.bounds[place + 1]
    way.row[used], way.symbol[used], way.before[used] = row, symbol, scratch.last[1 - side, thread]
    is_end = automaton.follow[high - 1] == len(automaton.accept)
    if high - low > is_end:
        count = scratch.state[_COUNT]
        if not _push(scratch, side, place, scratch.tried[symbol], used):
            return _TOO_MANY
        if scratch.state[_COUNT] == count and not is_end:
            return _GOES_ON  # another one is its equal
    scratch.state[_USED] = used + 1
    if is_end:
        scratch.state[_BEST] = used
    return _FOUND if is_end else _GOES_ON


@frugal_kernel
def _meet(
    automaton: Automaton, symbols: Any, readers: Readers, scratch: _Scratch, way: _Way, side: int, thread: int,
    node: int, row: int,
) -> int:  # fmt: skip
    """Let a thread meet a row at a place or a wait."""
    places = len(automaton.symbol)
    if node < places:
        return _take(automaton, symbols, readers, scratch, way, side, thread, node, row)
    words, low, high = scratch.words[1 - side, thread], automaton.bounds[node], automaton.bounds[node + 1]
    ends = False
    for entry in range(low, high):
        symbol = automaton.symbol[automaton.follow[entry]]
        found = _truth(symbols, readers, scratch, symbol, words, row)
        if found == FAILED:
            return _OVERFLOW
        ends |= found == TRUE
    if not ends:
        return _GOES_ON if _push(scratch, side, node, words, scratch.last[1 - side, thread]) else _TOO_MANY
    for entry in range(low, high):
        found = _take(automaton, symbols, readers, scratch, way, side, thread, automaton.follow[entry], row)
        if found != _GOES_ON:
            return found
    return _GOES_ON


@frugal_kernel
def _step(
    automaton: Automaton, symbols: Any, readers: Readers, scratch: _Scratch, way: _Way, side: int, row: int
) -> int:
    """Let all threads meet a row, the most preferred first; those behind it are on ``side``."""
    places, end = len(automaton.symbol), len(automaton.accept)
    threads = scratch.state[_COUNT]
    scratch.state[_COUNT] = 0
    scratch.state[_TURN] += 1
    # Invariant: the threads behind the row stand in the order in which they are preferred, and all are preferred to
    # the end that was found last.
    for thread in range(threads):
        for s in range(len(scratch.truth)):
            scratch.truth[s] = _UNKNOWN
        node = scratch.node[1 - side, thread]
        if places <= node < end:
            found = _meet(automaton, symbols, readers, scratch, way, side, thread, node, row)
            if found != _GOES_ON:
                return found
            continue
        for entry in range(automaton.bounds[node], automaton.bounds[node + 1]):
            after = automaton.follow[entry]
            if after != end:
                found = _meet(automaton, symbols, readers, scratch, way, side, thread, after, row)
                if found != _GOES_ON:
                    return found
    return _GOES_ON


@kernel
def _longer(values: Any, size: int) -> Any:
    """Return an array at least so long with the same values, itself if it is."""
    if len(values) >= size:
        return values
    longer = np.empty(max(size, 2 * len(values)), values.dtype)
    longer[: len(values)] = values
    return longer


@kernel
def _explore(
    automaton: Automaton, symbols: Any, readers: Readers, scratch: _Scratch, way: _Way, first: int, stop: int,
    clock: Any, over: Any, has_limit: bool,
) -> tuple[_Way, int, int]:  # fmt: skip
    """Let threads go from a start over the rows before ``stop`` and before the limit ``over``.

    Return the rows that they have taken, which may have moved, the row at which they stand, and what has gone wrong.
    Threads are left where rows to come, or the limit, decide.
    """
    end, state, side, row = len(automaton.accept), scratch.state, 0, first
    may_take_none = automaton.follow[automaton.bounds[end + 1] - 1] == end
    state[_COUNT], state[_USED], state[_BEST] = 1, 0, _NO_ROW if may_take_none else _NOTHING
    scratch.node[0, 0], scratch.last[0, 0] = end, _NO_ROW
    for w in range(scratch.words.shape[2]):
        scratch.words[0, 0, w] = 0
    while row < stop and state[_COUNT] > 0 and not (has_limit and clock[row] >= over):
        room = state[_USED] + MOST_THREADS + 2  # one for each thread behind the row, and for an end
        if len(way.row) < room:
            way = _Way(_longer(way.row, room), _longer(way.symbol, room), _longer(way.before, room))
        side = 1 - side
        problem = _step(automaton, symbols, readers, scratch, way, side, row)
        if problem >= _TOO_MANY:
            return way, row, problem
        row += 1
    return way, row, _GOES_ON


@kernel
def _find(
    automaton: Automaton, readers: Readers, scratch: _Scratch, bounds: Ints, symbols: Any, clock: Any, limit: Any,
    now: Any, flags: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    has_limit, overlapping, to_the_end = flags
    key_of, begins = np.empty(16, np.int64), np.zeros(16, np.int64)
    decided, limits = np.empty(16, np.int64), np.empty(16, clock.dtype)
    row_of, symbol_of = np.empty(64, np.int64), np.empty(64, np.int16)
    undecided = bounds[1:].copy()
    way = _Way(np.empty(1, np.int64), np.empty(1, np.int16), np.empty(1, np.int64))
    matches, entries, problem, row, over = 0, 0, _GOES_ON, 0, limit
    for key in range(len(bounds) - 1):
        first, stop = bounds[key], bounds[key + 1]
        # What has decided the starts so far: a row, or a limit that passes before a row.
        late_row, late_is_row, late_limit = first, False, limit
        while first < stop and (to_the_end or undecided[key] == stop):
            over = clock[first] + limit if has_limit else limit
            way, row, problem = _explore(
                automaton, symbols, readers, scratch, way, first, stop, clock, over, has_limit
            )  # fmt: skip
            if problem != _GOES_ON:
                break
            is_row = scratch.state[_COUNT] == 0
            at = row - 1 if is_row else row
            if not is_row and not (has_limit and (row < stop or now >= over)):
                undecided[key] = min(undecided[key], first)
            elif at > late_row or (at == late_row and not late_is_row and (is_row or over > late_limit)):
                late_row, late_is_row, late_limit = at, is_row, over
            last = scratch.state[_BEST]
            if last < 0 or (not to_the_end and undecided[key] < stop):
                first += 1
                continue
            size, entry = 0, last
            while entry != _NO_ROW:
                size, entry = size + 1, way.before[entry]
            entries += size
            row_of, symbol_of = _longer(row_of, entries), _longer(symbol_of, entries)
            for place in range(entries - 1, entries - size - 1, -1):
                row_of[place], symbol_of[place], last = way.row[last], way.symbol[last], way.before[last]
            key_of, begins = _longer(key_of, matches + 1), _longer(begins, matches + 2)
            decided, limits = _longer(decided, matches + 1), _longer(limits, matches + 1)
            decided[matches] = AT_END if undecided[key] < stop else late_row if late_is_row else BY_LIMIT
            key_of[matches], begins[matches + 1], limits[matches] = key, entries, late_limit
            matches += 1
            first = first + 1 if overlapping else row_of[entries - 1] + 1
        if problem != _GOES_ON:
            break
    return (
        key_of[:matches], begins[: matches + 1], row_of[:entries], symbol_of[:entries], decided[:matches],
        limits[:matches], undecided, problem, row,
    )  # fmt: skip
