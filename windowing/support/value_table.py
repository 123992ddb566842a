"""Many values of one class as columns: a sequence of frozen dataclasses that takes a tenth of their memory.

A file or a split is a value, and an input may have a hundred thousand of each: as objects these take a kilobyte each,
and a task unpickles all of them. As columns they take the bytes of their texts and numbers, and unpickle at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import islice, pairwise
from typing import Any, TypeAlias, TypeVar, get_type_hints, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .option import without_none

T = TypeVar("T")
_BATCH = 4096  # values that are objects at a time, while a table is made or gone through
_ARROW = {int: pa.int64(), bool: pa.bool_(), str: pa.large_binary(), tuple[int, ...]: pa.large_list(pa.int64())}


class Texts(Sequence[str]):
    """A column of texts as a sequence. ``array``: the texts in UTF-8, large_binary (N,)."""

    __slots__ = ("array",)

    def __init__(self, array: pa.LargeBinaryArray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        return (
            _text(self.array[at].as_py())
            if isinstance(at, int)
            else [_text(each) for each in self.array[at].to_pylist()]
        )

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self.array), _BATCH):
            yield from map(_text, self.array.slice(start, _BATCH).to_pylist())


@dataclass(frozen=True, slots=True)
class SharedValues(Sequence[Any]):
    """A column in which few objects occur many times. Equal objects may differ (schemas in their metadata), and stay.

    ``distinct``: each of them once.
    ``codes``: int32 (N,), which of them stands at each place.
    """

    distinct: tuple[Any, ...]
    codes: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at: Any) -> Any:
        chosen = self.codes[at]
        return self.distinct[chosen] if chosen.ndim == 0 else [self.distinct[code] for code in chosen.tolist()]

    def __iter__(self) -> Iterator[Any]:
        return map(self.distinct.__getitem__, self.codes.tolist())


Column: TypeAlias = "pa.Array | SharedValues | ValueTable[Any]"


@dataclass(frozen=True, slots=True, eq=False)
class ValueTable(Sequence[T]):
    """Values of one frozen dataclass; a value is made when it is asked for.

    ``columns``: one column of N values for each of its fields: an Arrow array of integers, booleans, texts (UTF-8, lone
        surrogates included) or tuples of integers, each with nulls for None; a table of a class inside; else shared
        values.
    """

    kind: type[T]
    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> ValueTable[T]: ...
    def __getitem__(self, at: int | slice) -> T | ValueTable[T]:
        if isinstance(at, slice):
            return self.take(np.arange(len(self))[at])
        start = range(len(self))[at]  # raises IndexError
        return next(self._made(start, start + 1))

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), _BATCH):
            yield from self._made(start, min(start + _BATCH, len(self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ValueTable)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    def __hash__(self) -> int:
        return hash((self.kind, len(self)))

    def _made(self, start: int, stop: int) -> Iterator[T]:
        return map(self.kind, *(_values(column, start, stop) for column in self.columns))

    def column(self, name: str) -> Any:
        """Return the column of a field."""
        return self.columns[_names(self.kind).index(name)]

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        """Return the integers of a field of which none is None, int64 (N,)."""
        found: npt.NDArray[np.int64] = self.column(name).to_numpy()
        return found

    def texts(self, name: str) -> Texts:
        """Return the texts of a field of which none is None."""
        return Texts(self.column(name))

    def take(self, indices: npt.NDArray[np.int64]) -> ValueTable[T]:
        """Return the values at some places, int64 (M,), as a table."""
        taken: list[Column] = []
        for column in self.columns:
            if isinstance(column, ValueTable):
                taken.append(column.take(indices))
            elif isinstance(column, SharedValues):
                taken.append(SharedValues(column.distinct, column.codes[indices]))
            else:
                taken.append(column.take(pa.array(indices)))
        return ValueTable(self.kind, tuple(taken))


def value_table(kind: type[T], values: Iterable[T]) -> ValueTable[T]:
    """Return values as a table; those of an iterator need not be in memory at once."""
    builders = [_Builder(each) for each in _kinds(kind)]
    rest = iter(values)
    while batch := list(islice(rest, _BATCH)):
        for name, builder in zip(_names(kind), builders, strict=True):
            builder.add([getattr(value, name) for value in batch])
    return ValueTable(kind, tuple(builder.column() for builder in builders))


def text_column(texts: Iterable[str | None]) -> pa.LargeBinaryArray:
    """Return texts as the column of a table."""
    return pa.array(map(_bytes, texts), pa.large_binary())


def share(values: Iterable[Any]) -> SharedValues:
    """Return objects as a column that holds each of them once."""
    builder = _Builder(object)
    builder.add(values)
    return SharedValues(tuple(builder.distinct), np.array(builder.codes, np.int32))


class _Builder:
    """A column that is being made, from lists of values."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.arrays: list[pa.Array] = []
        self.distinct: list[Any] = []
        self.codes: list[int] = []
        self.known: dict[int, int] = {}
        self.inner = [_Builder(each) for each in _kinds(kind)] if is_dataclass(kind) else []

    def add(self, values: Iterable[Any]) -> None:
        if self.inner:
            lot = list(values)
            for name, builder in zip(_names(self.kind), self.inner, strict=True):
                builder.add([getattr(value, name) for value in lot])
        elif self.kind in _ARROW:
            found = map(_bytes, values) if self.kind is str else values
            self.arrays.append(pa.array(found, _ARROW[self.kind]))
        else:
            self.codes += map(self._code, values)

    def _code(self, value: Any) -> int:
        code = self.known.setdefault(id(value), len(self.distinct))  # `distinct` keeps the object of each id alive
        if code == len(self.distinct):
            self.distinct.append(value)
        return code

    def column(self) -> Column:
        if self.inner:
            return ValueTable(self.kind, tuple(builder.column() for builder in self.inner))
        if self.kind in _ARROW:
            arrays, self.arrays = self.arrays or [pa.array([], _ARROW[self.kind])], []
            return pa.concat_arrays(arrays)
        return SharedValues(tuple(self.distinct), np.array(self.codes, np.int32))


def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _kinds(kind: Any) -> tuple[Any, ...]:
    hints = _hints(kind)
    return tuple(without_none(hints[name]) for name in _names(kind))


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


def _values(column: Column, start: int, stop: int) -> Iterable[Any]:
    if isinstance(column, ValueTable):
        return column._made(start, stop)
    if isinstance(column, SharedValues):
        return map(column.distinct.__getitem__, column.codes[start:stop].tolist())
    part = column.slice(start, stop - start)
    if pa.types.is_large_binary(part.type):
        return [None if each is None else _text(each) for each in part.to_pylist()]
    if pa.types.is_large_list(part.type):
        edges = part.offsets.to_numpy()
        flat, edges = part.values.to_numpy()[edges[0] : edges[-1]].tolist(), (edges - edges[0]).tolist()
        found: list[tuple[int, ...] | None] = [tuple(flat[low:high]) for low, high in pairwise(edges)]
        if part.null_count:
            return [each if known else None for each, known in zip(found, part.is_valid().to_pylist(), strict=True)]
        return found
    return part.to_pylist() if part.null_count else part.to_numpy(zero_copy_only=False).tolist()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")
