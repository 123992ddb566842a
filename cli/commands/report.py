"""``wincli report``: a result or a state as one HTML file."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console.messages import Messages


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
    from ..inspection.report.write import write_report  # noqa: PLC0415 - loads pyarrow

    write_report(path, output, only or (), Messages())
