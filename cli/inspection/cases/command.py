"""``wincli test``: run the cases of a job one after the other, and print the outcome of each as soon as it is done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from ....conf.job_file import given_variables, read_job_file
from ....conf.problems import as_error
from ....windowing.errors import ConfigError, few
from ....windowing.support.amounts import count_of
from ....windowing.support.modules import search
from ....windowing.support.redaction import redacted
from ...console.messages import OK, UNEXPECTED
from ...console.side_file import SideFile, check_side_files, write_side_file
from ...console.streams import clean, has_colour, say
from ...console.table import cell_width, cut_to, padded
from .case import read_cases
from .compare import CaseOutcome, Mismatch
from .run_cases import run_case

# What came of cases, as text for people: a line for each case, and of those that fail what differs, and how.


_RED, _GREEN, _BOLD, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"
_MOST_PAIRS = 20
_WIDEST = 40


def outcome_lines(outcome: CaseOutcome, is_coloured: bool) -> Iterator[str]:
    """Yield the lines on one case."""
    word = _paint("ok  ", _GREEN, is_coloured) if outcome.passes else _paint("FAIL", _RED + _BOLD, is_coloured)
    yield f"{word}  {clean(outcome.case.name)}  ({outcome.seconds * 1000:,.0f} ms)"
    if outcome.error is not None:
        yield from (f"      {clean(line)}" for line in outcome.error.splitlines())
    for mismatch in outcome.mismatches:
        yield f"      {clean(headline(mismatch))}"
        yield from (f"      {line}".rstrip() for line in difference(mismatch, is_coloured))
    if outcome.drawing is not None:
        yield ""
        yield from (f"      {clean(line)}".rstrip() for line in outcome.drawing.rstrip().splitlines())
        yield ""


def closing_line(outcomes: Sequence[CaseOutcome], path: str) -> str:
    """Return the last line: how many cases there were, and how many of them failed."""
    failed = sum(not outcome.passes for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    words = f"{failed:,} of them not as expected" if failed else "all as expected"
    return f"{clean(path)}: {count_of(len(outcomes), 'case')}, {words} ({seconds * 1000:,.0f} ms)"


def headline(mismatch: Mismatch) -> str:
    """Return in words how many rows are not as expected."""
    if not mismatch.pairs:
        return f"{mismatch.what}: all are there, in another order"
    differ = sum(pair.expected is not None and pair.found is not None for pair in mismatch.pairs)
    missing = sum(pair.found is None for pair in mismatch.pairs)
    unexpected = sum(pair.expected is None for pair in mismatch.pairs)
    counts = ((differ, "differ" if differ != 1 else "differs"), (missing, "missing"), (unexpected, "not expected"))
    return f"{mismatch.what}: {', '.join(f'{n} {word}' for n, word in counts if n)}, {mismatch.same} as expected"


def difference(mismatch: Mismatch, is_coloured: bool) -> list[str]:
    """Return the rows that differ as a table: ``-`` is expected, ``+`` was found, ``^`` marks cells that differ."""
    if not mismatch.pairs:
        return []
    pairs = mismatch.pairs[:_MOST_PAIRS]
    rows: list[tuple[str, Sequence[str], Sequence[bool]]] = [("  ", mismatch.columns, ())]
    for pair in pairs:
        own = [(sign, texts) for sign, texts in (("- ", pair.expected), ("+ ", pair.found)) if texts is not None]
        rows += [(sign, texts, pair.differs if sign == own[-1][0] else ()) for sign, texts in own]
    cells = [[cut_to(clean(cell), _WIDEST) for cell in texts] for _, texts, _ in rows]
    widths = [max(map(cell_width, column)) for column in zip(*cells, strict=True)]
    lines = []
    for (sign, _, differs), row in zip(rows, cells, strict=True):
        text = sign + "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        lines.append(_paint(text, {"- ": _RED, "+ ": _GREEN}.get(sign, ""), is_coloured))
        if any(differs):
            marks = ("^" * width if is_other else " " * width for is_other, width in zip(differs, widths, strict=True))
            lines.append(("  " + "  ".join(marks)).rstrip())
    more = len(mismatch.pairs) - len(pairs)
    return [*lines, *([f"  and {count_of(more, 'row')} more"] if more else [])]


def _paint(text: str, colour: str, is_coloured: bool) -> str:
    return f"{colour}{text}{_PLAIN}" if is_coloured and colour else text


# What came of cases as JUnit XML, which build servers read.


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


def write_junit(file: SideFile, cases: str, outcomes: Sequence[CaseOutcome]) -> None:
    """Write a report. ``cases``: the file of the cases. Raises as `write_side_file` does."""
    root = ElementTree.Element("testsuites")
    counts = {
        "name": _xml_text(cases),
        "tests": str(len(outcomes)),
        "failures": str(sum(bool(each.mismatches) for each in outcomes)),
        "errors": str(sum(each.error is not None for each in outcomes)),
        "time": f"{sum(each.seconds for each in outcomes):.3f}",
    }
    suite = ElementTree.SubElement(root, "testsuite", counts)
    for outcome in outcomes:
        path, seconds = _xml_text(cases), f"{outcome.seconds:.3f}"
        named = {"name": _xml_text(outcome.case.name), "classname": path, "time": seconds}
        case = ElementTree.SubElement(suite, "testcase", {**named, "file": path, "line": str(outcome.case.line)})
        kind, message, text = "error", outcome.error, ""
        if outcome.error is None and outcome.mismatches:
            texts = ["\n".join([headline(each), *difference(each, is_coloured=False)]) for each in outcome.mismatches]
            drawn = [outcome.drawing] if outcome.drawing else []
            kind, message, text = "failure", headline(outcome.mismatches[0]), "\n\n".join([*texts, *drawn])
        if message is not None:
            ElementTree.SubElement(case, kind, {"message": _xml_text(message)}).text = _xml_text(text)
    text = ElementTree.tostring(root, encoding="unicode")
    write_side_file(file, f"{_HEAD}{text}\n")


def _xml_text(text: str) -> str:
    return redacted(_NOT_IN_XML.sub("�", text))


def check_job(path: str, cases: str | None, only: str | None, junit: str | None, variables: Sequence[str] = ()) -> int:
    """Run the cases of the job file ``path``, print what came of each, and return the exit code: 1 where one fails.

    ``cases``: their file; None: that beside the job. ``only``: a text in the names of those to run. ``junit``: the file
    of a report. ``variables``: NAME=VALUE for each ``${NAME}`` of the job file that ``--var`` gives. Raises
    `ConfigError` and `SpecError` for a file that is wrong, `ConfigError` and `OutputError` for the report.
    """
    file = read_job_file(path, given_variables(variables))
    if cases is None:
        cases = cases_beside(path)
        if not Path(cases).exists():
            raise ConfigError(f"{path} has no cases: there is no {cases}", "write it, or name the file of the cases")
    known = read_cases(cases)
    chosen = [case for case in known if only is None or only.lower() in case.name.lower()]
    if not chosen:
        names = few([repr(case.name) for case in known])
        raise ConfigError(f"no case of {cases} has {only!r} in its name", f"there are {names}")
    if file.problems:
        raise as_error(file.problems, file.path)
    report = None
    if junit is not None:  # the first line is that of other XML, too, but few write it just so

        def is_own(line: bytes) -> bool:
            return line == _HEAD.encode()

        report = SideFile("--junit", junit, "a report in JUnit's XML", "report.xml", is_own)
    if report is not None:
        check_side_files([report], [("the job file", path), ("the file of cases", cases)])
    search(Path.cwd())  # the job may call functions of the user
    is_coloured = has_colour()
    outcomes = []
    for case in chosen:
        outcomes.append(run_case(file, case))
        for line in outcome_lines(outcomes[-1], is_coloured):
            say(line)
    say(closing_line(outcomes, cases))
    if report is not None:
        write_junit(report, cases, outcomes)
    return OK if all(outcome.passes for outcome in outcomes) else UNEXPECTED


def cases_beside(path: str) -> str:
    """Return where the cases of a job file are by default: ``NAME.test.yaml`` beside ``NAME.yaml``."""
    return f"{path.removesuffix(Path(path).suffix)}.test.yaml"
