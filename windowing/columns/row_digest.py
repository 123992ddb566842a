"""Digests of sets of rows, and their texts. `row_hashes` computes them; to add them up, nothing of it is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_SCHEME = "rows1"
"""What texts of digests begin with: another way of hashing has another name."""


@dataclass(frozen=True, slots=True)
class RowDigest:
    """The digest of a set of rows, in which a row may be several times: sums modulo 2**64 of two hashes of each row.

    ``low``, ``high``: the sums. The digest of no rows has two zeros, and digests of two sets add up to that of both.
    """

    low: int = 0
    high: int = 0

    def __add__(self, other: RowDigest) -> RowDigest:
        return RowDigest((self.low + other.low) % (1 << 64), (self.high + other.high) % (1 << 64))

    def __str__(self) -> str:
        return f"{_SCHEME}:{self.high:016x}{self.low:016x}"

    @classmethod
    def parse(cls, text: object) -> RowDigest | None:
        """Return the digest of a text that `str` made; None for any other value, such as a digest of a later scheme."""
        scheme, _, digits = str(text).partition(":")
        if scheme != _SCHEME or len(digits) != 32:
            return None
        return cls(int(digits[16:], 16), int(digits[:16], 16))


def digest_of_all(digests: Iterable[object]) -> str | None:
    """Return the digest of all rows of several sets from the texts of theirs; None where one of them has none."""
    found = RowDigest()
    for digest in map(RowDigest.parse, digests):
        if digest is None:
            return None
        found += digest
    return str(found)
