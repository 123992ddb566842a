"""Environment variables that begin with ``WINCLI_`` and that nothing reads: typing errors, of which a note warns."""

from __future__ import annotations

from collections.abc import Iterable

from ...windowing.support.suggest import nearest
from .options import VARIABLES

_OTHERS = ("WINCLI_CLASS_ARCHIVE",)
_PREFIX = "WINCLI_"
_WORKER = "WORKER_"  # the driver sets these for the workers of a run


def strange_variables(environ: Iterable[str]) -> tuple[str, ...]:
    """Return a note for each variable ``WINCLI_*`` that no option and nothing else reads."""
    known = [name.removeprefix(_PREFIX) for name in (*VARIABLES, *_OTHERS)]
    strange = [name.removeprefix(_PREFIX) for name in environ if name.startswith(_PREFIX)]
    strange = [name for name in strange if name not in known and not name.startswith(_WORKER)]
    return tuple(_note(name, nearest(name, known)) for name in sorted(strange))


def _note(name: str, near: str | None) -> str:
    return f"nothing reads the variable {_PREFIX}{name}" + (f"; did you mean {_PREFIX}{near}?" if near else "")
