"""What is known of a run before it, as values: those of ``plan --json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ....windowing.errors import ConfigError, WincliError
from ...run.steps import Action, UnitStep

Values = Mapping[str, Any]
"""A part of a forecast as it is in the JSON object; the function that makes it says what its keys are."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do.

    ``way``: whether it is a run by itself, the next run on a state, or a range of units.
    ``output``: the output as the user wrote it.
    ``state``: the state, as the user wrote it; None without one.
    ``units``: the units in ascending order, those outside the range that run among them.
    ``reach``: how far corrections may reach, in words; None where nothing is corrected.
    ``shown``: the label of the unit that input and stages are those of; None without units.
    ``input``: the input, as `input_of` returns it; None where there is none to look at.
    ``stages``: the stages, in order, as `stage_of` returns them.
    ``jobs``: how many units run at the same time.
    ``why_one_by_one``: why units of a range cannot run at the same time, in words; None where they can, and without a
        range.
    ``notes``: what else the user should know.
    ``problem``: why the run would stop, at the first unit with the action ``stop`` or before it; None: it would not.
    """

    way: Literal["run", "next run", "range"]
    output: str
    state: str | None
    units: tuple[UnitStep, ...]
    reach: str | None = None
    shown: str | None = None
    input: Values | None = None
    stages: tuple[Values, ...] = ()
    jobs: int = 1
    why_one_by_one: str | None = None
    notes: tuple[str, ...] = ()
    problem: WincliError | None = None

    def having(self, *actions: Action) -> Sequence[UnitStep]:
        """Return the units with one of these actions."""
        return [unit for unit in self.units if unit.action in actions]


# What of an input a plan draws, from the options of the command.


_MOST_ROWS = 1000


def parse_choice(only: Sequence[str], rows: int) -> list[tuple[str, str]]:
    """Read ``COL=VALUE`` texts; several of one column are several values.

    Raises `ConfigError` for another form, or a number of rows to draw that is none.
    """
    pairs = [text.partition("=") for text in only]
    for text, (name, sign, _) in zip(only, pairs, strict=True):
        if not name or not sign:
            raise ConfigError(f"--only {text!r} is not COL=VALUE", "for example --only user=u7")
    if not 0 <= rows <= _MOST_ROWS:
        raise ConfigError(f"--rows {rows} is not from 0 to {_MOST_ROWS:,}", "0 draws nothing")
    return [(name, value) for name, _, value in pairs]
