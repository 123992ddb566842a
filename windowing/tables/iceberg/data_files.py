"""Entries of a table for files that tasks have written: sizes, counts and bounds by field id, as plain JSON values.

A run writes them down before its commit, so that any process can make the same commit again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..statistics import ColumnStatistics, FileStatistics

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import PrimitiveType

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
