"""The order of texts, bytewise, without comparing text with text row by row.

Texts are sorted by words of up to 64 bits: behind what they all begin with, and then only those that tie, again
behind what they share. A word says of each of the next bytes which it is of those that stand in that place in any
text, or that the text has ended, which comes before all bytes. So a digit takes four bits, what all texts share none,
and any bytes at all take nine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..support.jit import kernel
from .radix_sort import Codes, Ints, Mask, Words, bits_sorted_at_once, changes, radix_order, ranks, sort_words

Bytes = npt.NDArray[np.uint8]
Table = npt.NDArray[np.uint64]

_PLACES = 24  # of bytes that a word may tell; the table of them stays near the core


def is_text(dtype: pa.DataType) -> bool:
    """Whether values of a type are texts or bytes of any length, which `ranked` and `merged` can sort."""
    types = pa.types
    large = types.is_large_string(dtype) or types.is_large_binary(dtype)
    return bool(large or types.is_string(dtype) or types.is_binary(dtype))


def ranked(texts: pa.Array) -> tuple[Codes, Ints]:
    """Return the rank of each text among the different ones, int32 (n,), and for each rank where it stands first.

    ``texts`` are as `is_text` says, none of them null.
    """
    return ranks(*sort_texts(texts))


def sort_texts(texts: pa.Array) -> tuple[Ints, Mask]:
    """Return the stable permutation that sorts texts, and which of them, so sorted, are others than the one before.

    ``texts`` are as `is_text` says, none of them null.
    """
    offsets, data = _parts(texts)
    order, begins = np.arange(len(texts)), np.zeros(len(texts), np.bool_)
    begins[:1] = True
    first, stop = np.zeros(min(1, len(texts)), np.int64), np.full(min(1, len(texts)), len(texts))
    while len(first):  # groups of texts that are the same as far as they have been looked at
        shared = _shared(offsets, data, order, first, stop)
        differs = np.flatnonzero(shared >= 0)
        first, stop = _sort_groups(offsets, data, order, begins, first[differs], stop[differs], shared[differs])
    return order, begins


def merge_runs(texts: pa.Array, bounds: Ints) -> tuple[Codes, Ints]:
    """Return what `ranked` does, of texts that stand in runs, each run ascending and without duplicates.

    ``bounds``: int64 (R+1,), run r is ``[bounds[r], bounds[r+1])``. Of equal texts, any may be the one returned.
    """
    offsets, data = _parts(texts)
    filled = bounds[1:] > bounds[:-1]
    if not filled.any():
        return np.empty(0, np.int32), np.empty(0, np.int64)
    edges = np.append(bounds[:-1][filled], bounds[1:][filled] - 1)
    depth = _shared(offsets, data, edges, np.zeros(1, np.int64), np.full(1, len(edges)))[0]
    return _merge(offsets, data, bounds, max(0, depth))


def _parts(texts: pa.Array) -> tuple[Ints, Bytes]:
    """Where each text begins and ends, and the bytes of all."""
    _, offsets, content = texts.buffers()
    is_large = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    data = np.frombuffer(content if content is not None else b"", np.uint8)
    data.flags.writeable = False  # as some buffers are, and kernels are compiled for either
    if offsets is None or not offsets.size:
        return np.zeros(1, np.int64), data
    bounds = np.frombuffer(offsets, np.int64 if is_large else np.int32)[texts.offset :][: len(texts) + 1]
    return bounds.astype(np.int64), data


def _sort_groups(
    offsets: Ints, data: Bytes, order: Ints, begins: Mask, first: Ints, stop: Ints, depths: Ints
) -> tuple[Ints, Ints]:
    """Sort the texts of each group by their words at its depth, in ``order`` itself.

    ``begins`` is told where words change. Returns the groups of those that tie and have more.
    """
    places, groups = _members(first, stop)
    rows = order[places]
    at, end = _spans(offsets, rows, groups, depths)
    table = _table(_bytes_in_use(data, at, end), bits_sorted_at_once(len(rows)))
    words = _words(data, at, end, table)
    by_word, others = sort_words(words)
    if len(first) > 1:
        by_word = by_word[radix_order(groups[by_word].view(np.uint64))]
        others = changes(words[by_word]) | changes(groups)
    ordered = by_word if len(rows) == len(order) and len(first) == 1 else rows[by_word]  # the same in the first round
    return _split(order, begins, places, ordered, others, by_word, end - at > len(table))


@kernel
def _members(first: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """The places ``[first, stop)`` of each group, one group after the other, and which group it is."""
    size = np.sum(stop - first)
    places, groups = np.empty(size, np.int64), np.empty(size, np.int64)
    i = 0
    for g in range(len(first)):
        for place in range(first[g], stop[g]):
            places[i], groups[i] = place, g
            i += 1
    return places, groups


@kernel
def _shared(offsets: Ints, data: Bytes, order: Ints, first: Ints, stop: Ints) -> Ints:
    """How many bytes all texts of each group begin with, or -1 where all of them are the same."""
    out = np.empty(len(first), np.int64)
    for g in range(len(first)):
        begin, end = offsets[order[first[g]]], offsets[order[first[g]] + 1]
        shared, is_same = end - begin, True
        for place in range(first[g] + 1, stop[g]):
            at, size = offsets[order[place]], offsets[order[place] + 1] - offsets[order[place]]
            is_same &= size == end - begin
            most, shared = min(shared, size), 0
            while shared < most and data[at + shared] == data[begin + shared]:
                shared += 1
        out[g] = -1 if is_same and shared == end - begin else shared
    return out


@kernel
def _spans(offsets: Ints, rows: Ints, groups: Ints, depths: Ints) -> tuple[Ints, Ints]:
    """Where the part of each text begins and ends that is yet to be looked at."""
    at, end = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        at[i], end[i] = offsets[rows[i]] + depths[groups[i]], offsets[rows[i] + 1]
    return at, end


@kernel
def _bytes_in_use(data: Bytes, at: Ints, end: Ints) -> Mask:
    """Which bytes stand in each place behind ``at`` in any text, (`_PLACES`, 257): 0 for its end, else byte + 1."""
    seen = np.zeros((_PLACES, 257), np.bool_)
    for i in range(len(at)):
        size = min(end[i] - at[i], _PLACES)
        for place in range(size):
            seen[place, np.int64(data[at[i] + place]) + 1] = True
        if size < _PLACES:
            seen[size, 0] = True
    for place in range(1, _PLACES):
        seen[place, 0] |= seen[place - 1, 0]
    return seen


@kernel
def _table(seen: Mask, most: int) -> Table:
    """What each byte, or the end, adds to a word, in each of the places that fit into ``most`` bits, (places, 257)."""
    widths, bits, places = np.zeros(_PLACES, np.int64), 0, 0
    for place in range(_PLACES):
        different = np.count_nonzero(seen[place])
        while (1 << widths[place]) < different:
            widths[place] += 1
        if bits + widths[place] > most or not np.any(seen[place, 1:]):
            break
        bits += widths[place]
        places += 1
    table = np.zeros((places, 257), np.uint64)
    for place in range(places):
        bits -= widths[place]
        rank = np.uint64(0)
        for value in range(257):
            if widths[place] and seen[place, value]:
                table[place, value] = rank << np.uint64(bits)
                rank += np.uint64(1)
    return table


@kernel
def _words(data: Bytes, at: Ints, end: Ints, table: Table) -> Words:
    """The next bytes of each text, as many as ``table`` has places, as a number that sorts as they do."""
    out = np.empty(len(at), np.uint64)
    for i in range(len(at)):
        word, size = np.uint64(0), min(end[i] - at[i], len(table))
        for place in range(size):
            word |= table[place, np.int64(data[at[i] + place]) + 1]
        for place in range(size, len(table)):
            word |= table[place, 0]
        out[i] = word
    return out


@kernel
def _split(
    order: Ints, begins: Mask, places: Ints, rows: Ints, others: Mask, by_word: Ints, has_more: Mask
) -> tuple[Ints, Ints]:
    """Put sorted rows in their places; return the runs of two or more that tie and have more bytes.

    ``others``: which of them, so sorted, have another word than the one before; ``has_more``: as they stood, and
    ``by_word`` the order that sorts them.
    """
    first, stop = np.empty(len(rows) // 2, np.int64), np.empty(len(rows) // 2, np.int64)
    count, low, goes_on = 0, 0, False
    for i in range(len(rows)):
        order[places[i]] = rows[i]
        if i + 1 < len(rows) and not others[i + 1]:
            goes_on |= has_more[by_word[i]]
            continue
        begins[places[low]] = True
        if i > low and (goes_on or has_more[by_word[i]]):
            first[count], stop[count] = places[low], places[i] + 1
            count += 1
        low, goes_on = i + 1, False
    return first[:count].copy(), stop[:count].copy()


@kernel
def _merge(offsets: Ints, data: Bytes, bounds: Ints, depth: int) -> tuple[Codes, Ints]:
    """Merge runs two by two until there is one. ``depth``: how many bytes all texts share."""
    rows, at, end = np.arange(len(offsets) - 1), offsets[:-1] + depth, offsets[1:].copy()
    table = _table(_bytes_in_use(data, at, end), 64)
    words = _words(data, at, end, table)
    covered = depth + len(table)
    is_complete = np.max(end - at) <= len(table)
    rows_to, words_to = np.empty_like(rows), np.empty_like(words)
    while len(bounds) > 2:
        for run in range(0, len(bounds) - 1, 2):
            low, middle = bounds[run], bounds[run + 1]
            high = bounds[min(run + 2, len(bounds) - 1)]
            _merge_two(offsets, data, covered, is_complete, rows, words, low, middle, high, rows_to, words_to)
        bounds = np.append(bounds[:-1:2], bounds[-1])
        rows, rows_to = rows_to, rows
        words, words_to = words_to, words
    begins = np.empty(len(rows), np.bool_)
    for i in range(len(rows)):
        begins[i] = (
            i == 0
            or words[i] != words[i - 1]
            or not (is_complete or _compare_rest(offsets, data, rows[i], rows[i - 1], covered) == 0)
        )
    return ranks(rows, begins)


@kernel
def _merge_two(
    offsets: Ints, data: Bytes, covered: int, is_complete: bool, rows: Ints, words: Words, low: int, middle: int,
    high: int, rows_to: Ints, words_to: Words,
) -> None:  # fmt: skip
    """Merge the runs ``[low, middle)`` and ``[middle, high)``, without a branch that cannot be foretold.

    Words tell ``told`` bytes of each text; ``is_all``: none has more.
    """
    i, j, to = low, middle, low
    while i < middle and j < high:
        takes_second = words[j] < words[i]
        if not is_complete and words[j] == words[i] and _compare_rest(offsets, data, rows[j], rows[i], covered) < 0:
            takes_second = True
        place = j if takes_second else i
        rows_to[to], words_to[to] = rows[place], words[place]
        i, j, to = i + 1 - takes_second, j + takes_second, to + 1
    for place in range(i, middle):
        rows_to[to], words_to[to] = rows[place], words[place]
        to += 1
    for place in range(j, high):
        rows_to[to], words_to[to] = rows[place], words[place]
        to += 1


@kernel
def _compare_rest(offsets: Ints, data: Bytes, a: int, b: int, covered: int) -> int:
    """Below zero, zero or above it as text a is smaller than text b, the same or greater; ``told`` bytes are alike."""
    i, j = offsets[a] + covered, offsets[b] + covered
    while i < offsets[a + 1] and j < offsets[b + 1]:
        if data[i] != data[j]:
            return -1 if data[i] < data[j] else 1
        i, j = i + 1, j + 1
    return (offsets[a + 1] - i) - (offsets[b + 1] - j)
