"""One snapshot that replaces the files of a partition, or of the whole table, by the files of a result.

The snapshot is made only if the table holds there what it held when the run began. Commits of others to other
partitions in between are no conflict: the snapshot is then made again on top of theirs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import OutputError
from .iceberg import FENCE, RUN, TOKEN, WHERE, fence, files_of, published, where_text
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
from .statistics import ColumnStatistics, FileStatistics

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


@dataclass(frozen=True, slots=True)
class EntryMaker:
    """Makes the entries of the files of one result.

    ``metadata``: what the table says of itself: its columns, its partitioning, and which bounds it keeps.
    """

    metadata: TableMetadata

    def entries(self, files: Sequence[WrittenFile], partition: Sequence[Any]) -> list[Entry]:
        """Return an entry for each file; ``partition``: the values of the partition fields that all of them have."""
        from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping  # noqa: PLC0415 - heavy

        schema = self.metadata.schema()
        ids = parquet_path_to_id_mapping(schema)
        plan = compute_statistics_plan(schema, dict(self.metadata.properties))
        common = {"partition": list(partition), "spec_id": self.metadata.default_spec_id}
        return [{**common, **_entry(file, ids, plan)} for file in files]


def _entry(file: WrittenFile, ids: Mapping[str, int], plan: Mapping[int, Any]) -> Entry:
    uri, rows, nbytes, statistics = file
    columns = {ids[each.path]: each for each in statistics.columns if each.path in ids}
    return {
        "file_path": uri,
        "record_count": rows,
        "file_size_in_bytes": nbytes,
        "split_offsets": sorted(statistics.offsets),
        **_counts(columns, plan),
        **_all_bounds(columns, plan),
    }


def _counts(columns: Mapping[int, ColumnStatistics], plan: Mapping[int, Any]) -> dict[str, dict[str, int]]:
    counted = {field: column for field, column in columns.items() if _mode(plan[field]) != "none"}
    return {
        "column_sizes": {str(field): column.nbytes for field, column in columns.items()},
        "value_counts": {str(field): column.values for field, column in counted.items()},
        "null_value_counts": {str(f): column.nulls for f, column in counted.items() if column.nulls is not None},
    }


def _mode(planned: Any) -> str:
    return str(planned.mode.type.value)


def _all_bounds(columns: Mapping[int, ColumnStatistics], plan: Mapping[int, Any]) -> dict[str, dict[str, str]]:
    lower, upper = {}, {}
    for field, column in columns.items():
        planned = plan[field]
        if _mode(planned) in ("none", "counts") or column.least is None:
            continue
        lower[field] = _bound(planned.iceberg_type, column.least, planned.mode.length, is_upper=False)
        upper[field] = _bound(planned.iceberg_type, column.greatest, planned.mode.length, is_upper=True)
    return {
        "lower_bounds": {str(field): value.hex() for field, value in lower.items() if value is not None},
        "upper_bounds": {str(field): value.hex() for field, value in upper.items() if value is not None},
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


_ATTEMPTS = 12
_FIRST_WAIT = 0.05  # seconds, doubled by each attempt up to the longest
_LONGEST_WAIT = 2.0


@dataclass(frozen=True, slots=True)
class Replacement:
    """A result that is to become what a table holds at an address.

    ``address``: the partition, or the whole table.
    ``token``: names the result; it is published at most once.
    ``run``: the id of the run.
    ``held``: what the table held there when the run began, as `held` returns it.
    ``location``: where the table is, for one that is made by this commit.
    ``columns``: the columns of the files, with their field ids.
    ``files``: the entries of the files.
    """

    address: TableAddress
    token: str
    run: str
    held: str
    location: str
    columns: pa.Schema
    files: Sequence[Entry]


def held(table: Table | None, address: TableAddress) -> str:
    """Return what a table holds at an address, as a text that is another one as soon as anything there changes.

    A table that is not there holds nothing, as one that has no such partition.
    """
    if table is None:
        return _held("", "", ())
    files = files_of(table, address, table.current_snapshot()).data
    return _held(published(table.metadata, address) or "", fence(table.metadata, address), files)


def _held(token: str, fenced: str, files: Sequence[DataFile]) -> str:
    return hashlib.sha256("\n".join([token, fenced, *(file.file_path for file in files)]).encode()).hexdigest()


def publish(replacement: Replacement) -> None:
    """Make the result what the table holds at its address, in one snapshot; nothing where it is that already.

    Raises `OutputError` where another commit has changed what is there since the run began, or the columns; where the
    catalog cannot be reached; and where too many others commit at the same time.
    """
    from pyiceberg.exceptions import (  # noqa: PLC0415 - heavy
        CommitFailedException,
        TableAlreadyExistsError,
        ValidationException,
    )

    address = replacement.address
    with catalog_errors(address, OutputError):
        catalog = open_catalog(address.catalog)
        for attempt in range(_ATTEMPTS):
            table = find_table(catalog, address)
            if table is not None and published(table.metadata, address) == replacement.token:
                return
            try:
                _commit_once(catalog, table, replacement)
            except (CommitFailedException, TableAlreadyExistsError, ValidationException):
                time.sleep(min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT))
            except Exception:
                if not _has_landed(catalog, replacement):
                    raise
                return
            else:
                return
    raise _busy(address)


def _has_landed(catalog: Catalog, replacement: Replacement) -> bool:
    table = find_table(catalog, replacement.address)
    return table is not None and published(table.metadata, replacement.address) == replacement.token


def _commit_once(catalog: Catalog, table: Table | None, replacement: Replacement) -> None:
    address = replacement.address
    if table is None:
        _check_held(replacement, held(None, address))
        making = _making(catalog, replacement)
        _check_ids(replacement, making)
        _replace(making, replacement, [])
        making.commit_transaction()
        return
    files = files_of(table, address, table.current_snapshot()).data
    known = published(table.metadata, address) or "", fence(table.metadata, address)
    _check_held(replacement, _held(*known, files))
    check_written(address, table.metadata)
    specs = table.specs()
    check_whole_files(address, [specs[one] for one in {file.spec_id for file in files}], table.schema(), OutputError)
    transaction = _without_retries(table).transaction()
    _add_named(transaction, added_columns(replacement.columns, table.schema()))
    _check_ids(replacement, transaction)
    _replace(transaction, replacement, files)
    transaction.commit_transaction()


def _check_held(replacement: Replacement, now: str) -> None:
    if now != replacement.held:
        what = f"{replacement.address} was changed by another commit since this run began; nothing was written"
        raise OutputError(what, "run it again")


def _without_retries(table: Table) -> Table:
    """Return a table whose commit is tried once: each attempt of ours looks again at what the table holds."""
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def _add_named(transaction: Transaction, added: Sequence[pa.Field]) -> None:
    if added:
        with transaction.update_schema() as update:
            for field in new_schema(pa.schema(added)).fields:
                update.add_column(field.name, field.field_type)


def _check_ids(replacement: Replacement, transaction: Transaction) -> None:
    schema = transaction.table_metadata.schema()
    check_columns(replacement.columns, schema, True, str(replacement.address.whole))
    if not file_schema(replacement.columns, schema).equals(replacement.columns, check_metadata=True):
        what = f"the columns of {replacement.address.whole} have changed since this run began; nothing was written"
        raise OutputError(what, "run it again")


def _replace(transaction: Transaction, replacement: Replacement, former: Sequence[DataFile]) -> None:
    properties: dict[str, Any] = {
        TOKEN: replacement.token,
        RUN: replacement.run,
        WHERE: where_text(replacement.address),
    }
    with transaction.update_snapshot(properties).overwrite() as overwrite:
        for file in former:
            overwrite.delete_data_file(file)
        for entry in replacement.files:
            overwrite.append_data_file(data_file(entry))


def put_fence(replacement: Replacement) -> None:
    """Make the commit of a result fail for good that another run has prepared; the rows of a table stay as they are.

    A table that is not there is made without rows, for that commit would make it. Raises as `publish` does.
    """
    from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError  # noqa: PLC0415 - heavy

    address = replacement.address
    with catalog_errors(address, OutputError):
        catalog = open_catalog(address.catalog)
        for attempt in range(_ATTEMPTS):
            table = find_table(catalog, address)
            transaction = _making(catalog, replacement) if table is None else _without_retries(table).transaction()
            try:
                with transaction.update_snapshot({FENCE: f"{replacement.token} {where_text(address)}"}).overwrite():
                    pass
                transaction.commit_transaction()
            except (CommitFailedException, TableAlreadyExistsError):
                time.sleep(min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT))
            else:
                return
    raise _busy(address)


def _making(catalog: Catalog, replacement: Replacement) -> Transaction:
    schema = new_schema(replacement.columns)
    spec = new_spec(schema, [name for name, _ in replacement.address.where])
    return catalog.create_table_transaction(replacement.address.table, schema, replacement.location, spec)


def _busy(address: TableAddress) -> OutputError:
    what = f"{address}: others commit to the table all the time; nothing was written"
    return OutputError(what, "run it again when fewer write to it")


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
