"""Builds a job from flags and a job file: merges them, checks the result, and reports all problems at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from ..windowing.errors import ConfigError, WincliError, printable
from ..windowing.support.addresses.redaction import MASK
from ..windowing.support.suggest import did_you_mean, short
from .job import SHARED_KEYS, SINGLE_KEYS, Job
from .job_checks import check_together
from .job_files.layers import layered
from .job_files.parser import JobFile
from .problems import Location, Problem, as_error, location, option

_EXAMPLES = {
    "window": "SPEC, for example {} 'delta(ts, 60)'",
    "input": "PATH, for example {} logs/",
    "output": "PATH, for example {} minutes/",
}


def make_job(flags: Mapping[str, Any], file: JobFile | None, read_types: Callable[[str], object]) -> Job:
    """Build the job from ``flags`` (those that are None or empty were not given) and a job file.

    ``read_types`` parses column types, or raises a `SpecError`. Raises `SpecError` or `ConfigError` with every problem:
    the line of the file or the flag, what is wrong, and what would be right.
    """
    given = {name: value for name, value in flags.items() if value not in (None, [], {})}
    in_file: dict[str, Any] = dict(file.values) if file else {}
    options = layered(given, in_file)
    job, unfit = _validated(options)
    found = [*_no_utf8(options), *_beside_stages(given, in_file), *unfit, *_types(options, read_types)]
    found += check_together(options, in_file.get("stages", ()))
    problems = list(file.problems) if file else []
    for problem in _with_lines(found, given, file):
        if not _is_reported(problem.at, problems):
            problems.append(problem)
    if problems:
        raise as_error(problems, file.path if file else None)
    assert job is not None, "a job that is not valid has a problem"
    return job


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Return the ``K=V`` pairs of ``--spark-conf`` as a mapping. Raises `ConfigError` for a text without ``=``."""
    settings = {}
    for pair in texts:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            name = re.split(r"[^\w.-]", pair, maxsplit=1)[0]
            shown = name if name == pair else name + MASK
            raise ConfigError(f"--spark-conf {shown!r} is not K=V", "write --spark-conf spark.executor.memory=4g")
        settings[name.strip()] = value.strip()
    return settings


def _no_utf8(options: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each text with bytes that are no UTF-8, which no manifest can hold."""
    for name, value in options.items():
        for at, text in _texts((name,), value):
            if text != (shown := printable(text)):
                do = "rename it, or name the folder that it is in" if name == "input" else "write it in UTF-8"
                yield Problem(at, None, ConfigError(f"{shown} is no UTF-8", do))


def _texts(at: Location, value: Any) -> Iterator[tuple[Location, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts((*at, str(key)), inner)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _texts((*at, index) if isinstance(inner, Mapping) else at, inner)


def _validated(options: Mapping[str, Any]) -> tuple[Job | None, list[Problem]]:
    try:
        return Job.model_validate(options), []
    except ValidationError as error:
        return None, [Problem(tuple(each["loc"]), None, *_error(each)) for each in error.errors()]


def _error(found: Mapping[str, Any]) -> tuple[WincliError, bool]:
    """Return the error of a value, and whether its text follows the name of the option."""
    shown = MASK if found["loc"][0] == "spark_conf" else short(repr(found["input"]))
    if found["type"] == "unfit":
        return found["ctx"]["error"], True
    if found["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", str(found["ctx"]["expected"]))
        return ConfigError(f"cannot be {short(repr(found['input']))}", did_you_mean(str(found["input"]), known)), True
    if found["type"] == "missing":
        return ConfigError(f"no {found['loc'][-1]} is given"), False
    if found["type"] == "too_short":
        return ConfigError("is empty", "name at least one"), True
    if found["type"] in ("greater_than_equal", "less_than_equal"):
        bound = "at least" if found["type"] == "greater_than_equal" else "at most"
        return ConfigError(f"cannot be {shown}", f"it is {bound} {next(iter(found['ctx'].values())):,}"), True
    return ConfigError(f"cannot be {shown}", found["msg"][:1].lower() + found["msg"][1:]), True


def _types(options: Mapping[str, Any], read_types: Callable[[str], object]) -> Iterator[Problem]:
    if options.get("schema"):
        try:
            read_types(options["schema"])
        except WincliError as error:
            yield Problem(("schema",), None, error)


def _beside_stages(flags: Mapping[str, Any], in_file: Mapping[str, Any]) -> Iterator[Problem]:
    for key in SINGLE_KEYS if "stages" in in_file else ():
        if key in flags and key not in SHARED_KEYS:
            do = f"leave it out (and WINCLI_{key.upper()}), or change the file"
            yield Problem((key,), None, ConfigError("is of a single window, and the job file has stages", do))


# Places


def _with_lines(found: Iterable[Problem], flags: Mapping[str, Any], file: JobFile | None) -> Iterator[Problem]:
    """Yield each problem with its line in the file, or without one if a flag caused it."""
    for problem in found:
        at = _location_in_file(problem.at, flags, file)
        key = at[2] if at[0] == "stages" and len(at) > 2 else at[0]
        line = file.line(at) if file and key not in flags else None
        yield Problem(at, line, *_shown(problem, at, is_flag=line is None))


def _location_in_file(at: Location, flags: Mapping[str, Any], file: JobFile | None) -> Location:
    """Return where the user gave a value: at the top, if the file has no stages or if these do not set the key."""
    if at[0] != "stages" or len(at) < 3:
        return at
    lines = file.lines if file else {}
    is_shared = at[2] in SHARED_KEYS and at[:3] not in lines and at[2:3] in lines
    return at[2:] if "stages" not in (file.values if file else {}) or at[2] in flags or is_shared else at


def _shown(problem: Problem, at: Location, is_flag: bool) -> tuple[WincliError, bool]:
    """Return the error of a problem, with advice on how to give a missing value, and whether it is named."""
    key = str(at[-1])
    if problem.named or key not in _EXAMPLES or problem.error.do:
        return problem.error, problem.named
    how = option(key) if is_flag else f"{key}:"
    where = f" in {location(at[:-1])}" if len(at) > 1 else ""
    return ConfigError(f"{problem.error.what}{where}", f"say {how} {_EXAMPLES[key].format(how)}"), False


def _is_reported(at: Location, problems: Iterable[Problem]) -> bool:
    """Whether a location, or one that contains it, has a problem already, of which any other is a consequence."""
    return any(each.at == at[: len(each.at)] for each in problems)
