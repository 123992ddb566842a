"""The contests of `scripts/bench --contest` about joins over windows: events, and quotes of the same users, as many."""

from __future__ import annotations

from pathlib import Path

from bench_contests import Command, Entrant, log_of, script, wincli
from bench_kinds import DUCKDB

SUMS = ("--agg", "count(q_amount)", "--agg", "sum(q_amount)")
HALF_MINUTE = 'e."user" = q."user" AND q.ts >= e.ts - INTERVAL 30 SECOND AND q.ts <= e.ts'
QUOTES = "read_parquet('{{data}}/../{quotes}/*.parquet') q"

AROUND = f"""
  SELECT any_value(e."user") AS "user", any_value(e.ts) AS ts, any_value(e.amount) AS amount,
         any_value(latency) AS latency, any_value(kind) AS kind, count(q.amount) AS count, sum(q.amount) AS sum
  FROM read_parquet('{{{{data}}}}/*.parquet', file_row_number = true, filename = true) e
  LEFT JOIN (SELECT "user", ts, amount FROM {QUOTES}) q ON {HALF_MINUTE}
  GROUP BY filename, file_row_number"""
PAIRS = f"""
  SELECT e.*, q.ts AS q_ts, q.amount AS q_amount FROM read_parquet('{{{{data}}}}/*.parquet') e JOIN {QUOTES}
  ON {HALF_MINUTE}"""
LATEST = f"""
  SELECT e.*, q.ts AS q_ts, q.amount AS q_amount FROM read_parquet('{{{{data}}}}/*.parquet') e
  ASOF LEFT JOIN {QUOTES} ON e."user" = q."user" AND e.ts >= q.ts"""

POLARS_PAIRS = """
import polars as pl, sys
data, out = sys.argv[1:]
events = pl.scan_parquet(f"{{data}}/*.parquet").with_columns(begin=pl.col("ts") - pl.duration(seconds=30))
quotes = pl.scan_parquet(f"{{data}}/../{quotes}/*.parquet").select(user_q="user", ts_q="ts", amount_q="amount")
pairs = events.join_where(quotes, pl.col("user") == pl.col("user_q"), pl.col("ts_q") <= pl.col("ts"),
                          pl.col("ts_q") >= pl.col("begin"))
pairs.drop("begin").sink_parquet(f"{{out}}/out.parquet")
"""


def contests(millions: int) -> dict[str, tuple[Entrant, ...]]:
    """Return the contests over two logs of ``millions`` million rows; the others are compared with the first entrant.

    In ``join-heavy`` one user has all rows, of which memory is what is asked.
    """
    name, sizes = log_of(millions, "--seed", "2", name="quotes", keys=10_000)
    events = log_of(millions, keys=10_000, name="trades")
    alone, of_one = (
        log_of(millions, *seed, keys=1, name=log) for log, seed in [("alone", ()), ("one", ("--seed", "2"))]
    )

    def entrant(window: str, how: str, *options: str) -> Entrant:
        return Entrant(window, *events, joined(name, window, how, *options), ((name, sizes),))

    def peer(title: str, text: str) -> Entrant:
        return Entrant(title, *events, script(text), ((name, sizes),))

    def duckdb(query: str) -> str:
        return DUCKDB.format(query=query.format(quotes=name))

    ranges = "duckdb, a range join"
    return {
        "around": (
            entrant("around(30s, 0)", "left", *SUMS),
            peer(ranges, duckdb(AROUND)),
        ),
        "pairs": (
            entrant("around(30s, 0)", "inner"),
            entrant("sliding, count(0) join time(30s)", "inner"),
            peer(ranges, duckdb(PAIRS)),
            peer("polars, join_where", POLARS_PAIRS.format(quotes=name)),
        ),
        "at": (
            entrant("at(0)", "left"),
            entrant("at(-1s, 0, 5s, 1m)", "left"),
            peer("duckdb, ASOF LEFT JOIN", duckdb(LATEST)),
        ),
        "join-heavy": (
            Entrant("one user", *alone, joined(of_one[0], "around(100ms, 100ms)", "left", *SUMS), (of_one,)),
            entrant("around(100ms, 100ms)", "left", *SUMS),
        ),
    }


def joined(quotes: str, window: str, how: str, *options: str) -> Command:
    """Return the command line of a join with the log beside that has the name ``quotes``."""

    def command(data: Path, out: Path) -> list[str]:
        request = f"q={data.parent / quotes} on user by ts {how} take ts, amount"
        return wincli("--window", window, "--join", request, *options)(data, out)

    return command
