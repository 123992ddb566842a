"""What stands where a command has its `SparkBoot`, with nothing to start and nothing to close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self


class BootStandIn:
    """A boot whose session, which subclasses give, is there from the beginning."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def start_fork_server(self) -> None: ...

    def connect(self) -> None: ...

    def warm(self, call: Callable[..., object], *arguments: Any) -> None:
        call(*arguments)

    def close(self) -> None: ...
