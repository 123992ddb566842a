"""What is known of one window, in words: what opened it, what brought it out, what came close.

Each kind and each tumbling policy says it of its own panes (``explain``, ``near``); here stands what they have in
common: the panes of a key with the values of its rows, and how far these are apart, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined, measures, scale_of
from ..language.tokens import decimal_text
from ..language.tokens import rows as row_count
from ..rows.marks import Marks
from ..rows.membership import gathered
from ..rows.panes import CLOSED_BY, Panes
from ..rows.sequence import Sequences
from .context import WindowContext

Amount = Fraction | float
"""A distance or an amount: exact, or a float where the column holds floats."""
Kind = Literal["opened", "closed", "near", "late", "other"]
"""What a fact says: which row opened the window; what brought it out; what came close; what came late; all else."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known of a window.

    ``row``: the arrival position of the row that it is about; None: about none.
    ``rule``: the word of the rule, as ``closed_by`` has it; None: there is none.
    ``numbers``: its numbers by name, as texts that are exact.
    """

    kind: Kind
    text: str
    row: int | None = None
    rule: str | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyPanes:
    """The panes of a key.

    ``sequences``: the rows of the key, in order.
    ``panes``: its panes in order, also those that only the end of the data brings out.
    ``marks``: what causes of panes count after the rows.
    ``head``: for each pane the columns that describe it in the result.
    ``context``: with the clock at the end of the data.
    ``texts``: returns the values of a column as texts of one line.
    """

    sequences: Sequences
    panes: Panes
    marks: Marks
    head: pa.Table
    context: WindowContext
    texts: Callable[[pa.Array], pa.Array]

    def rows_of(self, at: int) -> Ints:
        """Return the rows of pane ``at`` among those of the key, int64, in the order of the pane."""
        if self.panes.pairs is not None:
            return self.panes.pairs.rows_of(at)
        return gathered(self.panes.membership, at, at + 1)[0]

    def pane(self, at: int, before: str | None = None) -> KeyPane:
        """Return pane ``at``. ``before``: as of `KeyPane`."""
        return KeyPane(
            *(self.sequences, self.panes, self.marks, self.head, self.context, self.texts),
            at=at,
            rows=self.rows_of(at),
            before=before,
        )

    def column(self, name: str) -> pa.Array:
        """Return a column of all rows."""
        return combined(self.sequences.rows.column(name))

    def pos(self, row: int) -> int:
        """Return the arrival position of a row."""
        return int(self.sequences.pos[row])

    def text(self, name: str, row: int) -> str:
        """Return the value of a row as text."""
        return self.text_at(self.sequences.rows, name, row)

    def text_at(self, table: pa.Table | pa.RecordBatch, name: str, at: int) -> str:
        """Return a value of a table as text."""
        return str(self.texts(combined(table.column(name)).slice(at, 1))[0])

    def name(self, row: int) -> str:
        """Return what a row is called: by its order value, or by its arrival position."""
        order = self.sequences.order
        if not order or not self.column(order[0])[row].is_valid:  # rows of a result that only its end brought out
            return f"the row with arrival position {self.pos(row)}"
        return f"the row at {self.text(order[0], row)}"

    def value_text(self, name: str, row: int) -> str:
        """Return a row with the value that is compared; where that orders the rows it names the row."""
        if self.sequences.order[:1] == (name,):
            return self.text(name, row)
        return f"{name} {self.text(name, row)} of {self.name(row)}"

    def distance(self, name: str, new: int, old: int) -> Amount:
        """Return by how much the value of one row is above that of another."""
        return apart_of(self.column(name).take(pa.array([new, old])))

    def below(self, instant: Any, name: str, row: int) -> Amount:
        """Return by how much the value of a row is below an instant, a scalar of any type of time or number."""
        own = self.column(name).slice(row, 1)
        finer = own.cast(instant.type) if pa.types.is_temporal(own.type) else own
        return apart_of(pa.concat_arrays([pa.repeat(instant.cast(finer.type), 1), finer]))

    def near(self, text: str, row: int, rule: str | None, apart: Amount) -> Fact:
        """Return what came close: a row, and how far it is away."""
        return Fact("near", text, self.pos(row), rule, {"distance": exact_text(apart)})


@dataclass(frozen=True, slots=True)
class KeyPane(KeyPanes):
    """One of the panes of a key.

    ``at``: which of these it is.
    ``rows``: its rows among those of the key, int64, in the order of the pane.
    ``before``: why the window before it was closed; None: there is none, or windows do not follow one another.
    """

    at: int
    rows: Ints
    before: str | None

    @property
    def closed_by(self) -> str:
        return CLOSED_BY[self.panes.closed_by[self.at]]

    @property
    def cause_row(self) -> int | None:
        """The row of the key that brought it out; None: no such row did."""
        cause = int(self.panes.cause[self.at])
        return cause if 0 <= cause < len(self.sequences) else None

    @property
    def next_row(self) -> int | None:
        """The row of the key behind its last row; None: there is none."""
        after = int(self.rows[-1]) + 1 if len(self.rows) else len(self.sequences)
        return after if after < len(self.sequences) else None

    def head_text(self, name: str) -> str:
        """Return a column of the result as text; ``-`` where it has no such column."""
        return self.text_at(self.head, name, self.at) if name in self.head.column_names else "-"

    def highest(self, name: str, from_first: bool) -> tuple[int, Amount] | None:
        """Return the row that is farthest above the first row, or the row before it, and how far; None: none is."""
        new, old = self.rows[1:], self.rows[:-1]
        if not len(new):
            return None
        old = np.broadcast_to(self.rows[:1], len(new)) if from_first else old
        values = measures(self.column(name))
        above = values[new] >= values[old]
        apart = np.where(above, (values[new] - values[old]).astype(np.float64), -1.0)
        at = int(np.argmax(apart))
        return (int(new[at]), self.distance(name, int(new[at]), int(old[at]))) if above[at] else None

    # --- facts of a pane of a window that keeps rows: its oldest row, the age of a row, and what changed

    def oldest_row(self) -> Iterator[Fact]:
        if len(self.rows):
            oldest = int(self.rows[0])
            yield Fact("opened", f"{self.name(oldest)} is its oldest row", self.pos(oldest))

    def by_end(self) -> Fact:
        return Fact("closed", "the end of the data brought it out", None, "end")

    def age(self, name: str | None, row: int, text: str) -> Fact:
        """Return ``text`` with how far what brought the pane out is above a row by column ``name``; None: by none."""
        apart: Amount | None = None
        if name is not None and self.cause_row is not None:
            apart = self.distance(name, self.cause_row, row)
        elif name is not None and "_at" in self.head.column_names and self.sequences.order[:1] == (name,):
            instant = combined(self.head.column("_at"))[self.at]
            apart = self.below(instant, name, row) if instant.is_valid else None
        if name is None or apart is None:  # neither a row nor an instant brought it out
            return Fact("near", text, self.pos(row))
        amount = amount_text(self.column(name).type, apart)
        return self.near(f"{text}: it is {amount} below what brought the pane out", row, None, apart)

    def changes(self) -> Iterator[Fact]:
        """Say how many rows came in and how many went since the pane before it of its key."""
        if self.at == 0 or self.context.emit != "aggregates":
            return
        before = self.rows_of(self.at - 1)
        came, went = (len(np.setdiff1d(*pair)) for pair in ((self.rows, before), (before, self.rows)))
        text = f"since the pane before it, {row_count(came)} came in and {row_count(went)} went"
        yield Fact("other", text, None, None, {"came": str(came), "went": str(went)})


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
