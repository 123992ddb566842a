"""What stands behind a report: the results to read, the job, and what runs have recorded of themselves."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....conf.ranges.units import Kind, kind_of, unit_of
from ....readers.files.listing import list_files
from ....readers.files.walk import MANIFEST
from ....windowing.errors import InputError, WincliError
from ....windowing.support.addresses.redaction import MASK
from ....writers.state.layout import is_state
from ....writers.state.state import read_state
from ....writers.state.unit_record import UnitRecord
from ..results.folder_status import Status, read_status
from ..results.result import ResultFolder, open_result_folder
from .calendar import UnitTimes


@dataclass(frozen=True, slots=True)
class Folder:
    """A state, a folder of results, or a result.

    ``status``: its units and their counts.
    ``results``: the results in it, or that its units wrote, in the order of the units; those that can be opened.
    ``job``: the job, as it was recorded last.
    ``kind``: the kind of the units; None for plain runs, and for one result.
    ``times``: when units were written.
    ``seconds``: what each unit recorded of its phases.
    ``versions``: package to version, of the last run.
    ``inputs``: (size in bytes) of every input file.
    ``notes``: sentences on results that cannot be opened.
    """

    status: Status
    results: tuple[ResultFolder, ...]
    job: Mapping[str, Any]
    kind: Kind | None
    times: UnitTimes
    seconds: tuple[Mapping[str, float], ...]
    versions: Mapping[str, str | None]
    inputs: tuple[int, ...]
    notes: tuple[str, ...]


def read_folder(path: str) -> Folder:
    """Read what ``path`` holds. Raises as `read_status` does."""
    status = read_status(path, socket.gethostname())
    return _of_state(path, status) if is_state(path) else _of_results(path, status)


def _of_state(path: str, status: Status) -> Folder:
    records = read_state(path).records
    if not records:
        raise InputError(f"the state {path} has no finished unit yet", "run the job first")
    places = [(record.label, record.outputs[-1].path) for record in records if record.outputs]
    opened = [*_opened(places)]
    results = tuple(each for each in opened if isinstance(each, ResultFolder))
    last = records[-1]
    times = UnitTimes(
        {record.label: record.finished for record in records},
        frozenset(record.label for record in records if record.reruns),
    )
    told = tuple(result.manifest["seconds"] for result in results) or tuple(record.seconds for record in records)
    return Folder(
        status,
        results,
        last.job,
        kind_of(last.label, last.ordinal),
        times,
        told,
        last.versions,
        _sizes(records),
        tuple(each for each in opened if isinstance(each, str)),
    )


def _sizes(records: Sequence[UnitRecord]) -> tuple[int, ...]:
    return tuple(file.size for record in records for file in record.inputs)


def _of_results(path: str, status: Status) -> Folder:
    listed = list_files([path], skip_unreadable=True).manifests
    places = [(unit.label, _folder(file.place.shown)) for unit, file in zip(status.units, listed, strict=True)]
    opened = [*_opened(places)]
    results = tuple(each for each in opened if isinstance(each, ResultFolder))
    if not results:
        raise InputError(str(opened[0]), "write the result again")
    last = results[-1].manifest
    kind: Kind | None = last["job"].get("unit", "day") if status.what == "range" else None
    if kind and not any(unit_of(unit.label, kind) for unit in status.units):
        kind = None
    written = {unit.label: file.mtime or "" for unit, file in zip(status.units, listed, strict=True)}
    return Folder(
        status,
        results,
        last["job"],
        kind,
        UnitTimes(written),
        tuple(result.manifest["seconds"] for result in results),
        last["versions"],
        tuple(file["size"] for result in results for file in result.manifest["inputs"]),
        tuple(each for each in opened if isinstance(each, str)),
    )


def _folder(manifest: str) -> str:
    return manifest.removesuffix(MANIFEST).rstrip("/") or "."


def _opened(places: Sequence[tuple[str, str]]) -> Iterator[ResultFolder | str]:
    """Yield each result, or a sentence on why it cannot be opened."""
    for label, path in places:
        if MASK in path:
            yield f"the windows of {label} are left out: the path of its result had secrets, which no record holds"
            continue
        try:
            yield open_result_folder(path)
        except WincliError as error:
            yield f"the windows of {label} are left out: {error.what}"
