"""Names of datasets: a path or URI becomes a namespace and a name, as OpenLineage names tables and folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ....conf.job import PIPE
from ....conf.ranges.path_templates import before_date, has_date
from ....conf.table_outputs import is_table, plain_path
from ....windowing.errors import shown
from ....windowing.support.addresses.redaction import redacted_path
from ....windowing.tables.address import split_path
from ...request.fingerprint import absolute
from ...request.request import JobRequest

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class DatasetName:
    """The name of a dataset.

    ``namespace``: the store that holds it: ``file``, ``s3://bucket``, ``iceberg://catalog``.
    ``name``: its name in there: an absolute path, a key, a table.
    """

    namespace: str
    name: str


def name_of(path: str) -> DatasetName:
    """Return the name of the dataset at a path; of a template or a glob, the folder that is the same for all of it.

    A partition of a table is a part of the dataset that the table is.
    """
    fixed = _fixed(path)
    return exact_name(split_path(plain_path(fixed)).root if is_table(fixed) else fixed)


def exact_name(path: str) -> DatasetName:
    """Return the name of the file or folder at a path that is taken as it is."""
    path = redacted_path(absolute(path))
    scheme, sign, rest = path.partition("://")
    if not sign:
        return DatasetName("file", shown(path))
    store, _, key = rest.partition("/")
    scheme = {"s3a": "s3", "abfs": "abfss", "gcs": "gs"}.get(scheme, scheme)
    return DatasetName(f"{scheme}://{store}", shown(key.strip("/")) or "/")


def _fixed(path: str) -> str:
    if has_date(path):
        path = before_date(path)
    wild = _WILD.search(path)
    return path if wild is None else path[: path.rfind("/", 0, wild.start()) + 1] or "."


def inputs_of(request: JobRequest) -> tuple[str, ...]:
    """Return the inputs of a job. Stdin is none."""
    return tuple(path for path in request.job.input if path != PIPE)


def outputs_of(request: JobRequest) -> tuple[str, ...]:
    """Return the outputs of a job, those of stages first. Stdout is none."""
    return tuple(path for path in request.outputs if path != PIPE)


def unique(names: Sequence[DatasetName]) -> tuple[DatasetName, ...]:
    """Return names, each once, in their order."""
    return tuple(dict.fromkeys(names))
