"""Exact windows over ordered rows. `aggregate` applies one to an Arrow table, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowing.local import aggregate
    from windowing.operator import Operator, PaneInfo

__all__ = ["Operator", "PaneInfo", "aggregate"]


def __getattr__(name: str) -> Any:
    """Load what the package offers on first use: the command line imports it and must stay light."""
    if name == "aggregate":
        from windowing.local import aggregate  # noqa: PLC0415

        return aggregate
    if name in {"Operator", "PaneInfo"}:
        from windowing import operator  # noqa: PLC0415

        return getattr(operator, name)
    raise AttributeError(f"module 'windowing' has no attribute {name!r}")
