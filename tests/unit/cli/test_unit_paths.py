"""What units read and write: folders of partitions and templates, on a disk."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.readers import column, source
from wincli.cli.run.request import parse_job, read_options
from wincli.cli.run.unit_paths import UnitInput, find_input, find_input_paths, unit_job
from wincli.conf.job import Job
from wincli.conf.ranges import Kind, Unit, units
from wincli.readers.files.listing import list_folders
from wincli.windowing.errors import ConfigError, InputError
from wincli.windowing.ports import InputFile

DAYS = units("2026-11-01", "2026-11-05", "day")
FIVE = units("2026-11-01T05", "2026-11-01T06", "hour")[0]
WEEK = units("2026-11-02", "2026-11-09", "week")[0]
KINDS: dict[Unit, Kind] = {FIVE: "hour", WEEK: "week"}
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
    """A job of a range; ``first``: the output of a stage before the last."""
    written = f"  output: {first}\n" if first else ""
    Path("j.yaml").write_text(f"stages:\n- window: count(1)\n{written}- window: count(2)\n")
    days = {"start": "2026-11-01", "end": "2026-11-05"}
    return parse_job({"paths": ["j.yaml", *inputs, output], **days})


def found(*inputs: str, unit: Unit = DAYS[0], kind: Kind = "day", **more: Any) -> UnitInput | None:
    return find_input(find_input_paths(asked(*inputs, **more), unit, kind), unit)


def refused(error: type[Exception], *inputs: str, **more: Any) -> str:
    with pytest.raises(error) as caught:
        found(*inputs, **more)
    return str(caught.value)


# Partitions and templates


FILES = (
    *("in/dt=2026-11-01/b.csv", "in/dt=2026-11-01/n=1/a.csv", "in/dt=2026-11-03/a.csv", "in/dt=2026-11-03/_x.csv"),
    *("in/dt=2026-11-04/_a.csv", "t/2026-11-01.csv", "t/2026/11/01/a.csv", "t/g-2026-11-01-a.csv"),
    *("t/g-2026-11-01-b.csv", "h/at=2026-11-01T05/a.csv", "two/dt=2026-11-01/hour=05/a.csv", "b/2026-11-01.csv"),
    *("in/dt=2026%2D11%2D03/b.csv", "w/week=2026-11-02/a.csv"),
    *(f"in/{odd}/a.csv" for odd in ("dt=__HIVE_DEFAULT_PARTITION__", "kind=7", "old", "=2026-11-02", "dt=2026-13-01")),
)
UNITS: list[tuple[tuple[str, ...], Unit, list[str], list[str], list[str]]] = [
    (("in/",), DAYS[0], ["in/dt=2026-11-01"], ["in/"], ["in/dt=2026-11-01/b.csv", "in/dt=2026-11-01/n=1/a.csv"]),
    (
        ("in",), DAYS[2], ["in/dt=2026%2D11%2D03", "in/dt=2026-11-03"], ["in"],
        ["in/dt=2026%2D11%2D03/b.csv", "in/dt=2026-11-03/a.csv"],
    ),
    (("w",), WEEK, ["w/week=2026-11-02"], ["w"], ["w/week=2026-11-02/a.csv"]),
    (("in",), DAYS[1], [], [], []),
    (("in",), DAYS[3], [], [], []),
    (("h",), FIVE, ["h/at=2026-11-01T05"], ["h"], ["h/at=2026-11-01T05/a.csv"]),
    (
        ("two/dt={date:%F}/hour={date:%H}",), FIVE, ["two/dt=2026-11-01/hour=05"], ["two"],
        ["two/dt=2026-11-01/hour=05/a.csv"],
    ),
    (("t/{date}.csv",), DAYS[0], ["t/2026-11-01.csv"], ["t"], ["t/2026-11-01.csv"]),
    (("t/{date:%Y/%m/%d}",), DAYS[0], ["t/2026/11/01"], ["t"], ["t/2026/11/01/a.csv"]),
    (
        ("t/g-{date}-*.csv",), DAYS[0], ["t/g-2026-11-01-*.csv"], ["t"],
        ["t/g-2026-11-01-a.csv", "t/g-2026-11-01-b.csv"],
    ),
    *(((path,), DAYS[1], [], [], []) for path in ("t/{date}.csv", "t/{date:%Y/%m/%d}", "t/g-{date}-*.csv")),
    (
        ("h/at={date}T05", "b/{date}.csv"), DAYS[0], ["h/at=2026-11-01T05", "b/2026-11-01.csv"], ["h", "b"],
        ["h/at=2026-11-01T05/a.csv", "b/2026-11-01.csv"],
    ),
    (("in", "b/{date}.csv"), DAYS[1], [], [], []),
    (
        ("in", "in/dt={date}/b.csv"), DAYS[0], ["in/dt=2026-11-01", "in/dt=2026-11-01/b.csv"], ["in"],
        ["in/dt=2026-11-01/b.csv", "in/dt=2026-11-01/n=1/a.csv"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "unit", "paths", "bases", "files"), UNITS)
def test_the_input_of_a_unit(
    inputs: tuple[str, ...], unit: Unit, paths: list[str], bases: list[str], files: list[str]
) -> None:
    write(*FILES)
    listed = tuple(InputFile(str(Path.cwd() / path), 4, MTIME) for path in files)
    wanted = UnitInput(tuple(paths), tuple(bases), listed) if files else None
    unit_input = found(*inputs, unit=unit, kind=KINDS.get(unit, "day"))
    assert unit_input == wanted
    if unit_input is not None:
        assert len(source(*unit_input.paths, bases=unit_input.bases).files) == len(files)


@pytest.mark.parametrize("written", ["dt=2026-11-02", "dt=2026%2D11%2D02", "d%74=2026-11-02"])
def test_a_partition_reads_as_its_part_of_the_whole_folder(written: str) -> None:
    write(f"in/{written}/n=7/a.csv", "in/dt=2026-11-01/n=8/a.csv")
    unit = found("in", unit=DAYS[1]) if not written.startswith("d%") else UnitInput((f"in/{written}",), ("in",), ())
    assert unit is not None
    whole, part = source("in"), source(*unit.paths, bases=unit.bases)
    assert part.schema == whole.schema == pa.schema([("a", pa.int64()), ("dt", pa.date32()), ("n", pa.int64())])
    assert column(part, "dt") == [dt.date(2026, 11, 2)]
    assert [file.path for file in part.files] == [f"in/{written}/n=7/a.csv"]


def test_folders_in_a_template_are_columns() -> None:
    write("in/dt=2026-11-01/hour=05/a.csv")
    unit = found("in/dt={date:%F}/hour={date:%H}/*.csv", unit=FIVE, kind="hour")
    assert unit is not None
    read = source(*unit.paths, bases=unit.bases)
    assert (column(read, "dt"), column(read, "hour")) == ([dt.date(2026, 11, 1)], [5])


# What is refused


def test_inputs_that_have_no_units_or_only_some_of_them() -> None:
    write("in/x.csv", "in/n=1/x.csv", "two/dt=2026-11-01/hour=05/a.csv", "a/dt=2026-11-02/x.csv", "b/2026-11-03.csv")
    assert refused(ConfigError, "in") == (
        "in has no {date}, and holds no folders of days such as dt=2026-11-02; "
        "write {date} in place of the day in the path"
    )
    write("old/dt=2026-11-01/a.csv", "old/day=2026-11-01/a.csv")
    assert refused(ConfigError, "old") == "old holds folders day= and dt=; say which: old/day={date}"
    assert refused(InputError, "none") == "there is no file or folder none; check the path"
    assert refused(InputError, "inn/{date}.csv") == "there is no file or folder inn; did you mean in?"
    assert refused(InputError, "in/x.csv") == "in/x.csv is a file; name a folder, or write {date} in the path of files"
    assert refused(ConfigError, "two", unit=FIVE, kind="hour") == (
        "two is partitioned by days, and the range is of hours; "
        "say two/dt={date:%Y-%m-%d}/hour={date:%H}, or --unit day"
    )
    for unit, there, missing in ((DAYS[1], "a", "b/{date}.csv"), (DAYS[2], "b/{date}.csv", "a")):
        assert refused(InputError, "a", "b/{date}.csv", unit=unit) == (
            f"{there} has files for {unit.label}, and {missing} has none; "
            "wait for them, or let the range end before it or begin behind it"
        )


def test_templates_that_give_two_days_one_path_are_named_as_the_user_wrote_them() -> None:
    write("in/dt=2026-11-01/a.csv")
    text = "{} is {} for 2026-11-01 and for 2026-11-02; write {{date}}, or a layout that is different for every day"
    for path, there, given in (
        ("in/{date:%Y}", "in/2026", {"inputs": ("in/{date:%Y}",)}),
        ("o-{date:%m}", "o-11", {"output": "o-{date:%m}"}),
        ("s-{date:%m}", "s-11", {"first": "s-{date:%m}"}),
        ("out/dt={date:%Y}", "out/dt=2026", {"output": "delta+out/dt={date:%Y}"}),
    ):
        inputs: Any = given.pop("inputs", ("in",))
        assert refused(ConfigError, *inputs, **given) == text.format(path, there)


# The job of a unit


@pytest.mark.parametrize(
    ("given", "unit_input", "name"), [("in", "in/day=2026-11-01", "day"), ("t/{date}.csv", "t/2026-11-01.csv", "dt")]
)
def test_the_job_of_a_unit_is_that_of_the_range_with_other_places(given: str, unit_input: str, name: str) -> None:
    write("in/day=2026-11-01/x.csv", "t/2026-11-01.csv")
    whole = asked(given, first="s/{date}.d")
    places = find_input_paths(whole, DAYS[0], "day")
    unit = find_input(places, DAYS[0])
    assert unit is not None
    one = unit_job(whole, places, DAYS[0], unit)
    assert (one.input, one.output) == ((unit_input,), f"out/{name}=2026-11-01")
    assert [stage.output for stage in one.stages] == ["s/2026-11-01.d", None]
    assert read_options(one) == replace(read_options(whole), bases=(given.partition("/")[0],))
    places_of_range = {"input": whole.input, "output": whole.output, "stages": whole.stages}
    assert one.model_copy(update=places_of_range).model_dump() == whole.model_dump()


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
