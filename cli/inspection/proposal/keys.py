"""The key of the rows: the column whose values are likely the users, devices or hosts that rows are about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .sample import Sample

FILE = "_file"
_ENTITY = re.compile(
    r"user|account|customer|client|member|visitor|device|sensor|meter|machine|vehicle|truck|host|node|server|session|"
    r"symbol|ticker|instrument|station|site|shop|store|thread|^ip$|_ip$|addr|^pid$|_pid$|player|patient|driver|order_?id",
    re.IGNORECASE,
)
_ID = re.compile(r"(?:^|_)id$|[a-z]I[Dd]$|_key$|^key$|uuid", re.IGNORECASE)
_OF_ROWS = re.compile(r"(?:event|line|row|record|log|message|msg|template|type|request|trace|span)_?id$", re.IGNORECASE)
_LEAST_ROWS = 3
"""Rows that a key has on the average at least."""
_LONGEST = 40
"""Letters of a value on the average at most: longer texts are messages."""
_LIKELY = 2


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column that may be the key.

    ``name``: the column.
    ``values``: how many values it has in the sample.
    ``is_likely``: whether its name says that its values are things which rows are about.
    """

    name: str
    values: int
    is_likely: bool


def is_named_as_id(name: str) -> bool:
    """Whether a name says that its values are names of things: users, devices, lines."""
    return any(pattern.search(name) for pattern in (_ENTITY, _ID, _OF_ROWS))


def find_keys(sample: Sample, taken: Sequence[str]) -> list[KeyColumn]:
    """Return the columns that may be the key, the most likely first. ``taken``: the columns that give the time."""
    found = [*_series(sample), *_columns(sample, taken)]
    in_turn = sorted(found, key=lambda one: (-one[0], -_spread(one[1].values, sample.rows.num_rows)))
    return [key for _, key in in_turn]


def key_codes(sample: Sample, key: Sequence[str]) -> np.ndarray:
    """Return int64 (N,), a number for each row that is the same for rows of one key, and -1 for a null in the key."""
    codes = np.zeros(sample.rows.num_rows, np.int64)
    gone = np.zeros(sample.rows.num_rows, np.bool_)
    for name in key:
        if name == FILE:
            own = sample.file
        else:
            encoded = sample.rows[name].combine_chunks().dictionary_encode()
            own = encoded.indices.fill_null(-1).to_numpy()
            gone |= own < 0
        _, codes = np.unique(codes * (int(own.max(initial=0)) + 2) + own + 1, return_inverse=True)
    return np.where(gone, -1, codes)


def _spread(values: int, rows: int) -> float:
    """Return how well a number of values divides rows: best is the square root of the rows, worst are 1 and all."""
    return -abs(np.log(values) - np.log(rows) / 2)


def _series(sample: Sample) -> Iterator[tuple[int, KeyColumn]]:
    """Yield the file, where several files hold nothing but times and numbers: then each is a series of its own."""
    texts = [f for f in sample.rows.schema if pa.types.is_string(f.type) and not _is_time_text(sample.rows[f.name])]
    if len(sample.names) > 1 and not texts and FILE not in sample.rows.column_names:
        yield _LIKELY, KeyColumn(FILE, len(sample.names), is_likely=True)


def _is_time_text(column: pa.ChunkedArray) -> bool:
    return not pc.any(pc.match_substring_regex(column.slice(0, 1000), "[A-Za-z]{4}")).as_py()


def _columns(sample: Sample, taken: Sequence[str]) -> Iterator[tuple[int, KeyColumn]]:
    for name in sample.rows.column_names:
        kind, column = sample.rows.schema.field(name).type, sample.rows[name]
        score = _score(name, kind)
        if name in taken or score is None or column.null_count > len(column) // 2:
            continue
        values = pc.count_distinct(column).as_py()
        if 2 <= values <= max(2, len(column) // _LEAST_ROWS) and not (_is_text(kind) and _length(column) > _LONGEST):
            yield score, KeyColumn(name, values, score >= _LIKELY)


def _score(name: str, kind: pa.DataType) -> int | None:
    """Return how much a name and a type speak for a key; None: values of that type are measured, not named."""
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        return None
    if _ENTITY.search(name):
        return 3
    if _ID.search(name):
        return 0 if _OF_ROWS.search(name) else 2
    return 1 if _is_text(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)


def _length(column: pa.ChunkedArray) -> float:
    texts = column.cast(pa.string())
    return pc.mean(pc.utf8_length(texts)).as_py() or 0.0
