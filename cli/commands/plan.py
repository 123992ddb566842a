"""``wincli plan``: what a run would do, before it."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from ..arguments import options

EXAMPLES = """
\b
Examples:
  wincli plan --window "gap(ts, 30m)" --key user in/ out/
  wincli plan --window "gap(ts, 30m)" --key user --only user=u7 --rows 60 in/ out/
  wincli plan nightly.yaml --start 2026-11-01 --end 2026-11-08
  wincli plan nightly.yaml --start 2026-11-01 --end 2026-11-02 --redo --effect
\b
Nothing is written, and Spark is started for --effect alone. Exit codes are those of the run, as far as it is foreseen.
"""

_PLAN = "Plan"


@options.with_options
def plan(
    paths: options.Paths = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object, for machines.", rich_help_panel=_PLAN)
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="COL=VALUE",
            help="Draw the windows of this key (repeatable). Default: those with the most rows.",
            rich_help_panel=_PLAN,
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int,
        typer.Option(
            "--rows",
            metavar="N",
            help="Draw so many rows; 0: none. Default: 40.",
            rich_help_panel=_PLAN,
            show_default=False,
        ),
    ] = 40,
    effect: Annotated[
        bool,
        typer.Option("--effect", help="Compute a range in a scratch folder; say what changes.", rich_help_panel=_PLAN),
    ] = False,
    var: options.Variables = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    **given: Any,
) -> int:
    """Say what a run with the same arguments would do, and draw its windows over the first rows; write nothing."""
    from ..arguments.environment import with_variables  # noqa: PLC0415 - only a plan needs it
    from ..inspection.forecast.command import PlanOptions, plan_command  # noqa: PLC0415 - loads pyarrow and numba

    own = PlanOptions(as_json, tuple(only or ()), rows, effect)
    return plan_command(
        {"paths": paths, "var": var, **with_variables(given, os.environ)}, -1 if quiet else verbose, own
    )
