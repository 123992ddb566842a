"""The run that has started this one, from the environment, where Airflow and others put it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

PARENT, ROOT = "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID"


@dataclass(frozen=True, slots=True)
class RunName:
    """The identity of a run: the ``namespace`` and the ``name`` of its job, and its ``run_id``."""

    namespace: str
    name: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Parents:
    """The runs above one.

    ``parent``: the run that has started it; None: nobody says.
    ``root``: the run that has started all of them, as a DAG.
    ``notes``: what could not be read, in words.
    """

    parent: RunName | None = None
    root: RunName | None = None
    notes: tuple[str, ...] = ()


def parents_in(environ: Mapping[str, str]) -> Parents:
    """Return the runs that the environment names, in the form ``namespace/name/run_id``."""
    found, notes = {}, []
    for variable in (PARENT, ROOT):
        text = environ.get(variable, "").strip()
        found[variable] = _run_name(text)
        if text and found[variable] is None:
            notes.append(f"{variable} is not of the form namespace/name/run_id, with a UUID as run_id, and is not used")
    return Parents(found[PARENT], found[ROOT], tuple(notes))


def _run_name(text: str) -> RunName | None:
    """Return the run that a text names; None where it is of another form. A namespace may hold slashes."""
    before, _, run_id = text.rpartition("/")
    namespace, _, name = before.rpartition("/")
    try:
        UUID(run_id)
    except ValueError:
        return None
    return RunName(namespace, name, run_id) if namespace and name else None
