"""The lane of conditions that read matched rows: ways go over the rows from many starts at once (semantics section 15).

A way that can still become a match is the node where it stands, and the words that its conditions read. What can come
of it follows from these and from the rows to come, so ways with the same node and words before a row are one, from
whatever start they come. A log says how ways go on, the most preferred first; read from its end it says of each how
soon a match ends, and at which row the last way on fails, as the tables of ``passes.py`` do.
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
"""The most different ways that are open at once."""
_SLOTS: Final = 2**15
_MOST_LOG: Final = 2**24
"""From so many entries on the log of several starts does not grow."""
_SHORT: Final = 64
"""Starts go together where one takes more rows than so many to be decided."""
_UNKNOWN: Final = -1
_NEVER: Final = 2**31 - 1
"""A row behind all rows."""
_NEW, _END = -1, -1
_PASSED, _ACTS = -2, -3
"""Beside symbols in the log: a row is passed over, and the end of what is said of a way."""
_COUNT, _USED, _WAYS, _STEPS, _TURN = range(5)
_GOES_ON, _FOUND, _STAYS, _TOO_MANY, _OVERFLOW = range(5)


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
    different ways are open.
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
    """Threads before a row and behind it, by turns: one for each different way.

    ``node``: int64 (2, T), where each stands; ``way``: int64 (2, T), its number in the log.
    ``words``: int64 (2, T, W), what conditions read.
    ``slot``, ``turn``: int64 (`_SLOTS`,), a table of the threads behind a row, whose entries count in one turn alone.
    ``truth``: int64 (S + 1,), what the conditions say of a row behind one thread, the last for any row; ``tried``:
        int64 (S + 1, W), its words with the row.
    ``state``: int64 (5,): the threads behind the row, the entries of the log, its ways, the steps taken, and the turn.
    """

    node: npt.NDArray[np.int64]
    way: npt.NDArray[np.int64]
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
        np.empty(symbols, np.int64), np.empty((symbols, width), np.int64), np.zeros(5, np.int64),
    )  # fmt: skip


class _Log(NamedTuple):
    """How the ways of some starts that follow one another go on; the ways from them are the first. Rows count from 0.

    Of each way that meets a row, but for a wait that passes it over, in the order of the rows: what comes of it, the
    most preferred first, and then the way itself, with `_ACTS`. What does not fit is counted, not written.

    ``then``: int32 (E,), the way that comes, or `_END`; ``symbol``: int8 (E,), as what it takes the row, or `_PASSED`.
    ``begin``: int32 (E,), where the log says what comes of each way; ``row``: int32 (E,), at which row.
    ``end``: int32 (E,), the earliest row with which a match of it ends; ``death``: int32 (E,), the row at which the
        last way on fails. `_NEVER`: none; one ends, or is open.
    ``wanted``: bool (E,), whether a start that is not decided may need it.
    ``out``: int32 (E,), of each start the first row behind its limit; `_NEVER`: none has come.
    """

    then: Any
    symbol: Any
    begin: Any
    row: Any
    end: Any
    death: Any
    wanted: Any
    out: Any


@kernel
def _log(size: int) -> _Log:
    """Return room for a log; what is not written takes no memory."""
    return _Log(
        np.empty(size, np.int32), np.empty(size, np.int8), np.empty(size, np.int32), np.empty(size, np.int32),
        np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.bool_), np.empty(size, np.int32),
    )  # fmt: skip


@frugal_kernel
def _bear(log: _Log, way: int) -> None:
    if way < len(log.end):
        log.end[way] = log.death[way] = _NEVER


@frugal_kernel
def _note(log: _Log, state: Ints, way: int, symbol: int) -> None:
    at = state[_USED]
    if at < len(log.then):
        log.then[at], log.symbol[at] = way, symbol
    state[_USED] = at + 1


@frugal_kernel
def _push(scratch: _Scratch, log: _Log, side: int, node: int, words: Ints, way: int) -> int:
    """Add a thread behind those that are there, if none is its equal; return its way, or -1: there is no room."""
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
                return scratch.way[side, other]
        at = (at + 1) & (_SLOTS - 1)
    count = scratch.state[_COUNT]
    if count >= MOST_THREADS:
        return -1
    if way == _NEW:
        way = scratch.state[_WAYS]
        scratch.state[_WAYS] += 1
        _bear(log, way)
    scratch.turn[at], scratch.slot[at] = turn, count
    scratch.node[side, count], scratch.way[side, count] = node, way
    for w in range(len(words)):
        scratch.words[side, count, w] = words[w]
    scratch.state[_COUNT] = count + 1
    return way


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
    automaton: Automaton, symbols: Any, readers: Readers, scratch: _Scratch, log: _Log, side: int, thread: int,
    place: int, row: int,
) -> int:  # fmt: skip
    """Let a thread take a row at a place, if it can."""
    symbol, state = automaton.symbol[place], scratch.state
    found = _truth(symbols, readers, scratch, symbol, scratch.words[1 - side, thread], row)
    if found != TRUE:
        return _OVERFLOW if found == FAILED else _GOES_ON
    low, high = automaton.bounds[place], automaton.bounds[place + 1]
    is_end = automaton.follow[high - 1] == len(automaton.accept)
    if high - low > is_end:
        then = _push(scratch, log, side, place, scratch.tried[symbol], _NEW)
        if then < 0:
            return _TOO_MANY
        _note(log, state, then, symbol)
    if is_end:
        _note(log, state, _END, symbol)
    return _FOUND if is_end else _GOES_ON


@frugal_kernel
def _meet(  # noqa: PLR0911 - one way out for each outcome
    automaton: Automaton, symbols: Any, readers: Readers, scratch: _Scratch, log: _Log, side: int, thread: int,
    node: int, row: int,
) -> int:  # fmt: skip
    """Let a thread meet a row at a place or a wait. `_STAYS`: it is a wait and passes the row over."""
    places = len(automaton.symbol)
    if node < places:
        return _take(automaton, symbols, readers, scratch, log, side, thread, node, row)
    words, low, high = scratch.words[1 - side, thread], automaton.bounds[node], automaton.bounds[node + 1]
    ends = False
    for entry in range(low, high):
        symbol = automaton.symbol[automaton.follow[entry]]
        found = _truth(symbols, readers, scratch, symbol, words, row)
        if found == FAILED:
            return _OVERFLOW
        ends |= found == TRUE
    if not ends:
        way = scratch.way[1 - side, thread] if scratch.node[1 - side, thread] == node else _NEW
        then = _push(scratch, log, side, node, words, way)
        if then < 0:
            return _TOO_MANY
        if then == way:
            return _STAYS
        _note(log, scratch.state, then, _PASSED)
        return _GOES_ON
    for entry in range(low, high):
        found = _take(automaton, symbols, readers, scratch, log, side, thread, automaton.follow[entry], row)
        if found != _GOES_ON:
            return found
    return _GOES_ON


@frugal_kernel
def _step(
    automaton: Automaton, symbols: Any, readers: Readers, scratch: _Scratch, log: _Log, side: int, row: int, at: int,
    alone: bool,
) -> int:  # fmt: skip
    """Let all threads meet a row, which is ``at`` in the log; those behind it are on ``side``.

    ``alone``: they are of one start, and stand in the order in which they are preferred: with a match found the rest
    is given up.
    """
    places, end, state = len(automaton.symbol), len(automaton.accept), scratch.state
    threads = state[_COUNT]
    state[_COUNT] = 0
    state[_TURN] += 1
    state[_STEPS] += threads
    for thread in range(threads):
        for s in range(len(scratch.truth)):
            scratch.truth[s] = _UNKNOWN
        node, way, found = scratch.node[1 - side, thread], scratch.way[1 - side, thread], _GOES_ON
        is_kept, begin = way < len(log.begin), state[_USED]
        if places <= node < end:
            found = _meet(automaton, symbols, readers, scratch, log, side, thread, node, row)
        else:
            for entry in range(automaton.bounds[node], automaton.bounds[node + 1]):
                after = automaton.follow[entry]
                if after != end:
                    found = _meet(automaton, symbols, readers, scratch, log, side, thread, after, row)
                    if found != _GOES_ON:
                        break
        if found == _STAYS:
            continue
        if found >= _TOO_MANY:
            return found
        _note(log, state, way, _ACTS)
        if is_kept:
            log.begin[way], log.row[way] = begin, at
            if found == _FOUND:
                log.end[way] = at
        if found == _FOUND and alone:
            return found
    return _GOES_ON


@frugal_kernel
def _judge(log: _Log, state: Ints) -> None:
    """Fill in ``end`` and ``death`` of all ways, from what is in the log."""
    way = _END
    for at in range(state[_USED] - 1, -1, -1):
        # Invariant: what is said of all ways that come of ``way`` stands behind, for they act later.
        then = log.then[at]
        if log.symbol[at] == _ACTS:
            way = then
            log.death[way] = log.row[way]
        elif then == _END:
            log.death[way] = _NEVER
        else:
            log.end[way], log.death[way] = min(log.end[way], log.end[then]), max(log.death[way], log.death[then])


@frugal_kernel
def _follow(log: _Log, way: int, out: int, row_of: Ints, symbol_of: Any, first: int) -> tuple[int, int, int]:
    """Return the last row before ``out`` of the match of a start, how many it takes, and the last death.

    That is of what is preferred to the match, of all if there is none: then the last row is -1. Rows that are taken go
    to ``row_of``, as far as there is room, ``first`` more than in the log.
    """
    if log.end[way] >= out:
        return -1, 0, log.death[way]
    size, death = 0, -1
    while True:
        at = log.begin[way]
        while log.then[at] != _END and log.end[log.then[at]] >= out:
            death = max(death, log.death[log.then[at]])
            at += 1
        if log.symbol[at] != _PASSED:
            if size < len(row_of):
                row_of[size], symbol_of[size] = first + log.row[way], log.symbol[at]
            size += 1
        if log.then[at] == _END:
            return log.row[way], size, death
        way = log.then[at]


@frugal_kernel
def _give_up(log: _Log, scratch: _Scratch, side: int, starts: int, overlapping: bool) -> bool:
    """Give up the threads that no start needs, of those that have begun; return whether there are such.

    A start that is decided needs none. A row within a match is no start, once all starts before it are decided.
    """
    state = scratch.state
    _judge(log, state)
    for way in range(state[_WAYS]):
        log.wanted[way] = False
    start, all_decided = 0, True
    while start < starts:
        last, _, death = _follow(log, start, log.out[start], log.row[:0], log.symbol[:0], 0)
        log.wanted[start] = death == _NEVER and log.out[start] == _NEVER
        all_decided &= not log.wanted[start]
        start = max(start, last) + 1 if all_decided and not overlapping else start + 1
    begin = 0
    for at in range(state[_USED]):
        if log.symbol[at] != _ACTS:
            continue
        if log.wanted[log.then[at]]:
            for entry in range(begin, at):
                then = log.then[entry]
                if then == _END:
                    break
                log.wanted[then] = True
                if log.end[then] < _NEVER:
                    break
        begin = at + 1
    count, nodes, ways, words = 0, scratch.node[side], scratch.way[side], scratch.words[side]
    for thread in range(state[_COUNT]):
        if log.wanted[ways[thread]]:
            nodes[count], ways[count] = nodes[thread], ways[thread]
            for w in range(words.shape[1]):
                words[count, w] = words[thread, w]
            count += 1
    found = count < state[_COUNT]
    state[_COUNT] = count
    return bool(found)


@frugal_kernel
def _explore(
    automaton: Automaton, symbols: Any, readers: Readers, scratch: _Scratch, log: _Log, first: int, starts: int,
    stop: int, clock: Any, limit: Any, flags: tuple[bool, bool],
) -> tuple[int, int]:  # fmt: skip
    """Let threads go from some starts over the rows before ``stop``, until all are decided or their limits have passed.

    Return the row at which they stand, and what has gone wrong. Several starts end early where the log has no room.
    """
    has_limit, overlapping = flags
    state, side, row, check, over, alone = scratch.state, 0, first, starts, first, starts == 1
    state[_COUNT], state[_USED], state[_WAYS], state[_STEPS] = 0, 0, starts, 0
    while row < stop:
        at = row - first
        while has_limit and over < min(row, first + starts) and clock[row] >= clock[over] + limit:
            log.out[over - first] = at
            over += 1
        if at < starts:
            count = state[_COUNT]
            scratch.node[side, count], scratch.way[side, count] = len(automaton.accept), at
            for w in range(scratch.words.shape[2]):
                scratch.words[side, count, w] = 0
            state[_COUNT] = count + 1
            log.out[at] = _NEVER
            _bear(log, at)
        elif at == check and not alone:
            _give_up(log, scratch, side, starts, overlapping)
            check *= 2
        if state[_COUNT] == 0 or over == first + starts:
            break
        count, used, ways = state[_COUNT], state[_USED], state[_WAYS]
        problem = _step(automaton, symbols, readers, scratch, log, 1 - side, row, at, alone)
        if problem >= _TOO_MANY and not alone and state[_USED] <= len(log.then):
            state[_COUNT], state[_USED], state[_WAYS] = count, used, ways
            if _give_up(log, scratch, side, min(at + 1, starts), overlapping):
                problem = _step(automaton, symbols, readers, scratch, log, 1 - side, row, at, alone)
        if problem >= _TOO_MANY or (not alone and state[_USED] > len(log.then)):
            return row, problem
        side = 1 - side
        row += 1
    return row, _GOES_ON


@kernel
def _longer(values: Any, size: int) -> Any:
    """Return an array at least so long with the same values, itself if it is."""
    if len(values) >= size:
        return values
    longer = np.empty(max(size, 2 * len(values)), values.dtype)
    longer[: len(values)] = values
    return longer


@kernel
def _find(  # noqa: PLR0912, PLR0915 - one loop, which follows the rule step by step
    automaton: Automaton, readers: Readers, scratch: _Scratch, bounds: Ints, symbols: Any, clock: Any, limit: Any,
    now: Any, flags: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    has_limit, overlapping, to_the_end = flags
    key_of, begins = np.empty(16, np.int64), np.zeros(16, np.int64)
    decided, limits = np.empty(16, np.int64), np.empty(16, clock.dtype)
    row_of, symbol_of = np.empty(64, np.int64), np.empty(64, np.int16)
    undecided, state = bounds[1:].copy(), scratch.state
    log = _log(min(_MOST_LOG, 64 * np.max(np.diff(bounds)) + 64) if len(bounds) > 1 else 0)
    matches, entries, problem, row, over = 0, 0, _GOES_ON, 0, limit
    for key in range(len(bounds) - 1):
        first, stop = bounds[key], bounds[key + 1]
        # What has decided the starts so far: a row, or a limit that passes before a row.
        late_row, late_is_row, late_limit = first, False, limit
        # How many starts go together, at most; and what a row took by the starts before, in steps.
        starts, most, cost = 1, stop - first, np.inf
        while first < stop and (to_the_end or undecided[key] == stop):
            begin, together = first, min(starts, stop - first)
            row, problem = _explore(
                automaton, symbols, readers, scratch, log, first, together, stop, clock, limit,
                (has_limit, overlapping),
            )  # fmt: skip
            is_full = state[_USED] > len(log.then)
            if together > 1 and (problem == _OVERFLOW or (is_full and len(log.then) >= _MOST_LOG)):
                starts = most = together // 2
                continue
            if is_full and (together > 1 or problem == _GOES_ON):
                log = _log(2 * state[_USED])
                continue
            if problem != _GOES_ON:
                break
            _judge(log, state)
            while first < min(begin + together, stop) and (to_the_end or undecided[key] == stop):
                start, out = first - begin, int(log.out[first - begin])
                if log.end[start] < out:
                    room = entries + row - first
                    row_of, symbol_of = _longer(row_of, room), _longer(symbol_of, room)
                last, size, death = _follow(log, start, out, row_of[entries:], symbol_of[entries:], begin)
                is_row, over = death < out, clock[first] + limit if has_limit else limit
                at = begin + max(death, last) if is_row else min(begin + out, stop)
                if not is_row and not (has_limit and (at < stop or now >= over)):
                    undecided[key] = min(undecided[key], first)
                elif at > late_row or (at == late_row and not late_is_row and (is_row or over > late_limit)):
                    late_row, late_is_row, late_limit = at, is_row, over
                if size == 0 or (not to_the_end and undecided[key] < stop):
                    first += 1
                    continue
                entries += size
                key_of, begins = _longer(key_of, matches + 1), _longer(begins, matches + 2)
                decided, limits = _longer(decided, matches + 1), _longer(limits, matches + 1)
                decided[matches] = AT_END if undecided[key] < stop else late_row if late_is_row else BY_LIMIT
                key_of[matches], begins[matches + 1], limits[matches] = key, entries, late_limit
                matches += 1
                first = first + 1 if overlapping else begin + last + 1
            # More go together while rows at which starts still wait cost no more by it, and fewer else.
            again, before, cost = row - first, cost, state[_STEPS] / (first - begin)
            if cost > 1.25 * before or 4 * again < starts:
                starts = max(1, starts // 2)
            elif again > max(_SHORT, starts):
                starts = min(2 * starts, most)
        if problem != _GOES_ON:
            break
    return (
        key_of[:matches], begins[: matches + 1], row_of[:entries], symbol_of[:entries], decided[:matches],
        limits[:matches], undecided, problem, row,
    )  # fmt: skip
