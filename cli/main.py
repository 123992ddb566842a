"""``wincli``: the commands and their options. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from typing import Annotated, Any, NoReturn

import typer

from cli.messages import INTERRUPTED, OK, TERMINATED, UNEXPECTED, USAGE, Messages, Stopped, exit_code
from windowing.errors import ConfigError, WincliError
from windowing.names import nearest

app = typer.Typer(
    name="wincli",
    help="Exact stream windows over historical event logs: files in, windows out, on Spark.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_SIGNALS: dict[int, int] = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}

_EXAMPLES = """
\b
Examples:
  wincli run --window "delta(ts, 60)" in/ out/
  wincli run --window "delta(ts, 60)" --key user --agg "spent=sum(amount)" --agg "p95=quantile(latency, 0.95)" in/ out/
  wincli run --window "time(5m)" --key sensor --empty row --agg "mean(value)" in/ out/
  wincli run --window "gap(ts, 30m)" --key user --schema "ts:timestamp(%d/%m/%y %H:%M:%S)" clicks.csv sessions/
  wincli run --window "punct()" --agg "total=sum(spent)" out/ totals/ --output-format csv
  wincli run --window 'calendar(day, "Europe/Paris", 06:00)' --group-by shop --agg "sum(amount)" sales/ days/
  wincli run --window "sliding, time(1h), time(5m)" --key user --agg "mean(latency)" in/ out/
  wincli run --window "within 5m" --key user --agg "tries=count()" logins/ recent/
  wincli run --window "timeInterval, intervalDuration(1h), discardAge(10m)" --event-time ts --lag 30s in/ hours/
  wincli run --window "count(100)" --emit rows --sort-by "price desc" in/ sorted/
  wincli run nightly.yaml --start 2026-11-01 --end 2026-11-08
\b
Exit codes: 0 ok, 1 unexpected, 2 usage or spec, 3 files, 4 data, 5 Java or Spark, 130 interrupted, 143 terminated.
"""


def _option(flags: str, text: str, metavar: str | None = None) -> Any:
    """An option that an environment variable of its name can give too."""
    names = flags.split()
    env = "WINCLI_" + max(names, key=len).partition("/")[0].lstrip("-").upper().replace("-", "_")
    return typer.Option(*names, help=text, metavar=metavar, envvar=env, show_envvar=False)


def _switch(flag: str, text: str) -> Any:
    """A yes-or-no option. It can be said both ways, for a job file may have said the other."""
    return _option(f"{flag}/--no-{flag.removeprefix('--')}", text)


@app.callback()
def _root() -> None:
    """Keep commands apart, each with options of its own."""


@app.command(epilog=_EXAMPLES)
def run(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="JOB.yaml", help="A job file: options as keys, which flags override.", show_default=False
        ),
    ] = None,
    input: Annotated[
        str | None,
        typer.Argument(metavar="IN", help="A file, a folder (read recursively), a glob, or a URI.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Argument(metavar="OUT", help="The folder to write, whole or not at all.", show_default=False),
    ] = None,
    window: Annotated[str | None, _option("--window -w", "The window, such as 'delta(ts, 60)'.", "SPEC")] = None,
    key: Annotated[list[str] | None, _option("--key -k", "Columns of the partition key.", "COL,..")] = None,
    order_by: Annotated[
        list[str] | None,
        _option("--order-by", "Columns that order the rows, or 'arrival'. Ties: arrival.", "COL,..|arrival"),
    ] = None,
    agg: Annotated[
        list[str] | None,
        _option("--agg -a", "An aggregate (repeatable). Default: count().", "[NAME=]FUNC(ARGS)"),
    ] = None,
    group_by: Annotated[
        list[str] | None, _option("--group-by", "One line per group of these columns in a pane.", "COL,..")
    ] = None,
    emit: Annotated[
        str | None,
        _option(
            "--emit",
            "What a pane gives: its aggregates, its rows, or those that entered or left (sliding and batched windows). "
            "Default: aggregates.",
            "aggregates|rows|entered|left",
        ),
    ] = None,
    sort_by: Annotated[
        list[str] | None,
        _option("--sort-by", "Sort the rows of each pane, with --emit. Default: their order.", "COL [desc],.."),
    ] = None,
    operator: Annotated[
        str | None, _option("--operator", "An operator of your own, in place of aggregates.", "MODULE:CLASS")
    ] = None,
    partial: Annotated[bool | None, _switch("--partial", "Sliding windows come out before they are full, too.")] = None,
    at_end: Annotated[
        str | None,
        _option(
            "--at-end",
            "What becomes of windows still open at the end; hold keeps them in the state. Default: flush, and hold "
            "with --state.",
            "flush|hold|drop",
        ),
    ] = None,
    empty: Annotated[
        str | None, _option("--empty", "What a time window without rows gives. Default: skip.", "skip|mark|row")
    ] = None,
    origin: Annotated[
        str | None, _option("--origin", "Where the grid of time windows begins. Default: 0, the epoch.", "TIME|SECONDS")
    ] = None,
    event_time: Annotated[
        str | None, _option("--event-time", "What timeInterval goes by. Default: the only time column.", "COL")
    ] = None,
    lag: Annotated[
        str | None, _option("--lag", "How far the watermark stays behind the latest event. Default: 0.", "DURATION")
    ] = None,
    min_gap: Annotated[
        str | None, _option("--min-gap", "The least rise of the watermark that takes effect. Default: 0.", "DURATION")
    ] = None,
    emit_evicted: Annotated[
        bool | None, _switch("--emit-evicted", "Windows of evicted keys come out, too (tumbling).")
    ] = None,
    input_format: Annotated[
        str | None, _option("--input-format", "Default: by file name.", "auto|parquet|csv|jsonl")
    ] = None,
    schema: Annotated[
        str | None,
        _option("--schema", "Types of text columns; others are inferred over all data.", "COL:TYPE,.."),
    ] = None,
    multiline: Annotated[
        bool | None, _switch("--multiline", "CSV: quoted fields may hold line ends; a file is one split.")
    ] = None,
    delimiter: Annotated[str | None, _option("--delimiter", "CSV: between fields. Default: a comma.", "CHAR")] = None,
    marks: Annotated[
        str | None,
        _option(
            "--marks",
            "Window marks for punct(): of an earlier result else the end of each file (auto), the end of each file, "
            "none, or after each true row of a boolean column. Default: auto.",
            "auto|files|none|COLUMN",
        ),
    ] = None,
    file_order: Annotated[
        str | None, _option("--file-order", "What arrival goes by between files. Default: name.", "name|mtime")
    ] = None,
    output_format: Annotated[str | None, _option("--output-format", "Default: parquet.", "parquet|csv|jsonl")] = None,
    mode: Annotated[
        str | None, _option("--mode", "What to do if OUT holds a result. Default: error.", "error|overwrite")
    ] = None,
    plain: Annotated[
        bool | None, _switch("--plain", "Leave out stream columns (_at, _pos, _mark) and mark-only rows.")
    ] = None,
    max_rejects: Annotated[
        int | None, _option("--max-rejects", "Fail if more rows than this are rejected. Default: no limit.", "N")
    ] = None,
    state: Annotated[
        str | None, _option("--state", "The folder that keeps open windows from run to run.", "DIR")
    ] = None,
    keep: Annotated[int | None, _option("--keep", "How many versions of the state are kept. Default: 10.", "N")] = None,
    late: Annotated[
        str | None,
        _option(
            "--late",
            "What to do with rows that belong before those of the run before: reject them, or run again from there. "
            "Default: reject.",
            "reject|redo",
        ),
    ] = None,
    start: Annotated[str | None, _option("--start", "The first unit of a range of days.", "DATE")] = None,
    end: Annotated[str | None, _option("--end", "The unit after the last of the range.", "DATE")] = None,
    unit: Annotated[
        str | None, _option("--unit", "What a range is run and committed by. Default: day.", "hour|day|week")
    ] = None,
    redo: Annotated[bool | None, _switch("--redo", "Run units of the range again that are done.")] = None,
    exit_code_noop: Annotated[
        int | None, _option("--exit-code-noop", "The exit code where there was nothing to do. Default: 0.", "N")
    ] = None,
    split_size: Annotated[
        str | None, _option("--split-size", "How much a task reads at a time. Default: 96MiB.", "SIZE")
    ] = None,
    slice_size: Annotated[
        str | None, _option("--slice-size", "How much a task scans at a time. Default: 192MiB.", "SIZE")
    ] = None,
    master: Annotated[str | None, _option("--master", "Spark master. Default: local[*].", "URL")] = None,
    spark_conf: Annotated[list[str] | None, _option("--spark-conf", "A Spark setting (repeatable).", "K=V")] = None,
    progress: Annotated[
        str | None, _option("--progress", "Default: auto (a bar on a terminal, else lines).", "auto|plain|none")
    ] = None,
    log_format: Annotated[
        str | None, _option("--log-format", "Form of the messages on stderr. Default: text.", "text|json")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose", "-v", count=True, show_default=False, help="More details; -vv: stack traces of errors."
        ),
    ] = 0,
) -> int:
    """Apply a window to the event logs in IN and write one row per pane to OUT; or run a job file."""
    from cli.run import run_command  # noqa: PLC0415 - loads pyarrow, numba and Spark

    asked = {name: value for name, value in locals().items() if name not in ("run_command", "quiet", "verbose")}
    return run_command(asked, -1 if quiet else verbose)


@app.command()
def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    from cli.schema import schema_text  # noqa: PLC0415 - loads pydantic and yaml

    typer.echo(schema_text())


@app.command()
def status(
    path: Annotated[str, typer.Argument(metavar="DIR", help="A state, the outputs of a range, or one result.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Print what a state, the outputs of a range, or one result came to."""
    from cli.status import status_command  # noqa: PLC0415 - loads pyarrow

    status_command(path, as_json, Messages())


@app.command()
def version() -> None:
    """Print the versions of wincli and of what it computes with."""
    from cli.version import version_lines  # noqa: PLC0415

    typer.echo("\n".join(version_lines()))


def main() -> NoReturn:
    """Run the command line and exit with the code of what happened."""
    for number in _SIGNALS:
        signal.signal(number, _stop)
    sys.unraisablehook = _stop_again
    code = _main(sys.argv[1:])
    gc.freeze()  # or Python goes through all that was loaded once more before it ends: 0.1 s
    sys.exit(code)


def _main(arguments: list[str]) -> int:
    messages = _early_messages(arguments)
    try:
        code = app(args=arguments, prog_name="wincli", standalone_mode=False)
    except (Stopped, WincliError) as error:
        messages.error(error)
        return exit_code(error)
    except (typer.Abort, typer.Exit) as error:
        return getattr(error, "exit_code", USAGE)
    except Exception as error:
        if hasattr(error, "format_message"):
            return _usage(error, messages)
        messages.error(error)
        return UNEXPECTED
    return code if isinstance(code, int) else OK


def _usage(error: Any, messages: Messages) -> int:
    """An error of the command line itself, in one line; a bare ``wincli`` shows the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        return USAGE
    text = error.format_message().partition(" (Possible options")[0].rstrip(".")
    messages.error(ConfigError(text[:1].lower() + text[1:], _hint(error)))
    return USAGE


def _hint(error: Any) -> str:
    name = getattr(error, "option_name", None)
    near = nearest(name, [opt for p in app_options() for opt in p]) if name else None
    return f"did you mean {near}?" if near else "see wincli --help"


def app_options() -> list[list[str]]:
    """The flags of ``wincli run``, option by option."""
    command: Any = typer.main.get_command(app)
    return [[*parameter.opts, *parameter.secondary_opts] for parameter in command.commands["run"].params]


def _early_messages(arguments: list[str]) -> Messages:
    """How to tell an error, for those that come before or instead of the parsed options."""
    traces = "-vv" in arguments or arguments.count("-v") + arguments.count("--verbose") > 1
    as_json = "--log-format=json" in arguments or "--log-format json" in " ".join(arguments)
    return Messages(2 if traces else 0, as_json or os.environ.get("WINCLI_LOG_FORMAT") == "json")


def _stop(number: int, _: Any) -> NoReturn:
    """Stop at once. A second signal while this one cleans up is not heard."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(_SIGNALS[number])


def _stop_again(lost: Any) -> None:
    """Send a signal once more that was lost: it came while C called back into Python, as numba's compiler does."""
    if not isinstance(lost.exc_value, Stopped):
        sys.__unraisablehook__(lost)
        return
    number = next(number for number, code in _SIGNALS.items() if code == lost.exc_value.code)
    signal.signal(number, _stop)
    again = threading.Timer(0.05, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


if __name__ == "__main__":
    main()
