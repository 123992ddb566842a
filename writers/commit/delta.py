"""A Delta table, or a partition of one, as an output: what is there, how it is written, what killed runs left."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs, parquet

from ...windowing.errors import ConfigError
from ...windowing.support.file_systems import file_system_of
from ...windowing.support.redaction import redacted_path
from ...windowing.tables.address import TablePath, Values, is_date
from ...windowing.tables.delta import (
    PREFIX,
    canonical,
    canonical_in,
    fit_columns,
    path_of,
    schema_of,
    stored_schema,
    takes,
)
from ...windowing.tables.delta_library import LOG, import_library
from ...windowing.tables.delta_transaction import (
    DeltaLog,
    check_writable,
    find_table,
    held,
    live_files,
    only_rewritten,
    published,
    statistics_json,
)
from ...windowing.tables.statistics import FileStatistics
from ...windowing.tables.table_log import publish, put_fence
from ..places import atomic_files
from ..places.atomic_files import is_file, list_files
from ..places.conditional import ConditionalStore, keeps_conditions
from ..places.open import open_store
from ..places.place import is_local, locate
from .contract import Content, Progress, TableFiles, with_table_types
from .version_table import PARTITIONS, RunResult, VersionTable

if TYPE_CHECKING:
    from deltalake import DeltaTable as Library


# A result on its way into a Delta table, which one transaction publishes.


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
        _, root = file_system_of(self.at.root)
        for version in range(int(then["version"]) + 1, table.version() + 1):
            log = f"{root}/{LOG}/{version:020}.json"
            if not is_file(self.place.fs, log):  # one that is gone may have named the result
                return True
            with self.place.fs.open_input_stream(log) as file:
                if f"-{self.token}.".encode() in file.read():
                    return True
        return False

    def _now(self) -> dict[str, Any]:
        table = find_table(self.at.root)
        return {"held": held(table, self._values(table)), "version": -1 if table is None else table.version()}

    def _describe(self, manifest: Mapping[str, Any], statistics: Mapping[str, FileStatistics]) -> dict[str, Any]:
        from deltalake import Schema  # noqa: PLC0415 - loaded only where a table is written

        text = manifest.get(PARTITIONS)
        divided = pa.schema([]) if text is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
        with self.place.fs.open_input_file(f"{self.data}/{manifest['parts'][0]['name']}") as file:
            columns = parquet.read_schema(file).remove_metadata()
        table = find_table(self.at.root)
        of_new = pa.schema([(name, pa.date32() if is_date(value) else pa.string()) for name, value in self.at.values])
        known = of_new if table is None else schema_of(table)
        whole = pa.schema([*columns, *(known.field(name) for name, _ in self.at.values), *divided])
        return {
            "spec": manifest["spec"],
            "schema": str(Schema.from_arrow(whole).to_json()),
            "divided": divided.names,
            "files": [
                [part["name"], part["bytes"], statistics_json(part["rows"], statistics[part["name"]])]
                for part in manifest["parts"]
            ],
        }

    def _commit(self, description: Mapping[str, Any]) -> None:
        columns, table = _columns_in(description), find_table(self.at.root)
        if table is not None:
            fit_columns(columns, schema_of(table), evolve=True, shown=self.place.shown)
        publish(self._log(description, self._values(table)))
        _, root = file_system_of(self.at.root)
        if is_local(self.place.fs) and (log := Path(root, LOG)).is_dir():
            newest = max((file for file in log.iterdir() if file.suffix == ".json"), default=log)
            for path in (newest, log):
                atomic_files.sync(path)

    def _put_fence(self, description: Mapping[str, Any]) -> None:
        columns, table = _columns_in(description), find_table(self.at.root)
        schema = columns if table is None else schema_of(table)
        put_fence(self._log(description, canonical_in(self.at.values, schema, self.place.shown)))

    def _standing(self, then: str | None) -> Progress:
        table = find_table(self.at.root)
        if self._is_published(table):
            return Progress.PUBLISHED
        return Progress.READY if then is not None and held(table, self._values(table)) == then else Progress.GONE

    def _is_published(self, table: Library | None) -> bool:
        return table is not None and published(table, self._values(table)) == self.token

    def _values(self, table: Library | None) -> Values:
        return values_in(table, self.at, self.place.shown)

    def _log(self, description: Mapping[str, Any], values: Values) -> DeltaLog:
        columns = _columns_in(description)
        head = f"{self.at.below}/" if self.at.below else ""
        files = []
        for name, size, statistics in description["files"]:
            own = TablePath("", name.rpartition("/")[0]).values
            logged = [(column, _logged(value, columns.field(column).type)) for column, value in own]
            files.append((f"{head}{name}", size, (*values, *logged), statistics))
        properties = {"wincli.run": description["run"], "wincli.token": self.token, "wincli.spec": description["spec"]}
        return DeltaLog(
            self.at.root,
            self.place.shown,
            values,
            self.token,
            description["held"],
            columns,
            [*(name for name, _ in values), *description["divided"]],
            files,
            properties,
        )


def values_in(table: Library | None, at: TablePath, shown: str) -> Values:
    """Return the values of the partition as the table has them."""
    return at.values if table is None else canonical(at.values, table, shown)


def _columns_in(description: Mapping[str, Any]) -> pa.Schema:
    from deltalake import Schema  # noqa: PLC0415 - loaded only where a table is written

    return pa.schema(Schema.from_json(description["schema"]).to_arrow())


def _logged(value: str | None, kind: pa.DataType) -> str | None:
    """Return a value as the log has it: instants with a zone say that they are in UTC, which folders do not."""
    is_instant = value is not None and pa.types.is_timestamp(kind) and kind.tz is not None
    return f"{value}Z".replace(" ", "T") if is_instant else value


@dataclass(frozen=True, slots=True)
class DeltaTable(VersionTable):
    """A `Table` whose files are those of its log.

    ``path``: the table and the partition.
    ``is_named``: whether the user has asked for a table, or only a path that leads to one.
    ``by``: the columns of ``--partition-by``, which divide the result further.
    """

    TOKEN: ClassVar[re.Pattern[str]] = re.compile(r"-([0-9a-f]{12})\.parquet$")

    path: TablePath
    is_named: bool = True
    by: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return PREFIX + redacted_path("/".join(filter(None, (self.path.root, self.path.below))))

    @staticmethod
    def takes(path: str) -> bool:
        return takes(path)

    @classmethod
    def at(cls, path: str, shown: str | None = None) -> DeltaTable:
        import_library()
        given, is_named = path_of(path), path.startswith(PREFIX)
        name = given.root.rpartition("/")[2]
        if not given.root or name.find("=") > 0 or (given.below and given.root in (".", "/")):
            raise ConfigError(f"output {path} names a partition and no table", "name the folder of the table before it")
        place = locate("/".join(filter(None, (given.root, given.below))), shown and shown.removeprefix(PREFIX))
        if not is_local(place.fs):
            return cls(place, given, is_named)
        root = place.path.removesuffix(f"/{given.below}") if given.below else place.path
        return cls(place, TablePath(root, given.below), is_named)

    def divided(self, by: Sequence[str]) -> DeltaTable:
        """Return the table with a result that columns divide further."""
        return replace(self, by=tuple(by))

    def files(self, result: pa.Schema, evolve: bool) -> TableFiles:
        table, shown = self._table(), self.place.shown
        if not self.is_named:
            raise ConfigError(f"{self._shown_root} is a Delta table", "say --output-format delta")
        names = [name for name, _ in self.path.values]
        if table is not None:
            result = with_table_types(result, schema_of(table))
        stored = stored_schema(pa.schema([field for field in result if field.name not in names]), shown)
        if table is None:
            return TableFiles(stored, {})
        there = schema_of(table)
        self._check_partitions(table, is_whole=True)
        fixed = pa.schema([there.field(name) for name in names if name in there.names])
        fitted = fit_columns(pa.schema([*stored, *fixed]), there, evolve, shown)
        return TableFiles(pa.schema([fitted.field(name) for name in stored.names]), {})

    def content(self) -> Content:
        """Return what is there; rows that another program has put there are no result."""
        if self.place.fs.get_file_info(self.place.path).type == fs.FileType.File:
            return Content.NO_FOLDER
        table = self._table()
        if table is None:
            names = [path.rpartition("/")[2] for path in list_files(self.place.fs, self.place.path)]
            is_used = any(not name.startswith(".") and not re.search(r"-[0-9a-f]{12}\.", name) for name in names)
            return Content.OTHER if is_used else Content.VACANT
        check_writable(table, self.place.shown)
        self._check_partitions(table)
        live = self._live(table)
        if not live:
            return Content.VACANT
        if self._manifest(table, live) is not None:
            return Content.RESULT
        root = self.place.path.removesuffix(f"/{self.path.below}") if self.path.below else self.place.path
        paths = set[str]()
        for name in (str(file["path"]) for file in live):
            found, folder = self.TOKEN.search(name), unquote(name).rpartition("/")[0]
            if found is None:
                return Content.OTHER
            paths.add(f"{'/'.join(filter(None, (root, folder)))}/_wincli/manifest-{found[1]}.json")
        infos = self.place.fs.get_file_info([*paths])
        return Content.RESULT if all(info.type == fs.FileType.File for info in infos) else Content.OTHER

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of the result that was published last; None where others have changed what is there."""
        table = self._table()
        return None if table is None else self._manifest(table, self._live(table))

    def columns(self) -> list[str]:
        table = self._table()
        return [] if table is None else schema_of(table).names

    def _names(self) -> set[str]:
        table = self._table()
        head = f"{self.path.below}/" if self.path.below else ""
        return {unquote(str(file["path"])).removeprefix(head) for file in self._live(table)} if table else set()

    def keeps_conditions(self) -> bool:
        """Whether a log takes each version once: a store must refuse a put whose condition does not hold."""
        return is_local(self.place.fs) or keeps_conditions(self._store(), self.place)

    def commit(self, token: str) -> DeltaResult:
        return DeltaResult(self.place, token, self.path, own=self.own)

    def _table(self) -> Library | None:
        return find_table(self.path.root)

    @property
    def _shown_root(self) -> str:
        below = self.path.below
        return self.place.shown.rstrip("/").removesuffix(f"/{below}") if below else self.place.shown

    def _store(self) -> ConditionalStore:
        return open_store("/".join(filter(None, (self.path.root, self.path.below))).rpartition("/")[0])

    def _live(self, table: Library) -> list[dict[str, Any]]:
        return live_files(table, values_in(table, self.path, self.place.shown))

    def _check_partitions(self, table: Library, is_whole: bool = False) -> None:
        """Raise `ConfigError` where the result names other partition columns than the table has.

        ``is_whole``: whether all that divides the result is known, and not only its path.
        """
        names = [*(name for name, _ in self.path.values), *self.by]
        there = table.metadata().partition_columns
        if sorted(there) != sorted(names) if is_whole else not {*names} <= {*there}:
            words = " and ".join(there) or "nothing"
            what = f"the table {self._shown_root} is partitioned by {words}, and this result by "
            what += " and ".join(names) or "nothing"
            example = "/".join([self._shown_root, *(f"{name}=VALUE" for name in there)])
            named = f"name them as in {example}, or in --partition-by"
            raise ConfigError(what, named if there else "write the whole table, or choose another output")

    def _manifest(self, table: Library, live: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        values = values_in(table, self.path, self.place.shown)
        return self._manifest_of(
            {str(file["path"]): file["num_records"] or 0 for file in live},
            lambda: published(table, values),
            lambda: only_rewritten(self.path.root, table, values),
        )

    def _delete(self, paths: Sequence[str]) -> None:
        if is_local(self.place.fs):
            for path in paths:
                self.place.fs.delete_file(path)
        elif paths:  # pyarrow would leave an empty object for each folder above
            self._store().delete([path.removeprefix(f"{self.place.parent}/") for path in paths])

    def _remove_staging(self, folder: str) -> None:
        self._delete(list_files(self.place.fs, folder))

    def _is_kept(self, token: str) -> bool:
        return self.commit(token).was_published()

    def _remove_empty(self) -> None:
        if is_local(self.place.fs):
            for folder, _, _ in os.walk(self.place.path, topdown=False):
                with suppress(OSError):  # it has files
                    Path(folder).rmdir()
