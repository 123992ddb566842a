"""``wincli schema`` and ``wincli version``: the form of job files, and what is installed."""

from __future__ import annotations

from ..console.output import json_text, say


def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    say(schema_text())


def schema_text() -> str:
    """Return the JSON Schema of job files, indented."""
    from ...conf.job_files.schema import printed_schema  # noqa: PLC0415 - loads pydantic and yaml

    return json_text(printed_schema(), 2)


def version() -> None:
    """Print the versions of wincli and of the libraries that it computes with."""
    say("\n".join(version_lines()))


def version_lines() -> list[str]:
    """Return one ``name version`` line for wincli, and for all that decides its results and speed."""
    from ...writers.output.versions import versions  # noqa: PLC0415

    return [f"{name} {version}" for name, version in versions().items()]
