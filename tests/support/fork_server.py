"""A process that has loaded all that runs need, and forks one for each: JSON in, a line each, and JSON out.

A run is the whole command line, with a loop over its tasks in place of Spark; so it starts within some milliseconds,
and a signal that ends it ends nothing else. `support.forked_runs` talks to it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from support.in_process import stand_ins, wincli_here
from wincli.cli.main import _main
from wincli.writers.places import conditional


def start(asked: dict[str, Any]) -> dict[str, Any]:
    """Fork a run.

    ``said``: the folder for what it writes to stdout and stderr. ``lease``: how many seconds its leases hold, if not as
    long as ever.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = _run(asked)
        finally:
            os._exit(code)
    return {"pid": pid}


def _run(asked: dict[str, Any]) -> int:
    os.setsid()
    _put(0, os.devnull, os.O_RDONLY)
    _put(1, f"{asked['said']}/out", os.O_WRONLY | os.O_CREAT)
    _put(2, f"{asked['said']}/err", os.O_WRONLY | os.O_CREAT)
    os.chdir(asked["cwd"])
    os.environ.update(asked["env"])
    if asked["lease"] is not None:
        conditional.SECONDS, conditional._BEAT = asked["lease"], asked["lease"] / 4
    with stand_ins():
        code = _main(asked["args"])
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _put(descriptor: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def end(asked: dict[str, Any]) -> dict[str, Any]:
    """Wait for a run to end."""
    return {"code": os.waitstatus_to_exitcode(os.waitpid(asked["pid"], 0)[1])}


def warm(asked: dict[str, Any]) -> dict[str, Any]:
    """Run a command in this very process, so that what it loads is there for all runs; not one that opens a store."""
    ran = wincli_here(*asked["args"], cwd=Path(asked["cwd"]))
    gc.freeze()  # or each fork would copy what it never changes
    return {"code": ran.code, "err": ran.err}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        told = {"start": start, "end": end, "warm": warm}[asked["do"]](asked)
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
