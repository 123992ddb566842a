"""Reports that were never measured: every text of one is the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from wincli.cli.console.lanes import Lane
from wincli.windowing.ports import Counts


def lanes_on(scale: str, lanes: list[Lane], **more: Any) -> dict[str, Any]:
    axis = {"scale": scale, "name": "ts", "is_utc": False}
    return {"axis": axis, "keys": 1, "missed": 0, "is_by_rows": True, **more, "lanes": lanes}


def lane(key: str, bars: int, chosen: bool = False) -> Lane:
    starts = np.arange(bars, dtype=np.int64) * 997_333_111 + 1_793_491_200_000_000
    sizes = np.arange(bars, dtype=np.int64) % 100_000 + 1
    lengths = np.arange(bars, dtype=np.int64) % 900_000_000
    return Lane(key, starts, starts + lengths, sizes, np.ones(bars, np.int64), chosen)


def one_window(key: str, start: float, end: float) -> Lane:
    """A lane with one window of one row."""
    one = np.ones(1, np.int64)
    return Lane(key, np.array([start]), np.array([end]), one, one)


def distribution(unit: str, bars: list[tuple[float, float, int]], **more: Any) -> dict[str, Any]:
    """A distribution with these bars."""
    told = [dict(zip(("low", "high", "count"), bar, strict=True)) for bar in bars]
    values = {"zeros": 1, "count": 9, "least": 0, "most": 3, "total": 14.0, "quantiles": [(50, 1.0)], **more}
    return {"unit": unit, "bars": told, **values}


def cell(label: str, ordinal: int, **counts: int) -> dict[str, Any]:
    names = ("done", "redone", "gaps", "rows_in", "out", "late", "rejected", "held")
    return {"label": label, "ordinal": ordinal, **dict.fromkeys(names, 0), **counts}


def report(text: str = "u7", keys: int = 2, bars: int = 3, cells: int = 5, **more: Any) -> dict[str, Any]:
    """A report whose texts are all ``text``."""
    days = [cell(f"{text}{n}", 20_000 + n, done=n % 2, redone=1, rows_in=n, late=n % 3, held=n) for n in range(cells)]
    spread = distribution("rows", [(1, 2, 3), (2, 4, 5)], quantiles=[(50, 1.0), (90, 3.0), (99, 3.0)])
    series = {"name": text, "values": (1, 2, 0, 4), "is_trouble": True}
    calendar = {"kind": "run", "unit": "run", "cells": days, "hidden": 4, "out": "windows out", "again": "run again"}
    over_time = {"step": "day", "axis": None, "bounds": (text, text), "labels": (text,) * 4, "apart": ""}
    return {
        "path": text,
        "what": "state",
        "window": text,
        "clauses": ((text, text),) * 3,
        "settings": ((text, text),) * 3,
        "totals": {"rows in": 1, "windows": 2, "rejected": 3, "input files": 1, "input bytes": 5000},
        "accounts": {text: Counts(5, 3, 0, 0, 1, {text: 1})},
        "lanes": lanes_on("time", [lane(f"{text}{n}", bars, n < 1) for n in range(keys)], keys=None, missed=7),
        "over_time": {**over_time, "series": [series]},
        "lengths": spread,
        "sizes": spread,
        "reasons": ((text, 4),),
        "calendar": calendar,
        "phases": ((text, 1.0), ("total", 2.0)),
        "expectations": ((text, text),),
        "notes": (text,) * 30,
        "made_with": ((text, text),),
        **more,
    }
