"""What `scripts/bench --nights` times: a night of 1 M rows onto 100,000 open windows, and the same without a state."""

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


def show_nights(log: Path, rounds: int, environment: Mapping[str, str]) -> None:
    """Run the first of the two files of a log onto a new state; then time the second, onto copies of it and alone."""
    first, second = sorted(log.glob("*.parquet"))
    with tempfile.TemporaryDirectory(dir=log.parent) as name:
        folder = Path(name)
        state = folder / "state"
        _seconds(environment, first, folder / "first", "--state", str(state))
        left = json.loads((state / "run-000001" / "unit.json").read_text())["stages"][0]
        alone: list[float] = []
        onto: list[float] = []
        for turn in range(rounds):
            alone.append(_seconds(environment, second, folder / f"alone-{turn}"))
            shutil.copytree(state, folder / f"state-{turn}")
            onto.append(
                _seconds(environment, second, folder / f"onto-{turn}", "--state", str(folder / f"state-{turn}"))
            )
            print(f"  alone {alone[-1]:.1f} s, onto the state {onto[-1]:.1f} s", file=sys.stderr, flush=True)
    print("| night of 1 M rows | seconds | all turns |")
    print("|---|---|---|")
    for told, seconds in (("without a state", alone), (f"onto {left['open']['windows']:,} open windows", onto)):
        print(f"| {told} | {statistics.median(seconds):.1f} | {' '.join(f'{s:.1f}' for s in seconds)} |")
    print(
        f"\nThe state adds {statistics.median(onto) - statistics.median(alone):.1f} s; "
        f"it holds {left['counts']['held']:,} rows."
    )


def _seconds(environment: Mapping[str, str], log: Path, out: Path, *more: str) -> float:
    """Run wincli as a process of its own; return how long it took."""
    program = str(Path(sys.executable).with_name("wincli"))
    started = time.perf_counter()
    run = subprocess.run(
        [program, "run", *WINDOW, "-q", *more, str(log), str(out)], stderr=subprocess.PIPE, env=environment, check=False
    )
    if run.returncode:
        sys.exit(f"wincli failed:\n{run.stderr.decode()[-2000:]}")
    return time.perf_counter() - started
