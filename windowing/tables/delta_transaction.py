"""The transaction that replaces the files of a Delta table, or of one of its partitions, by those of a result.

It carries the id of the run as an *app transaction* of the partition, so that it counts once, however often it is
tried.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from ..errors import InputError, OutputError
from ..support.file_systems import file_system_of
from ..support.store_errors import first_line, store_trouble
from .address import Values, folder_path
from .delta import merged_schema
from .delta_library import LOG, import_library, open_table, storage_options, uri_of
from .statistics import FileStatistics

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction


_WRITTEN = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "timestampNtz"),
        *("columnMapping", "deletionVectors", "identityColumns", "domainMetadata", "v2Checkpoint"),
        *("vacuumProtocolCheck", "clustering"),
    }
)
"""Writer features whose tables can be written; most of them only where they are not in use."""
_IN_USE = {
    "delta.appendOnly": "says that nothing in it may be replaced",
    "delta.constraints.": "has constraints, which wincli does not check",
    "delta.enableDeletionVectors": "may have deletion vectors",
}
_IN_SCHEMA = {
    "delta.invariants": "has invariants, which wincli does not check",
    "delta.generationExpression": "has generated columns",
    "delta.identity.start": "has identity columns",
}


AddedFile = tuple[str, int, Values, str]
"""A file of a result: its path in the table, its size in bytes, its partition, its statistics as the log has them."""


def find_table(root: str) -> DeltaTable | None:
    """Return the newest version of a table; None where there is no table."""
    try:
        return open_table(root)
    except InputError as error:
        if isinstance(error.__cause__, import_library().exceptions.TableNotFoundError):
            return None
        raise


def app_of(values: Values) -> str:
    """Return the name of the app transaction of a partition."""
    return f"wincli:{folder_path(values)}"


def published(table: DeltaTable, values: Values) -> str | None:
    """Return the id of the result that was published last in a partition; None where there is none."""
    number = table.transaction_version(app_of(values))
    return None if number is None else f"{number:012x}"


def live_files(table: DeltaTable, values: Values) -> list[dict[str, Any]]:
    """Return path, size and rows of the files of a partition, sorted by path."""
    actions = pa.table(table.get_add_actions(flatten=True))
    for name, value in values:
        column = actions[f"partition.{name}"].cast(pa.string())
        actions = actions.filter(column.is_null() if value is None else pc.equal(column, value))
    rows = actions.select(["path", "size_bytes", "num_records"]).to_pylist()
    return sorted(rows, key=lambda row: row["path"])


def only_rewritten(root: str, table: DeltaTable, values: Values) -> bool:
    """Whether others have, since the last result of a partition, only written the same rows into other files.

    A compaction says of its files that they are no change of data; an update of as many rows as before does not. What
    is gone from the log is taken for a compaction.
    """
    system, inner = file_system_of(root)
    last, wanted = published(table, values), dict(values)
    for version in range(table.version(), -1, -1):
        log = f"{inner}/{LOG}/{version:020}.json"
        if system.get_file_info(log).type != fs.FileType.File:
            return True
        with system.open_input_stream(log) as file:
            lines = file.read().splitlines()
        try:
            actions = [json.loads(line) for line in lines]
        except ValueError:  # it is damaged, and the library is less strict
            return False
        taken = {(each["txn"]["appId"], each["txn"]["version"]) for each in actions if "txn" in each}
        if last is not None and (app_of(values), int(last, 16)) in taken:
            return True
        changes = [each.get("add") or each.get("remove") or {} for each in actions]
        others = [each for each in changes if each.get("dataChange")]
        is_own = any(app.startswith("wincli") for app, _ in taken)
        values_of = (each.get("partitionValues") or wanted for each in others)  # of one without any it may be
        if not is_own and any(all((one.get(name) or None) == value for name, value in values) for one in values_of):
            return False
    return False


def held(table: DeltaTable | None, values: Values) -> str:
    """Return a text that is another one whenever a partition has other files, or a fence was put."""
    texts = [] if table is None else [file["path"] for file in live_files(table, values)]
    fence = None if table is None else table.transaction_version(_fence_of(values))
    return hashlib.sha256("\n".join([str(fence), *texts]).encode()).hexdigest()


def check_writable(table: DeltaTable, shown: str) -> None:
    """Raise `OutputError` where a table demands of writers what wincli does not do."""
    features = {feature[:1].lower() + feature[1:] for feature in table.protocol().writer_features or ()}
    why = [f"has the feature {feature}, which wincli does not write" for feature in sorted(features - _WRITTEN)]
    settings = table.metadata().configuration
    for name, text in _IN_USE.items():
        is_begin = name.endswith(".")
        if settings.get(name) == "true" or (is_begin and any(key.startswith(name) for key in settings)):
            why.append(text)
    why += [text for name, text in _IN_SCHEMA.items() if any(name in field.metadata for field in table.schema().fields)]
    if settings.get("delta.columnMapping.mode", "none") != "none":
        why.append("gives its columns other names in files (column mapping)")
    if why:
        raise OutputError(f"the table {shown} {why[0]}; nothing was written", "write to another table")


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """A `TableLog` of a Delta table: one result on its way into it.

    ``root``: the path or URI of the table; ``shown``: as messages call it.
    ``values``: the partition that is replaced; empty: the whole table.
    ``columns``: the columns of the result, those of partitions among them.
    ``partitions``: the names of the partition columns of a new table.
    ``properties``: what the log says of the run.
    """

    root: str
    shown: str
    values: Values
    token: str
    held: str
    columns: pa.Schema
    partitions: Sequence[str]
    files: Sequence[AddedFile]
    properties: Mapping[str, str]

    def read(self) -> DeltaTable | None:
        return find_table(self.root)

    def published(self, found: DeltaTable | None) -> str | None:
        return None if found is None else published(found, self.values)

    def holds(self, found: DeltaTable | None) -> str:
        return held(found, self.values)

    def replace(self, found: DeltaTable | None) -> bool:
        from deltalake.transaction import AddAction  # noqa: PLC0415 - loaded only where a table is written

        now = int(time.time() * 1000)
        adds = [AddAction(path, size, dict(values), now, True, told) for path, size, values, told in self.files]
        schema = merged_schema(self.columns, found)
        transaction = app_of(self.values), int(self.token, 16)
        if found is None:
            return self._make(schema, adds, transaction, self.properties)
        filters: Any = [(name, "=", value or "") for name, value in self.values] or None
        return self._write(found, adds, "overwrite", schema, filters, transaction, self.properties)

    def fence(self, found: DeltaTable | None) -> bool:
        transaction = _fence_of(self.values), secrets.randbits(48)
        if found is None:
            return self._make(merged_schema(self.columns, None), [], transaction, {})
        return self._write(found, [], "append", found.schema(), None, transaction, {})

    def _write(
        self,
        table: DeltaTable,
        adds: Sequence[AddAction],
        mode: Literal["append", "overwrite"],
        schema: Schema,
        filters: Any,
        transaction: tuple[str, int],
        told: Mapping[str, str],
    ) -> bool:
        names, properties = table.metadata().partition_columns, _properties(transaction, told)
        return _try(
            lambda: table.create_write_transaction(
                list(adds), mode, schema, names, filters, commit_properties=properties
            ),
            self.shown,
        )

    def _make(
        self, schema: Schema, adds: Sequence[AddAction], transaction: tuple[str, int], told: Mapping[str, str]
    ) -> bool:
        """Make the table; return whether nobody else has made it."""
        from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415

        return _try(
            lambda: create_table_with_add_actions(
                uri_of(self.root),
                schema,
                list(adds),
                "error",
                list(self.partitions),
                storage_options=storage_options(self.root),
                commit_properties=_properties(transaction, told),
            ),
            self.shown,
        )


def _properties(transaction: tuple[str, int], told: Mapping[str, str]) -> Any:
    """Return the properties of a commit that is tried once: `table_log` reads the table before each try."""
    from deltalake import CommitProperties, Transaction  # noqa: PLC0415

    return CommitProperties(
        custom_metadata=dict(told) or None, max_commit_retries=0, app_transactions=[Transaction(*transaction)]
    )


def _try(commit: Any, shown: str) -> bool:
    """Commit; return False where another commit came first. Raises `OutputError` where the library refuses."""
    errors = import_library().exceptions
    try:
        commit()
    except errors.CommitFailedError:
        return False
    except (errors.DeltaError, OSError) as error:
        if "already exists" in str(error):
            return False
        trouble = store_trouble(str(error))
        why = trouble.words if trouble else first_line(error)
        known = "" if isinstance(error, OSError) else "; nothing was written"  # the answer of a store may be lost
        raise OutputError(f"cannot write {shown}: {why}{known}", trouble.do if trouble else None) from error
    return True


def _fence_of(values: Values) -> str:
    return f"wincli-fence:{folder_path(values)}"


# What the log of a Delta table says of the columns of a file, so that readers can pass it over.


_LONGEST = 64
"""Characters of a text: of longer ones nothing is said, for a part of the largest would be less than it."""


def statistics_json(rows: int, statistics: FileStatistics) -> str:
    """Return the statistics of a file as the log has them.

    Floats have no bounds there: Parquet leaves NaN out of them, and readers of Delta take NaN for the largest.
    """
    columns = [each for each in statistics.columns if "." not in each.path]
    bounds = [(each.path, _value(each.least), _value(each.greatest)) for each in columns]
    known = [(name, least, greatest) for name, least, greatest in bounds if None not in (least, greatest)]
    return json.dumps(
        {
            "numRecords": rows,
            "minValues": {name: least for name, least, _ in known},
            "maxValues": {name: greatest for name, _, greatest in known},
            "nullCount": {each.path: each.nulls for each in columns if (each.nulls is not None)},
        },
        ensure_ascii=False,
    )


def _value(value: Any) -> Any:
    """Return a bound as JSON has it; None where nothing is said."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else None
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{text}Z" if value.tzinfo else text
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if isinstance(value, int) else None
