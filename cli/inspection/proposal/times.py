"""The time of the rows: the column, or the two columns, that say when a row happened, and how to read them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....readers.schema.time_layouts import layouts_of
from ....readers.schema.timestamp_formats import compile_format, missing_part
from ....readers.schema.types import column_type
from ....readers.time_hints import Guess, free_name, time_guesses
from ....readers.values.casts import convert
from ....windowing.expressions.printing import name_text
from ....windowing.language.canonical import column_text, quoted
from .sample import Sample
from .type_words import type_word

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NAMED = re.compile(r"time|date|stamp|^ts$|^at$|_at$|_ts$|when|^t$", re.IGNORECASE)
_ENOUGH = 0.7
"""The share of values that must be times: the others may be broken rows."""
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class RowTimes:
    """When rows happened, and how that is read.

    ``column``: the column that orders the rows: of the input, or a new one.
    ``types``: the types that must be given, by column: the exact ``--schema``.
    ``let``: the expression of a new column; None: the column is one of the input.
    ``inputs``: the columns of the input that it is read from.
    ``micros``: int64 (N,), microseconds since 1970 of each row.
    ``known``: bool (N,), whether the row has a time.
    ``is_date``: whether it is a date without a time of day.
    ``others``: other readings of the same values, which fit as many of them.
    """

    column: str
    types: Mapping[str, str]
    let: str | None
    inputs: tuple[str, ...]
    micros: Int64s = field(repr=False)
    known: Mask = field(repr=False)
    is_date: bool
    others: tuple[str, ...] = ()


def find_times(sample: Sample, named: str | None) -> list[RowTimes]:
    """Return what may be the time of the rows, the most likely first; none where no column looks like a time.

    ``named``: the column that the user says it is; None: any.
    """
    names = [name for name in sample.rows.column_names if named in (None, name)]
    found = [*_typed(sample, names), *_guessed(sample, names), *(_joined_times(sample) if named is None else ())]
    return sorted((each for each in found if each.known.mean() >= _ENOUGH), key=lambda one: _rank(one, sample))


def _rank(times: RowTimes, sample: Sample) -> tuple[bool, float, float, int, bool]:
    """Rank as: no bare dates; times that are there; rows nearly in order; fine times; a name that says so.

    A log is written as things happen, so its own time is in order, and the other times in it are often not.
    """
    fineness = len(np.unique(times.micros[times.known][:100_000]))
    in_order = round(ordered_share(times, sample.piece), 1)
    is_named = any(_NAMED.search(name) for name in times.inputs)
    return times.is_date, -round(float(times.known.mean()), 1), -in_order, -fineness, not is_named


def ordered_share(times: RowTimes, piece: Int64s) -> float:
    """Return the share of rows that are not before the row that arrived just before them."""
    micros, runs = times.micros[times.known], piece[times.known]
    if len(micros) < 2:
        return 1.0
    falls = (np.diff(micros) < 0) & (np.diff(runs) == 0)
    return 1 - float(falls.mean())


# Columns that are times already


def _typed(sample: Sample, names: Sequence[str]) -> Iterator[RowTimes]:
    for name in names:
        kind = sample.rows.schema.field(name).type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            micros, known = _micros(sample.rows[name])
            word = type_word(kind)
            types = {name: word} if sample.is_text else {}
            yield RowTimes(name, types, None, (name,), micros, known, pa.types.is_date(kind))


def _micros(column: pa.ChunkedArray) -> tuple[Int64s, Mask]:
    """Return microseconds since 1970, rounded down, and which values are there."""
    known = column.is_valid().to_numpy()
    stamps = column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column
    ticks = stamps.cast(pa.int64()).fill_null(0).to_numpy()
    unit = stamps.type.unit
    if unit == "ns":
        return ticks // 1000, known
    return ticks * {"s": 10**6, "ms": 10**3, "us": 1}[unit], known


# Columns that look like times


def _guessed(sample: Sample, names: Sequence[str]) -> Iterator[RowTimes]:
    for guess in time_guesses(sample.source, names):
        if guess.types:
            texts = _texts(sample.rows[guess.column])
            readings = {kind: _read(texts, kind) for kind in guess.types}
            kind, others = _likeliest(readings, sample)
            micros, known = readings[kind]
            types = {guess.column: kind}
            yield RowTimes(guess.column, types, None, (guess.column,), micros, known, guess.is_date, others)
        elif guess.lacks == "zone":
            yield _mixed(sample, guess.column)


def _mixed(sample: Sample, column: str) -> RowTimes:
    """Return the time of a column in which only some times have a zone, as a new column: the others are in UTC."""
    texts = _texts(sample.rows[column])
    (micros, known), (others, are_others) = (_read(texts, kind) for kind in ("timestamptz", "timestamp"))
    types = {column: "string"} if sample.is_text else {}
    let = f"CAST({name_text(column)} AS TIMESTAMPTZ)"
    whole = np.where(known, micros, others)
    return RowTimes(free_name(sample.rows.column_names), types, let, (column,), whole, known | are_others, False)


def _joined_times(sample: Sample) -> Iterator[RowTimes]:
    """Yield the time of a date and a time of day in two columns, as a new column."""
    guesses = list(time_guesses(sample.source, sample.rows.column_names))
    clocks = [guess for guess in guesses if guess.lacks == "date"]
    dates = [(each.column, [text[5:-1] for text in each.types]) for each in guesses if each.is_date and each.types]
    dates += [(f.name, ["%Y-%m-%d"]) for f in sample.rows.schema if pa.types.is_date(f.type)]
    for date, date_layouts in dates:
        for clock in clocks:
            yield from _pair(sample, date, [each for each in date_layouts if each], clock)


def _pair(sample: Sample, date: str, date_layouts: Sequence[str], clock: Guess) -> Iterator[RowTimes]:
    texts = pc.binary_join_element_wise(_texts(sample.rows[date]), _texts(sample.rows[clock.column]), " ")
    found = [layout for layout in layouts_of(clock.value) if _is_time_of_day(layout)]
    layouts = [f"{one} {other}" for one in date_layouts for other in found]
    readings = {layout: _read(texts, f"timestamp({layout})") for layout in layouts}
    if not readings:
        return
    layout, others = _likeliest(readings, sample)
    micros, known = readings[layout]
    let = f"strptime({column_text(date)} || ' ' || {column_text(clock.column)}, {quoted(layout, chr(39))})"
    types = {date: "string", clock.column: "string"} if sample.is_text else {}
    yield RowTimes(
        free_name(sample.rows.column_names),
        types,
        let,
        (date, clock.column),
        micros,
        known,
        is_date=False,
        others=others,
    )


def _is_time_of_day(layout: str) -> bool:
    lacks = missing_part(compile_format(layout))
    return lacks is not None and lacks == ("date", "time of day")


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _read(texts: pa.ChunkedArray, kind: str) -> tuple[Int64s, Mask]:
    column, bad = convert(texts, column_type(kind))
    micros, known = _micros(column)
    return micros, known if bad is None else known & ~bad


def _likeliest(readings: Mapping[str, tuple[Int64s, Mask]], sample: Sample) -> tuple[str, tuple[str, ...]]:
    """Return the likeliest of several readings, and the others that fit as many values.

    The order of day, month and year: that which reads the most values, with which rows are in order, and close to each
    other, then that whose last time is before the newest file was written, and close to that.
    """
    limit = (sample.newest or dt.datetime(2100, 1, 1)) + dt.timedelta(days=1)
    stop = int(limit.replace(tzinfo=dt.UTC).timestamp()) * 10**6

    def rank(kind: str) -> tuple[float, float, int, bool, int]:
        micros, known = readings[kind]
        if not known.any():
            return 0.0, 0.0, 0, True, 0
        there = micros[known]
        falls = (np.diff(there) < 0) & (np.diff(sample.piece[known]) == 0)
        days = int(there.max() - there.min()) // _DAY_US
        newest = int(there.max())
        return (
            -round(float(known.mean()), 3),
            round(float(falls.mean()) if len(falls) else 0.0, 3),
            days,
            newest > stop,
            abs(newest - stop),
        )

    in_turn = sorted(readings, key=rank)
    most = rank(in_turn[0])[0]
    return in_turn[0], tuple(kind for kind in in_turn[1:] if rank(kind)[0] == most)
