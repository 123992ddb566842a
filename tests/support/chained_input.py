"""The result of one stage as the input of the next."""

from __future__ import annotations

import pyarrow as pa


def as_input(result: pa.Table) -> tuple[pa.Table, list[int]]:
    """The rows of a stream as a plain table, and the positions of its marks among them."""
    marks, rows = [], []
    for place, row in enumerate(result.select(["_mark"]).to_pylist()):
        if row["_mark"] != "only":
            rows.append(place)
        if row["_mark"] is not None:
            marks.append(len(rows))
    plain = [name for name in result.column_names if name != "_mark"]
    return result.select(plain).take(pa.array(rows, pa.int64())), marks
