"""Reports that were never measured: every text of one is the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from wincli.cli.inspection.report.report import (
    Axis,
    Bar,
    Calendar,
    Cell,
    Distribution,
    Lane,
    Lanes,
    OverTime,
    Report,
    Series,
)
from wincli.windowing.ports import Counts

TIME = Axis("time", "ts")


def lane(key: str, bars: int, chosen: bool = False) -> Lane:
    starts = np.arange(bars, dtype=np.int64) * 997_333_111 + 1_793_491_200_000_000
    sizes = np.arange(bars, dtype=np.int64) % 100_000 + 1
    lengths = np.arange(bars, dtype=np.int64) % 900_000_000
    return Lane(key, chosen, bars, int(sizes.sum()), starts, starts + lengths, sizes, np.ones(bars, np.int64))


def one_window(key: str, start: float, end: float) -> Lane:
    """A lane with one window of one row."""
    one = np.ones(1, np.int64)
    return Lane(key, False, 1, 1, np.array([start]), np.array([end]), one, one)


def report(text: str = "u7", keys: int = 2, bars: int = 3, cells: int = 5, **more: Any) -> Report:
    """A report whose texts are all ``text``."""
    days = tuple(
        Cell(f"{text}{n}", 20_000 + n, done=n % 2, redone=1, rows_in=n, late=n % 3, held=n) for n in range(cells)
    )
    spread = Distribution("rows", (Bar(1, 2, 3), Bar(2, 4, 5)), 1, 9, 0, 3, 14.0, ((50, 1.0), (90, 3.0), (99, 3.0)))
    values: dict[str, Any] = {
        "path": text,
        "what": "state",
        "window": text,
        "clauses": ((text, text),) * 3,
        "settings": ((text, text),) * 3,
        "totals": (("rows in", 1), ("windows", 2), ("rejected", 3), ("input files", 1), ("input bytes", 5000)),
        "accounts": {text: Counts(5, 3, 0, 0, 1, {text: 1})},
        "lanes": Lanes(TIME, tuple(lane(f"{text}{n}", bars, n < 1) for n in range(keys)), None, 7, True),
        "over_time": OverTime("day", None, (text, text), (text,) * 4, (Series(text, (1, 2, 0, 4), True),)),
        "lengths": spread,
        "sizes": spread,
        "reasons": ((text, 4),),
        "calendar": Calendar("run", "run", days, 4, "windows out", "run again"),
        "phases": ((text, 1.0), ("total", 2.0)),
        "expectations": ((text, text),),
        "notes": (text,) * 30,
        "made_with": ((text, text),),
    }
    return Report(**{**values, **more})
