"""``wincli show``: the rows of a result, its rejects, or the open windows of a state."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console.messages import Messages


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
    from ...windowing.errors import ConfigError  # noqa: PLC0415 - beside the next
    from ..inspection.results.show import Form, ShowRequest, print_rows  # noqa: PLC0415 - loads pyarrow

    given: list[tuple[Form, bool]] = [("jsonl", as_json), ("csv", as_csv), ("drawing", draw)]
    forms = [form for form, is_given in given if is_given]
    if len(forms) > 1:
        raise ConfigError("--json, --csv and --draw are three forms of one answer", "say one of them")
    names = tuple(name.strip() for text in columns or () for name in text.split(",") if name.strip())
    print_rows(
        ShowRequest(path, unit, stage, rejects, head, where, tuple(only or ()), names, *forms[:1]),
        Messages(),
    )
