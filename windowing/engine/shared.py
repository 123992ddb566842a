"""What all tasks are given once, and not with each task: a broadcast variable, or the value itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class Shared(Protocol):
    """Anything that has the value: a Spark broadcast variable is one."""

    @property
    def value(self) -> Any:
        """The value itself."""
        ...


@dataclass(frozen=True, slots=True)
class Held:
    """A value at hand."""

    value: Any
