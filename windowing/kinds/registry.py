"""The kinds of window by the type of their spec: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from ..language.joins import Around, At
from ..language.patterns import RowPattern
from ..language.spec import (
    Batched,
    Growing,
    Joined,
    Lasting,
    SideWindows,
    Sliding,
    TableWindows,
    TimeInterval,
    Tumbling,
    WindowSpec,
)
from .batched import batched_kind
from .contract import WindowKind
from .event_time import event_time_kind
from .growing import growing_kind
from .joins.around import around_kind
from .joins.one_window import one_window_kind
from .joins.sides import sides_kind
from .lasting import lasting_kind
from .lasting_table import lasting_table_kind
from .matches.kind import pattern_kind
from .sliding import sliding_kind
from .table import table_kind
from .tumbling.kind import tumbling_kind


def _joined_kind(spec: Joined) -> WindowKind:
    if isinstance(spec.window, Around | At):
        return around_kind(spec)
    if isinstance(spec.window, SideWindows):
        return sides_kind(spec)
    inner = kind_of(spec.window)
    return inner if spec.join.how == "union" else one_window_kind(spec, inner)


_KINDS: Final[Mapping[type, Callable[[Any], WindowKind]]] = {
    Tumbling: lambda spec: growing_kind(spec) if isinstance(spec.policy, Growing) else tumbling_kind(spec),
    Sliding: sliding_kind,
    TimeInterval: event_time_kind,
    Batched: batched_kind,
    TableWindows: table_kind,
    RowPattern: pattern_kind,
    Joined: _joined_kind,
    Lasting: lambda spec: (lasting_table_kind if isinstance(spec.window, TableWindows) else lasting_kind)(spec),
}


@lru_cache(maxsize=64)
def kind_of(spec: WindowSpec) -> WindowKind:
    """Return the kind of a window, with its spec: made once for each spec."""
    return _KINDS[type(spec)](spec)
