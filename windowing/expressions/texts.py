"""Functions over texts, whole columns at a time."""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from ..support.column_types import PER_SECOND
from .casts import floor_divide
from .steps import LONGEST, Failures, as_array, as_mask, blank, check_size
from .types import TEXT

_GROUP: Final = "taken"


def trim(_failures: Failures, values: pa.Array, characters: str, sides: str) -> pa.Array:
    """Return texts without these characters at ``both`` sides, the ``left`` or the ``right``."""
    functions = {"both": pc.utf8_trim, "left": pc.utf8_ltrim, "right": pc.utf8_rtrim}
    return functions[sides](values, characters=characters) if characters else values


def substring(_failures: Failures, values: pa.Array, start: int, stop: int | None) -> pa.Array:
    """Return the characters ``[start, stop)``; a number below 0 counts from the end, as in Python."""
    return pc.utf8_slice_codeunits(values, start, stop)


def replace(failures: Failures, values: pa.Array, old: str, new: str) -> pa.Array:
    """Return texts with each occurrence of ``old`` replaced; nothing is replaced where it is empty.

    A row whose text becomes longer than `LONGEST` fails. Raises `DataError` as `check_size` does.
    """
    if not old:
        return values
    more = len(new.encode()) - len(old.encode())
    if values.nbytes * max(more + 1, 1) > LONGEST:  # else no text can become too long
        found = pc.count_substring(values, pattern=old).cast(pa.int64())
        (values,) = _short_ones(failures, pc.add(_sizes(values), pc.multiply(found, more)), values)
    return pc.replace_substring(values, pattern=old, replacement=new)


def split_part(_failures: Failures, values: pa.Array, separator: str, index: int) -> pa.Array:
    """Return the part at ``index``, from 1, or below 0 from the last; an empty text where there is none."""
    parts = pc.split_pattern(values, pattern=separator)
    found = items(_failures, parts, pa.scalar(index, pa.int64()))
    return pc.if_else(pc.and_(pc.is_null(found), pc.is_valid(values)), "", found)


def concat(failures: Failures, *values: Any) -> pa.Array:
    """Return texts one behind the other, nulls left out. Fails and raises as `join` does."""
    return join(failures, *(pc.fill_null(each, "") for each in values))


def join(failures: Failures, *values: Any) -> pa.Array:
    """Return texts one behind the other; null where one is null.

    A row whose text becomes longer than `LONGEST` fails. Raises `DataError` as `check_size` does.
    """
    once = sum(each.as_buffer().size for each in values if isinstance(each, pa.Scalar) and each.is_valid)
    if sum(each.nbytes for each in values if isinstance(each, pa.Array)) + once * failures.n > LONGEST:
        values = _short_ones(failures, reduce(pc.add, map(_sizes, values)), *values)
    return pc.binary_join_element_wise(*values, "")


def _sizes(texts: Any) -> Any:
    return pc.binary_length(texts).cast(pa.int64())


def _short_ones(failures: Failures, sizes: pa.Array, *values: Any) -> tuple[Any, ...]:
    """Return the operands, null where the text of a row has more than `LONGEST` bytes: these rows fail.

    ``sizes``: bytes of the text that each row makes, int64 (n,).
    """
    told = f" bytes of text, more than {LONGEST:,}"
    is_long = failures.add(
        pc.greater(sizes, LONGEST), lambda: pc.binary_join_element_wise(sizes.cast(pa.string()), told, "")
    )
    check_size(pc.sum(sizes.filter(pa.array(~is_long))).as_py() or 0, len(sizes))
    return values if not is_long.any() else (blank(values[0], is_long), *values[1:])


def like(_failures: Failures, values: pa.Array, pattern: str, ignore_case: bool, negated: bool) -> pa.Array:
    """Return whether texts match: ``%`` stands for any characters, ``_`` for one; there is no escape."""
    found = pc.match_like(values, pattern=pattern.replace("\\", "\\\\"), ignore_case=ignore_case)
    return pc.invert(found) if negated else found


def regexp_matches(_failures: Failures, values: pa.Array, pattern: str, ignore_case: bool) -> pa.Array:
    """Return whether a regular expression (RE2) is found anywhere in texts."""
    return pc.match_substring_regex(values, pattern=pattern, ignore_case=ignore_case)


def regexp_extract(_failures: Failures, values: pa.Array, pattern: str) -> pa.Array:
    """Return what the one group of a pattern of `one_group` took; an empty text where nothing is found."""
    found = pc.struct_field(pc.extract_regex(values, pattern=pattern), _GROUP)
    return pc.if_else(pc.is_valid(values), found.fill_null(""), pa.scalar(None, pa.string()))


def one_group(pattern: str, index: int) -> str | None:
    """Return a regular expression whose only group is the one at ``index``, 0 for all; None without such a group."""
    out, groups, at, in_class = "", 0, 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            out, at = out + pattern[at : at + 2], at + 2
            continue
        if char == "(" and not in_class:
            opener = _opener(pattern, at)
            if opener:
                groups += 1
                out += f"(?P<{_GROUP}>" if groups == index else "(?:"
                at += len(opener)
                continue
        in_class = char == "[" or (in_class and char != "]")
        out, at = out + char, at + 1
    return f"(?P<{_GROUP}>{out})" if index == 0 else out if groups >= index else None


def items(_failures: Failures, lists: pa.Array, index: Any) -> pa.Array:
    """Return the items of lists at ``index``, from 1, or below 0 from the last; null where there is none."""
    n = len(lists)
    sizes = pc.list_value_length(lists).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    wanted = as_array(index, n).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    place = np.where(wanted > 0, wanted - 1, sizes + wanted)
    exists = (wanted != 0) & (place >= 0) & (place < sizes)
    ends = np.cumsum(sizes)  # in the items of all lists one behind the other, those of null lists left out
    return pc.list_flatten(lists).take(pa.array(np.where(exists, ends - sizes + place, 0), mask=~exists))


def list_items(failures: Failures, lists: pa.Array, index: Any, kind: pa.DataType) -> pa.Array:
    """Return the items of lists as `items` does, as values of a type."""
    lists = as_array(lists, failures.n)
    return as_array(items(failures, lists, index), failures.n).cast(kind)


def member(_failures: Failures, values: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    """Return a field of structs, as values of a type; null where the struct is."""
    return as_array(pc.struct_field(values, name), len(values)).cast(kind)


def _opener(pattern: str, at: int) -> str:
    """The characters that open a capturing group; empty where the group captures nothing."""
    if not pattern.startswith("(?", at):
        return "("
    for mark in ("(?P<", "(?<"):
        if pattern.startswith(mark, at):
            return pattern[at : pattern.find(">", at) + 1]
    return ""


# A hash of values: 64 bits that are the same in every version, on every machine, and however a column is stored.
#
# Integers of all widths have the hash of their number, floats that of their value, decimals that of their digits
# without zeros at the end, times that of their seconds and nanoseconds whatever their unit and zone. Null is a value
# of its own.


_Words = npt.NDArray[np.uint64]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_NULL = np.uint64(0xA24BAED4963EE407)
_BYTES = 8


def hash_values(failures: Failures, *columns: Any) -> pa.Array:
    """Return the hash of each row of columns, whose order counts: uint64 (n,)."""
    found: Any = _SECOND
    for column in columns:
        values = as_array(column, failures.n)
        found = _mixed(found, np.where(as_mask(values.is_null()), _NULL, _words(values)))
    return pa.array(found)


def is_hashable(kind: pa.DataType) -> bool:
    """Return whether values of a type have a hash: all but lists, structs and intervals of months."""
    return not (t.is_nested(kind) or t.is_interval(kind))


def _mixed(seed: Any, words: _Words) -> _Words:
    """Mix words, uint64 (n,), with what came before them: splitmix64."""
    x = (words ^ seed) + _STEP
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return np.asarray(x ^ (x >> _31))


def _words(values: pa.Array) -> _Words:
    """Return a word for each value, arbitrary at nulls: uint64 (n,)."""
    kind = values.type
    if t.is_null(kind):
        return np.zeros(len(values), np.uint64)
    if t.is_string(kind) or t.is_binary(kind):
        # A word for each text: its bytes are taken eight at a time, of all texts that are so long.
        texts = values.fill_null("" if t.is_string(kind) else b"").cast(pa.large_binary())
        _, ends, data = texts.buffers()
        offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        letters = np.frombuffer(data if data is not None else b"", np.uint8)[offsets[0] : offsets[-1]]
        padded = np.concatenate([letters, np.zeros(_BYTES, np.uint8)])
        eights = np.ndarray((len(letters) + 1,), np.dtype("<u8"), padded, 0, (1,))  # the eight bytes from each byte on
        starts, left = offsets[:-1] - offsets[0], np.diff(offsets)
        found = _mixed(_FIRST, left.astype(np.uint64))
        rows = np.flatnonzero(left)
        while len(rows):
            beyond = np.uint64(8) * np.clip(_BYTES - left[rows], 0, _BYTES - 1).astype(np.uint64)
            found[rows] = _mixed(found[rows], (eights[starts[rows]] << beyond) >> beyond)
            starts, left = starts + _BYTES, left - _BYTES
            rows = rows[left[rows] > 0]
        return found
    if t.is_decimal(kind):
        digits = pc.utf8_rtrim(values.cast(TEXT), "0") if kind.scale > 0 else values.cast(TEXT)
        return _words(pc.utf8_rtrim(digits, "."))
    if t.is_floating(kind):
        floats = values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
        return np.where(np.isnan(floats), np.nan, floats).view(np.uint64)
    if t.is_date(kind):
        values = values.cast(pa.timestamp("s"))
    if t.is_temporal(kind):
        per_second = PER_SECOND[values.type.unit]
        ticks = values.cast(pa.int64()).fill_null(0)
        seconds = floor_divide(ticks, per_second).to_numpy(zero_copy_only=False)
        rest = ticks.to_numpy(zero_copy_only=False) - seconds * per_second
        return _mixed(seconds.view(np.uint64), (rest * (10**9 // per_second)).view(np.uint64))
    numbers = values.cast(pa.uint8()) if t.is_boolean(kind) else values
    whole = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return whole if kind == pa.uint64() else whole.astype(np.int64).view(np.uint64)
