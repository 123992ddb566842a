"""The options of ``wincli run``, group by group as ``--help`` shows them. Nothing heavy is imported for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from ...windowing.support.formats import FORMATS

_WINDOW = "Window"
_INPUT = "Input"
_OUTPUT = "Output"
_RUNS = "Incremental runs"
_SPARK = "Spark"
MESSAGES = "Messages"

VARIABLES: list[str] = []
"""The environment variables that give options."""


def _option(group: str, flags: str, text: str, metavar: str | None = None, complete: str | None = None) -> Any:
    """Return an option that an environment variable of its name can give, too.

    ``complete``: the name of the function in `cli.arguments.completion` that completes its value in a shell, besides
    words of ``metavar``.
    """
    names = flags.split()
    VARIABLES.append("WINCLI_" + max(names, key=len).partition("/")[0].lstrip("-").upper().replace("-", "_"))
    return typer.Option(
        *names,
        help=text,
        metavar=metavar,
        envvar=VARIABLES[-1],
        show_envvar=False,
        rich_help_panel=group,
        autocompletion=_completing(metavar, complete),
    )


def _switch(group: str, flag: str, text: str) -> Any:
    """Return a yes-or-no option. It has flags for both, so that each can override a job file."""
    return _option(group, f"{flag}/--no-{flag.removeprefix('--')}", text)


def _completing(metavar: str | None, name: str | None) -> Callable[[typer.Context, str], list[str]] | None:
    """Return the function that gives a shell the values for the beginning that was typed; None without values."""
    words = [word for word in (metavar or "").split("|") if word.isalpha() and word.islower()]
    if not words and name is None:
        return None

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found = [word for word in words if word.startswith(incomplete)]
        if name is None:
            return found
        from . import completion  # noqa: PLC0415 - only where a shell asks

        return [*found, *getattr(completion, name)(ctx, incomplete)]

    return complete


ARGUMENTS = (
    ("JOB.yaml", "A job file: options as keys, which flags override."),
    ("IN", "A file, a folder (read recursively), a glob, or a URI; several of them; or - for stdin."),
    ("OUT", "The folder to write, whole or not at all; or - for stdout."),
)
"""The parts of `Paths` for the help page: the last of several paths is OUT."""
Paths = Annotated[list[str] | None, typer.Argument(metavar="[JOB.yaml] [IN]... [OUT]", show_default=False, hidden=True)]

Window = Annotated[
    str | None, _option(_WINDOW, "--window -w", "The window, such as 'delta(ts, 60)'.", "SPEC", complete="windows")
]
Key = Annotated[
    list[str] | None, _option(_WINDOW, "--key -k", "Columns of the partition key.", "COL,..", complete="columns")
]
OrderBy = Annotated[
    list[str] | None,
    _option(
        _WINDOW,
        "--order-by",
        "Columns that order the rows, or 'arrival'. Ties: arrival.",
        "COL,..|arrival",
        complete="columns",
    ),
]
Agg = Annotated[
    list[str] | None,
    _option(
        _WINDOW, "--agg -a", "An aggregate (repeatable). Default: count().", "[NAME=]FUNC(ARGS)", complete="aggregates"
    ),
]
GroupBy = Annotated[
    list[str] | None,
    _option(_WINDOW, "--group-by", "One row for each group of these columns in a pane.", "COL,..", complete="columns"),
]
Emit = Annotated[
    str | None,
    _option(
        _WINDOW,
        "--emit",
        "What a pane gives: its aggregates, its rows, or those that entered or left (sliding and batched windows). "
        "Default: aggregates.",
        "aggregates|rows|entered|left",
    ),
]
SortBy = Annotated[
    list[str] | None,
    _option(
        _WINDOW,
        "--sort-by",
        "Sort the rows of each pane, with --emit. Default: their order.",
        "COL [desc],..",
        complete="columns",
    ),
]
Operator = Annotated[
    str | None, _option(_WINDOW, "--operator", "An operator of your own, in place of aggregates.", "MODULE:CLASS")
]
Partial = Annotated[bool | None, _switch(_WINDOW, "--partial", "Emit sliding windows before they are full, too.")]
AtEnd = Annotated[
    str | None,
    _option(
        _WINDOW,
        "--at-end",
        "What to do with windows that are open at the end; hold keeps them in the state. Default: flush, and hold "
        "with --state.",
        "flush|hold|drop",
    ),
]
Empty = Annotated[
    str | None, _option(_WINDOW, "--empty", "What a time window without rows gives. Default: skip.", "skip|mark|row")
]
Origin = Annotated[
    str | None,
    _option(_WINDOW, "--origin", "Where the grid of time windows begins. Default: 0, the epoch.", "TIME|SECONDS"),
]
EventTime = Annotated[
    str | None,
    _option(
        _WINDOW, "--event-time", "The time column of timeInterval. Default: the only one.", "COL", complete="columns"
    ),
]
Lag = Annotated[
    str | None,
    _option(_WINDOW, "--lag", "How far the watermark stays behind the latest event. Default: 0.", "DURATION"),
]
MinGap = Annotated[
    str | None,
    _option(_WINDOW, "--min-gap", "The least rise of the watermark that takes effect. Default: 0.", "DURATION"),
]
EmitEvicted = Annotated[
    bool | None, _switch(_WINDOW, "--emit-evicted", "Emit windows of evicted keys, too (tumbling).")
]
Marks = Annotated[
    str | None,
    _option(
        _WINDOW,
        "--marks",
        "Window marks for punct(): of an earlier result else the end of each file (auto), the end of each file, "
        "none, or after each true row of a boolean column. Default: auto.",
        "auto|files|none|COLUMN",
        complete="columns",
    ),
]

InputFormat = Annotated[
    str | None, _option(_INPUT, "--input-format", "Default: by file name.", "|".join(["auto", *FORMATS]))
]
Schema = Annotated[
    str | None,
    _option(_INPUT, "--schema", "Types of text columns; others are inferred over all data.", "COL:TYPE,.."),
]
Multiline = Annotated[
    bool | None, _switch(_INPUT, "--multiline", "CSV: quoted fields may hold line ends; a file is one split.")
]
Delimiter = Annotated[str | None, _option(_INPUT, "--delimiter", "CSV: between fields. Default: a comma.", "CHAR")]
FileOrder = Annotated[
    str | None, _option(_INPUT, "--file-order", "How arrival orders the files. Default: name.", "name|mtime")
]
SkipUnreadable = Annotated[
    bool | None,
    _switch(_INPUT, "--skip-unreadable", "Pass over dead links, FIFOs, devices and what may not be read."),
]

OutputFormat = Annotated[str | None, _option(_OUTPUT, "--output-format", "Default: parquet.", "|".join(FORMATS))]
Mode = Annotated[
    str | None, _option(_OUTPUT, "--mode", "What to do if OUT holds a result. Default: error.", "error|overwrite")
]
Plain = Annotated[
    bool | None, _switch(_OUTPUT, "--plain", "Leave out stream columns (_at, _pos, _mark) and mark-only rows.")
]
MaxRejects = Annotated[
    int | None, _option(_OUTPUT, "--max-rejects", "Fail if more rows than this are rejected. Default: no limit.", "N")
]
MaxRowsOut = Annotated[
    int | None,
    _option(
        _OUTPUT,
        "--max-rows-out",
        "Fail if windows that overlap would give more rows than this, with --emit rows. Default: 1000000000.",
        "N",
    ),
]

State = Annotated[str | None, _option(_RUNS, "--state", "The folder that keeps open windows from run to run.", "DIR")]
Keep = Annotated[int | None, _option(_RUNS, "--keep", "How many versions of the state are kept. Default: 10.", "N")]
Late = Annotated[
    str | None,
    _option(
        _RUNS,
        "--late",
        "What to do with rows that belong before those of the run before: reject them, or run again from there. "
        "Default: reject.",
        "reject|redo",
    ),
]
Start = Annotated[str | None, _option(_RUNS, "--start", "The first unit of a range of days.", "DATE")]
End = Annotated[str | None, _option(_RUNS, "--end", "The unit after the last of the range.", "DATE")]
Unit = Annotated[
    str | None, _option(_RUNS, "--unit", "What a backfill runs and commits at once. Default: day.", "hour|day|week")
]
Redo = Annotated[bool | None, _switch(_RUNS, "--redo", "Run units of the range again that are done.")]
ExitCodeNoop = Annotated[
    int | None, _option(_RUNS, "--exit-code-noop", "The exit code where there was nothing to do. Default: 0.", "N")
]

SplitSize = Annotated[
    str | None, _option(_SPARK, "--split-size", "How much a task reads at a time. Default: 96MiB.", "SIZE")
]
SliceSize = Annotated[
    str | None, _option(_SPARK, "--slice-size", "How much a task scans at a time. Default: 192MiB.", "SIZE")
]
Master = Annotated[str | None, _option(_SPARK, "--master", "Spark master. Default: local[*].", "URL")]
SparkConf = Annotated[list[str] | None, _option(_SPARK, "--spark-conf", "A Spark setting (repeatable).", "K=V")]

Progress = Annotated[
    str | None, _option(MESSAGES, "--progress", "Default: auto (a bar on a terminal, else lines).", "auto|plain|none")
]
LogFormat = Annotated[
    str | None, _option(MESSAGES, "--log-format", "Form of the messages on stderr. Default: text.", "text|json")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.", rich_help_panel=MESSAGES)]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="More details; -vv: stack traces of errors.",
        rich_help_panel=MESSAGES,
    ),
]
