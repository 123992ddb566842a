"""The input of a job, opened: tasks find the types of text files, where these are large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...readers.open import open_source
from ...readers.source import FileSource
from ...windowing.ports import Executor
from ...windowing.spark.boot import PendingExecutor
from ..request.request import JobRequest


class Starting(Protocol):
    """A Spark that may still be starting, or what stands in its place."""

    def session(self) -> Executor:
        """Wait until tasks can run."""
        ...


def open_input(request: JobRequest, spark: Starting, files: Sequence[str] | None = None) -> FileSource:
    """Open the input of a job's first stage, or only ``files`` of it. Raises what `open_source` raises.

    Spark is waited for only if tasks are needed.
    """
    return open_source(
        request.inputs if files is None else files,
        request.reading,
        PendingExecutor(spark.session),
    )
