"""A copy of all that a range would change, in a scratch folder: outputs are empty there, and the state is linked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ....conf.ranges.path_templates import has_date
from ....windowing.errors import ConfigError
from ....writers.folders.os_errors import output_errors
from ....writers.state.state import read_state
from ....writers.state.storage.places import storage_of
from ...planning.request import JobRequest


def in_scratch(request: JobRequest, folder: Path) -> JobRequest:
    """Return a job with its outputs and its state in an empty ``folder``.

    The state is copied, as hard links where it is in a local folder. Raises `ConfigError` where a run on the state was
    killed in its commit, so that the state has to be recovered first.
    """
    outputs = [_moved(path, folder, at) for at, path in enumerate(request.outputs)]
    moved = request.with_stage_outputs(outputs[:-1])
    changed = {"output": outputs[-1], "confirm_effect": None, "mode": "error"}
    if request.job.state is not None:
        _copy_state(request.job.state, folder / "state")
        changed["state"] = str(folder / "state")
    return replace(moved, job=moved.job.model_copy(update=changed))


def _moved(path: str, folder: Path, at: int) -> str:
    """Return the place of an output in the scratch folder; a template stays one, with the layout of its dates."""
    below = folder / f"output-{at}"
    if not has_date(path):
        return str(below)
    begin = path.index("{date")
    return str(below / path[begin : path.index("}", begin) + 1].replace("/", "-"))


def _copy_state(state: str, target: Path) -> None:
    if not storage_of(state).has_others():
        return
    view = read_state(state)
    if view.pending is not None:
        what = f"a run on the state {state} was killed while it committed a unit"
        raise ConfigError(what, "run again without a look at the effect: that puts the unit in place")
    with output_errors(f"the scratch folder {target}"):
        view.storage.copy_to(target)
