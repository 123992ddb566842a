"""Rows that come nights late with ``--late redo``, on Spark: plain runs and ranges come to what one run over all is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support.day_results import day, records, span, total
from support.in_process import wincli_here
from support.processes import Ran, manifest, tree

Run = Callable[..., Ran]
NIGHTS = 4
HOUR = 3_600_000_000
STATE = ("--state", "st", "--late", "redo")
ASKED = ("-k", "user", "-a", "n=count()", "-a", "ids=collect(id)", "--order-by", "ts")
EXCHANGE = ("--slice-size", "2KiB", "--split-size", "1KiB")  # no input is small enough for one task


def write_log(folder: Path) -> None:
    """A row an hour of two users; each night from the third on has rows of two nights before, one from a tie."""
    for night in range(NIGHTS):
        own = [(night * 24 + hour) * HOUR for hour in range(24)]
        late = (
            [((night - 2) * 24 + hour) * HOUR + half for hour, half in ((3, 0), (9, 1), (22, 1))] if night > 1 else []
        )
        at = [*own[:12], *late, *own[12:]]
        first = night * 100
        log = pa.table(
            {
                "ts": pa.array(at, pa.timestamp("us")),
                "user": ["ab"[n % 2] for n in range(len(at))],
                "id": range(first, first + len(at)),
            }
        )
        path = folder / f"dt={day(night + 1)}"
        path.mkdir(parents=True)
        pq.write_table(log, path / "a.parquet", row_group_size=10)


def result(folder: Path) -> list[Any]:
    """All rows below a folder but where they stood and the numbers of windows, in an order of their own."""
    read = ds.dataset([str(path) for path in folder.rglob("part-*")], format="parquet").to_table()
    return sorted(map(repr, read.drop_columns(["_pos", "window"]).to_pylist()))


def test_lag_looks_back_at_rows_of_units_before_also_where_rows_come_late(run: Run, tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    lags = ("--let", "d=id - lag(id)", "-a", "d=collect(d)", "-a", "back=count() where lag(id, 3) > id")
    asked = ("-w", "sliding, count(4), count(3)", *ASKED, *lags, *EXCHANGE)
    for night in range(1, NIGHTS + 1):
        places = (f"log/dt={day(night)}", f"out/{night}")
        ran = run(*asked, *STATE, *places, *(("--at-end", "flush") if night == NIGHTS else ()))
        assert ran.code == 0, ran.err
    assert run(*asked, "log", "whole").code == 0
    assert result(tmp_path / "out") == result(tmp_path / "whole")


@pytest.mark.parametrize(
    ("window", "plain"), [pytest.param("delta(ts, 3h)", True, marks=pytest.mark.nightly), ("count(5)", False)]
)
def test_incremental_runs_with_late_rows_give_the_result_of_one_run(
    run: Run, spark_run: Run, tmp_path: Path, window: str, plain: bool
) -> None:
    write_log(tmp_path / "log")
    asked = ("-w", window, *ASKED, *EXCHANGE)
    for night in range(1, NIGHTS + 1):
        places = (f"log/dt={day(night)}", f"out/{night}") if plain else ("log", "out", *span(night, night))
        command = (*asked, *STATE, *places, *(("--at-end", "flush") if night == NIGHTS else ()))
        ran = spark_run(*command)
        assert ran.code == 0, ran.err
        back = f"3 rows of {f'run-{night:06}' if plain else day(night)} belong to units before it"
        assert any(note.startswith(back) for note in ran.notes) == (night > 2)
    before = tree(tmp_path)
    assert "nothing to do" in run(*command).err
    assert tree(tmp_path) == before
    assert run(*asked, "log", "whole").code == 0
    assert result(tmp_path / "out") == result(tmp_path / "whole")
    counts, summed = manifest(tmp_path / "whole")["counts"], total(tmp_path / "st")
    assert {name: summed[name] for name in ("rows_in", "windowed", "rejected")} == {
        name: counts[name] for name in ("rows_in", "windowed", "rejected")
    }
    assert [len(record["borrowed"]) for record in records(tmp_path / "st").values()] == [1, 1, 0, 0]
    status = json.loads(wincli_here("status", "st", "--json", cwd=tmp_path).out)
    assert [(account["balanced"], account["rows_in"]) for account in status["accounts"]] == [(True, 4 * 24 + 2 * 3)]
