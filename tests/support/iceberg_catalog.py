"""A catalog of Iceberg tables in a SQLite file, for tests: named ``lake`` in the configuration of pyiceberg."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from wincli.windowing.tables.iceberg_catalog import find_table, open_catalog, parse_address
from wincli.windowing.tables.iceberg_commit import IcebergLog, entries_of, held, planned_metadata
from wincli.windowing.tables.iceberg_schema import (
    check_columns,
    file_schema,
    new_columns,
    partition_record,
    stored_schema,
    values_of,
)
from wincli.windowing.tables.statistics import statistics_of

if TYPE_CHECKING:
    import pytest

NAMESPACE = "logs"


@dataclass(frozen=True)
class Lake:
    """A catalog with one namespace, `NAMESPACE`.

    ``folder``: where its file is.
    ``tables``: the URI below which its tables are; empty: in the folder.
    """

    folder: Path
    tables: str = ""

    @property
    def env(self) -> dict[str, str]:
        """The environment variables that name the catalog to pyiceberg."""
        return {
            "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
            "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{self.folder}/catalog.db",
            "PYICEBERG_CATALOG__LAKE__WAREHOUSE": self.warehouse,
        }

    @property
    def warehouse(self) -> str:
        """The URI below which its tables are."""
        return self.tables or f"file://{self.folder}/tables"

    @property
    def catalog(self) -> Any:
        """The catalog, which the environment must name."""
        return open_catalog("lake")

    def set_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the environment name the catalog."""
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)

    def make(self) -> None:
        """Make the file of the catalog and the namespace."""
        self.folder.mkdir(exist_ok=True)
        self.catalog.create_namespace(NAMESPACE)

    def address(self, name: str) -> str:
        """Return the address of a table, or of a partition as in ``events/day=2026-11-02``."""
        return f"iceberg://lake/{NAMESPACE}.{name}"

    def table(self, name: str) -> Any:
        """Return a table as pyiceberg has it."""
        return self.catalog.load_table(f"{NAMESPACE}.{name}")

    def rows(self, name: str) -> pa.Table:
        """Return the rows of a table as pyiceberg reads them."""
        return self.table(name).scan().to_arrow()

    def location(self, name: str) -> str:
        """Return where a new table is made."""
        return f"{self.warehouse}/{NAMESPACE}/{name}"


def replacement(lake: Lake, path: str, token: str, tables: list[pa.Table], evolve: bool = False) -> IcebergLog:
    """Write a result to files as a run would, one for each table, and return what is to be published."""
    address = parse_address(path)
    found = find_table(lake.catalog, address)
    result = stored_schema(pa.schema([*tables[0].schema, *new_columns(address)]))
    location = found.location() if found else lake.location(address.table[-1])
    if found:
        check_columns(result, found.schema(), evolve, path)
    planned = planned_metadata(found, result, address, location)
    columns = file_schema(result, planned.schema())
    folder = Path(location.removeprefix("file://")) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for at, rows in enumerate(tables):
        table = rows
        for name, value in values_of(address, result).items():
            table = table.append_column(name, pa.repeat(value, table.num_rows))
        target = folder / f"part-{at:05d}-{token}.parquet"
        parquet.write_table(table.cast(columns), target)
        statistics = statistics_of(parquet.read_metadata(target))
        files.append((f"file://{target}", table.num_rows, target.stat().st_size, statistics))
    entries = entries_of(planned, files, partition_record(address, planned))
    return IcebergLog(address, token, f"run-{token}", held(found, address), location, columns, entries)
