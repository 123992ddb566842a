"""What units read and write: folders of partitions and templates, on a disk."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.readers import column, source
from wincli.cli.run.request import read_options
from wincli.cli.run.unit_paths import UnitInput, find_input, find_input_paths, unit_job
from wincli.conf.job import Job, Stage, defaults
from wincli.conf.ranges import Kind, Unit, units
from wincli.readers.files.listing import list_folders
from wincli.windowing.errors import ConfigError, InputError
from wincli.windowing.ports import InputFile

DAYS = units("2026-11-01", "2026-11-05", "day")
MTIME = "1970-01-01T00:16:40+00:00"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(*paths: str, text: str = "a\n1\n") -> None:
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1000, 1000))


def asked(*inputs: str, output: str = "out", first: str | None = None) -> Job:
    """A job; ``first``: the output of a stage before the last."""
    known = {name: value for name, value in defaults().items() if name in Stage.model_fields}
    names = ["one", "two"] if first else ["window"]
    outputs = [first, None] if first else [None]
    stages = [
        Stage(**known, name=name, window="count(2)", output=out) for name, out in zip(names, outputs, strict=True)
    ]
    rest = {name: value for name, value in defaults().items() if name in Job.model_fields}
    return Job(**rest, input=inputs, output=output, stages=tuple(stages))


def found(inputs: Sequence[str], unit: Unit, kind: Kind = "day") -> UnitInput | None:
    return find_input(find_input_paths(asked(*inputs), unit, kind), unit)


def file_of(path: str) -> InputFile:
    return InputFile(str(Path.cwd() / path), 4, MTIME)


def refused(error: type[Exception], *inputs: str, unit: Unit = DAYS[0], kind: Kind = "day", **more: Any) -> str:
    with pytest.raises(error) as caught:
        find_input(find_input_paths(asked(*inputs, **more), unit, kind), unit)
    return str(caught.value)


# Partitions


def test_a_partition_is_the_folder_of_its_day() -> None:
    write("in/dt=2026-11-01/b.csv", "in/dt=2026-11-01/n=1/a.csv", "in/dt=2026-11-03/a.csv", "in/dt=2026-11-03/_x.csv")
    files = (file_of("in/dt=2026-11-01/b.csv"), file_of("in/dt=2026-11-01/n=1/a.csv"))
    assert found(["in/"], DAYS[0]) == UnitInput(("in/dt=2026-11-01",), ("in/",), files)
    assert found(["in"], DAYS[2]) == UnitInput(("in/dt=2026-11-03",), ("in",), (file_of("in/dt=2026-11-03/a.csv"),))


def test_days_without_a_folder_or_without_files_are_gaps() -> None:
    write("in/dt=2026-11-01/a.csv", "in/dt=2026-11-03/_a.csv")
    assert found(["in"], DAYS[1]) is None
    assert found(["in"], DAYS[2]) is None


@pytest.mark.parametrize("written", ["dt=2026-11-02", "dt=2026%2D11%2D02", "d%74=2026-11-02"])
def test_a_partition_reads_as_its_part_of_the_whole_folder(written: str) -> None:
    write(f"in/{written}/n=7/a.csv", "in/dt=2026-11-01/n=8/a.csv")
    unit = found(["in"], DAYS[1]) if not written.startswith("d%") else UnitInput((f"in/{written}",), ("in",), ())
    assert unit is not None
    whole, part = source("in"), source(*unit.paths, bases=unit.bases)
    assert part.schema == whole.schema == pa.schema([("a", pa.int64()), ("dt", pa.date32()), ("n", pa.int64())])
    assert column(part, "dt") == [dt.date(2026, 11, 2)]
    assert [file.path for file in part.files] == [f"in/{written}/n=7/a.csv"]


def test_hours_by_a_partition_and_by_two_of_them() -> None:
    write("in/at=2026-11-01T05/a.csv", "two/dt=2026-11-01/hour=05/a.csv")
    (five,) = units("2026-11-01T05", "2026-11-01T06", "hour")
    one = found(["in"], five, "hour")
    two = found(["two/dt={date:%F}/hour={date:%H}"], five, "hour")
    assert one is not None
    assert one.paths == ("in/at=2026-11-01T05",)
    assert two is not None
    assert two.paths == ("two/dt=2026-11-01/hour=05",)
    read = source(*two.paths, bases=two.bases)
    assert (column(read, "dt"), column(read, "hour")) == ([dt.date(2026, 11, 1)], [5])
    assert refused(ConfigError, "two", unit=five, kind="hour") == (
        "two is partitioned by days, and the range is of hours; "
        "say two/dt={date:%Y-%m-%d}/hour={date:%H}, or --unit day"
    )


def test_inputs_that_have_no_units() -> None:
    write("in/x.csv", "in/n=1/x.csv")
    assert refused(ConfigError, "in") == (
        "in has no {date}, and holds no folders of days such as dt=2026-11-02; "
        "write {date} in place of the day in the path"
    )
    assert refused(InputError, "none") == "there is no file or folder none; check the path"
    assert refused(InputError, "in/x.csv") == "in/x.csv is a file; name a folder"


# Templates


def test_a_template_is_a_file_a_folder_or_a_glob() -> None:
    write("in/2026-11-01.csv", "in/2026/11/01/a.csv", "in/g-2026-11-01-a.csv", "in/g-2026-11-01-b.csv")
    assert found(["in/{date}.csv"], DAYS[0]) == UnitInput(
        ("in/2026-11-01.csv",), ("in",), (file_of("in/2026-11-01.csv"),)
    )
    folder = found(["in/{date:%Y/%m/%d}"], DAYS[0])
    assert folder == UnitInput(("in/2026/11/01",), ("in",), (file_of("in/2026/11/01/a.csv"),))
    several = found(["in/g-{date}-*.csv"], DAYS[0])
    assert several is not None
    assert [Path(file.path).name for file in several.files] == ["g-2026-11-01-a.csv", "g-2026-11-01-b.csv"]
    assert [found([path], DAYS[1]) for path in ("in/{date}.csv", "in/{date:%Y/%m/%d}", "in/g-{date}-*.csv")] == [
        None, None, None,
    ]  # fmt: skip


def test_a_slip_before_the_date_is_no_gap() -> None:
    write("events/2026-11-01.csv")
    assert refused(InputError, "event/{date}.csv") == "there is no file or folder event; did you mean events?"


def test_a_template_over_a_partition_has_its_column() -> None:
    write("in/dt=2026-11-01/a.csv")
    unit = found(["in/dt={date}/*.csv"], DAYS[0])
    assert unit is not None
    assert column(source(*unit.paths, bases=unit.bases), "dt") == [dt.date(2026, 11, 1)]


def test_templates_that_give_two_days_one_path_are_refused() -> None:
    write("in/dt=2026-11-01/a.csv")
    do = "write {{date}}, or a layout that is different for every day"
    text = "{path} is {there} for 2026-11-01 and for 2026-11-02; " + do
    assert refused(ConfigError, "in/{date:%Y}") == text.format(path="in/{date:%Y}", there="in/2026")
    assert refused(ConfigError, "in", output="o-{date:%m}") == text.format(path="o-{date:%m}", there="o-11")
    assert refused(ConfigError, "in", first="s-{date:%m}") == text.format(path="s-{date:%m}", there="s-11")


# Several inputs


def test_several_inputs_come_together_or_not_at_all() -> None:
    write("a/dt=2026-11-01/x.csv", "b/2026-11-01.csv", "a/dt=2026-11-02/x.csv", "b/2026-11-03.csv")
    both = ["a", "b/{date}.csv"]
    assert found(both, DAYS[0]) == UnitInput(
        ("a/dt=2026-11-01", "b/2026-11-01.csv"),
        ("a", "b"),
        (file_of("a/dt=2026-11-01/x.csv"), file_of("b/2026-11-01.csv")),
    )
    assert found(both, DAYS[3]) is None
    for unit, there, missing in ((DAYS[1], "a", "b/{date}.csv"), (DAYS[2], "b/{date}.csv", "a")):
        assert refused(InputError, *both, unit=unit) == (
            f"{there} has files for {unit.label}, and {missing} has none; wait for them, or end the range before it"
        )


def test_two_inputs_below_one_folder_are_read_once_each() -> None:
    write("in/dt=2026-11-01/a.csv", "in/dt=2026-11-01/b.csv")
    unit = found(["in", "in/dt={date}/a.csv"], DAYS[0])
    assert unit is not None
    assert len(source(*unit.paths, bases=unit.bases).files) == 2
    assert len(unit.files) == 2


# The job of a unit


def test_the_job_of_a_unit() -> None:
    write("in/day=2026-11-01/x.csv")
    whole = asked("in", output="out", first="s/{date}.d")
    places = find_input_paths(whole, DAYS[0], "day")
    unit = find_input(places, DAYS[0])
    assert unit is not None
    one = unit_job(whole, places, DAYS[0], unit)
    assert one.input == ("in/day=2026-11-01",)
    assert one.output == "out/day=2026-11-01"
    assert [stage.output for stage in one.stages] == ["s/2026-11-01.d", None]
    assert read_options(one) == replace(read_options(whole), bases=("in",))
    same = {
        **one.model_dump(),
        "input": whole.input,
        "output": "out",
        "stages": whole.model_dump()["stages"],
    }
    assert same == whole.model_dump()


def test_outputs_are_named_dt_where_no_partition_names_them() -> None:
    write("in/2026-11-01.csv")
    whole = asked("in/{date}.csv")
    places = find_input_paths(whole, DAYS[0], "day")
    unit = find_input(places, DAYS[0])
    assert unit is not None
    assert unit_job(whole, places, DAYS[0], unit).output == "out/dt=2026-11-01"


# Listing


def test_folders_right_below_a_folder() -> None:
    write("in/b/x/y.csv", "in/a/x.csv", "in/_c/x.csv", "in/.d/x.csv", "in/e.csv")
    assert list_folders("in") == list_folders("in/") == list_folders(f"file://{Path.cwd()}/in") == ("a", "b")
    assert list_folders(".") == ("in",)


def test_a_base_counts_for_what_lies_in_it_alone() -> None:
    write("in/k=1/n=2/x.csv", "im/k=3/x.csv")
    opened = source("in/k=1/n=2", "im/k=3", bases=("in", "i"))
    assert opened.schema.names == ["a", "k", "n"]
    assert sorted(column(opened, "k"), key=str) == [1, None]
    assert source("in/k=1/n=2/x.csv", bases=("in/k=1",)).schema.names == ["a", "n"]
    assert source("in/k=*/n=2", bases=("in",)).schema.names == ["a", "k", "n"]


def test_output_that_is_one_for_several_units_is_named_as_the_user_wrote_it() -> None:
    write("in/dt=2026-11-01/x.csv")
    with pytest.raises(ConfigError, match=r"^out/dt=\{date:%Y\} is out/dt=2026 for 2026-11-01 and for 2026-11-02"):
        find_input_paths(asked("in", output="delta+out/dt={date:%Y}"), DAYS[0], "day")
