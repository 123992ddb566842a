"""Values of the rows of a key, in words, and how far they are apart, exactly: what an explanation of a window says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined, measures, scale_of
from ..language.tokens import decimal_text
from ..rows.sequence import Sequences

Amount = Fraction | float
"""A distance or an amount: exact, or a float where the column holds floats."""


@dataclass(frozen=True, slots=True)
class RowValues:
    """The rows of a key.

    ``sequences``: the rows.
    ``texts``: returns the values of a column as texts of one line.
    """

    sequences: Sequences
    texts: Callable[[pa.Array], pa.Array]

    def column(self, name: str) -> pa.Array:
        """Return a column of all rows."""
        return combined(self.sequences.rows.column(name))

    def pos(self, row: int) -> int:
        """Return the arrival position of a row."""
        return int(self.sequences.pos[row])

    def text(self, name: str, row: int) -> str:
        """Return a value as text."""
        return str(self.texts(self.column(name).slice(row, 1))[0])

    def name(self, row: int) -> str:
        """Return what a row is called: by its order value, or by its arrival position."""
        order = self.sequences.order
        if not order or not self.column(order[0])[row].is_valid:  # rows of a result that only its end brought out
            return f"the row with arrival position {self.pos(row)}"
        return f"the row at {self.text(order[0], row)}"

    def distance(self, name: str, new: int, old: int) -> Amount:
        """Return by how much the value of one row is above that of another."""
        return apart_of(self.column(name).take(pa.array([new, old])))

    def before(self, instant: Any, name: str, row: int) -> Amount:
        """Return by how much an instant, a scalar of any type of time or number, is above the value of a row."""
        own = self.column(name).slice(row, 1)
        finer = own.cast(instant.type) if pa.types.is_temporal(own.type) else own
        return apart_of(pa.concat_arrays([pa.repeat(instant.cast(finer.type), 1), finer]))

    def widest(self, name: str, rows: Ints) -> tuple[int, Amount] | None:
        """Return the row that is farthest above the row before it, and how far; None where none is above."""
        return self._highest(name, rows[1:], rows[:-1])

    def farthest(self, name: str, rows: Ints) -> tuple[int, Amount] | None:
        """Return the row that is farthest above the first of ``rows``, and how far; None where none is above."""
        return self._highest(name, rows[1:], np.broadcast_to(rows[:1], len(rows) - 1))

    def _highest(self, name: str, new: Ints, old: Ints) -> tuple[int, Amount] | None:
        if not len(new):
            return None
        values = measures(self.column(name))
        above = values[new] >= values[old]
        apart = np.where(above, (values[new] - values[old]).astype(np.float64), -1.0)
        at = int(np.argmax(apart))
        return (int(new[at]), self.distance(name, int(new[at]), int(old[at]))) if above[at] else None


def apart_of(pair: pa.Array) -> Amount:
    """Return by how much the first of two values is above the second."""
    values, per_second = measures(pair), scale_of(pair.type).per_second
    if per_second is None:
        return float(values[0] - values[1])
    return (int(values[0]) - int(values[1])) / per_second


def amount_text(kind: pa.DataType, amount: Amount) -> str:
    """Return a distance of values of a type as text: seconds for times, else a number."""
    text = decimal_text(amount) if isinstance(amount, Fraction) else f"{amount:.15g}"
    return f"{text} s" if pa.types.is_temporal(kind) else text


def exact_text(amount: Amount) -> str:
    """Return a distance as a number that reads back exactly."""
    return decimal_text(amount) if isinstance(amount, Fraction) else repr(amount)


def value_text(values: RowValues, name: str, row: int) -> str:
    """Return a row with the value that is compared; where that orders the rows it names the row."""
    if values.sequences.order[:1] == (name,):
        return values.text(name, row)
    return f"{name} {values.text(name, row)} of {values.name(row)}"
