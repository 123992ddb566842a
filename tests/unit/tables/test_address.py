"""Paths of tables: which part names the table, and which a partition of it."""

from __future__ import annotations

import pytest

from wincli.windowing.tables.address import TablePath, folder_path, split_path


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
