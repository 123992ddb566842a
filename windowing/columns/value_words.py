"""The words of values: one number of 64 bits for each value, equal for equal values whatever array holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from . import hash_kernels as kernels
from .arrays import view_of
from .hash_kernels import Flags, Words


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


def is_plain(kind: pa.DataType) -> bool:
    """Whether the values of a type are words as they stand."""
    return bool(not _is_other(kind) and kind.bit_width == 64)


def _is_other(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_nested(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_null(kind)
        or _is_text(kind)
        or isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_decimal(kind)
    )


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
    if _is_list(kind):
        return has_words(kind.value_type)
    if pa.types.is_struct(kind):
        return all(has_words(kind.field(at).type) for at in range(kind.num_fields))
    return True


def _is_list(kind: pa.DataType) -> bool:
    is_kind = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(each(kind) for each in is_kind)


def words_of(column: pa.Array, finite: bool) -> tuple[Words, Flags | None]:
    """Return a word for each value, uint64 (n,), arbitrary at nulls, and where values are valid; None: all are."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return words_of(column.storage, finite)
    if pa.types.is_dictionary(kind):
        return words_of(column.dictionary_decode(), finite)
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.uint64), np.zeros(len(column), np.uint8)
    if pa.types.is_floating(kind):
        return _float_words(column, finite)
    return _nested_words(column, finite) if pa.types.is_nested(kind) else _plain_words(column), valid_of(column)


def _nested_words(column: pa.Array, finite: bool) -> Words:
    return (_struct_words if pa.types.is_struct(column.type) else _list_words)(column, finite)


def _plain_words(column: pa.Array) -> Words:
    kind = column.type
    if pa.types.is_boolean(kind):
        bits = column.fill_null(False) if column.null_count else column
        words: Words = bits.cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint64)
        return words
    if pa.types.is_decimal(kind):
        return _wide_words(column, kind)
    if _is_text(kind):
        return _text_words(column.cast(pa.large_binary()))
    width = kind.bit_width
    if width == 64:
        return view_of(column, np.uint64)
    if width < 64:
        sign = "u" if pa.types.is_unsigned_integer(kind) else ""
        return view_of(column, np.dtype(f"{sign}int{width}")).astype(np.int64).view(np.uint64)
    return _rows_of_words(view_of(column, np.dtype((np.uint64, width // 64))), width // 64)


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


def _wide_words(column: pa.Array, kind: pa.DataType) -> Words:
    """Return the words of decimals, of whatever width they are."""
    if kind.bit_width < 256:
        column = column.cast(pa.decimal256(76, kind.scale))
    return _rows_of_words(view_of(column, np.dtype((np.uint64, 4))), 4)


def _rows_of_words(pairs: Words, width: int) -> Words:
    """Return one word for each value of several, uint64 (n, ``width``)."""
    flat = np.ascontiguousarray(pairs).reshape(-1)
    starts = np.arange(len(flat) // width, dtype=np.int64) * width
    return kernels.joined_words(starts, starts + width, flat)


def _text_words(values: pa.LargeBinaryArray) -> Words:
    if not len(values):
        return np.empty(0, np.uint64)
    _, ends, data = values.buffers()
    offsets = np.frombuffer(ends, np.int64)[values.offset : values.offset + len(values) + 1]
    letters = np.frombuffer(data if data is not None else b"", np.uint8)
    offsets.flags.writeable = letters.flags.writeable = False
    return kernels.text_words(offsets, letters)


def _float_words(column: pa.Array, finite: bool) -> tuple[Words, Flags | None]:
    wide = column if pa.types.is_float64(column.type) else column.cast(pa.float64())
    words, valid = kernels.float_words(view_of(wide, np.uint64)), valid_of(column)
    if not finite:
        return words, valid
    is_finite = np.isfinite(view_of(wide, np.float64)).view(np.uint8)
    return words, is_finite if valid is None else is_finite & valid


def _list_words(column: pa.Array, finite: bool) -> Words:
    """Return the words of lists and maps, from those of their items in order; a null item has a word of its own."""
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        items = column.values.slice(column.offset * size, len(column) * size)
        starts = np.arange(len(column), dtype=np.int64) * size
        return kernels.joined_words(starts, starts + size, _item_words(items, finite))
    offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_map(column.type):
        items = pa.StructArray.from_arrays([column.keys, column.items], names=["key", "value"])
    else:
        items = column.values
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    words = _item_words(items.slice(first, last - first), finite)
    return kernels.joined_words(offsets[:-1] - first, offsets[1:] - first, words)


def _item_words(items: pa.Array, finite: bool) -> Words:
    return _word_sums([items], [salt_of("item")], finite)


def _struct_words(column: pa.StructArray, finite: bool) -> Words:
    """Return the words of structs; as with rows, a field counts by its name, not by its place."""
    fields = [column.type.field(at) for at in range(column.type.num_fields)]
    children = [column.field(at) for at in range(len(fields))]
    return _word_sums(children, [salt_of(each.name) for each in fields], finite, len(column))


def _word_sums(columns: Sequence[pa.Array], salts: Sequence[np.uint64], finite: bool, rows: int | None = None) -> Words:
    sums = np.zeros(len(columns[0]) if rows is None else rows, np.uint64)
    for column, salt in zip(columns, salts, strict=True):
        words, valid = words_of(column, finite)
        mask = np.ones(len(sums), np.uint8) if valid is None else valid
        kernels.add_valid_words(sums, words, mask, salt)
    words = kernels.finished(sums)
    words.flags.writeable = False  # kernels are compiled for one of the two
    return words
