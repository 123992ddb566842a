"""What came of cases as JUnit XML, which build servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from ....windowing.support.addresses.redaction import redacted
from ...console.side_file import SideFile, write_side_file
from .outcome import CaseOutcome
from .text import difference, headline

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


def junit_file(path: str) -> SideFile:
    """Return the file of a report. Its first line is that of other XML, too, but few write it just so."""
    return SideFile("--junit", path, "a report in JUnit's XML", "report.xml", lambda line: line == _HEAD.encode())


def write_junit(file: SideFile, cases: str, outcomes: Sequence[CaseOutcome]) -> None:
    """Write a report. ``cases``: the file of the cases. Raises as `write_side_file` does."""
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", _suite(cases, outcomes))
    for outcome in outcomes:
        _case(suite, cases, outcome)
    text = ElementTree.tostring(root, encoding="unicode")
    write_side_file(file, f"{_HEAD}{text}\n")


def _suite(cases: str, outcomes: Sequence[CaseOutcome]) -> dict[str, str]:
    return {
        "name": _clean(cases),
        "tests": str(len(outcomes)),
        "failures": str(sum(bool(each.mismatches) for each in outcomes)),
        "errors": str(sum(each.error is not None for each in outcomes)),
        "time": f"{sum(each.seconds for each in outcomes):.3f}",
    }


def _case(suite: ElementTree.Element, cases: str, outcome: CaseOutcome) -> None:
    path, line = _clean(cases), str(outcome.case.line)
    seconds = f"{outcome.seconds:.3f}"
    attributes = {"name": _clean(outcome.case.name), "classname": path, "time": seconds, "file": path, "line": line}
    element = ElementTree.SubElement(suite, "testcase", attributes)
    if outcome.error is not None:
        _problem(element, "error", outcome.error, "")
    elif outcome.mismatches:
        texts = ["\n".join([headline(each), *difference(each, is_coloured=False)]) for each in outcome.mismatches]
        drawn = [outcome.drawing] if outcome.drawing else []
        _problem(element, "failure", headline(outcome.mismatches[0]), "\n\n".join([*texts, *drawn]))


def _problem(element: ElementTree.Element, kind: str, message: str, text: str) -> None:
    ElementTree.SubElement(element, kind, {"message": _clean(message)}).text = _clean(text)


def _clean(text: str) -> str:
    """Return a text without secrets, and without characters that XML cannot hold."""
    return redacted(_NOT_IN_XML.sub("�", text))
