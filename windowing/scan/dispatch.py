"""The one place that knows every kind of window: a spec over sequences becomes panes."""

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


def panes_of(spec: WindowSpec, sequences: Sequences, signals: Signals, setting: WindowContext) -> tuple[Panes, Marks]:
    """Return the panes of a window, those that only the end of the data brings out included.

    Also return the marks that their causes count on from the rows: the signals, and what evicted keys.
    """
    match spec:
        case Tumbling() | Sliding() if spec.eviction is not None:
            return _of_segments(spec, sequences, signals, setting)
        case Tumbling() | Sliding():
            return _of_keys(spec, sequences, signals.marks, setting), signals.marks
        case TimeInterval():
            assert signals.watermarks is not None
            assert setting.event_time is not None
            return interval_panes(spec, sequences, signals.watermarks, setting.event_time), signals.marks
        case Batched():
            return batched_panes(spec, sequences, setting), signals.marks


def _of_keys(spec: Tumbling | Sliding, sequences: Sequences, marks: Marks, setting: WindowContext) -> Panes:
    if isinstance(spec, Tumbling):
        return tumbling_panes(spec, sequences, marks, setting)
    return sliding_panes(spec, sequences, setting)


def _of_segments(
    spec: Tumbling | Sliding, sequences: Sequences, signals: Signals, setting: WindowContext
) -> tuple[Panes, Marks]:
    """Windows of keys that are evicted now and then (semantics section 4)."""
    marks = signals.marks
    assert signals.evictions is not None
    cut = lifetimes(signals.evictions, sequences)
    pieces = replace(sequences, bounds=cut.bounds)
    past = setting.restored and cut.restored(setting.restored)
    panes = _of_keys(spec, pieces, marks, replace(setting, last_tick=cut.last_tick, restored=past))
    panes = merge(spec, panes, cut, sequences, len(marks), setting.emit_evicted)
    return panes, concatenate(marks, cut.evictions.causes)
