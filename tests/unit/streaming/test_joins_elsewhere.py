"""What DuckDB, pandas and Polars say of joins and of windows around rows, and that wincli says the same."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wincli

SIZE, KEYS = 2_000, 20
AROUND = [(3, 0), (0, 3), (2, 2), (-1, 4), (5, -2), (0, 0)]


def log(seed: int, *names: str, holes: bool = False) -> pa.Table:
    """A log with a key, a clock on which rows meet, a small value and a number. ``holes``: null keys, too."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, KEYS, SIZE)
    columns = [
        pa.array(keys, pa.int64(), mask=random.random(SIZE) < 0.02 if holes else None),
        pa.array(random.integers(0, SIZE // 4, SIZE)),
        pa.array(random.integers(0, 10, SIZE)),
        pa.array(np.arange(SIZE)),
    ]
    return pa.table(columns, names)


LEFT = log(1, "k", "t", "x", "id", holes=True)
RIGHT = log(2, "kk", "tt", "y", "id", holes=True)


def asked(query: str) -> list[tuple[Any, ...]]:
    """The answer of DuckDB over the two logs, in no order."""
    with duckdb.connect() as connection:
        connection.register("l", LEFT)
        connection.register("r", RIGHT)
        return in_no_order(connection.sql(query).fetchall())


def in_no_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(value is None, value or 0) for value in row])


def shown(result: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return in_no_order([tuple(row[name] for name in names) for row in result.to_pylist()])


def joined(window: str, how: str, **options: Any) -> pa.Table:
    join = {f"r on k=kk by t=tt {how}": RIGHT}
    return wincli.aggregate(LEFT, window, join=join, rejected="drop", plain=True, **options)


@pytest.mark.parametrize(("before", "after"), AROUND)
@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("match", [None, "x < r_y"])
def test_duckdb_has_the_pairs_of_around(before: int, after: int, how: str, match: str | None) -> None:
    names = "l.id, NULL" if how in ("semi", "anti") else "l.id, r.id"
    both = f"l.k = r.kk AND r.tt BETWEEN l.t - ({before}) AND l.t + ({after})"
    query = f"SELECT {names} FROM l {how} JOIN r ON {both}" + (" AND l.x < r.y" if match else "")
    found = joined(f"around({before}, {after})", how, **({"match": match} if match else {}))
    assert shown(found, "id", "r_id") == asked(query)


@pytest.mark.parametrize(("before", "after"), AROUND)
def test_duckdb_has_the_aggregates_of_around(before: int, after: int) -> None:
    query = f"""SELECT l.id, count(r.y), sum(r.y), max(r.y), min(r.y) FROM l LEFT JOIN r
                ON l.k = r.kk AND r.tt BETWEEN l.t - ({before}) AND l.t + ({after}) GROUP BY l.id"""
    calls = ["a=count(r_y)", "b=sum(r_y)", "c=max(r_y)", "d=min(r_y)"]
    found = joined(f"around({before}, {after})", "left", aggregates=calls)
    assert shown(found, "id", "a", "b", "c", "d") == asked(query)


@pytest.mark.parametrize("offset", [0, -3, 5])
@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize("strict", ["", "strict"])
def test_duckdb_has_the_newest_rows_of_at(offset: int, how: str, strict: str) -> None:
    """Of rows of one instant DuckDB takes any, so only the instants are compared."""
    sign = ">" if strict else ">="
    query = f"SELECT l.id, r.tt FROM l ASOF {how} JOIN r ON l.k = r.kk AND l.t + ({offset}) {sign} r.tt"
    assert shown(joined(f"at({offset})", f"{how} {strict}"), "id", "r_tt") == asked(query)


@pytest.mark.parametrize("within", [0, 2, 7])
def test_duckdb_has_the_newest_rows_that_are_not_too_old(within: int) -> None:
    query = f"""SELECT l.id, max(r.tt) FROM l LEFT JOIN r
                ON l.k = r.kk AND r.tt BETWEEN l.t - {within} AND l.t GROUP BY l.id"""
    assert shown(joined(f"at(0) within {within}", "left"), "id", "r_tt") == asked(query)


def test_duckdb_has_the_products_of_equal_cells() -> None:
    query = "SELECT l.id, r.id FROM l FULL JOIN r ON l.k = r.kk AND l.t // 7 = r.tt // 7"
    assert shown(joined("time(7)", "full"), "id", "r_id") == asked(query)


def test_time_beside_time_has_the_pairs_of_around() -> None:
    assert shown(joined("sliding, time(2) join time(3)", "inner"), "id", "r_id") == asked(
        "SELECT l.id, r.id FROM l JOIN r ON l.k = r.kk AND r.tt BETWEEN l.t - 3 AND l.t + 2"
    )


# --- one log: windows centred on a row, ahead of it, or away from it -----------------------------------------------

TIMES = pa.table({"t": pa.array(np.sort(np.random.default_rng(3).choice(3_000, 400, replace=False)) * 1_000_000)
                  .cast(pa.timestamp("us")), "x": np.random.default_rng(4).integers(-9, 9, 400)})  # fmt: skip
CALLS = ["c=count(r_x)", "s=sum(r_x)", "m=max(r_x)"]


def around(before: float, after: float) -> list[tuple[Any, ...]]:
    """Count, sum and largest value around each row of a log, the log being both sides."""
    found = wincli.aggregate(TIMES, f"around({before}, {after})", join="r by t left", aggregates=CALLS, plain=True)
    return [(row["c"], row["s"], row["m"]) for row in sorted(found.to_pylist(), key=lambda row: row["t"])]


@pytest.mark.parametrize("seconds", [2, 10, 60])
def test_pandas_has_windows_centred_on_a_row(seconds: int) -> None:
    frame = TIMES.to_pandas().set_index("t")["x"]
    windows = frame.rolling(pd.Timedelta(seconds=seconds), center=True, closed="both")
    assert around(seconds / 2, seconds / 2) == list(zip(windows.count(), windows.sum(), windows.max(), strict=True))


@pytest.mark.parametrize(("offset", "period"), [(0, 30), (-60, 60), (5, 30), (-90, 30), (-15, 30)])
def test_polars_has_windows_behind_ahead_of_and_away_from_a_row(offset: int, period: int) -> None:
    windows = pl.from_arrow(TIMES).rolling("t", period=f"{period}s", offset=f"{offset}s", closed="both")  # type: ignore[union-attr]
    frame = windows.agg(c=pl.col("x").count(), s=pl.col("x").sum(), m=pl.col("x").max())
    expected = [(c, s if c else None, m) for c, s, m in frame.select("c", "s", "m").rows()]
    assert around(-offset, offset + period) == expected
