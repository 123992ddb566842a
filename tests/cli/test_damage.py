"""Damage found by tasks on Spark, in a chain whose states and outputs have many parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.day_results import as_one, day, in_order, records, span
from support.processes import Ran, tree
from support.two_stage_log import JOB, SMALL, write_log

Run = Callable[..., Ran]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def without_error(folder: Path) -> dict[str, bytes | None]:
    return {path: content for path, content in tree(folder).items() if not path.endswith(".last-error.json")}


@pytest.mark.parametrize("stage", ["visits", pytest.param("moves", marks=pytest.mark.nightly)])
def test_days_end_at_a_damaged_state_or_output_and_go_on_from_a_mended_one(
    run: Run, spark_run: Run, tmp_path: Path, stage: str
) -> None:
    write_log(tmp_path / "log")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    days = ("job.yaml", "--state", "st", *SMALL)
    assert run(*days, *span(1, 3)).code == 0
    parts = sorted((tmp_path / "st" / day(3) / stage).glob("keys-*.parquet"))
    flip(parts[-1])
    before = without_error(tmp_path)
    ran = spark_run(*days, *span(4, 4))
    said = rf"wincli: error: {day(4)}: .*st/{day(3)}/{stage}/{parts[-1].name} is damaged: its checksum is crc32"
    assert ran.code == 3
    assert re.match(said, ran.err.splitlines()[-1]), ran.err
    assert without_error(tmp_path) == before

    assert run(*days, *span(3, 3), "--redo").code == 0
    lost = sorted((tmp_path / "visits" / f"dt={day(2)}").glob("part-*"))[-1]
    lost.unlink()
    ran = spark_run(*days, *span(1, 4))
    assert ran.code == 0, ran.err
    assert f"{day(2)} is run again: its output visits/dt={day(2)} lacks {lost.name}" in ran.notes
    whole = {
        **JOB,
        "input": "log/*",
        "output": "whole",
        "stages": [{**JOB["stages"][0], "output": "one"}, JOB["stages"][1]],
    }
    (tmp_path / "whole.yaml").write_text(yaml.safe_dump(whole))
    assert run("whole.yaml", "--state", "st-one").code == 0
    units = list(records(tmp_path / "st").values())
    for some, one in (("visits", "one"), ("out", "whole")):
        found = as_one(in_order([tmp_path / some / f"dt={day(n)}" for n in range(1, 5)]), units)
        assert found.equals(in_order([tmp_path / one]))
