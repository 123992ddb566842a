"""Read JSON Lines (one object per line): byte ranges of lines, or whole files if they are compressed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ...windowing.errors import InputError
from ...windowing.ports import Executor, Split
from ..files.byte_ranges import WHOLE, Range, last_line_end, line_start, range_buffers, stream_buffers, without_bom
from ..files.file import BadContentError, Located, has_changed, input_errors
from ..files.listed import ListedFile
from ..options import ReadOptions
from ..schema.kinds import NOTHING, Kind, join
from ..schema.types import ColumnType, Int64s
from ..text.json_fields import warm
from ..text.json_lines import JsonLines, good_lines
from ..text.record_bounds import locate_lines
from .json_parse import infer_lines, infer_plain, infer_quickly, read_plain, read_typed
from .split_rows import (
    ReadRequest,
    SplitPlan,
    SplitRows,
    WholeSplits,
    concatenate_buffers,
    lines_of_rows,
    text_rejects,
)
from .text_splits import ScannedRange, plan_text_files, text_looks, text_pieces

_LOOKED_AT = 1 << 16
_MOST_NAMES = 20_000  # of one range; of more, all are surely values that stand where names should
_MOST_CELLS = 1 << 26  # of one split, values and nulls
_ARRAY = re.compile(rb"\[\s*(\{|$)")


def plan_input(
    files: Sequence[ListedFile], options: ReadOptions, given: Mapping[str, ColumnType], executor: Executor
) -> tuple[JsonReader, SplitPlan]:
    """Scan the files once and divide them into splits of whole lines. Raises `InputError` naming a file."""
    reader = JsonReader()
    warm()
    return reader, plan_text_files(reader, files, options, given, executor)


@dataclass(frozen=True, slots=True)
class JsonReader(WholeSplits):
    """The `FormatReader` of JSON Lines."""

    columnar: ClassVar[bool] = False

    def as_stream(self, place: Located) -> bool:
        """Whether a file is one split that is read from start to end."""
        return place.compression is not None

    def scan(self, byte_range: Range) -> ScannedRange | InputError:
        """Count the lines of a range and find the kinds of its columns. Errors are returned, not raised."""
        try:
            with input_errors(byte_range.place.shown):
                return _scan(byte_range)
        except InputError as error:
            return error

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:
        """Read columns of a split; lines that are not one object, or do not fit the types, become rejects."""
        torn, base, line = split.place[3], 0, split.place[2]
        if not request.types and not torn:
            return SplitRows(pa.table({}), np.arange(split.rows, dtype=np.int64))
        _check_cells(place, split, request)
        buffers: list[tuple[int, SplitRows]] = []
        with input_errors(place.shown):
            for data in _buffers(place, *split.place[:2]):
                split_rows, rows, line_ends = _read_buffer(data, line, request, torn > 0)
                buffers.append((base, split_rows))
                base, line = base + rows, line + line_ends
        if base != split.rows:
            raise has_changed(place.shown)
        return concatenate_buffers(buffers, request.schema)

    def parts_of(self, place: Located, split: Split) -> Sequence[Split]:  # noqa: ARG002
        """Return the split: it is not divided further."""
        return [split]

    def pieces_of(self, place: Located, split: Split, nbytes: int) -> Iterator[Split]:
        """Yield splits of about ``nbytes`` bytes, each scanned when it is asked for."""
        return text_pieces(self, place, split, nbytes)

    def looks_of(self, place: Located, split: Split) -> Sequence[Split]:
        """Return evenly spaced small ranges of a split; their positions are estimates."""
        return text_looks(self, place, split)

    def lines(self, place: Located, split: Split, offsets: Int64s) -> Int64s:
        """Return the 1-based lines of rows of a split; ``offsets``: of the rows, int64, ascending."""
        with input_errors(place.shown):
            return lines_of_rows(map(locate_lines, _buffers(place, *split.place[:2])), split.place[2], offsets)


def _scan(byte_range: Range) -> ScannedRange:
    start, stop = _bounds(byte_range)
    rows, bad, lines, nbytes, kinds, first = 0, 0, 0, 0, dict[str, Kind](), b""
    for data in _buffers(byte_range.place, start, stop):
        count, torn, line_ends, found = _survey(data)
        if torn and not (start or nbytes):
            first = data[:_LOOKED_AT].lstrip().split(b"\n", 1)[0].rstrip()
        rows, bad, lines, nbytes = rows + count, bad + torn, lines + line_ends, nbytes + len(data)
        kinds = {name: join(kinds.get(name, NOTHING), found.get(name, NOTHING)) for name in {**kinds, **found}}
        if sum(1 if isinstance(kind, int) else _leaves(kind) for kind in kinds.values()) > _MOST_NAMES:
            what = f"has more than {_MOST_NAMES:,} different names in {rows:,} rows"
            raise BadContentError(what, "are they values? Put them into a column: a list of {name, value} objects")
    # An array that ends on its own line is the whole file only if the file has no other line.
    if _ARRAY.match(first) and (rows == 1 or not first.endswith(b"]")):
        what = "is one JSON array, and is read as JSON Lines, which has one object in each line"
        raise BadContentError(what, "convert it, or pipe it through jq -c '.[]'")
    return ScannedRange(byte_range.file, start, stop, rows, bad, lines, nbytes=nbytes, kinds=kinds)


def _check_cells(place: Located, split: Split, request: ReadRequest) -> None:
    """Raise `InputError` where most lines lack most columns, so that nulls would take more memory than the lines."""
    columns = sum(_leaves(kind.type) for kind in request.types.values())
    if split.rows * columns > _MOST_CELLS:
        raise InputError(
            f"{place.shown}: {split.rows:,} rows of {columns:,} columns are more than {_MOST_CELLS:,} values",
            "give tasks fewer rows: --split-size; or emit aggregates in place of rows",
        )


def _leaves(kind: pa.DataType) -> int:
    """Return how many columns without parts a type consists of."""
    inner = [kind.field(at).type for at in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return sum(map(_leaves, inner)) if inner else 1


def _bounds(byte_range: Range) -> tuple[int, int]:
    if byte_range.stop == WHOLE:
        return 0, WHOLE
    with byte_range.place.open_file() as file:
        size = file.size()
        start, stop = (line_start(file, at, size, cr_ends=False) for at in (byte_range.start, byte_range.stop))
    return start, stop


def _survey(data: bytes) -> tuple[int, int, int, dict[str, Kind]]:
    """Return the numbers of rows, of rows that are no objects and of line ends, and the kinds of the columns."""
    plain = infer_plain(data)
    if plain is not None:
        return plain[1].rows, 0, plain[1].line_ends, plain[0]
    records, line_ends = locate_lines(data)
    quick = infer_quickly(JsonLines(data, records))
    if quick is not None:
        return len(records.starts), 0, line_ends, quick
    lines, torn = good_lines(JsonLines(data, records))
    return len(records.starts), len(torn), line_ends, infer_lines(lines)


def _read_buffer(data: bytes, line: int, request: ReadRequest, torn: bool) -> tuple[SplitRows, int, int]:
    """Return the rows of one buffer, the number of all its rows, and of its line ends.

    ``line``: the 1-based number of its first line. ``torn``: whether some lines of the split are no objects.
    """
    plain = None if torn else read_plain(data, request.types)
    if plain is not None:
        rows = plain[0].num_rows
        return SplitRows(plain[0], np.arange(rows, dtype=np.int64)), rows, plain[1]
    records, line_ends = locate_lines(data)
    total = len(records.starts)
    lines = JsonLines(data, records)
    all_lines, no_objects = lines, np.empty(0, np.int64)
    if torn or not lines.are_objects().all():
        lines, no_objects = good_lines(lines)
    table, type_errors = read_typed(lines, request.types)
    kept = np.delete(np.arange(total, dtype=np.int64), no_objects)
    details = dict(zip(no_objects.tolist(), all_lines.why_none(no_objects), strict=True))
    details |= {int(kept[at]): detail for at, detail in type_errors.items()}
    rejects = text_rejects(data, records, line, details)
    if type_errors:
        fits = np.ones(len(kept), np.bool_)
        fits[list(type_errors)] = False
        table, kept = table.filter(pa.array(fits)), kept[fits]
    return SplitRows(table, kept, rejects), total, line_ends


def _buffers(place: Located, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes of a range in buffers of whole lines, without the byte order mark of the file."""
    if start == stop:
        return
    whole = partial(last_line_end, cr_ends=False)
    with place.open_stream() if stop == WHOLE else place.open_file() as file:
        buffers = stream_buffers(file, whole) if stop == WHOLE else range_buffers(file, start, stop, whole)
        is_first = start == 0
        for data in buffers:
            yield without_bom(data) if is_first else data
            is_first = False
