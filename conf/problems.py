"""Problems of a job: where each one is, what is wrong, what to do; and one error for all of them."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from ..windowing.errors import ConfigError, MistakesError, SpecError, WincliError
from .job import SINGLE_KEYS
from .options import JOB_OPTIONS, STAGE_OPTIONS

Location = tuple[str | int, ...]
"""A location in a job file: ``("stages", 1, "agg", 0)``."""

_EXPRESSIONS = frozenset(
    each.name
    for each in (*STAGE_OPTIONS, *JOB_OPTIONS)
    if each.kind in ("distinct", "expectations", "expression", "lets")
)
"""The options whose texts are expressions: from such a text alone no one can tell which option it is of."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a job.

    ``at``: its location.
    ``line``: its line in the job file, from 1; None for a flag.
    ``error``: what is wrong, and what to do.
    ``named``: whether the text of ``error`` follows the name of the location.
    """

    at: Location
    line: int | None
    error: WincliError
    named: bool = True


def location(at: Location) -> str:
    """Return a location as messages write it: ``stages[1].agg[0]``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).lstrip(".")


def option(key: str) -> str:
    """Return the flag for a key of job files."""
    return "--" + key.replace("_", "-")


def with_keys(advice: str, keys: Container[str]) -> str:
    """Return an advice with keys of a job file in place of the flags for them: ``order_by:``."""

    def key(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return f"{name}:" if name in keys else found[0]

    return re.sub(r"--(?:no-)?([a-z][a-z-]*)", key, advice)


def as_error(problems: Sequence[Problem], path: str | None) -> WincliError:
    """Make one error of at least one problem: those of the job file ``path`` by line, then those of flags."""
    in_file = sorted((each for each in problems if each.line is not None), key=lambda each: each.line or 0)
    errors = [_of_file(each, path) for each in in_file] + [_of_flag(each) for each in problems if each.line is None]
    if len(errors) == 1:
        return errors[0]
    whose = path if len(in_file) == len(errors) else "the job"
    return MistakesError(f"{whose} has {len(errors)} mistakes", "mend them", errors)


def _of_file(problem: Problem, path: str | None) -> WincliError:
    error = problem.error
    name = f"{path}:{problem.line}: " + (location(problem.at) if problem.named else "")
    do = error.do and with_keys(error.do, SINGLE_KEYS)
    if isinstance(error, SpecError):
        return SpecError(f"{name}: {error.what}", error.source, error.span, do)
    return ConfigError(f"{name} {error.what}" if problem.named else name + error.what, do)


def _of_flag(problem: Problem) -> WincliError:
    error = problem.error
    if not problem.named:
        return error
    key = next(step for step in reversed(problem.at) if isinstance(step, str))
    if isinstance(error, SpecError):
        what = f"{option(key)}: {error.what}" if key in _EXPRESSIONS else error.what
        return SpecError(what, error.source, error.span, error.do)
    return ConfigError(f"{option(key)} {error.what}", error.do)
