"""The snapshot that replaces the files of a partition, or of a whole Iceberg table, by the files of a result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import OutputError
from .iceberg import FENCE, RUN, TOKEN, WHERE, fence, files_of, published
from .iceberg_catalog import TableAddress, catalog_errors, find_table, open_catalog
from .iceberg_schema import (
    added_columns,
    check_columns,
    check_whole_files,
    check_written,
    file_schema,
    new_schema,
    new_spec,
)
from .statistics import FileStatistics

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import PrimitiveType


# Entries of a table for files that tasks have written: sizes, counts and bounds by field id, as plain JSON values.
#
# A run writes them down before its commit, so that any process can make the same commit again.


Entry = dict[str, Any]
"""A data file in plain JSON values: the keys of the Iceberg specification, field ids as texts, bounds in hex digits."""

_BOUNDS = ("lower_bounds", "upper_bounds")
_BY_FIELD = ("column_sizes", "value_counts", "null_value_counts")


WrittenFile = tuple[str, int, int, FileStatistics]
"""A file that a task has written: its URI, rows, bytes and statistics."""


def entries_of(metadata: TableMetadata, files: Sequence[WrittenFile], partition: Sequence[Any]) -> list[Entry]:
    """Return an entry for each file of one result.

    ``metadata``: what the table says of its columns, its partitioning, and which bounds it keeps. ``partition``: the
    values of the partition fields that all files have.
    """
    from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping  # noqa: PLC0415 - heavy

    schema = metadata.schema()
    ids = parquet_path_to_id_mapping(schema)
    plan = compute_statistics_plan(schema, dict(metadata.properties))
    common = {"partition": list(partition), "spec_id": metadata.default_spec_id}
    return [{**common, **_entry(file, ids, plan)} for file in files]


def _entry(file: WrittenFile, ids: Mapping[str, int], plan: Mapping[int, Any]) -> Entry:
    uri, rows, nbytes, statistics = file
    by_field: dict[str, dict[str, Any]] = {key: {} for key in (*_BY_FIELD, *_BOUNDS)}
    for column in statistics.columns:
        if column.path not in ids:
            continue
        planned, field = plan[ids[column.path]], str(ids[column.path])
        mode = str(planned.mode.type.value)
        by_field["column_sizes"][field] = column.nbytes
        if mode == "none":
            continue
        by_field["value_counts"][field] = column.values
        if column.nulls is not None:
            by_field["null_value_counts"][field] = column.nulls
        if mode == "counts" or column.least is None:
            continue
        for key, value in zip(_BOUNDS, (column.least, column.greatest), strict=True):
            bound = _bound(planned.iceberg_type, value, planned.mode.length, is_upper=key == "upper_bounds")
            if bound is not None:
                by_field[key][field] = bound.hex()
    return {
        "file_path": uri,
        "record_count": rows,
        "file_size_in_bytes": nbytes,
        "split_offsets": sorted(statistics.offsets),
        **by_field,
    }


def _bound(kind: PrimitiveType, value: Any, length: int | None, *, is_upper: bool) -> bytes | None:
    """Return a bound as the specification stores it; None where no text of at most ``length`` is a bound."""
    from pyiceberg.conversions import to_bytes  # noqa: PLC0415 - heavy
    from pyiceberg.utils.truncate import (  # noqa: PLC0415
        truncate_upper_bound_binary_string,
        truncate_upper_bound_text_string,
    )

    if isinstance(value, str | bytes) and length is not None:
        if not is_upper:
            value = value[:length]
        elif isinstance(value, str):
            value = truncate_upper_bound_text_string(value, length)
        else:
            value = truncate_upper_bound_binary_string(value, length)
    return None if value is None else to_bytes(kind, value)


def data_file(entry: Entry) -> DataFile:
    """Return the data file of an entry, which may have been through JSON."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat  # noqa: PLC0415 - heavy
    from pyiceberg.typedef import Record  # noqa: PLC0415

    def by_field(key: str) -> dict[int, Any]:
        return {int(field): value for field, value in entry[key].items()}

    fields: dict[str, Any] = {
        **{key: by_field(key) for key in _BY_FIELD},
        **{key: {field: bytes.fromhex(value) for field, value in by_field(key).items()} for key in _BOUNDS},
    }
    return DataFile.from_args(
        **fields,
        content=DataFileContent.DATA,
        file_path=entry["file_path"],
        file_format=FileFormat.PARQUET,
        partition=Record(*entry["partition"]),
        record_count=entry["record_count"],
        file_size_in_bytes=entry["file_size_in_bytes"],
        nan_value_counts={},
        split_offsets=entry["split_offsets"] or None,
        sort_order_id=None,
        spec_id=entry["spec_id"],
        equality_ids=None,
        key_metadata=None,
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a table.

    ``table``: the newest version; None: there is no table.
    ``files``: the files that it holds at the address.
    """

    catalog: Catalog
    table: Table | None
    files: Sequence[DataFile]


@dataclass(frozen=True, slots=True)
class IcebergLog:
    """A `TableLog` of an Iceberg table: one result that is to become what the table holds at an address.

    ``location``: where the table is, for one that is made by this commit.
    ``columns``: the columns of the files, with their field ids.
    """

    address: TableAddress
    token: str
    run: str
    held: str
    location: str
    columns: pa.Schema
    files: Sequence[Entry]

    @property
    def shown(self) -> str:
        return str(self.address)

    def read(self) -> Reading:
        with catalog_errors(self.address, OutputError):
            catalog = open_catalog(self.address.catalog)
            table = find_table(catalog, self.address)
            return Reading(catalog, table, _files(table, self.address))

    def published(self, found: Reading) -> str | None:
        return None if found.table is None else published(found.table.metadata, self.address)

    def holds(self, found: Reading) -> str:
        return _held(found.table, self.address, found.files)

    def replace(self, found: Reading) -> bool:
        if found.table is not None:
            check_written(self.address, found.table.metadata)
            specs = found.table.specs()
            of_files = [specs[one] for one in {file.spec_id for file in found.files}]
            check_whole_files(self.address, of_files, found.table.schema(), OutputError)
        properties = {TOKEN: self.token, RUN: self.run, WHERE: self.address.where_text}
        return self._commit(found, properties, found.files, self.files)

    def fence(self, found: Reading) -> bool:
        return self._commit(found, {FENCE: f"{self.token} {self.address.where_text}"}, (), None)

    def _commit(
        self, found: Reading, told: Mapping[str, Any], former: Sequence[DataFile], entries: Sequence[Entry] | None
    ) -> bool:
        """Commit a snapshot without the files ``former`` and with ``entries``; None: with the columns as they are."""
        from pyiceberg.exceptions import (  # noqa: PLC0415 - heavy
            CommitFailedException,
            TableAlreadyExistsError,
            ValidationException,
        )

        table = found.table
        with catalog_errors(self.address, OutputError):
            try:
                if table is None:
                    schema = new_schema(self.columns)
                    spec = new_spec(schema, [name for name, _ in self.address.where])
                    of_table = (self.address.table, schema, self.location, spec)
                    transaction = found.catalog.create_table_transaction(*of_table)
                else:
                    # A commit is tried once: each attempt of ours looks again at what the table holds.
                    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
                    table.metadata = table.metadata.model_copy(update={"properties": properties})
                    transaction = table.transaction()
                    if entries is not None:
                        _add_named(transaction, added_columns(self.columns, table.schema()))
                if entries is not None:
                    self._check_ids(transaction)
                with transaction.update_snapshot(dict(told)).overwrite() as overwrite:
                    for file in former:
                        overwrite.delete_data_file(file)
                    for entry in entries or ():
                        overwrite.append_data_file(data_file(entry))
                transaction.commit_transaction()
            except (CommitFailedException, TableAlreadyExistsError, ValidationException):
                return False
        return True

    def _check_ids(self, transaction: Transaction) -> None:
        schema = transaction.table_metadata.schema()
        check_columns(self.columns, schema, True, str(self.address.whole))
        if not file_schema(self.columns, schema).equals(self.columns, check_metadata=True):
            what = f"the columns of {self.address.whole} have changed since this run began; nothing was written"
            raise OutputError(what, "run it again")


def held(table: Table | None, address: TableAddress) -> str:
    """Return what a table holds at an address, as a text that is another one as soon as anything there changes.

    A table that is not there holds nothing, as one that has no such partition.
    """
    return _held(table, address, _files(table, address))


def _files(table: Table | None, address: TableAddress) -> Sequence[DataFile]:
    return () if table is None else files_of(table, address, table.current_snapshot()).data


def _held(table: Table | None, address: TableAddress, files: Sequence[DataFile]) -> str:
    known = ("", "") if table is None else (published(table.metadata, address) or "", fence(table.metadata, address))
    return hashlib.sha256("\n".join([*known, *(file.file_path for file in files)]).encode()).hexdigest()


def _add_named(transaction: Transaction, added: Sequence[pa.Field]) -> None:
    if added:
        with transaction.update_schema() as update:
            for field in new_schema(pa.schema(added)).fields:
                update.add_column(field.name, field.field_type)


def planned_metadata(table: Table | None, stored: pa.Schema, replacing: TableAddress, location: str) -> TableMetadata:
    """Return what a table will say of itself once it holds a result; nothing is made.

    ``stored``: the columns of the result, as `stored_schema` returns them. ``location``: of a table that is not there.
    """
    if table is not None:
        transaction = table.transaction()  # never committed: it says which ids new columns will have
        _add_named(transaction, added_columns(stored, table.schema()))
        return transaction.table_metadata
    from pyiceberg.table.metadata import new_table_metadata  # noqa: PLC0415 - heavy
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER  # noqa: PLC0415

    schema = new_schema(stored)
    spec = new_spec(schema, [name for name, _ in replacing.where])
    return new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, location)
