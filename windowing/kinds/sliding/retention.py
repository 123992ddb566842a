"""What sliding windows keep from one run to the next (semantics section 7)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...columns.arrays import Mask, combined
from ...language.spec import Count, Delta, Sliding, Time
from ...sequences.sequence import Sequences
from ...state.window_state import RestoredState
from ..context import WindowContext
from ..delta.kernels import comparable, risen_pairs
from .clock import sliding_clock
from .panes import evicted_at, tripping


def rows_at_end(spec: Sliding, sequences: Sequences, context: WindowContext) -> Mask:
    """Return which rows the windows hold at the current time of the clock at the end, bool (n,)."""
    match spec.evict:
        case Count(n):
            place, ends = np.arange(len(sequences)), np.repeat(sequences.bounds[1:], np.diff(sequences.bounds))
            return place >= ends - n
        case Delta():
            return evicted_at(spec, sequences) == len(sequences)
        case Time(seconds):
            clock = sliding_clock(spec, sequences, context)
            at = np.full(len(sequences), clock.now, clock.values.dtype)
            return ~risen_pairs(comparable(at), comparable(clock.values), clock.age(seconds))


def full_and_baseline(spec: Sliding, sequences: Sequences, restored: RestoredState) -> tuple[Mask, pa.Array]:
    """Return for each sequence whether ``delta`` has evicted a row, and the baseline of its ``delta`` trigger."""
    full, baseline, bounds = restored.key_state.full, restored.key_state.baseline, sequences.bounds
    if isinstance(spec.evict, Delta):
        evictions_before = np.append(0, np.cumsum(evicted_at(spec, sequences) < len(sequences)))
        full = full | (np.diff(evictions_before[bounds]) > 0)
    if isinstance(spec.trigger, Delta):
        tripped = tripping(spec.trigger, sequences, restored)
        newest = np.searchsorted(tripped, bounds[1:]) - 1
        has_tripped = newest >= np.searchsorted(tripped, bounds[:-1])
        values = combined(sequences.rows.column(spec.trigger.attribute))
        own = len(values) + np.arange(len(bounds) - 1)
        picks = np.where(has_tripped, np.append(tripped, 0)[newest], own)
        baseline = pa.concat_arrays([values, baseline.cast(values.type)]).take(pa.array(picks))
    return full, baseline
