"""Times in a window over columns of numbers, which say no unit: ``gap(ts, 1m)`` where ``ts`` counts milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

from ..clock.epochs import DIGITS, EpochUnit, epoch_unit
from ..errors import ConfigError
from ..language.conditions import has_duration, operand_column, uses_previous
from ..language.options import Options
from ..language.spec import Distance, WindowSpec
from ..language.tokens import Duration, decimal_text

_SAMPLED = 1000


class Epoch(NamedTuple):
    """What the values of a column of numbers look like.

    ``unit``: the unit in which they count time since 1970; None where they look like another form of times.
    ``advice``: how to read them as times.
    """

    unit: EpochUnit | None
    advice: str


Look = Callable[[str], Epoch | None]
"""Looks at some values of a column; None where they do not look like times, or there is nothing to look at."""


def no_look(_: str) -> Epoch | None:
    """Look at nothing."""
    return None


def look_at(rows: pa.Table) -> Look:
    """Return how to look at the columns of a table in memory."""

    def look(column: str) -> Epoch | None:
        if column not in rows.column_names:
            return None
        known = rows[column].drop_null()
        places = pa.array(range(0, len(known), max(1, len(known) // _SAMPLED)), pa.int64())
        sample = known.take(places).cast(pa.float64(), safe=False)
        unit = epoch_unit(sample.to_pylist(), len(sample))
        if unit is None:
            return None
        return Epoch(unit, f'column {column!r} counts {unit} since 1970: cast it to pa.timestamp("{unit}")')

    return look


def check_units(spec: WindowSpec, schema: pa.Schema, clock: str | None, options: Options, look: Look) -> None:
    """Raise `ConfigError` where a time of a window, written with a unit, meets numbers that are not seconds.

    Nothing says that an integer counts seconds, so no time goes with it. Floats and decimals count seconds, unless
    their values are instants in a finer unit. ``clock``: the column of the clock, None where there is none.
    """
    for written, seconds, column in _times(spec, schema, clock, options):
        dtype = schema.field(column).type
        if not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)):
            continue
        epoch = look(column)
        if pa.types.is_integer(dtype) or (epoch is not None and epoch.unit not in (None, "s")):
            raise _error(written, seconds, column, dtype, epoch)


def _error(written: str, seconds: Fraction | None, column: str, dtype: pa.DataType, epoch: Epoch | None) -> ConfigError:
    if pa.types.is_integer(dtype):
        what = f"{written} is a time, and column {column!r} is {dtype}, numbers without a unit"
    else:
        what = f"{written} is a time, and column {column!r} is {dtype}, whose numbers are no seconds"
    if epoch is None:
        advice = f'read it as a time, as with --schema "{column}:timestamp(unix_ms)" (or unix, unix_us, unix_ns)'
    else:
        advice = epoch.advice
    if seconds is None:
        return ConfigError(what, f"{advice}; or make it a plain number, in the unit of the column")
    plain, goes_on = decimal_text(seconds), "a state of earlier runs goes on"
    if epoch is None or epoch.unit in (None, "s"):
        return ConfigError(what, f"{advice}; or say it without a unit: {plain}, with which {goes_on}")
    wanted = f"{decimal_text(seconds * 10 ** DIGITS[epoch.unit])} for {epoch.unit}"
    return ConfigError(what, f"{advice}; or say it without a unit: {wanted}; {goes_on} with {plain}")


def _times(
    spec: WindowSpec, schema: pa.Schema, clock: str | None, options: Options
) -> Iterator[tuple[str, Fraction | None, str]]:
    """Yield each time as it was written, its seconds (None: rows say them), and the column that it is compared with."""
    given = {"--origin": options.origin, "--lag": options.lag, "--min-gap": options.min_gap}
    for option, amount in given.items():
        if isinstance(amount, Duration) and amount and clock is not None:
            yield f"{option} {amount.written}", amount, clock
    for column, amount in _placed(spec.distances, clock):
        if isinstance(amount, Duration) and amount:
            yield amount.written, amount, column
        elif not isinstance(amount, Fraction) and _is_duration(amount, schema):
            yield str(amount), None, column


def _placed(distances: Sequence[Distance], clock: str | None) -> Iterator[tuple[str, Any]]:
    for column, amount in distances:
        if (name := clock if column is None else column) is not None:
            yield name, amount


def _is_duration(operand: Any, schema: pa.Schema) -> bool:
    """Whether an amount that rows say is a time."""
    if not isinstance(operand, str) and uses_previous(operand):
        return has_duration(operand)
    return bool(pa.types.is_duration(schema.field(operand_column(operand)).type))
