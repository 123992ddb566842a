"""Random expressions of all types over a table with all types, as text that both DuckDB and the product read."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

INTEGERS = ["i", "j", "k", "u"]
NUMBERS = [*INTEGERS, "f", "g", "d"]
SCHEMA = pa.schema(
    [
        ("i", pa.int64()), ("j", pa.int32()), ("k", pa.int8()), ("u", pa.uint16()), ("f", pa.float64()),
        ("g", pa.float32()), ("d", pa.decimal128(10, 2)), ("s", pa.string()), ("n", pa.string()), ("b", pa.bool_()),
        ("t", pa.timestamp("us")), ("z", pa.timestamp("us", "UTC")), ("day", pa.date32()),
        ("l", pa.list_(pa.int64())), ("c", pa.struct([("p", pa.int64()), ("q", pa.string())])),
    ]
)  # fmt: skip
_TEXTS = ["", "a", "abc", "Abc", " b ", "ÄÖ", "a,b,c", "x_y%", "5", "aXbXc", "error: 42", "10.5"]
_PATTERNS = ["%", "a%", "%b%", "_", "a_c", "%c", "A%", "", "x\\_y%", "Ä%"]
_NUMBER_TEXTS = ["1", "2.5", "-3", " 7 ", "x", "", "1e2", "300", "-0.5", "99999999999", "2026-01-05", "true", "nan"]
_NUMBERS = ['"i"', "1", "2", "0", "-3", "100", "1.5", "0.25", "1e3", "3000000000", "c.p", "l[1]"]
_NUMBER_TYPES = ["INTEGER", "BIGINT", "TINYINT", "SMALLINT", "UINTEGER", "UTINYINT", "UBIGINT", "FLOAT", "DOUBLE"]
_NUMBER_TYPES += ["DECIMAL(10, 2)", "DECIMAL(5, 1)", "DECIMAL(38, 10)"]
_LAYOUTS = ["%Y-%m-%d", "%d/%b/%Y", "%Y-%m-%d %H:%M:%S"]
_TIMES = [
    datetime(2026, 1, 5, 10, 20, 30, 500000), datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(1969, 12, 31, 12, 0),
    datetime(2026, 3, 29, 1, 30), datetime(2026, 12, 31), datetime(2000, 1, 1, 0, 0, 0, 1),
]  # fmt: skip
_UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "decade", "century", "isoyear"]
_PARTS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "doy", "dow", "isodow", "epoch"]
_PARTS += ["millisecond", "microsecond", "isoyear", "decade", "century", "millennium", "yearweek"]
_SHORT_PARTS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]
_SHORT_PARTS += ["isodow", "isoyear", "decade", "century", "millennium", "yearweek", "dayofmonth", "dayofweek"]
_SHORT_PARTS += ["weekday", "dayofyear", "weekofyear"]
_ZONES = ["America/New_York", "Europe/Paris", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"]
_SPANS = [
    "INTERVAL '5' MINUTE",
    "INTERVAL '90' SECOND",
    "INTERVAL '3' HOUR",
    "INTERVAL '2' DAY",
    "INTERVAL 250 MILLISECONDS",
]
_LONG_SPANS = ["INTERVAL '1' MONTH", "INTERVAL '2' YEAR", "INTERVAL '5' MONTH"]


def random_table(random: Random, n: int = 6) -> pa.Table:
    """A table of `SCHEMA` with nulls, ends of ranges, NaN and odd texts."""
    values: dict[str, list[Any]] = {
        "i": [0, 1, -1, 2, 7, -100, 2**31, 2**63 - 1, -(2**63), 10**12],
        "j": [0, 1, -1, 3, 12, 2**31 - 1, -(2**31)],
        "k": [0, 1, -1, 5, 127, -128],
        "u": [0, 1, 2, 300, 65535],
        "f": [0.0, -0.0, 1.5, -2.5, 0.1, 1e20, float("nan"), float("inf"), float("-inf"), 3.0, 1e-5, 2.675],
        "g": [0.0, 1.5, -2.5, 3.0, 1024.0],
        "d": [Decimal("0.00"), Decimal("1.25"), Decimal("-2.50"), Decimal("99999999.99"), Decimal("0.01")],
        "s": [*_TEXTS], "n": [*_NUMBER_TEXTS], "b": [True, False], "t": [*_TIMES],
        "z": [each.replace(tzinfo=UTC) for each in _TIMES], "day": [each.date() for each in _TIMES],
        "l": [[], [1], [1, None, 3], [4, 5, 6, 7]],
        "c": [{"p": 1, "q": "x"}, {"p": None, "q": None}, {"p": 9, "q": "abc"}],
    }  # fmt: skip
    columns = {name: [random.choice([*each, None]) for _ in range(n)] for name, each in values.items()}
    return pa.table(columns, schema=SCHEMA)


class Writer:
    """Writes random expressions of a type. ``random``: where the choices come from."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def any(self, depth: int) -> str:
        """An expression of any type."""
        return self.random.choice([self.number, self.text, self.condition, self.condition, self.time, self.span])(depth)

    def number(self, depth: int) -> str:
        """A number: an integer, a float or a decimal."""
        if depth <= 0 or self.random.random() < 0.15:
            return self._pick([*NUMBERS, *NUMBERS, *_NUMBERS])
        a, b = (self.number(depth - 1) for _ in range(2))
        call = self._pick(["abs({})", "floor({})", "ceil({})", "round({})", "round({}, 1)", "round({}, -1)",
        "sqrt({})", "ln({})",
                           "exp({})", "power({}, 2)"])  # fmt: skip
        return self._pick([
            *[f"{self._in(a)} {sign} {self._in(b)}" for sign in "+-*/%"], *[f"({a} {sign} {b})" for sign in "+-*"],
            f"-({a})", call.format(a), f"length({self.text(depth - 1)})", f"CAST({a} AS {self._number_type()})",
            f"TRY_CAST({self.text(depth - 1)} AS {self._number_type()})", f"CAST(n AS {self._number_type()})",
            self._case(self.number, depth), f"coalesce({a}, {b})", f"nullif({a}, {b})",
            f"extract({self._pick(_PARTS)} from {self.time(depth - 1)})", f"epoch({self.time(depth - 1)})",
            f"epoch({self.span(depth - 1)})", "CAST(k AS FLOAT)", "(day - DATE '2026-01-01')",
            f"l[{self._pick(['1', '2', '-1', '0', 'k'])}]",
            f"{self._pick(_SHORT_PARTS)}({self.time(depth - 1)})",
            f"date_part('{self._pick(_PARTS)}', {self.time(depth - 1)})",
            f"date_diff('{self._pick([*_UNITS, 'millisecond'])}', {self.time(depth - 1)}, {self.time(depth - 1)})",
            f"{self._pick(['greatest', 'least'])}({a}, {b}, {self._pick(['NULL', '7', 'i', 'f'])})",
            f"({a})::{self._number_type()}", f"({self._pick(['i', 'k', 'f', 'g'])} {self._pick('+-*/%')} NULL)",
            f"CAST({self.condition(depth - 1)} AS INT)",
        ])  # fmt: skip

    def text(self, depth: int) -> str:
        """A text."""
        if depth <= 0 or self.random.random() < 0.2:
            return self._pick(["s", "n", "s", "c.q", *(f"'{each}'" for each in _TEXTS)])
        a, b = (self.text(depth - 1) for _ in range(2))
        start, count = self.random.randint(-4, 4), self.random.randint(-2, 4)
        return self._pick([
            f"lower({a})", f"upper({a})", f"trim({a})", f"trim({a}, 'ab')", f"substr({a}, {start})", f"ltrim({a})",
            f"rtrim({a}, 'c ')",
            f"substr({a}, {start}, {count})", f"replace({a}, '{self._pick(['a', 'b', ',', 'X', ''])}', 'zz')",
            f"split_part({a}, '{self._pick([',', 'X', ' '])}', {start})",
            f"concat({a}, {self.any_plain(depth - 1)}, {b})",
            f"({a} || {b})", f"({a} || {self.any_plain(depth - 1)})", f"regexp_extract({a}, '[a-z]+')",
            f"regexp_extract({a}, '([a-z]+)(:) ([0-9]+)', {abs(start) % 4})",
            f"CAST({self.any_plain(depth - 1)} AS VARCHAR)", f"({self.any_plain(depth - 1)})::TEXT",
            f"{self._pick(['greatest', 'least'])}({a}, {b})",
            self._case(self.text, depth), f"coalesce({a}, {b})", f"nullif({a}, {b})",
        ])  # fmt: skip

    def any_plain(self, depth: int) -> str:
        """A value that has a text."""
        return self._pick([self.number, self.text, self.condition, self.time])(depth)

    def condition(self, depth: int) -> str:
        """A condition."""
        if depth <= 0 or self.random.random() < 0.1:
            return self._pick(["b", "b", "TRUE", "FALSE", "NULL", "(s IS NULL)", "(f > 1)"])
        kind = self._pick([self.number, self.text, self.time, self.number, self.span, self.condition])
        a, b, c = (kind(depth - 1) for _ in range(3))
        wrap = str if kind in (self.number, self.span) else "({})".format
        a, b, c = (self._in(each) if wrap is str else wrap(each) for each in (a, b, c))
        sign = self._pick(["=", "<>", "!=", "==", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
        negation = self._pick(["", "NOT "])
        p, q = (self.condition(depth - 1) for _ in range(2))
        return self._pick([
            f"{a} {sign} {b}", f"{a} {sign} {b}", f"({p}) AND ({q})",
            f"({p}) OR ({q})", f"{self._in(p)} AND {self._in(q)} OR {self._in(self.condition(depth - 1))}",
            f"NOT ({p})", f"NOT {a} = {b}", f"{a} IS {negation}NULL",
            f"{a} {negation}IN ({b}, {c})", f"i {negation}IN (1, 2, {self._pick(['NULL', '7', '-1'])})",
            f"s {negation}IN ('a', '', 'abc', {self._pick(['NULL', 's', 'upper(n)'])})",
            f"{a} {negation}BETWEEN {b} AND {c}",
            f"{self._in(self.text(depth - 1))} {negation}{self._pick(['LIKE', 'ILIKE'])} '{self._pick(_PATTERNS)}'",
            f"regexp_matches({self.text(depth - 1)}, '{self._pick(['^a', '[0-9]+', 'b', 'X.X', 'ä'])}')",
            f"regexp_matches({self.text(depth - 1)}, '{self._pick(['^A', 'x', 'Ä'])}', '{self._pick('ic')}')",
            f"{a} {sign} NULL", f"TRY_CAST({self.text(depth - 1)} AS BOOLEAN)",
            self._case(self.condition, depth), f"coalesce({p}, {q})", f"CAST({self.number(depth - 1)} AS BOOLEAN)",
            f"{self._pick(NUMBERS)} {sign} '{self._pick(['1', '2.5', '30'])}'", f"n {sign} {self._pick(NUMBERS)}",
            f"t {sign} '2026-01-05 10:20:30.5'", f"day {sign} {self.time(0)}", f"t {sign} z",
        ])  # fmt: skip

    def time(self, depth: int) -> str:
        """A date or a timestamp."""
        if depth <= 0 or self.random.random() < 0.2:
            return self._pick(["t", "day", "t", "z", "TIMESTAMP '2026-01-05 10:20:30'", "DATE '2024-02-29'"])
        a = self.time(depth - 1)
        stamp = self._pick(["t", "z", f"CAST({a} AS TIMESTAMP)"])
        return self._pick([
            f"date_trunc('{self._pick(_UNITS)}', {a})", f"({self._in(a)} {self._pick('+-')} {self._pick(_SPANS)})",
            f"({self._in(a)} {self._pick('+-')} {self._pick(_LONG_SPANS)})", f"({self._pick(_SPANS)} + {stamp})",
            f"({stamp} + ({self.span(depth - 1)}))", f"CAST({a} AS DATE)", f"CAST({a} AS TIMESTAMP)", "(day + 3)",
            "(day - k)",
            "TRY_CAST(n AS DATE)", "CAST(n AS TIMESTAMP)", "CAST(CAST(t AS VARCHAR) AS TIMESTAMP)",
            f"strptime({self._pick(['n', 's', 'CAST(day AS VARCHAR)'])}, '{self._pick(_LAYOUTS)}')",
            self._case(lambda d: self._pick(["t", "CAST(day AS TIMESTAMP)", "t + INTERVAL '1' DAY"]), depth),
            f"CAST({stamp} AS TIMESTAMP_{self._pick(['S', 'MS'])})",
            "TRY_CAST(s AS TIMESTAMP)", "CAST(n AS TIMESTAMPTZ)",
            f"coalesce(t, {a})", "nullif(t, TIMESTAMP '2026-12-31')", f"to_timestamp({self.number(depth - 1)})",
            f"timezone('{self._pick(_ZONES)}', {stamp})", f"({stamp} AT TIME ZONE '{self._pick(_ZONES)}')",
            f"{self._pick(['greatest', 'least'])}({a}, {self.time(depth - 1)})",
        ])  # fmt: skip

    def span(self, depth: int) -> str:
        """The time between two timestamps."""
        if depth <= 0 or self.random.random() < 0.2:
            return self._pick([*_SPANS, "(t - TIMESTAMP '2026-01-01')"])
        a, b = (self.span(depth - 1) for _ in range(2))
        return self._pick([f"({a} + {b})", f"({a} - {b})", f"({a} * 2)", f"(k * {self._pick(_SPANS)})", f"-({a})",
        "(t - day)", "(z - t)",
                           f"({self._pick(['t', 'z'])} - {self._pick(['t', 'z'])})"])  # fmt: skip

    def _case(self, value: Any, depth: int) -> str:
        a, b, c = (value(depth - 1) for _ in range(3))
        p, q = (self.condition(depth - 1) for _ in range(2))
        return self._pick([
            f"CASE WHEN {p} THEN {a} ELSE {b} END", f"CASE WHEN {p} THEN {a} WHEN {q} THEN {b} ELSE {c} END",
            f"CASE WHEN {p} THEN {a} END", f"CASE k WHEN 1 THEN {a} WHEN {self.number(0)} THEN {b} ELSE {c} END",
        ])  # fmt: skip

    def _number_type(self) -> str:
        return self._pick(_NUMBER_TYPES)

    def _in(self, text: str) -> str:
        """An operand, in brackets more often than not: without them the precedence of operators is tested too."""
        return text if self.random.random() < 0.15 else f"({text})"

    def _pick(self, choices: Any) -> Any:
        return self.random.choice(choices)
