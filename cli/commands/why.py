"""``wincli why``: why a window of a result is as it is."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console.messages import Messages


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
    from ..inspection.explanation.why import WhyRequest, print_why  # noqa: PLC0415 - loads pyarrow and numba

    print_why(WhyRequest(path, tuple(only or ()), window, at, unit, rows, as_json), Messages())
