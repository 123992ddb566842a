"""The runs of `scripts/bench --incremental`: 1 M rows on top of 100,000 open windows, and the same without a state."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench_contests import wincli

WINDOW = (
    "--window",
    "gap(ts, 30m)",
    "--key",
    "user",
    "--agg",
    "count()",
    "--agg",
    "sum(amount)",
    "--agg",
    "max(latency)",
)


def show_incremental(log: Path, rounds: int, environment: Mapping[str, str]) -> None:
    """Run the first of the two files of a log with a new state; then time the second with copies of it, and without."""
    first, second = sorted(log.glob("*.parquet"))
    with tempfile.TemporaryDirectory(dir=log.parent) as name:
        folder = Path(name)
        state = folder / "state"
        _seconds(environment, first, folder / "first", "--state", str(state))
        snapshot = json.loads((state / "run-000001" / "unit.json").read_text())["stages"][0]
        alone: list[float] = []
        incremental: list[float] = []
        for turn in range(rounds):
            alone.append(_seconds(environment, second, folder / f"alone-{turn}"))
            shutil.copytree(state, folder / f"state-{turn}")
            incremental.append(
                _seconds(environment, second, folder / f"incremental-{turn}", "--state", str(folder / f"state-{turn}"))
            )
            print(f"  without a state {alone[-1]:.1f} s, with it {incremental[-1]:.1f} s", file=sys.stderr, flush=True)
    print("| run of 1 M rows | seconds | all rounds |")
    print("|---|---|---|")
    for label, seconds in (
        ("without a state", alone),
        (f"on top of {snapshot['open']['windows']:,} open windows", incremental),
    ):
        print(f"| {label} | {statistics.median(seconds):.1f} | {' '.join(f'{s:.1f}' for s in seconds)} |")
    print(
        f"\nThe state adds {statistics.median(incremental) - statistics.median(alone):.1f} s; "
        f"it holds {snapshot['counts']['held']:,} rows."
    )


def _seconds(environment: Mapping[str, str], log: Path, out: Path, *more: str) -> float:
    """Run wincli as a process of its own; return its wall-clock seconds."""
    started = time.perf_counter()
    run = subprocess.run(wincli(*WINDOW, *more)(log, out), stderr=subprocess.PIPE, env=environment, check=False)
    if run.returncode:
        sys.exit(f"wincli failed:\n{run.stderr.decode()[-2000:]}")
    return time.perf_counter() - started
