"""The kinds of window by the type of their spec: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib import import_module
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
from .contract import WindowKind


def _kind(function: str, *arguments: Any) -> WindowKind:
    """Make a kind by a function of a module of this package, imported here: a run has one kind of window."""
    module, _, name = function.rpartition(".")
    found: WindowKind = getattr(import_module(f"{__package__}.{module}"), name)(*arguments)
    return found


def _joined_kind(spec: Joined) -> WindowKind:
    if isinstance(spec.window, Around | At):
        return _kind("joins.around.around_kind", spec)
    if isinstance(spec.window, SideWindows):
        return _kind("joins.sides.sides_kind", spec)
    inner = kind_of(spec.window)
    return inner if spec.join.how == "union" else _kind("joins.one_window.one_window_kind", spec, inner)


def _lasting_kind(spec: Lasting) -> WindowKind:
    is_table = isinstance(spec.window, TableWindows)
    return _kind("lasting_table.lasting_table_kind" if is_table else "lasting.lasting_kind", spec)


def _tumbling_kind(spec: Tumbling) -> WindowKind:
    is_growing = isinstance(spec.policy, Growing)
    return _kind("growing.growing_kind" if is_growing else "tumbling.kind.tumbling_kind", spec)


_KINDS: Final[Mapping[type, Callable[[Any], WindowKind]]] = {
    Tumbling: _tumbling_kind,
    Sliding: partial(_kind, "sliding.sliding_kind"),
    TimeInterval: partial(_kind, "event_time.event_time_kind"),
    Batched: partial(_kind, "batched.batched_kind"),
    TableWindows: partial(_kind, "table.table_kind"),
    RowPattern: partial(_kind, "matches.kind.pattern_kind"),
    Joined: _joined_kind,
    Lasting: _lasting_kind,
}


@lru_cache(maxsize=64)
def kind_of(spec: WindowSpec) -> WindowKind:
    """Return the kind of a window, with its spec: made once for each spec."""
    return _KINDS[type(spec)](spec)
