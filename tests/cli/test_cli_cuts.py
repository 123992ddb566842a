"""However the work is cut, the rows are the same to the bit, and in the same order of keys and windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, Warm, manifest, table

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
    "sliding": ("sliding, time(10), count(9)", ()),
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
    assert len(manifest(logs / f"cut-{name}")["parts"]) > 2
    assert table(logs / f"cut-{name}").equals(want)
    assert table(logs / f"alone-{name}").cast(want.schema).equals(want)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_sorted_input_is_scanned_as_presorted(warm: Warm, logs: Path, kind: str) -> None:
    """A part for each chunk, rows in windows that span several of them, and one that is rejected in another."""
    log = pq.read_table(logs / "parquet").sort_by("ts")
    gone = pa.array([i == 3000 for i in range(ROWS)])
    log = log.set_column(1, "ts", pa.compute.if_else(gone, None, log["ts"]))
    (logs / f"order-{kind}").mkdir()
    for i in range(3):
        part = log.slice(i * ROWS // 3, ROWS // 3)
        if kind == "parquet":
            pq.write_table(part, logs / f"order-{kind}/{i}.parquet", row_group_size=70)
        else:
            pc.write_csv(part, logs / f"order-{kind}/{i}.csv")
    for window in ("delta(ts, 60)", "gap(ts, 3)", "delta(ts, 3000)"):
        asked = ["run", "-w", window, *(word for text in AGGREGATES for word in ("-a", text)), "--mode", "overwrite"]
        for cut, out in (((), "whole"), (SMALL, "cut")):
            assert warm.run([*asked, *cut, "--master", "local[2]", f"order-{kind}", out], logs).code == 0
        assert table(logs / "cut").equals(table(logs / "whole"))
        assert manifest(logs / "cut")["counts"] == manifest(logs / "whole")["counts"]
    assert manifest(logs / "cut")["counts"]["rejected"] == {"null_order": 1}
    assert len(manifest(logs / "whole")["parts"]) == 1
    many = [*asked[:2], "gap(ts, 3)", *asked[3:], *SMALL, "--master", "local[2]", f"order-{kind}", "cut"]
    assert warm.run(many, logs).code == 0
    assert len(manifest(logs / "cut")["parts"]) > 2


@pytest.mark.parametrize("source", ["parquet", "csv"])
def test_partial_aggregation_changes_no_bit(warm: Warm, logs: Path, source: str) -> None:
    """Hundreds of rows a window, of which the tasks send one for each 5 minutes, or 2 seconds, that they have read."""
    aggregates = [word for text in ("sum(x)", "mean(x)", "count()", "max(x)", "min(ts)") for word in ("-a", text)]
    hop = ["timeInterval, intervalDuration(60), creationPeriod(20)", "--order-by", "ts"]
    for name, asked in (("five", ["time(5m)", "--empty", "row"]), ("hop", hop), ("keyed", ["time(1h)", "-k", "user"])):
        for cut, out in (((), "whole"), (SMALL, "cut")):
            command = ["run", "-w", *asked, *aggregates, "--mode", "overwrite", *cut, "--master", "local[2]"]
            ran = warm.run([*command, source, f"{name}-{source}-{out}"], logs)
            assert ran.code == 0, ran.err
        whole, cut_up = (logs / f"{name}-{source}-{out}" for out in ("whole", "cut"))
        assert table(cut_up).equals(table(whole))
        assert manifest(cut_up)["counts"] == manifest(whole)["counts"]
        assert manifest(cut_up)["counts"]["windowed"] == ROWS
