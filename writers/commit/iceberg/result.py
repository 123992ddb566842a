"""A result on its way into an Iceberg table, which one snapshot publishes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyarrow import parquet

from ....windowing.errors import DataError, OutputError
from ....windowing.tables.iceberg.address import TableAddress
from ....windowing.tables.iceberg.catalog import catalog_errors, find_table, open_catalog
from ....windowing.tables.iceberg.commit import Replacement, held, planned_metadata, publish, put_fence
from ....windowing.tables.iceberg.data_files import EntryMaker
from ....windowing.tables.iceberg.partition import partition_record
from ....windowing.tables.iceberg.snapshots import published
from ....windowing.tables.statistics import FileStatistics
from ..contract import Progress
from ..run_result import RunResult

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class IcebergResult(RunResult):
    """A `TableCommit` that one snapshot publishes.

    ``address``: the partition, or the whole table.
    ``uri``: the URI of the folder of the files, as the table names them.
    ``location``: the URI of the table.
    """

    DESCRIPTION: ClassVar[str] = "snapshot.json"

    address: TableAddress
    uri: str
    location: str

    def _now(self) -> dict[str, Any]:
        with catalog_errors(self.address, OutputError):
            return {"held": held(self._table(), self.address)}

    def _describe(self, manifest: Mapping[str, Any], statistics: Mapping[str, FileStatistics]) -> dict[str, Any]:
        parts = manifest["parts"]
        with self.place.fs.open_input_file(f"{self.data}/{parts[0]['name']}") as file:
            columns = parquet.read_schema(file).remove_metadata()  # with the field ids, which are those of its fields
        with catalog_errors(self.address, OutputError):
            planned = planned_metadata(self._table(), columns, self.address, self.location)
            _check_required(planned, statistics, self.place.shown)
            files = [(f"{self.uri}/{p['name']}", p["rows"], p["bytes"], statistics[p["name"]]) for p in parts]
            entries = EntryMaker(planned).entries(files, partition_record(self.address, planned))
        return {"columns": base64.b64encode(columns.serialize()).decode(), "files": entries}

    def _commit(self, description: Mapping[str, Any]) -> None:
        publish(self._replacement(description))

    def _put_fence(self, description: Mapping[str, Any]) -> None:
        put_fence(self._replacement(description))

    def _standing(self, held: str | None) -> Progress:
        with catalog_errors(self.address, OutputError):
            return self._compared(self._table(), held)

    def _compared(self, table: Table | None, then: str | None) -> Progress:
        if table is not None and published(table.metadata, self.address) == self.token:
            return Progress.PUBLISHED
        return Progress.READY if then is not None and held(table, self.address) == then else Progress.GONE

    def _replacement(self, description: Mapping[str, Any]) -> Replacement:
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(description["columns"])))
        own = (self.address, self.token, description["run"], description["held"], self.location)
        return Replacement(*own, columns, description["files"])

    def _table(self) -> Table | None:
        return find_table(open_catalog(self.address.catalog), self.address)


def _check_required(planned: TableMetadata, statistics: Mapping[str, FileStatistics], shown: str) -> None:
    """Raise `DataError` where a result has nulls in a column in which the table may have none."""
    required = {field.name for field in planned.schema().fields if field.required}
    for file in statistics.values():
        for column in file.columns:
            if column.path in required and column.nulls != 0:
                what = f"column {column.path!r} of the result has nulls, and {shown} says that it has none"
                raise DataError(f"{what}; nothing was written", "filter them out, or make the column optional")
