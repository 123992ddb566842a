"""Keys as codes: a table of the distinct keys of one side, in which those of the other side are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import INT64_DIGITS, Ints, Mask, Measures, is_measurable
from ..columns.sort_keys import as_values, sort_keys
from ..columns.text_sort import offsets_and_bytes
from ..support.jit import kernel

# Compiled loops of enrichment: a hash table of 64 bit words, and the search of the rows next to another.


Slots = npt.NDArray[np.int32]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _slot(word: int, shift: int) -> int:
    """The first slot of a word in a table of ``2**(64 - shift)`` slots: Fibonacci hashing of its mixed bits."""
    bits = np.uint64(word)
    bits ^= bits >> np.uint64(32)
    return np.int64((bits * _GOLDEN) >> np.uint64(shift))  # type: ignore[return-value]


@kernel
def hash_slots(words: Ints, shift: int) -> Slots:
    """Return a table of ``2**(64 - shift)`` slots with the place of each of the distinct ``words``; -1 is empty."""
    slots = np.full(1 << (64 - shift), -1, np.int32)
    mask = len(slots) - 1
    for i in range(len(words)):
        at = _slot(words[i], shift)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i
    return slots


@kernel
def places_of(wanted: Ints, words: Ints, slots: Slots, shift: int) -> Ints:
    """Return the place of each wanted word among ``words``, -1 if it is none: int64 (n,)."""
    out = np.empty(len(wanted), np.int64)
    mask = len(slots) - 1
    for i in range(len(wanted)):
        at = _slot(wanted[i], shift)
        place = np.int64(slots[at])
        # Invariant: at least half of the slots are empty, so that each chain ends.
        while place >= 0 and words[place] != wanted[i]:
            at = (at + 1) & mask
            place = np.int64(slots[at])
        out[i] = place
    return out


@kernel
def _is_before(order: float, value: float, strict: bool) -> bool:
    return order < value or (order == value and not strict)


@kernel
def neighbours(codes: Ints, at: Measures, starts: Ints, order: Measures, strict: bool, is_after: bool) -> Ints:
    """Return, for each row, the last row of its code whose order is at most ``at`` (``strict``: less): int64 (n,).

    ``is_after``: the first row whose order is at least ``at`` (``strict``: more) instead. ``codes``: int64 (n,), -1 for
    a key that is none. ``starts``: int64 (codes + 1,), where the ascending ``order`` of each code begins. The result is
    -1 where there is no such row, and where ``at`` is NaN.
    """
    is_strict = strict != is_after  # what is before the place that is searched for
    out = np.full(len(codes), -1, np.int64)
    near = starts[:-1].copy()
    # Logs ascend in time, so each search begins where the last one of its key ended, and doubles its steps: it costs as
    # much as the distance has digits, not as the key has rows.
    for i in range(len(codes)):
        code = codes[i]
        if code < 0:
            continue
        first, end, value = starts[code], starts[code + 1], at[i]
        lo, hi, step = near[code], near[code], 1
        # Invariant: no row after hi - 1 is before the value once the steps upwards end, and all rows before lo are once
        # those downwards end.
        if hi < end and _is_before(order[hi], value, is_strict):
            while hi < end and _is_before(order[hi], value, is_strict):
                lo = hi + 1
                hi = min(end, lo + step)
                step *= 2
        else:
            while lo > first and not _is_before(order[lo - 1], value, is_strict):
                hi = lo - 1
                lo = max(first, hi - step)
                step *= 2
        while lo < hi:
            middle = (lo + hi) >> 1
            if _is_before(order[middle], value, is_strict):
                lo = middle + 1
            else:
                hi = middle
        near[code] = lo
        if is_after:
            if lo < end and not np.isnan(value):
                out[i] = lo
        elif lo > first:
            out[i] = lo - 1
    return out


@dataclass(frozen=True, slots=True)
class Words:
    """Distinct 64 bit words in a hash table.

    ``words``: int64 (n,). ``slots``, ``shift``: as `hash_slots` has them.
    """

    words: Ints
    slots: Slots
    shift: int

    @classmethod
    def of(cls, words: Ints) -> Words:
        """Hash distinct words."""
        shift = 64 - max(3, int(2 * len(words) + 1).bit_length())
        words.flags.writeable = False
        slots = hash_slots(words, shift)
        slots.flags.writeable = False
        return cls(words, slots, shift)

    def places(self, wanted: Ints) -> Ints:
        """Return the place of each wanted word, -1 if it is none: int64 (n,)."""
        wanted.flags.writeable = False
        return places_of(wanted, self.words, self.slots, self.shift)


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The distinct keys of a table, each with a code in ``[0, size)``.

    ``columns``: the distinct values of each key column: words, or an Arrow array where values are no words.
    ``tuples``: the words of the distinct tuples of values, by code; None for a single column.
    """

    columns: tuple[Words | pa.Array, ...]
    tuples: Words | None

    @property
    def size(self) -> int:
        return len(self.tuples.words) if self.tuples is not None else _length(self.columns[0])

    def codes(self, keys: Sequence[pa.Array]) -> Ints:
        """Return the code of each key, -1 if it is none or has a null or NaN: int64 (n,).

        ``keys``: a column for each part of the key, in the types of the index; text may be dictionary encoded.
        """
        codes = _places(self.columns[0], keys[0])
        if self.tuples is None:
            return codes
        missing = codes < 0
        for known, column in zip(self.columns[1:], keys[1:], strict=True):
            more = _places(known, column)
            missing |= more < 0
            codes = codes * _length(known) + more
        found = self.tuples.places(codes)
        found[missing] = -1
        return found


def index_keys(keys: Sequence[pa.Array]) -> tuple[KeyIndex, Ints]:
    """Return the index of a table's keys, and the code of each row, int64 (n,): equal keys have equal codes.

    ``keys``: a column for each part of the key, without nulls and NaN (see `is_key`).
    """
    columns = [_distinct(column) for column in keys]
    codes = columns[0][1]
    if len(columns) == 1:
        return KeyIndex((columns[0][0],), None), codes
    for known, more in columns[1:]:
        codes = codes * _length(known) + more
    tuples, codes = np.unique(codes, return_inverse=True)
    return KeyIndex(tuple(known for known, _ in columns), Words.of(tuples)), codes.astype(np.int64)


def is_key(column: pa.Array) -> Mask:
    """Return which rows of a column have a value that equals itself, bool (n,): neither null nor NaN."""
    valid = column.is_valid()
    if pa.types.is_floating(column.type):
        valid = pc.and_(valid, pc.invert(pc.fill_null(pc.is_nan(column), False)))
    return np.asarray(valid.to_numpy(zero_copy_only=False), np.bool_)


def _distinct(column: pa.Array) -> tuple[Words | pa.Array, Ints]:
    """Return the distinct values of a column without nulls, and the place of each row's value, int64 (n,)."""
    if has_words(column.type):
        words, places = np.unique(words_of(column), return_inverse=True)
        return Words.of(words), places.astype(np.int64)
    encoded = as_dictionary(column)
    values = encoded.dictionary.unique()
    return values, _mapped(encoded, pc.index_in(encoded.dictionary, values).to_numpy().astype(np.int64))


def _places(known: Words | pa.Array, column: pa.Array) -> Ints:
    """Return the place of each value of a column among known ones, -1 if it is none: int64 (n,)."""
    if isinstance(known, Words):
        out = known.places(words_of(column))
        if column.null_count or pa.types.is_floating(column.type):
            out[~is_key(column)] = -1
        return out
    encoded = as_dictionary(column)
    return _mapped(encoded, _places_of_values(encoded.dictionary, known))


def _mapped(encoded: pa.DictionaryArray, places: Ints) -> Ints:
    indices = encoded.indices
    if indices.null_count:
        indices = indices.fill_null(len(places))
        places = np.append(places, -1)
    taken: Ints = places[indices.to_numpy()]
    return taken


def _places_of_values(values: pa.Array, known: pa.Array) -> Ints:
    if values.type != known.type:
        values = values.cast(known.type)
    if len(values) > len(known) or len(values.unique()) < len(values):
        found = pc.index_in(values, known).fill_null(-1)
        return np.where(is_key(values), found.to_numpy(), -1).astype(np.int64)
    out = np.full(len(values), -1, np.int64)
    found = pc.index_in(known, values)
    there = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    out[found.drop_null().to_numpy()] = there
    return out


def has_words(kind: pa.DataType) -> bool:
    """Whether values of a type have 64 bit words that are equal where the values are."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= INT64_DIGITS)
    return bool(pa.types.is_boolean(kind) or is_measurable(kind))


def words_of(column: pa.Array) -> Ints:
    """Return words that are equal where values are; those of nulls are arbitrary."""
    if not column.null_count:
        return np.array(sort_keys(as_values(column)), np.int64)
    words = np.zeros(len(column), np.int64)
    if column.null_count < len(column):
        words[column.is_valid().to_numpy(zero_copy_only=False)] = sort_keys(as_values(column.drop_null()))
    return words


def as_dictionary(column: pa.Array) -> pa.DictionaryArray:
    """Return a column without words as a dictionary array, wide decimals as text."""
    if pa.types.is_dictionary(column.type):
        return column
    return (column.cast(pa.string()) if pa.types.is_decimal(column.type) else column).dictionary_encode()


def _length(known: Words | pa.Array) -> int:
    return len(known.words) if isinstance(known, Words) else len(known)


# Hashes of keys, the same in every process: rows of one key meet in one partition, whatever types they come in.


_PRIME = np.uint64(0x100000001B3)
_BASIS = np.uint64(0xCBF29CE484222325)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


def partitions_of(keys: Sequence[pa.Array], count: int) -> Ints:
    """Return the partition of each key, in ``[0, count)``; arbitrary at nulls: int64 (n,)."""
    hashes = np.zeros(len(keys[0]), np.uint64)
    for column in keys:
        if has_words(column.type):
            own = words_of(column).view(np.uint64) * _PRIME
        else:
            encoded = as_dictionary(column)
            offsets, letters = offsets_and_bytes(encoded.dictionary.cast(pa.large_binary()))
            offsets.flags.writeable = False  # kernels are compiled for one of the two
            of_texts = hash_texts(offsets, letters)
            indices = encoded.indices.fill_null(len(of_texts)) if encoded.indices.null_count else encoded.indices
            own = np.append(of_texts, np.uint64(0))[indices.to_numpy()]
        hashes = (hashes ^ own) * _MIX
        hashes ^= hashes >> np.uint64(31)
    return (hashes % np.uint64(count)).astype(np.int64)


@kernel
def hash_texts(offsets: Ints, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return the FNV-1a hash of each text: uint64 (n,). ``offsets``: int64 (n + 1,), where its bytes begin."""
    out = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(out)):
        found = _BASIS
        for at in range(offsets[i], offsets[i + 1]):
            found = (found ^ np.uint64(data[at])) * _PRIME
        out[i] = found
    return out
