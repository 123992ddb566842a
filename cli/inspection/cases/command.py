"""``wincli test``: run the cases of a job one after the other, and print the outcome of each as soon as it is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ....conf.job_files.parser import read_job_file
from ....conf.job_files.variables import given_variables
from ....conf.problems import as_error
from ....windowing.errors import ConfigError
from ....windowing.support.suggest import few
from ....windowing.support.user_modules import search
from ...console.messages import OK, UNEXPECTED
from ...console.side_file import check_side_files
from ...console.streams import has_colour, say
from .case import CaseFile
from .junit import junit_file, write_junit
from .parser import read_cases
from .run_cases import run_case
from .text import closing_line, outcome_lines


def check_job(path: str, cases: str | None, only: str | None, junit: str | None, variables: Sequence[str] = ()) -> int:
    """Run the cases of the job file ``path``, print what came of each, and return the exit code: 1 where one fails.

    ``cases``: their file; None: that beside the job. ``only``: a text in the names of those to run. ``junit``: the file
    of a report. ``variables``: NAME=VALUE for each ``${NAME}`` of the job file that ``--var`` gives. Raises
    `ConfigError` and `SpecError` for a file that is wrong, `ConfigError` and `OutputError` for the report.
    """
    file = read_job_file(path, given_variables(variables))
    found = read_cases(_cases_of(path) if cases is None else cases)
    chosen = _chosen(found, only)
    if file.problems:
        raise as_error(file.problems, file.path)
    report = None if junit is None else junit_file(junit)
    if report is not None:
        check_side_files([report], [("the job file", path), ("the file of cases", found.path)])
    search(Path.cwd())  # the job may call functions of the user
    is_coloured = has_colour()
    outcomes = []
    for case in chosen.cases:
        outcomes.append(run_case(file, case))
        for line in outcome_lines(outcomes[-1], is_coloured):
            say(line)
    say(closing_line(outcomes, found.path))
    if report is not None:
        write_junit(report, found.path, outcomes)
    return OK if all(outcome.passes for outcome in outcomes) else UNEXPECTED


def cases_beside(path: str) -> str:
    """Return where the cases of a job file are by default: ``NAME.test.yaml`` beside ``NAME.yaml``."""
    return f"{path.removesuffix(Path(path).suffix)}.test.yaml"


def _cases_of(path: str) -> str:
    beside = cases_beside(path)
    if not Path(beside).exists():
        raise ConfigError(f"{path} has no cases: there is no {beside}", "write it, or name the file of the cases")
    return beside


def _chosen(found: CaseFile, only: str | None) -> CaseFile:
    if only is None:
        return found
    chosen = tuple(case for case in found.cases if only.lower() in case.name.lower())
    if not chosen:
        names = few([repr(case.name) for case in found.cases])
        raise ConfigError(f"no case of {found.path} has {only!r} in its name", f"there are {names}")
    return CaseFile(found.path, chosen)
