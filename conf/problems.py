"""What is wrong with a job, all of it at once: where it was said, and what to do."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from ..windowing.errors import ConfigError, MistakesError, SpecError, WincliError
from .job import SINGLE_KEYS

Location = tuple[str | int, ...]
"""Where something is said in a job file: ``("stages", 1, "agg", 0)``."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: ``line`` is that of the job file, or None for what a flag says.

    ``named``: the words of ``error`` go behind the name of what stands ``at``.
    """

    at: Location
    line: int | None
    error: WincliError
    named: bool = True


def location(at: Location) -> str:
    """Write a place as messages do: ``stages[1].agg[0]``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).lstrip(".")


def option(key: str) -> str:
    """Return the flag that says what a job file says with ``key``."""
    return "--" + key.replace("_", "-")


def with_keys(advice: str, keys: Container[str]) -> str:
    """Return an advice with keys of a job file in place of the flags that say the same: ``order_by:``."""

    def key(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return f"{name}:" if name in keys else found[0]

    return re.sub(r"--(?:no-)?([a-z][a-z-]*)", key, advice)


def as_error(mistakes: Sequence[Problem], path: str | None) -> WincliError:
    """Make one error of at least one mistake: those of the job file ``path`` by line, then those of flags."""
    in_file = sorted((each for each in mistakes if each.line is not None), key=lambda each: each.line or 0)
    errors = [_of_file(each, path) for each in in_file] + [_of_flag(each) for each in mistakes if each.line is None]
    if len(errors) == 1:
        return errors[0]
    whose = path if len(in_file) == len(errors) else "the job"
    return MistakesError(f"{whose} has {len(errors)} mistakes", "mend them", errors)


def _of_file(mistake: Problem, path: str | None) -> WincliError:
    error = mistake.error
    name = f"{path}:{mistake.line}: " + (location(mistake.at) if mistake.named else "")
    do = error.do and with_keys(error.do, SINGLE_KEYS)
    if isinstance(error, SpecError):
        return SpecError(f"{name}: {error.what}", error.source, error.span, do)
    return ConfigError(f"{name} {error.what}" if mistake.named else name + error.what, do)


def _of_flag(mistake: Problem) -> WincliError:
    """A spec error draws its caret, which shows what was said, so it needs no name."""
    error = mistake.error
    if isinstance(error, SpecError) or not mistake.named:
        return error
    key = next(step for step in reversed(mistake.at) if isinstance(step, str))
    return ConfigError(f"{option(key)} {error.what}", error.do)
