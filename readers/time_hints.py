"""Suggest a ``--schema`` for columns that look like times but have another type.

Callers use this module only where a run is about to fail, or where they look at an input: it reads rows of one split.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..windowing.clock.tick_grid import DIGITS, ENOUGH, EpochUnit, epoch_unit
from ..windowing.errors import SpecError
from ..windowing.expressions.nodes import name_text
from ..windowing.ports import Source
from ..windowing.support.column_types import schema_name
from .options import SchemaTypes, parse_schema
from .values.casts import convert
from .values.time_formats import compile_format, missing_part
from .values.types import Mask, column_type

# Guess the layouts (strptime formats) that may parse a text as a time: ``01/02/2026 10:00`` has two.


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
    found = []
    for each in _dated(text):
        layout = _CLOCK.sub(_clock, each, count=1)
        if "%d" in layout and "%H" not in layout:
            layout = _CLOCK_IN_POINTS.sub(lambda m: "%H.%M.%S" + (f"{m[1][0]}%f" if m[1] else ""), layout, count=1)
        layout = _ZONE.sub(r"\1%z", layout, count=1)
        if "%" in layout and not _FOREIGN.search(re.sub(r" (?:UTC|GMT)(?![A-Za-z])", "", layout)):
            found.append(layout)
    return found


def _dated(text: str) -> list[str]:
    if "%b" in text:
        # The time of day with its offset, whose digits are not the date's; none is the empty text at the begin.
        clock = _CLOCK.search(text)
        start = clock.start() if clock else 0
        stop = (_OFFSET.match(text, clock.end()) or clock).end() if clock else 0
        whole = f"{text[:start]}\0{text[stop:]}"
        for pattern, directive in ((_YEAR, "%Y"), (_SHORT, "%d"), *([] if _YEAR.search(whole) else [(_SHORT, "%y")])):
            whole = pattern.sub(directive, whole, count=1)
        return [whole.replace("\0", text[start:stop])]
    for pattern, forms in (*_RUNS, *_NUMBERED):
        if pattern.search(text):
            return [pattern.sub(form, text, count=1) for form in forms]
    return [text]


def _clock(found: re.Match[str]) -> str:
    seconds, fraction, half = found.groups()
    layout = ("%I" if half else "%H") + ":%M" + (":%S" if seconds else "")
    return layout + (f"{fraction[0]}%f" if fraction else "") + ((" " if half[0] == " " else "") + "%p" if half else "")


_SAMPLED = 1000
_YEARS = 1900, 2100
_NAMED = 2  # the most columns that one message names
_TIMELIKE = re.compile(r"time|date|stamp|^ts$|^at$|_at$|_ts$|when", re.IGNORECASE)
_NUMBER = re.compile(r"\d{9,19}(?:\.(\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class Guess:
    """A column that looks like a time, and the types that can read it.

    ``value``: one value of the column, as an example.
    ``types``: the schema types that read it, one for each possible order of day and month.
    ``lacks``: ``date`` for a time of day alone, ``year`` for a time without a year, ``zone`` for times of which only
        some have a zone, else empty. No type reads a column that lacks one.
    """

    column: str
    value: str
    types: tuple[str, ...]
    lacks: str = ""

    @property
    def is_date(self) -> bool:
        return all(text.startswith("date") for text in self.types) and not self.lacks

    @property
    def epoch_unit(self) -> EpochUnit | None:
        """The unit of a column that counts time since 1970; None for any other form of times."""
        names = {f"({_unix_name(unit)})": unit for unit in DIGITS}
        return next((unit for name, unit in names.items() if self.types and self.types[0].endswith(name)), None)


def advise(source: Source, column: str | None, declared: SchemaTypes) -> str | None:
    """Say how to read ``column`` as a time, or any column if it is None; return None where no column looks like one.

    ``declared``: the types that the user has given already. The suggestion repeats them, so that it can be pasted.
    """
    names = [name for name in source.schema.names if name not in dict(declared)]
    guesses = sorted(
        time_guesses(source, names),
        key=lambda guess: (bool(guess.lacks), guess.is_date, _TIMELIKE.search(guess.column) is None),
    )
    candidates = [guess for guess in guesses if column in (None, guess.column)]
    date = next((guess for guess in guesses if guess.is_date), None)
    whole = [guess for guess in candidates if not guess.lacks]
    told = column is not None  # the error itself says which value is odd
    readings = [reading(guess, declared, None if told else source) for guess in whole[:_NAMED]]
    words = ["; or ".join(readings)] if readings else []
    if not whole or whole[0] is date:  # a time of day may belong to that date
        words += [_lacking(guess, date, names) for guess in candidates if guess.lacks][:1]
    return "; ".join(words) or None


def reading(guess: Guess, declared: SchemaTypes, source: Source | None = None) -> str:
    """Say how to read the column of a guess that has types; ``declared`` as in `advise`.

    ``source``: where to look for the value that made it text; None: nowhere.
    """
    types = [
        ", ".join(f"{schema_name(name)}:{text}" for name, text in (*declared, (guess.column, kind)))
        for kind in guess.types
    ]
    flags = [f"--schema {_quoted(each)}" for each in types]
    what = f"column {guess.column!r} looks like a {'date' if guess.is_date else 'time'}, as {guess.value!r}"
    is_usual = len(guess.types) == 1 and "(" not in guess.types[0]  # a layout is itself why the column is text
    odd = source.explain_type(guess.column) if source is not None and is_usual else None
    what += f", though {odd}" if odd else ""
    return f"{what}: read it with {', or '.join(flags)}" + (", whichever it means" if len(flags) > 1 else "")


def _lacking(guess: Guess, date: Guess | None, taken: Sequence[str]) -> str:
    if guess.lacks == "zone":
        name = free_name(taken)
        let = f"{name}=CAST({name_text(guess.column)} AS TIMESTAMPTZ)"
        what = f"column {guess.column!r} has times with a zone and times without one, as {guess.value!r}"
        return f"{what}: read the others as UTC with --let {_quoted(let)}, and name the column {name}"
    what = f"column {guess.column!r} has times without a {guess.lacks}, as {guess.value!r}"
    if guess.lacks == "date" and date is not None:
        return f"{what}: put it and {date.column!r} into one column, as '{date.value} {guess.value}'"
    return f"{what}: put the {guess.lacks} into the column"


def _quoted(text: str) -> str:
    return shlex.quote(text) if re.search(r'["$`\\!]', text) else f'"{text}"'


def free_name(taken: Sequence[str]) -> str:
    """Return a name for a new column that no column has."""
    in_lower = {name.lower() for name in taken}
    return next(
        name for name in ("at", "ts", "at_time", *(f"at_{n}" for n in range(len(taken) + 1))) if name not in in_lower
    )


def time_guesses(source: Source, names: Sequence[str]) -> Iterator[Guess]:
    """Yield, of the columns ``names``, those that look like times but have another type, from rows of the first split.

    Texts, numbers and dates can look like times.
    """
    kinds = (pa.types.is_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_date)
    candidates = [name for name in names if any(matches(source.schema.field(name).type) for matches in kinds)]
    if not (candidates and source.splits):
        return
    rows = source.read(source.parts_of(source.splits[0])[0], candidates).rows
    for name in candidates:
        texts = _sampled(rows[name])
        guess = _guess(name, texts) if len(texts) else None
        if guess is not None:
            yield guess


def _sampled(column: pa.ChunkedArray) -> pa.StringArray:
    known = column.drop_null()
    at = np.unique(np.linspace(0, len(known) - 1, min(_SAMPLED, len(known))).astype(np.int64))
    values = known.take(pa.array(at)).combine_chunks()
    if pa.types.is_floating(values.type):  # Arrow would write 1.7e+12
        numbers = values.cast(pa.float64()).to_pylist()
        texts = pa.array([np.format_float_positional(number, trim="-") for number in numbers], pa.string())
    else:
        texts = values.cast(pa.string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:  # bytes that are not UTF-8 are no time
        return texts[:0]
    return texts.filter(pc.not_equal(pc.utf8_trim_whitespace(texts), ""))


def _guess(name: str, texts: pa.StringArray) -> Guess | None:
    if (unix := _unix(texts)) is not None:
        return Guess(name, texts[0].as_py(), (unix,))
    naive, zoned = _read_by("timestamp_ns", texts), _read_by("timestamptz", texts)
    if naive.any() and zoned.any() and (naive | zoned).sum() >= ENOUGH * len(texts):
        return Guess(name, texts[int(naive.argmax())].as_py(), (), "zone")
    some = sorted({0, len(texts) // 3, len(texts) // 2, len(texts) - 1})
    layouts = list(dict.fromkeys(layout for at in some for layout in layouts_of(texts[at].as_py())))
    lacks = [missing_part(compile_format(layout)) for layout in layouts]
    whole = [layout for layout, lack in zip(layouts, lacks, strict=True) if lack is None and _is_sayable(layout)]
    found = _readable(texts, (("date",), ("timestamp", "timestamp_ns"), ("timestamptz",), *map(_types, whole)))
    if found is not None:
        first, kinds = found
        return Guess(name, texts[first].as_py(), kinds)
    partial = next((lack for lack in lacks if lack is not None and lack[1] == "time of day"), None)
    return None if partial is None else Guess(name, texts[0].as_py(), (), "date" if partial[0] == "date" else "year")


def _is_sayable(layout: str) -> bool:
    """Whether a schema text with this layout parses: the layout must not contain what looks like the end of a type."""
    try:
        return parse_schema(f"x:timestamp({layout}), y:int")[0] == ("x", f"timestamp({layout})")
    except SpecError:
        return False


def _types(layout: str) -> tuple[str, ...]:
    """Return the schema types that a layout can have, the coarsest first; with a zone where the layout names one."""
    if not re.search("%[HI]", layout):
        return (f"date({layout})",)
    if re.search(" (?:UTC|GMT)", layout):
        return (f"timestamptz({layout})",)
    return f"timestamp({layout})", f"timestamp_ns({layout})"


def _readable(texts: pa.StringArray, each: Sequence[Sequence[str]]) -> tuple[int, tuple[str, ...]] | None:
    """Return the index of the first text that parses, and the types that parse the most texts.

    ``each``: groups of types, from coarse to fine. Of each group the coarsest type is taken that parses as many texts
    as the finer ones. A type without a layout of its own is returned alone. Returns None where less than `ENOUGH` of
    the texts parse: the others may be the reason why a column is text.
    """
    best: dict[str, Mask] = {}
    for kinds in each:
        read = {kind: _read_by(kind, texts) for kind in kinds}
        kind = max(read, key=lambda kind: int(read[kind].sum()))  # the first of them
        best[kind] = read[kind]
    most = max(int(good.sum()) for good in best.values())
    if most < ENOUGH * len(texts):
        return None
    taken = [kind for kind, good in best.items() if good.sum() == most]
    return int(best[taken[0]].argmax()), tuple(taken if "(" in taken[0] else taken[:1])


def _read_by(kind: str, texts: pa.StringArray) -> Mask:
    column, bad = convert(pa.chunked_array([texts]), column_type(kind))
    years = pc.year(column).to_numpy()
    good: Mask = (years >= _YEARS[0]) & (years <= _YEARS[1])
    return good if bad is None else good & ~bad


def _unix(texts: pa.StringArray) -> str | None:
    """Return the ``unix`` type that turns the numbers into instants from 1990 to 2099; None where too few fit."""
    found = [match for text in texts.to_pylist() if (match := _NUMBER.fullmatch(text.strip()))]
    unit = epoch_unit([float(match[0]) for match in found], len(texts))
    if unit is None:
        return None
    fine = DIGITS[unit] + max(len(match[1] or "") for match in found) > DIGITS["us"]
    return f"{'timestamp_ns' if fine and unit != 'ns' else 'timestamp'}({_unix_name(unit)})"


def _unix_name(unit: EpochUnit) -> str:
    return "unix" if unit == "s" else f"unix_{unit}"
