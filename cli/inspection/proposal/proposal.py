"""What is proposed for an input, and what was seen in it that speaks for it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.errors import ConfigError, InputError, did_you_mean
from ....windowing.language.tokens import column_text
from .times import (
    GRID,
    NICE,
    Gaps,
    OrderFacts,
    RowsInOrder,
    RowTimes,
    Sample,
    find_times,
    look_at_gaps,
    look_at_order,
    order_rows,
    spec_text,
)

# The key of the rows: the column whose values are likely the users, devices or hosts that rows are about.


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


def find_keys(sample: Sample, taken: Sequence[str]) -> list[KeyColumn]:
    """Return the columns that may be the key, the most likely first. ``taken``: the columns that give the time."""
    found: list[tuple[int, KeyColumn]] = []
    texts = [sample.rows[f.name] for f in sample.rows.schema if pa.types.is_string(f.type)]
    words = (pc.match_substring_regex(column.slice(0, 1000), "[A-Za-z]{4}") for column in texts)  # others are times
    has_words = any(pc.any(each).as_py() for each in words)
    if len(sample.names) > 1 and not has_words and FILE not in sample.rows.column_names:
        # Several files hold nothing but times and numbers: then each is a series of its own.
        found.append((_LIKELY, KeyColumn(FILE, len(sample.names), is_likely=True)))
    for name in sample.rows.column_names:
        kind, column = sample.rows.schema.field(name).type, sample.rows[name]
        score = _score(name, kind)
        if name in taken or score is None or column.null_count > len(column) // 2:
            continue
        values = pc.count_distinct(column).as_py()
        if not 2 <= values <= max(2, len(column) // _LEAST_ROWS):
            continue
        if not _is_text(kind) or (pc.mean(pc.utf8_length(column.cast(pa.string()))).as_py() or 0.0) <= _LONGEST:
            found.append((score, KeyColumn(name, values, score >= _LIKELY)))
    rows = np.log(sample.rows.num_rows)
    # Of equals that which divides the rows best: best are as many values as the square root of the rows.
    in_turn = sorted(found, key=lambda one: (-one[0], abs(np.log(one[1].values) - rows / 2)))
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


# Sessions: the valley between the short times inside of them and the long ones between them.
#
# The times between rows of a key are counted by their logarithm. Where sessions are in the data there are two hills,
# and any gap in the valley between them cuts the rows alike. A number says how firm the gap is: the share of rows
# that would change their session if it was a fifth longer or shorter.


Floats = npt.NDArray[np.float64]

_BINS = 8
"""Bins of a factor of ten."""
_LEAST = 8
"""How many gaps a hill has at least."""
_LEAST_SHARE = 0.002
"""What share of all gaps a hill has at least."""
_DEEP = 0.6
"""How high the valley is at most, as a share of the lower hill."""
_ROWS_IN_A_SESSION = 2
"""How many rows sessions have on the average at least."""
_MOST_MOVED = 0.1
"""The share of rows that may change their session, if the gap is a fifth longer or shorter."""


@dataclass(frozen=True, slots=True)
class SessionGap:
    """A gap that ends sessions.

    ``micros``: the gap, in microseconds.
    ``short``, ``long``: where the hills on both sides are highest: a usual time inside of a session, and between two.
    ``sessions``: how many sessions it makes of the rows of the sample.
    ``moved_longer``, ``moved_shorter``: the share of rows whose session has another first row, if it is 20 % longer or
        shorter.
    """

    micros: int
    short: int
    long: int
    sessions: int
    moved_longer: float
    moved_shorter: float


def find_session_gap(ordered: RowsInOrder) -> SessionGap | None:
    """Find the gap in the deepest valley that makes sessions of the rows; None where there is no such valley."""
    between = np.diff(ordered.micros)[~ordered.begins[1:]]
    moving = between[between > 0]
    if len(moving) < 2 * _LEAST:
        return None
    low = np.floor(np.log10(moving.min()) * _BINS) - 1
    places = np.floor(np.log10(moving) * _BINS) - low
    counts = np.bincount(places.astype(np.int64), minlength=int(places.max()) + 2).astype(np.float64)
    smooth = counts
    for _ in range(2):
        padded = np.pad(smooth, 1)
        smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    for valley in _valleys(smooth, counts):
        gap, short, long = (10 ** ((at + low + 0.5) / _BINS) for at in valley)
        micros = min(NICE, key=lambda each: abs(np.log(each / gap)))
        made = measure_gap(ordered, micros, int(short), int(long))
        is_firm = max(made.moved_longer, made.moved_shorter) <= _MOST_MOVED
        if is_firm and 1 < made.sessions <= len(ordered.micros) / _ROWS_IN_A_SESSION:
            return made
    return None


def measure_gap(ordered: RowsInOrder, micros: int, short: int = 0, long: int = 0) -> SessionGap:
    """Return what a gap makes of the rows: its sessions, and the rows that a fifth more or less would move."""
    first = session_starts(ordered, micros)
    longer, shorter = (session_starts(ordered, int(micros * factor)) for factor in (1.2, 0.8))
    rows = max(1, len(first))
    moved = [float((first != other).sum()) / rows for other in (longer, shorter)]
    return SessionGap(micros, short, long, len(np.unique(first)), *moved)


def session_starts(ordered: RowsInOrder, micros: int) -> npt.NDArray[np.int64]:
    """Return int64 (M,), for each row the place of the first row of its session (semantics section 2, ``gap``)."""
    starts = ordered.begins.copy()
    starts[1:] |= np.diff(ordered.micros) > micros
    places = np.flatnonzero(starts)
    return places[np.cumsum(starts) - 1] if len(starts) else places


def _valleys(smooth: Floats, counts: Floats) -> list[tuple[float, int, int]]:
    """Return the places of valleys, each with the hills on both sides of it; the best comes first.

    A valley is the better the more the lower of its hills rises above it.
    """
    least = max(_LEAST, _LEAST_SHARE * counts.sum())
    left_most, right_most = np.maximum.accumulate(smooth), np.maximum.accumulate(smooth[::-1])[::-1]
    left_sum = np.cumsum(counts)
    found = []
    for at in range(1, len(smooth) - 1):
        lower = min(left_most[at - 1], right_most[at + 1])
        is_low = smooth[at] <= min(smooth[at - 1], smooth[at + 1])
        is_between = left_sum[at - 1] >= least and left_sum[-1] - left_sum[at] >= least
        if is_low and is_between and smooth[at] <= _DEEP * lower:
            depth = float(np.log((lower + 0.5) / (smooth[at] + 0.5)))
            found.append((depth, at, int(smooth[:at].argmax()), at + 1 + int(smooth[at + 1 :].argmax())))
    in_turn = sorted(found, key=lambda valley: -valley[0])
    places = []
    for _, at, short, long in in_turn:  # the middle of the floor: the places around ``at`` that are as low
        low = high = at
        while low > 0 and smooth[low - 1] <= smooth[at] + 1e-9:
            low -= 1
        while high < len(smooth) - 1 and smooth[high + 1] <= smooth[at] + 1e-9:
            high += 1
        places.append(((low + high) / 2, short, long))
    return places


_ROWS_IN_A_WINDOW = 12
_TICKS_IN_A_WINDOW = 5
_UNKNOWN = 300_000_000
"""The time between rows, in microseconds, where no key has two of them."""
_MOST_MEASURES = 2
_COUNT = 100


@dataclass(frozen=True, slots=True)
class Proposal:
    """A job for an input.

    ``inputs``: the paths, as the user wrote them.
    ``output``: the folder of the result.
    ``sample``: the rows that were looked at.
    ``times``: the time of the rows; None: no column has it.
    ``other_times``: other columns that are times.
    ``key``: the columns of the key.
    ``keys``: what may be the key, the most likely first.
    ``order``: the order of the rows; None without a time.
    ``gaps``: the times between rows of a key; None without a time.
    ``session``: the gap between sessions; None where there are none.
    ``window``: the window, canonical text.
    ``measures``: the columns that are numbers, of which the mean is proposed.
    ``step``: the length of windows on the clock, in microseconds.
    """

    inputs: tuple[str, ...]
    output: str
    sample: Sample
    times: RowTimes | None
    other_times: tuple[RowTimes, ...]
    key: tuple[str, ...]
    keys: tuple[KeyColumn, ...]
    order: OrderFacts | None
    gaps: Gaps | None
    session: SessionGap | None
    window: str
    measures: tuple[str, ...]
    step: int = 1

    @property
    def types(self) -> Mapping[str, str]:
        """The types that must be given, by column: the exact ``--schema``."""
        return {} if self.times is None else self.times.types

    @property
    def columns(self) -> tuple[str, ...]:
        named = (*(self.times.inputs if self.times else ()), *self.key, *self.measures)
        return tuple(dict.fromkeys(name for name in named if name != FILE))


def propose(inputs: Sequence[str], sample: Sample, time: str | None, key: Sequence[str] | None) -> Proposal:
    """Propose a job for an input.

    ``time``: the column that the user says is the time. ``key``: the columns that the user says are the key; None:
    unsaid. Raises `ConfigError` for a column that is not there, and `InputError` where ``time`` is no time.
    """
    known = sample.rows.column_names
    for name in (*([time] if time else []), *(name for name in key or () if name != FILE)):
        if name not in known:
            raise ConfigError(f"there is no column {name!r}", did_you_mean(name, known))
        if pa.types.is_nested(kind := sample.rows.schema.field(name).type):
            raise ConfigError(f"column {name!r} is {kind}, which holds several values", "name a column with one")
    found = find_times(sample, time)
    if time is not None and not found:
        examples = ", ".join(repr(str(value)) for value in sample.rows[time].slice(0, 3).to_pylist())
        raise InputError(f"column {time!r} is no time: {examples}", "name another column with --time")
    times = found[0] if found else None
    candidates = find_keys(sample, [name for each in found for name in each.inputs])
    chosen = tuple(key) if key is not None else tuple(each.name for each in candidates[:1] if each.is_likely)
    others = tuple({each.column: each for each in found[1:] if times and each.column not in times.inputs}.values())
    order = gaps = session = None
    window, step = f"count({_COUNT})", 1
    if times is not None:
        ordered = order_rows(sample, times, key_codes(sample, chosen))
        order, gaps = look_at_order(sample, times, ordered, FILE in chosen), look_at_gaps(ordered)
        session = find_session_gap(ordered) if gaps.usual is None and not times.is_date else None
        step = 86_400_000_000 if times.is_date else _grid(gaps, ordered)
        window = f"time({spec_text(step)})"
        if session is not None:
            window = f"gap({column_text(times.column)}, {spec_text(session.micros)})"
    name = PurePosixPath(inputs[0].rstrip("/")).name.partition(".")[0]
    stem = re.sub(r"\W+", "_", name).strip("_") or "log"
    base = f"{stem}_{'sessions' if session is not None else 'windows'}"
    free = (f"{base}_{number}" if number else base for number in range(1000))
    output = next((each for each in free if not os.path.exists(each)), base)  # noqa: PTH110 - no error for a long name
    return Proposal(
        tuple(inputs), output, sample, times, others, chosen, tuple(candidates), order, gaps, session, window,
        _measures(sample, times, chosen), step,
    )  # fmt: skip


def _grid(gaps: Gaps, ordered: RowsInOrder) -> int:
    usual = gaps.usual
    if usual is None:
        usual = int(gaps.between.mean()) if len(gaps.between) else _UNKNOWN
    tick = int(np.gcd.reduce(ordered.micros)) if len(ordered.micros) else 1
    wanted = max(1, usual * _ROWS_IN_A_WINDOW, min(tick, 3600 * 10**6) * _TICKS_IN_A_WINDOW)
    return min(GRID, key=lambda each: abs(np.log(each / wanted)))


def _measures(sample: Sample, times: RowTimes | None, key: Sequence[str]) -> tuple[str, ...]:
    """Return columns that are measured: numbers that name nothing, floats first."""
    taken = {*key, *(times.inputs if times else ())}
    found = [field for field in sample.rows.schema if field.name not in taken and _is_measure(field, sample)]
    in_turn = sorted(found, key=lambda field: not pa.types.is_floating(field.type))
    return tuple(field.name for field in in_turn[:_MOST_MEASURES])


def _is_measure(field: pa.Field, sample: Sample) -> bool:
    if pa.types.is_floating(field.type) or pa.types.is_decimal(field.type):
        return True
    names_things = any(pattern.search(field.name) for pattern in (_ENTITY, _ID, _OF_ROWS))  # users, devices, lines
    if not pa.types.is_integer(field.type) or names_things or re.search(r"time|stamp", field.name, re.I):
        return False
    values = sample.rows[field.name].slice(0, 10_000).drop_null().to_numpy()
    return not (len(values) > 1 and bool((np.diff(values.astype(np.float64)) == 1).all()))  # a number of the line
