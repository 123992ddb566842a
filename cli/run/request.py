"""The job that options, variables and a job file ask for, checked before any input is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...conf.job import SHARED_KEYS, SINGLE_KEYS, Job
from ...conf.job_builder import ONLY, make_job, pairs
from ...conf.problems import with_keys
from ...readers.options import ReadOptions, parse_schema
from ...windowing.errors import ConfigError, WincliError
from ...windowing.language.aggregates import ALIASES, alias_of


def parse_job(options: Mapping[str, Any]) -> Job:
    """Parse the options of ``wincli run``; the first of ``paths`` may be a job file. It imports no heavy module.

    Raises `SpecError` or `ConfigError`: one error with all mistakes.
    """
    flags = dict(options)
    path, named = _arguments(flags.pop("paths", None) or ())
    file = None
    given = flags.pop("var", None) or ()
    if path or given:
        from ...conf.job_file import given_variables, read_job_file  # noqa: PLC0415 - loads yaml

        variables = given_variables(given)
        if variables and path is None:
            what = f"--var {next(iter(variables))} is for a job file, and none is named"
            raise ConfigError(what, "name a job file before IN and OUT, or leave --var out")
        file = read_job_file(path, variables) if path else None
    flags["spark_conf"] = pairs(flags.get("spark_conf") or ())
    return make_job({**flags, **named}, file, parse_schema).at(file=path)


def alias_notes(job: Job) -> list[str]:
    """Return notes to the user on aggregates that have another name here."""
    called = [alias_of(text) for stage in job.stages for text in stage.agg]
    names = dict.fromkeys(name for name in called if name is not None)
    return [f"{name} is called {ALIASES[name]} here, and so is its column" for name in names]


def read_options(job: Job) -> ReadOptions:
    """Return how the input of a job is read."""
    stdin = job.places.stdin
    return ReadOptions(
        job.input_format if stdin is None else stdin.format,
        parse_schema(job.column_types) if job.column_types else (),
        job.multiline,
        job.delimiter,
        job.file_order,
        job.split_size,
        job.places.bases,
        job.skip_unreadable,
        None if stdin is None else stdin.path,
        job.table_version,
        job.limit,
    )


def _arguments(paths: Sequence[str]) -> tuple[str | None, dict[str, Any]]:
    """Split ``[JOB.yaml] [IN].. [OUT]`` into the job file, known by its ending, and the options for input and output.

    The last of several paths is OUT. A single path is IN: then the job file must have an output.
    """
    has_file = bool(paths) and _is_job_file(paths[0])
    named = list(paths[has_file:])
    if late := next((path for path in named if _is_job_file(path)), None):
        raise ConfigError(f"{late} is not the first path", "name the job file before IN and OUT")
    if not has_file and len(named) < 2:
        what = f"there is no OUT behind {named[0]}" if named else "neither IN nor OUT is named"
        raise ConfigError(what, "write IN.. OUT, or name a job file")
    output = {"output": named.pop()} if len(named) > 1 else {}
    return paths[0] if has_file else None, {**({"input": named} if named else {}), **output}


def _is_job_file(path: str) -> bool:
    return path.lower().endswith((".yaml", ".yml"))


# Names of stages in messages, where a job has several stages.


_STAGE_KEYS = tuple(key for key in SINGLE_KEYS if key not in SHARED_KEYS)


def stage_prefix(job: Job, stage: str) -> str:
    """Return the beginning of a message about a stage: ``stage sites: ``, or nothing where the job has only one."""
    return f"stage {stage}: " if len(job.stages) > 1 else ""


def with_stage_keys(job: Job, advice: str) -> str:
    """Return an advice with keys of a stage in place of flags, where only a stage in a job file can set them."""
    has_stages = len(job.stages) > 1 or job.stages[0].name != ONLY
    return with_keys(advice, _STAGE_KEYS) if has_stages else advice


@contextmanager
def naming_stage(job: Job, stage: str) -> Iterator[None]:
    """Add to every `WincliError` of the body the name of its stage; its advice then names keys of the stage."""
    try:
        yield
    except WincliError as error:
        error.what = stage_prefix(job, stage) + error.what
        error.do = error.do and with_stage_keys(job, error.do)
        raise
