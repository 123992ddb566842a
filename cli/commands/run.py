"""``wincli run``: windows over event logs, or a job file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..arguments import options

if TYPE_CHECKING:
    from ..job.context import RunContext
    from ..request.request import JobRequest

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


@options.with_options
def run(
    paths: options.Paths = None,
    *,
    var: options.Variables = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    **given: Any,
) -> int:
    """Apply a window to the event logs in IN and write one row per pane to OUT; or run a job file."""
    from ..arguments.environment import with_variables  # noqa: PLC0415 - only a run needs it
    from ..launch.run import run_command  # noqa: PLC0415 - loads pyarrow, numba and Spark

    return run_command(
        {"paths": paths, "var": var, **with_variables(given, os.environ)}, -1 if quiet else verbose, _confirm
    )


def _confirm(request: JobRequest, context: RunContext) -> None:
    from ..inspection.effect.confirm import confirm  # noqa: PLC0415 - few runs ask for it

    confirm(request, context)
