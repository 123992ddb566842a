"""The sink with which tasks write part files into the staging folder of an output, from any process."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs
from pyarrow import parquet as pq

from ...windowing.columns.row_digest import RowDigest
from ...windowing.columns.row_hashes import RowHasher, hasher_of
from ...windowing.errors import NO_TYPE_YET, ConfigError, DataError
from ...windowing.planning.result_schema import MARK
from ...windowing.ports import Part, ResultPart
from ...windowing.support.checksum import Checked
from ...windowing.support.formats import INTERMEDIATE, Format
from ...windowing.tables.statistics import FileStatistics
from ..commit.contract import TableFiles
from ..formats import parquet, text
from ..formats.encoder import Write, encoder_of, plain
from ..places import atomic_files
from ..places.atomic_files import Writable, list_files, map_file, open_file
from ..places.os_errors import output_errors
from ..places.place import REJECTED, is_local, new_token
from .partitioning import Partitioning, folders_of, write_folders

# The digests of the rows of part files, computed as the rows pass on to the encoder.


def part_hasher(format: Format, schema: pa.Schema) -> RowHasher | None:
    """Return what hashes the rows of a result as its readers find them; None where a type has no hash.

    JSON Lines have null for NaN and the infinities.
    """
    return hasher_of(plain(schema), finite=format == "jsonl")


# Rows as files take them: types that a format can hold, and those of a table.


_LONGEST_TYPE = 60


def with_types(rows: pa.Table, schema: pa.Schema, shown: str) -> pa.Table:
    """Return rows with the types of a table. Raises `DataError` for a value that a type does not hold."""
    for at, wanted in enumerate(schema):
        column = rows.column(at)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if kind == wanted.type:
            continue
        try:
            rows = rows.set_column(at, wanted.name, column.cast(wanted.type))
        except pa.ArrowInvalid as error:
            why = str(error).strip().splitlines()[0]
            what = f"a value of {wanted.name!r} is no {wanted.type}, which {shown} has for that column: {why}"
            raise DataError(what, "round it, or cast it") from error
    return rows


def check_types(format: Format, schema: pa.Schema) -> None:
    """Raise `ConfigError` where two columns have one name or the format cannot hold the type of a column."""
    names = schema.names
    if twice := next((name for name, count in Counter(names).items() if count > 1), None):
        raise ConfigError(f"the output has two columns named {twice!r}", "give one of them another name")
    for column in schema:  # a name may be what a format refuses
        if (refused := _refused(format, column.type, None if column.name.isidentifier() else column.name)) is not None:
            shown = str(column.type)
            shown = shown if len(shown) <= _LONGEST_TYPE else f"{shown[:_LONGEST_TYPE]}.."
            do = NO_TYPE_YET if pa.types.is_null(column.type) else "leave it out"
            what = f"{format} cannot hold column {column.name!r} of type {shown}"
            raise ConfigError(what, f"{do}, or choose another --output-format") from refused


@cache  # units of a range have the same columns
def _refused(format: Format, kind: pa.DataType, name: str | None) -> Exception | None:
    """Return the error of a format that cannot hold a type, or a type under this name; None: it can."""
    encoder = encoder_of(format)
    row = pa.table(
        {"x" if name is None else name: pa.nulls(1, kind)}
    )  # Arrow refuses some types only when it writes a row
    written = pa.BufferOutputStream()
    try:
        encoder.encode([row], row.schema, written)
        if encoder.check is not None and pa.types.is_nested(kind):
            encoder.check(written.getvalue())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        return error
    return None


REJECTED_BEFORE = "_rejected_before"
SCRATCH = "_pieces"
TABLES = "_tables"
PART = "part-"


@dataclass(frozen=True, slots=True)
class FileSink:
    """A `windowing.ports.Sink` that writes files below a staging folder.

    Its methods raise `OutputError` naming a file that cannot be written, `DataError` for a value that has no form in
    the format.

    ``shown``: the output as the user wrote it, for messages.
    ``parts_in``: the folder below ``staging`` for parts that the run itself reads and then deletes; empty for parts of
        the result, which are in ``staging`` itself.
    ``rejects_in``: the folder below ``staging`` for the rejects, which always stay.
    ``partitioning``: how the rows are divided into folders; None: each part is one file with all columns.
    ``scratch_in``: the folder below ``staging`` for rows that tasks store for other tasks.
    ``data``: the folder in which parts of the result and rejects are written; empty: ``staging``.
    ``suffix``: what their names carry, so that no other run writes a file of that name.
    ``table``: how parts of the result are written for a table by version; None for a folder.
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
    data: str = ""
    suffix: str = ""
    table: TableFiles | None = None

    @property
    def root(self) -> str:
        return self.data or self.staging

    @property
    def result(self) -> pa.Schema:
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
        hasher, ends = part_hasher(self.format, partitioning.result), dict[str, ResultPart]()
        digests = dict[str, RowDigest]()  # of the rows of each folder so far

        def folders(table: pa.Table) -> tuple[npt.NDArray[np.int64], list[str]]:
            values = partitioning.values(table)
            codes, names = folders_of(partitioning.columns.names, values)
            if hasher is not None:
                found = hasher.digests(partitioning.read_back(table, values), codes, len(names))
                for folder, own in zip(names, found, strict=True):
                    digests[folder] = digests.get(folder, RowDigest()) + own
            return codes, names

        def open_in(folder: str) -> AbstractContextManager[Write]:
            self._make_folder(folder, self.root)
            return self._open(f"{folder}/{name}", partitioning.files, ends)

        with output_errors(self.shown):
            rows = write_folders(
                self._chosen(tables),
                folders,
                partitioning.files,
                open_in,
                self._open_spill,
                partitioning.most_open,
            )
            if not rows:  # a file without rows, in the folder of nulls
                nulls = [pa.chunked_array([pa.nulls(1, kind)]) for kind in partitioning.columns.types]
                _, (folder,) = folders_of(partitioning.columns.names, nulls)
                with open_in(folder):
                    rows = {folder: 0}
            if is_local(self.fs):
                above = {folder.rsplit("/", up)[0] for folder in rows for up in range(folder.count("/") + 1)}
                for folder in sorted(above):
                    atomic_files.sync(Path(self.root, folder))
            told = {name: None if hasher is None else str(digests.get(name, RowDigest())) for name in rows}
            found = sorted((end.rpartition("/")[0], ends[end]) for end in ends)
            return tuple(replace(end, rows=rows[folder], digest=told[folder]) for folder, end in found)

    def for_tables(self) -> FileSink:
        """Return a sink for the scratch rows of enrich tables, which stay while windows drop theirs."""
        return replace(self, scratch_in=TABLES)

    def write_part(self, index: int, tables: Iterable[pa.Table]) -> Part:
        """Write ``part-<index>`` table by table; without any table the part has no rows."""
        chosen = self._chosen(tables)
        name = self._file_name(index)
        count = 0
        if self.parts_in:
            name = f"{self.parts_in}/{name}"
            with self._open_scratch(name) as file:
                with parquet.begin_intermediate(self.schema, file) as write:
                    for rows in chosen:
                        count += rows.num_rows
                        write(rows)
                return Part(name, count, file.tell())
        columns = self.schema if self.table is None else self.table.columns
        hasher, digest, ends = part_hasher(self.format, self.schema), RowDigest(), dict[str, ResultPart]()
        with output_errors(f"{self.shown}/{name}"), self._open(name, columns, ends) as write:
            for rows in chosen:
                count += rows.num_rows
                if hasher is not None:
                    digest += hasher.digest(rows)
                whole = rows
                for constant, value in ({} if self.table is None else self.table.constants).items():
                    whole = whole.append_column(constant, pa.repeat(value, rows.num_rows))
                write(whole.select(columns.names))
        return replace(ends[name], rows=count, digest=None if hasher is None else str(digest))

    def _chosen(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            rows = table.select(self.schema.names)
            yield rows if self.table is None or self.parts_in else with_types(rows, self.schema, self.shown)

    def discard(self) -> None:
        """Delete all parts, also those of attempts that no task has reported; in a store, the commit does."""
        if not is_local(self.fs):  # Arrow would ask for each file, and leave an object for each folder
            return
        with output_errors(self.shown):
            if self.suffix and not self.parts_in:
                for path in list_files(self.fs, self.root):
                    name = path.rpartition("/")[2]
                    if name.startswith(PART) and name.endswith(f"{self.suffix}.{self.format}"):
                        self.fs.delete_file(path)
                return
            folder = fs.FileSelector(f"{self.staging}/{self.parts_in}", allow_not_found=True)
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
        name = f"{self.rejects_in}/{text.file_name(index, self._attempt_suffix())}"
        self._make_folder(self.rejects_in, self.root)
        with output_errors(f"{self.shown}/{name}"), open_file(self.fs, f"{self.root}/{name}") as file:
            checked = Checked(file)
            text.encode([table], self.reject_schema, checked)
            return Part(name, table.num_rows, checked.nbytes, checked.checksum)

    def delete_intermediate(self) -> None:
        """Delete the parts, if only the next stage reads them; in a store, the commit does."""
        if self.parts_in and is_local(self.fs):
            with output_errors(self.shown):
                self.fs.delete_dir(f"{self.staging}/{self.parts_in}")

    def write_scratch(self, name: str, rows: pa.RecordBatch) -> None:
        with self._open_scratch(f"{self.scratch_in}/{name}.arrow") as file:
            # In a store in one piece: an attempt that is ended leaves the file of another whole.
            content: Any = file if is_local(self.fs) else pa.BufferOutputStream()
            with pa.ipc.new_file(content, rows.schema) as writer:
                writer.write_batch(rows)
            if content is not file:
                file.write(content.getvalue())

    def read_scratch(self, name: str) -> pa.RecordBatch:
        path = f"{self.staging}/{self.scratch_in}/{name}.arrow"
        with output_errors(f"{self.shown}/{self.scratch_in}/{name}.arrow"):
            return pa.ipc.open_file(map_file(self.fs, path)).get_batch(0)

    def drop_scratch(self) -> None:
        """Delete everything that `write_scratch` has written; in a store, the commit does."""
        if not is_local(self.fs):
            return
        with output_errors(self.shown):
            if self.fs.get_file_info(f"{self.staging}/{self.scratch_in}").type != fs.FileType.NotFound:
                self.fs.delete_dir(f"{self.staging}/{self.scratch_in}")

    def _file_name(self, index: int) -> str:
        return f"{PART}{index:05d}{self._attempt_suffix()}.{self.format}"

    def _attempt_suffix(self) -> str:
        """Return what the name of a file of the result carries: on a store, also an id of this attempt at a task.

        A store has no rename, and an upload that an error ends is complete all the same, but truncated. So of two
        attempts at a task, as Spark speculates, one could replace the file that the other has reported.
        """
        return f"-{new_token()}{self.suffix}" if self.suffix and not is_local(self.fs) else self.suffix

    @contextmanager
    def _open(self, name: str, schema: pa.Schema, ends: dict[str, ResultPart]) -> Iterator[Write]:
        """Open a file of the result; note in ``ends`` what is known of it at its end, but for rows and digest."""
        found = list[FileStatistics]()
        with open_file(self.fs, f"{self.root}/{name}") as file:
            checked = Checked(file)
            opened = encoder_of(self.format).open(schema, checked)
            with opened if self.table is None else parquet.begin_for_table(schema, checked, found) as write:
                yield write
            end = checked.nbytes, checked.checksum, None, next(iter(found), None), checked.tail
            ends[name] = ResultPart(name, 0, *end)  # of what was written: nothing is read again

    def _open_spill(self) -> IO[bytes]:
        return tempfile.TemporaryFile(dir=self.staging if is_local(self.fs) else None)

    def _make_folder(self, name: str, root: str) -> None:
        """Make a folder below a root, but never the root itself: if that is gone, the run has been cancelled."""
        if not is_local(self.fs):
            return
        names = name.split("/")
        with output_errors(f"{self.shown}/{name}"):
            for depth in range(len(names)):
                self.fs.create_dir("/".join([root, *names[: depth + 1]]), recursive=False)

    @contextmanager
    def _open_scratch(self, name: str) -> Iterator[Writable]:
        """Open a file that the run itself reads and then deletes."""
        self._make_folder(name.rpartition("/")[0], self.staging)
        with output_errors(f"{self.shown}/{name}"), open_file(self.fs, f"{self.staging}/{name}", is_kept=False) as file:
            yield file


# Write a result to one stream: its part files one after the other, in the order of their names.


def write_whole(folder: Path, format: Format, file: IO[bytes]) -> None:
    """Write the parts of a result to ``file`` as one file: with one header, or one footer. Raises `OSError`."""
    parts = sorted(folder.glob(f"{PART}*"), key=lambda part: (len(part.name), part.name))
    encoder_of(format).join(parts, file)
    file.flush()


# Copy parts that a stage wrote for the next stage into an output of its own, in the format of that output.


_ROWS = 1 << 16  # rows that a task holds at a time: a part may not fit in memory


def copy_part(sink: FileSink, part: Part) -> tuple[Part, ...]:
    """Write a Parquet part of the staging folder again with ``sink``; write no file where there is no row to write.

    The copy leaves out what a plain result does not have: columns that the sink lacks, and mark-only rows.
    """
    filled = (table for table in _tables(sink, part) if table.num_rows)
    first = next(filled, None)
    index = int(re.findall(r"\d+", part.name.rpartition("/")[2])[0])
    return () if first is None else sink.write_parts(index, chain([first], filled))


def _tables(sink: FileSink, part: Part) -> Iterator[pa.Table]:
    only = [] if MARK in sink.schema.names else [MARK]
    with output_errors(f"{sink.shown}/{part.name}"), sink.fs.open_input_file(f"{sink.staging}/{part.name}") as file:
        for batch in pq.ParquetFile(file).iter_batches(_ROWS, columns=[*sink.schema.names, *only]):
            table = pa.Table.from_batches([batch])
            yield table.filter(pc.fill_null(pc.not_equal(table[MARK], "only"), True)) if only else table
