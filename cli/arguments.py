"""The options of ``wincli run``, made from their declarations. Nothing heavy is imported for them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer

from ..conf.options import JOB_OPTIONS, STAGE_OPTIONS
from ..windowing.errors import nearest
from ..windowing.support.option import GROUPS, Kind, Option, with_parameters

MESSAGES = GROUPS[-1]

ARGUMENTS = (
    ("JOB.yaml", "A job file: options as keys, which flags override."),
    ("IN", "A file, a folder (read recursively), a glob, or a URI; several of them; or - for stdin."),
    ("OUT", "The folder to write, whole or not at all; or - for stdout."),
)
"""The parts of `Paths` for the help page: the last of several paths is OUT."""
Paths = Annotated[list[str] | None, typer.Argument(metavar="[JOB.yaml] [IN]... [OUT]", show_default=False, hidden=True)]

Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--var",
        metavar="NAME=VALUE",
        show_default=False,
        help="What ${NAME} is in the job file (repeatable). Default: the environment variable.",
        rich_help_panel=GROUPS[1],
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.", rich_help_panel=MESSAGES)]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="More details; -vv: stack traces of errors.",
        rich_help_panel=MESSAGES,
    ),
]

_LISTS: tuple[Kind, ...] = (
    "calls", "enrichments", "expectations", "lets", "names", "partitions", "settings", "windows",
)  # fmt: skip
_TYPES: Mapping[Kind, Any] = {"number": int, "switch": bool, **dict.fromkeys(_LISTS, list[str])}
_METAVARS: Mapping[Kind, str] = {
    "calls": "[NAME=]FUNC(ARGS)",
    "character": "CHAR",
    "distinct": "COL,.. [within D] [count N]",
    "duration": "DURATION",
    "enrichments": "NAME=PATH on KEY..",
    "expectations": "EXPR",
    "expression": "EXPR",
    "join": "NAME[=PATH] on KEY..",
    "lets": "NAME=EXPR",
    "names": "COL,..",
    "number": "N",
    "origin": "TIME|SECONDS",
    "path": "DIR",
    "settings": "K=V",
    "size": "SIZE",
    "types": "COL:TYPE,..",
    "window": "SPEC",
    "windows": "NAME=PATH from..",
}
_COMPLETIONS: Mapping[Kind, str] = {"calls": "aggregates", "join": "joins", "names": "columns", "window": "windows"}


def _listed() -> tuple[Option, ...]:
    flags = [each for each in (*STAGE_OPTIONS, *JOB_OPTIONS) if each.has_flag]
    listed = sorted((each for each in flags if each.below is None), key=lambda each: GROUPS.index(each.group))
    for each in flags:
        if each.below is not None:
            listed.insert(1 + [other.name for other in listed].index(each.below), each)
    return tuple(listed)


OPTIONS = _listed()
"""The options that have a flag, in the order of the help."""

VARIABLES = [each.variable for each in OPTIONS]
"""The environment variables that give options."""

REPEATABLE = [each for each in OPTIONS if each.kind in _LISTS]
"""The options that may be given several times. Their variables are read by `cli.arguments`."""


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all options: its ``**options`` takes them, with None for those that are not given."""
    return with_parameters(command, _parameters(), eval_str=True)


def _parameters() -> Iterator[inspect.Parameter]:
    for each in OPTIONS:
        annotation = _TYPES.get(each.kind, str) | None
        # The option for Typer. Switches have flags for both values, so that each can override a job file.
        metavar = each.metavar or "|".join(each.words) or _METAVARS.get(each.kind)
        text = each.help
        if each.has_default and each.kind != "switch" and "Default: " not in text:  # else it names one in its own words
            text = f"{text} Default: {each.default}.".lstrip()
        default = typer.Option(
            None,
            each.flag + (f"/--no-{each.flag[2:]}" if each.kind == "switch" else ""),
            *filter(None, [each.short]),
            help=text,
            metavar=metavar,
            envvar=None if each.kind in _LISTS else each.variable,
            show_envvar=False,
            rich_help_panel=each.group,
            autocompletion=_completing(metavar, each.complete or _COMPLETIONS.get(each.kind)),
        )
        yield inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _completing(metavar: str | None, name: str | None) -> Callable[[typer.Context, str], list[str]] | None:
    """Return the function that gives a shell the values for the beginning that was typed; None without values.

    ``name``: that of a function in `cli.completion`, besides words of ``metavar``; None: no such function.
    """
    words = [word for word in (metavar or "").split("|") if word.isalpha() and word.islower()]
    if not words and name is None:
        return None

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found = [word for word in words if word.startswith(incomplete)]
        if name is None:
            return found
        from . import completion  # noqa: PLC0415 - only where a shell asks

        return [*found, *getattr(completion, name)(ctx, incomplete)]

    return complete


# Environment variables that begin with ``WINCLI_``: values of repeatable options, and names that nothing reads.


_OTHERS = ("WINCLI_CLASS_ARCHIVE",)
_PREFIX = "WINCLI_"
_WORKER = "WORKER_"  # the driver sets these for the workers of a run
_CALL = r"(?:\w+=)?[\w.:]+\(\S*\)"
_APART: Mapping[Kind, tuple[str, str]] = {
    "calls": (rf"{_CALL}(?:\s+{_CALL})*", r"\s+"),
    "names": (r'[^,"]*', r"\s+(?!\s|(?i:asc|desc)(?:\s|$))"),
    "settings": (r".*", r"\s+(?=spark\.)"),
}
"""Kinds of values that may stand side by side on a line: what such a line is like, and what separates its values."""


def with_variables(given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a command line with those repeatable ones that it does not give and a variable does.

    A variable holds one value a line. Lines are divided here, as Typer divides at every space.
    """
    found = {each.name: values_of(environ.get(each.variable, ""), each.kind) for each in REPEATABLE}
    return {**given, **{name: values for name, values in found.items() if values and not given.get(name)}}


def values_of(text: str, kind: Kind) -> list[str]:
    """Return the values of a variable: one a line, blank lines left out; of some kinds a line may hold several."""
    whole, between = _APART.get(kind, ("", ""))
    lines = [line.strip() for line in text.splitlines()]
    apart = [re.split(between, line) if whole and re.fullmatch(whole, line) else [line] for line in lines]
    return [value for values in apart for value in values if value]


def strange_variables(environ: Iterable[str]) -> tuple[str, ...]:
    """Return a note for each variable ``WINCLI_*`` that no option and nothing else reads."""
    known = [name.removeprefix(_PREFIX) for name in (*VARIABLES, *_OTHERS)]
    strange = [name.removeprefix(_PREFIX) for name in environ if name.startswith(_PREFIX)]
    strange = [name for name in strange if name not in known and not name.startswith(_WORKER)]
    nearby = [(name, nearest(name, known)) for name in sorted(strange)]
    return tuple(
        f"nothing reads the variable {_PREFIX}{name}" + (f"; did you mean {_PREFIX}{near}?" if near else "")
        for name, near in nearby
    )
