"""Times on the clocks of a zone, over whole columns: what the clocks show at an instant, and the instant of a reading.

Where clocks are put back, a reading has two instants and the later one counts. Where they are put forward, a reading
that they leave out counts as if they had gone on: half past two is half an hour after the change. Both as in DuckDB.

A zone is asked once for each day that the column has. Arrow's own functions know no rules from the year 2038 on.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..steps import Failures, as_array, as_mask
from .arithmetic import integers
from .casts import floor_divide

_DAY = 86400
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)
_CYCLE = 146_097  # days of 400 years, after which dates have their weekdays again, and so rules their dates
_FIRST, _RULED = -98_615, 84_006  # 1700-01-01, when no zone had changed yet; 2200-01-01, when all follow their rules
_Offset = Callable[[zoneinfo.ZoneInfo, int], int]


def to_local(failures: Failures, values: pa.Array, zone: str) -> pa.Array:
    """Return what the clocks of a zone show at instants: timestamps without a zone. Those without one are in UTC."""
    return _moved(failures, values, zone, _shown, "+", pa.timestamp(values.type.unit))


def from_local(failures: Failures, values: pa.Array, zone: str) -> pa.Array:
    """Return the instants at which the clocks of a zone show timestamps without a zone."""
    return _moved(failures, values, zone, _meant, "-", pa.timestamp(values.type.unit, "UTC"))


def _moved(failures: Failures, values: pa.Array, zone: str, offset: _Offset, sign: str, kind: pa.DataType) -> pa.Array:
    """Return timestamps moved by the offset of each. A row that 64 bits do not hold fails."""
    per_second = _TICKS[values.type.unit]
    ticks = as_array(values, failures.n).cast(pa.int64())
    seconds = floor_divide(ticks.fill_null(0), per_second).to_numpy(zero_copy_only=False)
    by = pa.array(_offsets(seconds, zone, offset) * per_second, mask=as_mask(ticks.is_null()))
    return integers(failures, ticks, by, sign, pa.int64()).cast(kind)


def _offsets(seconds: npt.NDArray[np.int64], zone: str, offset: _Offset) -> npt.NDArray[np.int64]:
    """Return the offset in seconds that belongs to each second since 1970: int64 (n,)."""
    days = pa.array(seconds // _DAY).dictionary_encode()
    parts = np.array([_day(zone, offset, day) for day in days.dictionary.to_pylist()], np.int64).reshape(-1, 3)
    before, change, after = parts[days.indices.to_numpy()].T
    return np.where(seconds % _DAY < change, before, after)


@lru_cache(maxsize=1 << 16)
def _day(name: str, offset: _Offset, day: int) -> tuple[int, int, int]:
    """Return the offset at the beginning of a day, the second of the day when it changes, and that from then on.

    No zone changes twice in a day.
    """
    if day >= _RULED:
        day = _RULED + (day - _RULED) % _CYCLE
    start = max(day, _FIRST) * _DAY
    zone = zoneinfo.ZoneInfo(name)
    before, after = offset(zone, start), offset(zone, start + _DAY - 1)
    low, high = start, start + _DAY - 1
    while before != after and high - low > 1:  # the offset at ``low`` is that before, at ``high`` that after
        middle = (low + high) // 2
        low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
    return before, high - start if before != after else 0, after


def _shown(zone: zoneinfo.ZoneInfo, second: int) -> int:
    """Return the offset from UTC, in seconds, at an instant."""
    utc = _EPOCH + timedelta(seconds=second)
    return (zone.fromutc(utc.replace(tzinfo=zone)).replace(tzinfo=None) - utc) // _SECOND


def _meant(zone: zoneinfo.ZoneInfo, second: int) -> int:
    """Return the offset by which a reading, in seconds since 1970 on the clocks of the zone, is an instant.

    Of a reading that the clocks show twice it is the later, smaller one, of one that they leave out the earlier,
    which is the smaller one, too.
    """
    reading = _EPOCH + timedelta(seconds=second)
    offsets = (zone.utcoffset(reading.replace(fold=fold)) for fold in (0, 1))
    return min(offset // _SECOND for offset in offsets if offset is not None)
