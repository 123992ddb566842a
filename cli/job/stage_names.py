"""Which stage a message is about, where a job has several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...conf.job import SHARED_KEYS, SINGLE_KEYS
from ...conf.job_files.layers import ONLY
from ...conf.problems import with_keys
from ...windowing.errors import WincliError
from .request import JobRequest

_STAGE_KEYS = tuple(key for key in SINGLE_KEYS if key not in SHARED_KEYS)


def stage_prefix(asked: JobRequest, stage: str) -> str:
    """Return what a message about a stage begins with: ``stage sites: ``, or nothing where there is only one."""
    return f"stage {stage}: " if len(asked.stages) > 1 else ""


def with_stage_keys(asked: JobRequest, advice: str) -> str:
    """Return an advice with the keys of a stage in place of flags, where only stages can say such a thing."""
    has_stages = len(asked.stages) > 1 or asked.stages[0].stage.name != ONLY
    return with_keys(advice, _STAGE_KEYS) if has_stages else advice


@contextmanager
def naming_stage(asked: JobRequest, stage: str) -> Iterator[None]:
    """Let every `WincliError` of the body say which stage it is of, and by which key of it that is mended."""
    try:
        yield
    except WincliError as error:
        error.what = stage_prefix(asked, stage) + error.what
        error.do = error.do and with_stage_keys(asked, error.do)
        raise
