"""The digests of the rows of part files, computed as the rows pass on to the encoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...windowing.columns.row_hashes import RowDigest, RowHasher, hasher_of
from ...windowing.support.formats import Format
from ..formats.types import plain


def part_hasher(format: Format, schema: pa.Schema) -> RowHasher | None:
    """Return what hashes the rows of a result as its readers find them; None where a type has no hash.

    JSON Lines have null for NaN and the infinities.
    """
    return hasher_of(plain(schema), finite=format == "jsonl")


class CountingTables:
    """An iterable of tables that counts and hashes their rows as they pass.

    ``rows``: the rows of all tables so far.
    """

    def __init__(self, tables: Iterable[pa.Table], hasher: RowHasher | None) -> None:
        self._tables, self._hasher, self._digest = tables, hasher, RowDigest()
        self.rows = 0

    @property
    def digest(self) -> str | None:
        """The digest of all rows so far; None without a hasher."""
        return None if self._hasher is None else str(self._digest)

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            self.rows += table.num_rows
            if self._hasher is not None:
                self._digest += self._hasher.digest(table)
            yield table


@dataclass(frozen=True, slots=True)
class FolderDigests:
    """The digests of the files of one part, one for each folder.

    ``hasher``: hashes the rows with all columns of the result; None where a type has no hash.
    ``found``: folder to the digest of its rows so far.
    """

    hasher: RowHasher | None
    found: dict[str, RowDigest] = field(default_factory=dict)

    def add(self, rows: pa.Table, codes: npt.NDArray[np.int64], folders: Sequence[str]) -> None:
        """Add rows. ``codes``: int64 (n,), the index of the folder of each."""
        if self.hasher is None:
            return
        for folder, digest in zip(folders, self.hasher.digests(rows, codes, len(folders)), strict=True):
            self.found[folder] = self.found.get(folder, RowDigest()) + digest

    def of(self, folder: str) -> str | None:
        """Return the digest of the file in a folder; None without a hasher."""
        return None if self.hasher is None else str(self.found.get(folder, RowDigest()))
