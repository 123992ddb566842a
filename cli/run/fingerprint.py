"""Fingerprints of runs: whether a run would read the same files for the same job as a run before it.

They make runs idempotent: the same command again changes nothing that is done.
"""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import chain
from typing import Any

from ...conf.job import BESIDE, as_recorded, default_stage, plain_amounts
from ...conf.options import JOB_OPTIONS
from ...windowing.errors import ConfigError, SpecError, printable
from ...windowing.language.joins import parse_join
from ...windowing.ports import InputFile
from ...windowing.support.address import Address
from ...windowing.support.option import option_text
from ...windowing.support.redaction import redacted_path
from ...writers.state.unit_record import UnitRecord

_RESULT_DEFINING = tuple(each.name for each in JOB_OPTIONS if each.decides_result)
_LATER: Mapping[str, Any] = {key: [] for key in BESIDE}  # what older versions did not know
_LOCATION_KEY = "output"
AT_END = "at_end"


def same_inputs(one: Iterable[InputFile], other: Iterable[InputFile]) -> bool:
    """Whether two inputs are the same files by path, size and time. Relative paths are below the working folder."""
    return set(map(_identity, one)) == set(map(_identity, other))


def absolute(path: str) -> str:
    """Return a local path as an absolute one, with links left unresolved; a URI unchanged."""
    return printable(os.path.abspath(path)) if Address.of(path).is_path else path  # noqa: PTH100 - Path.resolve would follow links


def _identity(file: InputFile) -> tuple[str, int, str | None]:
    return redacted_path(absolute(file.path)), file.size, file.mtime


def same_job(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether two jobs, as manifests hold them, give the same result for the same files in the same place."""
    return not job_differences(was, now)


def job_differences(was: Mapping[str, Any], now: Mapping[str, Any], but: str = _LOCATION_KEY) -> list[str]:
    """Describe the options in which two jobs, as manifests hold them, differ; only options that change a result count.

    Options for speed, messages, paths and ranges do not count, nor does ``late``, which each unit decides for itself.
    ``1m`` and ``60`` are the same time. The code of user functions is not compared. Options that a job of an older
    version lacks had their defaults. ``but``: an option of stages that does not count, besides their outputs. Returns
    an empty list if the jobs agree.
    """
    old, new = ([stage["name"] for stage in job.get("stages") or ()] for job in (was, now))
    if old != new:
        return [f"its stages are {option_text(old)}, not {option_text(new)}"]
    one_job, other_job = ({key: job.get(key, _LATER.get(key)) for key in _RESULT_DEFINING} for job in (was, now))
    found = list(_different(one_job, other_job, {}))
    for one, other in zip(was.get("stages") or (), now.get("stages") or (), strict=True):
        which = f"stage {one['name']}: " if len(old) > 1 else ""
        found += [which + text for text in _different(one, other, default_stage(), {_LOCATION_KEY, but})]
    return found


def job_id(job: Mapping[str, Any]) -> str:
    """Return the id of a job as records hold it: that of all jobs that `job_differences` finds no difference in."""
    own = {key: _normal(key, job.get(key, _LATER.get(key))) for key in _RESULT_DEFINING}
    stages = [
        {key: _normal(key, value) for key, value in {**default_stage(), **stage}.items() if key != _LOCATION_KEY}
        for stage in job.get("stages") or ()
    ]
    text = json.dumps({**own, "stages": stages}, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _different(
    was: Mapping[str, Any], now: Mapping[str, Any], default: Mapping[str, Any], but: Set[str] = frozenset()
) -> Iterator[str]:
    for key in dict.fromkeys([*now, *was]):
        old, new = (job.get(key, default.get(key)) for job in (was, now))
        if key not in but and old != new and (None in (old, new) or _normal(key, old) != _normal(key, new)):
            yield f"its {key} is {option_text(old)}, not {option_text(new)}"


def _normal(key: str, value: Any) -> Any:
    if key == "join" and value is not None:  # which files it has read is another question
        with suppress(SpecError):
            value = str(parse_join(value).without_place)
    return as_recorded(key, plain_amounts(key, value))


def new_end(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str, bool] | None:
    """Compare the ``at_end`` of two jobs with the same stages.

    Returns the old values, the new values, and whether the change only flushes windows that the stages hold; None
    where nothing changes.
    """
    pairs = [
        (one[AT_END], other[AT_END])
        for one, other in zip(was["stages"], now["stages"], strict=False)
        if one[AT_END] != other[AT_END]
    ]
    if not pairs:
        return None
    old, new = (", ".join(dict.fromkeys(ends)) for ends in zip(*pairs, strict=True))
    return old, new, all(old == "hold" for old, _ in pairs)


def already_done(
    records: Sequence[UnitRecord],
    files: Sequence[InputFile],
    is_same: Callable[[UnitRecord], bool],
    logs: Mapping[str, Sequence[InputFile]] = {},
) -> UnitRecord | None:
    """Return the newest record of a state if a plain run would repeat it, None if the run has something to do.

    ``records``: those of the state, ascending. ``is_same``: whether a record is of this job, with these outputs.
    ``logs``: the files of the right sides of its joins, by their names. Raises `ConfigError` where a file was read by
    an earlier unit: its rows would be counted twice.
    """

    def read_by(record: UnitRecord) -> tuple[InputFile, ...]:
        return (*record.inputs, *chain.from_iterable(record.enrich.get(name, ()) for name in logs))

    files = (*files, *chain.from_iterable(logs.values()))
    if records and same_inputs(read_by(records[-1]), files) and is_same(records[-1]):
        return records[-1]
    read = {_identity(file): record.label for record in records for file in read_by(record)}
    for file in files:
        if label := read.get(_identity(file)):
            what = f"{file.path} was read by {label} of this state already"
            raise ConfigError(what, "name only new files, or use {date} with --start and --end")
    return None
