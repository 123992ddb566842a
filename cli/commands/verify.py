"""``wincli verify``: whether results and states are as they were written."""

from __future__ import annotations

from typing import Annotated

import typer


def verify(
    path: Annotated[str, typer.Argument(metavar="DIR", help="A result, the outputs of a range, or a state.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> int:
    """Check files, rows, digests and row accounts against what runs recorded; exit code 4 where one is damaged."""
    from ..inspection.comparison.command import print_verification  # noqa: PLC0415 - loads pyarrow

    return print_verification(path, as_json)
