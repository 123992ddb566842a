"""The kinds of window by the type of their spec: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..language.spec import Batched, Sliding, TimeInterval, Tumbling, WindowSpec
from .batched import BatchedKind
from .contract import WindowKind
from .event_time import EventTimeKind
from .sliding import SlidingKind
from .tumbling.kind import tumbling_kind

_KINDS: Final[Mapping[type, Callable[[Any], WindowKind]]] = {
    Tumbling: tumbling_kind,
    Sliding: SlidingKind,
    TimeInterval: EventTimeKind,
    Batched: BatchedKind,
}


def kind_of(spec: WindowSpec) -> WindowKind:
    """Return the kind of a window, with its spec."""
    return _KINDS[type(spec)](spec)
