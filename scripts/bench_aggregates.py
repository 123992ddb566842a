"""The contest of `scripts/bench` over aggregates that need the values of a window: each in a job of small windows."""

from __future__ import annotations

from bench_contests import AGGREGATES, DELTA, Entrant, log_of, wincli
from bench_kinds import KEYED

ONES = (
    "collect(amount)",
    "collect(kind)",
    "mode(amount)",
    "mode(latency)",
    "quantile(amount, 0.9)",
    "string_join(kind, ',')",
    "count_distinct(kind)",
    "count_distinct(latency)",
)
"""Few prices and kinds are different, and nearly all latencies."""


def contests(millions: int) -> dict[str, tuple[Entrant, ...]]:
    """Return the contest over a log of ``millions`` million rows. The others are compared with the first entrant."""
    window, events = DELTA[: -len(AGGREGATES)], log_of(millions)
    ones = (Entrant(one, *events, wincli(*window, "--agg", one, *KEYED)) for one in ONES)
    return {"aggregates": (Entrant("count, sum, max", *events, wincli(*DELTA, *KEYED)), *ones)}
