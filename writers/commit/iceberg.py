"""An Iceberg table, or a partition of one, as an output: what is there, how it is written, what killed runs left."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyarrow import fs, parquet

from ...windowing.errors import DataError, OutputError
from ...windowing.support.address import Address
from ...windowing.tables.iceberg import TOKEN, files_of, only_rewritten, property_of, published, untouched
from ...windowing.tables.iceberg_catalog import (
    TableAddress,
    catalog_errors,
    file_system,
    find_table,
    has_keys,
    is_address,
    open_catalog,
    parse_address,
    storage_of,
)
from ...windowing.tables.iceberg_commit import IcebergLog, entries_of, held, planned_metadata
from ...windowing.tables.iceberg_schema import (
    arrow_schema,
    check_columns,
    check_written,
    file_schema,
    partition_record,
    stored_schema,
    value_type,
    values_of,
)
from ...windowing.tables.statistics import FileStatistics
from ...windowing.tables.table_log import publish, put_fence
from ..places.atomic_files import list_files
from ..places.conditional import ConditionalStore
from ..places.lock import Owner, hold_marker, lock_of
from ..places.open import open_store
from ..places.place import Place, is_local
from .contract import Content, Progress, TableFiles, with_table_types
from .result_files import read_sealed
from .version_table import RunResult, VersionTable, manifest_path

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table


# A result on its way into an Iceberg table, which one snapshot publishes.


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
            required = {field.name for field in planned.schema().fields if field.required}
            for column in (column for file in statistics.values() for column in file.columns):
                if column.path in required and column.nulls != 0:
                    shown = self.place.shown
                    what = f"column {column.path!r} of the result has nulls, and {shown} says that it has none"
                    raise DataError(f"{what}; nothing was written", "filter them out, or make the column optional")
            files = [(f"{self.uri}/{p['name']}", p["rows"], p["bytes"], statistics[p["name"]]) for p in parts]
            entries = entries_of(planned, files, partition_record(self.address, planned))
        return {"columns": base64.b64encode(columns.serialize()).decode(), "files": entries}

    def _commit(self, description: Mapping[str, Any]) -> None:
        publish(self._log(description))

    def _put_fence(self, description: Mapping[str, Any]) -> None:
        put_fence(self._log(description))

    def _standing(self, then: str | None) -> Progress:
        with catalog_errors(self.address, OutputError):
            table = self._table()
            if table is not None and published(table.metadata, self.address) == self.token:
                return Progress.PUBLISHED
            return Progress.READY if then is not None and held(table, self.address) == then else Progress.GONE

    def _log(self, description: Mapping[str, Any]) -> IcebergLog:
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(description["columns"])))
        own = (self.address, self.token, description["run"], description["held"], self.location)
        return IcebergLog(*own, columns, description["files"])

    def _table(self) -> Table | None:
        return find_table(open_catalog(self.address.catalog), self.address)


@dataclass(frozen=True, slots=True)
class IcebergTable(VersionTable):
    """A `Table` whose files a catalog knows; they are in its data folder, those of a partition in a folder of that.

    ``partition``: the partition, or the whole table.
    ``uri``: the URI of that folder, as the table names its files.
    ``location``: the URI of the table.
    ``has_lease``: whether it is in a store whose keys come from the environment, and not from the catalog.
    """

    TOKEN: ClassVar[re.Pattern[str]] = re.compile(r"(?:^|/)part-\d{5,}(?:-[0-9a-f]{12})?-([0-9a-f]{12})\.parquet$")

    partition: TableAddress
    uri: str
    location: str
    has_lease: bool = False

    @property
    def address(self) -> str:
        """The address; what opens the catalog is in the configuration of pyiceberg."""
        return str(self.partition)

    @staticmethod
    def takes(path: str) -> bool:
        return is_address(path)

    @classmethod
    def at(cls, path: str, shown: str | None = None) -> IcebergTable:
        """Return the table at an address, whether it is there or not.

        Raises `ConfigError` for a catalog or a namespace that is not there, `OutputError` where the catalog cannot be
        reached.
        """
        address = parse_address(path)
        with catalog_errors(address, OutputError):
            io, location, folder = storage_of(open_catalog(address.catalog), address)
            uri = "/".join([folder, *address.folders])
            system, inner = file_system(io, uri)
        has_lease = Address.of(uri).is_in_store and not has_keys(io)
        return cls(Place(shown or str(address), system, inner), address, uri, location, has_lease)

    def files(self, result: pa.Schema, evolve: bool) -> TableFiles:
        address, table = self.partition, self._table()
        names = {name for name, _ in address.where}
        own = pa.schema([field for field in result if field.name not in names])
        if table is None:
            fixed = pa.schema([pa.field(name, value_type(value)) for name, value in address.where])
        else:
            check_written(address, table.metadata)
            there = arrow_schema(table.schema())
            own = with_table_types(own, there)
            fixed = pa.schema([there.field(name) for name, _ in address.where])
        stored = stored_schema(pa.schema([*own, *fixed]))
        if table is not None:
            check_columns(stored, table.schema(), evolve, str(address.whole))
        columns = file_schema(stored, planned_metadata(table, stored, address, self.location).schema())
        return TableFiles(columns, values_of(address, stored))

    def content(self) -> Content:
        """Return what is there; rows that another program has put there are no result."""
        table = self._table()
        if table is None:
            return Content.VACANT
        if self._manifest(table) is not None:
            return Content.RESULT
        return Content.OTHER if any(file.record_count for file in self._live(table)) else Content.VACANT

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of the result that was published last; None where others have changed what is there."""
        table = self._table()
        return None if table is None else self._manifest(table)

    def columns(self) -> list[str]:
        table = self._table()
        return [] if table is None else [field.name for field in table.schema().fields]

    def _names(self) -> set[str] | None:
        table = self._table()
        if table is None:
            return set()
        if untouched(table.metadata, self.partition) is not None:
            return None
        return {file.file_path.removeprefix(f"{self.uri}/") for file in self._live(table)}

    def keeps_conditions(self) -> bool:
        return True  # the catalog compares the snapshot that a commit goes on from

    def hold(self, owner: Owner) -> AbstractContextManager[Owner | None]:
        """Hold the lock, or in a store the lease, beside the folder of the files.

        Where the catalog has keys of its own for the store, a marker has to do: these keys are not for the lease.
        """
        if is_local(self.place.fs) or self.has_lease:
            return super(IcebergTable, self).hold(owner)  # slots make the class anew, and a bare super() fails
        return hold_marker(lock_of(self.place), owner)

    def commit(self, token: str) -> IcebergResult:
        return IcebergResult(self.place, token, self.partition, self.uri, self.location, own=self.own)

    def _table(self) -> Table | None:
        with catalog_errors(self.partition, OutputError):
            return find_table(open_catalog(self.partition.catalog), self.partition)

    def _live(self, table: Table) -> tuple[DataFile, ...]:
        with catalog_errors(self.partition, OutputError):
            return files_of(table, self.partition, table.current_snapshot()).data

    def _manifest(self, table: Table) -> dict[str, Any] | None:
        """Return the manifest of the one result that is there."""
        if (token := untouched(table.metadata, self.partition)) is not None:
            return read_sealed(self.place, manifest_path(self.place, token))
        with catalog_errors(self.partition, OutputError):
            files = files_of(table, self.partition, table.current_snapshot())
        if files.deletes:  # of rows that others have deleted
            return None

        def is_rewritten() -> bool:
            with catalog_errors(self.partition, OutputError):
                return only_rewritten(table, self.partition)

        live = {file.file_path: file.record_count for file in files.data}
        return self._manifest_of(live, lambda: published(table.metadata, self.partition), is_rewritten)

    def _store(self) -> ConditionalStore:
        return open_store(self.uri.rpartition("/")[0])

    def _is_kept(self, token: str) -> bool:
        table = self._table()
        if table is None:
            return False
        if any(property_of(each, TOKEN) == token for each in table.snapshots()):
            return True
        return any(f"-{token}." in file.file_path for file in self._live(table))

    def _delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.place.fs.delete_file(path)

    def _remove_staging(self, folder: str) -> None:
        self.place.fs.delete_dir(folder)

    def _remove_empty(self) -> None:
        path, system = self.place.path, self.place.fs
        if system.get_file_info(path).type == fs.FileType.Directory and not list_files(system, path):
            system.delete_dir(path)
