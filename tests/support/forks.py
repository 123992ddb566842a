"""Work in a fork of this process, which a kill may end."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def in_fork(work: Callable[[], object]) -> int:
    """The exit code: 0, 1 with a traceback on stderr, or what the signal was, less than 0."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
