"""The cases of conformance: how they are read, how values are written, and when two answers are alike.

It knows no engine, and needs Arrow only where a case becomes a table. What the fields mean: README.md beside it.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).parent
TYPES = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "timestamp UTC": pa.timestamp("us", "UTC"),
    "decimal": pa.decimal128(18, 2),
}
"""The types of columns, by the words of the files."""
TOLD = ("window", "window_start", "window_end", "closed_by", "timing", "index")
"""The columns of an answer that say which window a row is of; all others are values of rows."""
UNKNOWN = "no reason is known"
NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Floats that JSON cannot write."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of a case. ``columns``: types by name; ``rows``: values in their order."""

    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]

    def table(self) -> pa.Table:
        values = [[_value(row[at], kind) for row in self.rows] for at, kind in enumerate(self.columns.values())]
        arrays = [pa.array(each, TYPES[kind]) for each, kind in zip(values, self.columns.values(), strict=True)]
        return pa.Table.from_arrays(arrays, names=list(self.columns))


@dataclass(frozen=True, slots=True)
class Case:
    """One case. ``kind``: the name of its file; the other fields are those of the file."""

    kind: str
    name: str
    rule: str
    source: str
    judge: str
    spec: Mapping[str, Any]
    given: Rows
    tables: Mapping[str, Rows] = field(default_factory=dict)
    marks: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    answer: tuple[tuple[Any, ...], ...] = ()
    rejects: tuple[tuple[int, str], ...] = ()

    @property
    def id(self) -> str:
        return f"{self.kind}: {self.name}"

    @property
    def values(self) -> list[str]:
        """The columns of the answer that every engine must give."""
        return [name for name in self.columns if name not in TOLD]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine answers. ``note``: in which way its construct may differ, told where the answer does.

    ``rejects``: rows that it refused; None: it does not tell.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    rejects: Sequence[tuple[int, str]] | None = None


class CannotSayError(Exception):
    """The engine has no construct for what a case asks; the text names it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``verdict``: same, differs or cannot say. ``why``: what it gives and the reason, or what is missing."""

    verdict: str
    why: str = ""


def outcome_of(case: Case, answer: Callable[[Case], Answer]) -> Outcome:
    """Ask an engine. wincli alone tells which rows it refused, and is held to the order of the answer."""
    try:
        given = answer(case)
    except CannotSayError as error:
        return Outcome("cannot say", str(error))
    rows = [[plain(value) for value in row] for row in given.rows]
    wanted = [[row[case.columns.index(name)] for name in given.columns] for row in case.answer]
    missing = [name for name in case.values if name not in given.columns]
    same = are_alike if given.rejects is not None else are_the_same_rows
    refuses = given.rejects is None or sorted(given.rejects) == sorted(case.rejects)
    if not missing and same(rows, wanted) and refuses:
        return Outcome("same")
    return Outcome("differs", f"{given.note or UNKNOWN}; it gives {json.dumps(rows)}, not {json.dumps(wanted)}")


def read_outcomes(engine: str) -> dict[str, Outcome]:
    """What an engine answered when it was last asked, by kind and name; a case that is not there was not asked."""
    path = FOLDER / "outcomes" / f"{engine}.json"
    told = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: Outcome(*each) for name, each in told.items()}


def write_outcomes(engine: str, outcomes: Mapping[str, Outcome]) -> None:
    """Keep what an engine answers, one case a line."""
    lines = [f"{json.dumps(name)}: {json.dumps([each.verdict, each.why])}" for name, each in sorted(outcomes.items())]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (FOLDER / "outcomes" / f"{engine}.json").write_text(text, encoding="utf-8")


def table_of(cases: Sequence[Case], outcomes: Mapping[str, Mapping[str, Outcome]]) -> str:
    """The table of all kinds: in each cell how many cases an engine can say, and how many of these alike."""
    kinds = list(dict.fromkeys(case.kind for case in cases))
    lines = [["windows", "cases", *outcomes], ["---", *(["---:"] * (len(outcomes) + 1))]]
    for kind in [*kinds, None]:
        own = [case for case in cases if kind in (None, case.kind)]
        cells = []
        for told in outcomes.values():
            verdicts = Counter(told[each.id].verdict for each in own if each.id in told)
            said = verdicts["same"] + verdicts["differs"]
            cell = f"{said} / {verdicts['same']}" if said else "-" if verdicts else "not run"
            cells.append(cell if verdicts.total() in (0, len(own)) else f"{cell} of {verdicts.total()}")
        lines.append([kind.replace("_", " ") if kind else "**all**", str(len(own)), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read_cases(folder: Path = FOLDER) -> list[Case]:
    """All cases, by the names of their files."""
    return [case for path in sorted(folder.glob("*.json")) for case in _of_file(path)]


def _of_file(path: Path) -> Iterable[Case]:
    for each in json.loads(path.read_text(encoding="utf-8"))["cases"]:
        answer = each["answer"]
        yield Case(
            path.stem, each["name"], each["rule"], each["source"], each["judge"], each["spec"],
            Rows(each["columns"], each["rows"]),
            {name: Rows(table["columns"], table["rows"]) for name, table in each.get("tables", {}).items()},
            tuple(each.get("marks", ())), tuple(each.get("units", ())), tuple(answer["columns"]),
            tuple(map(tuple, answer["rows"])), tuple((row, why) for row, why in each.get("rejects", ())),
        )  # fmt: skip


def _value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind.startswith("timestamp"):
        return dt.datetime.fromisoformat(value)
    if kind == "decimal":
        return Decimal(value)
    return NUMBERS.get(value, value) if kind == "float64" else value


def plain(value: Any) -> Any:
    """A value of Python as the files write it."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Fraction):
        return plain(int(value) if value.denominator == 1 else float(value))
    if isinstance(value, dt.datetime):
        zoned = value.tzinfo is not None
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z" if zoned else value.isoformat()
    if isinstance(value, dt.timedelta):
        return plain(Fraction(value // dt.timedelta(microseconds=1), 1_000_000))
    if isinstance(value, float) and not math.isfinite(value):
        return next(text for text, number in NUMBERS.items() if str(number) == str(value))
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.item() if hasattr(value, "item") else value


def is_alike(one: Any, other: Any) -> bool:
    """Whether two values are written alike: numbers up to a billionth part, all else exactly."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_alike, one, other))
    one, other = _number(one), _number(other)
    if (
        isinstance(one, int | float)
        and isinstance(other, int | float)
        and isinstance(one, bool) == isinstance(other, bool)
    ):
        return one == other or math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other) and type(one) is type(other)


def _number(value: Any) -> Any:
    """A decimal, which is a text in the files, as the number that it is."""
    if isinstance(value, str) and value.count(".") == 1 and value.replace(".", "").lstrip("-").isdigit():
        return float(value)
    return value


def are_alike(found: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]]) -> bool:
    """Whether two lists of rows are alike, row for row."""
    return len(found) == len(wanted) and all(
        is_alike([*one], [*other]) for one, other in zip(found, wanted, strict=True)
    )


def are_the_same_rows(found: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]]) -> bool:
    """Whether two lists have alike rows, in any order."""
    left = list(wanted)
    for row in found:
        at = next((at for at, other in enumerate(left) if is_alike([*row], [*other])), None)
        if at is None:
            return False
        del left[at]
    return not left
