"""Programs: what an expression is once its types are known. A program runs over whole columns.

A step reads the results of steps before it, so a program is flat however long the expression is. Rows for which a step
fails get null as its result and are put down in `Failures`; a step never raises for the values of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


Detail: TypeAlias = pa.Array | str | Callable[[], pa.Array | str]
"""Why rows failed: string (n,), one text for all, or what gives them once they are asked for."""


class Failures:
    """The rows for which steps failed.

    ``n``: number of rows.
    ``mask``: bool (n,), whether the row failed; None while none has.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.mask: Mask | None = None
        self._parts: list[tuple[Mask, Detail]] = []

    def add(self, mask: pa.Array | Mask, detail: Detail) -> Mask:
        """Put down rows, and return which they are, bool (n,). ``mask``: null counts as false; ``detail``: why."""
        found = as_mask(mask)
        if found.any():
            self.mask = found if self.mask is None else self.mask | found
            self._parts.append((found, detail))
        return found

    def add_all(self, other: Failures, taken: Mask) -> None:
        """Put down the rows of others that ``taken``, bool (n,), holds."""
        for mask, detail in other._parts:
            self.add(mask & taken, detail)

    def add_rows(self, other: Failures, rows: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Put down the rows of others, which are rows of this: ``rows``, int64 (other.n,), says which."""
        place = np.zeros(self.n, np.int64)
        place[rows] = np.arange(other.n)
        for mask, detail in other._parts:
            whole = np.zeros(self.n, bool)
            whole[rows] = mask
            self.add(whole, partial(_at, detail, place))

    def details(self) -> pa.Array:
        """Return why, for each failed row in order: string (number of failed rows,). The first failure counts."""
        mask = self.mask if self.mask is not None else np.zeros(self.n, bool)
        rows = np.flatnonzero(mask)
        found = pa.nulls(len(rows), pa.string())
        for part, detail in self._parts:
            text = _at(detail, rows)
            found = pc.if_else(pc.and_(pc.is_null(found), pa.array(part[rows])), text, found)
        return found


def _at(detail: Detail, rows: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array | str:
    found = detail() if callable(detail) else detail
    return found if isinstance(found, str) else found.take(pa.array(rows))


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a program.

    ``type``: the type of its result.
    ``compute``: ``column``: options hold its name; ``constant``: options hold a scalar; else a function of a module. It
        takes failures, the operands as arrays or scalars, at least one of them an array, and the options. One of a
        ``lazy`` step takes the `Frame` and the options, which hold programs.
    ``operands``: the places of steps before it.
    ``options``: values that pickle.
    ``form``: ``plain``; ``each`` where the result of a row depends on nothing but its operands, null for null, so that
        it may be taken of the values of a dictionary; ``lazy``.
    """

    type: pa.DataType
    compute: Callable[..., Any] | Literal["column", "constant"]
    operands: tuple[int, ...] = ()
    options: tuple[Any, ...] = ()
    form: Literal["plain", "each", "lazy"] = "plain"


@dataclass(frozen=True, slots=True)
class Program:
    """Steps of which the last one is the result. ``last_use``: for each step, the last step that reads it."""

    steps: tuple[Step, ...]
    last_use: tuple[int, ...]

    @property
    def type(self) -> pa.DataType:
        return self.steps[-1].type

    @property
    def constant(self) -> pa.Scalar | None:
        return self.steps[-1].options[0] if self.steps[-1].compute == "constant" else None


def program_of(steps: list[Step], result: int) -> Program:
    """Return the program that ends with the step at ``result``; steps that nothing reads are left out."""
    needed, waiting = set[int](), [result]
    while waiting:
        at = waiting.pop()
        if at not in needed:
            needed.add(at)
            waiting += steps[at].operands
    places = {old: new for new, old in enumerate(sorted(needed))}
    kept = [steps[old] for old in sorted(needed)]
    moved = [Step(s.type, s.compute, tuple(places[each] for each in s.operands), s.options, s.form) for s in kept]
    last = list(range(len(moved)))
    for index, step in enumerate(moved):
        for operand in step.operands:
            last[operand] = index
    return Program(tuple(moved), tuple(last))


class Frame:
    """The rows that a program runs over, and those that failed.

    ``rows``: a table or a batch with all columns that the program reads.
    ``failures``: the rows that failed so far.
    """

    def __init__(self, rows: pa.Table | pa.RecordBatch, failures: Failures | None = None) -> None:
        self.rows = rows
        self.failures = failures if failures is not None else Failures(rows.num_rows)

    def column(self, name: str) -> pa.Array:
        """Return a column as one array."""
        column = self.rows.column(name)
        if isinstance(column, pa.ChunkedArray):
            if column.num_chunks == 1:
                return column.chunk(0)
            whole = column.combine_chunks()
            return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
        return column

    def apart(self) -> Frame:
        """Return a frame over the same rows with failures of its own."""
        return Frame(self.rows, Failures(self.failures.n))


def run(program: Program, frame: Frame) -> pa.Array | pa.Scalar:
    """Run a program: an array (n,), or a scalar where the result is the same for all rows."""
    results: list[Any] = []
    for index, step in enumerate(program.steps):
        results.append(_result(step, [results[each] for each in step.operands], frame))
        for operand in step.operands:
            if program.last_use[operand] == index:
                results[operand] = None
    return results[-1]


def run_array(program: Program, frame: Frame) -> pa.Array:
    """Run a program: an array (n,) of the program's type."""
    return as_array(run(program, frame), frame.failures.n)


LONGEST: Final = 16 << 20
"""The most bytes of a text that an expression makes; a row with a longer one fails."""

_MOST: Final = 1 << 29  # bytes of all texts of a step; Arrow's texts end at 2 GiB


def check_size(nbytes: int, rows: int) -> None:
    """Raise `DataError` where the texts that a step is about to make, ``nbytes`` bytes for ``rows``, are too many."""
    if nbytes > _MOST:
        raise DataError(
            f"an expression makes {nbytes:,} bytes of text of {rows:,} rows, more than {_MOST:,}",
            "make its texts shorter, or give tasks fewer rows: --split-size",
        )


def as_array(value: pa.Array | pa.Scalar, n: int) -> pa.Array:
    """Return a value as an array of ``n`` rows that is no dictionary. Raises `DataError` as `check_size` does."""
    if isinstance(value, pa.Scalar):
        if value.is_valid and pa.types.is_string(value.type):
            check_size(n * value.as_buffer().size, n)
        return pa.repeat(value, n) if value.is_valid else pa.nulls(n, value.type)
    return value.dictionary_decode() if isinstance(value, pa.DictionaryArray) else value


def as_mask(mask: pa.Array | Mask) -> Mask:
    """Return a bool array as numpy, null as false."""
    if isinstance(mask, np.ndarray):
        return mask
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)


def blank(value: pa.Array | pa.Scalar, rows: Mask) -> pa.Array:
    """Return values with null at ``rows``, bool (n,)."""
    values = as_array(value, len(rows))
    return pc.if_else(pa.array(rows), pa.scalar(None, values.type), values)


def _result(step: Step, operands: list[Any], frame: Frame) -> Any:
    if step.compute == "column":  # texts may be of any of Arrow's text types
        column = frame.column(step.options[0])
        if not isinstance(column, pa.DictionaryArray):
            return column if column.type == step.type else column.cast(step.type)
        is_same = column.type.value_type == step.type
        return column if is_same else column.cast(pa.dictionary(column.type.index_type, step.type))
    if step.compute == "constant":
        return step.options[0]
    compute: Any = step.compute
    if step.form == "lazy":
        return compute(frame, *step.options)
    arrays = [each for each in operands if not isinstance(each, pa.Scalar)]
    if operands and not arrays:
        operands[0] = as_array(operands[0], frame.failures.n)
    if step.form == "each" and len(arrays) == 1 and isinstance(arrays[0], pa.DictionaryArray):
        found = _of_dictionary(step, operands, arrays[0])
        if found is not None:
            return found
    values = [as_array(each, 0) if isinstance(each, pa.DictionaryArray) else each for each in operands]
    return compute(frame.failures, *values, *step.options)


def _of_dictionary(step: Step, operands: list[Any], coded: pa.DictionaryArray) -> pa.Array | None:
    """The result by way of the few values of a dictionary; None where one of them fails, or they are not few."""
    if len(coded.dictionary) > len(coded):
        return None
    failures = Failures(len(coded.dictionary))
    compute: Any = step.compute
    values = compute(failures, *(coded.dictionary if each is coded else each for each in operands), *step.options)
    if failures.mask is not None:
        return None
    if pa.types.is_string(values.type) and values.nbytes * len(coded) > _MOST:  # else no row can make it too large
        check_size(pc.sum(pc.binary_length(values).take(coded.indices).cast(pa.int64())).as_py() or 0, len(coded))
    return values.take(coded.indices)


def arrow_function(_failures: Failures, *operands: Any) -> pa.Array:
    """Return a function of Arrow as values of a type; its last two operands are the type and the function's name.

    Only for functions that no row fails, for `pruning` trusts in that: roots and logarithms of what has none are NaN or
    infinite; lower and upper case are those of Unicode, and a length counts code points.
    """
    *values, kind, name = operands
    return pc.call_function(name, values).cast(kind)
