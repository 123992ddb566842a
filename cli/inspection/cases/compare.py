"""Rows that are expected against rows that are found: which belong together, and which cells differ.

The rows of a case are few: this module goes through them one by one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.errors import ConfigError, SpecError, did_you_mean
from ....windowing.language.parser import parse_duration
from .case import Case, Row, Scalar, Value

# One value that is expected and one that is found: whether they are the same, and both as texts.


_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_ZEROS = re.compile(r"(?:\.|(\.\d*[1-9]))0+(?=Z|[-+]|$)")
_SINGLE = 1e-6
"""How far two floats of 32 bits may be apart at least, as a share: they have 7 digits."""


def is_same(expected: Value, found: pa.Scalar, tolerance: float) -> bool:
    """Whether a value is what is expected, in the type of the value.

    ``tolerance``: how far a float may be away, as a share of what is expected.
    """
    if expected is None or not found.is_valid:
        is_null = expected is None or (isinstance(expected, Scalar) and expected.text == "")
        return is_null and (not found.is_valid or found.as_py() == "")
    kind = found.type
    if isinstance(expected, Scalar) and (_is_list(kind) or pa.types.is_struct(kind)):
        inner: Value = None
        with suppress(ValueError, RecursionError):  # a cell of CSV holds it as JSON
            inner = _as_value(json.loads(expected.text, parse_float=str, parse_int=str))
        return inner is not None and is_same(inner, found, tolerance)
    if isinstance(expected, Scalar):
        return _says(expected.text, found, tolerance)
    if isinstance(expected, dict):
        names = {field.name for field in kind} if pa.types.is_struct(kind) else set()
        return expected.keys() <= names and all(
            is_same(each, found[name], tolerance) for name, each in expected.items()
        )
    pairs = zip(expected, found.values if _is_list(kind) else (), strict=False)
    is_as_long = _is_list(kind) and len(found.values) == len(expected)
    return is_as_long and all(is_same(one, other, tolerance) for one, other in pairs)


def text_of_expected(value: Value) -> str:
    """Return an expected value as text."""
    if value is None:
        return "null"
    if isinstance(value, Scalar):
        return value.text if value.text else ("null" if value.kind == "csv" else "''")

    def plain(value: Value) -> Any:
        if isinstance(value, list):
            return [plain(each) for each in value]
        if isinstance(value, dict):
            return {name: plain(each) for name, each in value.items()}
        return None if value is None else value.text

    return json.dumps(plain(value), ensure_ascii=False)


def text_of_found(value: pa.Scalar) -> str:
    """Return a value that was found as text, in a form in which it may be expected."""
    if not value.is_valid:
        return "null"
    kind = value.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return _ZEROS.sub(r"\1", str(value.cast(pa.string())))
    if pa.types.is_duration(kind):
        seconds = _seconds(value)
        is_whole = seconds.denominator == 1
        return f"{seconds.numerator if is_whole else Decimal(seconds.numerator) / Decimal(seconds.denominator)}s"
    if _is_list(kind):
        return "[" + ", ".join(map(text_of_found, value.values)) + "]"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(f"{field.name}: {text_of_found(value[field.name])}" for field in kind) + "}"
    found = value.as_py()
    if isinstance(found, bool):
        found = str(found).lower()
    return found.hex() if isinstance(found, bytes) else "''" if found == "" else str(found)


def _is_time(text: str, found: pa.Scalar) -> bool:
    """Whether a text is a time, in the type of that; in the zone of that; or as a time of any day."""
    kind, plain = found.type, pa.scalar(text)
    readings: list[Callable[[], pa.Scalar]] = [lambda: plain.cast(kind)]
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        readings.append(lambda: pc.assume_timezone(plain.cast(pa.timestamp(kind.unit)), kind.tz))
    if pa.types.is_time(kind):
        readings.append(lambda: pa.scalar(f"1970-01-01 {text}").cast(pa.timestamp(kind.unit)).cast(kind))
    for read in readings:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return bool(read().equals(found))
    return False


def _says(text: str, found: pa.Scalar, tolerance: float) -> bool:
    """Whether a text is a value, in the type of that; a text that is no such value is not."""
    types, kind = pa.types, found.type
    same = False
    with suppress(SpecError, InvalidOperation, ValueError):
        if types.is_duration(kind):
            same = parse_duration(text) == _seconds(found)
        elif types.is_temporal(kind):
            same = _is_time(text, found)
        elif types.is_integer(kind) or types.is_decimal(kind):
            same = Decimal(text.replace("_", "")) == found.as_py()
        elif types.is_floating(kind):
            wanted, value = float(text.lower().replace(".nan", "nan").replace(".inf", "inf")), float(found.as_py())
            least = tolerance if types.is_float64(kind) else max(tolerance, _SINGLE)
            same = math.isclose(wanted, value, rel_tol=least) or (math.isnan(wanted) and math.isnan(value))
        elif types.is_boolean(kind):
            same = text.lower() in (_TRUE if found.as_py() else _FALSE)
        elif types.is_string(kind) or types.is_large_string(kind):
            same = found.as_py() == text
        else:
            same = text_of_found(found) == text
    return same


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _seconds(found: pa.Scalar) -> Fraction:
    return Fraction(found.value) / {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[found.type.unit]


def _as_value(found: Any) -> Value:
    if isinstance(found, list):
        return [_as_value(each) for each in found]
    if isinstance(found, dict):
        return {name: _as_value(each) for name, each in found.items()}
    return None if found is None else Scalar("csv", str(found).lower() if isinstance(found, bool) else str(found))


@dataclass(frozen=True, slots=True)
class RowPair:
    """A row that is expected and the one that is most like it, of which one may be missing.

    ``expected``, ``found``: the texts of its cells, in the order of the columns; None: there is no such row.
    ``differs``: for each column whether the two differ.
    """

    expected: tuple[str, ...] | None
    found: tuple[str, ...] | None
    differs: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Rows that are not as expected.

    ``what``: which rows, in words.
    ``pairs``: the rows that differ; none where only their order does.
    ``same``: how many rows are as expected.
    """

    what: str
    columns: tuple[str, ...]
    pairs: tuple[RowPair, ...]
    same: int


def compare(what: str, expected: Sequence[Row], found: pa.Table, is_ordered: bool, tolerance: float) -> Mismatch | None:
    """Compare rows in the columns that are expected; return None where each has its row.

    ``what``: which rows they are, in words. Raises `ConfigError` for a column that is not there.
    """
    columns = tuple(dict.fromkeys(name for row in expected for name in row)) or tuple(
        name for name in found.column_names if not name.startswith("_")
    )
    for name in columns:
        if name not in found.column_names and (found.num_rows or found.column_names):
            raise ConfigError(f"{what} have no column {name!r}", did_you_mean(name, found.column_names))
    cells = [{name: found[name][at] for name in columns} for at in range(found.num_rows)]
    likeness = [
        [sum(is_same(value, cell[name], tolerance) for name, value in row.items()) for cell in cells]
        for row in expected
    ]
    match = _match([[like == len(row) for like in likes] for row, likes in zip(expected, likeness, strict=True)])
    if len(match) == len(expected) == len(cells):
        in_order = not is_ordered or all(match[at] == at for at in match)
        return None if in_order else Mismatch(what, columns, (), len(match))

    def pair(row: Row | None, at: int | None) -> RowPair:
        cell = None if at is None else cells[at]
        texts = None if row is None else tuple(text_of_expected(row[name]) if name in row else "" for name in columns)
        differs = tuple(
            row is not None and cell is not None and name in row and not is_same(row[name], cell[name], tolerance)
            for name in columns
        )
        return RowPair(texts, None if cell is None else tuple(map(text_of_found, cell.values())), differs)

    free, pairs = [at for at in range(len(cells)) if at not in match.values()], []
    for number, row in enumerate(expected):
        if number in match:
            continue
        near = max(free, key=likeness[number].__getitem__, default=None)
        if near is not None and likeness[number][near] == 0 and len(columns) > 1:
            near = None
        if near is not None:
            free.remove(near)
        pairs.append(pair(row, near))
    return Mismatch(what, columns, (*pairs, *(pair(None, at) for at in free)), len(match))


def _match(same: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Return, for as many expected rows as possible, a row that was found, each once.

    Rows may name different columns, so the first row that fits may be the only one for another: augmenting paths find
    the most pairs.
    """
    owner: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        in_turn = sorted((at for at, fits in enumerate(same[row]) if fits), key=lambda at: at in owner)
        for at in in_turn:
            if at not in tried:
                tried.add(at)
                if at not in owner or place(owner[at], tried):
                    owner[at] = row
                    return True
        return False

    for row in range(len(same)):
        place(row, set())
    return {row: at for at, row in owner.items()}


# What came of cases.


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What came of one case.

    ``error``: what went wrong, in words; None: it ran, or failed as expected.
    ``drawing``: the windows of the first rows that are not as expected, drawn; None: none are, or they have no drawing.
    """

    case: Case
    seconds: float
    mismatches: tuple[Mismatch, ...] = ()
    error: str | None = None
    drawing: str | None = None

    @property
    def passes(self) -> bool:
        return not self.mismatches and self.error is None
