"""Words to put before a command, so that it meets what a well kept machine never shows."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_DROP = """
import ctypes, os, sys
DROP_FROM_BOUNDING_SET, OVERRIDE, READ_SEARCH = 24, 1, 2
libc = ctypes.CDLL(None)
if any(libc.prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) for capability in (OVERRIDE, READ_SEARCH)):
    sys.exit("no")
os.execv(sys.argv[1], sys.argv[1:])
"""


def without_privilege() -> list[str]:
    """Let a command respect permissions, also where root runs the tests."""
    if os.geteuid() != 0:
        return []
    before = [sys.executable, "-c", _DROP]
    if sys.platform != "linux" or subprocess.run([*before, "/bin/true"], check=False).returncode:
        pytest.skip("root may do everything here")
    return before


def open_files_up_to(count: int) -> list[str]:
    """Let a command, and all that it starts, have no more files open than this."""
    return ["/bin/sh", "-c", f'ulimit -n {count}; exec "$@"', "sh"]


def files_up_to(kib: int) -> list[str]:
    """Let a command write no file larger than this."""
    return ["/bin/sh", "-c", f'ulimit -f {2 * kib}; exec "$@"', "sh"]  # POSIX counts blocks of 512 bytes
