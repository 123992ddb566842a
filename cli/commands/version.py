"""``wincli version``: what is installed."""

from __future__ import annotations

import typer


def version() -> None:
    """Print the versions of wincli and of the libraries that it computes with."""
    typer.echo("\n".join(version_lines()))


def version_lines() -> list[str]:
    """Return one ``name version`` line for wincli, and for all that decides its results and speed."""
    from ...writers.output.manifest import versions  # noqa: PLC0415 - loads pyarrow

    return [f"{name} {version}" for name, version in versions().items()]
