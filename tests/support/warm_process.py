"""Many command lines in one process, over one Spark for each master: a line of JSON in, a line of JSON out.

Only Spark outlives a command; all else happens as in a process of its own. Run as a script by `running.Warm`.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
from typing import Any

import wincli.cli.console.progress
import wincli.cli.launch
from support.in_process import BootStandIn
from wincli.cli.main import _main
from wincli.windowing.spark.boot import SparkExecutor


class Shared(BootStandIn):
    """Stands where a command has its `SparkBoot`: its Spark is still there when the command has closed it."""

    def __init__(self) -> None:
        self.boot: Any = None
        self.on: Any = None
        self.start = wincli.cli.launch._boot

    def __call__(self, asked: Any, messages: Any) -> Shared:
        if self.on != (asked.master, asked.spark_conf):
            self.end()
            self.boot, self.on = self.start(asked, messages), (asked.master, asked.spark_conf)
        return self

    def __exit__(self, *_: object) -> None:
        self.session().on_progress = None

    def session(self) -> SparkExecutor:
        return self.boot.session()

    def end(self) -> None:
        if self.boot is not None:
            self.boot.close()


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """Run one command in its folder and environment; tell its exit code and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    before = dict(os.environ)
    os.chdir(asked["cwd"])
    os.environ.update(asked["env"])
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _main(asked["args"])
    finally:
        os.environ.clear()
        os.environ.update(before)
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def main() -> None:
    shared = Shared()
    wincli.cli.launch._boot = shared  # type: ignore[assignment]
    wincli.cli.console.progress._SECONDS_BETWEEN_LINES = (
        math.inf
    )  # what a command says must not hang on how busy this machine is
    try:
        for line in sys.stdin:
            sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
            sys.stdout.flush()
    finally:
        shared.end()


if __name__ == "__main__":
    main()
