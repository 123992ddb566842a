"""What a window needs of its input: the columns that it names, the clock, and the options that it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from ..columns.arrays import is_measurable
from ..errors import ClockError, ConfigError
from ..language.conditions import Operand
from ..language.spec import Policy

Option = Literal["empty", "origin", "closed", "partial", "event time", "emit evicted", "changes", "left"]
"""What only some windows take: empty windows, a grid of ticks, the side on which windows are closed, panes before they
are full, a watermark, the windows of evicted keys, rows that entered or left, and rows that left."""

Explain = Callable[[str], str | None]
"""Returns which value made a column text, or None, for messages."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a window, or one of its policies, needs.

    ``attributes``: the columns that it names, without repeats, in the order of its canonical text.
    ``required``: those that must hold a value: rows with null or NaN there are rejected.
    ``measured``: those whose values are subtracted.
    ``amounts``: those that are amounts: rows with a negative one are rejected.
    ``clock``: whether the order column must be read in seconds (section 1).
    ``dated``: whether windows begin at dates, so that rows beyond the years 1 to 9999 are in none.
    ``marks``: whether window marks end windows.
    ``options``: which options it takes.
    """

    attributes: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    clock: bool = False
    dated: bool = False
    marks: bool = False
    options: frozenset[Option] = frozenset()


def joined(parts: Sequence[Needs]) -> Needs:
    """Return what several policies of one window need together."""

    def names(of: Callable[[Needs], tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in parts for name in of(part)))

    return Needs(
        names(lambda part: part.attributes),
        names(lambda part: part.required),
        names(lambda part: part.measured),
        names(lambda part: part.amounts),
        any(part.clock for part in parts),
        any(part.dated for part in parts),
        any(part.marks for part in parts),
        frozenset(option for part in parts for option in part.options),
    )


# Attributes that are compared by an amount: ``delta`` and ``gap``, in tumbling and sliding windows.


def check_measured(policy: Policy, name: str, dtype: pa.DataType, explain: Explain) -> None:
    """Raise `ClockError` where an attribute has no values that can be subtracted."""
    if is_measurable(dtype):
        return
    because = explain(name)
    raise ClockError(
        f"{policy} needs a number, a timestamp or a date, and column {name!r} is {dtype}"
        + (f": {because}" if because else ""),
        f'with --schema "{name}:timestamp" (or int64, float64) such rows are rejected'
        if because
        else "name another column, or cast it",
        name,
    )


# Conditions of windows: columns or expressions that must be boolean, in tumbling and sliding windows.


def check_condition(word: str, operand: Operand, dtype: pa.DataType) -> None:
    """Raise `ConfigError` where an operand of the policy called ``word`` is no condition."""
    if pa.types.is_boolean(dtype):
        return
    if isinstance(operand, str):
        raise ConfigError(f"{word}({operand}) needs a boolean column, and {operand!r} is {dtype}", "use another column")
    raise ConfigError(f"{word} needs a condition, and {operand} is {dtype}", "compare it with something")
