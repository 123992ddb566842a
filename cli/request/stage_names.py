"""Names of stages in messages, where a job has several stages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...conf.job import SHARED_KEYS, SINGLE_KEYS
from ...conf.job_files.layers import ONLY
from ...conf.problems import with_keys
from ...windowing.errors import WincliError
from .request import JobRequest

_STAGE_KEYS = tuple(key for key in SINGLE_KEYS if key not in SHARED_KEYS)


def stage_prefix(request: JobRequest, stage: str) -> str:
    """Return the beginning of a message about a stage: ``stage sites: ``, or nothing where the job has only one."""
    return f"stage {stage}: " if len(request.stages) > 1 else ""


def with_stage_keys(request: JobRequest, advice: str) -> str:
    """Return an advice with keys of a stage in place of flags, where only a stage in a job file can set them."""
    has_stages = len(request.stages) > 1 or request.stages[0].stage.name != ONLY
    return with_keys(advice, _STAGE_KEYS) if has_stages else advice


@contextmanager
def naming_stage(request: JobRequest, stage: str) -> Iterator[None]:
    """Add to every `WincliError` of the body the name of its stage; its advice then names keys of the stage."""
    try:
        yield
    except WincliError as error:
        error.what = stage_prefix(request, stage) + error.what
        error.do = error.do and with_stage_keys(request, error.do)
        raise
