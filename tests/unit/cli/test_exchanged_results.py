"""Parts and whole results that stand in each other's places: never read, and found by ``verify``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.in_process import done, wincli_here
from support.processes import Ran, write
from support.s3_server import S3Bucket
from wincli.windowing.support.checksum import CHECKSUM, PLACE, TAIL

WINDOW = ("-w", "delta(ts, 60)", "-k", "user", "-a", "n=sum(n)", "--order-by", "ts")
RANGE = ("--start", "2026-11-01", "--end", "2026-11-03")
ROWS = ("ts,user,n\n1,a,2\n2,b,3\n", "ts,user,n\n1,a,4\n2,b,5\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n, rows in enumerate(ROWS, 1):
        write(tmp_path, **{f"in{n}__csv": rows})
        write(tmp_path / "in" / f"dt=2026-11-0{n}", a__csv=rows)
    return tmp_path


def make(folder: Path, *options: str, on: str = "") -> None:
    for n, out in enumerate("ab", 1):
        done(folder, "run", *WINDOW, *options, f"in{n}.csv", f"{on}{out}")


def exchange(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def read(folder: Path, out: str) -> Ran:
    """Read a result as a stream."""
    shutil.rmtree(folder / "next", ignore_errors=True)
    return wincli_here("run", "-w", "count(1)", "-a", "n=sum(n)", out, "next", cwd=folder)


def are_read(folder: Path, *outs: str) -> None:
    for out in outs:
        assert read(folder, out).code == 0
        done(folder, "verify", out)


def is_refused(folder: Path, out: str, says: str) -> None:
    ran = read(folder, out)
    assert (ran.code, says in ran.err) == (3, True), ran.err
    assert not (folder / "next").exists()
    ran = done(folder, "verify", out, code=4)
    assert says in ran.out or "its checksum is" in ran.out


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "orc"])
def test_parts_of_one_size_that_were_exchanged_are_refused(folder: Path, form: str) -> None:
    make(folder, "--output-format", form)
    parts = [folder / out / f"part-00000.{form}" for out in "ab"]
    assert parts[0].stat().st_size == parts[1].stat().st_size
    assert read(folder, "a").code == 0
    exchange(*parts)
    for out in "ab":
        is_refused(folder, out, "is another file than its manifest names")


def test_results_that_were_exchanged_are_refused_until_one_is_moved_away(folder: Path) -> None:
    make(folder)
    exchange(folder / "a", folder / "b")
    is_refused(folder, "a", "a holds the result that was written to ")
    is_refused(folder, "b", "b holds the result that was written to ")
    (folder / "a").rename(folder / "c")
    are_read(folder, "b", "c")


def test_results_that_took_each_others_places_in_a_circle_are_refused(folder: Path) -> None:
    make(folder)
    done(folder, "run", *WINDOW, "in1.csv", "c")
    exchange(folder / "a", folder / "b")
    exchange(folder / "b", folder / "c")
    for out in "abc":
        is_refused(folder, out, f"{out} holds the result that was written to ")


def test_a_result_that_was_moved_or_copied_or_whose_disk_has_another_name_is_read(folder: Path) -> None:
    (folder / "disk").mkdir()
    make(folder, on="disk/")
    (folder / "disk").rename(folder / "other")
    (folder / "disk").symlink_to("other")
    are_read(folder, "disk/a")
    exchange(folder / "other" / "a", folder / "other" / "b")
    for out in ("disk/a", "other/b"):
        is_refused(folder, out, " holds the result that was written to ")
    make(folder)
    (folder / "a").rename(folder / "old")
    done(folder, "run", *WINDOW, "in2.csv", "a")
    shutil.copytree(folder / "b", folder / "copy")
    (folder / "link").symlink_to("b")
    are_read(folder, "old", "a", "b", "copy", "link")


def test_objects_of_results_that_were_exchanged_are_refused(folder: Path, s3: S3Bucket) -> None:
    make(folder, on=f"{s3.uri}/")
    contents = {name: s3.client.get_object(Bucket=s3.name, Key=name)["Body"].read() for name in s3.names()}
    for name in contents:
        s3.client.delete_object(Bucket=s3.name, Key=name)
    for name, content in contents.items():
        s3.client.put_object(Bucket=s3.name, Key=f"{'ba'['ab'.index(name[0])]}{name[1:]}", Body=content)
    is_refused(folder, f"{s3.uri}/a", "/a holds the result that was written to ")
    for name in s3.names("b/"):
        s3.client.delete_object(Bucket=s3.name, Key=name)
    are_read(folder, f"{s3.uri}/a")


def test_units_of_a_range_that_were_exchanged_are_refused(folder: Path) -> None:
    done(folder, "run", *WINDOW, *RANGE, "in", "days")
    exchange(folder / "days" / "dt=2026-11-01", folder / "days" / "dt=2026-11-02")
    is_refused(folder, "days", "days/dt=2026-11-01 holds the result that was written to ")


def test_outputs_of_one_unit_that_were_exchanged_are_not_those_that_its_state_names(folder: Path) -> None:
    write(
        folder,
        job__yaml="{input: in, output: two, state: st, start: 2026-11-01, end: 2026-11-03, stages: ["
        "{name: one, window: 'delta(ts, 60)', key: user, agg: ['n=sum(n)'], order_by: ts, output: one}, "
        "{name: two, window: count(1), key: user, agg: ['n=sum(n)']}]}",
    )
    done(folder, "run", "job.yaml")
    done(folder, "verify", "st")
    exchange(folder / "one", folder / "two")
    ran = wincli_here("verify", "st", cwd=folder)
    assert (ran.code, "its output one/dt=2026-11-01 holds another result" in ran.out) == (4, True)


def test_result_of_an_earlier_version_says_nothing_of_its_place(folder: Path) -> None:
    make(folder)
    for out in "ab":
        path = folder / out / "_wincli" / "manifest.json"
        told = json.loads(path.read_text())
        for part in told["parts"]:
            del part[TAIL]
        path.write_text(json.dumps({key: value for key, value in told.items() if key not in (PLACE, CHECKSUM)}))
    exchange(folder / "a", folder / "b")
    are_read(folder, "a")
