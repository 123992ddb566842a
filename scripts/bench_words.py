"""The contests of `scripts/bench --contest` about conditions on the open window, windows of a table, and time."""

from __future__ import annotations

import datetime as dt
import itertools
from pathlib import Path

from bench_contests import Command, Entrant, log_of, wincli
from bench_kinds import KEYED

COUNT = ("--agg", "count()", "--agg", "sum(amount)")
BEGIN = dt.datetime(2026, 11, 1)
WINDOWS, LENGTH = 1_000, 200
"""How many windows the table has, and the seconds of each: together as long as 20 M rows."""
DOWN_UP = "down = latency < lag(latency), up = latency > lag(latency)"


def contests(millions: int) -> dict[str, tuple[Entrant, ...]]:
    """Return the contests over logs of ``millions`` million rows. The others are compared with the first entrant."""
    events, minutes = log_of(millions), (*KEYED, "--order-by", "ts")

    def entrant(window: str, *options: str, name: str | None = None) -> Entrant:
        return Entrant(name or window, *events, wincli("--window", window, *minutes, *options))

    cells, lasting = f"time({LENGTH})", "until=ts + INTERVAL '300' SECOND"
    return {
        "split": (
            entrant("delta(ts, 60)", *COUNT),
            entrant("split(ts - first(ts) > 60s)", *COUNT),
            entrant("delta(latency, 50)", *COUNT),
            entrant("split(latency - first(latency) > 50)", *COUNT),
            entrant("split(abs(latency - first(latency)) > 50)", *COUNT),
            entrant("reaches(sum(amount), 500)", *COUNT),
            entrant("punct(sum(amount) >= 500 and count() >= 3)", *COUNT),
        ),
        "table": (entrant(cells, *COUNT), Entrant("table(w)", *events, of_table(*minutes, *COUNT))),
        "twa": tuple(
            entrant(cells, "--agg", f"{call}(latency)", name=f"{call} of {cells}")
            for call in ("mean", "twa", "integral", "slope")
        ),
        "every": (
            entrant("time(1h)", *COUNT),
            entrant("time(1h) every 5m", *COUNT),
            entrant("timeInterval, intervalDuration(1h), creationPeriod(5m)", *COUNT),
        ),
        "ends": (
            entrant(cells, *COUNT),
            entrant(cells, *COUNT, "--let", lasting, "--ends", "until", name=f"{cells}, rows of 300 s"),
            entrant(f"timeInterval, intervalDuration(400), creationPeriod({LENGTH})", *COUNT),
        ),
        "match": (
            entrant("delta(ts, 60)", *COUNT),
            entrant(f"match(. down+ up+, {DOWN_UP})", *COUNT),
            entrant(f"match(. down+ up+, {DOWN_UP}) within 10m", *COUNT),
            entrant(f"match(. down+ up+, {DOWN_UP})", *COUNT, "--agg", "last(down.latency)", name="of a symbol"),
            entrant("match(a -> b, a = latency > 90, b = latency < 10) within 1h, overlapping", *COUNT),
            entrant("funnel(see = kind = 'view', take = kind = 'cart', buy = kind = 'buy') within 1h"),
            entrant("match(a up+, a = true, up = latency > nth(latency, -2))", *COUNT),
        ),
        "distinct": (
            entrant("delta(ts, 60)", *COUNT),
            entrant("delta(ts, 60)", *COUNT, "--distinct", "kind within 1m", name="delta, distinct kinds"),
        ),
    }


def of_table(*options: str) -> Command:
    """Return the command line of windows of a table, which is made beside the log."""

    def command(data: Path, out: Path) -> list[str]:
        path = data.parent / "windows.csv"
        begins = [BEGIN + dt.timedelta(seconds=LENGTH * place) for place in range(WINDOWS + 1)]
        lines = [f"{begin.isoformat()},{end.isoformat()}" for begin, end in itertools.pairwise(begins)]
        path.write_text("\n".join(["begins,ends", *lines, ""]), encoding="utf-8")
        return wincli("--window", "table(w)", "--windows", f"w={path} from begins to ends", *options)(data, out)

    return command
