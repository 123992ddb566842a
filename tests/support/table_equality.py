"""Whether two tables are equal to the bit, and where they differ first."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds


def difference(one: pa.Table, other: pa.Table) -> str:
    rows = zip(one.to_pylist(), other.to_pylist(), strict=False)
    first = next(((a, b) for a, b in rows if repr(a) != repr(b)), None)
    return f"{len(one)} and {len(other)} rows; {first}"


def same(one: pa.Table, other: pa.Table) -> bool:
    """Equal to the bit, where NaN equals NaN."""
    return one.schema == other.schema and all(
        a.combine_chunks().equals(b.combine_chunks()) or repr(a.to_pylist()) == repr(b.to_pylist())
        for a, b in zip(one.columns, other.columns, strict=True)
    )


_PLACE = ("kk", "k", "user", "window", "_step", "_row", "kind", "u", "flag", "x", "_at", "_pos")


def in_order(table: pa.Table) -> pa.Table:
    """The rows of a result by their keys and windows, whatever order they came in."""
    names = [name for name in _PLACE if name in table.column_names]
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()


def check_windows(found: pa.Table, whole: pa.Table) -> None:
    """Check that windows in any order are those of another result, whose schema they are cast to."""
    found, whole = in_order(found.cast(whole.schema)), in_order(whole)
    assert same(found, whole), difference(found, whole)


def same_rows(one: Path, other: Path) -> bool:
    """Whether the parts in two folders hold the same windows, of the key `k` or of none."""
    tables = [ds.dataset(sorted(map(str, folder.glob("part-*.parquet")))).to_table() for folder in (one, other)]
    by = [(name, "ascending") for name in ("k", "window") if name in tables[0].column_names]
    return same(*(table.sort_by(by) for table in tables))
