"""The words of values: one number of 64 bits for each value, equal for equal values whatever array holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..support.jit import kernel
from .arrays import Ints, view_of
from .text_sort import offsets_and_bytes

# Loops over rows that add the hash of one column to the hash of each row.
#
# A value is mixed with the salt of its column (folded, multiplied, folded), and the hashes of the columns are added,
# so that the order of the columns says nothing. Each row is mixed once more at its end.


Flags = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_HALF = np.uint64(32)
_SHIFT = np.uint64(29)
_SIGN = np.uint64(1 << 63)
_MAGNITUDE = np.uint64((1 << 63) - 1)
_INFINITE = np.uint64(0x7FF0000000000000)
_NAN = np.uint64(0x7FF8000000000000)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_U27, _U30, _U31, _U33 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(33)
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_BYTE = np.uint64(8)


@kernel
def _salted(word: np.uint64, salt: np.uint64) -> np.uint64:
    """Mix a word with an odd salt; high bits reach the low ones before and after the product."""
    product = (word ^ (word >> _HALF)) * salt
    return np.uint64(product ^ (product >> _SHIFT))


@kernel
def _chained(found: np.uint64, word: np.uint64) -> np.uint64:
    found = (found ^ _salted(word, _FIRST)) * _SECOND
    return np.uint64(found ^ (found >> _HALF))


@kernel
def _mixed(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _U30)) * _FIRST
    x = (x ^ (x >> _U27)) * _SECOND
    return np.uint64(x ^ (x >> _U31))


@kernel
def _remixed(x: np.uint64) -> np.uint64:
    """Mix in another way than `_mixed`, so that the two halves of a digest are independent."""
    x = ((x + _STEP) ^ ((x + _STEP) >> _U33)) * _M1
    x = (x ^ (x >> _U33)) * _M2
    return np.uint64(x ^ (x >> _U33))


@kernel
def _float_word(bits: np.uint64) -> np.uint64:
    word = _NAN if (bits & _MAGNITUDE) > _INFINITE else bits
    return np.uint64(0) if word == _SIGN else np.uint64(word)


@kernel
def add_words(sums: Words, words: Words, salt: np.uint64) -> None:
    """Add the hashes of words to those of rows. ``sums``, ``words``: uint64 (n,)."""
    for i in range(sums.size):
        sums[i] += _salted(words[i], salt)


@kernel
def add_valid_words(sums: Words, words: Words, valid: Flags, salt: np.uint64) -> None:
    """Add the hashes of words where ``valid``, uint8 (n,), is 1; a null adds the salt. Without a branch it is fast."""
    for i in range(sums.size):
        sums[i] += salt + ((_salted(words[i], salt) - salt) & (np.uint64(0) - np.uint64(valid[i])))


@kernel
def add_coded(sums: Words, codes: npt.NDArray[np.int32], hashes: Words) -> None:
    """Add to the row ``i`` the hash of its value in a dictionary, ``hashes[codes[i]]``."""
    for i in range(sums.size):
        sums[i] += hashes[codes[i]]


@kernel
def float_words(bits: Words) -> Words:
    """Return the words of floats from their bits, uint64 (n,): one for all NaN, one for both zeros."""
    words = np.empty(bits.size, np.uint64)
    for i in range(bits.size):
        words[i] = _float_word(bits[i])
    return words


@kernel
def add_floats(sums: Words, bits: Words, salt: np.uint64) -> None:
    """Add the hashes of floats, as `float_words` gives their words, to those of rows."""
    for i in range(sums.size):
        sums[i] += _salted(_float_word(bits[i]), salt)


@kernel
def text_words(offsets: Ints, data: npt.NDArray[np.uint8]) -> Words:
    """Return a word for each byte string: uint64 (n,). ``offsets``: int64 (n + 1,), where each begins in ``data``."""
    words = np.empty(offsets.size - 1, np.uint64)
    for i in range(words.size):
        at, stop = offsets[i], offsets[i + 1]
        found = np.uint64(stop - at) * _STEP
        while at < stop:
            word, end = np.uint64(0), min(stop, at + 8)
            for place in range(end - at):
                word |= np.uint64(data[at + place]) << (_BYTE * np.uint64(place))
            found = _chained(found, word)
            at = end
        words[i] = found
    return words


@kernel
def joined_words(starts: Ints, stops: Ints, items: Words) -> Words:
    """Return a word for each list from the words of its items, in their order: uint64 (n,).

    ``starts``, ``stops``: int64 (n,), where the items of each list begin and end.
    """
    words = np.empty(starts.size, np.uint64)
    for i in range(words.size):
        found = np.uint64(stops[i] - starts[i]) * _STEP
        for at in range(starts[i], stops[i]):
            found = _chained(found, items[at])
        words[i] = found
    return words


@kernel
def finished(sums: Words) -> Words:
    """Return the hashes of rows, once all columns are added."""
    hashes = np.empty(sums.size, np.uint64)
    for i in range(sums.size):
        hashes[i] = _mixed(sums[i])
    return hashes


@kernel
def digest_of(sums: Words) -> tuple[np.uint64, np.uint64]:
    """Return the sums, modulo 2**64, of two independent hashes of each row."""
    low = high = np.uint64(0)
    for i in range(sums.size):
        low += _mixed(sums[i])
        high += _remixed(sums[i])
    return low, high


@kernel
def digests_by_code(sums: Words, codes: Ints, count: int) -> Words:
    """Return what `digest_of` returns for the rows of each code in ``[0, count)``: uint64 (count, 2)."""
    out = np.zeros((count, 2), np.uint64)
    for i in range(sums.size):
        out[codes[i], 0] += _mixed(sums[i])
        out[codes[i], 1] += _remixed(sums[i])
    return out


def salt_of(text: str) -> np.uint64:
    """Return an odd number that depends on all of a text."""
    return np.uint64(
        int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") | 1
    )


def in_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column with the values that it has in another type, as a writer casts them; dictionaries stay."""
    if pa.types.is_dictionary(column.type):
        given = column.dictionary
        values = in_type(given, kind)
        return column if values is given else pa.DictionaryArray.from_arrays(column.indices, values)
    is_same = column.type == kind or pa.types.is_nested(kind) or (_is_text(column.type) and _is_text(kind))
    return column if is_same else column.cast(kind)


def valid_of(column: pa.Array) -> Flags | None:
    """Return 1 for each value, 0 for each null: uint8 (n,); None where there is no null."""
    if not column.null_count:
        return None
    bitmap = np.frombuffer(column.buffers()[0], np.uint8)[column.offset // 8 :]
    shift = column.offset % 8
    return np.unpackbits(bitmap, bitorder="little", count=shift + len(column))[shift:]


def has_words(kind: pa.DataType) -> bool:
    """Whether values of a type have words."""
    if pa.types.is_dictionary(kind):
        return has_words(kind.value_type)
    if pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind):
        return False
    if pa.types.is_map(kind):
        return has_words(kind.key_type) and has_words(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return has_words(kind.value_type)
    if pa.types.is_struct(kind):
        return all(has_words(kind.field(at).type) for at in range(kind.num_fields))
    return True


def words_of(column: pa.Array, finite: bool) -> tuple[Words, Flags | None]:
    """Return a word for each value, uint64 (n,), arbitrary at nulls, and where values are valid; None: all are."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return words_of(column.storage, finite)
    if pa.types.is_dictionary(kind):
        return words_of(column.dictionary_decode(), finite)
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.uint64), np.zeros(len(column), np.uint8)
    if not pa.types.is_floating(kind):
        return _words(column, finite), valid_of(column)
    wide = column if pa.types.is_float64(kind) else column.cast(pa.float64())
    words, valid = float_words(view_of(wide, np.uint64)), valid_of(column)
    if not finite:
        return words, valid
    is_finite = np.isfinite(view_of(wide, np.float64)).view(np.uint8)
    return words, is_finite if valid is None else is_finite & valid


def _words(column: pa.Array, finite: bool) -> Words:
    """Return a word for each value of a type that has no value of its own for what is no number."""
    kind = column.type
    if pa.types.is_nested(kind):
        return _nested_words(column, finite)
    if pa.types.is_boolean(kind):
        bits = column.fill_null(False) if column.null_count else column
        words: Words = bits.cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint64)
        return words
    if _is_text(kind):
        offsets, letters = offsets_and_bytes(column.cast(pa.large_binary()))
        offsets.flags.writeable = False  # kernels are compiled for one of the two
        return text_words(offsets, letters)
    if pa.types.is_decimal(kind) and kind.bit_width < 256:
        column = column.cast(pa.decimal256(76, kind.scale))
    width = column.type.bit_width
    if width == 64:
        return view_of(column, np.uint64)
    if width < 64:
        sign = "u" if pa.types.is_unsigned_integer(kind) else ""
        return view_of(column, np.dtype(f"{sign}int{width}")).astype(np.int64).view(np.uint64)
    count = width // 64
    flat = np.ascontiguousarray(view_of(column, np.dtype((np.uint64, count)))).reshape(-1)
    starts = np.arange(len(column), dtype=np.int64) * count
    return joined_words(starts, starts + count, flat)


def _is_text(kind: pa.DataType) -> bool:
    is_kind = (
        pa.types.is_string,
        pa.types.is_binary,
        pa.types.is_large_string,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_string_view,
        pa.types.is_binary_view,
    )
    return any(each(kind) for each in is_kind)


_ITEM = salt_of("item")


def _nested_words(column: pa.Array, finite: bool) -> Words:
    """Return the words of structs, of which a field counts by its name, and not by its place; of lists and maps those
    of their items in order, where a null item has a word of its own.
    """
    if pa.types.is_struct(column.type):
        salts = [salt_of(field.name) for field in column.type]
        return _word_sums([column.field(at) for at in range(len(salts))], salts, finite, len(column))
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        items = column.values.slice(column.offset * size, len(column) * size)
        starts = np.arange(len(column), dtype=np.int64) * size
        return joined_words(starts, starts + size, _word_sums([items], [_ITEM], finite))
    offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_map(column.type):
        items = pa.StructArray.from_arrays([column.keys, column.items], names=["key", "value"])
    else:
        items = column.values
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    words = _word_sums([items.slice(first, last - first)], [_ITEM], finite)
    return joined_words(offsets[:-1] - first, offsets[1:] - first, words)


def _word_sums(columns: Sequence[pa.Array], salts: Sequence[np.uint64], finite: bool, rows: int | None = None) -> Words:
    sums = np.zeros(len(columns[0]) if rows is None else rows, np.uint64)
    for column, salt in zip(columns, salts, strict=True):
        words, valid = words_of(column, finite)
        mask = np.ones(len(sums), np.uint8) if valid is None else valid
        add_valid_words(sums, words, mask, salt)
    words = finished(sums)
    words.flags.writeable = False  # kernels are compiled for one of the two
    return words
