"""A catalog of Iceberg tables in a SQLite file, for tests: named ``lake`` in the configuration of pyiceberg."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wincli.windowing.tables.iceberg_catalog import open_catalog

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
