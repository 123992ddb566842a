"""Random joins by the command line, night after night: together they are what the reference says of one run."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume, given

from support.in_process import done
from support.processes import manifest, table
from support.random_joins import JoinCase, join_cases
from support.strategies import examples


def put(folder: Path, rows: pa.Table) -> None:
    folder.mkdir()
    pq.write_table(rows, folder / "log.parquet")


def options_of(case: JoinCase) -> list[str]:
    args = ["--window", case.window, *(part for call in case.calls for part in ("--agg", call))]
    for name, value in (("match", case.match), ("where", case.where), ("emit", case.emit)):
        args += [f"--{name}", value] if value else []
    return args


def run(case: JoinCase, folder: Path, at_end: str = "flush") -> tuple[list[Any], Counter[str]]:
    """The rows of all nights in the order in which they come out, and the account of all nights."""
    found, account = list[Any](), Counter[str]()
    nights = case.nights
    for night, (left, right) in enumerate(nights):
        put(folder / f"in{night}", left)
        name = "r"
        if right is not None:
            put(folder / f"right{night}", right)
            name = f"r=right{night}"
        end = at_end if night + 1 == len(nights) else "hold"
        args = [*options_of(case), "--join", f"{name} {case.request}", "--at-end", end, "--state", "state"]
        done(folder, "run", *args, f"in{night}", f"out{night}")
        found += case.found(table(folder / f"out{night}"))
        counts = manifest(folder / f"out{night}")["counts"]
        account.update({key: counts[key] for key in ("rows_in", "windowed", "filtered", "dropped_at_end")})
        account.update(rejected=sum(counts["rejected"].values()))
        account["held"] = counts["held"]
    return found, account


@given(join_cases())
@examples(300)
def test_nights_are_one_run(case: JoinCase) -> None:
    # event time of one log, in order of arrival: `test_random_joins` has it, without nights
    assume(case.right is not None or not case.window.startswith("timeInterval"))
    with tempfile.TemporaryDirectory() as folder:
        found, account = run(case, Path(folder))
    expected = case.expected(nights=case.nights)
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert account["rows_in"] == sum(len(a) + (0 if b is None else len(b)) for a, b in case.nights)
