"""A job made of flags and a job file: put together, checked, and all mistakes told at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from ..windowing.errors import ConfigError, WincliError, printable
from ..windowing.support.redaction import MASK, is_secret
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
    """Make the job from ``flags`` (None and empty ones were not given) and a job file.

    ``read_types`` reads column types, or raises a `SpecError`. Raises `SpecError` or `ConfigError` with every mistake:
    the line of the file or the flag, what is wrong, and what it may be.
    """
    given = {name: value for name, value in flags.items() if value not in (None, [], {})}
    said: dict[str, Any] = dict(file.values) if file else {}
    options = layered(given, said)
    job, unfit = _validated(options)
    found = [*_no_utf8(options), *_beside_stages(given, said), *unfit, *_types(options, read_types)]
    found += check_together(options, said.get("stages", ()))
    mistakes = list(file.problems) if file else []
    for mistake in _with_lines(found, given, file):
        if not _is_reported(mistake.at, mistakes):
            mistakes.append(mistake)
    if mistakes:
        raise as_error(mistakes, file.path if file else None)
    assert job is not None, "what is not valid is a mistake"
    return job


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Read ``K=V`` pairs of ``--spark-conf``."""
    settings = {}
    for pair in texts:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            told = re.split(r"[^\w.-]", pair, maxsplit=1)[0] + MASK if is_secret(pair) else pair
            raise ConfigError(f"--spark-conf {told!r} is not K=V", "write --spark-conf spark.executor.memory=4g")
        settings[name.strip()] = value.strip()
    return settings


def _no_utf8(options: Mapping[str, Any]) -> Iterator[Problem]:
    """Texts with bytes that are no UTF-8: no manifest can hold them."""
    for name, value in options.items():
        for at, text in _texts((name,), value):
            if text != (told := printable(text)):
                do = "rename it, or name the folder that it is in" if name == "input" else "write it in UTF-8"
                yield Problem(at, None, ConfigError(f"{told} is no UTF-8", do))


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
    """What is wrong with a value, and whether that goes behind its name."""
    told = MASK if found["loc"][0] == "spark_conf" and is_secret(str(found["loc"][-1])) else short(repr(found["input"]))
    if found["type"] == "unfit":
        return found["ctx"]["error"], True
    if found["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", str(found["ctx"]["expected"]))
        return ConfigError(f"cannot be {short(repr(found['input']))}", did_you_mean(str(found["input"]), known)), True
    if found["type"] == "missing":
        return ConfigError(f"no {found['loc'][-1]} is given"), False
    if found["type"] == "too_short":
        return ConfigError("is empty", "name at least one"), True
    return ConfigError(f"cannot be {told}", found["msg"][:1].lower() + found["msg"][1:]), True


def _types(options: Mapping[str, Any], read_types: Callable[[str], object]) -> Iterator[Problem]:
    if options.get("schema"):
        try:
            read_types(options["schema"])
        except WincliError as error:
            yield Problem(("schema",), None, error)


def _beside_stages(flags: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[Problem]:
    for key in SINGLE_KEYS if "stages" in said else ():
        if key in flags and key not in SHARED_KEYS:
            do = f"leave it out (and WINCLI_{key.upper()}), or change the file"
            yield Problem((key,), None, ConfigError("is of a single window, and the job file has stages", do))


# Places


def _with_lines(found: Iterable[Problem], flags: Mapping[str, Any], file: JobFile | None) -> Iterator[Problem]:
    """Say of each mistake which line of the file it is in, if no flag is to blame."""
    for mistake in found:
        at = _location_in_file(mistake.at, flags, file)
        key = at[2] if at[0] == "stages" and len(at) > 2 else at[0]
        line = file.line(at) if file and key not in flags else None
        yield Problem(at, line, *_shown(mistake, at, is_flag=line is None))


def _location_in_file(at: Location, flags: Mapping[str, Any], file: JobFile | None) -> Location:
    """Where the user said it: at the top, if there are no stages or if they say nothing of it themselves."""
    if at[0] != "stages" or len(at) < 3:
        return at
    lines = file.lines if file else {}
    is_shared = at[2] in SHARED_KEYS and at[:3] not in lines and at[2:3] in lines
    return at[2:] if "stages" not in (file.values if file else {}) or at[2] in flags or is_shared else at


def _shown(mistake: Problem, at: Location, is_flag: bool) -> tuple[WincliError, bool]:
    """Say how to give what is missing."""
    key = str(at[-1])
    if mistake.named or key not in _EXAMPLES or mistake.error.do:
        return mistake.error, mistake.named
    how = option(key) if is_flag else f"{key}:"
    where = f" in {location(at[:-1])}" if len(at) > 1 else ""
    return ConfigError(f"{mistake.error.what}{where}", f"say {how} {_EXAMPLES[key].format(how)}"), False


def _is_reported(at: Location, mistakes: Iterable[Problem]) -> bool:
    """Whether a place, or what it stands in, has a mistake already: what else is wrong there comes of that."""
    return any(each.at == at[: len(each.at)] for each in mistakes)
