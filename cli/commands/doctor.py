"""``wincli doctor``: whether this machine has what runs need."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    store: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="URI", help="Check that files can be written and read there; repeatable."),
    ] = None,
    master: Annotated[str, typer.Option("--master", metavar="URL", help="The Spark to start.")] = "local[*]",
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Do not start Spark, which takes seconds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for bug reports; without secrets.")] = False,
) -> int:
    """Check what runs need: Python, packages, Java, Spark, memory, space, limits, cache, clock and stores."""
    from ..inspection.diagnosis.command import diagnose  # noqa: PLC0415 - only doctor needs it

    return diagnose(store or (), master, not no_spark, as_json)
