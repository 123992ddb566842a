"""The window language as plain values: what a spec says, and nothing of how it is computed.

``str`` of every value is its canonical text, which `windowing.language.parser` reads back to an equal value. The values
check nothing: a spec made by hand is sound iff ``parse_window(str(spec)) == spec``.

Durations are exact `Fraction` seconds; an amount of an attribute is in the attribute's own unit (seconds where
that is a timestamp).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from ..errors import ConfigError

WORD: Final = r"[^\W\d][\w.]*"
"""A bare column name: letters of any script, digits, ``_`` and ``.``, with no digit or ``.`` first."""

_BARE = re.compile(WORD)


@dataclass(frozen=True, slots=True)
class Count:
    """``count(n)``: n rows (sections 2 and 3). n >= 1, and 0 too where a sliding window evicts by it."""

    n: int

    def __str__(self) -> str:
        return f"count({self.n})"


@dataclass(frozen=True, slots=True)
class Delta:
    """``delta(attribute, amount)``: more than ``amount`` >= 0 above an earlier row's value (sections 2 and 3)."""

    attribute: str
    amount: Fraction

    def __str__(self) -> str:
        return f"delta({column_text(self.attribute)}, {decimal_text(self.amount)})"


@dataclass(frozen=True, slots=True)
class Time:
    """``time(seconds)``: a grid, an age or ticks on the clock (sections 2 and 3). Greater than 0."""

    seconds: Fraction

    def __str__(self) -> str:
        return f"time({decimal_text(self.seconds)})"


@dataclass(frozen=True, slots=True)
class Punct:
    """``punct()``: until a window mark; ``punct(column)``: until a row whose boolean column is true (section 2)."""

    column: str | None = None

    def __str__(self) -> str:
        return f"punct({column_text(self.column) if self.column is not None else ''})"


@dataclass(frozen=True, slots=True)
class Gap:
    """``gap(attribute, amount)``: until a row more than ``amount`` >= 0 above the row before it (section 2)."""

    attribute: str
    amount: Fraction

    def __str__(self) -> str:
        return f"gap({column_text(self.attribute)}, {decimal_text(self.amount)})"


@dataclass(frozen=True, slots=True)
class Calendar:
    """``calendar(unit, tz, at)``: local days, weeks, months or years that begin at a time of day (section 2).

    ``unit``: day, week, month or year. ``tz``: a zone name of the tz database. ``at``: whole seconds, no zone.
    ``start``: mon .. sun, the day a week begins on; of no meaning for other units.
    """

    unit: str
    tz: str = "UTC"
    at: dt.time = dt.time(0)
    start: str = "mon"

    def __str__(self) -> str:
        words = [f"week@{self.start}" if self.unit == "week" else self.unit]
        if self.tz != "UTC":
            words.append("tz=" + _quoted(self.tz, '"'))
        if self.at != dt.time(0):
            words.append("at=" + self.at.isoformat("seconds" if self.at.second else "minutes"))
        return f"calendar({', '.join(words)})"


Policy: TypeAlias = Count | Delta | Time | Punct | Gap | Calendar
SlidingPolicy: TypeAlias = Count | Delta | Time


@dataclass(frozen=True, slots=True)
class PartitionEviction:
    """Which keys are evicted (section 4): ``amount`` is seconds for ``partitionAge``, else a whole number >= 1."""

    kind: Literal["partitionAge", "partitionCount", "tupleCount"]
    amount: Fraction

    def __str__(self) -> str:
        return f"{self.kind}({decimal_text(self.amount)})"


@dataclass(frozen=True, slots=True)
class Tumbling:
    """``tumbling, POLICY [, partitioned] [, EVICTION]`` (sections 2 and 4)."""

    policy: Policy
    partitioned: bool = False
    eviction: PartitionEviction | None = None

    def __str__(self) -> str:
        return ", ".join(["tumbling", str(self.policy), *_options(self.partitioned, self.eviction)])


@dataclass(frozen=True, slots=True)
class Sliding:
    """``sliding, EVICT, TRIGGER [, partitioned] [, EVICTION]`` (sections 3 and 4)."""

    evict: SlidingPolicy
    trigger: SlidingPolicy = Count(1)
    partitioned: bool = False
    eviction: PartitionEviction | None = None

    def __str__(self) -> str:
        words = ["sliding", str(self.evict), str(self.trigger)]
        return ", ".join([*words, *_options(self.partitioned, self.eviction)])


@dataclass(frozen=True, slots=True)
class TimeInterval:
    """``timeInterval, ...``: panes ``[s, s + duration)`` of event time, one each ``period`` (section 5).

    All in seconds; ``duration`` and ``period`` greater than 0, ``discard_age`` and ``offset`` at least 0.
    ``offset`` is as written, so it may be larger than ``period``.
    """

    duration: Fraction
    period: Fraction
    discard_age: Fraction = Fraction(0)
    offset: Fraction = Fraction(0)
    partitioned: bool = False

    def __str__(self) -> str:
        words = (
            "timeInterval",
            f"intervalDuration({decimal_text(self.duration)})",
            f"creationPeriod({decimal_text(self.period)})",
            f"discardAge({decimal_text(self.discard_age)})",
            f"intervalOffset({decimal_text(self.offset)})",
        )
        return ", ".join([*words, *_options(self.partitioned, None)])


@dataclass(frozen=True, slots=True)
class Batched:
    """``[partition by K,..] within D [every P] [retain N] [with unique K]`` and its kin (section 6).

    ``within``: seconds, greater than 0. ``every``: Fraction seconds where ``within`` is given, else (next to a lone
    ``retain``) an int number of rows. ``retain``: rows, at least 1. ``retain_all`` stands alone.
    """

    within: Fraction | None = None
    every: Fraction | int | None = None
    retain: int | None = None
    retain_all: bool = False
    unique: str | None = None
    partition_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        every = [] if self.every is None else [f"every {decimal_text(Fraction(self.every))}"]
        retain = [] if self.retain is None else [f"retain {self.retain}"]
        words = [f"partition by {', '.join(map(column_text, self.partition_by))}"] if self.partition_by else []
        words += [*retain, *every] if self.within is None else [f"within {decimal_text(self.within)}", *every, *retain]
        words += ["retain all"] if self.retain_all else []
        words += [] if self.unique is None else [f"with unique {column_text(self.unique)}"]
        return " ".join(words)


WindowSpec: TypeAlias = Tumbling | Sliding | TimeInterval | Batched


@dataclass(frozen=True, slots=True)
class Column:
    """A column named in an aggregate."""

    name: str

    def __str__(self) -> str:
        return column_text(self.name)


Argument: TypeAlias = Column | Fraction | str


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """``NAME=FUNCTION(ARGUMENTS)`` as written (section 9): columns, numbers (Fraction) and texts (str).

    ``function`` is a lower-case name, or ``module:name`` in its own case. Nothing says that it exists.
    """

    name: str
    function: str
    arguments: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        return f"{column_text(self.name)}={self.function}({', '.join(map(_argument_text, self.arguments))})"


def default_name(function: str, arguments: Iterable[Argument]) -> str:
    """Return the output column of an aggregate that was given no name.

    The function (without its module), columns, numbers and texts, joined by ``_``: ``count``, ``sum_amount``,
    ``quantile_latency_0.95``.
    """
    words = [a.name if isinstance(a, Column) else decimal_text(a) if isinstance(a, Fraction) else a for a in arguments]
    return "_".join([function.rpartition(":")[2], *words])


def attributes(spec: WindowSpec) -> tuple[str, ...]:
    """Return the columns that a spec names, each once, in the order of its canonical text."""
    match spec:
        case Tumbling(policy):
            names = [_attribute(policy)]
        case Sliding(evict, trigger):
            names = [_attribute(evict), _attribute(trigger)]
        case TimeInterval():
            names = []
        case Batched():
            names = [*spec.partition_by, spec.unique]
    return tuple(dict.fromkeys(name for name in names if name is not None))


def needs_clock(spec: WindowSpec) -> bool:
    """Return whether the order column must be read in seconds (section 1).

    True for time and calendar policies, ``within`` and ``partitionAge``. Event-time panes have a clock of their own,
    the event time, while their rows stand in arrival order.
    """
    match spec:
        case Tumbling(policy, _, eviction):
            return isinstance(policy, Time | Calendar) or _ages(eviction)
        case Sliding(evict, trigger, _, eviction):
            return isinstance(evict, Time) or isinstance(trigger, Time) or _ages(eviction)
        case TimeInterval():
            return False
        case Batched():
            return spec.within is not None


def column_text(name: str) -> str:
    """Return a column name as a spec writes it: bare where it can be, else in double quotes."""
    return name if _BARE.fullmatch(name) else _quoted(name, '"')


def decimal_text(amount: Fraction) -> str:
    """Return an exact decimal without exponent, ``Fraction(5, 2)`` as ``2.5``.

    Raises `ConfigError` where there is none (one third).
    """
    places = _decimal_places(amount)
    digits = str(abs(amount.numerator) * 10**places // amount.denominator).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if amount < 0 else "") + whole + ("." + part if part else "")


def _decimal_places(amount: Fraction) -> int:
    twos = (amount.denominator & -amount.denominator).bit_length() - 1
    rest, fives = amount.denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        raise ConfigError(f"the amount {amount} of a window has no exact decimal text", "use a decimal number")
    return max(twos, fives)


def _argument_text(argument: Argument) -> str:
    match argument:
        case Column():
            return str(argument)
        case Fraction():
            return decimal_text(argument)
        case str():
            return _quoted(argument, "'")


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


def _options(partitioned: bool, eviction: PartitionEviction | None) -> list[str]:
    return ["partitioned"] * partitioned + ([] if eviction is None else [str(eviction)])


def _ages(eviction: PartitionEviction | None) -> bool:
    return eviction is not None and eviction.kind == "partitionAge"


def _attribute(policy: Policy) -> str | None:
    match policy:
        case Delta() | Gap():
            return policy.attribute
        case Punct():
            return policy.column
        case Count() | Time() | Calendar():
            return None
