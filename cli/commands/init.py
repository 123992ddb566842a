"""``wincli init``: a job proposed from a look at its input."""

from __future__ import annotations

from typing import Annotated, Literal

import typer


def init(
    paths: Annotated[list[str], typer.Argument(metavar="IN..", help="Files, folders, globs or URIs.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="JOB.yaml", help="Write the job here, and a case beside it. Default: stdout."
        ),
    ] = None,
    time: Annotated[str | None, typer.Option("--time", metavar="COL", help="The column with the time.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="COL,..", help="The columns of the key; an empty text: none.")
    ] = None,
    input_format: Annotated[
        Literal["auto", "parquet", "csv", "jsonl", "orc"],
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
    """Look at the data in IN and propose a job: time, key, order and window, with the reasons as comments."""
    from ...readers.options import ReadOptions  # noqa: PLC0415
    from ..inspection.proposal.command import init_job  # noqa: PLC0415 - loads pyarrow and numba

    columns = None if key is None else [name.strip() for name in key.split(",") if name.strip()]
    return init_job(paths, ReadOptions(input_format, delimiter=delimiter), output, time, columns, force)
