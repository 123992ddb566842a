"""What was done before: whether a run would read the same files for the same job once more."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from windowing.engine.ports import InputFile
from windowing.errors import ConfigError
from windowing.names import printable
from windowing.redaction import redacted_path

_DECIDES = ("stages", "input_format", "schema", "multiline", "delimiter", "file_order", "state", "late")
_ONLY_WHERE = ("output",)


class Stage(Protocol):
    """What a stage of a unit came to; ``counts`` are those of the manifest, and ``carried``."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def counts(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def windows(self) -> int: ...  # noqa: D102


class Record(Protocol):
    """A finished unit. ``previous``: label of the unit whose state it began from, None for none."""

    @property
    def label(self) -> str: ...  # noqa: D102
    @property
    def ordinal(self) -> int: ...  # noqa: D102
    @property
    def inputs(self) -> Sequence[InputFile]: ...  # noqa: D102
    @property
    def previous(self) -> str | None: ...  # noqa: D102
    @property
    def stages(self) -> Sequence[Stage]: ...  # noqa: D102


R = TypeVar("R", bound=Record)


def same_inputs(one: Iterable[InputFile], other: Iterable[InputFile]) -> bool:
    """Whether these are the same files: paths, sizes and times. Relative paths are below the working folder."""
    return set(map(_identity, one)) == set(map(_identity, other))


def absolute(path: str) -> str:
    """Return a local path from the root on, its links as they are; a URI as it is."""
    return path if "://" in path else printable(os.path.abspath(path))  # noqa: PTH100 - Path.resolve would follow links


def _identity(file: InputFile) -> tuple[str, int, str | None]:
    return redacted_path(absolute(file.path)), file.size, file.mtime


def same_job(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether two jobs, as manifests hold them, give the same result for the same files in the same place.

    What a job says of speed, messages, paths and ranges does not count; the code of user functions is not looked at.
    """
    return _deciding(was) == _deciding(now)


def _deciding(job: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: job.get(key) for key in _DECIDES}
    kept["stages"] = [
        {key: value for key, value in stage.items() if key not in _ONLY_WHERE} for stage in job.get("stages") or ()
    ]
    return kept


def plain_run(records: Sequence[R], files: Sequence[InputFile], is_same: Callable[[R], bool]) -> R | None:
    """Decide on a plain run onto a state: return the newest record if the run would repeat it, None to run.

    ``records``: of the state, ascending. ``is_same``: whether a record is of this job, with these outputs.
    Raises `ConfigError` where a file was read by an earlier unit: its rows would be counted twice.
    """
    if records and same_inputs(records[-1].inputs, files) and is_same(records[-1]):
        return records[-1]
    read = {_identity(file): record.label for record in records for file in record.inputs}
    for file in files:
        if label := read.get(_identity(file)):
            what = f"{file.path} was read by {label} of this state already"
            raise ConfigError(what, "name only new files, or use {date} with --start and --end")
    return None
