"""The options of a job and of its stages, each declared once; those of a window stand in `windowing.language.options`.

From these declarations come the flags of ``wincli run`` and their help (`cli.arguments`), their environment
variables, the models of a job and of a stage (`conf.job`) and their defaults, and the JSON Schema of job files. Nothing
heavy is imported for them. Annotations are read when the module is loaded, so they may not be put off as texts.
"""

from typing import Literal

from ..windowing.language.options import WINDOW_OPTIONS
from ..windowing.support.formats import AnyFormat
from ..windowing.support.option import REQUIRED, Option, option, options_of

DEFAULT_MASTER = "local[*]"
"""All cores of this machine."""


class StageKeys:
    """What a stage has besides the options of its window."""

    name: str = option(
        REQUIRED,
        "How messages and the state call the stage. Default: stage-1, stage-2, ...",
        "Window",
        "stage_name",
        has_flag=False,
    )
    window: str = option(
        REQUIRED,
        "The window, such as 'delta(ts, 60)'.",
        "Window",
        "window",
        short="-w",
        key_help="The window, such as delta(ts, 60).",
    )
    key: tuple[str, ...] = option((), "Columns of the partition key.", "Window", short="-k")
    order_by: tuple[str, ...] | None = option(
        None,
        "Columns that order the rows, or 'arrival'. Ties: arrival.",
        "Window",
        metavar="COL,..|arrival",
        key_help="Columns that order the rows, or arrival. Default: by the window.",
    )
    agg: tuple[str, ...] = option(
        [],
        "An aggregate (repeatable). Default: count().",
        "Window",
        "calls",
        short="-a",
        key_help="Aggregates, such as spent=sum(amount); as a mapping: name to call. Default: count().",
    )
    marks: str = option(
        "auto",
        "Window marks for punct(): of an earlier result else the end of each file (auto), the end of each file, "
        "none, or after each true row of a boolean column.",
        "Window",
        metavar="auto|files|none|COLUMN",
        complete="columns",
        key_help="Where punct() gets its marks: auto, files, none, or a boolean column.",
    )
    output: str | None = option(
        None,
        "The folder where this stage is written, too. Not for the last stage.",
        "Output",
        "path",
        has_flag=False,
    )
    output_format: AnyFormat = option(
        "parquet", "", "Output", key_help="Format of the part files, or delta for a Delta table.", is_shared=True
    )
    partition_by: tuple[str, ...] = option(
        (),
        "Write the rows of each value of these columns of the result, or of expressions over them, to a folder of "
        "their own, as COL=VALUE/.",
        "Output",
        "partitions",
        metavar="COL,..|NAME=EXPR",
        complete="columns",
        below="output_format",
        key_help="Columns of the result, or NAME=EXPR over them, whose values divide it into folders, as COL=VALUE/.",
        is_shared=True,
    )
    plain: bool = option(
        False,
        "Leave out stream columns (_at, _pos, _mark) and mark-only rows.",
        "Output",
        below="mode",
        key_help="Leave out stream columns and mark-only rows.",
        is_shared=True,
    )


class JobKeys:
    """What a job has besides its input, its output and its stages."""

    input_format: Literal["auto", AnyFormat] = option(
        "auto",
        "Default: by file name; a folder with _delta_log is a Delta table.",
        "Input",
        key_help="Format of the input; auto takes it from file names, and notices tables.",
        decides_result=True,
    )
    input_version: str | None = option(
        None,
        "Read tables as they were: a version, or a time. Default: the newest.",
        "Input",
        metavar="N|TIME",
        key_help="The version of tables to read, by its number or by a time; default: the newest.",
    )
    input_snapshot: str | None = option(
        None,
        "Read Iceberg tables at a snapshot: its id, a time, a branch or a tag. Default: the newest.",
        "Input",
        metavar="ID|TIME|REF",
        key_help="The snapshot of Iceberg tables to read, by its id, a time, a branch or a tag; default: the newest.",
    )
    column_types: str | None = option(
        None,
        "Types of text columns; others are inferred over all data.",
        "Input",
        "types",
        name="schema",  # which a model of pydantic has a method for
        key_help="Types of text columns; as a mapping: column to type.",
        decides_result=True,
    )
    multiline: bool = option(
        False, "CSV: quoted fields may hold line ends; a file is one split.", "Input", decides_result=True
    )
    delimiter: str = option(
        ",",
        "CSV: between fields. Default: a comma.",
        "Input",
        "character",
        key_help="CSV: the character between fields.",
        decides_result=True,
    )
    file_order: Literal["name", "mtime"] = option("name", "How arrival orders the files.", "Input", decides_result=True)
    enrich: tuple[str, ...] = option(
        (),
        "Columns of another log or table (repeatable): a lookup by key, or with asof the newest row at or before, "
        "with asof forward the first at or after, with asof nearest the nearer one.",
        "Input",
        "enrichments",
        key_help="Columns of other tables, such as price=prices/ on symbol asof ts; as a mapping: name to rest.",
        decides_result=True,
    )
    windows: tuple[str, ...] = option(
        (),
        "Windows that a table has, for table(NAME) (repeatable): each of its rows is one.",
        "Input",
        "windows",
        key_help="Windows that tables have, such as shifts=x.csv on id from start to end; as a mapping: name to rest.",
        decides_result=True,
    )
    skip_unreadable: bool = option(
        False,
        "Pass over dead links, FIFOs, devices and what may not be read.",
        "Input",
        key_help="Pass over dead links, FIFOs, sockets, devices and what may not be read.",
    )
    limit: int | None = option(
        None,
        "Read only the first N rows of the input, for a first look. Default: all.",
        "Input",
        minimum=1,
        key_help="Read only the first rows of the input, so many, for a first look; default: all.",
        decides_result=True,
    )
    mode: Literal["error", "overwrite"] = option(
        "error", "What to do if OUT holds a result.", "Output", key_help="What to do if the output holds a result."
    )
    evolve_schema: bool = option(False, "Add columns that the table lacks, instead of refusing the run.", "Output")
    max_open_files: int = option(
        100,
        "How many files of --partition-by a task holds open; it sorts rows of more values first.",
        "Output",
        minimum=1,
        key_help="How many files of partition_by a task holds open; it sorts rows of more values first.",
    )
    max_rejects: int | None = option(
        None, "Fail if more rows than this are rejected. Default: no limit.", "Output", minimum=0
    )
    expect: tuple[str, ...] = option(
        (),
        "What must be true of the run, or of each unit: 'rejected_share < 0.01', 'all(latency < 30)' (repeatable).",
        "Output",
        "expectations",
        metavar="EXPR",
        key_help="What must be true of the run, or of each unit, else nothing is committed; or {expr, on_fail: warn}.",
    )
    max_rows_out: int = option(
        1_000_000_000,  # some 10 GB of Parquet
        "Fail if windows that overlap would give more rows than this, with --emit rows.",
        "Output",
        minimum=1,
        key_help="Fail if windows that overlap would give more rows than this, with emit: rows.",
    )
    state: str | None = option(
        None, "The folder that keeps open windows from run to run.", "Incremental runs", "path", decides_result=True
    )
    keep: int | None = option(
        None,
        "How many versions of the state are kept. Default: what the range needs, and at least 10.",
        "Incremental runs",
        minimum=1,
    )
    late: Literal["reject", "redo"] = option(
        "reject",
        "What to do with rows that belong before those of the run before: reject them, or run again from there.",
        "Incremental runs",
    )
    start: str | None = option(
        None,
        "The first unit of a range of days.",
        "Incremental runs",
        metavar="DATE",
        key_help="The first day (hour, week) of a range.",
    )
    end: str | None = option(
        None,
        "The unit after the last of the range.",
        "Incremental runs",
        metavar="DATE",
        key_help="The day (hour, week) after the last of a range.",
    )
    unit: Literal["hour", "day", "week"] = option(
        "day", "What a backfill runs and commits at once.", "Incremental runs"
    )
    redo: bool = option(
        False,
        "Run units of the range again that are done.",
        "Incremental runs",
        key_help="Run units again that are done.",
    )
    jobs: int = option(
        1,
        "How many units of a range run at the same time, where none needs another.",
        "Incremental runs",
        minimum=1,
        maximum=1000,
        key_help="How many units of a range run at the same time, where none needs what another leaves.",
    )
    confirm_effect: str | None = option(
        None,
        "Publish a range only if this is true of what changes: 'changed <= 100 and removed = 0'.",
        "Incremental runs",
        "expression",
        key_help="Publish a range only if this is true of what changes, such as changed <= 100; else nothing.",
    )
    exit_code_noop: int = option(
        0,
        "The exit code where there was nothing to do.",
        "Incremental runs",
        minimum=0,
        maximum=255,
        key_help="The exit code of a run that had nothing to do.",
    )
    split_size: int = option(  # a task needs about four times as much memory
        "96MiB", "How much a task reads at a time.", "Spark", "size"
    )
    slice_size: int = option("192MiB", "How much a task scans at a time.", "Spark", "size")
    master: str = option(DEFAULT_MASTER, "Spark master.", "Spark", metavar="URL", key_help="The Spark master.")
    spark_conf: dict[str, str] = option(
        {}, "A Spark setting (repeatable).", "Spark", "settings", key_help="Settings of Spark."
    )
    ship_environment: bool = option(
        False,
        "Send executors Python and the installed packages, for a cluster where nobody has installed them.",
        "Spark",
        key_help="Send executors Python and the installed packages; nothing for local masters.",
    )
    progress: Literal["auto", "plain", "json", "none"] = option(
        "auto",
        "Default: auto (a bar on a terminal, else lines).",
        "Messages",
        key_help="auto is a bar on a terminal, else lines; json is lines of JSON.",
    )
    log_format: Literal["text", "json"] = option("text", "Form of the messages on stderr.", "Messages")
    metrics_file: str | None = option(
        None,
        "Write the numbers of the run to this file, as Prometheus reads them.",
        "Messages",
        "path",
        metavar="FILE",
        key_help="The file that gets the numbers of the run, as Prometheus reads them.",
    )
    lineage: str | None = option(
        None,
        "Send OpenLineage events: to a file, to a URL, or as OPENLINEAGE_* say (env).",
        "Messages",
        "path",
        metavar="FILE|URL|env",
        key_help="Where OpenLineage events go: a file, a URL, or env for what OPENLINEAGE_* variables say.",
    )


def _of_stage() -> tuple[Option, ...]:
    """Return the options of a stage in the order of its keys: those of its window stand after its aggregates."""
    own = options_of(StageKeys)
    at = 1 + next(index for index, each in enumerate(own) if each.name == "agg")
    return (*own[:at], *WINDOW_OPTIONS, *own[at:])


STAGE_OPTIONS = _of_stage()
"""The declarations of all keys of a stage, in their order."""

JOB_OPTIONS = options_of(JobKeys)
"""The declarations of the options of a whole job, in the order of its keys."""
