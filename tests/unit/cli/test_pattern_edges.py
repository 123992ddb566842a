"""Row patterns at the edges of what a run may meet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.in_process import done
from support.processes import table as result


def test_a_night_without_rows_whose_state_has_none_runs_in_any_slices(tmp_path: Path) -> None:
    nights = [[0, 1, 3], [], [4, 5, 6]]
    for night, times in enumerate(nights):
        (tmp_path / f"in{night}").mkdir()
        log = pa.table({"t": pa.array(times, pa.int64()), "k": pa.array(["p"] * len(times), pa.string())})
        pq.write_table(log, tmp_path / f"in{night}" / "log.parquet")
    job = ["--window", "match(a b, a = t = 4, b = t = 5)", "--key", "k", "--order-by", "t", "--slice-size", "1"]
    for night in range(3):
        done(tmp_path, "run", *job, "--state", "state", f"in{night}", f"out{night}")
    assert result(tmp_path / "out2").select(["window", "window_start", "count"]).to_pylist() == [
        {"window": 0, "window_start": 4, "count": 2}
    ]
