"""``wincli init``: look at an input, propose a job, run its first case, and write both files or print the job."""

from __future__ import annotations

import os
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from ....conf.job import PIPE
from ....readers.options import ReadOptions
from ....windowing.errors import ConfigError, printable, shown
from ....windowing.support.addresses.redaction import redacted
from ...console.messages import OK
from ...console.side_file import SideFile, check_side_files, write_side_file
from ...console.streams import say, terminal_width
from ..cases.command import cases_beside
from .case_text import case_text
from .findings import key_words, order_words, time_words, window_words
from .job_text import job_text
from .proposal import Proposal, propose
from .sample import take_sample

_NAME = "job.yaml"
_WIDTH = 110


def init_job(
    paths: Sequence[str],
    options: ReadOptions,
    target: str | None,
    time: str | None,
    key: Sequence[str] | None,
    is_forced: bool,
) -> int:
    """Propose a job for the input ``paths``, and write it to ``target`` with a case beside it; None: print it.

    Raises `ConfigError` where a file is there already and ``is_forced`` is not set, or an option does not fit;
    `InputError` where the input cannot be read; `OutputError` where a file cannot be written.
    """
    if PIPE in paths:
        raise ConfigError("init reads an input more than once, and stdin can be read once", "write it to a file first")
    files = () if target is None else _files(target, is_forced)
    check_side_files(files, [("the input", path) for path in paths])
    with tempfile.TemporaryDirectory(prefix="wincli-init-") as name:
        folder = Path(name)
        (folder / "heads").mkdir()
        proposal = propose(paths, take_sample(paths, options, folder / "heads"), time, key)
        job, cases = _texts(proposal, folder / _NAME, Path(target).name if target is not None else _NAME)
    if target is None:
        say(job.removesuffix("\n"))
        return OK
    for file, text in zip(files, (job, cases), strict=True):
        write_side_file(file, text)
    _print(proposal, target)
    return OK


def _texts(proposal: Proposal, draft: Path, name: str) -> tuple[str, str]:
    """Return the texts of a job and of its cases. ``draft``: where the job is written to be run; ``name``: its name."""
    job = job_text(proposal, name)
    draft.write_text(job, encoding="utf-8")
    return job, case_text(proposal, draft, name)


def _files(target: str, is_forced: bool) -> tuple[SideFile, SideFile]:
    """Return the file of the job and that of its cases; what is there is replaced only where the user says so."""
    job, cases = (SideFile("-o", name, "a job", _NAME, lambda _: is_forced) for name in (target, cases_beside(target)))
    for file in (job, cases):
        if not is_forced and os.path.lexists(file.name):
            raise ConfigError(f"{printable(file.name)} is there already", "name another file with -o, or say --force")
    if not target.lower().endswith((".yaml", ".yml")):
        raise ConfigError(f"-o {printable(target)}: a job file is known by its ending", f"name one such as {_NAME}")
    return job, cases


def _print(proposal: Proposal, target: str) -> None:
    width = min(terminal_width() or _WIDTH, _WIDTH)
    say(redacted(shown(f"{proposal.inputs[0]}: {proposal.sample.extent}")))
    for label, sentences in _sections(proposal):
        text = redacted(shown(" ".join(sentences)))
        if text:
            say(textwrap.fill(text, width, initial_indent=f"{label:8}", subsequent_indent=" " * 8))
    beside = cases_beside(target)
    say(shown(f"{target} and {beside} are written; next: wincli test {target}"))


def _sections(proposal: Proposal) -> Iterable[tuple[str, Iterable[str]]]:
    yield "time", time_words(proposal)
    yield "order", order_words(proposal)
    yield "key", key_words(proposal)
    yield "gaps", window_words(proposal)
    yield "window", [shown(proposal.window)]
