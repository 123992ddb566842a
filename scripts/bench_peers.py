"""The contests of `scripts/bench` with more peers: DataFusion and chDB, and the floor under every engine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import bench_contests
from bench_contests import Command, Entrant, log_of, script, wincli
from bench_kinds import KEYED

FLOOR = Path(__file__).with_name("floor")

DATAFUSION = """
import datafusion, sys
data, out = sys.argv[1:]
context = datafusion.SessionContext()
context.sql(f"CREATE EXTERNAL TABLE log STORED AS PARQUET LOCATION '{{data}}/'")
context.sql(f'''COPY ({query}) TO '{{out}}/' STORED AS PARQUET''').collect()
"""

CHDB = """
import chdb, sys
data, out = sys.argv[1:]
chdb.query(f'''INSERT INTO FUNCTION file('{{out}}/out.parquet', Parquet) {query}''')
"""

GAPS = """
  SELECT "user", w, min(ts) AS first, max(ts) AS last, count(*) AS count, sum(amount) AS sum, max(amount) AS max
  FROM (SELECT *, sum(CASE WHEN ts - previous > INTERVAL {minute} THEN 1 ELSE 0 END)
               OVER (PARTITION BY "user" ORDER BY ts) AS w
        FROM (SELECT "user", ts, amount, {lag} OVER (PARTITION BY "user" ORDER BY ts {frame}) AS previous
              FROM {log}))
  GROUP BY "user", w"""

DATAFUSION_GAPS = DATAFUSION.format(query=GAPS.format(minute="'60 seconds'", lag="lag(ts)", frame="", log="log"))

CHDB_GAPS = CHDB.format(
    query=GAPS.format(
        minute="60 SECOND",
        lag="lagInFrame(ts, 1, ts)",  # before the first row: itself, which is no gap
        frame="ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        log="file('{data}/*.parquet', Parquet)",
    ).replace("ts - previous > INTERVAL 60 SECOND", "ts > previous + INTERVAL 60 SECOND")
)

# A fold over the sorted rows of a user says where a window begins. Blocks of few users keep its arrays in the cache.
CHDB_DELTAS = CHDB.format(
    query="""
  SELECT user, fromUnixTimestamp64Micro(w[1].1) AS first, fromUnixTimestamp64Micro(w[-1].1) AS last,
         length(w) AS count, arraySum(w.2) AS sum, arrayMax(w.2) AS max
  FROM (SELECT user, arrayJoin(arraySplit((row, begins) -> begins, rows, tupleElement(arrayFold(
            (acc, row) -> if(row.1 - acc.1 > 60000000, (row.1, arrayPushBack(acc.2, toUInt8(1))),
                                                       (acc.1, arrayPushBack(acc.2, toUInt8(0)))),
            rows, (rows[1].1, emptyArrayUInt8())), 2))) AS w
        FROM (SELECT user, arraySort(groupArray((toUnixTimestamp64Micro(assumeNotNull(ts)), assumeNotNull(amount))))
                     AS rows
              FROM file('{data}/*.parquet', Parquet) GROUP BY user))
  SETTINGS max_block_size = 256"""
)


def contests(millions: int) -> dict[str, tuple[Entrant, ...]]:
    """Return the contests over logs of ``millions`` million rows. The others are compared with the first entrant."""
    events = log_of(millions)
    delta = wincli(*bench_contests.DELTA, *KEYED)
    return {
        "floor": (
            Entrant("delta", *events, delta),
            Entrant("the floor: reading and writing alone", *events, floor(delta)),
        ),
        "peers": (
            Entrant("delta", *events, delta),
            Entrant("DataFusion, gaps", *events, script(DATAFUSION_GAPS)),
            Entrant("chDB, gaps", *events, script(CHDB_GAPS)),
            Entrant("chDB, delta", *events, script(CHDB_DELTAS)),
        ),
    }


def floor(job: Command) -> Command:
    """Return the command line of `scripts/floor`; the windows of ``job`` are made before, if they are not there."""

    def command(data: Path, out: Path) -> list[str]:
        windows = data.with_name(f"{data.name}-windows")
        if not windows.is_dir():
            make_windows(job(data, windows.with_name(f"{windows.name}.new")), windows)
        return [sys.executable, str(FLOOR), str(data), str(windows), str(out)]

    return command


def make_windows(job: list[str], windows: Path) -> None:
    """Run ``job`` and keep its result as files of Arrow."""
    import pyarrow as pa
    from pyarrow import parquet

    result = Path(job[-1])
    shutil.rmtree(result, ignore_errors=True)
    subprocess.run(job, check=True)
    kept = result.with_name(f"{result.name}.arrow")
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    for part in result.glob("*.parquet"):
        table = parquet.read_table(part, read_dictionary=["user"])
        with pa.ipc.new_file(kept / f"{part.stem}.arrow", table.schema) as file:
            file.write_table(table.unify_dictionaries())
    shutil.rmtree(result)
    kept.rename(windows)
