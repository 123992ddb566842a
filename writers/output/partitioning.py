"""How a result is divided into folders: the partition columns, checked against the columns of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...windowing.errors import ConfigError
from ...windowing.support.suggest import did_you_mean
from .partition_folders import LONGEST, can_name, escape, folders_of

_FLAG = "--partition-by"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition columns of a result; `bind_partitions` makes it.

    ``columns``: the partition columns, the outermost first, with their types.
    ``files``: the columns of the files: those of the result without the partition columns.
    ``most_open``: how many files a task may hold open.
    """

    columns: pa.Schema
    files: pa.Schema
    most_open: int

    def folders(self, rows: pa.Table) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Return the folder of each row of the result: int64 (n,) indices into a list of folders.

        Raises `DataError` for a value that cannot name a folder.
        """
        return folders_of(self.columns.names, [rows[name] for name in self.columns.names])


def bind_partitions(names: Sequence[str], schema: pa.Schema, most_open: int) -> Partitioning | None:
    """Return how a result of ``schema`` is divided by the columns ``names``; None for no name.

    Raises `ConfigError` for a column that the result lacks, that is named twice, whose values cannot name folders, or
    whose name hides a folder from readers; and where no column would be left.
    """
    if not names:
        return None
    for at, name in enumerate(names):
        _check(name, schema)
        if name in names[:at]:
            raise ConfigError(f"{_FLAG} names {name!r} twice", "name it once")
    files = pa.schema([field for field in schema if field.name not in names])
    if not files.names:
        raise ConfigError(f"{_FLAG} leaves no column in the files", "leave one of them out")
    return Partitioning(pa.schema([schema.field(name) for name in names]), files, most_open)


def _check(name: str, schema: pa.Schema) -> None:
    if name not in schema.names:
        what = f"{_FLAG} names {name!r}, which the result does not have"
        raise ConfigError(what, did_you_mean(name, schema.names))
    if name.startswith(("_", ".")):
        raise ConfigError(
            f"{_FLAG} names {name!r}, and readers pass over folders whose name begins with {name[0]}",
            "name another column",
        )
    if not can_name(kind := schema.field(name).type):
        what = f"{_FLAG} names {name!r}, and values of type {kind} cannot name a folder"
        raise ConfigError(what, "name a column of texts, numbers, dates or times")
    if len(escape(name).encode()) > LONGEST // 2:
        raise ConfigError(f"{_FLAG} names {name[:40]!r}.., which is too long for a folder", "give it a shorter name")
