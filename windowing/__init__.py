"""Exact windows over ordered rows. `aggregate` applies one to an Arrow table, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowing.local import aggregate

__all__ = ["aggregate"]


def __getattr__(name: str) -> Any:
    """Load `aggregate` on first use: the command line imports this package and must stay light."""
    if name == "aggregate":
        from windowing.local import aggregate  # noqa: PLC0415

        return aggregate
    raise AttributeError(f"module 'windowing' has no attribute {name!r}")
