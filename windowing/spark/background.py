"""Calls in threads of their own, so that the main thread stays free for signals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A call that runs in a thread of its own.

    ``error``: the exception that it raised, or None.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self.error: BaseException | None = None
        self._results: list[T] = []
        self._done = threading.Event()
        threading.Thread(target=self._work, args=(call,), daemon=True).start()

    def _work(self, call: Callable[[], T]) -> None:
        try:
            self._results.append(call())
        except BaseException as error:
            self.error = error
        finally:
            self._done.set()

    def finished(self, seconds: float | None) -> bool:
        """Wait at most ``seconds``, or forever if None; return whether the call is over."""
        # Not Thread.join: when a signal interrupts it, Python up to 3.12 takes the thread for ended.
        return self._done.wait(seconds)

    def result(self) -> T:
        """Return the result of a call that is over and raised nothing."""
        return self._results[0]
