"""Conditions that look at the open window (section 12): words they stand for, types, mistakes, rows that are rejected.

That they are what the reference says of random rows is in ``test_conditions``.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from operator import eq, ge, itemgetter, lt, ne
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.condition_cases import condition_logs
from support.strategies import MEASURES, examples
from wincli.windowing.aggregates.exact_sums import LIMBS
from wincli.windowing.errors import SpecError
from wincli.windowing.kinds.rules.reach import mean_of_ints

D = Decimal
FORMS = [
    ("delta(a, 2)", "split(a - first(a) > 2)"),
    ("delta(t, 3)", "split(t - first(t) > 3s)"),
    ("gap(a, 1)", "split(a - last(a) > 1)"),
    ("gap(t, 1)", "split(1 < t - last(t))"),
    ("reaches(sum(a), 205)", "punct(sum(a) >= 205)"),
    ("reaches(count(x), 2)", "punct(count(x) >= 2)"),
    ("reaches(range(t), 6)", "punct(range(t) >= 6)"),
    ("reaches(max(a), 101)", "punct(101 <= max(a))"),
    ("when(f)", "from(f) or split(f)"),
    ("while(a > 99)", "from(a > 99) or split((a > 99) is distinct from true)"),
    ("change(u)", "split(u is distinct from lag(u))"),
    ("change(x)", "split(x is distinct from lag(x))"),
]
"""Words, and conditions that say the same (section 12)."""


def rows_of(table: pa.Table, window: str, order: str, **more: Any) -> list[Any]:
    found = wincli.aggregate(
        table, window, order_by=order, aggregates=["ids=collect(id)"], rejected="drop", plain=True, **more
    )
    return found.select([*more.get("key", []), "window", "ids"]).to_pylist()


@pytest.mark.parametrize(("word", "form"), FORMS)
@examples(60)
@given(table=condition_logs(), key=st.sampled_from([[], ["k"]]), order=st.sampled_from(["t", "arrival"]))
def test_a_word_is_its_condition(word: str, form: str, table: pa.Table, key: list[str], order: str) -> None:
    """Both where the condition takes the road of the word, and where the loop asks it of each row."""
    wanted = rows_of(table, word, order, key=key)
    assert rows_of(table, form, order, key=key) == wanted
    asked = form.replace("split(", "split(count() > 0 and (").replace("punct(", "punct(count() > 0 and (") + ")"
    assert rows_of(table, asked, order, key=key) == wanted


@pytest.mark.parametrize("kind", [kind for kind in MEASURES if kind != pa.uint64()], ids=str)
@examples(40)
@given(
    values=st.lists(st.integers(0, 100), max_size=20),
    word=st.sampled_from([("delta", "first"), ("gap", "last")]),
    amount=st.sampled_from([0, 1, 7]),
)
def test_distances_of_every_type(kind: pa.DataType, values: list[int], word: tuple[str, str], amount: int) -> None:
    is_day = pa.types.is_date(kind)
    column = pa.array(values, pa.int64())
    if pa.types.is_decimal(kind):
        column = pa.array(list(map(D, values)), kind)
    else:
        column = column.cast(pa.int32()).cast(kind) if is_day else column.cast(kind, safe=False)
    table = pa.table({"id": range(len(values)), "v": column})
    amount *= 86_400 if is_day else 1
    wanted = rows_of(table, f"{word[0]}(v, {amount})", "arrival")
    for form in (f"v - {word[1]}(v) > {amount}", f"count() > 0 and v - {word[1]}(v) > {amount}"):
        assert rows_of(table, f"split({form})", "arrival") == wanted


TYPES = {
    "t": list(range(6)),
    "id": list("abcdef"),
    "ts": pa.array([0, 60, 120, 121, 400, 500], pa.timestamp("s")),
    "day": pa.array([0, 1, 2, 5, 6, 9], pa.date32()),
    "dec": pa.array([D("1.50"), D("2.75"), D("4.01"), None, D("-3.2"), D("9")], pa.decimal128(10, 2)),
    "big": pa.array([1, 2**63 + 5, 2**63 + 5, 3, None, 4], pa.uint64()),
    "narrow": pa.array([0.1, 0.2, 0.30000001, None, 0.5, 0.1], pa.float32()),
    "b": [True, False, None, True, True, False],
    "x": [5, 1, 2, None, 7, 3],
    "s": ["a", "b", "a", None, "c", "c"],
    "dur": pa.array([1, 2, 3, 4, 5, 6], pa.duration("s")),
    "nothing": pa.nulls(6),
    "y": [1.5, 2.5, float("nan"), None, float("inf"), -1.0],
    "g": pa.array(["a", "a", "b", "b", "a", "a"]).dictionary_encode(),
    "lists": [[1]] * 6,
    "wide": pa.array([D(1)] * 6, pa.decimal256(40, 2)),
}


@pytest.mark.parametrize(
    ("window", "wanted"),
    [
        ("split(ts - first(ts) >= 60)", "a b cd e f"),
        ("split(ts - first(ts) > 59.5)", "a b cd e f"),
        ("split(ts - last(ts) > x)", "a b cd e f"),
        ("split(day - first(day) > 1d)", "ab c de f"),
        ("split(ts > max(ts) + 1m)", "abcd e f"),
        ("split(ts - first(ts) > count() * 1m)", "abcd e f"),
        ("split((ts - first(ts)) / 2 > 1m)", "abc d ef"),
        ("split(first(day) < date '1970-01-03')", "a b cdef"),
        ("split(sum(dur) > 5s)", "abc de f"),
        ("split(abs(dec - first(dec)) > 1.25)", "ab cd e f"),
        ("split(sum(dec) + dec > 5)", "ab cde f"),
        ("split(big <> first(big))", "a bc de f"),
        ("split(max(big) > 3)", "ab c def"),
        ("split(9223372036854775813 <= max(big))", "ab c def"),
        ("split(max(big) > 9223372036854775813)", "abcdef"),
        ("split(max(big) > 9223372036854775812.5)", "ab c def"),
        ("split(max(big) > 99999999999999999999)", "abcdef"),
        ("split(min(big) > -1)", "a b c d ef"),
        ("split(first(big) = 1.5)", "abcdef"),
        ("split(narrow - first(narrow) > 0.1)", "ab cd ef"),
        ("split(b <> first(b))", "a bc de f"),
        ("punct(sum(b) >= 2)", "abcd ef"),
        ("punct(min(b) = false)", "ab cdef"),
        ("split(s > max(s))", "a bcd ef"),
        ("split(coalesce(last(s), 'q') = s)", "abcde f"),
        ("split(g <> first(g))", "ab cd ef"),
        ("split(nothing > sum(nothing))", "abcdef"),
        ("split(first(nothing) is null)", "a b c d e f"),
        ("split(y <> first(y))", "a b cd e f"),
        ("punct(sum(y) > 3)", "ab c de f"),
        ("punct(sum(x) / count() >= 3)", "a bcdef"),
        ("punct(mean(x) > 3)", "a bcde f"),
        ("split(first(x) = 5.5)", "abcdef"),
        ("split(first(x) <> 5.5)", "a b c de f"),
        ("split(sum(x) < 1e30)", "a b c de f"),
        ("split(sum(x) > 99999999999999999999)", "abcdef"),
        ("split(sum(x) > -99999999999999999999)", "a b c de f"),
        ("split(true and sum(x) > 3)", "a bcde f"),
        ("split(null and sum(x) > 3)", "abcdef"),
        ("split(null or sum(x) > 3)", "a bcde f"),
        ("split((null and sum(x) > 3) is null)", "a bcde f"),
        ("split(not (null or sum(x) > 3))", "abcdef"),
        ("split(sum(x) > null)", "abcdef"),
        ("split(coalesce(null, sum(x)) > 3)", "a bcde f"),
        ("split(x > least(first(x), 2, 9))", "abcd e f"),
        ("punct(count() >= 2.5)", "abc def"),
    ],
)
def test_types(window: str, wanted: str) -> None:
    found = wincli.aggregate(pa.table(TYPES), window, order_by="t", aggregates=["ids=collect(id)"])
    assert " ".join("".join(ids) for ids in found["ids"].to_pylist()) == wanted


@pytest.mark.parametrize(
    ("window", "what"),
    [
        ("split(first(s) > 3)", "VARCHAR and INTEGER cannot be compared; convert one of them with CAST"),
        ("split(first(b) > 1)", "BOOLEAN and INTEGER cannot be compared"),
        ("split(sum(x) > first(s))", "BIGINT and VARCHAR cannot be compared"),
        ("split(x - first(x) > 60s)", "BIGINT and INTERVAL cannot be compared; read the numbers as times"),
        ("split(first(ts) + first(day) > ts)", "TIMESTAMP and DATE cannot be added"),
        ("split(first(dec) * 2 > dec)", r"DECIMAL\(10, 2\) cannot be multiplied around an aggregate of the window"),
        ("split(max(big) > x)", r"UBIGINT and BIGINT cannot be compared; write CAST\(COLUMN AS BIGINT\): rows that"),
        ("split(max(big) > 1d)", r"UBIGINT and INTERVAL cannot be compared"),
        ("split(first(big) + 1 > 3)", r"UBIGINT and INTEGER cannot be added; write CAST\(COLUMN AS BIGINT\)"),
        ("split(sum(s) > 3)", "sum needs a number, and s is VARCHAR; take another column, or cast it"),
        ("split(sum(wide) > 3)", r"up to 38 digits, and wide is DECIMAL\(40, 2\); write sum\(CAST\(wide AS DOUBLE\)\)"),
        ("punct(mean(dur) > 2s)", "mean needs a number, and dur is INTERVAL"),
        ("split(lists <> first(lists))", r"lists is list<item: int64>, whose values cannot be compared"),
        ("split(count() + count(x))", r"a condition is wanted, and count\(\) \+ count\(x\) is BIGINT"),
        ("split(sum(x) and x > 1)", "AND needs a condition, and this is BIGINT"),
        ("split(abs(first(s)) = 'a')", "VARCHAR has no sign"),
        ("split(previous(last(s), 'a') = s)", "previous needs integers or floats, and s is string; cast it"),
    ],
)
def test_types_that_do_not_go_together(window: str, what: str) -> None:
    with pytest.raises(SpecError, match=what):
        wincli.aggregate(pa.table(TYPES), window, order_by="t")


MEANS = ["min", "max", "first", "last", "sum", "mean", "range"]
PYTHON: dict[str, Callable[[list[Any]], Any]] = {
    "min": min, "max": max, "first": itemgetter(0), "last": itemgetter(-1), "sum": sum,
    "mean": lambda rows: float(Fraction(sum(rows)) / len(rows)), "range": lambda rows: max(rows) - min(rows),
}  # fmt: skip


@examples(60)
@given(
    st.data(), st.sampled_from(MEANS), st.sampled_from(["uint64", "decimal"]), st.sampled_from(["<", ">=", "=", "<>"])
)
def test_unsigned_integers_and_decimals_are_exact_in_windows_and_matches(
    data: st.DataObject, function: str, kind: str, sign: str
) -> None:
    """A window is cut, and a match goes on, by what a plain list of its values says."""
    dtype: pa.DataType = pa.uint64()
    if kind == "uint64":
        most = 2**63 - 1 if function == "range" else 2**60 if function == "sum" else 2**64 - 1
        numbers = st.integers(0, most) | st.sampled_from([0, 1, most, most - 1, most // 2, most // 2 + 1])
    else:
        places = data.draw(st.sampled_from([2, 9, 18]))
        dtype = pa.decimal128(18, places)
        numbers = st.integers(-(10**17), 10**17).map(lambda tick: D(tick).scaleb(-places)) | st.just(D(1))
    values = data.draw(st.lists(numbers, min_size=1, max_size=7))
    of = PYTHON[function]
    amount = of(data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))
    text = f"CAST('{amount!r}' AS DOUBLE)" if function == "mean" else str(amount)
    compare = {"<": lt, ">=": ge, "=": eq, "<>": ne}[sign]
    table = pa.table({"v": pa.array(values, dtype), "id": range(len(values))})
    cut: list[list[int]] = []
    matches: list[list[int]] = []
    for row in range(len(values)):
        if cut and not compare(of([values[each] for each in cut[-1]]), amount):
            cut[-1].append(row)
        else:
            cut.append([row])
        if matches and compare(of([values[each] for each in (*matches[-1], row)]), amount):
            matches[-1].append(row)
        else:
            matches.append([row])
    condition = f"{function}(v) {sign} {text}"
    for window, wanted in ((f"split({condition})", cut), (f"match(a b*, a = true, b = {condition})", matches)):
        assert [row["ids"] for row in rows_of(table, window, "arrival")] == wanted


@examples(200)
@given(st.integers(-(2**80), 2**80) | st.integers(-(2**54), 2**54), st.integers(1, 2**31 - 1), st.integers(0, 38))
def test_means_of_ticks_are_the_nearest_floats(total: int, count: int, digits: int) -> None:
    for exact in (total, round(Fraction(float(Fraction(total, count * 10**digits))) * count * 10**digits)):
        parts, limbs = np.zeros(3), np.zeros(LIMBS, np.int64)
        found = mean_of_ints(exact >> 32, exact & 0xFFFFFFFF, count, digits, parts, limbs)
        assert found == float(Fraction(exact, count * 10**digits))


def test_a_row_whose_integer_does_not_fit_is_rejected_and_the_window_goes_on() -> None:
    far = 2**62
    table = pa.table({"t": range(7), "id": list("abcdefg"), "x": [1, 2, far, 3, far, 5, -far]})
    for window, wanted in (("split(sum(x) + x + x > 5)", "ab d fg"), ("punct(sum(x) * 2 > 5)", "ab d f g")):
        found = wincli.aggregate(table, window, order_by="t", aggregates=["ids=collect(id)"], rejected="drop")
        assert " ".join("".join(ids) for ids in found["ids"].to_pylist()) == wanted, window
    with pytest.raises(wincli.DataError, match=r"2 rows .* row 2 is expression_error: sum\(x\) \* 2 > 5"):
        wincli.aggregate(table, "punct(sum(x) * 2 > 5)", order_by="t")


def test_a_smoothed_value_begins_with_its_default_and_a_window_without_a_value_counts_with_it() -> None:
    """e: 4, then 0.5 * 2 + 0.5 * 4 = 3, then null counts as 4: 3.5, then 0.5 * 5 + 0.5 * 3.5 = 4.25."""
    table = pa.table({"t": range(12), "x": [2, None, None, None, None, None, None, 5, None, None, None, None]})
    found = wincli.aggregate(table, "count(previous(sum(x), 4, 0.5))", order_by="t", aggregates=["n=count()"])
    assert found["n"].to_pylist() == [4, 3, 3, 2]
