"""A result on its way into an Iceberg table: files in its data folder, a description, and one snapshot."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from ....windowing.errors import DataError, OutputError
from ....windowing.support.checksum import seal
from ....windowing.tables.iceberg.address import TableAddress
from ....windowing.tables.iceberg.catalog import catalog_errors, find_table, open_catalog
from ....windowing.tables.iceberg.commit import Replacement, held, planned_metadata, publish, put_fence
from ....windowing.tables.iceberg.data_files import EntryMaker
from ....windowing.tables.iceberg.partition import partition_record
from ....windowing.tables.iceberg.snapshots import published
from ....windowing.tables.statistics import FileStatistics
from ...folders.files import is_file, put_file
from ...folders.os_errors import output_errors
from ...folders.place import Place, has_no_folders, is_local
from ..contract import Progress
from ..run_files import check_run_files, manifest_path, read_sealed, sync_run_files

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

STATISTICS = "statistics"
_HELD = "held.json"
_DESCRIPTION = "snapshot.json"


@dataclass(frozen=True, slots=True)
class IcebergResult:
    """A `TableCommit` that one snapshot publishes.

    ``place``: the folder of the files.
    ``address``: the partition, or the whole table.
    ``uri``: the URI of that folder, as the table names its files.
    ``location``: the URI of the table.
    ``token``: the id of the run.
    ``own``: the ids of the results that this process has begun, and not tried to publish.
    """

    place: Place
    address: TableAddress
    uri: str
    location: str
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
        with catalog_errors(self.address, OutputError):
            now = held(find_table(open_catalog(self.address.catalog), self.address), self.address)
        for folder in (self.staging, self.data):
            if not has_no_folders(self.place.fs):
                self.place.fs.create_dir(folder, recursive=folder == self.data)
        self._put(_HELD, {"held": now})

    def begin(self) -> None:
        """Do nothing: readers see no file that no snapshot names."""

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Check the files, and write down the manifest, and what the snapshot will say."""
        statistics = {part["name"]: part[STATISTICS] for part in manifest["parts"]}
        bare = {**manifest, "parts": [_without_statistics(part) for part in manifest["parts"]]}
        with output_errors(self.place.shown):
            check_run_files(self.place, self.data, self.token, bare, "write to a table whose files all workers share")
        with output_errors(self.place.shown), catalog_errors(self.address, OutputError):
            self._put(_DESCRIPTION, self._describe(bare, statistics))
            text = json.dumps(seal(bare), indent=2, ensure_ascii=False)
            put_file(self.place.fs, manifest_path(self.place, self.token), text.encode() + b"\n")
            sync_run_files(self.place, self.staging)

    def publish(self) -> None:
        """Make the snapshot; whoever has seen the table before sees the former one until it reads the table anew."""
        self.own.discard(self.token)
        replacement = self._replacement()
        if replacement is None or self._read(_HELD) is None:  # in this order: see `fence`
            what = f"{self.place.shown}: what was prepared for it is gone; nothing was written"
            raise OutputError(what, "run it again")
        publish(replacement)

    def fence(self) -> None:
        """See to it that the run of this result, which may only be paused, cannot make its snapshot any more.

        What the run needs goes first: so either it has written its description before, and the table is fenced against
        that, or it finds that gone.
        """
        if is_local(self.place.fs):
            return  # its lock was free, so its process has ended
        held_at = f"{self.staging}/{_HELD}"
        if is_file(self.place.fs, held_at):
            self.place.fs.delete_file(held_at)
        if (replacement := self._replacement()) is not None:
            put_fence(replacement)

    def _replacement(self) -> Replacement | None:
        """Return what is prepared; None where nothing is."""
        found = self._read(_DESCRIPTION)
        if found is None:
            return None
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["columns"])))
        own = (self.address, self.token, found["run"], found["held"], self.location)
        return Replacement(*own, columns, found["files"])

    def progress(self, run: str) -> Progress:
        """Return how far the result has come: the table says whether its last result here is that of this run."""
        then = self._read(_HELD)
        with catalog_errors(self.address, OutputError):
            table = find_table(open_catalog(self.address.catalog), self.address)
            if table is not None and published(table.metadata, self.address) == self.token:
                return Progress.PUBLISHED
            is_as_it_was = then is not None and held(table, self.address) == then["held"]
        return Progress.READY if is_as_it_was and self.is_ready(run) else Progress.GONE

    def is_ready(self, run: str) -> bool:
        """Whether all that the snapshot of a run needs is written down."""
        description = self._read(_DESCRIPTION)
        return description is not None and description["run"] == run

    def recover(self, run: str) -> None:
        """Make the snapshot, if that is what is left to do."""
        if self.progress(run) is Progress.READY:
            self.publish()

    def _describe(self, manifest: Mapping[str, Any], statistics: Mapping[str, FileStatistics]) -> dict[str, Any]:
        """Return what the snapshot will say, as plain JSON values."""
        then = self._read(_HELD)
        if then is None:
            what = f"the run that writes {self.place.shown} has lost its staging folder; nothing was written"
            raise OutputError(what, "run it again")
        parts = manifest["parts"]
        with self.place.fs.open_input_file(f"{self.data}/{parts[0]['name']}") as file:
            columns = parquet.read_schema(file).remove_metadata()  # with the field ids, which are those of its fields
        table = find_table(open_catalog(self.address.catalog), self.address)
        planned = planned_metadata(table, columns, self.address, self.location)
        _check_required(planned, statistics, self.place.shown)
        files = [(f"{self.uri}/{p['name']}", p["rows"], p["bytes"], statistics[p["name"]]) for p in parts]
        return {
            "run": manifest.get("run") or self.token,
            "held": then["held"],
            "columns": base64.b64encode(columns.serialize()).decode(),
            "files": EntryMaker(planned).entries(files, partition_record(self.address, planned)),
        }

    def _put(self, name: str, content: Mapping[str, Any]) -> None:
        put_file(self.place.fs, f"{self.staging}/{name}", json.dumps(seal(content)).encode())

    def _read(self, name: str) -> dict[str, Any] | None:
        return read_sealed(self.place, f"{self.staging}/{name}")


def _without_statistics(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != STATISTICS}


def _check_required(planned: TableMetadata, statistics: Mapping[str, FileStatistics], shown: str) -> None:
    """Raise `DataError` where a result has nulls in a column in which the table may have none."""
    required = {field.name for field in planned.schema().fields if field.required}
    for file in statistics.values():
        for column in file.columns:
            if column.path in required and column.nulls != 0:
                what = f"column {column.path!r} of the result has nulls, and {shown} says that it has none"
                raise DataError(f"{what}; nothing was written", "filter them out, or make the column optional")
