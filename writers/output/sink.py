"""The sink with which tasks write part files into the staging folder of an output, from any process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs

from ...windowing.columns.row_hashes import RowHasher
from ...windowing.errors import ConfigError
from ...windowing.ports import Part, ResultPart
from ...windowing.support.formats import INTERMEDIATE, Format
from ..folders import atomic_swap
from ..folders.files import map_file, open_file
from ..folders.os_errors import output_errors
from ..folders.place import REJECTED, is_local
from ..formats import parquet, rejects
from ..formats.encoder import Encode, Write, encoder_of
from .digests import CountingTables, FolderDigests, part_hasher
from .partition_files import write_folders
from .partition_folders import folders_of
from .partitioning import Partitioning

REJECTED_BEFORE = "_rejected_before"
SCRATCH = "_pieces"
TABLES = "_tables"
PART = "part-"
_LONGEST_TYPE = 60


@dataclass(frozen=True, slots=True)
class FileSink:
    """A `windowing.ports.Sink` that writes files below a staging folder.

    Its methods raise `OutputError` naming a file that cannot be written, `DataError` for a value that has no form in
    the format.

    ``fs``: the file system of the output.
    ``staging``: the path of the staging folder in it.
    ``shown``: the output as the user wrote it, for messages.
    ``format``: the format of the parts.
    ``schema``: the columns of the rows.
    ``reject_schema``: the columns of the rejects.
    ``parts_in``: the folder below ``staging`` for parts that the run itself reads and then deletes; empty for parts of
        the result, which are in ``staging`` itself.
    ``rejects_in``: the folder below ``staging`` for the rejects, which always stay.
    ``partitioning``: how the rows are divided into folders; None: each part is one file with all columns.
    ``scratch_in``: the folder below ``staging`` for rows that tasks store for other tasks.
    """

    fs: fs.FileSystem
    staging: str
    shown: str
    format: Format
    schema: pa.Schema
    reject_schema: pa.Schema
    parts_in: str = ""
    rejects_in: str = REJECTED
    partitioning: Partitioning | None = None
    scratch_in: str = SCRATCH

    @property
    def result(self) -> pa.Schema:
        """The columns of the result as readers find them, those of its folders among them."""
        return self.schema if self.partitioning is None else self.partitioning.result

    def for_next_stage(self, stage: str) -> FileSink:
        """Return the sink of a stage whose parts only the next stage reads: Parquet, in a folder of their own."""
        return replace(self, format=INTERMEDIATE, parts_in=f"_between-{stage}")

    def without_output(self, stage: str) -> FileSink:
        """Return the sink of a stage without an output of its own, whose rejects go to the output of a later stage.

        The rejects go to ``_rejected_before/stage=NAME``, because stages reject rows of different columns: below
        ``_rejected`` the column ``row`` would have the fields of all stages. In separate folders each stage is a table,
        and DuckDB reads all of them as one (``hive_partitioning`` and ``union_by_name``).
        """
        return replace(self.for_next_stage(stage), rejects_in=f"{REJECTED_BEFORE}/stage={stage}")

    def write_parts(self, index: int, tables: Iterable[pa.Table]) -> tuple[Part, ...]:
        """Write part ``index`` table by table: a file, or one in each folder of its rows, in the order of the folders.

        Without any row there is still one file, which gives the result its columns.
        """
        partitioning = self.partitioning
        if partitioning is None:
            return (self.write_part(index, tables),)
        name = self._file_name(index)
        digests = FolderDigests(part_hasher(self.format, partitioning.result))

        def folders(table: pa.Table) -> tuple[npt.NDArray[np.int64], list[str]]:
            values = partitioning.values(table)
            codes, names = partitioning.folders(values)
            digests.add(partitioning.read_back(table, values), codes, names)
            return codes, names

        with output_errors(self.shown):
            rows = write_folders(
                (table.select(self.schema.names) for table in tables),
                folders,
                partitioning.files,
                lambda folder: self._open_in_folder(folder, name, partitioning.files),
                self._open_spill,
                partitioning.most_open,
            )
            if not rows:
                rows = self._write_nothing(partitioning, name)
            self._sync_folders(rows)
            return tuple(self._part_in_folder(each, name, rows[each], digests.of(each)) for each in sorted(rows))

    def for_tables(self) -> FileSink:
        """Return a sink for the scratch rows of enrich tables, which stay while windows drop theirs."""
        return replace(self, scratch_in=TABLES)

    def write_part(self, index: int, tables: Iterable[pa.Table]) -> Part:
        """Write ``part-<index>`` table by table; without any table the part has no rows."""
        chosen = (table.select(self.schema.names) for table in tables)
        name = self._file_name(index)
        if not self.parts_in:
            hasher = part_hasher(self.format, self.schema)
            return self._write(name, encoder_of(self.format).encode, chosen, self.schema, hasher=hasher)
        self._make_folder(self.parts_in)
        return self._write(f"{self.parts_in}/{name}", parquet.encode_intermediate, chosen, self.schema, is_kept=False)

    def discard(self) -> None:
        """Delete all parts, also those of attempts that no task has reported."""
        folder = fs.FileSelector(f"{self.staging}/{self.parts_in}", allow_not_found=True)
        with output_errors(self.shown):
            for found in self.fs.get_file_info(folder):
                if found.type == fs.FileType.Directory and self.partitioning and not found.base_name.startswith("_"):
                    self.fs.delete_dir(found.path)
                elif found.base_name.startswith(PART):
                    self.fs.delete_file(found.path)

    def write_rejects(self, index: int, rows: pa.Table) -> Part:
        """Write the rejected rows of task ``index`` as JSON Lines; columns that ``rows`` lacks are null."""
        columns = [
            rows[field.name] if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
            for field in self.reject_schema
        ]
        table = pa.table(columns, names=self.reject_schema.names)
        self._make_folder(self.rejects_in)
        name = f"{self.rejects_in}/{rejects.file_name(index)}"
        return self._write(name, rejects.encode, [table], self.reject_schema)

    def delete_intermediate(self) -> None:
        """Delete the parts, if only the next stage reads them."""
        if self.parts_in:
            with output_errors(self.shown):
                self.fs.delete_dir(f"{self.staging}/{self.parts_in}")

    def write_scratch(self, name: str, rows: pa.RecordBatch) -> None:
        """Write rows for other tasks of the run, as an Arrow file that can be mapped into memory."""
        self._make_folder(self.scratch_in)
        self._write(
            f"{self.scratch_in}/{name}.arrow",
            _encode_arrow,
            [pa.Table.from_batches([rows])],
            rows.schema,
            is_kept=False,
        )

    def read_scratch(self, name: str) -> pa.RecordBatch:
        """Return the rows that `write_scratch` has written under a name."""
        path = f"{self.staging}/{self.scratch_in}/{name}.arrow"
        with output_errors(f"{self.shown}/{self.scratch_in}/{name}.arrow"):
            return pa.ipc.open_file(map_file(self.fs, path)).get_batch(0)

    def drop_scratch(self) -> None:
        """Delete everything that `write_scratch` has written."""
        with output_errors(self.shown):
            if self.fs.get_file_info(f"{self.staging}/{self.scratch_in}").type != fs.FileType.NotFound:
                self.fs.delete_dir(f"{self.staging}/{self.scratch_in}")

    def _file_name(self, index: int) -> str:
        return f"{PART}{index:05d}.{self.format}"

    @contextmanager
    def _open_in_folder(self, folder: str, name: str, schema: pa.Schema) -> Iterator[Write]:
        """Open the file of a folder, and make the folder."""
        self._make_folder(folder)
        path = f"{self.staging}/{folder}/{name}"
        with open_file(self.fs, path) as file, encoder_of(self.format).open(schema, file) as write:
            yield write

    def _write_nothing(self, partitioning: Partitioning, name: str) -> dict[str, int]:
        """Write a file without rows to the folder of nulls; return its folder, with its rows."""
        columns = partitioning.columns
        _, (folder,) = folders_of(columns.names, [pa.chunked_array([pa.nulls(1, kind)]) for kind in columns.types])
        with self._open_in_folder(folder, name, partitioning.files):
            return {folder: 0}

    def _open_spill(self) -> IO[bytes]:
        """Open a temporary file without a name, on the disk that the rows will need anyway."""
        return tempfile.TemporaryFile(dir=self.staging if is_local(self.fs) else None)

    def _sync_folders(self, folders: Iterable[str]) -> None:
        """Write the entries of folders to disk, and those of the folders above them but staging itself."""
        if is_local(self.fs):
            above = {folder.rsplit("/", up)[0] for folder in folders for up in range(folder.count("/") + 1)}
            for folder in sorted(above):
                atomic_swap.sync(Path(self.staging, folder))

    def _part_in_folder(self, folder: str, name: str, rows: int, digest: str | None) -> Part:
        below = f"{folder}/{name}"
        return ResultPart(below, rows, self.fs.get_file_info(f"{self.staging}/{below}").size, digest=digest)

    def _make_folder(self, name: str) -> None:
        """Make a folder below staging, but never staging itself: if that is gone, the run has been cancelled."""
        names = name.split("/")
        with output_errors(f"{self.shown}/{name}"):
            for depth in range(len(names)):
                self.fs.create_dir("/".join([self.staging, *names[: depth + 1]]), recursive=False)

    def _write(
        self,
        name: str,
        encode: Encode,
        tables: Iterable[pa.Table],
        schema: pa.Schema,
        is_kept: bool = True,
        hasher: RowHasher | None = None,
    ) -> Part:
        path = f"{self.staging}/{name}"
        counted = CountingTables(tables, hasher)
        with output_errors(f"{self.shown}/{name}"):
            with open_file(self.fs, path, is_kept) as file:
                encode(counted, schema, file)
            size = self.fs.get_file_info(path).size
        return ResultPart(name, counted.rows, size, digest=counted.digest) if hasher else Part(name, counted.rows, size)


def _encode_arrow(tables: Iterable[pa.Table], schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> None:
    """Write tables as an Arrow file of exactly one batch, also where there is no row."""
    (batch,) = pa.concat_tables(tables).combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    with pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch)


def check_types(format: Format, schema: pa.Schema) -> None:
    """Raise `ConfigError` where two columns have one name or the format cannot hold the type of a column."""
    encoder, names = encoder_of(format), schema.names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"the output has two columns named {twice!r}", "give one of them another name")
    for field in schema:
        row = pa.table({field.name: pa.nulls(1, field.type)})  # Arrow refuses some types only when it writes a row
        written = pa.BufferOutputStream()
        try:
            encoder.encode([row], row.schema, written)
            if pa.types.is_nested(field.type):
                encoder.check(written.getvalue())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
            kind = str(field.type)
            kind = kind if len(kind) <= _LONGEST_TYPE else f"{kind[:_LONGEST_TYPE]}.."
            what = f"{format} cannot hold column {field.name!r} of type {kind}"
            raise ConfigError(what, "leave it out, or choose another --output-format") from error
