"""Dispatch by kind of window: the one place that knows them all and turns a spec over sequences into panes."""

from __future__ import annotations

from dataclasses import replace

from ..kinds.batched.panes import batched_panes
from ..kinds.context import WindowContext
from ..kinds.event_time.panes import interval_panes
from ..kinds.eviction.key_lifetimes import lifetimes, merge
from ..kinds.sliding.panes import sliding_panes
from ..kinds.tumbling.panes import tumbling_panes
from ..language.spec import Batched, Sliding, TimeInterval, Tumbling, WindowSpec
from ..panes.panes import Panes
from ..sequences.marks import Marks, concatenate
from ..sequences.sequence import Sequences
from .signals import Signals


def panes_of(spec: WindowSpec, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
    """Return the panes of a window, including those that only the end of the data brings out.

    Also return the marks that causes of panes refer to, numbered after the rows: the signals, then partition evictions.
    """
    match spec:
        case Tumbling() | Sliding() if spec.eviction is not None:
            return _of_lifetimes(spec, sequences, signals, context)
        case Tumbling() | Sliding():
            return _of_keys(spec, sequences, signals.marks, context), signals.marks
        case TimeInterval():
            assert signals.watermarks is not None
            assert context.event_time is not None
            return interval_panes(spec, sequences, signals.watermarks, context.event_time), signals.marks
        case Batched():
            return batched_panes(spec, sequences, context), signals.marks


def _of_keys(spec: Tumbling | Sliding, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:
    if isinstance(spec, Tumbling):
        return tumbling_panes(spec, sequences, marks, context)
    return sliding_panes(spec, sequences, context)


def _of_lifetimes(
    spec: Tumbling | Sliding, sequences: Sequences, signals: Signals, context: WindowContext
) -> tuple[Panes, Marks]:
    """Return the panes of windows with partition eviction, one lifetime of a key at a time (semantics section 4)."""
    marks = signals.marks
    assert signals.evictions is not None
    key_lifetimes = lifetimes(signals.evictions, sequences)
    per_lifetime = replace(sequences, bounds=key_lifetimes.bounds)
    restored = context.restored and key_lifetimes.restored(context.restored)
    panes = _of_keys(spec, per_lifetime, marks, replace(context, last_tick=key_lifetimes.last_tick, restored=restored))
    panes = merge(spec, panes, key_lifetimes, sequences, len(marks), context.emit_evicted)
    return panes, concatenate(marks, key_lifetimes.evictions.causes)
