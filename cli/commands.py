"""``wincli run``: windows over event logs, or a job file."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.core

from ..windowing.errors import ConfigError
from ..windowing.support.formats import Format
from . import arguments
from .arguments import ARGUMENTS, MESSAGES
from .console.messages import Messages
from .console.streams import json_text, say

if TYPE_CHECKING:
    from ..conf.job import Job
    from .run.context import RunContext


EXAMPLES = """
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
  zcat log.gz | wincli run --window "gap(ts, 30m)" --key user - - | head
  wincli run nightly.yaml --start 2026-11-01 --end 2026-11-08
\b
Exit codes: 0 ok, 1 unexpected, 2 usage or spec, 3 files, 4 data, 5 Java or Spark, 129 hung up,
  130 interrupted, 131 quit, 143 terminated.
"""


@arguments.with_options
def run(
    paths: arguments.Paths = None,
    *,
    var: arguments.Variables = None,
    quiet: arguments.Quiet = False,
    verbose: arguments.Verbose = 0,
    **given: Any,
) -> int:
    """Apply a window to the event logs in IN and write one row per pane to OUT; or run a job file."""
    from .arguments import with_variables  # noqa: PLC0415 - only a run needs it
    from .launch import run_command  # noqa: PLC0415 - loads pyarrow, numba and Spark

    def confirmed(job: Job, context: RunContext) -> None:
        from .inspection.effect import confirm  # noqa: PLC0415 - few runs ask for it

        confirm(job, context)

    return run_command(
        {"paths": paths, "var": var, **with_variables(given, os.environ)}, -1 if quiet else verbose, confirmed
    )


# ``wincli plan``: what a run would do, before it.


PLAN_EXAMPLES = """
\b
Examples:
  wincli plan --window "gap(ts, 30m)" --key user in/ out/
  wincli plan --window "gap(ts, 30m)" --key user --only user=u7 --rows 60 in/ out/
  wincli plan nightly.yaml --start 2026-11-01 --end 2026-11-08
  wincli plan nightly.yaml --start 2026-11-01 --end 2026-11-02 --redo --effect
\b
Nothing is written, and Spark is started for --effect alone. Exit codes are those of the run, as far as it is foreseen.
"""

_option = partial(typer.Option, rich_help_panel="Plan", show_default=False)


@arguments.with_options
def plan(
    paths: arguments.Paths = None,
    *,
    as_json: Annotated[bool, _option("--json", help="One JSON object, for machines.")] = False,
    only: Annotated[
        list[str] | None,
        _option(
            "--only",
            metavar="COL=VALUE",
            help="Draw the windows of this key (repeatable). Default: those with the most rows.",
        ),
    ] = None,
    rows: Annotated[int, _option("--rows", metavar="N", help="Draw so many rows; 0: none. Default: 40.")] = 40,
    effect: Annotated[bool, _option("--effect", help="Compute a range in a scratch folder; say what changes.")] = False,
    var: arguments.Variables = None,
    quiet: arguments.Quiet = False,
    verbose: arguments.Verbose = 0,
    **given: Any,
) -> int:
    """Say what a run with the same arguments would do, and draw its windows over the first rows; write nothing."""
    from .arguments import with_variables  # noqa: PLC0415 - only a plan needs it
    from .inspection.forecast.command import plan_command  # noqa: PLC0415 - loads pyarrow and numba

    options = {"paths": paths, "var": var, **with_variables(given, os.environ)}
    return plan_command(
        options, -1 if quiet else verbose, as_json=as_json, only=only or (), rows=rows, with_effect=effect
    )


# ``wincli show``: the rows of a result, its rejects, or the open windows of a state.


def show(
    path: Annotated[str, typer.Argument(metavar="DIR", help="A result, the outputs of a range, or a state.")],
    head: Annotated[int | None, typer.Option("--head", "-n", min=0, metavar="N", help="Only the first N rows.")] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="EXPR", help="Only rows for which this is true, as run has it.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME=VALUE", help="Only rows with this value; repeatable.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", metavar="COL,..", help="Only these columns, in this order.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="LABEL", help="One unit of a range, or the state after it.")
    ] = None,
    stage: Annotated[str | None, typer.Option("--stage", metavar="NAME", help="One stage of a state.")] = None,
    rejects: Annotated[bool, typer.Option("--rejects", help="The rejected rows, with the reason of each.")] = False,
    draw: Annotated[
        bool, typer.Option("--draw", help="Windows as bars over time, above one aggregate; see --only, --columns.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row, for machines.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV, for other programs.")] = False,
) -> None:
    """Print the rows of a result, its rejects, or the open windows of a state."""
    from ..windowing.errors import ConfigError  # noqa: PLC0415 - beside the next
    from .inspection.results.show import Form, print_rows  # noqa: PLC0415 - loads pyarrow

    given: list[tuple[Form, bool]] = [("jsonl", as_json), ("csv", as_csv), ("drawing", draw)]
    forms = [form for form, is_given in given if is_given]
    if len(forms) > 1:
        raise ConfigError("--json, --csv and --draw are three forms of one answer", "say one of them")
    print_rows(
        path,
        Messages(),
        unit=unit,
        stage=stage,
        rejects=rejects,
        head=head,
        where=where,
        only=only or (),
        columns=_names(columns),
        form=forms[0] if forms else "table",
    )


# ``wincli status``: what a state, a backfill or a result holds.


def status(
    path: Annotated[str, typer.Argument(metavar="DIR", help="A state, the outputs of a range, or one result.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Print the units and row counts of a state, a backfill or a result."""
    from .inspection.results.status import print_status  # noqa: PLC0415 - loads pyarrow

    print_status(path, as_json, Messages())


# ``wincli diff``: how two results differ, window by window.


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A result, or the outputs of a range.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another, of the same kind.")],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COL,..", help="What makes a window. Default: key, groups and bounds."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", metavar="COL,..", help="Compare these. Default: all but the stream columns."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", min=0, metavar="T", help="Numbers x and y are equal up to T * max(1, |x|, |y|)."),
    ] = 0.0,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="COL", help="List the largest changes of this column first. Default: the first number."
        ),
    ] = None,
    head: Annotated[int, typer.Option("--head", "-n", min=0, metavar="N", help="List N windows; 0: all.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> int:
    """Print which windows two results do not have in common, and by how much they differ; exit code 1 if they do."""
    from .inspection.comparison.compare import DiffRequest  # noqa: PLC0415 - likewise
    from .inspection.comparison.text import print_diff  # noqa: PLC0415 - loads pyarrow

    return print_diff(DiffRequest(a, b, _names(by), _names(columns), tolerance, sort, head or None), as_json)


def _names(texts: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in texts or () for name in text.split(",") if name.strip())


# ``wincli verify``: whether results and states are as they were written.


def verify(
    path: Annotated[str, typer.Argument(metavar="DIR", help="A result, the outputs of a range, or a state.")],
    span: Annotated[
        str | None,
        typer.Option(
            "--replay", metavar="A..B", help="Run units A to B of a state again, and compare what they leave."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> int:
    """Check files, rows, digests and row accounts against what runs recorded; exit code 4 where one is damaged.

    With --replay the exit code is 1 where a unit that ran again is not as it was recorded.
    """
    if span is not None:
        from .inspection.replay import print_replay  # noqa: PLC0415 - loads pyarrow

        return print_replay(path, span, as_json)
    from .inspection.comparison.text import print_verification  # noqa: PLC0415 - loads pyarrow

    return print_verification(path, as_json)


# ``wincli why``: why a window of a result is as it is.


def why(
    path: Annotated[str, typer.Argument(metavar="OUT", help="A result, or the outputs of a range.")],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME=VALUE", help="Whose window: a value for each key column."),
    ] = None,
    window: Annotated[int | None, typer.Option("--window", metavar="N", help="The number of the window.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="A time in the window, or a number.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", metavar="LABEL", help="One unit of a range.")] = None,
    rows: Annotated[int, typer.Option("--rows", min=2, metavar="N", help="How many of its rows are shown.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Print the rows of a window, what opened and closed it, and what came close."""
    from .inspection.explanation.why import print_why  # noqa: PLC0415 - loads pyarrow and numba

    print_why(path, Messages(), only or (), window, at, unit, rows, as_json)


# ``wincli report``: a result or a state as one HTML file.


def report(
    path: Annotated[str, typer.Argument(metavar="DIR", help="A result, the outputs of a range, or a state.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file to write, or - for stdout.")
    ] = "report.html",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME=VALUE", help="A key to draw besides the busiest; repeatable."),
    ] = None,
) -> None:
    """Write one HTML file that shows the windows, rows, rejects, units and times of a result or a state."""
    from .inspection.report.gather import write_report  # noqa: PLC0415 - loads pyarrow

    write_report(path, output, only or (), Messages())


# ``wincli init``: a job proposed from a look at its input.


def init(
    paths: Annotated[list[str], typer.Argument(metavar="IN..", help="Files, folders, globs or URIs.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="JOB.yaml", help="Write the job here. Default: stdout."),
    ] = None,
    time: Annotated[str | None, typer.Option("--time", metavar="COL", help="The column with the time.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="COL,..", help="The columns of the key; an empty text: none.")
    ] = None,
    input_format: Annotated[
        Literal["auto", Format],
        typer.Option("--input-format", help="Format of the input. Default: by file name."),
    ] = "auto",
    delimiter: Annotated[
        str,
        typer.Option(
            "--delimiter", metavar="CHAR", help="CSV: the character between fields. Default: by the first line."
        ),
    ] = ",",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> int:
    """Look at the data in IN and propose a job: time, key and window, with what was seen as comments."""
    from ..readers.options import ReadOptions  # noqa: PLC0415
    from .inspection.proposal import init_job  # noqa: PLC0415 - loads pyarrow and numba

    columns = None if key is None else list(_names([key]))
    return init_job(paths, ReadOptions(input_format, delimiter=delimiter), output, time, columns, force)


# ``wincli test``: cases of a job, run in this process.


def test(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    cases: Annotated[
        str | None, typer.Argument(metavar="[CASES]", help="The file of its cases. Default: JOB.test.yaml beside it.")
    ] = None,
    var: arguments.Variables = None,
    only: Annotated[
        str | None, typer.Option("--only", "-k", metavar="TEXT", help="Only cases with this text in their name.")
    ] = None,
    junit: Annotated[
        str | None, typer.Option("--junit", metavar="FILE", help="Write a report in JUnit's XML to this file.")
    ] = None,
) -> int:
    """Run the cases of a job file: rows that are given, and the windows and rejects that are expected of them."""
    from .inspection.cases.command import check_job  # noqa: PLC0415 - loads pyarrow and numba

    return check_job(job, cases, only, junit, var or ())


# ``wincli doctor``: whether this machine has what runs need.


def doctor(
    store: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="URI", help="Check that files can be written and read there; repeatable."),
    ] = None,
    master: Annotated[str, typer.Option("--master", metavar="URL", help="The Spark to start.")] = "local[*]",
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Do not start Spark, which takes seconds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for bug reports; without secrets.")] = False,
) -> int:
    """Check what runs need: memory, space, Java, Spark and stores."""
    from .inspection.doctor import diagnose  # noqa: PLC0415 - only doctor needs it

    return diagnose(store or (), master, not no_spark, as_json)


# ``wincli state``: the units of a state listed, taken out again, and what it no longer needs deleted.


state = typer.Typer(
    name="state",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List the units of a state, and take units out again.",
)

_Dir = Annotated[str, typer.Argument(metavar="DIR", help="A state: the folder that --state names.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@state.command(name="list")
def list_(
    path: _Dir,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> int:
    """List the units: when each ran, what it left open, and whether its window state is kept."""
    from .inspection.results.upkeep import print_units  # noqa: PLC0415 - loads pyarrow

    return print_units(path, as_json)


@state.command()
def rollback(
    path: _Dir,
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="The last unit that stays.")],
    yes: _Yes = False,
) -> int:
    """Forget all units after UNIT: the state is as it was after that. Results stay."""
    from .inspection.results.upkeep import roll_back  # noqa: PLC0415 - loads pyarrow

    return roll_back(path, unit, yes, Messages())


@state.command()
def forget(
    path: _Dir,
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="The unit.")],
    yes: _Yes = False,
) -> int:
    """Forget one unit, as if it had never been run. Its result stays."""
    from .inspection.results.upkeep import forget_unit  # noqa: PLC0415 - loads pyarrow

    return forget_unit(path, unit, yes, Messages())


@state.command()
def gc(
    path: _Dir,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, metavar="N", help="Window states that stay. Default: as the job says, else all."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    yes: _Yes = False,
) -> int:
    """Delete window states of old units, and what killed runs have left."""
    from .inspection.results.upkeep import collect_garbage  # noqa: PLC0415 - loads pyarrow

    return collect_garbage(path, keep, dry_run, yes, Messages())


# ``wincli schema`` and ``wincli version``: the form of job files, and what is installed.


def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    say(schema_text())


def schema_text() -> str:
    """Return the JSON Schema of job files, indented."""
    from ..conf.job_file import printed_schema  # noqa: PLC0415 - loads pydantic and yaml

    return json_text(printed_schema(), 2)


def version() -> None:
    """Print the versions of wincli and of the libraries that it computes with."""
    say("\n".join(version_lines()))


def version_lines() -> list[str]:
    """Return one ``name version`` line for wincli, and for all that decides its results and speed."""
    from ..writers.output.versions import versions  # noqa: PLC0415

    return [f"{name} {version}" for name, version in versions().items()]


# The help page of ``run``: options in groups. It is plain text, so that nothing has to be imported for it.


_ONCE = ("distinct", "expression", "join")
"""Kinds of options that say what is computed: the last of two would silently drop the first."""


class GroupedCommand(typer.core.TyperCommand):
    """A command whose help page shows options in groups, in the order in which the groups first occur."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is that of click
        """Return the words after the name of the command in the usage line."""
        return ["[OPTIONS]", "[JOB.yaml]", "[IN]...", "[OUT]"]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line. Raises `ConfigError` where it says twice what a window is or which rows it has."""
        order = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=[*args])[2]
        for each in arguments.OPTIONS:
            if each.kind in _ONCE and [param.name for param in order].count(each.name) > 1:
                do = "join conditions with and" if each.kind == "expression" else "more are more stages of a job file"
                raise ConfigError(f"{each.flag} is given twice", do)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then each group of options under its name."""
        groups = {"Arguments": [*ARGUMENTS]}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if param.param_type_name == "option" else None
            if record is not None:
                groups.setdefault(getattr(param, "rich_help_panel", None) or MESSAGES, []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)
