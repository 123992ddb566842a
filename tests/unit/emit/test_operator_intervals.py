"""Calls of an operator for panes of event time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.operators import by_intervals
from support import strategies as my
from support.operator_calls import calls_in, plan_of, replayed, sequences_of
from support.operator_logs import ENDS, Log, log_of, logs
from wincli.windowing.clock.interval_grid import clock_values
from wincli.windowing.clock.watermark import in_order as watermarks_in_order
from wincli.windowing.clock.watermark import make_lateness, watermarks_at
from wincli.windowing.kinds.context import Signals, WindowContext, watermark_signals
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import TimeInterval
from wincli.windowing.planning.plan import Plan
from wincli.windowing.rows.sequence import one_batch


@given(st.data(), logs(falling=True), ENDS, st.booleans())
def test_intervals(data: st.DataObject, log: Log, at_end: str, ordered: bool) -> None:
    """A row goes when its last interval is closed, which rows to come do not decide."""
    kind = log.kind("clock")
    log = replace(log, order=("clock",) if ordered else ())
    duration, period = data.draw(my.grids(kind))[0], data.draw(my.grids(kind))[0]
    age, lag = data.draw(my.grids(kind))[0], data.draw(my.grids(kind))[0]
    check_intervals(log, duration, period, age, data.draw(st.sampled_from([Fraction(0), lag])), at_end)


@pytest.mark.parametrize("at_end", ["flush", "drop"])
@pytest.mark.parametrize("more", [[], [17], [17, 4, 18]])
def test_a_row_waits_for_late_ones_of_its_panes(at_end: str, more: list[int]) -> None:
    """The row at 6 is in 0..10 and 5..15, which come out at 16; then the row at 3 is late for 0..10 alone."""
    log = replace(log_of(clock=[6, 16, 3, *more]), order=())
    check_intervals(log, Fraction(10), Fraction(5), Fraction(100), Fraction(0), at_end)


def check_intervals(log: Log, duration: Fraction, period: Fraction, age: Fraction, lag: Fraction, at_end: Any) -> None:
    amounts = {"intervalDuration": duration, "creationPeriod": period, "discardAge": age}
    spec = parse_window(", ".join(["timeInterval", *(f"{word}({my.text(one)})" for word, one in amounts.items())]))
    assert isinstance(spec, TimeInterval)
    expected, late = by_intervals(log, duration, period, age, lag, at_end)
    plan = plan_of(log, spec, event_time="clock", lag=lag, at_end=at_end)
    sequences = sequences_of(log, plan, [pos for pos in range(len(log.table)) if pos not in late])
    signals = signals_of(log, plan, spec, lag)
    context = WindowContext(event_time="clock", in_event_order=bool(log.order), at_end=at_end)
    found, _ = kind_of(spec).panes(sequences, signals, context)
    assert calls_in(replayed(log, plan, sequences, signals.marks, found, signals, context), log.key) == expected


def signals_of(log: Log, plan: Plan, spec: TimeInterval, lag: Fraction) -> Signals:
    rows, pos = one_batch(log.table), np.arange(len(log.table))
    lateness = make_lateness(log.kind("clock"), spec, lag, Fraction(0))
    values = clock_values(rows.column("clock"), "clock")
    listed = (
        lateness.list_advances_in_order(values)
        if log.order
        else lateness.list_advances(values, lateness.advance(values, None))
    )
    return watermark_signals(watermarks_in_order([watermarks_at(rows.select(list(plan.sort)), pos, *listed)]))
