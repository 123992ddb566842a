"""A result on its way into a Delta table: files in the folder of its partition, a description, and one transaction."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from ....windowing.errors import OutputError
from ....windowing.support.checksum import seal
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
from ...folders import atomic_swap
from ...folders.files import is_file, put_file
from ...folders.os_errors import output_errors
from ...folders.place import Place, has_no_folders, is_local
from ..contract import Progress
from ..run_files import check_run_files, manifest_path, read_sealed, sync_run_files

if TYPE_CHECKING:
    from deltalake import DeltaTable

STATISTICS = "statistics"
PARTITIONS = "partitioned"
"""The key of a manifest for the schema of the columns of ``--partition-by``; the commit takes it out again."""
_HELD = "held.json"
_DESCRIPTION = "transaction.json"


@dataclass(frozen=True, slots=True)
class DeltaResult:
    """A `TableCommit` that one transaction publishes.

    ``place``: the folder of the files: that of the table, or of its partition.
    ``at``: the table and the partition.
    ``token``: the id of the run.
    ``own``: the ids of the results that this process has begun, and not tried to publish.
    """

    place: Place
    at: TablePath
    token: str
    own: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def staging(self) -> str:
        """The folder beside that of the files."""
        return self.place.beside("new", self.token)

    @property
    def data(self) -> str:
        """The folder of the files: they are written where they stay."""
        return self.place.path

    @property
    def suffix(self) -> str:
        """The id of the run."""
        return f"-{self.token}"

    def open(self) -> None:
        """Make the staging, and write down there what the table holds now."""
        self.own.add(self.token)
        for folder in (self.staging, self.data):
            if not has_no_folders(self.place.fs):
                self.place.fs.create_dir(folder, recursive=folder == self.data)
        table = find_table(self.at.root)
        now = held(table, values_in(table, self.at, self.place.shown))
        self._put(_HELD, {"held": now, "version": -1 if table is None else table.version()})

    def begin(self) -> None:
        """Nothing: `open` has left what says that parts may be there."""

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Check the files, and write down the manifest and what the transaction will say."""
        kept = {key: value for key, value in manifest.items() if key != PARTITIONS}
        bare = {**kept, "parts": [_without_statistics(part) for part in manifest["parts"]]}
        with output_errors(self.place.shown):
            check_run_files(self.place, self.data, self.token, bare, "write to a folder that all workers share")
            self._put(_DESCRIPTION, self._describe(manifest))
            text = json.dumps(seal(bare), indent=2, ensure_ascii=False)
            put_file(self.place.fs, manifest_path(self.place, self.token), text.encode() + b"\n")
            sync_run_files(self.place, self.staging)

    def publish(self) -> None:
        """Commit the transaction: whoever reads the newest version sees the result, all others what they read."""
        self.own.discard(self.token)
        description = self._read(_DESCRIPTION)
        if description is None or self._read(_HELD) is None:  # in this order: see `fence`
            what = f"{self.place.shown}: what was prepared for it is gone; nothing was written"
            raise OutputError(what, "run it again")
        publish(self._replacement(description))
        self._sync_log()

    @property
    def needs(self) -> str:
        """The path of what the run needs to publish, and writes only when it begins."""
        return f"{self.staging}/{_HELD}"

    def fence(self) -> None:
        """See to it that the run of this result, which may only be paused, cannot publish; `needs` is deleted before.

        So either the run has described its transaction before, and a fence in the log is against that; or it finds that
        what it needs is gone.
        """
        if (description := self._read(_DESCRIPTION)) is None:
            return
        columns, table, shown = _columns_in(description), find_table(self.at.root), self.place.shown
        values = canonical_in(self.at.values, columns if table is None else schema_of(table), shown)
        put_fence(self.at.root, shown, values, columns, _partitions(values, description))

    def progress(self, run: str) -> Progress:
        """Return how far the result has come: the table says whether its last result here is that of this run."""
        if self.is_published():
            return Progress.PUBLISHED
        return Progress.READY if self.is_ready(run) and self._is_as_it_was() else Progress.GONE

    def recover(self, run: str) -> None:
        """Commit the transaction, if that is what is left to do."""
        if self.progress(run) is Progress.READY:
            self.publish()

    def is_published(self) -> bool:
        """Whether the table has taken the result, and none after it."""
        table = find_table(self.at.root)
        return table is not None and published(table, values_in(table, self.at, self.place.shown)) == self.token

    def _is_as_it_was(self) -> bool:
        """Whether the table holds what it held when the run began; else it can never be published."""
        table, then = find_table(self.at.root), self._read(_HELD)
        return then is not None and held(table, values_in(table, self.at, self.place.shown)) == then["held"]

    def was_published(self) -> bool:
        """Whether a version of the table has, or may have, the files of the result, replaced or not."""
        table, then = find_table(self.at.root), self._read(_HELD)
        if table is None or then is None:
            return table is not None and self.is_published()
        _, root = locate(self.at.root)
        logs = [f"{root}/{LOG}/{version:020}.json" for version in range(int(then["version"]) + 1, table.version() + 1)]
        return any(self._is_in(log) for log in logs)

    def _is_in(self, log: str) -> bool:
        """Whether a file of the log names the result; one that is gone may have."""
        if not is_file(self.place.fs, log):
            return True
        with self.place.fs.open_input_stream(log) as file:
            return f"-{self.token}.".encode() in file.read()

    def is_ready(self, run: str) -> bool:
        """Whether all that the transaction of a run needs is written down."""
        description = self._read(_DESCRIPTION)
        return description is not None and description["run"] == run

    def _describe(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the transaction will say, as plain JSON values."""
        then = self._read(_HELD)
        if then is None:
            what = f"the run that writes {self.place.shown} has lost its staging folder; nothing was written"
            raise OutputError(what, "run it again")
        text = manifest.get(PARTITIONS)
        divided = pa.schema([]) if text is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
        return {
            "run": manifest.get("run") or self.token,
            "held": then["held"],
            "spec": manifest["spec"],
            "schema": self._columns(manifest["parts"][0]["name"], divided),
            "divided": divided.names,
            "files": [
                [part["name"], part["bytes"], statistics_json(part["rows"], part[STATISTICS])]
                for part in manifest["parts"]
            ],
        }

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
        values = values_in(table, self.at, self.place.shown)
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

    def _put(self, name: str, content: Mapping[str, Any]) -> None:
        put_file(self.place.fs, f"{self.staging}/{name}", json.dumps(seal(content)).encode())

    def _read(self, name: str) -> dict[str, Any] | None:
        return read_sealed(self.place, f"{self.staging}/{name}")


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


def _without_statistics(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != STATISTICS}
