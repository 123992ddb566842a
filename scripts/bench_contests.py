"""The contests of `scripts/bench --contest` and `--scale`: one sequence, keys, hopping panes, text, many files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench_kinds import DUCKDB, KEYED

Command = Callable[[Path, Path], list[str]]
AGGREGATES = ["--agg", "count()", "--agg", "sum(amount)", "--agg", "max(amount)"]
DELTA = ["--window", "delta(ts,60)", *AGGREGATES]
HOP = ["--window", "timeInterval, intervalDuration(10), creationPeriod(2)", "--order-by", "ts", *AGGREGATES]
MINUTES = ["--window", "time(60)", "--order-by", "ts", *AGGREGATES, "--key", "kind"]

PATCHED = """
import sys
from wincli.windowing.engine import run
from wincli.windowing.engine import strategy
{}
from wincli.cli.main import main
sys.argv[0] = "wincli"
sys.exit(main())
"""
WHOLE = PATCHED.format("run.can_be_cut = lambda plan: False")
ROW_BY_ROW = PATCHED.format("strategy.can_preaggregate = lambda plan, schema: False")

GAPS = DUCKDB.format(
    query="""
  SELECT w, min(ts) AS first, max(ts) AS last, count(*) AS count, sum(amount) AS sum, max(amount) AS max
  FROM (SELECT *, sum(CASE WHEN ts - previous > INTERVAL 60 SECOND THEN 1 ELSE 0 END) OVER (ORDER BY ts) AS w
        FROM (SELECT ts, amount, lag(ts) OVER (ORDER BY ts) AS previous FROM read_parquet('{data}/*.parquet')))
  GROUP BY w"""
)

HOPS = DUCKDB.format(
    query="""
  SELECT "user", pane, count(*) AS count, sum(amount) AS sum, max(amount) AS max
  FROM (SELECT "user", amount, unnest(range((epoch_us(ts) - 10000000) // 2000000 + 1, epoch_us(ts) // 2000000 + 1))
               AS pane
        FROM read_parquet('{data}/*.parquet'))
  GROUP BY "user", pane"""
)

BUCKETS = DUCKDB.format(
    query="""
  SELECT kind, epoch_us(ts) // 60000000 AS minute, count(*) AS count, sum(amount) AS sum, max(amount) AS max
  FROM read_parquet('{data}/*.parquet') GROUP BY kind, minute"""
)


KEYED_GAPS = """
  SELECT "user", w, min(ts) AS first, max(ts) AS last, count(*) AS count, sum(amount) AS sum, max(amount) AS max
  FROM (SELECT *, sum(CASE WHEN ts - previous > INTERVAL 60 SECOND THEN 1 ELSE 0 END)
               OVER (PARTITION BY "user" ORDER BY ts) AS w
        FROM (SELECT "user", ts, amount, lag(ts) OVER (PARTITION BY "user" ORDER BY ts) AS previous
              FROM (SELECT "user", ts::TIMESTAMP AS ts, amount FROM {source})))
  GROUP BY "user", w"""
CSV_GAPS = DUCKDB.format(query=KEYED_GAPS.format(source="read_csv('{data}/*.csv')"))
JSON_GAPS = DUCKDB.format(query=KEYED_GAPS.format(source="read_ndjson('{data}/*.jsonl')"))

PARSE = """
import pathlib, sys
import pyarrow as pa, pyarrow.csv, pyarrow.json, pyarrow.parquet
data, out = map(pathlib.Path, sys.argv[1:])
read = {".csv": pyarrow.csv.read_csv, ".jsonl": pyarrow.json.read_json}
rows = sum(len(read[file.suffix](file)) for file in sorted(data.iterdir()))
pyarrow.parquet.write_table(pa.table({"rows": [rows]}), out / "rows.parquet")
"""


@dataclass(frozen=True)
class Entrant:
    """A program and the log that it reads.

    ``name``: the name in the table.
    ``log``: the name of the log.
    ``options``: the options of ``scripts/gen_events`` that make it.
    ``command``: a function that returns the command line for an input and an output.
    ``tables``: other logs that it reads, with the options that make them; they are beside its own.
    """

    name: str
    log: str
    options: tuple[str, ...]
    command: Command
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()


def wincli(*options: str) -> Command:
    """Return the command line of the installed program."""
    program = str(Path(sys.executable).with_name("wincli"))
    return lambda data, out: [program, "run", *options, "-q", str(data), str(out)]


def script(text: str, *options: str) -> Command:
    """Return the command line of a short Python program."""
    return lambda data, out: [sys.executable, "-c", text, *options, str(data), str(out)]


def versions(entrants: Sequence[Entrant], program: str) -> tuple[Entrant, ...]:
    """Return the first entrant, and the same run by ``program``, another wincli, or by the Python beside it."""
    first = entrants[0]

    def command(data: Path, out: Path) -> list[str]:
        own, *rest = first.command(data, out)
        is_python = own == sys.executable
        return [str(Path(program).with_name("python")) if is_python else program, *rest]

    return first, replace(first, name=f"{first.name}, {program}", command=command)


def contests(millions: int) -> dict[str, tuple[Entrant, ...]]:
    """Return all contests over logs of ``millions`` million rows. The others are compared with the first entrant."""
    events = log_of(millions)
    even = log_of(millions, "--every", "1", name="even")
    half = log_of(millions, "--zipf", "0.5", "--heavy", "0.5", name="half")
    many = log_of(millions, name="many", keys=millions * 200_000)
    csv = log_of(millions, "--format", "csv", name="csv")
    jsonl = log_of(millions, "--format", "jsonl", name="jsonl")
    keyed = wincli(*DELTA, *KEYED)
    whole = script(WHOLE, "run", *DELTA, "-q")
    return {
        "one": (
            Entrant("one sequence", *events, wincli(*DELTA)),
            Entrant("the same in one slice", *events, whole),
            Entrant("duckdb", *events, script(GAPS)),
        ),
        "even": (
            Entrant("one sequence, a row a second", *even, wincli(*DELTA)),
            Entrant("the same in one slice", *even, whole),
            Entrant("duckdb", *even, script(GAPS)),
        ),
        "heavy": (
            Entrant("one key has half of the rows", *half, wincli(*DELTA, *KEYED)),
            Entrant("all keys alike", *events, wincli(*DELTA, *KEYED)),
        ),
        "many": (
            Entrant(f"{millions * 200_000:,} keys", *many, wincli(*DELTA, *KEYED)),
            Entrant(f"{millions * 500:,} keys", *events, wincli(*DELTA, *KEYED)),
        ),
        "hop": (
            Entrant("hop 10 s / 2 s", *events, wincli(*HOP, *KEYED)),
            Entrant("duckdb", *events, script(HOPS)),
        ),
        "minutes": (
            Entrant("5 kinds by the minute", *events, wincli(*MINUTES)),
            Entrant("the same, all rows moved", *events, script(ROW_BY_ROW, "run", *MINUTES, "-q")),
            Entrant("duckdb", *events, script(BUCKETS)),
        ),
        "one-window": (
            Entrant("one window", *events, wincli("--window", "gap(ts, 1h)", *AGGREGATES)),
            Entrant(f"{millions * 1000:,} windows", *events, wincli("--window", "delta(ts, 10)", *AGGREGATES)),
        ),
        "csv": _texts("CSV", csv, events, CSV_GAPS),
        "jsonl": _texts("JSON Lines", jsonl, events, JSON_GAPS),
        "files": (
            Entrant("5,000 files of Parquet", *log_in_files(millions, 5000, "parquet"), keyed),
            Entrant("5 files of Parquet", *log_in_files(millions, 5, "parquet"), keyed),
            Entrant("5,000 files of CSV", *log_in_files(millions, 5000, "csv"), keyed),
            Entrant("5 files of CSV", *log_in_files(millions, 5, "csv"), keyed),
        ),
        "small": (
            Entrant("1,000 rows", "events-1k", ("--rows", "1000", "--keys", "10", "--files", "1"), wincli(*DELTA)),
        ),
    }


def _texts(
    form: str, log: tuple[str, tuple[str, ...]], parquet: tuple[str, tuple[str, ...]], gaps: str
) -> tuple[Entrant, ...]:
    """Return entrants over a log as text: the keyed delta, the same rows from Parquet, DuckDB, and parsing alone."""
    keyed = wincli(*DELTA, *KEYED)
    return (
        Entrant(form, *log, keyed),
        Entrant("the same from Parquet", *parquet, keyed),
        Entrant("duckdb", *log, script(gaps)),
        Entrant("pyarrow, parsing alone", *log, script(PARSE)),
    )


def log_in_files(millions: int, files: int, form: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of a log in so many files, and the options that make it."""
    sizes = ("--rows", str(millions * 10**6), "--files", str(files), "--keys", str(max(1000, millions * 500)))
    return f"{form}-{millions}m-{files}", (*sizes, "--format", form)


def scale(millions: int) -> tuple[Entrant, ...]:
    """Return entrants over one log of ``millions`` million rows on one core, two cores, and a small cluster."""
    cluster = ("local-cluster[2,1,2048]", "--spark-conf", f"spark.pyspark.python={sys.executable}")
    masters: tuple[tuple[str, ...], ...] = (("local[1]",), ("local[2]",), cluster)
    return tuple(Entrant(m[0], *log_of(millions), wincli(*DELTA, *KEYED, "--master", *m)) for m in masters)


def log_of(millions: int, *more: str, name: str = "events", keys: int | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the name of a log and the options that make it: ordered, by default 500 keys for each million rows."""
    sizes = ("--rows", str(millions * 10**6), "--files", str(max(1, millions * 2 // 5)))
    return f"{name}-{millions}m", (*sizes, "--keys", str(keys or max(1000, millions * 500)), *more)
