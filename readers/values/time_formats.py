"""Timestamp formats: the directives of ``strptime``, compiled to a short list of (operation, argument).

Importing this module is cheap (no pyarrow, no numpy), so a schema can be checked before anything heavy is loaded.
"""

from __future__ import annotations

from typing import Final

(
    LITERAL, SPACE, YEAR, YEAR2, MONTH, DAY, HOUR, HOUR12, MINUTE, SECOND, FRACTION, ZONE, MONTH_NAME, DAY_NAME, AM_PM,
    DAY_OF_YEAR, EPOCH,
) = range(17)  # fmt: skip
"""The operations. The argument of `LITERAL` is the byte that the text must have; others have none (0).

`SPACE` is any run of blanks, also an empty one.
"""

DIRECTIVES: Final = {
    "Y": YEAR,
    "y": YEAR2,
    "m": MONTH,
    "d": DAY,
    "e": DAY,
    "H": HOUR,
    "I": HOUR12,
    "M": MINUTE,
    "S": SECOND,
    "f": FRACTION,
    "z": ZONE,
    "b": MONTH_NAME,
    "B": MONTH_NAME,
    "h": MONTH_NAME,
    "a": DAY_NAME,
    "A": DAY_NAME,
    "p": AM_PM,
    "j": DAY_OF_YEAR,
    "s": EPOCH,
}
SHORTHANDS: Final = {"T": "%H:%M:%S", "F": "%Y-%m-%d", "D": "%m/%d/%y", "R": "%H:%M"}

UNIX: Final = {"unix": 0, "unix_ms": 3, "unix_us": 6, "unix_ns": 9}
"""Formats of numbers since 1970-01-01 UTC, each with the decimal digits of a second that its unit stands for."""

Program = tuple[tuple[int, int], ...]

_COARSE_TO_FINE = (
    ("year", (YEAR, YEAR2)),
    ("month", (MONTH, MONTH_NAME, DAY_OF_YEAR)),
    ("day", (DAY, DAY_OF_YEAR)),
    ("time of day", (HOUR, HOUR12, MINUTE, SECOND, FRACTION)),
)


class FormatError(ValueError):
    """A format has an unknown directive, or one that lacks another.

    ``directive``: the directive, such as ``%Q``.
    ``at``: its offset in the format.
    """

    def __init__(self, directive: str, at: int, what: str = "unknown directive") -> None:
        super().__init__(f"{what} {directive!r}")
        self.directive = directive
        self.at = at


def compile_format(text: str) -> Program:
    """Compile a format such as ``%d/%m/%y %H:%M:%S.%f`` to its operations. Raises `FormatError`."""
    program: list[tuple[int, int]] = []
    at, half_day = 0, None
    while at < len(text):
        if text[at] == "%":
            letter = text[at + 1 : at + 2]
            if letter == "%":
                program.extend(_literal("%"))
            elif letter in SHORTHANDS:
                program.extend(compile_format(SHORTHANDS[letter]))
            elif letter in DIRECTIVES:
                program.append((DIRECTIVES[letter], 0))
            else:
                raise FormatError(f"%{letter}", at)
            half_day = at if program[-1][0] == HOUR12 else half_day
            at += 2
        else:
            program.extend(_literal(text[at]))
            at += 1
    if half_day is not None and (AM_PM, 0) not in program:
        raise FormatError("%I", half_day, "'%p' is missing, which gives the half of the day of")
    return tuple(program)


def missing_part(program: Program) -> tuple[str, str] | None:
    """Return the part of a time that a format lacks and the finest part that it reads, such as ``("year", "day")``.

    Returns None for a format that gives an instant: a year, or a year and a month, mean their beginning. For a format
    that reads no part of a time the second text is empty.
    """
    ops = {op for op, _ in program}
    if EPOCH in ops:
        return None
    reads = [bool(ops.intersection(fields)) for _, fields in _COARSE_TO_FINE]
    names = [name for name, _ in _COARSE_TO_FINE]
    if not any(reads):
        return "date", ""
    finest = len(reads) - 1 - reads[::-1].index(True)
    if all(reads[:finest]):
        return None
    coarse = "date" if not any(reads[:3]) else names[reads.index(False)]
    return coarse, names[finest]


def has_zone(text: str) -> bool:
    """Whether the format reads an offset from UTC."""
    return any(op == ZONE for op, _ in compile_format(text))


def _literal(character: str) -> Program:
    if character.isspace():
        return ((SPACE, 0),)
    return tuple((LITERAL, byte) for byte in character.encode())
