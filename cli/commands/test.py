"""``wincli test``: cases of a job, run in this process."""

from __future__ import annotations

from typing import Annotated

import typer

from ..arguments import options


def test(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    cases: Annotated[
        str | None, typer.Argument(metavar="[CASES]", help="The file of its cases. Default: JOB.test.yaml beside it.")
    ] = None,
    var: options.Variables = None,
    only: Annotated[
        str | None, typer.Option("--only", "-k", metavar="TEXT", help="Only cases with this text in their name.")
    ] = None,
    junit: Annotated[
        str | None, typer.Option("--junit", metavar="FILE", help="Write a report in JUnit's XML to this file.")
    ] = None,
) -> int:
    """Run the cases of a job file: rows that are given, and the windows and rejects that are expected of them."""
    from ..inspection.cases.command import check_job  # noqa: PLC0415 - loads pyarrow and numba

    return check_job(job, cases, only, junit, var or ())
