"""What looks on at a command as its job asks, from its beginning to its end; loaded when Java starts, or never."""

from __future__ import annotations

import datetime as dt
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...conf.job import Job, plain_path
from ...windowing.errors import ConfigError
from ...windowing.support.redaction import redacted_path
from ...writers.places.os_errors import reason
from ..console.messages import CLOSED, Messages
from ..console.side_file import SideFile, check_side_files

if TYPE_CHECKING:
    from ..run.context import RunObserver
    from .lineage import Lineage
    from .metrics import Metrics

_FIRST = b"# HELP wincli_"


@dataclass(slots=True)
class Monitors:
    """What looks on at one command.

    ``job``: the job as the user requested it.
    ``started``: `time.perf_counter` when the command began.
    """

    job: Job
    messages: Messages
    started: float
    _began: dt.datetime | None = field(default=None, init=False)
    _lineage: Lineage | None = field(default=None, init=False)
    _metrics: Metrics | None = field(default=None, init=False)

    def open(self) -> None:
        """Begin. Raises `ConfigError` where what the job asks for cannot be had; then nothing is written or sent."""
        check_side_files(side_files_of(self.job), self.job.named)
        self._began = dt.datetime.now(dt.UTC)

    def observers(self) -> tuple[RunObserver, ...]:
        """Return what looks on at runs, and begin to look. Raises `ConfigError` for a configuration of OpenLineage."""
        found: list[RunObserver] = []
        if self.job.metrics_file is not None:
            from .metrics import Metrics  # noqa: PLC0415 - loads pyarrow

            self._metrics = Metrics()
            found.append(self._metrics)
        if self.job.lineage is not None:
            found.append(self._open_lineage(self.job.lineage))
        return tuple(found)

    def end(self, exit_code: int, error: BaseException | None = None) -> None:
        """See the command end. What cannot be written or sent is a note: it is no reason for a run to fail."""
        if self._began is None:
            return
        if self.job.metrics_file is not None:
            from ...writers.output.versions import version_of  # noqa: PLC0415 - only for runs with metrics
            from .metrics import Metrics, text_of, values_in  # noqa: PLC0415

            file, is_success = metrics_file(self.job.metrics_file), error is None and exit_code != CLOSED
            seconds, version = time.perf_counter() - self.started, version_of("wincli") or "unknown"
            gauges = (self._metrics or Metrics()).gauges(
                exit_code, is_success, seconds, version, values_in(file.read())
            )
            text = text_of(gauges, {"output": redacted_path(plain_path(self.job.output))})
            try:
                file.replace(text.encode())
            except (ConfigError, OSError) as problem:
                why = problem if isinstance(problem, ConfigError) else f"{file}: {reason(problem)}"
                self.messages.note(f"the metrics could not be written: {why}")
        if self.job.lineage is not None:
            with suppress(ConfigError):  # that is the error that ends the command
                (self._lineage or self._open_lineage(self.job.lineage)).close(error)

    def _open_lineage(self, target: str) -> Lineage:
        from .lineage import Lineage  # noqa: PLC0415 - only for runs with lineage
        from .lineage_transport import outbox_to  # noqa: PLC0415

        assert self._began is not None
        self._lineage = Lineage(self.job, self.messages, outbox_to(target))
        self._lineage.open(self._began)
        return self._lineage


def side_files_of(job: Job) -> tuple[SideFile, ...]:
    """Return the files that a job writes beside its result. Raises `ConfigError` where events cannot be sent."""
    found: list[SideFile | None] = []
    if job.metrics_file is not None:
        found.append(metrics_file(job.metrics_file))
    if job.lineage is not None:
        from .lineage_transport import event_file  # noqa: PLC0415 - only for runs with lineage

        found.append(event_file(job.lineage))
    return tuple(filter(None, found))


def metrics_file(name: str) -> SideFile:
    """Return the file of metrics of a name."""
    return SideFile("--metrics-file", name, "a metrics file", "wincli.prom", lambda line: line.startswith(_FIRST))
