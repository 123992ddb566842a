"""Sketches once more, a value at a time, in plain Python, from the format and the algorithms of DataSketches."""

from __future__ import annotations

import datetime as dt
import math
import struct
from fractions import Fraction
from typing import Any

WORD = 2**64 - 1
PLACES = 4096
K = 200


def turned(x: int, by: int) -> int:
    return (x << by | x >> (64 - by)) & WORD


def murmur(data: bytes, seed: int = 9001) -> tuple[int, int]:
    """MurmurHash3, 128 bits, for x64."""
    one, two = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = seed
    whole = len(data) // 16 * 16
    for at in range(0, whole + 1, 16):
        k1, k2 = (int.from_bytes(data[at + i : at + i + 8], "little") for i in (0, 8))
        k1 = turned(k1 * one & WORD, 31) * two & WORD
        k2 = turned(k2 * two & WORD, 33) * one & WORD
        if at == whole:
            h1, h2 = h1 ^ k1, h2 ^ k2
            break
        h1 = ((turned(h1 ^ k1, 27) + h2) * 5 + 0x52DCE729) & WORD
        h2 = ((turned(h2 ^ k2, 31) + h1) * 5 + 0x38495AB5) & WORD
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & WORD
    h2 = (h2 + h1) & WORD
    h1, h2 = mixed(h1), mixed(h2)
    h1 = (h1 + h2) & WORD
    return h1, (h2 + h1) & WORD


def mixed(x: int) -> int:
    for by in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = (x ^ x >> 33) * by & WORD
    return x ^ x >> 33


def content(value: Any) -> bytes:
    """The bytes of a value that are hashed."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return struct.pack("<Q", 0x7FF8000000000000) if math.isnan(value) else struct.pack("<d", value + 0.0)
    if isinstance(value, dt.datetime):
        here = value.replace(tzinfo=value.tzinfo or dt.UTC)
        value = (here - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    elif isinstance(value, dt.date):
        value = (value - dt.date(1970, 1, 1)).days
    return struct.pack("<Q", int(value) & WORD)


def hll_sketch(values: list[Any]) -> bytes | None:
    given = [content(value) for value in values if value is not None]
    if not given:
        return None
    hashes = {murmur(data) for data in given if data}
    coupons = sorted({min(64 - h2.bit_length(), 62) + 1 << 26 | h1 & 2**26 - 1 for h1, h2 in hashes})
    if len(coupons) < 8:
        head = [2, 1, 7, 12, 3, 8 if coupons else 12, len(coupons), 8]
        return bytes(head) + struct.pack(f"<{len(coupons)}I", *coupons)
    if len(coupons) <= 384:
        array = next(a for a in range(5, 10) if 4 * len(coupons) <= 3 * 2**a)
        head = [3, 1, 7, 12, array, 8, 0, 9]
        return bytes(head) + struct.pack(f"<i{len(coupons)}I", len(coupons), *coupons)
    places = [0] * PLACES
    for coupon in coupons:
        places[coupon % PLACES] = max(places[coupon % PLACES], coupon >> 26)
    low, high = (float(sum(Fraction(1, 2**v) for v in places if (v < 32) == is_low)) for is_low in (True, False))
    return (
        bytes([10, 1, 7, 12, 0, 24, 0, 10]) + struct.pack("<dddii", 0.0, low, high, places.count(0), 0) + bytes(places)
    )


def room(levels: int, level: int) -> int:
    """200 at the top, and two thirds of the level above below that, rounded half up; at least 8."""
    return max(8, (2 * (2 * K << levels - level - 1) // 3 ** (levels - level - 1) + 2) // 4)


class Levels:
    def __init__(self, values: list[Any]) -> None:
        self.levels: list[list[Any]] = [[]]
        bits = 0x9E3779B97F4A7C15
        for value in values:
            held = self.levels
            if sum(map(len, held)) == sum(room(len(held), level) for level in range(len(held))):
                at = next(level for level in range(len(held)) if len(held[level]) >= room(len(held), level))
                if at == len(held) - 1:
                    held.append([])
                bits ^= bits << 13 & WORD
                bits ^= bits >> 7
                bits ^= bits << 17 & WORD
                odd = len(held[at]) % 2
                run = sorted(held[at][odd:])
                held[at + 1] = sorted(held[at + 1] + run[bits >> 63 :: 2])
                held[at] = held[at][:odd]
            held[0].append(value)
        self.levels[0].sort()


def kll_sketch(values: list[Any]) -> bytes | None:
    values = numbers(values)
    if not values:
        return None
    form = "q" if isinstance(values[0], int) else "d"
    held = Levels(values).levels
    items = [value for level in held for value in level]
    if len(values) == 1:
        return bytes([2, 2, 15, 6, K, 0, 8, 0]) + struct.pack(f"<{form}", *items)
    first = sum(room(len(held), level) for level in range(len(held))) - len(items)
    starts = [first + sum(map(len, held[:level])) for level in range(len(held))]
    head = bytes([5, 1, 15, 2, K, 0, 8, 0]) + struct.pack("<QHBB", len(values), K, len(held), 0)
    return head + struct.pack(f"<{len(held)}I{len(items) + 2}{form}", *starts, min(values), max(values), *items)


def approx_quantile(values: list[Any], share: Fraction) -> float | None:
    floats = [float(value) for value in numbers(values)]
    rank = math.ceil(share.limit_denominator(10**6) * len(floats))
    held = sorted((value, 2**level) for level, items in enumerate(Levels(floats).levels) for value in items)
    for value, weight in held:
        rank -= weight
        if rank <= 0:
            return value
    return None


def numbers(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None and not (isinstance(value, float) and math.isnan(value))]


def approx_count_distinct(values: list[Any]) -> int:
    """As many as there are hashes, while the sketch holds them all."""
    found = {murmur(content(value)) for value in values if value is not None and content(value)}
    assert len(found) <= 384
    return len(found)
