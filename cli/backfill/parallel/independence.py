"""Which units of a range may run at the same time: those of which none needs what another leaves."""

from __future__ import annotations

from ...request.request import JobRequest


def why_one_by_one(request: JobRequest) -> str | None:
    """Return why the units of a range run one after the other, in words; None where none of them needs another.

    Without a state every unit begins from nothing, and writes to a place of its own. On a state each begins from what
    the one before has left: open windows, or at least the numbers of the next windows, and the position before which
    rows are late. So even units that end all their windows (``--at-end flush`` and ``drop``) need each other there.
    """
    if request.job.state is None:
        return None
    if any(stage.options.at_end == "hold" for stage in request.stages):
        return "open windows of one unit go on in the next"
    return "window numbers, and what rows are late, go on from unit to unit; without --state each is by itself"
