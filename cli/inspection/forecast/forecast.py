"""What is known of a run before it, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ....windowing.errors import ConfigError, WincliError

Action = Literal["run", "may run", "skip", "gap", "stop"]
"""What happens to a unit: it runs; it runs if a correction reaches it; it is done; it has no input; the run stops."""


@dataclass(frozen=True, slots=True)
class UnitForecast:
    """What a run does with a unit of a range, or with its whole input where there is no range.

    ``label``: the label of the unit; None for a run without a state or a range.
    ``action``: what happens to it.
    ``why``: the reason, in words.
    ``files``: number of files of its input; 0 where it was not looked at.
    ``nbytes``: bytes of these files.
    ``is_again``: whether it was done before.
    """

    label: str | None
    action: Action
    why: str
    files: int = 0
    nbytes: int = 0
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class ColumnForecast:
    """A column of the input or of the output.

    ``name``: its name.
    ``type``: its Arrow type.
    ``origin``: where its type comes from (input), or what it holds (output), in words.
    """

    name: str
    type: str
    origin: str


@dataclass(frozen=True, slots=True)
class InputForecast:
    """The input that the job, or the first unit that runs, reads.

    ``paths``: as the job names them.
    ``files``: number of files.
    ``first``, ``last``: the first and the last of them, in arrival order.
    ``nbytes``: their bytes.
    ``rows``: their rows, those of a text format counted.
    ``columns``: all columns, also those of expressions.
    ``skipped``: the unreadable paths that are passed over, each with its reason.
    ``cut_at``: how many rows are read, where there are more than the limit of the job; else None.
    """

    paths: tuple[str, ...]
    files: int
    first: str
    last: str
    nbytes: int
    rows: int
    columns: tuple[ColumnForecast, ...]
    skipped: tuple[str, ...] = ()
    cut_at: int | None = None


@dataclass(frozen=True, slots=True)
class StrategyForecast:
    """How a stage will be computed.

    ``name``: the name of the strategy, as ``-v`` has it.
    ``why``: the reason, in words.
    ``chunks``: number of chunks, the inputs of map tasks.
    ``slices``: of an exchange, about how many slices, the inputs of scan tasks; None where only the cluster knows.
    ``memory``: what the largest window takes that one task has to hold, in words; None where it is not large.
    """

    name: str
    why: str
    chunks: int
    slices: int | None
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class StageForecast:
    """A stage.

    ``name``: its name.
    ``window``: the canonical text of its window.
    ``sentences``: the window in English, a sentence for each clause.
    ``key``: the key columns.
    ``order``: the order columns; none means arrival order.
    ``order_why``: why these.
    ``clock``: the column of the clock, where the window uses one.
    ``marks``: where window marks come from, in words; None where the window takes none.
    ``strategy``: how it is computed; None before a sample was taken, where that depends on a stage before it, or on
        tables that are too large for a sample.
    ``output``: where its rows are written; None for a stage whose rows only the next one reads.
    ``format``: the format of the output.
    ``columns``: the columns of its result.
    """

    name: str
    window: str
    sentences: tuple[str, ...]
    key: tuple[str, ...]
    order: tuple[str, ...]
    order_why: str
    clock: str | None
    marks: str | None
    strategy: StrategyForecast | None
    output: str | None
    format: str
    columns: tuple[ColumnForecast, ...]


@dataclass(frozen=True, slots=True)
class ExpectedTime:
    """The seconds that a run may take, from what earlier runs of the job took.

    ``seconds``: of all units that run, without those that may.
    ``at_most``: the same with the units that may run; equal where there are none.
    ``runs``: how many earlier runs that comes from.
    ``is_far``: whether a unit is more than four times as large as any of these runs.
    """

    seconds: float
    at_most: float
    runs: int
    is_far: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do.

    ``way``: whether it is a run by itself, the next run on a state, or a range of units.
    ``output``: the output as the user wrote it.
    ``state``: the state, as the user wrote it; None without one.
    ``units``: the units in ascending order, those outside the range that run among them.
    ``reach``: how far corrections may reach, in words; None where nothing is corrected.
    ``shown``: the label of the unit that input and stages are those of; None without units.
    ``input``: the input; None where there is none to look at.
    ``stages``: the stages, in order.
    ``expected``: the seconds that it may take; None where no earlier run gives an estimate.
    ``jobs``: how many units run at the same time.
    ``why_one_by_one``: why units of a range cannot run at the same time, in words; None where they can, and without a
        range.
    ``notes``: what else the user should know.
    ``problem``: why the run would stop, at the first unit with the action ``stop`` or before it; None: it would not.
    """

    way: Literal["run", "next run", "range"]
    output: str
    state: str | None
    units: tuple[UnitForecast, ...]
    reach: str | None = None
    shown: str | None = None
    input: InputForecast | None = None
    stages: tuple[StageForecast, ...] = ()
    expected: ExpectedTime | None = None
    jobs: int = 1
    why_one_by_one: str | None = None
    notes: tuple[str, ...] = ()
    problem: WincliError | None = None

    def with_strategy(self, strategy: StrategyForecast | None) -> Forecast:
        """Return the forecast with how its first stage is computed."""
        if not self.stages or strategy is None:
            return self
        first, *others = self.stages
        return replace(self, stages=(replace(first, strategy=strategy), *others))

    def having(self, *actions: Action) -> Sequence[UnitForecast]:
        """Return the units with one of these actions."""
        return [unit for unit in self.units if unit.action in actions]


# What of an input a plan draws, from the options of the command.


_MOST_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Choice:
    """What of the input is drawn.

    ``only``: pairs of a key column and a value, as text; several of one column are several values.
    ``rows``: how many rows; 0: nothing is drawn.
    """

    only: tuple[tuple[str, str], ...]
    rows: int

    @staticmethod
    def of(only: Sequence[str], rows: int) -> Choice:
        """Read ``COL=VALUE`` texts. Raises `ConfigError` for another form, or a number of rows that is none."""
        pairs = [text.partition("=") for text in only]
        for text, (name, sign, _) in zip(only, pairs, strict=True):
            if not name or not sign:
                raise ConfigError(f"--only {text!r} is not COL=VALUE", "for example --only user=u7")
        if not 0 <= rows <= _MOST_ROWS:
            raise ConfigError(f"--rows {rows} is not from 0 to {_MOST_ROWS:,}", "0 draws nothing")
        return Choice(tuple((name, value) for name, _, value in pairs), rows)
