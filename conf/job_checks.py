"""Checks of keys of a job that depend on each other; none needs the input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..windowing.errors import ConfigError
from ..windowing.support.addresses.redaction import redacted, redacted_path
from ..windowing.support.formats import TABLE_FORMATS
from ..windowing.support.suggest import nearest, short
from .job import PIPE
from .problems import Location, Problem
from .ranges.path_templates import has_date
from .ranges.units import units

Values = Mapping[str, Any]
_PYTHON = "spark.pyspark.python"
_MASTER = re.compile(
    r"local(\[(\*|[1-9][0-9]*)(,\s*[0-9]+)?\])?|local-cluster\[\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\]"
    r"|yarn|spark://\S+:[0-9]+|k8s://\S+"
)


def check_together(job: Values, in_file: Sequence[Values]) -> Iterator[Problem]:
    """Yield a problem for each combination of values that is not allowed. The values themselves may be invalid, too.

    ``in_file``: the keys of each stage in the job file. The problems have no line; the caller adds it.
    """
    for index, stage in enumerate(job["stages"]):
        yield from _stage(("stages", index), stage, job)
    yield from _names([stage.get("name") for stage in job["stages"]])
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


def _stage(at: Location, stage: Values, job: Values) -> Iterator[Problem]:
    state = job.get("state")
    if stage.get("at_end") == "hold" and not state:
        what = "hold keeps open windows in a state, and there is none"
        yield _problem((*at, "at_end"), what, "name a state, or say flush or drop")


def _names(names: Sequence[Any]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name in names[:index]:
            at = ("stages", index, "name")
            yield _problem(at, f"{name!r} is the name of stages[{names.index(name)}], too", "name each stage apart")


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
    """Yield problems of paths: ``-`` needs a run without a state or range, and ``{date}`` needs a range."""
    given = job.get("input") or ()
    inputs = [given] if isinstance(given, str) else list(given)
    outputs = [(("stages", index, "output"), stage.get("output")) for index, stage in enumerate(in_file)]
    places = [(("output",), job.get("output")), (("state",), job.get("state")), *outputs]
    for at, path in [*((("input",), path) for path in inputs), *places]:
        if path and "://" not in path and (shown := redacted_path(path)) != path:
            what = f"{shown} is no address, and the name of no folder: a user or password stands in it, and no ://"
            yield _problem(at, what, "write SCHEME://BUCKET/PATH, and keep the keys in the environment")
        if path and has_date(path) and not (job.get("start") or job.get("end")):
            what = f"{path} is a template for units of a range, and there is no range"
            yield _problem(at, what, "say start and end, or write the date itself")
        if path == PIPE:
            yield from _pipe(at, job, len(inputs))


def _pipe(at: Location, job: Values, inputs: int) -> Iterator[Problem]:
    name = "stdin" if at == ("input",) else "stdout"
    if at[0] == "stages":
        yield _problem(at, "- is stdout, which only the output of the job can be", "name a folder")
    elif at == ("input",) and inputs > 1:
        yield _problem(at, "- is stdin, which is read alone", "name files only, or pipe all in: cat FILES |")
    elif job.get("state") or job.get("start"):
        other = "state" if job.get("state") else "range"
        yield _problem(at, f"- is {name}, which is there once and does not go with a {other}", "name files and folders")


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
    """Yield a problem where a first look would leave something from which later runs go on."""
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
