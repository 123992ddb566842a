"""Every case of ``tests/cases/words.json`` by the command line: wishes of users and answers of other systems.

``expect`` is what the source says, ``here`` what wincli says where it ``differs``, for the reason that stands there.
``how`` is the relative difference that floats may have, ``only`` a column and the values whose rows are looked at,
``table`` the windows of ``--windows``, and ``nights`` the rows of runs that go on from one another.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from support.in_process import done
from support.places import CASES
from support.processes import manifest, table

ALL = json.loads((CASES / "words.json").read_text(encoding="utf-8"))


def put(folder: Path, names: list[str], rows: list[list[Any]]) -> None:
    folder.mkdir()
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, names=names), folder / "log.parquet")


def alike(found: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(alike, found, wanted, [tolerance] * len(found)))
    if isinstance(found, float) and isinstance(wanted, int | float):
        return math.isclose(found, wanted, rel_tol=tolerance, abs_tol=0.0)
    return type(found) is type(wanted) and bool(found == wanted)


def in_order(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=lambda row: [str(value) for value in row[:2]])


def answered(case: dict[str, Any], out: Path) -> list[list[Any]]:
    found = [row for row in table(out).to_pylist() if row.get("_mark") != "only"]
    if "only" in case:
        name, values = case["only"]
        found = [row for row in found if row[name] in values]
    return [[row[name] for name in case["select"]] for row in found]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case["id"])
def test_the_answer_of_the_source_or_the_one_that_differs_for_its_reason(case: dict[str, Any], tmp_path: Path) -> None:
    args, found, rejects = [*case["args"], "--at-end", "flush"], [], dict[str, int]()
    nights = case.get("nights", [case["rows"]])
    if "table" in case:
        pc.write_csv(pa.Table.from_pylist(case["table"]), tmp_path / "win.csv")
    for night, rows in enumerate(nights):
        put(tmp_path / f"in{night}", case["cols"], rows)
        state = ["--state", "state", "--at-end", "hold" if night + 1 < len(nights) else "flush"]
        done(tmp_path, "run", *args, *(state if len(nights) > 1 else []), f"in{night}", f"out{night}")
        out = tmp_path / f"out{night}"
        found += answered(case, out)
        for reason, count in manifest(out)["counts"]["rejected"].items():
            rejects[reason] = rejects.get(reason, 0) + count
    tolerance = case.get("how", 0.0)
    wanted = case.get("here", case["expect"])
    assert alike(in_order(found), in_order(wanted), tolerance), (found, wanted)
    assert rejects == case.get("rejects", {})
    if "differs" in case:
        assert not alike(in_order(found), in_order(case["expect"]), tolerance), "it differs no longer"
