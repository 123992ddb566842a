"""``wincli status``: what a state, a backfill or a result holds."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console.messages import Messages


def status(
    path: Annotated[str, typer.Argument(metavar="DIR", help="A state, the outputs of a range, or one result.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Print the units and row counts of a state, a backfill or a result."""
    from ..inspection.status import print_status  # noqa: PLC0415 - loads pyarrow

    print_status(path, as_json, Messages())
