"""Outputs in tables: the address that a path and a format make, and the path as the user wrote it."""

from __future__ import annotations

import pytest

from wincli.conf.job import is_table, plain_path, table_address
from wincli.windowing.errors import ConfigError


@pytest.mark.parametrize(
    ("path", "format", "address"),
    [
        ("out", "delta", "delta+out"),
        ("delta+out", "delta", "delta+out"),
        ("s3://b/out/day={date}", "delta", "delta+s3://b/out/day={date}"),
        ("out", "csv", "out"),
        ("-", "delta", "-"),
        ("iceberg://lake/a.b", "parquet", "iceberg://lake/a.b"),
    ],
)
def test_address_is_of_the_table_that_a_path_and_a_format_name(path: str, format: str, address: str) -> None:
    assert table_address(path, format) == address
    assert plain_path(address) == path.removeprefix("delta+")
    assert is_table(address) == (address not in ("out", "-"))


def test_iceberg_table_of_another_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="is an Iceberg table, and --output-format is delta"):
        table_address("iceberg://lake/a.b", "delta")
