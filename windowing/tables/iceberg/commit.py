"""One snapshot that replaces the files of a partition, or of the whole table, by the files of a result.

The snapshot is made only if the table holds there what it held when the run began. Commits of others to other
partitions in between are no conflict: the snapshot is then made again on top of theirs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import OutputError
from .address import TableAddress
from .catalog import catalog_errors, find_table, open_catalog
from .data_files import Entry, data_file
from .partition import check_whole_files, check_written, new_spec
from .schema import added_columns, check_columns, file_schema, new_schema
from .snapshots import FENCE, RUN, TOKEN, WHERE, fence, files_of, published, where_text

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata

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
    """Whether a commit has been made whose answer was lost."""
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
    """Add columns to the schema of a table, in their order."""
    if added:
        with transaction.update_schema() as update:
            for field in new_schema(pa.schema(added)).fields:
                update.add_column(field.name, field.field_type)


def _check_ids(replacement: Replacement, transaction: Transaction) -> None:
    """Raise `OutputError` where the table has come to have other columns than the files have been written for."""
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
    """Return the transaction that makes the table of a result, without any rows."""
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
