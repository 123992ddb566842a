"""``wincli state``: the units of a state listed, taken out again, and what it no longer needs deleted."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console.messages import Messages

state = typer.Typer(
    name="state",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List the units of a state, and take units out again.",
)

_Dir = Annotated[str, typer.Argument(metavar="DIR", help="A state: the folder that --state names.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@state.command(name="list")
def list_(
    path: _Dir,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> int:
    """List the units: when each ran, what it left open, and whether its window state is kept."""
    from ..inspection.upkeep import print_units  # noqa: PLC0415 - loads pyarrow

    return print_units(path, as_json)


@state.command()
def rollback(
    path: _Dir,
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="The last unit that stays.")],
    yes: _Yes = False,
) -> int:
    """Forget all units after UNIT: the state is as it was after that. Results stay."""
    from ..inspection.upkeep import roll_back  # noqa: PLC0415 - loads pyarrow

    return roll_back(path, unit, yes, Messages())


@state.command()
def forget(
    path: _Dir,
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="The unit.")],
    yes: _Yes = False,
) -> int:
    """Forget one unit, as if it had never been run. Its result stays."""
    from ..inspection.upkeep import forget_unit  # noqa: PLC0415 - loads pyarrow

    return forget_unit(path, unit, yes, Messages())


@state.command()
def gc(
    path: _Dir,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, metavar="N", help="Window states that stay. Default: as the job says, else all."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    yes: _Yes = False,
) -> int:
    """Delete window states of old units, and what killed runs have left."""
    from ..inspection.upkeep import collect_garbage  # noqa: PLC0415 - loads pyarrow

    return collect_garbage(path, keep, dry_run, yes, Messages())
