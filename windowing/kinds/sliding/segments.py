"""Segments under sliding windows: what ``delta`` needs of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...language.spec import Delta, Sliding
from ...rows.sequence import Sequences, measures_and_amount
from ..delta.chains import transitions_of
from ..delta.kernels import comparable
from ..segment_summary import RetentionSummary
from .panes import evicted_at


def with_delta(spec: Sliding, segment: Sequences, window: RetentionSummary) -> RetentionSummary:
    """Return what later segments need of a segment, with what ``delta`` needs of it."""
    if isinstance(spec.trigger, Delta):
        window = replace(window, trigger=transitions_of(segment, spec.trigger.attribute, spec.trigger.amount))
    if isinstance(spec.evict, Delta):
        values, amount = measures_and_amount(segment, spec.evict.attribute, spec.evict.amount)
        compared: Any = comparable(values)
        evicts = bool((evicted_at(spec, segment) < len(segment)).any())
        window = replace(window, low=compared.min(), high=compared.max(), evicts=evicts, amount=amount)
    return window
