"""Rows that a state retains before new rows of the same keys, and keys that have no rows any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..clock.watermark import Watermarks
from ..emit.result_tables import finishing_tables
from ..emit.result_values import HiddenPanes
from ..kinds.signals import Signals
from ..planning.plan import Plan
from ..sequences.sequence import Sequences
from ..state.window_state import RestoredState, WindowState, restore


def restore_rows(
    plan: Plan,
    state: WindowState | None,
    new: Sequences,
    signals: Signals,
    earlier_advances: Watermarks | None,
    since: int | float | None,
) -> tuple[Sequences, RestoredState | None, WindowState | None]:
    """Put restored rows before new rows of the same keys; also return the state of keys that have no rows at all.

    ``earlier_advances``: the advances among ``signals`` that were restored.
    """
    if state is None:
        return new, None, None
    sequences, restored, idle = restore(plan.kind.baseline_attribute, state, new)
    earlier_signals = 0
    if signals.watermarks is not None and earlier_advances is not None:
        earlier_signals = int(np.count_nonzero(np.isin(signals.marks.pos, earlier_advances.marks.pos)))
    return sequences, replace(restored, signals=earlier_signals, since=since), idle


def finish_operators(
    plan: Plan, idle: WindowState | None, hidden: HiddenPanes
) -> tuple[Iterable[pa.Table], WindowState | None]:
    """Where windows do not go on, return the last rows of operators whose keys have no rows, and these keys without."""
    if idle is None or plan.options.operator is None or plan.options.at_end == "hold":
        return (), idle
    nothing = pa.nulls(len(idle.key_state.rows), pa.string())
    rest = replace(idle, key_state=replace(idle.key_state, operator=nothing))
    return (finishing_tables(plan, idle, hidden) if plan.options.at_end == "flush" else ()), rest
