"""The parsed job request: options, variables and job file, parsed and checked before any input is opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ...conf.job import PIPE, SHARED_KEYS, SINGLE_KEYS, Job, Stage, plain_path, with_table_outputs
from ...conf.job_builder import make_job, pairs
from ...conf.job_file import ONLY, given_variables, read_job_file
from ...conf.option_values import window_value
from ...conf.ranges import as_glob
from ...conf.yaml_nodes import with_keys
from ...readers.options import ReadOptions, parse_schema
from ...windowing.errors import ConfigError, WincliError
from ...windowing.language.aggregates import ALIASES, alias_of
from ...windowing.language.enrichment import Enrichment, parse_enrichment
from ...windowing.language.options import WINDOW_OPTIONS, Options
from ...windowing.language.parser import parse_aggregate, parse_window
from ...windowing.language.spec import AggregateCall, AggregateExpression, WindowSpec


@dataclass(frozen=True, slots=True)
class StageRequest:
    """The parsed request for one stage.

    ``stage``: the stage as the job has it.
    ``spec``: its window.
    ``calls``: its aggregates; None for ``count()``.
    ``options``: the options of its window.
    """

    stage: Stage
    spec: WindowSpec
    calls: tuple[AggregateCall | AggregateExpression, ...] | None
    options: Options


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The parsed request for a job. To parse it imports no heavy module.

    ``job``: the job.
    ``stages``: the requests for its stages, in the order of the job.
    ``reading``: the options of the readers.
    ``enrichments``: the tables that the rows of the input get columns of; in a range those of the unit.
    ``notes``: notes to the user on how options were understood.
    ``stdout``: the folder that holds the result before it is sent to stdout; None where OUT is a folder.
    ``file``: the job file; None where there is none.
    """

    job: Job
    stages: tuple[StageRequest, ...]
    reading: ReadOptions
    enrichments: tuple[Enrichment, ...] = ()
    notes: tuple[str, ...] = ()
    stdout: str | None = None
    file: str | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.job.input if self.reading.stdin is None else (self.reading.stdin,)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs as the job names them: those of stages, then the output of the job itself."""
        own = (stage.output for stage in self.job.stages[:-1] if stage.output is not None)
        return *own, self.job.output

    @property
    def read_besides(self) -> tuple[tuple[str, str], ...]:
        tables = (("enrich table", each.path) for each in self.enrichments)
        return *tables, *((("job file", self.file),) if self.file else ())

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """All that the job reads and writes, in words and as a path, glob or URI; ``{date}`` is a wildcard."""
        state = (("the state", self.job.state),) if self.job.state else ()
        named = (
            *(("the input", path) for path in self.job.input if path != PIPE),
            *((f"the {what}", path) for what, path in self.read_besides),
            *(("the output", plain_path(path)) for path in self.outputs if path != PIPE),
            *state,
        )
        return tuple((what, as_glob(path)) for what, path in named)

    @property
    def shown_output(self) -> str:
        return plain_path(self.job.output)

    @property
    def is_piped(self) -> bool:
        """Whether the job reads stdin or writes stdout: then nobody can know whether the same was done before."""
        return PIPE in self.job.input or self.job.output == PIPE

    @property
    def runs_user_code(self) -> bool:
        calls = [call for stage in self.stages for item in stage.calls or () for call in item.calls]
        return any(stage.options.operator for stage in self.stages) or any(":" in call.function for call in calls)

    def with_stages(self, stages: Sequence[StageRequest]) -> JobRequest:
        """Return the request with other stages, which the job has then, too."""
        job = self.job.model_copy(update={"stages": tuple(each.stage for each in stages)})
        return replace(self, job=job, stages=tuple(stages))

    def with_stage_outputs(self, outputs: Iterable[str]) -> JobRequest:
        """Return the request with other outputs of those stages that have one, in the order of the stages."""
        left = iter(outputs)
        return self.with_stages(
            [
                each
                if each.stage.output is None
                else replace(each, stage=each.stage.model_copy(update={"output": next(left)}))
                for each in self.stages
            ]
        )


def parse_request(options: Mapping[str, Any]) -> JobRequest:
    """Parse the options of ``wincli run``; the first of ``paths`` may be a job file.

    Raises `SpecError` or `ConfigError`: one error with all mistakes.
    """
    flags = dict(options)
    path, named = _arguments(flags.pop("paths", None) or ())
    variables = given_variables(flags.pop("var", None) or ())
    if variables and path is None:
        what = f"--var {next(iter(variables))} is for a job file, and none is named"
        raise ConfigError(what, "name a job file before IN and OUT, or leave --var out")
    flags["spark_conf"] = pairs(flags.get("spark_conf") or ())
    request = request_of(make_job({**flags, **named}, read_job_file(path, variables) if path else None, parse_schema))
    called = [alias_of(text) for stage in request.job.stages for text in stage.agg]
    names = dict.fromkeys(name for name in called if name is not None)
    notes = tuple(f"{name} is called {ALIASES[name]} here, and so is its column" for name in names)
    return replace(request, notes=notes, file=path)


def request_of(job: Job) -> JobRequest:
    """Parse a job. Raises `SpecError` and `ConfigError` as `parse_request` does."""
    job = with_table_outputs(job)
    column_types = parse_schema(job.column_types) if job.column_types else ()
    reading = ReadOptions(
        job.input_format,
        column_types,
        job.multiline,
        job.delimiter,
        job.file_order,
        job.split_size,
        skip_unreadable=job.skip_unreadable,
        version=job.table_version,
        limit=job.limit,
    )
    stages = []
    for stage in job.stages:
        calls = tuple(map(parse_aggregate, stage.agg)) or None
        values = {each.attribute: window_value(each, getattr(stage, each.attribute)) for each in WINDOW_OPTIONS}
        spec, options = parse_window(stage.window), Options(**values, plain=stage.plain, max_rows=job.max_rows_out)
        stages.append(StageRequest(stage, spec, calls, options))
    return JobRequest(job, tuple(stages), reading, tuple(map(parse_enrichment, job.enrich)))


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


def stage_prefix(request: JobRequest, stage: str) -> str:
    """Return the beginning of a message about a stage: ``stage sites: ``, or nothing where the job has only one."""
    return f"stage {stage}: " if len(request.stages) > 1 else ""


def with_stage_keys(request: JobRequest, advice: str) -> str:
    """Return an advice with keys of a stage in place of flags, where only a stage in a job file can set them."""
    has_stages = len(request.stages) > 1 or request.stages[0].stage.name != ONLY
    return with_keys(advice, _STAGE_KEYS) if has_stages else advice


@contextmanager
def naming_stage(request: JobRequest, stage: str) -> Iterator[None]:
    """Add to every `WincliError` of the body the name of its stage; its advice then names keys of the stage."""
    try:
        yield
    except WincliError as error:
        error.what = stage_prefix(request, stage) + error.what
        error.do = error.do and with_stage_keys(request, error.do)
        raise
