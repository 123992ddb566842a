"""The entry point of `readers`: turn paths and options into a `Source` with files, a schema and splits."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..windowing.errors import ConfigError, DamagedError, InputError, did_you_mean
from ..windowing.local_executor import LocalExecutor
from ..windowing.ports import Executor, InputFile, Part, StreamInfo
from ..windowing.support.formats import FORMATS, INTERMEDIATE, SUFFIXES, TABLE_FORMATS, Format, file_format, load
from ..windowing.support.value_table import SharedValues, ValueTable, value_table
from ..windowing.tables.address import TableVersion
from .files.file import COMPRESSIONS, Located
from .files.listing import list_files
from .files.result_folders import STREAM_COLUMN, Files, order_files
from .files.walk import ListedFile, folder_values
from .formats.split_rows import FormatReader, PlanInput, SplitPlan
from .options import ReadOptions
from .source import FileKind, FileSource
from .values.casts import convert
from .values.types import ColumnType, Named, column_type, unify

# Partition columns from folder names: each row below ``dt=2026-11-01/kind=a%20b/`` has columns ``dt`` and ``kind``.


def _folder_column(
    name: str, files: Sequence[tuple[str, Mapping[str, str | None]]], given: ColumnType | None
) -> pa.Array:
    """Return one value for each file; null where a file has no such folder.

    ``files``: pairs of a file's path and the values of its folders. ``given``: the type, which wins over inference. An
    inferred column is int64 if all values are whole numbers, date32 if all are ISO dates, else string.
    Raises `InputError` naming the file whose value is not of the given type.
    """
    texts = pa.array([values.get(name) for _, values in files], pa.string())
    kind = given or ColumnType(pa.string())
    known = texts.drop_null()
    if given is None and len(known) and pc.all(pc.match_substring_regex(known, r"^-?\d{1,18}$")).as_py():
        kind = ColumnType(pa.int64())
    elif given is None and len(known):
        with suppress(pa.ArrowInvalid):
            pc.cast(known, pa.date32())
            kind = ColumnType(pa.date32())
    written = texts
    if pa.types.is_timestamp(kind.type) and kind.type.tz is not None and kind.format is None:
        # Instants with a zone: Hive and Spark write none in names of folders, and wincli writes UTC.
        lacks_zone = pc.match_substring_regex(texts, r"\d\d:\d\d:\d\d(\.\d+)?$")
        written = pc.if_else(lacks_zone, pc.binary_join_element_wise(texts, "Z", ""), texts)
    column, bad = convert(pa.chunked_array([written]), kind)
    if bad is not None:
        at = int(np.flatnonzero(bad)[0])
        words = given.words if given else "of one type"
        raise InputError(
            f"{files[at][0]}: folder {name}={texts[at].as_py()} is not {words}", f"check {name} in --schema"
        )
    return column.combine_chunks()


_SCANNED_HERE = 4 << 20  # bytes: this process scans so little text faster than a task starts


class NoColumnError(InputError):
    """An input without a column: its files have no bytes, or lines that say nothing."""


def open_source(
    paths: Sequence[str],
    options: ReadOptions,
    executor: Executor,
    known: Sequence[Named] = (),
    named: Collection[str] = (),
) -> FileSource:
    """List the files of an input, find the types of its columns and divide it into splits.

    ``executor`` scans large text inputs once, to count rows and to infer types. Parquet and small inputs do not use it.
    ``known``: columns that earlier runs had, each schema with what messages call it: their types are joined as if they
    were those of a file before all others, and a column that no file has is null. ``named``: the columns that the job
    names; of these, and of an input without any column, the options may declare some that no file has: they are null.
    Raises `InputError` where an input is missing, cannot be read or has files that do not fit together, among these
    `NoColumnError`, and `ConfigError` where the options do not fit the input.
    """
    delimiter = options.delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ConfigError(f"{delimiter!r} cannot be a delimiter", "use one ASCII character, such as , or ;")
    if options.split_bytes < 1:
        raise ConfigError("a split has at least one byte", "leave split_bytes at its default")
    listing = list_files(paths, options.bases, skip_unreadable=options.skip_unreadable, version=options.version)
    files = order_files(listing, options.file_order)
    if not files.files:
        raise InputError(f"{paths[0]} is a result without part files", "write the result again")
    if options.stdin is not None:  # messages and results call the file that holds what came on stdin ``stdin``
        own = (replace(file, place=replace(file.place, shown="stdin"), below="stdin") for file in files.files)
        files = replace(files, files=value_table(ListedFile, own))
    _check_tables(paths, listing.tables, options)
    of_tables = {file.path for table in listing.tables for file in table.files}
    is_of_tables = bool(listing.tables) and all(file.place.path in of_tables for file in files.files)
    form = INTERMEDIATE if is_of_tables else _format(files.files, options)
    # From manifests come the types that files do not have themselves: in a format without types, or of folders.
    taken: Collection[str] = files.types
    if FORMATS[form].keeps_types:
        taken = {name for below in files.files.texts("below") for name in folder_values(below)}
    given = {name: ColumnType(kind) for name, kind in files.types.items() if name in taken}
    # Those on which all tables with a column agree; others become one as those of files do.
    every: dict[str, set[pa.DataType]] = {}
    for field in (field for table in listing.tables for field in table.schema):
        every.setdefault(field.name, set()).add(field.type)
    given |= {name: ColumnType(kinds.pop()) for name, kinds in every.items() if len(kinds) == 1}
    given |= {name: column_type(text) for name, text in options.schema}
    is_small = files.files.numbers("size").sum() <= _SCANNED_HERE
    reader, plan = _plan_input(form)(files.files, options, given, LocalExecutor() if is_small else executor)
    files = files.first(len(plan.schemas))
    if not FORMATS[form].is_text:
        _check_counts(files.files, plan.schemas, given)
    _check_rows(files, plan)
    layouts = [(table.shown, table.in_files) for table in listing.tables]
    source = _source(files, reader, plan, given, options, layouts, known, named)
    return replace(source, skipped=listing.skipped)


def open_result(folder: Located, parts: Sequence[Part], stream: StreamInfo, split_bytes: int) -> FileSource:
    """Open the parts that a stage has just written, as the input stream of the next stage.

    ``folder``: the folder of the parts, and its name in messages and rejects.
    Raises `InputError` as `open_source` does.
    """
    names = [(part, PurePosixPath(part.name).name) for part in parts]
    listed = (
        ListedFile(Located(folder.fs, f"{folder.path}/{name}", f"{folder.shown}/{name}"), part.nbytes, None, name)
        for part, name in names
    )
    found = value_table(ListedFile, listed)
    rows = {f"{folder.path}/{name}": part.rows for part, name in names}
    files = Files(found, None, {}, stream, rows)
    options = ReadOptions(split_bytes=split_bytes)
    reader, plan = _plan_input(INTERMEDIATE)(found, options, {}, LocalExecutor())
    _check_rows(files, plan)
    return _source(files, reader, plan, {}, options)


def _check_rows(files: Files, plan: SplitPlan) -> None:
    if not files.rows or plan.is_cut:
        return
    found = [0] * len(files.files)
    for split in plan.splits:
        found[split.file] += split.rows
    for place, rows in zip(files.files.column("place"), found, strict=True):
        if (recorded := files.rows.get(place.path, rows)) != rows:
            what = f"rows of {place.shown}: {rows:,}, and the manifest of that result says {recorded:,}"
            raise DamagedError(what, "write the result again")


def _format(files: ValueTable[ListedFile], options: ReadOptions) -> Format:
    """Return the common format of all files.

    Raises `InputError` naming a file of unknown format, or two files of different formats.
    """
    if options.format != "auto":
        return file_format(options.format)
    first: dict[Format, str] = {}
    places = files.column("place")
    for path, shown in zip(places.texts("path"), places.texts("shown"), strict=True):
        stem, suffix = os.path.splitext(path.lower())  # noqa: PTH122 - a Path takes far longer to make
        form = SUFFIXES.get(os.path.splitext(stem)[1] if suffix in COMPRESSIONS else suffix)  # noqa: PTH122
        if form is None:
            *others, last = sorted(FORMATS)
            known = f"; {next(iter(first.values()))} is {next(iter(first))}" if first else ""
            raise InputError(
                f"the name of {shown} gives no format{known}",
                f"say which with --input-format {', '.join(others)} or {last}",
            )
        first.setdefault(form, shown)
    if len(first) > 1:
        (a, one), (b, two) = list(first.items())[:2]
        raise InputError(
            f"{one} is {a} and {two} is {b}",
            "read one format at a time, or say which it is with --input-format",
        )
    return next(iter(first))


def _check_tables(paths: Sequence[str], tables: Sequence[TableVersion], options: ReadOptions) -> None:
    if options.format in TABLE_FORMATS:
        title = options.format.capitalize()
        other = next((table.shown for table in tables if table.title != title), None)
        if other is not None or len(tables) < len(paths):
            raise InputError(f"{other or paths[0]} is no {title} table", "check the path, or leave --input-format out")
    if options.version is not None and not tables:
        raise ConfigError(
            f"{paths[0]} is no table, and files have no versions", "leave --input-version and --input-snapshot out"
        )


def _plan_input(form: Format) -> PlanInput:
    plan: PlanInput = load(FORMATS[form].reader).plan_input  # numba loads only for text
    return plan


def _source(
    files: Files,
    reader: FormatReader,
    plan: SplitPlan,
    given: Mapping[str, ColumnType],
    options: ReadOptions,
    tables: Sequence[Named] = (),
    known: Sequence[Named] = (),
    named: Collection[str] = (),
) -> FileSource:
    """Return the source. ``tables``: the columns of each table among the inputs, which its files need not all have."""
    found, places = files.files, files.files.column("place")
    shown, first = places.texts("shown"), files.files[0].place.shown
    codes, firsts = np.unique(plan.schemas.codes, return_index=True)
    in_order = sorted(zip(firsts.tolist(), codes.tolist(), strict=True))
    own = [*tables, *((shown[at], plan.schemas.distinct[code]) for at, code in in_order)]
    declared = pa.schema([(name, kind.type) for name, kind in given.items() if name in files.types])
    own.append((first, declared))  # gives an empty result its types, also in CSV and JSON Lines
    before, _ = unify((), {}, known)
    constants = _constants(files, given, before)
    folders = pa.schema([(name, column.type) for name, column in constants.items()])
    fixed = {name: kind.type for name, kind in given.items()}
    of_folders, _ = unify([(first, folders)], fixed, known)
    fixed |= {name: of_folders.field(name).type for name in constants}  # a folder's value wins over a column of files
    there = dict.fromkeys([*(name for _, layout in own for name in layout.names), *folders.names])
    declared_names = [name for name, _ in options.schema if name not in there]
    for name in declared_names if there else ():
        if name not in named and name not in before.names:  # no file has it and nobody wants it: a typing error
            raise ConfigError(f"the schema names column {name!r}, which no file has", did_you_mean(name, list(there)))
    lacking = pa.schema([(name, given[name].type) for name in declared_names])
    every = [*own, (first, folders), ("--schema", lacking)]
    schema, type_places = unify(every, fixed, known, is_text=not reader.columnar)
    is_bare = not any(layout.names for _, layout in own) and not found.numbers("size").sum()
    lacks = any(name not in schema.names and name.partition(".")[0] not in schema.names for name in named)
    if not schema.names or (is_bare and lacks):
        who = f"{first} has" if len(found) == 1 else f"{first} and the {len(found) - 1} files after it have"
        raise NoColumnError(
            f"{who} no column",
            "is the input empty, or of another format? --schema says which columns an empty input has, as in "
            "--schema 'ts:timestamp,user:string'",
        )
    formats = {name: kind.format for name, kind in given.items() if kind.format is not None}
    kinds = (FileKind(reader, tuple(each.names), formats, frozenset(constants)) for each in plan.schemas.distinct)
    return FileSource(
        schema,
        ValueTable(InputFile, (places.column("shown"), found.column("size"), found.column("mtime"))),
        plan.splits,
        files.stream,
        SharedValues(tuple(kinds), plan.schemas.codes),
        places,
        constants,
        {name: split for name, split in plan.text_at.items() if name not in constants},
        found.texts("below"),
        type_places=type_places,
        is_cut=plan.is_cut,
        whole=plan.whole,
    )


def _constants(files: Files, given: Mapping[str, ColumnType], before: pa.Schema) -> dict[str, pa.Array]:
    """Return, by column, one value for each file: from its folder names, or the ordinal of its result folder.

    ``before``: the columns that are known from earlier runs: folders without a value say nothing of their types.
    """
    below, shown = files.files.texts("below"), files.files.column("place").texts("shown")
    has_values = any("=" in path for path in below)
    each = list(zip(shown, map(folder_values, below), strict=True)) if has_values else []
    names = dict.fromkeys(name for _, values in each for name in values)
    columns = {name: _folder_column(name, each, given.get(name)) for name in names}
    for name, column in columns.items():
        if name in before.names and column.null_count == len(column):
            columns[name] = pa.nulls(len(column), before.field(name).type)
    if files.ordinals is not None:
        columns[STREAM_COLUMN] = pa.array(files.ordinals, pa.int64())
    return columns


def _check_counts(found: Sequence[ListedFile], layouts: Sequence[pa.Schema], given: Mapping[str, ColumnType]) -> None:
    for name, kind in given.items():
        if kind.format is not None or not (pa.types.is_timestamp(kind.type) or pa.types.is_date(kind.type)):
            continue
        for file, layout in zip(found, layouts, strict=True):
            if name in layout.names and pa.types.is_integer(layout.field(name).type):
                what = f"column {name!r} is {layout.field(name).type} in {file.place.shown}"
                raise ConfigError(
                    f"{what}, and a {'date' if pa.types.is_date(kind.type) else 'timestamp'} could count anything",
                    f'say what it counts, with --schema "{name}:timestamp(unix)" for seconds since 1970, or (unix_ms), '
                    "(unix_us), (unix_ns)",
                )
