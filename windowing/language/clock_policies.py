"""The policies that the clock decides, each with how it is written, read and told (sections 2 and 3).

A policy is its value, the form of its call and its reader, one below the other, and a line of `CLOCK_POLICIES`.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ..errors import ConfigError, Span, did_you_mean, nearest
from ..expressions.tokens import Token, quoted
from .calls import Call, Distance, Form, Policy, Rule
from .tokens import Cursor, Times, decimal_text, duration

UNITS: Final = ("day", "week", "month", "quarter", "year")
_WEEKDAYS: Final = {
    "mon": "Monday", "tue": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "fri": "Friday", "sat": "Saturday",
    "sun": "Sunday",
}  # fmt: skip
_CALENDAR: Final = Form('calendar(day, "Europe/Paris", 23:59)', 1, 3, "1 to 3 arguments", named=True, words=UNITS)
_CRON: Final = Form('cron("59 23 * * 1-5", "Europe/Paris")', 1, 2, "1 or 2 arguments")
_CRON_DO: Final = 'the fields are minute, hour, day of month, month and day of week, as in "59 23 * * 1-5"'
_FIELDS: Final = ("minute", "hour", "day-of-month", "month", "day-of-week")  # as cronsim calls them
_CLOCK: Final = re.compile("([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")


@dataclass(frozen=True, slots=True)
class Time(Policy):
    """``time(seconds)``: a grid, an age or ticks on the clock (sections 2 and 3).

    ``seconds``: greater than 0.
    """

    seconds: Fraction

    @property
    def distances(self) -> tuple[Distance, ...]:
        return (Distance(None, self.seconds),)

    @property
    def stretch(self) -> str:
        return f"the intervals of {duration(self.seconds)} on the clock"

    def ending(self, _: Times) -> str:
        return f"with the interval of {duration(self.seconds)} on the clock that its first row is in"

    def __str__(self) -> str:
        return f"time({decimal_text(self.seconds)})"


@dataclass(frozen=True, slots=True)
class Calendar(Policy):
    """``calendar(unit, tz, at)``: local days, weeks, months, quarters or years that begin at a time of day (section 2).

    ``unit``: day, week, month, quarter or year.
    ``tz``: a zone name of the tz database.
    ``at``: time of day in whole seconds, without a zone.
    ``start``: mon .. sun, the first day of a week; without meaning for other units.
    """

    unit: str
    tz: str = "UTC"
    at: dt.time = dt.time(0)
    start: str = "mon"

    @property
    def zones(self) -> tuple[str, ...]:
        return (self.tz,)

    @property
    def stretch(self) -> str:
        return f"the {self.unit}s in {self.tz}{self._begin}"

    def ending(self, _: Times) -> str:
        return f"with the {self.unit} in {self.tz} that its first row is in{self._begin}"

    @property
    def _begin(self) -> str:
        day = f" on {_WEEKDAYS[self.start]}s" if self.unit == "week" else ""
        at = "" if self.at == dt.time(0) else f" at {self.at.isoformat('seconds' if self.at.second else 'minutes')}"
        return f", which begin{day}{at}" if day or at else ""

    def __str__(self) -> str:
        words = [f"week@{self.start}" if self.unit == "week" else self.unit]
        if self.tz != "UTC":
            words.append("tz=" + quoted(self.tz, '"'))
        if self.at != dt.time(0):
            words.append("at=" + self.at.isoformat("seconds" if self.at.second else "minutes"))
        return f"calendar({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class Growing(Policy):
    """``POLICY every STEP``: windows of the clock that come out at each step as far as they have come (section 2).

    ``window``: what the windows are.
    ``every``: the seconds between two steps, from the beginning of a window on; of ``time`` they divide it.
    """

    window: Time | Calendar
    every: Fraction

    @property
    def distances(self) -> tuple[Distance, ...]:
        windows = self.window.distances  # a calendar has none: it reads plain numbers as seconds
        return (*windows, Distance(None, self.every)) if windows else ()

    @property
    def zones(self) -> tuple[str, ...]:
        return self.window.zones

    @property
    def stretch(self) -> str | None:
        return self.window.stretch

    def __str__(self) -> str:
        return f"{self.window} every {decimal_text(self.every)}"


def read_growing(cursor: Cursor, window: Policy, span: Span) -> Growing:
    """Parse ``every STEP`` behind a policy at ``span``; the cursor is at ``every``. Raises `SpecError`."""
    token, do = cursor.take(), "write it as time(1h) every 5m"
    if not isinstance(window, Time | Calendar):
        name = cursor.source[span.start : span.stop].partition("(")[0]
        raise cursor.error(f"{name} takes no every: it is for time and calendar", token.span, do)
    step = cursor.take()
    every = cursor.duration(step, do)
    if isinstance(window, Time) and window.seconds % every:
        whole, part = (getattr(each, "written", decimal_text(each)) for each in (window.seconds, every))
        what = f"every must divide the window: {part} does not divide {whole}"
        raise cursor.error(what, step.span, "the window is a whole number of steps")
    if isinstance(window, Calendar) and every.denominator != 1:
        what = f"the steps of a calendar are whole seconds, and this is {step}"
        raise cursor.error(what, step.span, "write for example calendar(day) every 1h")
    return Growing(window, every)


def _calendar(cursor: Cursor, call: Call, _: int) -> Calendar:
    found = _bind(cursor, call, ("unit", "tz", "at"))
    if "unit" not in found:
        raise cursor.error("calendar needs a unit", call.first.span, call.do)
    unit, start = _unit(cursor, found["unit"])
    tz = _zone(cursor, found["tz"]) if "tz" in found else "UTC"
    at = _clock(cursor, found["at"]) if "at" in found else dt.time(0)
    return Calendar(unit, tz, at, start)


@dataclass(frozen=True, slots=True)
class Cron(Policy):
    """``cron(expression, tz)``: from one instant of a cron expression to the next (section 12).

    ``expression``: five fields, with one space between two.
    ``tz``: a zone name of the tz database.
    """

    expression: str
    tz: str = "UTC"

    @property
    def zones(self) -> tuple[str, ...]:
        return (self.tz,)

    @property
    def stretch(self) -> str:
        return f'the intervals between the instants of cron "{self.expression}" in {self.tz}'

    def ending(self, _: Times) -> str:
        return f'at the next instant of cron "{self.expression}" in {self.tz}'

    def __str__(self) -> str:
        words = [quoted(self.expression, '"')] + ([] if self.tz == "UTC" else [quoted(self.tz, '"')])
        return f"cron({', '.join(words)})"


def _cron(cursor: Cursor, call: Call, _: int) -> Cron:
    expression = _expression(cursor, call.first, call.do)
    return Cron(expression, _zone(cursor, call.second) if len(call.arguments) > 1 else "UTC")


def _expression(cursor: Cursor, token: Token, do: str) -> str:
    """Return a cron expression. Raises `SpecError` for one that cron would not take, or that names no instant."""
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - few windows need it

    if token.kind not in {"quoted", "text"}:
        raise cursor.error(f"expected a cron expression in quotes, found {token}", token.span, do)
    fields = [*re.finditer(r"\S+", token.text[1:-1])]
    if len(fields) != len(_FIELDS):
        raise cursor.error(f"a cron expression has 5 fields, found {len(fields)}", token.span, _CRON_DO)
    expression = " ".join(token.value.split())
    try:
        next(CronSim(expression, dt.datetime(2000, 1, 1)))
    except CronSimError as error:
        name = str(error).removeprefix("Bad ")
        at = fields[_FIELDS.index(name)]
        span = Span(token.span.start + 1 + at.start(), token.span.start + 1 + at.end())
        raise cursor.error(f"{at.group()!r} is no {name} of cron", span, _CRON_DO) from None
    except StopIteration:
        raise cursor.error("there is no such date", token.span, _CRON_DO) from None
    return expression


def _bind(cursor: Cursor, call: Call, names: tuple[str, ...]) -> dict[str, Token]:
    found: dict[str, Token] = {}
    for place, argument in enumerate(call.arguments):
        token = argument.name or argument.value
        name = names[place] if argument.name is None else argument.name.text.lower()
        if name not in names:
            raise cursor.error(f"there is no argument called {token}", token.span, did_you_mean(name, names))
        if name in found:
            raise cursor.error(f"the argument {name!r} is given twice", token.span, call.do)
        found[name] = argument.value
    return found


def _unit(cursor: Cursor, token: Token) -> tuple[str, str]:
    unit, weekday, start = token.text.lower().partition("@")
    if token.kind not in {"word", "weekday"} or unit not in UNITS:
        raise cursor.error(f"unknown calendar unit {token}", token.span, did_you_mean(unit, UNITS))
    if weekday and unit != "week":
        raise cursor.error(f"a {unit} does not begin on a weekday", token.span, f"write {unit}")
    if weekday and start not in _WEEKDAYS:
        raise cursor.error(f"unknown weekday in {token}", token.span, did_you_mean(start, _WEEKDAYS))
    return unit, start or "mon"


def _zone(cursor: Cursor, token: Token) -> str:
    if token.kind not in {"word", "quoted", "text"}:
        raise cursor.error(f"expected a time zone, found {token}", token.span, 'write it like "Europe/Paris"')
    try:
        return zone_of(token.value).key
    except ConfigError as error:
        raise cursor.error(error.what, token.span, error.do) from None


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """Return a time zone. Raises `ConfigError` for one that is unknown."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        near = nearest(name, zoneinfo.available_timezones())
        do = f"did you mean {near!r}?" if near else 'write it like "Europe/Paris"'
        raise ConfigError(f"unknown time zone {name!r}", do) from None


def _clock(cursor: Cursor, token: Token) -> dt.time:
    if not _CLOCK.fullmatch(token.text):
        raise cursor.error(f"expected a time of day, found {token}", token.span, "write it like 07:00 or 23:59:30")
    return dt.time.fromisoformat(token.text)


CLOCK_POLICIES: Final[Mapping[str, Rule[Any]]] = {
    "time": Rule(Form("time(duration)"), lambda cursor, call, _: Time(cursor.duration(call.first, call.do))),
    "calendar": Rule(_CALENDAR, _calendar, closed_by="time"),
    "cron": Rule(_CRON, _cron),
}
"""The policies of this module, by keyword in lower case."""
