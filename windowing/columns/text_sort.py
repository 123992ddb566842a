"""Bytewise order of texts by radix sort, without comparing pairs of texts.

Texts are sorted by words of up to 64 bits, taken after the common prefix of all texts. Only texts with equal words go
into the next round, again after the prefix they share. A word encodes each of the next bytes by its rank among those
that occur at this position in any text; the end of a text ranks before all bytes. So a decimal digit takes four bits, a
byte that all texts share none, and an arbitrary byte nine. Where texts are short, `short_words` are taken instead.

Measured: 2.5 M keys like ``u01234567`` took 0.55 s before and take 0.1 s; as many addresses of pages 2.2 s and 0.9 s
(decision 029).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..support.jit import kernel, put_word, word_at
from .arrays import Ints, Mask
from .radix_sort import Codes, Words, are_sorted_at_once, bits_sorted_at_once, changes, radix_order, ranks, sort_words

# Columns of texts and bytes of any length as two arrays: where each begins, and the bytes of all.


Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[Any]  # int32 or int64


def is_text(dtype: pa.DataType) -> bool:
    """Whether values of a type are texts or bytes of any length, which `ranked` and `merge_runs` can sort."""
    types = pa.types
    large = types.is_large_string(dtype) or types.is_large_binary(dtype)
    return bool(large or types.is_string(dtype) or types.is_binary(dtype))


def offsets_and_bytes(texts: pa.Array) -> tuple[Ints, Bytes]:
    """Offsets of the texts, int64 (n+1,), and the bytes of all texts."""
    offsets, data = views_of_buffers(texts)
    return offsets.astype(np.int64), data


def views_of_buffers(texts: pa.Array) -> tuple[Offsets, Bytes]:
    """Offsets of the texts, int32 or int64 (n+1,), and the bytes of all texts."""
    _, offsets, content = texts.buffers()
    is_large = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    kind = np.int64 if is_large else np.int32
    has_any = offsets is not None and offsets.size
    bounds = np.frombuffer(offsets, kind)[texts.offset :][: len(texts) + 1] if has_any else np.zeros(1, kind)
    data = np.frombuffer(content if content is not None else b"", np.uint8)
    bounds.flags.writeable = False  # as some buffers are: kernels are compiled for one of the two
    data.flags.writeable = False
    return bounds, data


# Short texts as numbers that sort as they do: the eight bytes or less that follow the prefix which all texts share.
#
# By these numbers 2.5 M keys like ``u01234567`` are sorted in 0.03 s, and 40 runs of 125,000 such keys are merged in
# 0.16 s; by the words of `sort`, which are made byte by byte, in 0.12 s and 0.30 s.


_WORD = 8  # bytes
_MOST_NARROW = np.iinfo(np.int32).max
_ONES = np.uint64(0x0101010101010101)
_LOW = np.uint64(ord("-"))  # names of things mostly have no bytes below: digits, letters, -, ., /, : and _


def short_words(offsets: Ints, data: Bytes) -> Words | None:
    """Return for each text a number that sorts as the text does, uint64 (n,); None if texts are too long for that."""
    if len(offsets) < 2:
        return None
    depth, least, most = _extent(offsets, data)
    if most - depth > _WORD:
        return None
    words, has_zero, has_low = _rests(offsets, data, depth)
    # a text that ends has zeros where others go on: these sort first, unless others have zeros there as well
    if has_zero and least < most:
        return None
    if not has_low:
        _lower(words)
    return words if are_sorted_at_once(words) else None


@kernel
def _extent(offsets: Ints, data: Bytes) -> tuple[int, int, int]:
    """Length of the common prefix of all texts, and of the shortest and the longest; of some, if one is too long."""
    begin = offsets[0]
    least = most = depth = offsets[1] - begin
    for i in range(1, len(offsets) - 1):
        at, size = offsets[i], offsets[i + 1] - offsets[i]
        least, most = min(least, size), max(most, size)
        shared, depth = min(depth, size), 0
        while depth < shared and data[at + depth] == data[begin + depth]:
            depth += 1
        if most - depth > _WORD:  # what is shared only gets shorter, and the longest only longer
            break
    return depth, least, most


@kernel
def _reversed(word: Any) -> Any:
    """The eight bytes of a number the other way round: LLVM has one instruction for these lines."""
    bytes_ = np.uint64(0x00FF00FF00FF00FF)
    pairs = np.uint64(0x0000FFFF0000FFFF)
    word = (word & bytes_) << np.uint64(8) | (word >> np.uint64(8)) & bytes_
    word = (word & pairs) << np.uint64(16) | (word >> np.uint64(16)) & pairs
    return word << np.uint64(32) | word >> np.uint64(32)


@kernel
def _rests(offsets: Ints, data: Bytes, depth: int) -> tuple[Words, bool, bool]:
    """The bytes of each text after ``depth``, the first as the highest and zeros behind.

    Also whether any of these bytes is zero, and whether any is less than `_LOW`.
    """
    out, last = np.empty(len(offsets) - 1, np.uint64), len(data) - _WORD
    zero = low = np.uint64(0)
    for i in range(len(out)):
        begin, size = offsets[i] + depth, offsets[i + 1] - offsets[i] - depth
        word = behind = np.uint64(0)
        if size < _WORD:
            behind = ~np.uint64(0) >> np.uint64(8 * size)
        if begin <= last:
            word = _reversed(word_at(data, begin)) & ~behind
        else:
            for place in range(size):
                word |= np.uint64(data[begin + place]) << np.uint64(8 * (_WORD - 1 - place))
        out[i] = word
        # the highest bit of a byte is borrowed where a byte below 128 is less than what is subtracted
        word |= behind
        zero |= (word - _ONES) & ~word
        low |= (word - _ONES * _LOW) & ~word
    highest = _ONES << np.uint64(7)
    return out, zero & highest != 0, low & highest != 0


@kernel
def _lower(words: Words) -> None:
    """Subtract as much from all bytes but zeros, in place, that the least may be 1: digits then vary in four bits."""
    highest = _ONES << np.uint64(7)
    for i in range(len(words)):
        used = ((words[i] & ~highest) + ~highest | words[i]) & highest
        words[i] -= (used >> np.uint64(7)) * (_LOW - np.uint64(1))


Table = npt.NDArray[np.uint64]

_PLACES = (
    24  # positions that a word may encode at most; their table (24 * 257 words, 48 KiB) stays in the cache of a core
)


def ranked(texts: pa.Array) -> tuple[Codes, Ints]:
    """Return the dense rank of each text, int32 (n,), and for each rank the first place of a text with it.

    ``texts``: of a type for which `is_text` is true, without nulls.
    """
    return ranks(*sort_texts(texts))


def sort_texts(texts: pa.Array) -> tuple[Ints, Mask]:
    """Return the stable permutation that sorts texts, and which texts, once sorted, differ from the text before.

    ``texts``: of a type for which `is_text` is true, without nulls.
    """
    offsets, data = offsets_and_bytes(texts)
    if (words := short_words(offsets, data)) is not None:
        return sort_words(words)
    order, begins = np.arange(len(texts)), np.zeros(len(texts), np.bool_)
    begins[:1] = True
    first, stop = np.zeros(min(1, len(texts)), np.int64), np.full(min(1, len(texts)), len(texts))
    while len(first):  # groups of texts that are equal in all bytes compared so far
        shared = _shared(offsets, data, order, first, stop)
        differs = np.flatnonzero(shared >= 0)
        first, stop = _sort_groups(offsets, data, order, begins, first[differs], stop[differs], shared[differs])
    return order, begins


def merge_runs(texts: pa.Array, bounds: Ints) -> tuple[Codes, Ints]:
    """Return dense ranks as `ranked` does, for texts in R runs, each ascending and without duplicates.

    ``bounds``: int64 (R+1,), run r is ``[bounds[r], bounds[r+1])``. The place of a rank is that of any equal text.
    """
    offsets, data = offsets_and_bytes(texts)
    if (words := short_words(offsets, data)) is not None:
        return ranks(*sort_words(words))  # faster than to merge these words
    filled = bounds[1:] > bounds[:-1]
    if not filled.any():
        return np.empty(0, np.int32), np.empty(0, np.int64)
    edges = np.append(bounds[:-1][filled], bounds[1:][filled] - 1)
    depth = _shared(offsets, data, edges, np.zeros(1, np.int64), np.full(1, len(edges)))[0]
    return _merge(offsets, data, bounds, max(0, depth))


def _sort_groups(
    offsets: Ints, data: Bytes, order: Ints, begins: Mask, first: Ints, stop: Ints, depths: Ints
) -> tuple[Ints, Ints]:
    """Sort the texts of each group by their words at the depth of the group, in place in ``order``.

    ``begins`` is set where words change. Returns the groups of texts that tie and have more bytes.
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
    ordered = (
        by_word if len(rows) == len(order) and len(first) == 1 else rows[by_word]
    )  # in the first round the two are the same
    return _split(order, begins, places, ordered, others, by_word, end - at > len(table))


@kernel
def _members(first: Ints, stop: Ints) -> tuple[Ints, Ints]:
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
    out = np.empty(len(first), np.int64)
    for g in range(len(first)):
        begin, end = offsets[order[first[g]]], offsets[order[first[g]] + 1]
        shared, is_same = end - begin, True
        for place in range(first[g] + 1, stop[g]):
            at, size = offsets[order[place]], offsets[order[place] + 1] - offsets[order[place]]
            is_same &= size == end - begin
            # Compared with the first text only: ``shared`` never grows, so most rows stop after few bytes.
            most, shared = min(shared, size), 0
            while shared < most and data[at + shared] == data[begin + shared]:
                shared += 1
        out[g] = -1 if is_same and shared == end - begin else shared
    return out


@kernel
def _spans(offsets: Ints, rows: Ints, groups: Ints, depths: Ints) -> tuple[Ints, Ints]:
    at, end = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        at[i], end[i] = offsets[rows[i]] + depths[groups[i]], offsets[rows[i] + 1]
    return at, end


@kernel
def _bytes_in_use(data: Bytes, at: Ints, end: Ints) -> Mask:
    """Which bytes occur at each position after ``at`` in any text, (`_PLACES`, 257): 0 is the end, else byte + 1."""
    seen = np.zeros((_PLACES, 257), np.bool_)
    for i in range(len(at)):
        size = min(end[i] - at[i], _PLACES)
        for place in range(size):
            seen[place, np.int64(data[at[i] + place]) + 1] = True
        if size < _PLACES:
            seen[size, 0] = True
    # A text that has ended stays so at all further positions.
    for place in range(1, _PLACES):
        seen[place, 0] |= seen[place - 1, 0]
    return seen


@kernel
def _table(seen: Mask, most: int) -> Table:
    """Contribution of each byte, or of the end, to a word, at the positions that fit ``most`` bits: (places, 257)."""
    widths, bits, places = np.zeros(_PLACES, np.int64), 0, 0
    for place in range(_PLACES):
        different = np.count_nonzero(seen[place])
        while (1 << widths[place]) < different:
            widths[place] += 1
        if bits + widths[place] > most or not np.any(seen[place, 1:]):
            break
        bits += widths[place]
        places += 1
    # Ranks of bytes at each position, the first position in the highest bits: so words compare as texts do.
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
    """Store sorted rows in their places; return the runs of two or more texts that tie and have more bytes.

    ``others``: which rows, once sorted, have another word than the row before. ``has_more``: which rows, before the
    sort, have bytes after their word; ``by_word``: the permutation that sorts them.
    """
    first, stop = np.empty(len(rows) // 2, np.int64), np.empty(len(rows) // 2, np.int64)
    count, low, ties_further = 0, 0, False
    for i in range(len(rows)):
        order[places[i]] = rows[i]
        if i + 1 < len(rows) and not others[i + 1]:
            ties_further |= has_more[by_word[i]]
            continue
        begins[places[low]] = True
        if i > low and (ties_further or has_more[by_word[i]]):
            first[count], stop[count] = places[low], places[i] + 1
            count += 1
        low, ties_further = i + 1, False
    return first[:count].copy(), stop[:count].copy()


@kernel
def _compare_rest(offsets: Ints, data: Bytes, a: int, b: int, covered: int) -> int:
    """Compare texts a and b, whose first ``covered`` bytes are equal: negative, 0 or positive as a <, = or > b."""
    i, j = offsets[a] + covered, offsets[b] + covered
    while i < offsets[a + 1] and j < offsets[b + 1]:
        if data[i] != data[j]:
            return -1 if data[i] < data[j] else 1
        i, j = i + 1, j + 1
    return (offsets[a + 1] - i) - (offsets[b + 1] - j)


@kernel
def _merge_two(
    offsets: Ints, data: Bytes, covered: int, is_complete: bool, rows: Ints, words: Words, low: int, middle: int,
    high: int, rows_to: Ints, words_to: Words,
) -> None:  # fmt: skip
    """Merge the runs ``[low, middle)`` and ``[middle, high)``.

    Words encode the first ``covered`` bytes of each text; ``is_complete``: no text has more.
    """
    # No branch on the result of a comparison of words: which run comes next is random, so it would be mispredicted. On
    # ties the first run wins, which keeps the merge stable.
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
def _merge(offsets: Ints, data: Bytes, bounds: Ints, depth: int) -> tuple[Codes, Ints]:
    """Merge runs pairwise until one is left. ``depth``: length of the common prefix of all texts."""
    rows, at, end = np.arange(len(offsets) - 1), offsets[:-1] + depth, offsets[1:].copy()
    table = _table(_bytes_in_use(data, at, end), 64)
    words = _words(data, at, end, table)
    covered = depth + len(table)
    is_complete = np.max(end - at) <= len(table)
    rows_to, words_to = np.empty_like(rows), np.empty_like(words)
    # log2(runs) rounds over rows and their words. Words decide nearly all comparisons, so bytes are rarely read.
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


# Texts in another order, eight bytes at a time: 2.5 M of nine bytes take 0.04 s, and 0.09 s in Arrow.


def take_column(column: pa.Array, picks: Ints) -> pa.Array:
    """Return the values at some places, which must be in range. Texts are taken faster than by Arrow."""
    if column.null_count == len(column) and len(picks):
        return pa.nulls(len(picks), column.type)
    if not is_text(column.type):
        return pc.take(column, pa.array(picks), boundscheck=False)
    offsets, data = views_of_buffers(column)
    own = picks.view()
    own.flags.writeable = False
    bounds, content, size = _gathered(offsets, data, own)
    if size > len(content):
        return column.take(pa.array(picks))  # which says what is wrong
    valid = None
    if column.null_count:
        there = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")[column.offset :]
        valid = pa.py_buffer(np.packbits(there[picks], bitorder="little"))
    return pa.Array.from_buffers(column.type, len(picks), [valid, pa.py_buffer(bounds), pa.py_buffer(content)])


@kernel
def _gathered(offsets: Offsets, data: Bytes, picks: Ints) -> tuple[Offsets, Bytes, int]:
    """Offsets and bytes of the texts at some places, and how many bytes; no bytes if the offsets are too narrow."""
    begins, bounds = np.empty(len(picks), offsets.dtype), np.empty(len(picks) + 1, offsets.dtype)
    size, bounds[0] = 0, 0
    for i in range(len(picks)):
        begin, stop = offsets[picks[i]], offsets[picks[i] + 1]
        size += stop - begin
        begins[i], bounds[i + 1] = begin, size
    if bounds.itemsize == 4 and size > _MOST_NARROW:
        return bounds, np.empty(0, np.uint8), size
    # Eight bytes at once, also beyond the end of a text: the next text is written over them, and behind the last there
    # is room for eight. The last eight bytes of the source are read one by one: nothing may be read behind them.
    out, last = np.empty(size + _WORD, np.uint8), len(data) - _WORD
    for i in range(len(picks)):
        begin, at, stop = int(begins[i]), int(bounds[i]), int(bounds[i + 1])
        ahead = 0
        while at + ahead < stop and begin + ahead <= last:
            put_word(out, at + ahead, word_at(data, begin + ahead))
            ahead += _WORD
        while at + ahead < stop:
            out[at + ahead] = data[begin + ahead]
            ahead += 1
    return bounds, out[:size], size
