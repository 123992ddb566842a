"""Timestamp formats: the directives of ``strptime``, compiled to a short list of (operation, argument).

Light: no pyarrow, no numpy, so that a schema text can be checked before anything heavy is loaded.
"""

from __future__ import annotations

from typing import Final

LITERAL: Final = 0  # argument: the byte that must stand there
SPACE: Final = 1  # any run of blanks, also none
YEAR: Final = 2
YEAR2: Final = 3
MONTH: Final = 4
DAY: Final = 5
HOUR: Final = 6
HOUR12: Final = 7
MINUTE: Final = 8
SECOND: Final = 9
FRACTION: Final = 10
ZONE: Final = 11
MONTH_NAME: Final = 12
DAY_NAME: Final = 13
AM_PM: Final = 14
DAY_OF_YEAR: Final = 15
EPOCH: Final = 16

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

Program = tuple[tuple[int, int], ...]


class FormatError(ValueError):
    """A directive that is not known, or has no meaning alone; ``at`` is its offset in the format."""

    def __init__(self, directive: str, at: int, what: str = "unknown directive") -> None:
        super().__init__(f"{what} {directive!r}")
        self.directive = directive
        self.at = at


def compile_format(text: str) -> Program:
    """Compile a format such as ``%d/%m/%y %H:%M:%S.%f``. Raises `FormatError`."""
    program: list[tuple[int, int]] = []
    at, half_day = 0, None
    while at < len(text):
        if text[at] == "%":
            program.extend(_directive(text, at))
            half_day = at if program[-1][0] == HOUR12 else half_day
            at += 2
        else:
            program.extend(_literal(text[at]))
            at += 1
    if half_day is not None and (AM_PM, 0) not in program:
        raise FormatError("%I", half_day, "without '%p' nobody knows the half of the day of")
    return tuple(program)


def has_zone(text: str) -> bool:
    """Whether the format reads an offset from UTC."""
    return any(op == ZONE for op, _ in compile_format(text))


def _directive(text: str, at: int) -> Program:
    letter = text[at + 1 : at + 2]
    if letter == "%":
        return _literal("%")
    if letter in SHORTHANDS:
        return compile_format(SHORTHANDS[letter])
    if letter not in DIRECTIVES:
        raise FormatError(f"%{letter}", at)
    return ((DIRECTIVES[letter], 0),)


def _literal(character: str) -> Program:
    if character.isspace():
        return ((SPACE, 0),)
    return tuple((LITERAL, byte) for byte in character.encode())
