"""Paths of tables: which part names the table, and which a partition of it; a table that others commit to."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from wincli.windowing.errors import ConfigError
from wincli.windowing.tables.address import TablePath, folder_path, split_path
from wincli.windowing.tables.delta import path_of
from wincli.windowing.tables.delta_library import LOG, open_table, uri_of
from wincli.windowing.tables.iceberg_catalog import parse_address


@pytest.mark.parametrize(
    ("path", "root", "values"),
    [
        ("in", "in", ()),
        ("in/day=2026-11-01/", "in", (("day", "2026-11-01"),)),
        ("s3://b/in/a=1/b=x%2Fy", "s3://b/in", (("a", "1"), ("b", "x/y"))),
        ("in/a=1/more", "in/a=1/more", ()),
        ("in/a=__HIVE_DEFAULT_PARTITION__", "in", (("a", None),)),
        ("in/a=", "in", (("a", None),)),
        ("in/=1", "in/=1", ()),
        ("a=1", "a=1", ()),
    ],
)
def test_names_with_values_at_the_end_are_a_partition(
    path: str, root: str, values: tuple[tuple[str, str], ...]
) -> None:
    found = split_path(path)
    assert (found.root, found.values) == (root, values)
    assert TablePath(root, folder_path(values)).values == values


BELOW = ("day=..", "day=%2e%2e%2f..", "day=a%00b", "..=b", "%2e%2e=x", "day=a/day=b", "a\0b", "a=\n")
ADDRESSES = (
    *("..", "", "/", "lake", "lake/..", "lake/../x", "../a.b", "./a.b", "lake//a.b", "lake/a.b/..", "lake/a.b//c=d"),
    *("lake/a..b", "lake/a.%2e%2e", "lake/a.b%2fc", "lake/a.b#c", "lake/a.b?c", "lake/a.b\\c", "lake/a.b\nc"),
    "lake/a. b",
)


@pytest.mark.parametrize("below", BELOW)
def test_partition_that_leads_elsewhere_is_refused(below: str) -> None:
    for parse, root in ((path_of, "delta+out"), (parse_address, "iceberg://lake/logs.out")):
        with pytest.raises(ConfigError, match=r"is no name of a partition|is named twice|has a character NUL"):
            parse(f"{root}/{below}")


@pytest.mark.parametrize("address", ADDRESSES)
def test_address_of_an_iceberg_table_names_a_catalog_and_a_table(address: str) -> None:
    with pytest.raises(ConfigError, match=r"is no address of an Iceberg table|has no parameters"):
        parse_address(f"iceberg://{address}")


def test_path_that_the_library_of_delta_takes_for_another_is_refused() -> None:
    with pytest.raises(ConfigError, match="has a % before two hex digits"):
        uri_of("in/%2e%2e/out")


def test_files_that_come_and_go_in_the_log_of_a_delta_table_are_no_trouble(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    ended = threading.Event()

    def commit() -> None:
        while not ended.is_set():
            for name in ("00000000000000000009.json#1", "_commit_1.json.tmp", "_commit_2.json"):
                (tmp_path / LOG / name).write_text("{}")
                (tmp_path / LOG / name).unlink()

    other = threading.Thread(target=commit)
    other.start()
    try:
        assert {open_table(str(tmp_path)).version() for _ in range(200)} == {0}
    finally:
        ended.set()
        other.join()
