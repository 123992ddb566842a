"""The model of a job, made from the declarations of its options: their types, defaults and descriptions.

The JSON Schema of job files shows the descriptions (`conf.job_file`). `conf.option_values` defines which values
are valid, and `conf.job_file` how flags and a job file become a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, create_model

from ..windowing.errors import ConfigError, SpecError
from ..windowing.language.distinct import parse_distinct
from ..windowing.language.enrichment import (
    BesideRows,
    Enrichment,
    WindowsFrom,
    parse_enrichment,
    parse_windows,
    with_path,
)
from ..windowing.language.joins import parse_join
from ..windowing.language.options import WINDOW_OPTIONS, Options
from ..windowing.language.parser import parse_aggregate, parse_window
from ..windowing.language.spec import AggregateCall, AggregateExpression, Joined, WindowSpec
from ..windowing.language.tokens import decimal_text
from ..windowing.support.formats import TABLE_FORMATS, AnyFormat
from ..windowing.support.option import REQUIRED, Option
from ..windowing.support.redaction import redacted, redacted_path, redacted_settings, secret_values
from .option_values import Texts, model_type, window_value
from .options import JOB_OPTIONS, STAGE_OPTIONS, JobKeys, StageKeys
from .ranges import as_glob


def _field(declared: Option) -> Any:
    more: dict[str, Any] = {"ge": declared.minimum, "le": declared.maximum, "description": declared.key_help}
    if declared.attribute != declared.name:
        more["alias"] = declared.name
    if declared.default is None:
        return model_type(declared) | None, Field(None, **more)
    is_given = declared.has_default or declared.default is REQUIRED
    return model_type(declared), Field(**more) if is_given else Field(declared.default, **more)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, of which nothing is known yet that was computed from the former ones."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[name]
        return copy


def _with_options(base: type[BaseModel], options: Iterable[Option]) -> type[BaseModel]:
    return create_model(base.__name__, __base__=base, **{each.attribute: _field(each) for each in options})


# The fields of models come from the declarations when this module is loaded. A type checker reads them from the classes
# of the declarations instead.

if TYPE_CHECKING:

    class _Stage(_Model, StageKeys):
        pass

else:
    _Stage = _with_options(_Model, STAGE_OPTIONS)


class Stage(_Stage):
    """One window of a job, as the user requested it; option names with ``-`` as ``_``.

    Each key has its own description. Only stages before the last have an ``output``: the last stage writes to that of
    the job. The options of the window are attributes, too, as texts; ``spec``, ``calls`` and ``options`` are their
    values, and raise `SpecError` or `ConfigError` where a text of a stage that was not checked is wrong.
    """

    @cached_property
    def spec(self) -> WindowSpec:
        window, join = parse_window(self.window), self.options.join
        return window if join is None else Joined(window, join)

    @cached_property
    def calls(self) -> tuple[AggregateCall | AggregateExpression, ...] | None:
        """The aggregates; None for ``count()``."""
        return tuple(map(parse_aggregate, self.agg)) or None

    @cached_property
    def options(self) -> Options:
        """The options of the window, without those that the job has for all stages."""
        values = {each.attribute: window_value(each, getattr(self, each.attribute)) for each in WINDOW_OPTIONS}
        return Options(**values, plain=self.plain)


class _Whole(_Model):
    input: Texts = Field(
        description="Files, folders (read recursively), globs or URIs; {date} stands for the unit of a range; "
        "- is stdin."
    )
    output: str = Field(
        description="The folder to write, whole or not at all; {date} stands for the unit of a range; - is stdout."
    )
    stages: tuple[Stage, ...] = Field(description="Windows, each over the result of the one before.")


if TYPE_CHECKING:

    class _Job(_Whole, JobKeys):
        pass

else:
    _Job = _with_options(_Whole, JOB_OPTIONS)


@dataclass(frozen=True, slots=True)
class RightSide:
    """The right side of a join, where that is another log: the name of the join, and where the log is."""

    name: str
    path: str


ReadBeside: TypeAlias = BesideRows | RightSide
"""A table, or the right side of a join, that a job reads beside its input."""
PIPE = "-"
"""As input: stdin; as output: stdout."""


class Stdin(NamedTuple):
    """The file that holds stdin, and the format that its bytes are of."""

    path: str
    format: AnyFormat


@dataclass(frozen=True, slots=True)
class Places:
    """Where one run finds and puts what its job names in another way; nothing of it is recorded.

    ``file``: the job file; None where there is none.
    ``stdin``: the file that holds stdin; None where it is not read, or not yet.
    ``stdout``: the folder that holds the result before it is sent to stdout; None where OUT is a folder.
    ``bases``: the folders below which folder names give columns, for a unit of a range.
    ``tables``: the tables that a unit of a range reads beside its input; None: those of the job.
    """

    file: str | None = field(default=None, compare=False)
    stdin: Stdin | None = None
    stdout: str | None = None
    bases: tuple[str, ...] = ()
    tables: tuple[ReadBeside, ...] | None = None


class Job(_Job):
    """One or more windows over one input, each over the result of the one before; option names with ``-`` as ``_``.

    Each key has its own description. There is at least one stage. ``start`` and ``end`` are a half-open range of units:
    then the input is a template with ``{date}``, or a folder of partitions. ``places`` is no key.
    """

    _places: Places = PrivateAttr(Places())

    @property
    def places(self) -> Places:
        return self._places

    def at(self, **places: Any) -> Job:
        """Return the job of a run with other ``places``."""
        job = self.model_copy()
        job._places = replace(self._places, **places)
        return job

    def with_stages(self, stages: Iterable[Stage]) -> Job:
        return self.model_copy(update={"stages": tuple(stages)})

    def with_stage_outputs(self, outputs: Iterable[str]) -> Job:
        """Return the job with other outputs of those stages that have one, in the order of the stages."""
        left = iter(outputs)
        return self.with_stages(
            each if each.output is None else each.model_copy(update={"output": next(left)}) for each in self.stages
        )

    @cached_property
    def tables(self) -> tuple[ReadBeside, ...]:
        """The tables and logs that the job reads beside its input; in a range those of the unit."""
        if self.places.tables is not None:
            return self.places.tables
        joins = (each.options.join for each in self.stages)
        logs = (RightSide(join.name, join.path) for join in joins if join is not None and join.path is not None)
        return (*map(parse_enrichment, self.enrich), *map(parse_windows, self.windows), *logs)

    def right_of(self, stage: Stage) -> RightSide | None:
        """Return the right side of a stage's join, in a range that of the unit; None where it is no other log."""
        join = stage.options.join
        if join is None or join.path is None:
            return None
        return next(each for each in self.tables if isinstance(each, RightSide) and each.name == join.name)

    @property
    def enrichments(self) -> tuple[Enrichment, ...]:
        """The tables that the rows of the input get columns of."""
        return tuple(each for each in self.tables if isinstance(each, Enrichment))

    @property
    def window_tables(self) -> tuple[WindowsFrom, ...]:
        """The tables that have windows."""
        return tuple(each for each in self.tables if isinstance(each, WindowsFrom))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The paths to read."""
        return self.input if self.places.stdin is None else (self.places.stdin.path,)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs as the job names them: those of stages, then the output of the job itself."""
        own = (stage.output for stage in self.stages[:-1] if stage.output is not None)
        return *own, self.output

    @property
    def stage_outputs(self) -> tuple[str | None, ...]:
        """Where each stage writes: None for one without an output, and for stdout the folder that stands for it."""
        return *(stage.output for stage in self.stages[:-1]), self.places.stdout or self.output

    @property
    def read_besides(self) -> tuple[tuple[str, str], ...]:
        tables = ((beside_text(each), each.path) for each in self.tables)
        return *tables, *((("job file", self.places.file),) if self.places.file else ())

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """All that the job reads and writes, in words and as a path, glob or URI; ``{date}`` is a wildcard."""
        state = (("the state", self.state),) if self.state else ()
        named = (
            *(("the input", path) for path in self.input if path != PIPE),
            *((f"the {what}", path) for what, path in self.read_besides),
            *(("the output", plain_path(path)) for path in self.outputs if path != PIPE),
            *state,
        )
        return tuple((what, as_glob(path)) for what, path in named)

    @property
    def shown_output(self) -> str:
        return plain_path(self.output)

    @property
    def is_piped(self) -> bool:
        """Whether the job reads stdin or writes stdout: then nobody can know whether the same was done before."""
        return PIPE in self.input or self.output == PIPE

    @property
    def runs_user_code(self) -> bool:
        calls = [call for stage in self.stages for item in stage.calls or () for call in item.calls]
        return any(stage.options.operator for stage in self.stages) or any(":" in call.function for call in calls)

    @property
    def table_version(self) -> str | None:
        """The version or snapshot of tables to read; None: the newest."""
        return self.input_version if self.input_snapshot is None else self.input_snapshot

    def kept(self, units: int, there: int) -> int:
        """How many units keep their window state where a run of so many begins, and ``there`` have it by then.

        Unless the job says how many, each unit of the run can be run again, the first from the last before it, and a
        run of fewer units drops none that a longer one has kept.
        """
        return self.keep or max(_LEAST_KEPT, units + 1, there)


def beside_text(table: ReadBeside) -> str:
    """Return what a table is that a job reads beside its input."""
    if isinstance(table, RightSide):
        return f"log {table.name} of --join"
    return "enrich table" if isinstance(table, Enrichment) else "table of windows"


_LEAST_KEPT = 10

STAGE_KEYS = tuple(Stage.model_fields)
"""Keys of one window; all others are keys of the whole job."""

_TIMES = {each.name: each for each in STAGE_OPTIONS if each.kind in ("duration", "origin")}

SINGLE_KEYS = tuple(key for key in STAGE_KEYS if key not in ("name", "output"))
"""Keys of a window that a job file with a single window has at the top."""

SHARED_KEYS = tuple(each.name for each in STAGE_OPTIONS if each.is_shared)
"""Keys of a window that are allowed beside ``stages``: the end of all stages, and the form of the last one's output."""


@cache
def defaults() -> dict[str, Any]:
    """Return the default of every option that has one."""
    return {each.name: each.default for each in (*STAGE_OPTIONS, *JOB_OPTIONS) if each.has_default}


@cache
def default_stage() -> dict[str, Any]:
    """Return the defaults of a stage as plain JSON values, without ``name`` and ``window``, which have none."""
    of_stage = {key: value for key, value in defaults().items() if key in STAGE_KEYS}
    stage = Stage.model_validate({**of_stage, "name": "x", "window": "count(1)"})
    return stage.model_dump(mode="json", exclude={"name", "window"})


GONE = {"unsafe_commit": "results are in no store that does not compare versions"}
"""Keys that jobs of earlier versions may have, and why this version has them no more."""


def with_later_keys(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job that an earlier version recorded, with the defaults of the keys that are new since then.

    Keys that are gone are left out.
    """
    job = {key: value for key, value in job.items() if key not in GONE}
    default = {key: value for key, value in defaults().items() if key in Job.model_fields}
    stages = [{**default_stage(), **stage} for stage in job.get("stages") or ()]
    return {**default, **job, "stages": stages}


BESIDE: Mapping[str, Callable[[str], BesideRows]] = {"enrich": parse_enrichment, "windows": parse_windows}
"""The keys of tables that a job reads beside its input, and what reads their texts."""


def without_units(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job that was recorded with its times as numbers of seconds, as which they were computed.

    What a job asks for today is checked against its columns; what was done is done.
    """
    stages = [{key: plain_amounts(key, value) for key, value in stage.items()} for stage in job.get("stages") or ()]
    return {**job, "stages": stages, "enrich": plain_amounts("enrich", job.get("enrich") or ())}


_PARSED: Mapping[str, Callable[[str], object]] = {"distinct": parse_distinct, "join": parse_join}


def plain_amounts(key: str, value: Any) -> Any:
    """Return the value of a key of a job or a stage with its times as numbers of seconds: ``gap(ts, 60)``.

    A text that this version cannot parse stays as it is.
    """
    try:
        if key == "window":
            return str(parse_window(value))
        if key in BESIDE:
            return [str(BESIDE[key](text)) for text in value]
        if key in _PARSED:
            return None if value is None else str(_PARSED[key](value))
        return decimal_text(window_value(_TIMES[key], value)) if key in _TIMES and value is not None else value
    except (SpecError, ConfigError):
        return value


# A job as manifests and unit records hold it: complete, but without its secrets.


def recorded(job: Job) -> dict[str, Any]:
    """Return a job as plain JSON values for manifests and records, with secrets masked."""
    values = job.model_dump(mode="json", by_alias=True)
    stages = [
        {**stage, "output": _path(stage["output"]), "join": as_recorded("join", stage["join"])}
        for stage in values["stages"]
    ]
    return {
        **values,
        "input": [redacted_path(path) for path in values["input"]],
        "output": redacted_path(values["output"]),
        "enrich": as_recorded("enrich", job.enrich),
        "windows": as_recorded("windows", job.windows),
        "stages": stages,
        "state": _path(values["state"]),
        "lineage": _path(values["lineage"]),
        "master": redacted(values["master"]),
        "spark_conf": redacted_settings(values["spark_conf"]),
    }


def as_recorded(key: str, value: Any) -> Any:
    """Return the value of a key that names places as this version records it, also one that an earlier one recorded.

    A version that masks more makes no other job of what was recorded before it. A text that cannot be parsed stays.
    """
    if key == "state":
        return _path(value)
    try:
        if key == "join" and value is not None:
            join = parse_join(value)
            return str(replace(join, path=_path(join.path)))
        found = map(BESIDE[key], value or ()) if key in BESIDE else ()
        return [str(with_path(each, redacted_path(each.path))) for each in found] if key in BESIDE else value
    except (SpecError, ConfigError):
        return value


def paths_of(job: Job) -> tuple[str, ...]:
    """Return all paths and URIs that a job names."""
    tables = (each.path for each in job.tables)
    joins = (join.path for stage in job.stages if (join := stage.options.join) is not None)
    named = (*job.input, job.output, *(stage.output for stage in job.stages), job.state, *tables, *joins)
    return tuple(path for path in named if path)


def secrets_of(job: Job, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secret texts of a job and of the environment, to be masked in messages."""
    return secret_values(job.spark_conf, (*paths_of(job), job.master, job.lineage or ""), environ)


def _path(path: str | None) -> str | None:
    return None if path is None else redacted_path(path)


# Outputs in tables: users name a path and a format, and inside the address of an output says which table it is.


_ICEBERG = "iceberg://"


def with_table_outputs(job: Job) -> Job:
    """Return a job whose outputs that are tables begin with the format of these, as ``delta+out``.

    Raises as `table_address` does.
    """
    stages = tuple(
        stage
        if stage.output is None
        else stage.model_copy(update={"output": table_address(stage.output, stage.output_format)})
        for stage in job.stages
    )
    output = table_address(job.output, stages[-1].output_format)
    return job.model_copy(update={"output": output, "stages": stages})


def read_job(values: Mapping[str, Any]) -> Job:
    """Return the job that plain JSON values describe, as records have them. Raises pydantic's error for others."""
    return with_table_outputs(Job.model_validate(values))


def table_address(path: str, format: str) -> str:
    """Return the address of an output; that of a folder is its path.

    Raises `ConfigError` for the address of an Iceberg table with another format.
    """
    if format in TABLE_FORMATS and path.startswith(_ICEBERG):
        raise ConfigError(f"{path} is an Iceberg table, and --output-format is {format}", "leave --output-format out")
    is_whole = format not in TABLE_FORMATS or path == PIPE or path.startswith(f"{format}+")
    return path if is_whole else f"{format}+{path}"


def plain_path(address: str) -> str:
    """Return the path of an output as the user wrote it."""
    prefix = next((f"{name}+" for name in TABLE_FORMATS if address.startswith(f"{name}+")), "")
    return address.removeprefix(prefix)


def is_table(address: str) -> bool:
    """Whether an output is in a table, of which several outputs may be parts."""
    return plain_path(address) != address or address.startswith(_ICEBERG)
