"""The model of a job: every option of a run with its type and description.

The JSON Schema of job files shows the descriptions (`conf.job_files.schema`). `conf.option_values` defines which values
are valid, and `conf.job_files.layers` how flags and a job file become a job.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from ..windowing.support.formats import Format
from .option_values import Calls, Names, Origin, Seconds, Settings, Size, StageName, Texts, Types, Window


def _key(text: str, **more: Any) -> Any:
    """Return a key that has its default in ``defaults.yaml``, or must be given."""
    return Field(description=text, **more)


def _free(text: str, default: Any = None, **more: Any) -> Any:
    """Return an optional key, whose default is in the model."""
    return Field(default, description=text, **more)


class Stage(BaseModel):
    """One window of a job, as the user requested it; option names with ``-`` as ``_``.

    Each key has its own description. Only stages before the last have an ``output``: the last stage writes to that of
    the job.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: StageName = _key("How messages and the state call the stage. Default: stage-1, stage-2, ...")
    window: Window = _key("The window, such as delta(ts, 60).")
    key: Names = _free("Columns of the partition key.", ())
    order_by: Names | None = _free("Columns that order the rows, or arrival. Default: by the window.")
    agg: Calls = _key("Aggregates, such as spent=sum(amount); as a mapping: name to call. Default: count().")
    group_by: Names = _free("One row for each group of these columns in a pane.", ())
    emit: Literal["aggregates", "rows", "entered", "left"] = _key(
        "What a pane gives: its aggregates, its rows, or the rows that entered or left."
    )
    sort_by: Names = _free("Sort the rows of each pane, where panes give rows: columns, each with desc if need be.", ())
    partial: bool = _key("Emit sliding windows before they are full, too.")
    at_end: Literal["flush", "drop", "hold"] = _key(
        "What to do with windows that are open at the end; hold keeps them in the state. Default with a state: hold."
    )
    empty: Literal["skip", "mark", "row"] = _key("What a time or calendar window without rows gives.")
    origin: Origin = _key("Where the grid of time windows begins: a time, a duration or seconds.")
    event_time: str | None = _free("The time column of timeInterval. Default: the only one.")
    lag: Seconds = _key("How far the watermark stays behind the latest event.")
    min_gap: Seconds = _key("The least rise of the watermark that takes effect.")
    emit_evicted: bool = _key("Emit windows of evicted keys, too (tumbling).")
    operator: str | None = _free("An operator of your own, module:Class, in place of aggregates.")
    marks: str = _key("Where punct() gets its marks: auto, files, none, or a boolean column.")
    output: str | None = _free("The folder where this stage is written, too. Not for the last stage.")
    output_format: Format = _key("Format of the part files.")
    plain: bool = _key("Leave out stream columns and mark-only rows.")


class Job(BaseModel):
    """One or more windows over one input, each over the result of the one before; option names with ``-`` as ``_``.

    Each key has its own description. There is at least one stage. ``start`` and ``end`` are a half-open range of units:
    then the input is a template with ``{date}``, or a folder of partitions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Texts = _key(
        "Files, folders (read recursively), globs or URIs; {date} stands for the unit of a range; - is stdin."
    )
    output: str = _key("The folder to write, whole or not at all; {date} stands for the unit of a range; - is stdout.")
    stages: tuple[Stage, ...] = _key("Windows, each over the result of the one before.")
    input_format: Literal["auto", Format] = _key("Format of the input; auto takes it from file names.")
    column_types: Types | None = _free("Types of text columns; as a mapping: column to type.", alias="schema")
    multiline: bool = _key("CSV: quoted fields may hold line ends; a file is one split.")
    delimiter: str = _key("CSV: the character between fields.", min_length=1, max_length=1)
    file_order: Literal["name", "mtime"] = _key("How arrival orders the files.")
    skip_unreadable: bool = _key("Pass over dead links, FIFOs, sockets, devices and what may not be read.")
    mode: Literal["error", "overwrite"] = _key("What to do if the output holds a result.")
    max_rejects: int | None = _free("Fail if more rows than this are rejected. Default: no limit.", ge=0)
    max_rows_out: int = _key("Fail if windows that overlap would give more rows than this, with emit: rows.", ge=1)
    state: str | None = _free("The folder that keeps open windows from run to run.")
    keep: int = _key("How many versions of the state are kept.", ge=1)
    late: Literal["reject", "redo"] = _key(
        "What to do with rows that belong before those of the run before: reject them, or run again from there."
    )
    start: str | None = _free("The first day (hour, week) of a range.")
    end: str | None = _free("The day (hour, week) after the last of a range.")
    unit: Literal["hour", "day", "week"] = _key("What a backfill runs and commits at once.")
    redo: bool = _key("Run units again that are done.")
    exit_code_noop: int = _key("The exit code of a run that had nothing to do.", ge=0, le=255)
    split_size: Size = _key("How much a task reads at a time.")
    slice_size: Size = _key("How much a task scans at a time.")
    master: str = _key("The Spark master.")
    spark_conf: Settings = _free("Settings of Spark.", {})
    progress: Literal["auto", "plain", "none"] = _key("auto is a bar on a terminal, else lines.")
    log_format: Literal["text", "json"] = _key("Form of the messages on stderr.")


PIPE = "-"
"""As input: stdin; as output: stdout."""

STAGE_KEYS = tuple(Stage.model_fields)
"""Keys of one window; all others are keys of the whole job."""

SINGLE_KEYS = tuple(key for key in STAGE_KEYS if key not in ("name", "output"))
"""Keys of a window that a job file with a single window has at the top."""

SHARED_KEYS = ("at_end", "output_format", "plain")
"""Keys of a window that are allowed beside ``stages``: the end of all stages, and the form of the last one's output."""


@cache
def defaults() -> dict[str, Any]:
    """Return the default of every option that has one."""
    text = resources.files(__package__).joinpath("defaults.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@cache
def default_stage() -> dict[str, Any]:
    """Return the defaults of a stage as plain JSON values, without ``name`` and ``window``, which have none."""
    of_stage = {key: value for key, value in defaults().items() if key in STAGE_KEYS}
    stage = Stage.model_validate({**of_stage, "name": "x", "window": "count(1)"})
    return stage.model_dump(mode="json", exclude={"name", "window"})


def with_later_keys(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job that an earlier version recorded, with the defaults of the keys that are new since then."""
    default = {key: value for key, value in defaults().items() if key in Job.model_fields}
    stages = [{**default_stage(), **stage} for stage in job.get("stages") or ()]
    return {**default, **job, "stages": stages}
