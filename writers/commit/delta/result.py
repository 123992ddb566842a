"""A result on its way into a Delta table, which one transaction publishes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyarrow import parquet

from ....windowing.tables.address import TablePath, Values
from ....windowing.tables.delta.columns import canonical, canonical_in, columns_of_partition, fit_columns, schema_of
from ....windowing.tables.delta.library import LOG, locate
from ....windowing.tables.delta.statistics import statistics_json
from ....windowing.tables.delta.transaction import (
    AddedFile,
    Replacement,
    find_table,
    held,
    publish,
    published,
    put_fence,
)
from ....windowing.tables.statistics import FileStatistics
from ...folders import atomic_swap
from ...folders.files import is_file
from ...folders.place import is_local
from ..contract import Progress
from ..run_result import PARTITIONS, RunResult

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True, slots=True)
class DeltaResult(RunResult):
    """A `TableCommit` that one transaction publishes.

    ``at``: the table and the partition.
    """

    DESCRIPTION: ClassVar[str] = "transaction.json"

    at: TablePath

    def was_published(self) -> bool:
        """Whether a version of the table has, or may have, the files of the result, replaced or not."""
        table, then = find_table(self.at.root), self._held()
        if table is None or then is None:
            return table is not None and self._is_published(table)
        _, root = locate(self.at.root)
        logs = [f"{root}/{LOG}/{version:020}.json" for version in range(int(then["version"]) + 1, table.version() + 1)]
        return any(self._is_in(log) for log in logs)

    def _now(self) -> dict[str, Any]:
        table = find_table(self.at.root)
        return {"held": held(table, self._values(table)), "version": -1 if table is None else table.version()}

    def _describe(self, manifest: Mapping[str, Any], statistics: Mapping[str, FileStatistics]) -> dict[str, Any]:
        text = manifest.get(PARTITIONS)
        divided = pa.schema([]) if text is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
        return {
            "spec": manifest["spec"],
            "schema": self._columns(manifest["parts"][0]["name"], divided),
            "divided": divided.names,
            "files": [
                [part["name"], part["bytes"], statistics_json(part["rows"], statistics[part["name"]])]
                for part in manifest["parts"]
            ],
        }

    def _commit(self, description: Mapping[str, Any]) -> None:
        publish(self._replacement(description))
        self._sync_log()

    def _put_fence(self, description: Mapping[str, Any]) -> None:
        columns, table, shown = _columns_in(description), find_table(self.at.root), self.place.shown
        values = canonical_in(self.at.values, columns if table is None else schema_of(table), shown)
        put_fence(self.at.root, shown, values, columns, _partitions(values, description))

    def _standing(self, held: str | None) -> Progress:
        table = find_table(self.at.root)
        if self._is_published(table):
            return Progress.PUBLISHED
        return Progress.READY if held is not None and self._is_as(table, held) else Progress.GONE

    def _is_as(self, table: DeltaTable | None, then: str) -> bool:
        """Whether the table holds what it held when the run began; else it can never be published."""
        return held(table, self._values(table)) == then

    def _is_published(self, table: DeltaTable | None) -> bool:
        """Whether the table has taken the result, and none after it."""
        return table is not None and published(table, self._values(table)) == self.token

    def _values(self, table: DeltaTable | None) -> Values:
        return values_in(table, self.at, self.place.shown)

    def _is_in(self, log: str) -> bool:
        """Whether a file of the log names the result; one that is gone may have."""
        if not is_file(self.place.fs, log):
            return True
        with self.place.fs.open_input_stream(log) as file:
            return f"-{self.token}.".encode() in file.read()

    def _columns(self, part: str, divided: pa.Schema) -> str:
        """Return the columns of the result as the log has them, those of its partition last."""
        from deltalake import Schema  # noqa: PLC0415 - loaded only where a table is written

        with self.place.fs.open_input_file(f"{self.data}/{part}") as file:
            columns = parquet.read_schema(file).remove_metadata()
        table = find_table(self.at.root)
        known = columns_of_partition(self.at.values) if table is None else schema_of(table)
        whole = pa.schema([*columns, *(known.field(name) for name, _ in self.at.values), *divided])
        return str(Schema.from_arrow(whole).to_json())

    def _replacement(self, description: Mapping[str, Any]) -> Replacement:
        columns = _columns_in(description)
        table = find_table(self.at.root)
        values = self._values(table)
        if table is not None:
            fit_columns(columns, schema_of(table), evolve=True, shown=self.place.shown)
        head = f"{self.at.below}/" if self.at.below else ""
        files = [
            AddedFile(f"{head}{name}", size, (*values, *_values_of(name, columns)), statistics)
            for name, size, statistics in description["files"]
        ]
        properties = {"wincli.run": description["run"], "wincli.token": self.token, "wincli.spec": description["spec"]}
        return Replacement(
            self.at.root,
            self.place.shown,
            values,
            self.token,
            description["held"],
            columns,
            _partitions(values, description),
            files,
            properties,
        )

    def _sync_log(self) -> None:
        _, root = locate(self.at.root)
        if is_local(self.place.fs) and (log := Path(root, LOG)).is_dir():
            newest = max((file for file in log.iterdir() if file.suffix == ".json"), default=log)
            for path in (newest, log):
                atomic_swap.sync(path)


def values_in(table: DeltaTable | None, at: TablePath, shown: str) -> Values:
    """Return the values of the partition as the table has them."""
    return at.values if table is None else canonical(at.values, table, shown)


def _columns_in(description: Mapping[str, Any]) -> pa.Schema:
    from deltalake import Schema  # noqa: PLC0415 - loaded only where a table is written

    return pa.schema(Schema.from_json(description["schema"]).to_arrow())


def _partitions(values: Values, description: Mapping[str, Any]) -> list[str]:
    """Return the names of the partition columns of a table that a result makes."""
    return [*(name for name, _ in values), *description["divided"]]


def _values_of(name: str, columns: pa.Schema) -> Values:
    """Return the values of partition columns that the folders of a file name, as the log has them."""
    below = TablePath("", name.rpartition("/")[0])
    return tuple((column, _logged(value, columns.field(column).type)) for column, value in below.values)


def _logged(value: str | None, kind: pa.DataType) -> str | None:
    """Return a value as the log has it: instants with a zone say that they are in UTC, which folders do not."""
    is_instant = value is not None and pa.types.is_timestamp(kind) and kind.tz is not None
    return f"{value}Z".replace(" ", "T") if is_instant else value
