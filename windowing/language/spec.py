"""The window language as plain values: the content of a spec, without how it is computed.

``str`` of a window spec or an aggregate call is its canonical text, which `windowing.language.parser` parses to an
equal value; ``str`` of a policy or another part is its place in that text. The values check nothing: a spec made by
hand is valid iff ``parse_window(str(spec)) == spec``.

Durations are exact `Fraction` seconds; an amount of an attribute is in the attribute's own unit (seconds where
that is a timestamp).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from .canonical import column_text, decimal_text, quoted


@dataclass(frozen=True, slots=True)
class Count:
    """``count(n)``: n rows (sections 2 and 3).

    ``n``: at least 1; also 0 where it is the eviction of a sliding window.
    """

    n: int

    def __str__(self) -> str:
        return f"count({self.n})"


@dataclass(frozen=True, slots=True)
class Delta:
    """``delta(attribute, amount)``: more than an amount above an earlier row's value (sections 2 and 3).

    ``attribute``: the column that is compared.
    ``amount``: at least 0.
    """

    attribute: str
    amount: Fraction

    def __str__(self) -> str:
        return f"delta({column_text(self.attribute)}, {decimal_text(self.amount)})"


@dataclass(frozen=True, slots=True)
class Time:
    """``time(seconds)``: a grid, an age or ticks on the clock (sections 2 and 3).

    ``seconds``: greater than 0.
    """

    seconds: Fraction

    def __str__(self) -> str:
        return f"time({decimal_text(self.seconds)})"


@dataclass(frozen=True, slots=True)
class Punct:
    """``punct()``: until a window mark; ``punct(column)``: until a row whose boolean column is true (section 2).

    ``column``: the boolean column; None for marks.
    """

    column: str | None = None

    def __str__(self) -> str:
        return f"punct({column_text(self.column) if self.column is not None else ''})"


@dataclass(frozen=True, slots=True)
class Gap:
    """``gap(attribute, amount)``: until a row more than an amount above the row before it (section 2).

    ``attribute``: the column that is compared.
    ``amount``: at least 0.
    """

    attribute: str
    amount: Fraction

    def __str__(self) -> str:
        return f"gap({column_text(self.attribute)}, {decimal_text(self.amount)})"


@dataclass(frozen=True, slots=True)
class Calendar:
    """``calendar(unit, tz, at)``: local days, weeks, months or years that begin at a time of day (section 2).

    ``unit``: day, week, month or year.
    ``tz``: a zone name of the tz database.
    ``at``: time of day in whole seconds, without a zone.
    ``start``: mon .. sun, the first day of a week; without meaning for other units.
    """

    unit: str
    tz: str = "UTC"
    at: dt.time = dt.time(0)
    start: str = "mon"

    def __str__(self) -> str:
        words = [f"week@{self.start}" if self.unit == "week" else self.unit]
        if self.tz != "UTC":
            words.append("tz=" + quoted(self.tz, '"'))
        if self.at != dt.time(0):
            words.append("at=" + self.at.isoformat("seconds" if self.at.second else "minutes"))
        return f"calendar({', '.join(words)})"


Policy: TypeAlias = Count | Delta | Time | Punct | Gap | Calendar
SlidingPolicy: TypeAlias = Count | Delta | Time


@dataclass(frozen=True, slots=True)
class PartitionEviction:
    """Which keys are evicted (section 4).

    ``kind``: the rule.
    ``amount``: seconds for ``partitionAge``, else an integer of at least 1.
    """

    kind: Literal["partitionAge", "partitionCount", "tupleCount"]
    amount: Fraction

    def __str__(self) -> str:
        return f"{self.kind}({decimal_text(self.amount)})"


@dataclass(frozen=True, slots=True)
class Tumbling:
    """``tumbling, POLICY [, partitioned] [, EVICTION]`` (sections 2 and 4).

    ``policy``: what ends a window.
    ``partitioned``: whether the spec says so; then a key is required.
    ``eviction``: the partition eviction, or None.
    """

    policy: Policy
    partitioned: bool = False
    eviction: PartitionEviction | None = None

    def __str__(self) -> str:
        return ", ".join(["tumbling", str(self.policy), *_options(self.partitioned, self.eviction)])


@dataclass(frozen=True, slots=True)
class Sliding:
    """``sliding, EVICT, TRIGGER [, partitioned] [, EVICTION]`` (sections 3 and 4).

    ``evict``: what evicts rows.
    ``trigger``: what emits panes.
    ``partitioned``: as in `Tumbling`.
    ``eviction``: as in `Tumbling`.
    """

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

    ``duration``: length of a pane in seconds, greater than 0.
    ``period``: distance between the starts of panes in seconds, greater than 0.
    ``discard_age``: how long a complete pane takes late rows, in seconds, at least 0.
    ``offset``: offset of the starts in seconds, at least 0, as written: it may be larger than ``period``.
    ``partitioned``: as in `Tumbling`.
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

    ``within``: seconds, greater than 0, or None.
    ``every``: Fraction seconds where ``within`` is given, else (with ``retain`` alone) an int number of rows; or None.
    ``retain``: a number of rows, at least 1, or None.
    ``retain_all``: whether all rows stay; then nothing else is given.
    ``unique``: the column of ``with unique``, or None.
    ``partition_by``: the columns of ``partition by``.
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
    """A column in the arguments of an aggregate.

    ``name``: its name.
    """

    name: str

    def __str__(self) -> str:
        return column_text(self.name)


Argument: TypeAlias = Column | Fraction | str


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """``NAME=FUNCTION(ARGUMENTS)``, with the canonical name of a built-in function (section 9).

    ``name``: the output column.
    ``function``: a lower-case name, or ``module:name`` in its own case; it need not exist.
    ``arguments``: columns, numbers (Fraction) and texts (str).
    """

    name: str
    function: str
    arguments: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        return f"{column_text(self.name)}={self.function}({', '.join(map(_argument_text, self.arguments))})"


def default_name(function: str, arguments: Iterable[Argument]) -> str:
    """Return the output column of an aggregate without a name.

    The function (without its module), columns, numbers and texts, joined by ``_``: ``count``, ``sum_amount``,
    ``quantile_latency_0.95``.
    """
    words = [a.name if isinstance(a, Column) else decimal_text(a) if isinstance(a, Fraction) else a for a in arguments]
    return "_".join([function.rpartition(":")[2], *words])


def attributes(spec: WindowSpec) -> tuple[str, ...]:
    """Return the columns that a spec names, without repeats, in the order of its canonical text."""
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

    True for time and calendar policies, ``within`` and ``partitionAge``. The clock of event-time panes is the event
    time, not the order column: their rows are in arrival order.
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


def _argument_text(argument: Argument) -> str:
    match argument:
        case Column():
            return str(argument)
        case Fraction():
            return decimal_text(argument)
        case str():
            return quoted(argument, "'")


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
