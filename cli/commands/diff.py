"""``wincli diff``: how two results differ, window by window."""

from __future__ import annotations

from typing import Annotated

import typer


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
    from ..inspection.comparison.command import print_diff  # noqa: PLC0415 - loads pyarrow
    from ..inspection.comparison.compare import DiffRequest  # noqa: PLC0415 - likewise

    return print_diff(DiffRequest(a, b, _names(by), _names(columns), tolerance, sort, head or None), as_json)


def _names(texts: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in texts or () for name in text.split(",") if name.strip())
