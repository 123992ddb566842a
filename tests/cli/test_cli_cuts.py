"""However the work is cut, the rows are the same to the bit, and in the same order of keys and windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from tests.cli.running import Ran, Warm, manifest, table

Run = Callable[..., Ran]
ROWS = 6_000
SMALL = ("--split-size", "32KiB", "--slice-size", "40KiB")
AGGREGATES = (
    "s=sum(x)",
    "m=mean(x)",
    "v=stddev(x)",
    "q=quantile(x,0.3)",
    "first=first(id)",
    "last=last(id)",
    "n=count()",
)

WINDOWS = {
    "delta": ("delta(ts,60)", ()),
    "count": ("count(7)", ()),
    "time": ("time(5m)", ("--empty", "row")),
    "gap": ("gap(ts,2)", ()),
    "punct": ("punct()", ()),
}


def make_log(folder: Path) -> None:
    """Five files of a log that goes back and forth in time, with ties, in Parquet with many row groups, and in CSV."""
    random = np.random.default_rng(7)
    seconds = np.cumsum(random.exponential(0.7, ROWS)) + random.normal(0, 5, ROWS)
    log = pa.table(
        {
            "id": np.arange(ROWS),
            "ts": pa.array((seconds * 10).astype("i8") * 100_000, pa.timestamp("us")),
            "user": pa.array([f"user {k}" for k in random.integers(0, 60, ROWS)]),
            "x": random.normal(0, 1e6, ROWS),
        }
    )
    for form in ("parquet", "csv"):
        (folder / form).mkdir()
    for i in range(5):
        part = log.slice(i * ROWS // 5, ROWS // 5)
        pq.write_table(part, folder / "parquet" / f"{i}.parquet", row_group_size=300)
        pc.write_csv(part, folder / "csv" / f"{i}.csv")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuts")
    make_log(folder)
    return folder


@pytest.fixture(scope="module")
def one_core() -> Iterator[Warm]:
    process = Warm()
    yield process
    process.close()


def command(case: str, keys: tuple[str, ...], cut: tuple[str, ...], source: str, out: str) -> list[str]:
    window, more = WINDOWS[case]
    aggregates = [word for text in AGGREGATES for word in ("-a", text)]
    return ["run", "-w", window, *more, *keys, *aggregates, *cut, source, out]


@pytest.mark.parametrize("keys", [("-k", "user"), ()], ids=["keyed", "unkeyed"])
@pytest.mark.parametrize("case", WINDOWS)
def test_cuts_do_not_change_a_bit(warm: Warm, one_core: Warm, logs: Path, case: str, keys: tuple[str, ...]) -> None:
    name = f"{case}-{len(keys)}"
    whole = command(case, keys, ("--master", "local[2]"), "parquet", f"whole-{name}")
    cut = command(case, keys, (*SMALL, "--master", "local[2]"), "parquet", f"cut-{name}")
    alone = command(case, keys, (*SMALL, "--master", "local[1]"), "csv", f"alone-{name}")
    for process, args in ((warm, whole), (warm, cut), (one_core, alone)):
        ran = process.run(args, logs)
        assert ran.code == 0, ran.err
    want = table(logs / f"whole-{name}")
    assert want.num_rows >= 5
    assert len(manifest(logs / f"whole-{name}")["parts"]) == 1
    if keys:
        assert len(manifest(logs / f"cut-{name}")["parts"]) > 2
    assert table(logs / f"cut-{name}").equals(want)
    assert table(logs / f"alone-{name}").cast(want.schema).equals(want)
