"""Windows between the instants of a cron expression once more (section 12), found by looking at every minute.

    30 2 * * * in Europe/Paris    29 March 2026: 02:00 -> 03:00         25 October 2026: 03:00 -> 02:00
                                  at 03:00, the jump                    at the first of two 02:30, not at the second
    */30 * * * *                  01:30 03:00 03:30                     02:00 02:30 02:00 02:30 03:00

Debian's cron goes over changes of the clocks like this: an expression with a star in the minute or the hour is met by
each minute that the clocks show; any other is met once for each reading, where they jump over it at the jump. A date
must match both of its fields if one of them begins with a star, else either of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction

from references.calendar import DAY, EPOCH, first_showing, shown

MINUTE = 60
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def numbers(field: str, low: int, high: int) -> set[int]:
    """The numbers of a field: lists of a star, a number or a range, each with an optional step."""
    found: set[int] = set()
    for term in field.split(","):
        body, _, step = term.partition("/")
        first, _, last = body.partition("-")
        begin = low if body == "*" else int(first)
        end = high if body == "*" or (step and not last) else int(last or first)
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def is_met(fields: list[str], wanted: list[set[int]], reading: dt.datetime) -> bool:
    """Whether a reading of the clocks meets an expression; ``wanted``: the numbers of each of its fields."""
    minutes, hours, days, months, weekdays = wanted
    if reading.minute not in minutes or reading.hour not in hours or reading.month not in months:
        return False
    on_day, on_weekday = reading.day in days, bool({reading.isoweekday(), reading.isoweekday() % 7} & weekdays)
    both = fields[2].startswith("*") or fields[4].startswith("*")
    return (on_day and on_weekday) if both else (on_day or on_weekday)


def minutes_from(low: int, high: int) -> Iterator[int]:
    yield from range(low // MINUTE * MINUTE, high + MINUTE, MINUTE)


def instants(expression: str, tz: str, low: int, high: int) -> list[int]:
    """The instants between two seconds, ascending, each once."""
    fields = expression.split()
    wanted = [numbers(field, *bounds) for field, bounds in zip(fields, BOUNDS, strict=True)]
    found: set[int] = set()
    each_minute = fields[0].startswith("*") or fields[1].startswith("*")
    for second in minutes_from(low - DAY, high + DAY):
        if each_minute and is_met(fields, wanted, EPOCH + dt.timedelta(seconds=shown(tz, second))):
            found.add(second)
        # else the same minutes are readings
        if not each_minute and is_met(fields, wanted, EPOCH + dt.timedelta(seconds=second)):
            found.add(first_showing(tz, second))
    return sorted(instant for instant in found if low <= instant <= high)


def beginnings(expression: str, tz: str, low: Fraction, high: Fraction, days: int) -> list[int]:
    """From the last instant at or before ``low`` to the first after ``high``; none is more than so many days off."""
    every = instants(expression, tz, int(low) - days * DAY, int(high) + days * DAY)
    first = max(instant for instant in every if instant <= low)
    last = min(instant for instant in every if instant > high)
    return [instant for instant in every if first <= instant <= last]
