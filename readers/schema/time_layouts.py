"""Guess the layouts (strptime formats) that may parse a text as a time: ``01/02/2026 10:00`` has two."""

from __future__ import annotations

import re

_WEEKDAY = re.compile(r"(?<![a-z%])(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*(?![a-z])", re.IGNORECASE)
_MONTH = re.compile(r"(?<![a-z%])(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*(?![a-z])", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:(?<=\d{4}:)|(?<=%Y:)|(?<![\d.:]))\d{1,2}:\d\d(?!\d)(:\d\d(?!\d))?([.,:]\d{1,9}(?!\d))?( ?[ap]m(?![a-z]))?",
    re.IGNORECASE,
)
_OFFSET = re.compile(r" ?[-+]\d\d:?\d\d(?!\d)")
_CLOCK_IN_POINTS = re.compile(r"(?<=\D)\d{1,2}\.\d\d\.\d\d(?!\d)([.,]\d{1,9}(?!\d))?")
_ZONE = re.compile(r"((?:%S|%M|%f|%p) ?)(?:Z(?![a-zA-Z])|[-+]\d\d(?::?\d\d)?(?!\d))")
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_SHORT = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_BY_YEAR = re.compile(r"(?<!\d)\d{4}([-/._])\d{1,2}\1\d{1,2}(?!\d)")
_YEAR_LAST = re.compile(r"(?<!\d)\d{1,2}([-/._])\d{1,2}\1\d{4}(?!\d)")
_YEAR_SHORT = re.compile(r"(?<!\d)\d{1,2}([-/._])\d{1,2}\1\d\d(?!\d)")
_NO_YEAR = re.compile(r"(?<!\d)\d{1,2}([-/._])\d{1,2}(?!\d)")
_RUNS = (
    (re.compile(r"(?<!\d)\d{14}(?!\d)"), ("%Y%m%d%H%M%S",)),
    (re.compile(r"(?<!\d)\d{8}([T _-]?)\d{6}(?!\d)"), (r"%Y%m%d\1%H%M%S",)),
    (re.compile(r"(?<!\d)\d{6}([T _-])\d{6}(?!\d)"), (r"%y%m%d\1%H%M%S", r"%d%m%y\1%H%M%S")),
    (re.compile(r"(?<!\d)\d{8}(?!\d)"), ("%Y%m%d",)),
)
_NUMBERED = (
    (_BY_YEAR, (r"%Y\1%m\1%d",)),
    (_YEAR_LAST, (r"%d\1%m\1%Y", r"%m\1%d\1%Y")),
    (_YEAR_SHORT, (r"%d\1%m\1%y", r"%m\1%d\1%y", r"%y\1%m\1%d")),
    (_NO_YEAR, (r"%m\1%d",)),
)
_FOREIGN = re.compile(r"\d|(?<!%)[A-Za-z]{2,}")  # digits and words in a layout match only themselves: no useful guess


def layouts_of(text: str) -> list[str]:
    """Return the layouts that a text may have, day before month; also layouts that lack the year or the whole date.

    The parser decides whether a layout fits. A text that does not look like a time has no layouts.

    >>> layouts_of("01/02/2026 10:00")
    ['%d/%m/%Y %H:%M', '%m/%d/%Y %H:%M']
    >>> layouts_of("[22/Nov/2026:10:00:05 +0000]"), layouts_of("10:00:05"), layouts_of("R02-M1-N0-C:J12-U11")
    (['[%d/%b/%Y:%H:%M:%S %z]'], ['%H:%M:%S'], [])
    """
    text = _MONTH.sub("%b", _WEEKDAY.sub("%a", text.replace("%", "%%"), count=1), count=1)
    found = [_with_clock(each) for each in _dated(text)]
    return [each for each in found if "%" in each and not _FOREIGN.search(_without_zone_names(each))]


def _dated(text: str) -> list[str]:
    """Return a text with directives in place of its date, once for each possible order of day, month and year."""
    if "%b" in text:
        start, stop = _clock_in(text)
        whole = f"{text[:start]}\0{text[stop:]}"
        for pattern, directive in ((_YEAR, "%Y"), (_SHORT, "%d"), *([] if _YEAR.search(whole) else [(_SHORT, "%y")])):
            whole = pattern.sub(directive, whole, count=1)
        return [whole.replace("\0", text[start:stop])]
    for pattern, forms in (*_RUNS, *_NUMBERED):
        if pattern.search(text):
            return [pattern.sub(form, text, count=1) for form in forms]
    return [text]


def _clock_in(text: str) -> tuple[int, int]:
    """Return start and stop of the time of day with its offset, whose digits are not the date's; (0, 0) for none."""
    clock = _CLOCK.search(text)
    if clock is None:
        return 0, 0
    offset = _OFFSET.match(text, clock.end())
    return clock.start(), (offset or clock).end()


def _with_clock(text: str) -> str:
    """Return a text with directives in place of its time of day and its zone."""
    text = _CLOCK.sub(_clock, text, count=1)
    if "%d" in text and "%H" not in text:
        text = _CLOCK_IN_POINTS.sub(lambda m: "%H.%M.%S" + (f"{m[1][0]}%f" if m[1] else ""), text, count=1)
    return _ZONE.sub(r"\1%z", text, count=1)


def _clock(found: re.Match[str]) -> str:
    seconds, fraction, half = found.groups()
    layout = ("%I" if half else "%H") + ":%M" + (":%S" if seconds else "")
    return layout + (f"{fraction[0]}%f" if fraction else "") + ((" " if half[0] == " " else "") + "%p" if half else "")


def _without_zone_names(layout: str) -> str:
    return re.sub(r" (?:UTC|GMT)(?![A-Za-z])", "", layout)
