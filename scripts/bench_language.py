"""The contests of `scripts/bench --contest` about expressions, windows that follow conditions, and enrichment."""

from __future__ import annotations

from pathlib import Path

from bench_contests import Command, Entrant, log_of, script, wincli
from bench_kinds import DUCKDB, KEYED

SUMS = ("--agg", "count()", "--agg", "sum(amount)", "--agg", "sum(latency)")
NEW_SUMS = ("--agg", "count()", "--agg", "sum(net)", "--agg", "sum(seconds)")
LETS = ("--let", "net=amount * 0.8 - 1", "--let", "seconds=latency / 1000")

JOINED = """
  (SELECT e."user", e.ts, q.amount
   FROM read_parquet('{{data}}/*.parquet') e
   ASOF LEFT JOIN read_parquet('{{data}}/../{quotes}/*.parquet') q ON e."user" = q."user" AND e.ts >= q.ts)"""

SUM_OF_JOINED = f"SELECT count(*) AS count, sum(amount) AS sum FROM {JOINED}"

GAPS_OF_JOINED = f"""
  SELECT "user", w, min(ts) AS first, max(ts) AS last, count(*) AS count, sum(amount) AS sum
  FROM (SELECT *, sum(CASE WHEN ts - previous > INTERVAL 60 SECOND THEN 1 ELSE 0 END)
               OVER (PARTITION BY "user" ORDER BY ts) AS w
        FROM (SELECT *, lag(ts) OVER (PARTITION BY "user" ORDER BY ts) AS previous FROM {JOINED}))
  GROUP BY "user", w"""


def contests(millions: int) -> dict[str, tuple[Entrant, ...]]:
    """Return the contests over logs of ``millions`` million rows. The others are compared with the first entrant."""
    events = log_of(millions)
    gaps = Entrant("gap(ts, 60)", *events, keyed("gap(ts,60)", *SUMS))
    either = "gap(ts,60) or delta(ts,4h) or count(1000)"
    return {
        "or": (Entrant("gap or delta or count", *events, keyed(either, *SUMS)), gaps),
        "while": (Entrant("while(latency > 500)", *events, keyed("while(latency > 500)", *SUMS)), gaps),
        "where": (Entrant("half of the rows", *events, keyed("gap(ts,60)", *SUMS, "--where", "latency < 20.09")), gaps),
        "let": (Entrant("two new columns", *events, keyed("gap(ts,60)", *NEW_SUMS, *LETS)), gaps),
        "enrich": with_quotes(millions, "delta(ts,60)", (), SUM_OF_JOINED),
        "enrich-gaps": with_quotes(millions, "gap(ts,60)", KEYED, GAPS_OF_JOINED),
    }


def with_quotes(millions: int, window: str, options: tuple[str, ...], query: str) -> tuple[Entrant, ...]:
    """Return windows over rows that have the newest quote of their user, one quote for each 20 rows, and peers."""
    name = f"quotes-{millions}m"
    _, (*_, keys) = log_of(millions)
    sizes = ("--rows", str(millions * 50_000), "--files", "1", "--every", "0.2", "--seed", "2", "--keys", keys)
    events, tables = log_of(millions), ((name, sizes),)
    plain = wincli("--window", window, *options, "--agg", "count()", "--agg", "sum(amount)")

    def enriched(data: Path, out: Path) -> list[str]:
        request = f"q={data.parent / name} on user asof ts take amount"
        return wincli("--window", window, *options, "--agg", "count()", "--agg", "sum(q_amount)", "--enrich", request)(
            data, out
        )

    return (
        Entrant(f"{window}, enriched", *events, enriched, tables),
        Entrant("duckdb, ASOF LEFT JOIN", *events, script(DUCKDB.format(query=query.format(quotes=name))), tables),
        Entrant(f"{window} alone", *events, plain),
    )


def keyed(window: str, *options: str) -> Command:
    """Return the command line of windows of each user."""
    return wincli("--window", window, *KEYED, *options)
