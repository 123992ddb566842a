"""What the columnar formats share: splits of adjacent row groups, and the rows of a split in the wanted types.

A row group is the smallest part of a file that can be read without the rest: of ORC, a stripe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice

import numpy as np
import pyarrow as pa

from ...windowing.errors import InputError
from ...windowing.ports import Executor, Split
from ...windowing.support.column_types import plain
from ...windowing.support.value_table import share, value_table
from ..files.file import Located
from ..files.walk import ListedFile
from ..options import ReadOptions
from ..values.types import ColumnType
from .split_rows import (
    FormatReader,
    PlanInput,
    ReadRequest,
    Reject,
    SplitPlan,
    SplitRows,
    converted,
    cut_plan,
    without_rows,
)

_FIRST = 16  # files whose footers are read one by one
_SLOW = 0.0005  # seconds for a footer: in memory it takes a tenth of this, in a store 20 times as much
_THREADS = 8
_AHEAD = 256  # groups of files whose footers are read before those of the next are begun
_TOGETHER = 16  # files: to hand one to a thread takes as long as to read the footer of a small one


@dataclass(frozen=True, slots=True)
class Footer:
    """The metadata of a file.

    ``schema``: the columns in their plain types.
    ``groups``: the rows and the uncompressed bytes of each row group.
    """

    schema: pa.Schema
    groups: tuple[tuple[int, int], ...]


def plan_columnar(reader: FormatReader, read_footer: Callable[[Located], Footer]) -> PlanInput:
    """Return the entry point of a columnar format. It reads all footers, and neither types nor tasks are needed.

    It raises `InputError` naming the first file that is not complete, or has two columns of one name.
    """

    def plan_input(
        files: Sequence[ListedFile], options: ReadOptions, _given: Mapping[str, ColumnType], _executor: Executor
    ) -> tuple[FormatReader, SplitPlan]:
        return reader, plan_footers(files, options.split_bytes, read_footer, options.limit)

    return plan_input


def plan_footers(
    files: Sequence[ListedFile], split_bytes: int, read_footer: Callable[[Located], Footer], limit: int | None = None
) -> SplitPlan:
    """Read footers and divide the files into splits; ``place`` of a split is its first row, then its row groups.

    ``limit``: how many rows are read, and so many footers; None: all. Raises what ``read_footer`` does.
    """
    schemas: list[pa.Schema] = []
    shared: dict[pa.Schema, pa.Schema] = {}
    is_cut, ends_file = False, True
    footers = _footers(files, read_footer) if limit is None else (read_footer(file.place) for file in files)

    def splits() -> Iterator[Split]:
        nonlocal is_cut, ends_file
        index = base = 0
        for file, footer in enumerate(footers):
            groups = footer.groups
            is_cut = limit is not None and base + sum(rows for rows, _ in groups) > limit
            if is_cut and base == limit:
                return
            if limit is not None and is_cut:
                befores = accumulate((rows for rows, _ in groups), initial=base)
                groups = tuple(group for group, before in zip(groups, befores, strict=False) if before < limit)
                ends_file = False
            schemas.append(shared.setdefault(footer.schema, footer.schema))
            for split in _splits(groups, file, index, base, split_bytes):
                yield split
                index, base = split.index + 1, split.base + split.rows
            if is_cut:
                return

    planned = value_table(Split, splits())  # reads the footers; what they say of the whole is known from here on
    plan = SplitPlan(planned, share(schemas))
    return plan if limit is None or not is_cut else cut_plan(plan, limit, ends_file=ends_file)


def _footers(files: Sequence[ListedFile], read_footer: Callable[[Located], Footer]) -> Iterator[Footer]:
    """Read the footers of files: in threads, a few files at a time ahead of those that were taken, if files are slow.

    Threads help to wait, not to work. Where the first files did not have to be waited for they take twice the time.
    """
    places = (file.place for file in files)
    began = time.perf_counter()
    first = [read_footer(place) for place in islice(places, _FIRST)]
    yield from first
    if time.perf_counter() - began < _SLOW * len(first):
        yield from map(read_footer, places)
        return
    step = max(1, min(_TOGETHER, len(files) // (_TOGETHER * _THREADS)))
    groups = iter(lambda: list(islice(places, step)), [])
    with ThreadPoolExecutor(_THREADS) as pool:
        while ahead := list(islice(groups, _AHEAD)):
            read = pool.map(lambda group: [read_footer(place) for place in group], ahead)
            yield from chain.from_iterable(read)


def _splits(groups: Sequence[tuple[int, int]], file: int, index: int, base: int, split_bytes: int) -> Iterator[Split]:
    """Divide one file: adjacent row groups form one split as long as that has at most ``split_bytes``.

    ``index``: of the first split among all files. ``base``: the arrival position of the file's first row.
    """
    runs: list[list[int]] = []
    size = 0
    for group, (_, nbytes) in enumerate(groups):
        if not runs or size + nbytes > split_bytes:
            runs.append([])
            size = 0
        runs[-1].append(group)
        size += nbytes
    first = 0
    for at, run in enumerate(runs or [[]]):
        rows = sum(groups[group][0] for group in run)
        nbytes = sum(groups[group][1] for group in run)
        is_last = at + 1 >= len(runs)
        yield Split(index + at, file, base + first, rows, nbytes, is_last, (first, *run))
        first += rows


def check_names(place: Located, names: Sequence[str]) -> None:
    """Raise `InputError` where a file has two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{place.shown} has two columns named {twice!r}", "give each a name of its own")


def check_counts(place: Located, counts: Mapping[str, int]) -> None:
    """Raise `InputError` where a file counts its rows in several places, and not alike: rows would be passed over.

    ``counts``: the number of rows by what says it.
    """
    (first, rows), *others = counts.items()
    if other := next((each for each in others if each[1] != rows), None):
        what = f"{place.shown} is damaged: {first} {rows:,} rows, and {other[0]} {other[1]:,}"
        raise InputError(what, "get a whole copy of it, or have it written again")


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a file in their plain types."""
    return pa.schema([(field.name, plain(field.type)) for field in schema])


def divide(split: Split, counts: Sequence[int]) -> list[Split]:
    """Return each row group of a split as a split of its own; ``counts``: the rows of each."""
    befores = [0, *accumulate(counts)]
    return [
        replace(
            split,
            base=split.base + before,
            rows=rows,
            nbytes=split.nbytes * rows // max(1, split.rows),
            ends_file=split.ends_file and group == split.place[-1],
            place=(split.place[0] + before, group),
        )
        for group, rows, before in zip(split.place[1:], counts, befores, strict=False)
    ] or [split]


def runs_of(parts: Sequence[Split]) -> list[Split]:
    """Join splits of single row groups, in order, to one split for each run of neighbours."""
    runs: list[Split] = []
    for part in parts:
        if runs and runs[-1].place[-1] + 1 == part.place[1]:
            last = runs[-1]
            runs[-1] = replace(
                last,
                rows=last.rows + part.rows,
                nbytes=last.nbytes + part.nbytes,
                ends_file=part.ends_file,
                place=(*last.place, part.place[1]),
            )
        else:
            runs.append(part)
    return runs


def typed_rows(raw: pa.Table, split: Split, request: ReadRequest, texts: Sequence[str]) -> SplitRows:
    """Return the rows of a split in the wanted types; a row with a value that does not convert becomes a reject.

    ``raw``: the columns as the file stores them. Those of ``texts`` that are dictionary encoded stay so.
    """
    encoded = {
        name: raw[name]
        for name in texts
        if pa.types.is_dictionary(raw[name].type) and plain(raw[name].type) == request.types[name].type
    }
    columns = {name: raw[name] for name in request.types if name not in encoded}
    stored = {
        name: each if (form := plain(each.type)) == each.type else each.cast(form) for name, each in columns.items()
    }
    table, details = converted(stored, {name: request.types[name] for name in stored})
    table = pa.table({name: encoded[name] if name in encoded else table[name] for name in request.types})
    table, offsets = without_rows(table, np.arange(split.rows, dtype=np.int64), details)
    first = split.place[0] + 1
    return SplitRows(table, offsets, tuple(Reject(row, first + row, details[row], None) for row in sorted(details)))
