"""A case as one query of SQL, for engines with window functions: the general part, which dialects fill in.

A query is a chain of named parts: ``base``, the log with its computed columns and filters; ``rows``, which numbers the
rows of each key in order (``_n``); then what the kind of window needs, and the aggregates at the end.

    gap, change, split, punct, ..    a row that begins a window is told by the row before it; a running sum numbers them
    count                            the number of the row, divided
    time, calendar                   the cell that a row is in
    sliding, retain                  aggregates over a frame
    table, joins                     a join by range, or as-of
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from wincli.conformance.kit import CannotSayError, Case
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language import conditions, spec
from wincli.windowing.language import row_policies as rows

from .reading import NEIGHBOURS, ask, sees_window

TIES = "a frame by range holds later rows of the same instant, too"


class Dialect:
    """What differs between engines. ``functions``: aggregates by template: ``{0}``, ``{1}`` the arguments."""

    quote = '"'
    weeks_begin_on_sunday = False
    instant_before = "INTERVAL '0.000001' SECOND"
    time_range = "max({0}) - min({0})"
    filled = "last_value({0} IGNORE NULLS)"
    frames: ClassVar[Mapping[str, str]] = {
        "count": "count({0})", "sum": "sum({0})", "mean": "avg({0})", "min": "min({0})", "max": "max({0})",
    }  # fmt: skip
    functions: ClassVar[Mapping[str, str]] = {
        **frames, "count_distinct": "count(DISTINCT {0})", "var": "var_samp({0})", "stddev": "stddev_samp({0})",
        "var_pop": "var_pop({0})", "stddev_pop": "stddev_pop({0})", "range": "max({0}) - min({0})",
    }  # fmt: skip
    ordered: ClassVar[Mapping[str, str]] = {}
    notes: ClassVar[Mapping[str, str]] = {}
    float_notes: ClassVar[Mapping[str, str]] = {}

    def micros(self, column: str) -> str:
        raise NotImplementedError

    def instant(self, micros: str, is_zoned: bool) -> str:
        raise NotImplementedError

    def unnest(self, low: str, high: str) -> str:
        """A list from low to high, one row for each value, in the select list."""
        raise NotImplementedError

    def local(self, column: str, zone: str, is_zoned: bool) -> str:
        """The reading of the clocks of a zone."""
        raise NotImplementedError

    def from_local(self, value: str, zone: str, is_zoned: bool) -> str:
        raise NotImplementedError

    def asof(self, query: Query, window: Any) -> str:
        raise CannotSayError("as-of joins")

    def hop(self, query: Query, length: Fraction, period: Fraction, offset: Fraction) -> str | None:
        """The engine's own grids; None: rows are repeated for each window that they are in."""
        return None

    def session(self, query: Query, policy: rows.Gap) -> str | None:
        """The engine's own sessions; None: pauses are numbered."""
        return None

    def null(self, kind: str) -> str:
        """Null of a type."""
        return "NULL"

    def span(self, seconds: int) -> str:
        return f"INTERVAL '{seconds}' SECOND"

    def truncated(self, unit: str, local: str) -> str:
        """The beginning of a local day, week, month, quarter or year."""
        return f"date_trunc('{unit}', {local})"

    def growing(self, query: Query, length: Fraction, step: Fraction) -> str:
        raise CannotSayError("windows that come out as they grow")

    def pattern(self, query: Query, window: Any) -> str:
        raise CannotSayError("row patterns")

    def delta(self, query: Query, policy: rows.Delta) -> str:
        raise CannotSayError("a window that ends by its first row")

    def floor(self, over: str, by: str) -> str:
        return f"CAST(floor(({over}) / {by}) AS BIGINT)"


class Query:
    """One case in one dialect."""

    def __init__(self, case: Case, dialect: Dialect) -> None:
        self.case, self.dialect, self.asked = case, dialect, ask(case)
        self.parts: list[str] = []
        self.columns = list(case.given.columns)
        self.note = self.asked.note
        self.key = [self.q(name) for name in self.asked.key]

    # --- texts ----------------------------------------------------------------------------------------------------

    def q(self, name: str) -> str:
        return f"{self.dialect.quote}{name}{self.dialect.quote}"

    def expression(self, operand: Any) -> str:
        """An operand in the words of SQL; ``lag`` looks back over the rows of a key."""
        if isinstance(operand, str):
            return self.q(operand)
        text = str(operand)
        if sees_window(text):
            raise CannotSayError("conditions that see the open window")
        return re.sub(r"\blag\(([^()]*)\)", rf"lag(\1) OVER {self.over}", self.quoted(text))

    def quoted(self, text: str) -> str:
        """A text with its columns in quotes."""
        pieces = re.split(r"('(?:[^']|'')*')", text)
        for at in range(0, len(pieces), 2):
            pieces[at] = re.sub(
                r'"?\b([A-Za-z_]\w*)\b"?(?![\w(])',
                lambda found: self.q(found[1]) if found[1] in self.columns else found[0],
                pieces[at],
            )
        return "".join(pieces)

    @property
    def over(self) -> str:
        by = f"PARTITION BY {', '.join(self.key)} " if self.key else ""
        return f"({by}ORDER BY {', '.join(self.order)})"

    @property
    def order(self) -> list[str]:
        return [*map(self.q, self.asked.order), "_arrival"]

    def measure(self, column: str | None = None, of: str = "") -> str:
        """A clock as a number: microseconds of times, else as it is. ``of``: the table, with its point."""
        column = column or self.asked.clock
        text = f"{of}{self.q(column)}"
        return self.dialect.micros(text) if self.asked.is_time(column) else text

    def amount(self, seconds: Fraction, column: str | None = None) -> str:
        """Seconds as a difference of measures."""
        exact = seconds * (1_000_000 if self.asked.is_time(column or self.asked.clock) else 1)
        return str(exact.numerator) if exact.denominator == 1 else str(float(exact))

    def bound(self, measure: str) -> str:
        """A measure as a value of the clock."""
        column = self.asked.clock
        if not self.asked.is_time(column):
            return measure
        return self.dialect.instant(measure, "UTC" in self.case.given.columns[column])

    # --- parts ----------------------------------------------------------------------------------------------------

    def part(self, name: str, text: str) -> None:
        self.parts.append(f"{name} AS ({text})")

    def base(self, source: str = "log") -> None:
        self.part("_source", f"SELECT * FROM {source}")
        previous = "_source"
        let = self.asked.option("let") or {}
        if let:
            made = ", ".join(
                f"{self.expression(parse_expression(text))} AS {self.q(name)}" for name, text in let.items()
            )
            self.part("_let", f"SELECT *, {made} FROM {previous}")
            self.columns += let
            previous = "_let"
        if "where" in self.case.spec:
            self.part(
                "_where", f"SELECT * FROM {previous} WHERE {self.expression(parse_expression(self.case.spec['where']))}"
            )
            previous = "_where"
        if "distinct" in self.case.spec:
            column = self.asked.option("distinct")
            if " " in column:
                raise CannotSayError("duplicates within a time or a number of rows")
            by = ", ".join([*self.key, self.q(column)])
            self.part(
                "_first",
                f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY {', '.join(self.order)}) AS _d "
                f"FROM {previous}",
            )
            self.part("_distinct", f"SELECT * FROM _first WHERE _d = 1 OR {self.q(column)} IS NULL")
            previous = "_distinct"
        number = f", row_number() OVER {self.over} AS _n" if self.is_numbered else ""
        self.part("rows_", f"SELECT *{number} FROM {previous}")

    @property
    def is_numbered(self) -> bool:
        """Whether a window, or the order of an aggregate, asks for the numbers of rows."""
        policies = self.asked.policies
        is_simple = bool(policies) and all(isinstance(each, (*NEIGHBOURS, conditions.When)) for each in policies)
        return not is_simple or any("_n" in text for text in self.dialect.ordered.values())

    def aggregates(self, frame: str | None = None) -> list[str]:
        return [f"{self.aggregate(call, frame)} AS {self.q(name)}" for name, call in self.asked.calls.items()]

    def aggregate(self, call: Any, frame: str | None = None) -> str:
        if isinstance(call, spec.AggregateExpression):
            text = str(call.expression)
            for each in call.calls:
                text = text.replace(f'"{each.name}"', self.aggregate(each, frame))
            return text
        if not call.arguments and call.function == "count":
            arguments = ["_arrival"]
        else:
            arguments = [self.argument(each) for each in call.arguments]
        if call.function == "slope":
            arguments.append(f"{self.measure()} / {self.amount(Fraction(1))}.0")
        known = self.dialect.frames if frame else {**self.dialect.functions, **self.dialect.ordered}
        template = known.get(f"{call.function}/{len(arguments)}", known.get(call.function))
        if call.function == "range" and self.asked.is_time(str(call.arguments[0])):
            template = self.dialect.time_range
        if template is None:
            raise CannotSayError(f"the aggregate {call.function}{' over a frame' if frame else ''}")
        self.note = self.note or self.noted(call)
        if frame:
            if call.where is not None:
                arguments[0] = f"CASE WHEN {self.expression(call.where)} THEN {arguments[0]} END"
            return f"{template.format(*arguments)} OVER ({frame})"
        filters = [] if call.where is None else [f"({self.expression(call.where)})"]
        if call.function in self.dialect.ordered:
            filters.append(f"{arguments[0]} IS NOT NULL")
        found = template.format(*arguments)
        return (
            found.replace("{FILTER}", f" FILTER (WHERE {' AND '.join(filters)})" if filters else "")
            if "{FILTER}" in found
            else (f"{found} FILTER (WHERE {' AND '.join(filters)})" if filters else found)
        )

    def noted(self, call: spec.AggregateCall) -> str:
        """What is known of an aggregate of the engine; of some only over floats."""
        of_floats = any(
            isinstance(each, spec.Column) and self.case.given.columns.get(each.name) == "float64"
            for each in call.arguments
        )
        return self.dialect.notes.get(call.function, "") or (
            self.dialect.float_notes.get(call.function, "") if of_floats else ""
        )

    def argument(self, argument: Any) -> str:
        if isinstance(argument, spec.Column):
            return self.q(argument.name)
        if isinstance(argument, Fraction):
            return str(argument.numerator) if argument.denominator == 1 else str(float(argument))
        return f"'{argument}'" if isinstance(argument, str) else self.expression(argument)

    def grouped(self, source: str, groups: Sequence[str], more: Mapping[str, str], where: str = "") -> str:
        """Aggregates of groups. ``more``: other columns by their names."""
        by = [*self.key, *groups, *(self.q(name) for name in self.asked.group_by)]
        shown = [*self.key, *(self.q(name) for name in self.asked.group_by)]
        shown += [f"{text} AS {self.q(name)}" for name, text in more.items() if name in self.case.columns]
        told = ", ".join([*shown, *self.aggregates()])
        return f"SELECT {told} FROM {source}{where} GROUP BY {', '.join(dict.fromkeys(by))}"

    def shown(self, source: str, where: str = "") -> str:
        """Rows as they are, for ``emit rows``."""
        wanted = [name for name in self.case.values if name in self.columns or name == "_side"]
        return f"SELECT {', '.join(map(self.q, wanted))} FROM {source}{where}"

    def text(self, last: str) -> str:
        """The whole query, behind which windows may be filled and left out."""
        fills = [name for name, call in self.asked.calls.items() if getattr(call, "fills", False)]
        if fills:
            self.part("_told", last)
            by = f"PARTITION BY {', '.join(self.key)} " if self.key else ""
            over = f"OVER ({by}ORDER BY {self.q('window_start')} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
            others = [
                self.q(name) for name in self.case.columns if name not in fills and name not in ("window", "closed_by")
            ]
            last = (
                f"SELECT {', '.join(others)}, "
                + ", ".join(f"{self.dialect.filled.format(self.q(name))} {over} AS {self.q(name)}" for name in fills)
                + " FROM _told"
            )
        if "having" in self.case.spec:
            self.part("_had", last)
            self.columns += self.asked.calls
            last = f"SELECT * FROM _had WHERE {self.expression(parse_expression(self.case.spec['having']))}"
        return f"WITH {', '.join(self.parts)} {last}"
