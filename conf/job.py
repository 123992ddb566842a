"""The job: everything a run was asked to do, checked.

Precedence is decided here and nowhere else: what the command line gives (a flag, or its environment variable), then
``defaults.yaml``.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from windowing.errors import ConfigError, SpecError
from windowing.names import did_you_mean
from windowing.parse import parse_duration

_SIZES = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "k": 10**3, "m": 10**6, "g": 10**9}
_SIZES |= {"kb": 10**3, "mb": 10**6, "gb": 10**9}


def names(value: Any) -> Any:
    """Split ``a,b`` or ``["a", "b,c"]`` into column names; double quotes hold a comma together."""
    texts = [value] if isinstance(value, str) else list(value)
    return tuple(name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row if name.strip())


def size(value: Any) -> int:
    """Read ``64MiB``, ``1.5GiB`` or a number of bytes."""
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)\s*", str(value).lower())
    if not found or found[2] not in _SIZES or not (got := int(float(found[1]) * _SIZES[found[2]])):
        raise ConfigError(f"{value!r} is not a size", "write it as 64MiB, 1GiB or a number of bytes")
    return got


def origin_seconds(text: str) -> Fraction:
    """Read the origin of the time grid: seconds or a duration, or an ISO date or time (UTC where it has no zone).

    Returns seconds since the clock's zero, which is the Unix epoch for timestamps.
    """
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        sign = -1 if text.startswith("-") else 1
        try:
            return sign * parse_duration(text.lstrip("+-"))
        except SpecError as error:
            raise ConfigError(f"--origin {text!r} is no time: {error.what}", "write 2026-11-01T06:00 or 6h") from None
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--origin {text!r} is no date or time", "write 2026-11-01 or 2026-11-01T06:00") from None
    since = instant.replace(tzinfo=instant.tzinfo or dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return Fraction(since // dt.timedelta(microseconds=1), 10**6)


def _size_option(value: Any, told: ValidationInfo) -> int:
    try:
        return size(value)
    except ConfigError as error:
        raise ConfigError(f"{_option(told.field_name)}: {error.what}", error.do) from None


def _seconds_option(value: Any, told: ValidationInfo) -> str:
    """Check a duration; it stays text, for a job is written down as it was asked for."""
    try:
        parse_duration(str(value))
    except SpecError as error:
        option = _option(told.field_name)
        raise ConfigError(f"{option} {value!r} is no duration: {error.what}", "write it as 10, 1.5s or 5m") from None
    return str(value)


Seconds = Annotated[str, BeforeValidator(_seconds_option)]
Names = Annotated[tuple[str, ...], BeforeValidator(names)]
Size = Annotated[int, BeforeValidator(_size_option)]


class Stage(BaseModel):
    """One window of a job, as asked for; option names with ``-`` as ``_``.

    ``name``: how messages and the state call it. ``output``: where its result is written; only the last stage needs
    one, which is that of the job.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    window: str
    key: Names = ()
    order_by: Names | None = None
    agg: tuple[str, ...]
    group_by: Names = ()
    emit: Literal["aggregates", "rows", "entered", "left"]
    sort_by: Names = ()
    partial: bool
    at_end: Literal["flush", "drop", "hold"]
    empty: Literal["skip", "mark", "row"]
    origin: str
    event_time: str | None = None
    lag: Seconds
    min_gap: Seconds
    emit_evicted: bool
    operator: str | None = None
    marks: str
    output: str | None = None
    output_format: Literal["parquet", "csv", "jsonl"]
    plain: bool


class Job(BaseModel):
    """One or more windows over one input, each over the result of the one before; option names with ``-`` as ``_``.

    ``stages``: at least one. ``output``: of the last. ``start`` and ``end``: a half-open range of units; the input then
    is a template with ``{date}``, or a folder of partitions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: tuple[str, ...] = Field(min_length=1)
    output: str
    stages: tuple[Stage, ...] = Field(min_length=1)
    input_format: Literal["auto", "parquet", "csv", "jsonl"]
    column_types: str | None = Field(default=None, alias="schema")
    multiline: bool
    delimiter: str = Field(min_length=1, max_length=1)
    file_order: Literal["name", "mtime"]
    mode: Literal["error", "overwrite"]
    max_rejects: int | None = Field(default=None, ge=0)
    state: str | None = None
    keep: int = Field(ge=1)
    late: Literal["reject", "redo"]
    start: str | None = None
    end: str | None = None
    unit: Literal["hour", "day", "week"]
    redo: bool
    exit_code_noop: int = Field(ge=0, le=255)
    split_size: Size
    slice_size: Size
    master: str
    spark_conf: dict[str, str] = Field(default_factory=dict)
    progress: Literal["auto", "plain", "none"]
    log_format: Literal["text", "json"]


STAGE_KEYS = tuple(Stage.model_fields)
"""What is said of a window; the rest is said of a job."""


@cache
def defaults() -> dict[str, Any]:
    """Return what every option is when nobody says anything."""
    text = resources.files("conf").joinpath("defaults.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def make_job(asked: Mapping[str, Any]) -> Job:
    """Make the job from what was asked for; values that are None or empty were not.

    Raises `ConfigError` naming the option, what is wrong with its value and what it may be.
    """
    given = {name: value for name, value in asked.items() if value not in (None, [], {})}
    options = {**defaults(), **given}
    if given.get("state") and "at_end" not in given:
        options["at_end"] = "hold"
    stage = {name: options[name] for name in STAGE_KEYS if name in options and name != "output"}
    rest = {name: value for name, value in options.items() if name not in stage}
    try:
        return Job.model_validate({**rest, "stages": [{"name": "window", **stage}]})
    except ValidationError as error:
        raise _config_error(error) from None


def pairs(texts: list[str]) -> dict[str, str]:
    """Read ``K=V`` pairs of ``--spark-conf``."""
    settings = {}
    for pair in texts:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"--spark-conf {pair!r} is not K=V", "write --spark-conf spark.executor.memory=4g")
        settings[name.strip()] = value.strip()
    return settings


def _config_error(error: ValidationError) -> ConfigError:
    first = error.errors()[0]
    option = _option(str(first["loc"][0])) if first["loc"] else "the job"
    if first["type"] == "missing":
        return ConfigError(f"{option} is missing", "say what it is")
    if first["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", str(first.get("ctx", {}).get("expected", "")))
        return ConfigError(f"{option} cannot be {first['input']!r}", did_you_mean(str(first["input"]), known))
    return ConfigError(f"{option} cannot be {first['input']!r}", first["msg"][:1].lower() + first["msg"][1:])


def _option(field: str | None) -> str:
    return "--" + str(field).replace("_", "-")
