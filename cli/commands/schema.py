"""``wincli schema``: the form of job files, for editors."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    typer.echo(schema_text())


def schema_text() -> str:
    """Return the JSON Schema of job files, indented."""
    from ...conf.job_files.schema import file_schema  # noqa: PLC0415 - loads pydantic and yaml

    return json.dumps(file_schema(), indent=2)
