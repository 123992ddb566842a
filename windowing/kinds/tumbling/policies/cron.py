"""``cron(expression, zone)``: windows between the instants of a cron expression, as Debian's cron has them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import takewhile
from typing import ClassVar

from ....clock.grids import Beginnings, cycles_to, zone_of
from ....errors import DataError
from ....language.clock_policies import Cron
from ..clock_policy import DatedPolicy

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND = dt.timedelta(seconds=1)
_MOST = 5_000_000  # instants of one grid: at every minute nearly ten years
_BACK = (2, 40, 400, 3_000, 18_000)  # days before the first value in which the instant before it may be


@dataclass(frozen=True, slots=True)
class CronPolicy(DatedPolicy):
    """``cron(expression, zone)``.

    ``value``: as in the spec.
    """

    value: Cron

    why: ClassVar[str] = "cron"

    def beginnings(self) -> Beginnings:
        """Return the instants of the expression. Raises `ConfigError` for an unknown zone."""
        zone_of(self.value.tz)
        return partial(_instants, self.value)


def _instants(value: Cron, low: int, high: int) -> tuple[int, list[int]]:
    """Return 0, and the instants in epoch seconds, from the last at or before ``low`` to the first after ``high``.

    Raises `DataError` for too many of them, and where there is none before ``low``.
    """
    begins = [_last_until(value, low)]
    for instant in _after(value, begins[0]):
        begins.append(instant)
        if instant > high:
            return 0, begins
        if len(begins) > _MOST:
            raise DataError(f"{value} has more than {_MOST:,} instants in the input", "use time(..) for short windows")
    raise DataError(f"{value} has no instant after the last row", "leave such rows out")


@lru_cache(maxsize=64)  # slices, segments and runs ask again, each for 2,000 steps where there is one at every minute
def _last_until(value: Cron, low: int) -> int:
    """Return the last instant at or before a second: searched forwards, as cron goes, from further and further back."""
    for days in _BACK:
        before = list(takewhile(lambda instant: instant <= low, _after(value, low - days * 86_400)))
        if before:
            return before[-1]
    raise DataError(f"{value} has no instant before the first row", "leave such rows out")


def _after(value: Cron, instant: int) -> Iterator[int]:
    """Yield the instants after one, each once, ascending."""
    from cronsim import CronSim  # noqa: PLC0415 - few windows need it

    while True:
        moved = cycles_to(instant)
        start = (_EPOCH + dt.timedelta(seconds=instant + moved)).astimezone(zone_of(value.tz))
        for local in CronSim(value.expression, start):
            found = (local - _EPOCH) // _SECOND - moved
            if found > instant:  # where the clocks jump, the instants they leave out are one
                instant = found
                yield found
            if cycles_to(instant) != moved:
                break
        else:
            return
