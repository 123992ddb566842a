"""The window language as plain values: the content of a spec, without how it is computed.

``str`` of a window spec or an aggregate call is its canonical text, which `windowing.language.parser` parses to an
equal value; ``str`` of a policy or another part is its place in that text. The values check nothing: a spec made by
hand is valid iff ``parse_window(str(spec)) == spec``.

Durations are exact `Fraction` seconds; an amount of an attribute is in the attribute's own unit (seconds where
that is a timestamp).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from ..errors import Span, SpecError
from ..expressions.syntax import Expression
from ..expressions.tokens import quoted
from .calls import Distance, Policy
from .clock_policies import Calendar, Growing, Time
from .conditions import AnyOf, From, Reaches, Split, When, While
from .joins import Around, At, Join
from .patterns import RowPattern
from .row_policies import Changing, Count, Delta, Gap, Punct
from .tokens import column_text, decimal_text

__all__ = [  # the values of policies are part of the values of a spec
    "AggregateCall",
    "AggregateExpression",
    "AnyOf",
    "Argument",
    "Around",
    "At",
    "Batched",
    "Calendar",
    "Changing",
    "Column",
    "Count",
    "Delta",
    "Distance",
    "From",
    "Gap",
    "Growing",
    "Joined",
    "Lasting",
    "PartitionEviction",
    "Policy",
    "Punct",
    "Reaches",
    "RowPattern",
    "SideWindows",
    "Sliding",
    "SlidingPolicy",
    "Split",
    "TableWindows",
    "Time",
    "TimeInterval",
    "TriggerPolicy",
    "Tumbling",
    "When",
    "While",
    "WindowSpec",
    "default_name",
]


SlidingPolicy: TypeAlias = Count | Delta | Time
TriggerPolicy: TypeAlias = SlidingPolicy | When


@dataclass(frozen=True, slots=True)
class PartitionEviction:
    """Which keys are evicted (section 4).

    ``kind``: the rule.
    ``amount``: seconds for ``partitionAge``, else an integer of at least 1.
    """

    kind: Literal["partitionAge", "partitionCount", "tupleCount"]
    amount: Fraction

    @property
    def distances(self) -> tuple[Distance, ...]:
        return (Distance(None, self.amount),) if self.kind == "partitionAge" else ()

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

    @property
    def distances(self) -> tuple[Distance, ...]:
        return (*self.policy.distances, *(self.eviction.distances if self.eviction is not None else ()))

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
    trigger: TriggerPolicy = Count(1)  # noqa: RUF009 - frozen
    partitioned: bool = False
    eviction: PartitionEviction | None = None

    @property
    def distances(self) -> tuple[Distance, ...]:
        return (
            *self.evict.distances,
            *self.trigger.distances,
            *(self.eviction.distances if self.eviction is not None else ()),
        )

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

    @property
    def distances(self) -> tuple[Distance, ...]:
        return tuple(Distance(None, amount) for amount in (self.duration, self.period, self.discard_age, self.offset))

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

    @property
    def distances(self) -> tuple[Distance, ...]:
        return (
            ()
            if self.within is None
            else (Distance(None, self.within), *([] if self.every is None else [Distance(None, self.every)]))
        )

    def __str__(self) -> str:
        every = [] if self.every is None else [f"every {decimal_text(Fraction(self.every))}"]
        retain = [] if self.retain is None else [f"retain {self.retain}"]
        words = [f"partition by {', '.join(map(column_text, self.partition_by))}"] if self.partition_by else []
        words += [*retain, *every] if self.within is None else [f"within {decimal_text(self.within)}", *every, *retain]
        words += ["retain all"] if self.retain_all else []
        words += [] if self.unique is None else [f"with unique {column_text(self.unique)}"]
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class TableWindows:
    """``table(NAME) [, partitioned]``: each row of a table is a window (section 17).

    ``name``: what the option ``--windows`` calls the table.
    ``partitioned``: as in `Tumbling`.
    """

    name: str
    partitioned: bool = False

    @property
    def distances(self) -> tuple[Distance, ...]:
        return ()

    def __str__(self) -> str:
        return ", ".join([f"table({column_text(self.name)})", *_options(self.partitioned, None)])


@dataclass(frozen=True, slots=True)
class Lasting:
    """A window over rows that last (section 18). Its text is that of the window: the option ``--ends`` says the rest.

    ``window``: a window that the clock ends.
    ``ends``: the column that says until when a row lasts.
    """

    window: Tumbling | TableWindows
    ends: str

    @property
    def distances(self) -> tuple[Distance, ...]:
        return self.window.distances

    def __str__(self) -> str:
        return str(self.window)


@dataclass(frozen=True, slots=True)
class SideWindows:
    """``SIDE join SIDE``: a window on each side (16.6).

    ``left``, ``right``: both `Sliding` with an eviction alone, or both `Batched`.
    """

    left: Sliding | Batched
    right: Sliding | Batched

    @property
    def held(self) -> tuple[SlidingPolicy | Batched, SlidingPolicy | Batched]:
        """What says which rows each side holds, the left first."""
        left, right = (side.evict if isinstance(side, Sliding) else side for side in (self.left, self.right))
        return left, right

    @property
    def distances(self) -> tuple[Distance, ...]:
        """Those of both sides; a column of the right has its own name."""
        return tuple(distance for side in self.held for distance in side.distances)

    def __str__(self) -> str:
        left, right = self.held
        return f"{'sliding, ' if isinstance(self.left, Sliding) else ''}{left} join {right}"


@dataclass(frozen=True, slots=True)
class Joined:
    """A window over both sides of a join. Its text is that of the window: ``--join`` says the rest.

    ``window``: `Around`, `At`, `SideWindows`, or a window of one input over the one sequence (16.7, ``union``).
    ``join``: of the request what windows depend on: its `Join`.
    """

    window: WindowSpec
    join: Join

    @property
    def distances(self) -> tuple[Distance, ...]:
        """Those of the window, over the columns of the one sequence."""
        if not isinstance(self.window, SideWindows):
            return self.window.distances
        left, right = self.window.held
        stored = (each._replace(column=each.column and self.join.stored(each.column)) for each in right.distances)
        return (*left.distances, *stored)

    def __str__(self) -> str:
        return str(self.window)


WindowSpec: TypeAlias = (
    Tumbling
    | Sliding
    | TimeInterval
    | Batched
    | TableWindows
    | Lasting
    | RowPattern
    | Around
    | At
    | SideWindows
    | Joined
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column in the arguments of an aggregate.

    ``name``: its name.
    """

    name: str

    def __str__(self) -> str:
        return column_text(self.name)


Argument: TypeAlias = Column | Expression | Fraction | str


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """``NAME=FUNCTION(ARGUMENTS)``, with the canonical name of a built-in function (section 9).

    ``name``: the output column.
    ``function``: a lower-case name, or ``module:name`` in its own case; it need not exist.
    ``arguments``: columns, expressions, numbers (Fraction) and texts (str).
    ``where``: the condition of the rows that it looks at (section 11); None: all rows of the pane.
    ``fills``: whether it stands in ``locf(..)``: where it is null, its last value that was not is taken.
    """

    name: str
    function: str
    arguments: tuple[Argument, ...] = ()
    where: Expression | None = None
    fills: bool = False

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        return (self,)

    @property
    def unfilled(self) -> str:
        """Its text without ``locf(..)``."""
        where = "" if self.where is None else f" where {self.where}"
        return f"{self.function}({', '.join(map(_argument_text, self.arguments))}){where}"

    @property
    def text(self) -> str:
        return f"locf({self.unfilled})" if self.fills else self.unfilled

    def error(self, what: str, number: int, do: str | None = None) -> SpecError:
        """Return (not raise) an error about the argument with this number."""
        texts = [*map(_argument_text, self.arguments)]
        start = len(self.function) + 1 + sum(len(text) + 2 for text in texts[:number])
        return SpecError(what, self.unfilled, Span(start, start + len(texts[number])), do)

    def __str__(self) -> str:
        return f"{column_text(self.name)}={self.text}"


@dataclass(frozen=True, slots=True)
class AggregateExpression:
    """``NAME=EXPRESSION`` over aggregates (section 11).

    ``name``: the output column.
    ``calls``: the aggregates, each once, under names that begin with ``=``.
    ``expression``: the expression, in which columns of these names stand for them.
    """

    name: str
    calls: tuple[AggregateCall, ...]
    expression: Expression


HIDDEN = "="
"""What the names of columns begin with that nobody has named, and no result shows."""


def hidden_call(call: AggregateCall) -> AggregateCall:
    """Return a call under the name of a column that no result shows."""
    return replace(call, name=HIDDEN + call.text)


def default_name(function: str, arguments: Iterable[Argument]) -> str:
    """Return the output column of an aggregate without a name.

    The function (without its module), columns, numbers and texts, joined by ``_``: ``count``, ``sum_amount``,
    ``quantile_latency_0.95``. Of an expression its words and numbers: ``sum_price_items``.
    """
    words = [_word(argument) for argument in arguments]
    return "_".join([function.rpartition(":")[2], *words])


def _word(argument: Argument) -> str:
    match argument:
        case Column():
            return argument.name
        case Fraction():
            return decimal_text(argument)
        case str():
            return argument
        case _:
            return "_".join(re.findall(r"\w+", str(argument)))


def _argument_text(argument: Argument) -> str:
    match argument:
        case Fraction():
            return decimal_text(argument)
        case str():
            return quoted(argument, "'")
        case _:
            return str(argument)


def _options(partitioned: bool, eviction: PartitionEviction | None) -> list[str]:
    return ["partitioned"] * partitioned + ([] if eviction is None else [str(eviction)])
