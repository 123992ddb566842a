"""Signals that stop a run: each ends it with an orderly clean-up and an exit code of its own."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any, NoReturn

from .messages import HUNG_UP, INTERRUPTED, QUIT, TERMINATED, Stopped

SIGNALS: dict[int, int] = {
    signal.SIGHUP: HUNG_UP,
    signal.SIGINT: INTERRUPTED,
    signal.SIGQUIT: QUIT,
    signal.SIGTERM: TERMINATED,
}
"""Signal number to the exit code of a run that it ends."""


def stop_on_signals() -> None:
    """Install the handlers that stop this process with a clean-up. Under ``nohup`` a hang-up stays ignored."""
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _stop_again


def _stop(number: int, _: Any) -> NoReturn:
    """Raise `Stopped`. A second signal during the clean-up is ignored."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(SIGNALS[number])


def _stop_again(lost: Any) -> None:
    """Send a lost signal again: its `Stopped` was raised where C calls back into Python, as numba's compiler does."""
    if not isinstance(lost.exc_value, Stopped):
        sys.__unraisablehook__(lost)
        return
    number = next(number for number, code in SIGNALS.items() if code == lost.exc_value.code)
    signal.signal(number, _stop)
    again = threading.Timer(0.05, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()
