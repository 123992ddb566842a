"""``strptime``: texts in a layout become timestamps, whole columns at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ..steps import Failures, as_mask, blank
from ..types import TEXT
from .text_casts import days_of, whole_numbers, zone_seconds

_MONTHS: Final = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                  "november", "december"]  # fmt: skip
_DAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SHORT: Final = [name[:3] for name in _MONTHS]


def _names(names: list[str]) -> str:
    return f"(?i:{'|'.join(names)})"


_PARTS: Final = {
    "Y": ("year", "[0-9]{4}"), "y": ("short_year", "[0-9]{1,2}"), "m": ("month", "[0-9]{1,2}"),
    "b": ("month_name", _names(_SHORT)), "B": ("month_name", _names(_MONTHS)), "d": ("day", "[0-9]{1,2}"),
    "j": ("day_of_year", "[0-9]{1,3}"), "H": ("hour", "[0-9]{1,2}"), "I": ("half_hour", "[0-9]{1,2}"),
    "p": ("half", "(?i:am|pm)"), "M": ("minute", "[0-9]{1,2}"), "S": ("second", "[0-9]{1,2}"),
    "f": ("part", "[0-9]{1,6}"), "g": ("part", "[0-9]{1,3}"), "n": ("part", "[0-9]{1,9}"),
    "z": ("zone", "Z|[+-][0-9]{2}(?::?[0-9]{2})?"),
}  # fmt: skip
_UNNAMED: Final = {"a": _names([day[:3] for day in _DAYS]), "A": _names(_DAYS), "%": "%"}
LETTERS: Final = "".join([*_PARTS, *_UNNAMED])
"""The letters that a layout may have behind ``%``."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of times, such as ``%d/%b/%Y:%H:%M:%S %z``.

    ``text``: as written.
    ``pattern``: the regular expression (RE2) of its texts, with a group for each part.
    ``parts``: the names of its parts.
    """

    text: str
    pattern: str
    parts: tuple[str, ...]


def layout_of(text: str) -> Layout | None:
    """Return a layout; None where it has an unknown letter, or one part twice."""
    pattern, parts = "", list[str]()
    for found in re.finditer(r"%-?(.)|(\s+)|([^%\s]+)|%", text, re.DOTALL):
        letter = found[1]
        if letter in _PARTS:
            name, expression = _PARTS[letter]
            parts.append(name)
            pattern += f"(?P<{name}>{expression})"
        elif letter in _UNNAMED:
            pattern += _UNNAMED[letter]
        elif found[2] or found[3]:
            pattern += r"\s+" if found[2] else re.escape(found[3])
        else:
            return None
    return Layout(text, rf"^\s*{pattern}\s*$", tuple(parts)) if len(set(parts)) == len(parts) else None


def strptime(failures: Failures, values: pa.Array, layout: Layout, kind: pa.DataType) -> pa.Array:
    """Return the timestamps that texts in a layout are; parts that it lacks are those of 1900-01-01 00:00:00.

    ``kind``: microseconds, with the zone UTC where the layout has a zone. A text of another form fails.
    """
    bad = _fail(failures, values, pc.invert(pc.match_substring_regex(values, layout.pattern)), layout)
    found = pc.extract_regex(blank(values, bad), layout.pattern) if layout.parts else None
    parts = {name: pc.struct_field(found, name) for name in layout.parts} if found is not None else {}
    kept = pc.is_valid(blank(values, bad))
    numbers = _numbers(parts, kept)
    days, is_day = days_of(numbers)
    clock = [pc.less(numbers[name], most) for name, most in (("hour", 24), ("minute", 60), ("second", 60))]
    is_time = pc.and_(pc.and_(is_day, clock[0]), pc.and_(clock[1], clock[2]))
    bad = bad | _fail(failures, values, pc.invert(is_time), layout)
    seconds = pc.add(pc.multiply(days, 86400), pc.multiply(numbers["hour"], 3600))
    seconds = pc.add(seconds, pc.add(pc.multiply(numbers["minute"], 60), numbers["second"]))
    if "zone" in parts:
        seconds = pc.subtract(seconds, zone_seconds(parts["zone"]))
    return blank(pc.add(pc.multiply(seconds, 10**6), numbers["part"]), bad).cast(kind)


def _numbers(parts: dict[str, pa.Array], kept: pa.Array) -> dict[str, pa.Array]:
    """The parts as whole numbers: year, month, day, hour, minute, second and part in microseconds."""

    def whole(name: str, absent: int) -> pa.Array:
        return whole_numbers(parts[name]) if name in parts else pc.if_else(kept, pa.scalar(absent, pa.int64()), None)

    found = {name: whole(name, absent) for name, absent in
             (("year", 1900), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))}  # fmt: skip
    if "short_year" in parts:
        short = whole("short_year", 0)
        found["year"] = pc.add(short, pc.if_else(pc.less(short, 69), 2000, 1900))
    if "month_name" in parts:
        names = pc.utf8_slice_codeunits(pc.ascii_lower(parts["month_name"]), 0, 3)
        found["month"] = pc.add(pc.index_in(names, value_set=pa.array(_SHORT)).cast(pa.int64()), 1)
    if "half_hour" in parts:
        half = whole("half_hour", 0)
        is_late = pc.equal(pc.ascii_lower(parts["half"]), "pm") if "half" in parts else pa.scalar(False)
        hour = pc.add(pc.if_else(pc.equal(half, 12), 0, half), pc.if_else(is_late, 12, 0))
        found["hour"] = pc.if_else(pc.and_(pc.greater(half, 0), pc.less_equal(half, 12)), hour, 99)
    if "day_of_year" in parts:
        found["day_of_year"] = whole("day_of_year", 0)
    found["part"] = (
        whole("part", 0)
        if "part" not in parts
        else whole_numbers(pc.utf8_slice_codeunits(pc.utf8_rpad(parts["part"], 9, "0"), 0, 6))
    )
    return found


def _fail(failures: Failures, values: pa.Array, bad: pa.Array, layout: Layout) -> pa.Array:
    mask = as_mask(bad)
    if mask.any():
        quoted = pc.binary_join_element_wise("'", values.cast(TEXT), f"' is not in the layout '{layout.text}'", "")
        failures.add(mask, quoted)
    return mask
