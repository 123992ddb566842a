"""What sliding windows keep from one run to the next (semantics section 7)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...columns.arrays import Mask, combined
from ...language.spec import Delta, Sliding
from ...rows.sequence import Sequences
from ...state.window_state import RestoredState
from .panes import evicted_at
from .triggers import tripping


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
