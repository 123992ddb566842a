"""What is proposed for an input, and what was seen in it that speaks for it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....windowing.errors import ConfigError, InputError
from ....windowing.language.canonical import column_text
from ....windowing.support.suggest import did_you_mean
from .durations import GRID, spec_text
from .keys import FILE, KeyColumn, find_keys, is_named_as_id, key_codes
from .row_order import Gaps, OrderFacts, RowsInOrder, look_at_gaps, look_at_order, order_rows
from .sample import Sample
from .sessions import SessionGap, find_session_gap
from .times import RowTimes, find_times

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
    ``ordered``: the rows by key and time; None without a time.
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
    ordered: RowsInOrder | None = None
    step: int = 1

    @property
    def is_session(self) -> bool:
        """Whether the window is a session."""
        return self.window.startswith("gap(")

    @property
    def types(self) -> Mapping[str, str]:
        """The types that must be given, by column: the exact ``--schema``."""
        return {} if self.times is None else self.times.types

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the input that the job reads."""
        named = (*(self.times.inputs if self.times else ()), *self.key, *self.measures)
        return tuple(dict.fromkeys(name for name in named if name != FILE))


def propose(inputs: Sequence[str], sample: Sample, time: str | None, key: Sequence[str] | None) -> Proposal:
    """Propose a job for an input.

    ``time``: the column that the user says is the time. ``key``: the columns that the user says are the key; None:
    unsaid. Raises `ConfigError` for a column that is not there, and `InputError` where ``time`` is no time.
    """
    _check((*([time] if time else []), *(name for name in key or () if name != FILE)), sample)
    found = find_times(sample, time)
    if time is not None and not found:
        raise InputError(f"column {time!r} is no time: {_examples(sample, time)}", "name another column with --time")
    times = found[0] if found else None
    candidates = find_keys(sample, [name for each in found for name in each.inputs])
    chosen = tuple(key) if key is not None else tuple(each.name for each in candidates[:1] if each.is_likely)
    others = tuple({each.column: each for each in found[1:] if times and each.column not in times.inputs}.values())
    plain = Proposal(
        tuple(inputs), "", sample, times, others, chosen, tuple(candidates), None, None, None, f"count({_COUNT})",
        _measures(sample, times, chosen),
    )  # fmt: skip
    timed = plain if times is None else _with_window(plain, times, key_codes(sample, chosen))
    return replace(timed, output=_output(inputs[0], timed))


def _with_window(plain: Proposal, times: RowTimes, codes: npt.NDArray[np.int64]) -> Proposal:
    ordered = order_rows(plain.sample, times, codes)
    gaps = look_at_gaps(ordered)
    session = find_session_gap(ordered) if gaps.usual is None and not times.is_date else None
    clock, step = column_text(times.column), 86_400_000_000 if times.is_date else _grid(gaps, ordered)
    window = f"time({spec_text(step)})" if session is None else f"gap({clock}, {spec_text(session.micros)})"
    order = look_at_order(plain.sample, times, ordered, FILE in plain.key)
    return replace(plain, order=order, gaps=gaps, session=session, window=window, ordered=ordered, step=step)


def _grid(gaps: Gaps, ordered: RowsInOrder) -> int:
    """Return the length of windows on the clock that hold about a dozen rows of a key, and several ticks of it."""
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
    if not pa.types.is_integer(field.type) or is_named_as_id(field.name) or re.search(r"time|stamp", field.name, re.I):
        return False
    values = sample.rows[field.name].slice(0, 10_000).drop_null().to_numpy()
    return not (len(values) > 1 and bool((np.diff(values.astype(np.float64)) == 1).all()))  # a number of the line


def _check(names: Sequence[str], sample: Sample) -> None:
    known = sample.rows.column_names
    for name in names:
        if name not in known:
            raise ConfigError(f"there is no column {name!r}", did_you_mean(name, known))
        if pa.types.is_nested(kind := sample.rows.schema.field(name).type):
            raise ConfigError(f"column {name!r} is {kind}, which holds several values", "name a column with one")


def _examples(sample: Sample, name: str) -> str:
    values = sample.rows[name].slice(0, 3).to_pylist()
    return ", ".join(repr(str(value)) for value in values)


def _output(path: str, proposal: Proposal) -> str:
    """Return a folder beside the working folder that is named after the input."""
    name = PurePosixPath(path.rstrip("/")).name.partition(".")[0]
    stem = re.sub(r"\W+", "_", name).strip("_") or "log"
    base = f"{stem}_{'sessions' if proposal.is_session else 'windows'}"
    there = (f"{base}_{number}" if number else base for number in range(1000))
    return next((each for each in there if not os.path.exists(each)), base)  # noqa: PTH110 - no error for a long name
