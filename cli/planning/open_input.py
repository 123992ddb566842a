"""The input of a job, opened: tasks find the types of text files, where these are large."""

from __future__ import annotations

from collections.abc import Sequence

from ...readers.open import open_source
from ...readers.source import FileSource
from ...windowing.spark.boot import PendingExecutor, SparkBoot
from ..request.request import JobRequest


def open_input(request: JobRequest, spark: SparkBoot, files: Sequence[str] | None = None) -> FileSource:
    """Open the input of a job's first stage, or only ``files`` of it. Raises what `open_source` raises.

    Spark is waited for only if tasks are needed.
    """
    return open_source(
        request.inputs if files is None else files,
        request.reading,
        PendingExecutor(spark.session),
    )
