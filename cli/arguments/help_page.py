"""The help page of ``run``: options in groups. It is plain text, so that nothing has to be imported for it."""

from __future__ import annotations

from typing import Any

import typer.core

from .options import ARGUMENTS, MESSAGES


class GroupedCommand(typer.core.TyperCommand):
    """A command whose help page shows options in groups, in the order in which the groups first occur."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is that of click
        """Return the words after the name of the command in the usage line."""
        return ["[OPTIONS]", "[JOB.yaml]", "[IN]...", "[OUT]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then each group of options under its name."""
        groups = {"Arguments": [*ARGUMENTS]}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if param.param_type_name == "option" else None
            if record is not None:
                groups.setdefault(getattr(param, "rich_help_panel", None) or MESSAGES, []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)
