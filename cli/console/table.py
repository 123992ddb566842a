"""Columns of text: cells side by side, and tables that fit a terminal: cells cut where they are too long, columns left
out last.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.columns.arrays import plain_text
from ...windowing.errors import shown

APART = 2
_LEAST = 12
"""Characters of a column before others are left out."""
_LONGEST = 40
"""Characters of a cell, where a table has to fit a terminal."""
_FRACTION = r"(\.[0-9]*?)0+(Z?)$"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Where the columns of a table stand.

    ``names``: the columns that are shown, in order.
    ``widths``: the width of each, in cells of a terminal; a longer text is cut.
    ``right``: whether each is aligned to the right, as numbers are.
    ``left_out``: the columns for which there is no room.
    ``is_cut``: whether texts that are longer than their column are cut; else they push what follows.
    """

    names: tuple[str, ...]
    widths: tuple[int, ...]
    right: tuple[bool, ...]
    left_out: tuple[str, ...] = ()
    is_cut: bool = True


def lay_out(sample: pa.Table, room: int | None) -> TableLayout:
    """Lay out a table by its first rows. ``room``: characters of a line; None: as many as there are."""
    widths = []
    for name, column in zip(sample.column_names, sample.columns, strict=True):
        texts, widest = texts_of(column), cell_width(shown(name))
        if len(texts) and pc.all(pc.string_is_ascii(texts)).as_py():
            widths.append(max(widest, pc.max(pc.binary_length(texts)).as_py()))
        else:
            widths.append(max([widest, *map(cell_width, texts.to_pylist())]))
    right = [is_number(field.type) for field in sample.schema]
    if room is not None:
        widths = _fitting([min(width, _LONGEST) for width in widths], right, room)
    count = len(widths)
    left_out = tuple(sample.column_names[count:])
    return TableLayout(tuple(sample.column_names[:count]), tuple(widths), tuple(right[:count]), left_out, bool(room))


def head_line(layout: TableLayout) -> str:
    """Return the line with the names of the columns."""
    cells = [
        _aligned(shown(name), width, right, layout.is_cut)
        for name, width, right in zip(layout.names, layout.widths, layout.right, strict=True)
    ]
    return (" " * APART).join(cells).rstrip()


def row_lines(layout: TableLayout, rows: pa.Table) -> list[str]:
    """Return a line for each row."""
    if not rows.num_rows or not layout.names:
        return [""] * rows.num_rows
    columns = []
    for name, width, right in zip(layout.names, layout.widths, layout.right, strict=True):
        texts = texts_of(rows.column(name))
        if not pc.all(pc.string_is_ascii(texts)).as_py():
            aligned = [_aligned(text, width, right, layout.is_cut) for text in texts.to_pylist()]
            columns.append(pa.array(aligned, pa.string()))
            continue
        if layout.is_cut:
            cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(texts, 0, max(width - 1, 0)), "…", "")
            texts = pc.if_else(pc.greater(pc.binary_length(texts), width), cut, texts)
        columns.append((pc.utf8_lpad if right else pc.utf8_rpad)(texts, width))
    lines = pc.binary_join_element_wise(*columns, " " * APART)
    return pc.utf8_rtrim_whitespace(lines).to_pylist()


def texts_of(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return values as texts of one line, string (n,): null is ``-``, floats have at most ten digits.

    The text ``-`` itself is in quotes.

    Control characters, and what else a terminal could take for more than text, are escaped.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    texts = _as_text(array)
    odd = pc.invert(pc.match_substring_regex(texts, r"^[ -~]*$")).fill_null(False)
    if pc.any(odd).as_py():
        texts = pa.array([None if text is None else shown(text) for text in texts.to_pylist()], pa.string())
    return pc.if_else(pc.equal(texts, "-"), '"-"', texts).fill_null("-")


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def cell_width(text: str) -> int:
    """Return how many cells of a terminal a text takes: wide letters of East Asia take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cells(letter) for letter in text)


def cut_to(text: str, width: int) -> str:
    """Return a text that takes at most ``width`` cells, with an ellipsis where some of it is left out."""
    if cell_width(text) <= width:
        return text
    taken, room = "", width - 1
    for letter in text:
        room -= _cells(letter)
        if room < 0:
            break
        taken += letter
    return f"{taken}…"


def padded(text: str, width: int, right: bool = False) -> str:
    """Return a text with blanks, up to ``width`` cells: after it, or before it where it is aligned to the right."""
    padding = " " * max(width - cell_width(text), 0)
    return padding + text if right else text + padding


def side_by_side(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Return a line for each row of cells, each cell as wide as its column; ``right``: columns of numbers."""
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (padded(cell, width, at in right) for at, (cell, width) in enumerate(zip(row, widths, strict=True)))
        lines.append((" " * APART).join(cells).rstrip())
    return lines


def _cells(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _fitting(widths: list[int], right: Sequence[bool], room: int) -> list[int]:
    """Return the widths of as many columns as fit ``room``: texts shrink first, then columns at the end go."""
    for count in range(len(widths), 0, -1):
        taken, free = widths[:count], room - APART * (count - 1)
        least = [width if is_right else min(width, _LEAST) for width, is_right in zip(taken, right, strict=False)]
        if sum(least) > free and count > 1:
            continue
        while sum(taken) > free:
            able = [at for at, width in enumerate(taken) if width > least[at]]
            if not able:
                return [min(taken[0], free)] if count == 1 else taken
            taken[max(able, key=taken.__getitem__)] -= 1
        return taken
    return []


def _as_text(array: pa.Array) -> pa.Array:
    types, kind = pa.types, array.type
    if types.is_floating(kind):
        return pa.array([None if value is None else _float(value) for value in array.to_pylist()], pa.string())
    if types.is_temporal(kind):
        with suppress(pa.ArrowException):  # durations, and times that have no date of the calendar
            texts = pc.replace_substring_regex(array.cast(pa.string()), _FRACTION, r"\1\2")
            return pc.replace_substring_regex(texts, r"\.(Z?)$", r"\1")
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind) or types.is_boolean(kind):
        return array.cast(pa.string())
    return pa.array([None if not value.is_valid else plain_text(value) for value in array], pa.string())


def _float(value: float) -> str:
    if math.isfinite(value) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.10g}"


def _aligned(text: str, width: int, right: bool, is_cut: bool) -> str:
    text = cut_to(text, width) if is_cut else text
    return padded(text, width, right)
