"""Random windows that follow conditions: the text of a spec, and its policies as the reference has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import pyarrow as pa
from hypothesis import strategies as st

from references import open_window as sees
from references import tumbling as reference
from support.event_logs import logs

SECONDS, INTEGERS, FLOATS = pa.timestamp("s"), pa.int32(), pa.float64()


@dataclass(frozen=True, slots=True)
class ConditionCase:
    """A spec, its policies, the columns that order its rows, and which keys are evicted."""

    window: str
    policies: tuple[reference.Policy, ...]
    order: tuple[str, ...]
    closed: Literal["left", "right"] = "left"
    eviction: reference.Eviction | None = None
    emit_evicted: bool = False


@st.composite
def condition_logs(draw: st.DrawFn) -> pa.Table:
    """Random logs with three conditions, of which two may be null, and amounts."""
    table = draw(logs())
    size = len(table)
    for name, values in (("f", [True, False, None]), ("g", [True, False, None]), ("h", [True, False])):
        column = draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))
        table = table.append_column(name, pa.array(column, pa.bool_()))
    amounts = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    return table.append_column("n", pa.array(amounts, pa.int64()))


Policy = tuple[str, reference.Policy]
Term = tuple[str, Callable[[reference.Row], bool]]


def is_true(name: str) -> Callable[[reference.Row], bool]:
    return lambda row: row[name] is True


FLAGS: list[Term] = [(name, is_true(name)) for name in "fgh"]
TERMS: list[Term] = [
    ("a > lag(a)", lambda row: row["a before"] is not None and row["a"] > row["a before"]),
    ("lag(a, 2) > a and f", lambda row: row["f"] is True and (row["a 2 before"] or row["a"]) > row["a"]),
    ("lag(a + 1) is null", lambda row: row["a before"] is None),
    ("u = 'p' or g", lambda row: row["u"] == "p" or row["g"] is True),
    ("a % 2 = 0", lambda row: row["a"] % 2 == 0),
    ("x > 0.5", lambda row: row["x"] is not None and (row["x"] > 0.5 or row["x"] != row["x"])),  # NaN is the largest
]
"""Conditions as texts, and what they say of a row, which knows values of rows before it."""
CONDITIONS = st.sampled_from(FLAGS) | st.sampled_from(TERMS)
MEASURED = [("a", INTEGERS), ("t", SECONDS)]


def look_back(rows: Mapping[int, reference.Row], key: Sequence[str], order: Sequence[str]) -> dict[int, reference.Row]:
    """Rows with the value of ``a`` in the row before of their key, and in the one before that."""
    before: dict[tuple[Any, ...], list[Any]] = {}
    out = {}
    for pos in reference.in_order(rows, order):
        seen = before.setdefault(tuple(rows[pos][name] for name in key), [None, None])
        out[pos] = {**rows[pos], "a before": seen[-1], "a 2 before": seen[-2]}
        seen.append(rows[pos]["a"])
    return out


def _count(draw: st.DrawFn) -> Policy:
    n = draw(st.integers(1, 6))
    return f"count({n})", reference.Count(n)


def _measured(draw: st.DrawFn) -> Policy:
    name, kind = draw(st.sampled_from(MEASURED))
    n = draw(st.integers(0, 5))
    word, policy = draw(st.sampled_from([("delta", reference.Delta), ("gap", reference.Gap)]))
    return f"{word}({name}, {n})", policy(name, Fraction(n), kind)


def _said(
    draw: st.DrawFn, amounts: Sequence[tuple[str, reference.Amount]] = (("n", lambda _, row: row["n"]),)
) -> Policy:
    """A policy with one of some amounts that a row says."""
    name, kind = draw(st.sampled_from(MEASURED))
    text, amount = draw(st.sampled_from(amounts))
    return draw(
        st.sampled_from([
            (f"count({text})", reference.Count(amount)),
            (f"delta({name}, {text})", reference.Delta(name, amount, kind)),
            (f"gap({name}, {text})", reference.Gap(name, amount, kind)),
        ])
    )  # fmt: skip


def _change(draw: st.DrawFn) -> Policy:
    names = draw(st.sampled_from([("u",), ("x",), ("f", "u"), ("flag",)]))
    return f"change({', '.join(names)})", reference.Change(names)


def _punct(draw: st.DrawFn) -> Policy:
    text, holds = draw(CONDITIONS)
    return f"punct({text})", reference.Punct(holds)


def _reaches(draw: st.DrawFn) -> Policy:
    function = draw(st.sampled_from(["count", "sum", "min", "max", "range"]))
    name, kind = draw(st.sampled_from([("a", INTEGERS), ("x", FLOATS)]))
    amounts = ["-3", "0", "0.7", "0.8", "3", "100", "205", "300", "1e16", "2e16"]
    amount = draw(st.sampled_from(["0", "1", "2.5", "4"] if function == "count" else amounts))
    return f"reaches({function}({name}), {amount})", reference.Reaches(function, name, Fraction(amount), kind)


LOOKS: list[tuple[str, sees.Sees]] = [
    ("abs(a - first(a)) > 2", lambda w, r, _: sees.above(sees.without_sign(r["a"] - w[0]["a"]), 2)),
    ("a - first(a) > 2", lambda w, r, _: sees.above(r["a"] - w[0]["a"], 2)),
    ("a - first(a) >= 2.5", lambda w, r, _: sees.at_least(r["a"] - w[0]["a"], 2.5)),
    ("t - last(t) >= 2s", lambda w, r, _: r["t"] - w[-1]["t"] >= 2),
    ("3 < t - first(t)", lambda w, r, _: r["t"] - w[0]["t"] > 3),
    ("x - first(x) > 0.5", lambda w, r, _: sees.above(sees.minus(r["x"], _see("first", w, "x")), 0.5)),
    ("x - last(x) >= 0.5", lambda w, r, _: sees.at_least(sees.minus(r["x"], _see("last", w, "x")), 0.5)),
    ("x <> first(x)", lambda w, r, _: sees.differs(r["x"], _see("first", w, "x"))),
    ("u <> last(u) or u < min(u)", lambda w, r, _: sees.either(r["u"] != w[-1]["u"], r["u"] < min(e["u"] for e in w))),
    ("f is distinct from last(f)", lambda w, r, _: reference.is_distinct(r["f"], _see("last", w, "f"))),
    ("not f and count(f) >= 2", lambda w, r, _: sees.both(_not(r["f"]), _see("count", w, "f") >= 2)),
    ("sum(n) + n > 7", lambda w, r, _: _see("sum", w, "n") + r["n"] > 7),
    ("coalesce(sum(x), n) >= 1e16", lambda w, r, _: sees.at_least(_or(_see("sum", w, "x"), r["n"]), 1e16)),
    ("x > mean(x)", lambda w, r, _: sees.above(r["x"], _see("mean", w, "x"))),
    ("mean(a) < 100.5", lambda w, r, _: sees.above(100.5, _see("mean", w, "a"))),
    ("range(a) > 3 and count() > 1", lambda w, r, _: _see("range", w, "a") > 3 and len(w) > 1),
    ("(max(x) is null) is distinct from (x is null)", lambda w, r, _: (
        (_see("max", w, "x") is None) != (r["x"] is None))),
    ("t > max(t) or a < min(a) - 1", lambda w, r, _: (
        r["t"] > max(e["t"] for e in w) or r["a"] < min(e["a"] for e in w) - 1)),
    ("least(a, first(a)) < 98 or greatest(x, max(x)) > 1", lambda w, r, _: sees.either(
        min(r["a"], w[0]["a"]) < 98, sees.above(_greatest(r["x"], _see("max", w, "x")), 1))),
    ("sum(a) * 9223372036854775 < 0", lambda w, r, _: sees.times(_see("sum", w, "a"), 9223372036854775) < 0),
    ("x is null and 9223372036854775000 + sum(a) > 0", lambda w, r, _: sees.both(
        r["x"] is None, sees.plus(9223372036854775000, _see("sum", w, "a")) > 0)),
    ("a > lag(a) and count() >= 2", lambda w, r, _: (
        r["a before"] is not None and r["a"] > r["a before"] and len(w) > 1)),
    ("sum(lag(a)) - first(a) * count() > 4", lambda w, r, _: sees.above(
        sees.minus(_see("sum", w, "a before"), w[0]["a"] * len(w)), 4)),
    ("-first(a) / 2 < last(n) - 52.5", lambda w, r, _: -w[0]["a"] / 2 < w[-1]["n"] - 52.5),
]  # fmt: skip
"""Conditions that look at the open window, and what they say of its rows and the row that is asked."""
OLD: list[tuple[str, sees.Sees]] = [
    ("count() >= previous(count(), 2)", lambda w, r, old: len(w) >= (len(old) if old else 2)),
    ("abs(sum(n)) > 2 * previous(sum(n), 1, 0.5)", lambda w, r, old: _see("sum", w, "n") > 2 * sees.smoothed(
        old, "sum", _of("n"), 1, 0.5, True)),
    ("abs(a - 100) >= previous(abs(range(a)), 2, 0.1)", lambda w, r, old: abs(r["a"] - 100) >= sees.smoothed(
        old, "range", _of("a"), 2, 0.1, False)),
    ("count(x) + 0.25 > previous(last(x), 1.5, 0.75)", lambda w, r, old: sees.above(
        _see("count", w, "x") + 0.25, sees.smoothed(old, "last", _of("x"), 1.5, 0.75, True))),
]  # fmt: skip
"""Conditions that also ask for the window before."""


def _see(function: str, rows: reference.Rows, name: str) -> Any:
    return sees.of(function, rows, _of(name))


def _of(name: str) -> Callable[[reference.Row], Any]:
    return lambda row: row[name]


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value


def _greatest(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return _or(one, other)
    return one if sees.above(one, other) else other


def _looks(draw: st.DrawFn, conditions: Sequence[tuple[str, sees.Sees]] = LOOKS) -> Policy:
    """A policy with one of some conditions on the open window."""
    text, condition = draw(st.sampled_from(conditions))
    if draw(st.booleans()):
        return f"split({text})", sees.Split(condition)
    return f"punct({text})", sees.PunctOfWindow(condition)


def _split(draw: st.DrawFn) -> Policy:
    text, holds = draw(CONDITIONS)
    return f"split({text})", sees.Split(lambda _, row, __: holds(row))


def _time(draw: st.DrawFn) -> Policy:
    length = draw(st.sampled_from(["3", "4", "7"]))
    return f"time({length})", reference.Time(Fraction(length), SECONDS)


def _opener(draw: st.DrawFn) -> Policy:
    (text, holds), (other, until) = draw(CONDITIONS), draw(CONDITIONS)
    return draw(
        st.sampled_from([
            (f"when({text})", reference.When(holds)),
            (f"while({text})", reference.While(holds)),
            (f"from({text}, until={other})", reference.From(holds, until)),
            (f"from({text})", reference.From(holds, lambda _: False)),
            _from_until(draw, text, holds),
        ])
    )  # fmt: skip


def _from_until(draw: st.DrawFn, text: str, holds: Callable[[reference.Row], bool]) -> Policy:
    until, condition = draw(st.sampled_from(LOOKS))
    return f"from({text}, until={until})", sees.FromOfWindow(condition, opener=holds)


def _marks(_: st.DrawFn) -> Policy:
    return "punct()", reference.Punct()


def _has_time(policies: Iterable[reference.Policy]) -> bool:
    return any(isinstance(policy, reference.Time) for policy in policies)


def _right(policy: reference.Policy) -> reference.Policy:
    return reference.RightClosed(policy.length, policy.kind) if isinstance(policy, reference.Time) else policy


def _small(row: reference.Row) -> Any:
    x = row["x"]
    return x if x is not None and x < 1e17 else None


def _old(function: str, of: Callable[[reference.Row], Any], default: Any) -> reference.Amount:
    def amount(old: Sequence[reference.Row], row: reference.Row) -> Any:
        other = default(row) if callable(default) else default
        return reference.aggregate(function, [of(each) for each in old], other) if old else other

    return amount


SMALL = "CASE WHEN x < 1e17 THEN x END"
MEAN, SUM_A = _old("mean", _small, 2.5), _old("sum", _of("a"), 5)
RANGE, LEAST, MOST = _old("range", _of("a"), 1), _old("min", _of("x"), _of("n")), _old("max", _of("x"), 0.5)
LAST, FIRST = _old("last", _of("n"), 1), _old("first", lambda row: row["a"] + row["n"], 104)
FLOAT_SUM, SPREAD, COUNT_X = _old("sum", _small, 3), _old("range", _of("x"), 2), _old("count", _of("x"), 3)
AMOUNTS: list[tuple[str, reference.Amount]] = [
    ("previous(count(), 2)", _old("count", _of("id"), 2)),
    ("greatest(previous(count(x), 3) - 1, 0)", lambda old, row: max(COUNT_X(old, row) - 1, 0)),
    ("greatest(0, previous(sum(a), 5) / 100)", lambda old, row: max(0, SUM_A(old, row) / 100)),
    (f"least(greatest(2 * previous(mean({SMALL}), 2.5), 0), 9)", lambda old, row: min(max(2 * MEAN(old, row), 0), 9)),
    ("previous(range(a), 1) + n", lambda old, row: RANGE(old, row) + row["n"]),
    ("greatest(previous(min(x), n), 0)", lambda old, row: max(LEAST(old, row), 0)),
    ("least(greatest(previous(max(x), 0.5), n / 2), 6)", lambda old, row: min(max(MOST(old, row), row["n"] / 2), 6)),
    ("previous(last(n), 1) * 2 - previous(last(n), 1)", LAST),
    ("greatest(-(100 - previous(first(a + n), 104)), 0)", lambda old, row: max(FIRST(old, row) - 100, 0)),
    (f"greatest(previous(sum({SMALL}), 3) / 1e16 * 3, 0)", lambda old, row: max(FLOAT_SUM(old, row) / 1e16 * 3, 0)),
    ("previous(range(x), 2) * n / 4", lambda old, row: SPREAD(old, row) * row["n"] / 4),
]
"""Amounts that ask for the window before, and what they are for its rows and a row; none is NaN or negative."""
COUNT, FIRST_X = _old("count", _of("id"), 2), _old("first", _of("x"), _of("n"))
REJECTING: list[tuple[str, reference.Amount]] = [
    ("previous(count(), 2) - 2", lambda old, row: COUNT(old, row) - 2),
    ("n - previous(count(), 2) / 2", lambda old, row: row["n"] - COUNT(old, row) / 2),
    ("previous(max(x), 0.5)", MOST),
    ("previous(first(x), n)", FIRST_X),
    ("n * 2 - previous(range(a), 1)", lambda old, row: row["n"] * 2 - RANGE(old, row)),
]
"""Amounts that may be NaN or negative."""


BY_ROWS = [_said, _measured, _count, _change, _punct, _reaches, _split, _looks, _looks, _looks]


@st.composite
def previous_cases(draw: st.DrawFn, with_marks: bool = False, rejects: bool = False) -> ConditionCase:
    """One or two policies whose amounts ask for the window before, and up to two others.

    ``rejects``: whether the amounts may be NaN or negative.
    """
    amount = partial(_said, amounts=[*AMOUNTS, *REJECTING] if rejects else AMOUNTS)
    own = draw(st.sampled_from([amount, partial(_looks, conditions=OLD)]))
    others = [*BY_ROWS, _time, _opener, *([_marks] if with_marks else [])]
    kinds: list[Any] = draw(st.lists(st.sampled_from(others), max_size=2, unique=True))
    kinds = draw(st.permutations([*kinds, *[own] * draw(st.integers(1, 2))]))
    found = dict(kind(draw) for kind in kinds)
    order: tuple[str, ...] = draw(st.sampled_from([("t",), ()]))
    if _has_time(found.values()):
        order = ("t",)
    return ConditionCase(" or ".join(found), tuple(found.values()), order)


@st.composite
def condition_cases(draw: st.DrawFn, with_marks: bool = False) -> ConditionCase:
    """One to four policies in any order, at most one of which opens windows."""
    kinds: list[Any] = draw(st.lists(st.sampled_from([*BY_ROWS, _time, *([_marks] if with_marks else [])]), max_size=3))
    if not kinds or draw(st.booleans()):
        kinds.insert(draw(st.integers(0, len(kinds))), _opener)
    found = dict(kind(draw) for kind in kinds)
    order: tuple[str, ...] = draw(st.sampled_from([("t",), ()]))
    if _has_time(found.values()):
        order = ("t",)
    policies, closed = tuple(found.values()), "left"
    if _has_time(policies) and draw(st.booleans()):
        policies, closed = tuple(map(_right, policies)), "right"
    return ConditionCase(" or ".join(found), policies, order, closed)  # type: ignore[arg-type]


@st.composite
def evicting_cases(draw: st.DrawFn, with_marks: bool = False) -> ConditionCase:
    """As `condition_cases`, closed on the left, and keys are evicted."""
    case = draw(condition_cases(with_marks).filter(lambda case: case.closed == "left"))
    evictions: list[tuple[Any, list[str]]] = [
        ("partitionAge", ["1", "2", "3", "5.5", "8"]),
        ("partitionCount", ["1", "2", "3"]),
        ("tupleCount", ["1", "3", "5", "8"]),
    ]
    word, amounts = draw(st.sampled_from(evictions))
    amount = draw(st.sampled_from(amounts))
    window = f"{case.window}, partitioned, {word}({amount})"
    order = ("t",) if word == "partitionAge" else case.order
    eviction, emits = (word, Fraction(amount)), draw(st.booleans())
    return replace(case, window=window, order=order, eviction=eviction, emit_evicted=emits)
