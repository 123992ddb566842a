"""Bits of the log of a Delta table, or of the metadata of an Iceberg table, are other ones: told, or of no effect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from support.day_results import day, span
from support.iceberg_catalog import Lake
from support.in_process import wincli_here
from support.month_log import Log

FLIPS = 6
Read = Callable[[], list[str]]


@pytest.fixture(params=["delta", "iceberg"])
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Log, Path, Read]:
    """A log whose days are in a table, the folder of what the table knows of itself, and how others read its rows."""
    log, lake = Log(tmp_path), Lake(tmp_path / "lake")
    for n in (1, 2):
        log.write(n)
    if request.param == "delta":
        log.run(*span(1, 2), "--output-format", "delta")
        return log, tmp_path / "out/_delta_log", lambda: texts(DeltaTable(tmp_path / "out").to_pyarrow_table())
    lake.set_environment(monkeypatch)
    lake.make()
    log.run(*span(1, 2), output=lake.address("days/dt={date}"))
    return log, tmp_path / "lake/tables/logs/days/metadata", lambda: texts(lake.rows("days"))


def texts(rows: object) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))  # type: ignore[attr-defined]


def test_a_flipped_bit_is_told_of_the_table_or_has_no_effect(made: tuple[Log, Path, Read]) -> None:
    log, folder, read = made
    wanted, told = read(), 0
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        content, random = file.read_bytes(), Random(file.suffix)
        for _ in range(FLIPS):
            at = random.randrange(len(content))
            file.write_bytes(content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :])
            ran = wincli_here("verify", "st", cwd=log.folder)
            assert ran.code in (0, 3, 4), ran.err
            if ran.code == 0:
                assert read() == wanted
            else:
                told += 1
                assert f"dt={day(1)}" in ran.out + ran.err or f"dt={day(2)}" in ran.out + ran.err
            for command in (("status", "st"), ("verify", "st", "--replay", day(2))):
                assert wincli_here(*command, cwd=log.folder).code in (0, 3, 4)
        file.write_bytes(content)
    assert told
    assert wincli_here("verify", "st", cwd=log.folder).code == 0


def first_entry(folder: Path) -> Path:
    """Run a day into a Delta table, and return the first entry of its log."""
    log = Log(folder)
    log.write(1)
    log.run(*span(1, 1), "--output-format", "delta")
    return folder / "out/_delta_log/00000000000000000000.json"


def test_a_column_that_has_another_name_in_the_log_is_told(tmp_path: Path) -> None:
    first = first_entry(tmp_path)
    first.write_bytes(first.read_bytes().replace(rb"\"name\":\"closed_by", rb"\"name\":\"clowed_by"))
    ran = wincli_here("verify", "st", cwd=tmp_path)
    assert ran.code == 4
    assert f"damaged: out/dt={day(1)}: the table no longer has the column 'closed_by'" in ran.out


def test_a_log_that_only_the_library_can_read_is_no_fault_of_wincli(tmp_path: Path) -> None:
    first = first_entry(tmp_path)
    first.write_bytes(first.read_bytes().replace(b'.parquet","partition', b'\x0eparquet","partition'))
    for command in (("verify", "st"), ("status", "st"), ("status", "out")):
        assert wincli_here(*command, cwd=tmp_path).code in (0, 3, 4)
