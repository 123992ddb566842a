"""Builds a job from flags and a job file: merges them, checks the result, and reports all problems at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..windowing.errors import ConfigError, WincliError, did_you_mean, nearest, printable, short
from ..windowing.language.spec import TableWindows
from ..windowing.support.address import Address
from ..windowing.support.formats import TABLE_FORMATS
from ..windowing.support.redaction import MASK, redacted, redacted_path
from .job import PIPE, SHARED_KEYS, SINGLE_KEYS, Job, RightSide, defaults, with_table_outputs
from .problems import Location, Problem, as_error, location, option
from .ranges import has_date, units

if TYPE_CHECKING:
    from .job_file import JobFile

# Checks of keys of a job that depend on each other; none needs the input.


Values = Mapping[str, Any]
_MOST_STAGES = 1000  # a chain of so many is planned in half a minute, and each more costs more
_PYTHON = "spark.pyspark.python"
_MASTER = re.compile(
    r"local(\[(\*|[1-9][0-9]*)(,\s*[0-9]+)?\])?|local-cluster\[\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\]"
    r"|yarn|spark://\S+:[0-9]+|k8s://\S+"
)


def check_together(job: Values, in_file: Sequence[Values]) -> Iterator[Problem]:
    """Yield a problem for each combination of values that is not allowed. The values themselves may be invalid, too.

    ``in_file``: the keys of each stage in the job file. The problems have no line; the caller adds it.
    """
    if len(job["stages"]) > _MOST_STAGES:
        what = f"are {len(job['stages']):,}, and each adds a column to the rows of all that follow"
        do = f"write at most {_MOST_STAGES:,}, and let another job go on from their result"
        yield _problem(("stages",), what, do)
    for index, stage in enumerate(job["stages"]):
        if stage.get("at_end") == "hold" and not job.get("state"):
            what = "hold keeps open windows in a state, and there is none"
            yield _problem(("stages", index, "at_end"), what, "name a state, or say flush or drop")
    first: dict[str, int] = {}
    for index, name in enumerate(stage.get("name") for stage in job["stages"]):
        if isinstance(name, str) and first.setdefault(name, index) != index:
            what = f"{name!r} is the name of stages[{first[name]}], too"
            yield _problem(("stages", index, "name"), what, "name each stage apart")
    yield from _outputs(in_file)
    yield from _range(job)
    yield from _paths(job, in_file)
    if job.get("output") == PIPE and job["stages"] and job["stages"][-1].get("partition_by"):
        at = (*(("stages", len(job["stages"]) - 1)), "partition_by")
        yield _problem(at, "writes folders, and stdout is one stream", "name a folder as OUT, or leave it out")
    if job.get("output") == PIPE and job["stages"] and job["stages"][-1].get("output_format") in TABLE_FORMATS:
        at = (*(("stages", len(job["stages"]) - 1)), "output_format")
        yield _problem(at, "is a table, and stdout is one stream", "name a folder as OUT, or another format")
    if job.get("confirm_effect") is not None and not (job.get("start") and job.get("end")):
        what = "is about the effect of a range, and there is none"
        yield _problem(("confirm_effect",), what, "name --start and --end, or leave it out")
    if job.get("ship_environment") and _PYTHON in (job.get("spark_conf") or {}):
        what = f"sends executors a Python, and {_PYTHON} names another"
        yield _problem(("ship_environment",), what, "leave out one of them")
    if job.get("input_version") is not None and job.get("input_snapshot") is not None:
        yield _problem(("input_snapshot",), "is the version of an Iceberg table, and input_version is given", "say one")
    yield from _master(job.get("master"))
    if job.get("limit") is not None:
        yield from _limit(job)
    if job.get("late") == "redo" and not job.get("state"):
        yield _problem(("late",), "redo runs again from a state, and there is none", "name a state, or say reject")


def _problem(at: Location, what: str, do: str) -> Problem:
    return Problem(at, None, ConfigError(what, do))


def _outputs(in_file: Sequence[Values]) -> Iterator[Problem]:
    for index, stage in enumerate(in_file):
        at = ("stages", index)
        is_last = index == len(in_file) - 1
        if is_last and "output" in stage:
            what = "is that of the last stage, which is written to the output of the job"
            yield _problem((*at, "output"), what, "say it beside stages, or as OUT")
        for key in ("output_format", "partition_by", "plain"):
            if key in stage and "output" not in stage and not is_last:
                yield _problem((*at, key), "is of no use, for the stage is not written", "say its output, too")


def _paths(job: Values, in_file: Sequence[Values]) -> Iterator[Problem]:
    """Yield problems of paths: ``-`` needs a run without a state or range, ``{date}`` a range; some texts are none."""
    given = job.get("input") or ()
    inputs = [given] if isinstance(given, str) else list(given)
    outputs = [(("stages", index, "output"), stage.get("output")) for index, stage in enumerate(in_file)]
    places = [*((("input",), path) for path in inputs), (("output",), job.get("output")), *outputs]
    for at, path in [*places, *(((key,), job.get(key)) for key in ("state", "metrics_file", "lineage"))]:
        if path is not None and (not path or "\0" in path):
            what = "has a path with a null byte" if path else "is an empty path"
            yield _problem(at, what, "name a file or folder")
        elif path and Address.of(path).is_path and (shown := redacted_path(path)) != path:
            what = f"{shown} is no address, and the name of no folder: a user or password stands in it, and no ://"
            yield _problem(at, what, "write SCHEME://BUCKET/PATH, and keep the keys in the environment")
    for at, path in places:
        if path and has_date(path) and not (job.get("start") or job.get("end")):
            what = f"{path} is a template for units of a range, and there is no range"
            yield _problem(at, what, "say start and end, or write the date itself")
        if path != PIPE:
            continue
        if at[0] == "stages":
            yield _problem(at, "- is stdout, which only the output of the job can be", "name a folder")
        elif at == ("input",) and len(inputs) > 1:
            yield _problem(at, "- is stdin, which is read alone", "name files only, or pipe all in: cat FILES |")
        elif job.get("state") or job.get("start"):
            name, other = "stdin" if at == ("input",) else "stdout", "state" if job.get("state") else "range"
            what = f"- is {name}, which is there once and does not go with a {other}"
            yield _problem(at, what, "name files and folders")


def _master(master: Any) -> Iterator[Problem]:
    """Yield a problem for a master that Spark would refuse once Java has started.

    Schemes that are like none of Spark's own may be those of a cluster manager that Spark loads.
    """
    if not isinstance(master, str) or _MASTER.fullmatch(master):
        return
    scheme, sign, _ = master.partition("://")
    if sign and nearest(scheme, ("spark", "k8s", "local", "yarn")) is None:
        return
    do = "say local[*], local[4], yarn, spark://HOST:7077 or k8s://URL"
    yield _problem(("master",), f"{short(redacted(master))!r} is no master that Spark knows", do)


def _limit(job: Values) -> Iterator[Problem]:
    if job.get("state"):
        what = "is for a first look, and a state goes on from all rows of each run"
        yield _problem(("limit",), what, "leave out the limit, or the state")
    elif job.get("start") or job.get("end"):
        what = "is for a first look at one input, and a range has an input for each unit"
        yield _problem(("limit",), what, "leave it out, or name the files of one unit without a range")


def _range(job: Values) -> Iterator[Problem]:
    start, end = job.get("start"), job.get("end")
    half = "a range is half open: start is the first of it, end the first after it"
    if start and not end:
        yield _problem(("start",), "needs an end", half)
    if end and not start:
        yield _problem(("end",), "needs a start", half)
    if job.get("jobs", 1) != 1 and not start and not end:
        yield _problem(("jobs",), "runs units of a range at the same time, and there is no range", "say start and end")
    if job.get("redo") and not start and not end:
        yield _problem(("redo",), "runs units of a range again, and there is no range", "say start and end")
    if start and end and job.get("unit") in ("hour", "day", "week"):
        try:
            units(start, end, job["unit"])
        except ConfigError as error:
            yield Problem(("end" if error.what.startswith("--end") else "start",), None, error, named=False)


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
    found: list[Problem] = []
    for name, value in options.items():
        for at, text in _texts((name,), value):
            if text != (shown := printable(text)):
                do = "rename it, or name the folder that it is in" if name == "input" else "write it in UTF-8"
                found.append(Problem(at, None, ConfigError(f"{shown} is no UTF-8", do)))
    for key in SINGLE_KEYS if "stages" in in_file else ():
        if key in given and key not in SHARED_KEYS:
            do = f"leave it out (and WINCLI_{key.upper()}), or change the file"
            error = ConfigError("is of a single window, and the job file has stages", do)
            found.append(Problem((key,), None, error))
    job: Job | None = None
    try:
        job = Job.model_validate(options)
    except ValidationError as error:
        found += [Problem(tuple(each["loc"]), None, *_error(each)) for each in error.errors()]
    if options.get("schema"):
        try:
            read_types(options["schema"])
        except WincliError as error:
            found.append(Problem(("schema",), None, error))
    found += check_together(options, in_file.get("stages", ()))
    problems = list(file.problems) if file else []
    for problem in _with_lines(found, given, file):
        if not any(each.at == problem.at[: len(each.at)] for each in problems):
            problems.append(problem)
    if problems:
        raise as_error(problems, file.path if file else None)
    assert job is not None, "a job that is not valid has a problem"
    _check_tables(job)
    return with_table_outputs(job)


def _check_tables(job: Job) -> None:
    """Raise `ConfigError` where windows lack their table, or a table its windows, or two tables have one name."""
    wanted = [stage.spec for stage in job.stages if isinstance(stage.spec, TableWindows)]
    names = [each.name for each in job.tables]
    for spec in wanted:
        if spec.name not in [each.name for each in job.window_tables]:
            do = f'--windows "{spec.name}=PATH [on KEY] from START to END"'
            raise ConfigError(f"table({spec.name}) needs its windows", f"say {do}")
    for each in job.tables:
        if not isinstance(each, RightSide):
            continue
        if names.count(each.name) > 1:
            raise ConfigError(f"--join {each.name} has the name of another log or table", "name it apart")
        if job.start is not None and not has_date(each.path):
            what = f"--join {each.name}: {each.path} has no {{date}}, and each unit of a range has rows of both sides"
            raise ConfigError(what, "write {date} in the path; a table that stays the same is for --enrich")
        if job.start is None and has_date(each.path):
            what = f"--join {each.name}: {each.path} is a template for units of a range, and there is no range"
            raise ConfigError(what, "say --start and --end, or write the date itself")
    for each in job.window_tables:
        if names.count(each.name) > 1:
            raise ConfigError(f"--windows {each.name} has the name of another table", "name it apart")
        if each.name not in [spec.name for spec in wanted]:
            do = f'write --window "table({each.name})", or leave it out'
            raise ConfigError(f"--windows {each.name} is used by no window", do)


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


def _texts(at: Location, value: Any) -> Iterator[tuple[Location, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts((*at, str(key)), inner)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _texts((*at, index) if isinstance(inner, Mapping) else at, inner)


def _error(found: Mapping[str, Any]) -> tuple[WincliError, bool]:
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


# Places


def _with_lines(found: Iterable[Problem], flags: Mapping[str, Any], file: JobFile | None) -> Iterator[Problem]:
    lines, in_file = (file.lines, file.values) if file else ({}, {})
    for problem in found:
        at = problem.at
        if at[0] == "stages" and len(at) > 2:  # at the top, if the file has no stages or if these do not set the key
            is_shared = at[2] in SHARED_KEYS and at[:3] not in lines and at[2:3] in lines
            at = at[2:] if "stages" not in in_file or at[2] in flags or is_shared else at
        key = at[2] if at[0] == "stages" and len(at) > 2 else at[0]
        line = file.line(at) if file and key not in flags else None
        yield Problem(at, line, *_shown(problem, at, is_flag=line is None))


def _shown(problem: Problem, at: Location, is_flag: bool) -> tuple[WincliError, bool]:
    key = str(at[-1])
    if problem.named or key not in _EXAMPLES or problem.error.do:
        return problem.error, problem.named
    how = option(key) if is_flag else f"{key}:"
    where = f" in {location(at[:-1])}" if len(at) > 1 else ""
    return ConfigError(f"{problem.error.what}{where}", f"say {how} {_EXAMPLES[key].format(how)}"), False


# The layers of settings: a flag (or its environment variable) overrides the job file, and that the defaults.
#
# Only this merges them. All values are plain values that are not checked yet.


_TO_STDOUT = {"output_format": "csv", "plain": True}  # a pipe is for rows, and marks have no meaning there
ONLY = "window"
"""The name of the stage in a job without ``stages``."""


def layered(flags: Values, in_file: Values) -> dict[str, Any]:
    """Return the values of a whole job: ``flags`` over the values ``in_file`` of a job file, over the defaults.

    Settings of Spark are merged one by one. With a state the default of ``at_end`` is ``hold`` for all stages. A result
    that goes to stdout is plain CSV by default.
    """
    given = {**in_file, **flags}
    base = {**defaults(), **({"at_end": "hold"} if given.get("state") else {})}
    last = {**base, **(_TO_STDOUT if given.get("output") == PIPE else {})}
    options = {**last, **given}
    if "spark_conf" in options:
        options["spark_conf"] = {**in_file.get("spark_conf", {}), **flags.get("spark_conf", {})}
    job = {key: value for key, value in options.items() if key not in SINGLE_KEYS and key != "stages"}
    if "stages" not in in_file:
        return {**job, "stages": [{"name": ONLY, **_window(options)}]}
    # A flag overrides a stage's own key, which overrides a key beside ``stages``.
    made, end = [], len(in_file["stages"]) - 1
    for index, own in enumerate(in_file["stages"]):
        shared = [key for key in SHARED_KEYS if key == "at_end" or index == end]
        beside, above = ({key: layer[key] for key in shared if key in layer} for layer in (in_file, flags))
        default = _window(last if index == end else base)
        made.append({**default, **beside, "name": f"stage-{index + 1}", **own, **above})
    return {**job, "stages": made}


def _window(options: Values) -> dict[str, Any]:
    return {key: options[key] for key in SINGLE_KEYS if key in options}
