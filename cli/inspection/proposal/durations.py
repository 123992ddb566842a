"""Durations as people say them: those that are proposed, and their texts."""

from __future__ import annotations

_S = 1_000_000
_MINUTE, _HOUR, _DAY = 60 * _S, 3600 * _S, 86400 * _S

NICE: tuple[int, ...] = (
    *(count * 10**power for power in range(6) for count in (1, 2, 5)),
    *(count * _S for count in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(count * _MINUTE for count in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(count * _HOUR for count in (1, 2, 3, 4, 6, 8, 12)),
    *(count * _DAY for count in (1, 2, 3, 7, 14, 30)),
)
"""Gaps that may be proposed, in microseconds."""

GRID: tuple[int, ...] = (
    *(count * 10**power for power in range(6) for count in (1, 2, 5)),
    *(count * _S for count in (1, 5, 10, 30)),
    *(count * _MINUTE for count in (1, 5, 15, 30)),
    *(count * _HOUR for count in (1, 6, 12)),
    *(_DAY, 7 * _DAY),
)
"""Lengths of windows on the clock that may be proposed, in microseconds."""

_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"), (_S, "s"), (1000, "ms"), (1, "us"))


def spec_text(micros: int) -> str:
    """Return a duration as a window spec has it: ``30m``, ``90s``."""
    size, unit = next(each for each in _UNITS if micros % each[0] == 0)
    return f"{micros // size}{unit}"


def in_words(micros: int) -> str:
    """Return a duration in its two coarsest units: ``1 h 5 m``, ``2.5 s``."""
    if micros < _S:
        return f"{micros / 1000:.3g} ms"
    if micros < _MINUTE:
        return f"{micros / _S:.3g} s"
    at = next(number for number, (size, _) in enumerate(_UNITS) if micros >= size)
    (size, unit), (finer, word) = _UNITS[at], _UNITS[at + 1]
    whole, rest = divmod(round(micros / finer), size // finer)
    return f"{whole} {unit}" + (f" {rest} {word}" if rest else "")
