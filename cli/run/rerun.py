"""Job requests that reprocess finished units: the jobs in their records, over the files that they have read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...conf.job import Job, read_job, with_later_keys, without_units
from ...readers.files.listing import NoFilesError, list_files
from ...readers.files.walk import MANIFEST
from ...windowing.errors import ConfigError, InputError
from ...windowing.support.address import Address
from ...writers.commit.tables import table_of
from ...writers.places.place import restored
from ...writers.state.unit_record import UnitRecord, WrittenOutput
from .fingerprint import AT_END, absolute, job_differences, new_end
from .steps import RerunReason
from .units import loss_of


def rerun_job(named: Sequence[str], record: UnitRecord) -> tuple[Job, list[str]]:
    """Return the job that reprocesses a plain run and replaces its outputs, and the files that the run has read.

    ``named``: the paths of the current command, from which secrets are restored that records do not hold. Raises
    `InputError` where a file is gone, `ConfigError` where an output holds something else by now, or a secret is
    missing.
    """
    if not record.outputs:
        what = f"{record.label} has to be run again, and it was made from a table, without an input"
        raise ConfigError(what, "reject late rows with --late reject")
    outputs = [replace(output, path=restored(output.path, named)) for output in record.outputs]
    for output in outputs:
        manifest = table_of(output.path).manifest()
        if manifest is None or manifest.get("run") != record.run:
            what = f"{record.label} has to be run again, and {output.shown} no longer holds its result"
            raise ConfigError(what, "put that back, or reject late rows with --late reject")
    files = [restored(file.path, named) for file in record.inputs]
    inputs = [restored(path, named) for path in record.job["input"]]
    bases = tuple(absolute(fixed_part(path)) for path in inputs)
    _check_files(record, files, bases)
    *own, last = outputs
    changed = {"input": inputs, "output": _named(last), "mode": "overwrite"}
    job = read_job({**without_units(with_later_keys(record.job)), **changed})
    job = job.with_stage_outputs(map(_named, own))
    return job.at(bases=bases), files


def with_same_end(job: Job, record: UnitRecord) -> Job:
    """Return a job whose stages have the ``at_end`` of those in a record, for the next unit began from that end."""
    ends = [stage["at_end"] for stage in record.job["stages"]]
    changed = [one.model_copy(update={"at_end": end}) for one, end in zip(job.stages, ends, strict=False)]
    return job.with_stages([*changed, *job.stages[len(ends) :]])


def _check_files(record: UnitRecord, files: Sequence[str], bases: Sequence[str]) -> None:
    try:
        list_files(files)
    except NoFilesError as error:
        what = f"{record.label} has to be run again, and its input is gone: {error.what}"
        raise InputError(what, "put its files back where they were") from error
    if not all(any((path == base or path.startswith(f"{base.rstrip('/')}/")) for base in bases) for path in files):
        what = f"{record.label} has to be run again, and {', '.join(record.job['input'])} is elsewhere from here"
        raise ConfigError(what, "run this where that was run, or name inputs by paths from the root on")
    for folder in {path.rpartition("/")[0] for path in files if Address.of(path).is_path}:
        if Path(folder, MANIFEST).exists():
            what = f"{record.label} has to be run again, and {folder} is a result that was read as a stream"
            raise ConfigError(what, "reject late rows with --late reject")


def _named(output: WrittenOutput) -> str:
    return output.shown if absolute(output.shown) == output.path else output.path


def fixed_part(path: str) -> str:
    """Return the folder of a path before its first wildcard; a path without wildcards unchanged."""
    magic = re.search(r"[*?\[]", path)
    return path if magic is None else path[: path.rfind("/", 0, magic.start()) + 1] or "."


# Whether a finished unit with the same files is reprocessed: its output is lost, or it is to end otherwise.


def check_same_job(now: Mapping[str, Any], records: Sequence[UnitRecord]) -> None:
    """Raise `ConfigError` where units of a range were done by another job than ``now``, saying what differs.

    ``at_end`` does not count: finished units stay as they were ended, but for `why_rerun`.
    """
    for record in records:
        if found := differences_of(record, now):
            of_types = all(text.startswith("its schema is ") for text in found)
            other = "begin the range after the units that are done" if of_types else "name another state"
            raise ConfigError(
                f"{record.label} was done by a job that asks for something else: {'; '.join(found)}",
                f"run that job, redo the range with --redo, or {other}",
            )


def differences_of(record: UnitRecord, now: Mapping[str, Any]) -> list[str]:
    """Describe how the job of a unit differs from ``now``, a job on the same state by whatever path.

    ``at_end`` does not count.
    """
    return job_differences({**record.job, "state": now["state"]}, now, AT_END)


def why_rerun(record: UnitRecord, now: Mapping[str, Any], is_last: bool, is_newest: bool) -> RerunReason | None:
    """Return the reason to reprocess a unit that this job has finished with the same files; None where there is none.

    ``is_last``: whether it is the last requested unit. ``is_newest``: whether the state has no later unit. The windows
    that the newest unit holds can be flushed, for no unit has begun from them. Windows that were flushed are taken
    back only with ``--redo``.
    """
    if loss := loss_of(record.outputs, record.run):
        return loss
    end = new_end(record.job, now) if is_last else None
    if end is None:
        return None
    return RerunReason(f"it was ended with {end[0]}, and is to be ended with {end[1]}", end[2] and is_newest)


def replacing(job: Job) -> Job:
    """Return a job that replaces results of an earlier run in its outputs."""
    return job.model_copy(update={"mode": "overwrite"})


def rerun_of_finished(job: Job, record: UnitRecord, now: Mapping[str, Any], is_end: bool) -> Job:
    """Return the job that reprocesses a unit without ``--redo``: its windows end as they did, or are flushed now.

    ``is_end``: whether it is the last requested unit, and the newest of the state.
    """
    end = new_end(record.job, now)
    return replacing(job if is_end and end is not None and end[2] else with_same_end(job, record))
