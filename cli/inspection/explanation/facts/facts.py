"""The facts of a window, by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .....windowing.language.spec import Batched, Sliding, TimeInterval, Tumbling
from ..windows.panes_of_key import KeyPane
from .batched import batched_facts
from .event_time import event_time_facts
from .fact import Fact
from .sliding import sliding_facts
from .tumbling import tumbling_facts

_FACTS: Final[Mapping[type, Callable[[KeyPane, Any], Iterator[Fact]]]] = {
    Tumbling: tumbling_facts,
    Sliding: sliding_facts,
    TimeInterval: event_time_facts,
    Batched: batched_facts,
}


def facts_of(pane: KeyPane) -> tuple[Fact, ...]:
    """Return what opened a window, what brought it out, what came close, and what else is known of it."""
    spec = pane.panes.plan.spec
    return tuple(_FACTS[type(spec)](pane, spec))
