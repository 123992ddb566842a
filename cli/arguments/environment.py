"""Environment variables that begin with ``WINCLI_``: values of repeatable options, and names that nothing reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...windowing.support.option import Kind
from ...windowing.support.suggest import nearest
from .options import REPEATABLE, VARIABLES

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
    return tuple(_note(name, nearest(name, known)) for name in sorted(strange))


def _note(name: str, near: str | None) -> str:
    return f"nothing reads the variable {_PREFIX}{name}" + (f"; did you mean {_PREFIX}{near}?" if near else "")
