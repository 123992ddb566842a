"""The windows of `scripts/bench --kinds`: every kind on the same log, with peers where they have such a window."""

from __future__ import annotations

from dataclasses import dataclass

STATS = ("count()", "sum(amount)", "mean(amount)", "min(amount)", "max(amount)")


@dataclass(frozen=True)
class Kind:
    """A kind of window to time.

    ``name``: the name in the table.
    ``window``: the spec.
    ``options``: more options of `wincli run`.
    ``aggregates``: the aggregates.
    ``duckdb``: the same query in DuckDB; None where it has no such window.
    ``polars``: the same query in Polars; None where it has no such window.
    """

    name: str
    window: str
    options: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = STATS
    duckdb: str | None = None
    polars: str | None = None


DUCKDB = """
import duckdb, sys
data, out = sys.argv[1:]
duckdb.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
duckdb.execute(f'''COPY ({query}) TO '{{out}}/out.parquet' (FORMAT parquet)''')
"""

POLARS = """
import polars as pl, sys
data, out = sys.argv[1:]
rows = pl.scan_parquet(f"{{data}}/*.parquet").select("user", "ts", "amount")
x = pl.col("amount")
stats = [pl.len().alias("count"), x.sum().alias("sum"), x.mean().alias("mean")]
stats += [x.min().alias("min"), x.max().alias("max")]
{query}.sink_parquet(f"{{out}}/out.parquet")
"""

ROLLING = """SELECT "user", ts, count(*) OVER w AS count, sum(amount) OVER w AS sum, avg(amount) OVER w AS mean,
  min(amount) OVER w AS min, max(amount) OVER w AS max FROM read_parquet('{{data}}/*.parquet')
  WINDOW w AS (PARTITION BY "user" ORDER BY ts {frame})"""

HOP = """SELECT "user", w, count(*) AS count, sum(amount) AS sum, avg(amount) AS mean,
  min(amount) AS min, max(amount) AS max
  FROM (SELECT "user", amount, time_bucket(INTERVAL 2 SECOND, ts) - to_seconds(2 * h) AS w
        FROM read_parquet('{data}/*.parquet'), range(5) AS hops(h)) GROUP BY "user", w"""

ROLLING_ROWS = """rows.sort("user", "ts").with_columns(
    x.cum_count().over("user").clip(upper_bound=100).alias("count"),
    x.rolling_sum(100, min_samples=1).over("user").alias("sum"),
    x.rolling_mean(100, min_samples=1).over("user").alias("mean"),
    x.rolling_min(100, min_samples=1).over("user").alias("min"),
    x.rolling_max(100, min_samples=1).over("user").alias("max"))"""

KEYED = ("--key", "user")
KINDS = (
    Kind("tumbling count", "count(100)", KEYED),
    Kind("tumbling delta", "delta(ts, 60)", KEYED),
    Kind("tumbling gap", "gap(ts, 60)", KEYED),
    Kind("tumbling time", "time(60)", KEYED),
    Kind("calendar day", 'calendar(day, tz="Europe/Paris")', KEYED),
    Kind("groups in count", "count(100)", (*KEYED, "--group-by", "kind")),
    Kind(
        "last 100 rows",
        "sliding, count(100), count(1)",
        (*KEYED, "--order-by", "ts", "--partial"),
        duckdb=ROLLING.format(frame="ROWS 99 PRECEDING"),
        polars=ROLLING_ROWS,
    ),
    Kind("last 10 rows", "sliding, count(10), count(1)", (*KEYED, "--order-by", "ts", "--partial")),
    Kind("last 1000 rows", "sliding, count(1000), count(1)", (*KEYED, "--order-by", "ts", "--partial")),
    Kind("last 100, each 10th", "sliding, count(100), count(10)", (*KEYED, "--order-by", "ts")),
    Kind(
        "range 10 s",
        "sliding, time(10), count(1)",
        KEYED,
        duckdb=ROLLING.format(frame="RANGE INTERVAL 10 SECOND PRECEDING"),
        polars='rows.sort("user", "ts").rolling("ts", period="10s", closed="both", group_by="user").agg(stats)',
    ),
    Kind("time and ticks", "sliding, time(10m), time(5m)", KEYED),
    Kind("delta and delta", "sliding, delta(ts, 600), delta(ts, 60)", KEYED),
    Kind("delta that falls", "sliding, delta(latency, 50), count(10)", (*KEYED, "--order-by", "ts")),
    Kind(
        "hop 10 s / 2 s",
        "timeInterval, intervalDuration(10), creationPeriod(2)",
        KEYED,
        duckdb=HOP,
        polars='rows.sort("user", "ts").group_by_dynamic("ts", every="2s", period="10s", group_by="user").agg(stats)',
    ),
    Kind("within", "within 5m", KEYED),
    Kind("within every", "within 10m every 5m", KEYED),
    Kind("retain", "retain 100", (*KEYED, "--order-by", "ts")),
    Kind("retain every", "retain 100 every 50", (*KEYED, "--order-by", "ts")),
    Kind("retain, unique", "retain 100 with unique kind", (*KEYED, "--order-by", "ts")),
    Kind("median of 100", "sliding, count(100), count(10)", (*KEYED, "--order-by", "ts"), ("median(latency)",)),
    Kind("rows of count", "count(100)", (*KEYED, "--emit", "rows", "--sort-by", "latency desc"), ()),
    Kind("tupleCount", "count(100), partitioned, tupleCount(400000)", KEYED),
)
"""All others are compared with the first."""


def arguments(kind: Kind) -> list[str]:
    """Return the options of `wincli run` for a kind."""
    return ["--window", kind.window, *kind.options, *(word for text in kind.aggregates for word in ("--agg", text))]


def scripts(kind: Kind) -> dict[str, str]:
    """Return Python programs of the peers, by name."""
    texts = {"duckdb": (DUCKDB, kind.duckdb), "polars": (POLARS, kind.polars)}
    return {name: text.format(query=query) for name, (text, query) in texts.items() if query is not None}
