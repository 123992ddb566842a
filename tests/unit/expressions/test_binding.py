"""What a bound expression says of its rows: values, failures, mistakes with their places (section 11)."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support.spec_errors import blocks, message
from wincli.windowing.errors import DataError, SpecError
from wincli.windowing.expressions.binding import Evaluation, bind, bind_condition
from wincli.windowing.expressions.lags import split_lags
from wincli.windowing.expressions.syntax import parse_expression

ROWS = pa.table(
    {
        "i": pa.array([1, None, 3, 4], pa.int64()), "k": pa.array([100, 3, -128, None], pa.int8()),
        "s": ["7", "x", None, "12"], "f": [1.5, float("nan"), None, -2.0], "b": [True, None, False, True],
        "ts": pa.array([0, 10**15, None, -1], pa.timestamp("us")),
        "paris": pa.array([0, 10**9, None, 1774749600], pa.timestamp("s", "Europe/Paris")),
        "c": [{"p": {"q": 1}}, {"p": None}, None, {"p": {"q": 4}}], "l": [[1, 2], [], None, [3]],
    }
)  # fmt: skip


def evaluate(text: str, rows: pa.Table | pa.RecordBatch = ROWS) -> Evaluation:
    return bind(parse_expression(text), rows.schema).evaluate(rows)


FAILURES = {
    "CAST(s AS INTEGER) + 1": ["'x' is no INTEGER"],
    "k + k": ["100 + 100 is no TINYINT", "-128 + -128 is no TINYINT"],
    "-k": ["0 - -128 is no TINYINT"],
    "abs(k)": ["abs of -128 is no TINYINT"],
    "i % 0": ["a division by zero"] * 3,
    "CAST(i * 1.5 AS DECIMAL(2, 1)) * 9": [],
    "CAST(i * 40 AS TINYINT)": ["160 is no TINYINT"],
    "CAST(f * 1e20 AS BIGINT)": ["1.5e+20 is no BIGINT", "nan is no BIGINT", "-2e+20 is no BIGINT"],
    "strptime(s, '%Y')": ["'7' is not in the layout '%Y'", "'x' is not in the layout '%Y'",
    "'12' is not in the layout '%Y'"],
    "CAST(s AS DATE)": ["'7' is no DATE", "'x' is no DATE", "'12' is no DATE"],
    "s = i": ["'x' is no BIGINT"],
    "CASE WHEN i = 1 THEN CAST(s AS INTEGER) ELSE 0 END": [],
    "CASE WHEN i IS NULL THEN CAST(s AS INTEGER) ELSE 0 END": ["'x' is no INTEGER"],
    "CASE WHEN CAST(s AS INTEGER) = 7 THEN 1 WHEN TRUE THEN 2 END": ["'x' is no INTEGER"],
    "coalesce(i, CAST(s AS INTEGER))": ["'x' is no INTEGER"],
    "coalesce(b, CAST(s AS BOOLEAN))": ["'x' is no BOOLEAN"],
    "b AND CAST(s AS INTEGER) = 7": ["'x' is no INTEGER"],
    "NULL = CAST(s AS INTEGER)": ["'x' is no INTEGER"],
    "TRY_CAST(s AS INTEGER)": [],
    "CAST('x' AS INTEGER)": ["'x' is no INTEGER"] * 4,
}  # fmt: skip


@pytest.mark.parametrize("text", FAILURES)
def test_details_of_failures(text: str) -> None:
    found = evaluate(text)
    assert found.details.to_pylist() == FAILURES[text]
    assert (found.failures is None) == (FAILURES[text] == [])
    if found.failures is not None:
        assert found.values.filter(pa.array(found.failures)).null_count == int(found.failures.sum())


SCHEMA = ROWS.schema.append(pa.field("a.b", pa.int64()))


def bound(text: str) -> None:
    expression = parse_expression(text)
    split_lags(expression)
    bind(expression, SCHEMA)


@pytest.mark.parametrize(("text", "shown"), blocks("expression_mistakes"))
def test_mistake_is_shown_at_its_place(text: str, shown: str) -> None:
    assert message(bound, text) == shown


def test_dictionary_of_texts_is_not_decoded_and_has_equal_values() -> None:
    coded = pa.table({"s": pa.array(["a", None, "b", "a"] * 5).dictionary_encode(), "i": list(range(20))})
    plain = pa.table({"s": coded["s"].cast(pa.string()), "i": coded["i"]})
    for text in ["s", "upper(s)", "s = 'a'", "s || i", "s IS NULL", "coalesce(s, 'z')", "TRY_CAST(s AS INTEGER)",
    "CAST(s AS DATE)",
                 "CASE s WHEN 'a' THEN s END", "s IN ('a', NULL)", "s LIKE 'a%' OR i > 3", "length(s) + i",
                 "nullif(s, 'a')"]:  # fmt: skip
        one, other = evaluate(text, coded), evaluate(text, plain)
        assert one.values.equals(other.values), text
        assert one.details.equals(other.details), text


def test_chunks_batches_slices_and_no_rows_give_equal_values() -> None:
    text = "CASE WHEN i > 1 THEN CAST(s AS INTEGER) + l[1] ELSE c.p.q END"
    whole = evaluate(text)
    chunks = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1, 2), ROWS.slice(3)])
    assert evaluate(text, chunks).values.equals(whole.values)
    assert evaluate(text, ROWS.combine_chunks().to_batches()[0]).values.equals(whole.values)
    assert evaluate(text, ROWS.slice(2)).values.equals(whole.values.slice(2))
    assert len(evaluate(text, ROWS.slice(0, 0)).values) == 0
    assert evaluate("1 + 1", ROWS.slice(0, 0)).failures is None


def test_times_with_a_zone_are_read_in_it() -> None:
    assert evaluate("extract(hour from paris)").values.to_pylist() == [1, 3, None, 4]
    assert evaluate("paris = TIMESTAMPTZ '1970-01-01 01:00:00+01'").values.to_pylist() == [True, False, None, False]


@pytest.mark.parametrize("sign", ["+", "OR", "||"])
def test_ten_thousand_terms_are_computed(sign: str) -> None:
    term = {"+": "f", "OR": "b", "||": "s"}[sign]
    bound = pickle.loads(pickle.dumps(bind(parse_expression(f" {sign} ".join([term] * 10_000)), ROWS.schema)))
    first = bound.evaluate(ROWS).values[0].as_py()
    assert first == {"+": 15_000.0, "OR": True, "||": "7" * 10_000}[sign]


def test_condition_is_made_of_numbers_and_of_nothing_else() -> None:
    found = bind_condition(parse_expression("i % 3"), ROWS.schema).evaluate(ROWS)
    assert found.values.to_pylist() == [True, None, False, True]
    with pytest.raises(SpecError, match="a condition is wanted here"):
        bind_condition(parse_expression("ts"), ROWS.schema)


def test_a_bound_expression_computes_in_another_process_without_pandas(tmp_path: Path) -> None:
    """Nanoseconds, too, which Arrow makes values of pandas."""
    bound = bind(parse_expression("upper(s) || ':' || CAST(i * 2 AS VARCHAR)"), ROWS.schema)
    (tmp_path / "bound").write_bytes(pickle.dumps((bound, ROWS.select(["s", "i"]))))
    code = """if True:
        import pickle, sys
        class Absent:
            def find_spec(self, name, *_):
                if name == "pandas":
                    raise ImportError(name)
        sys.meta_path.insert(0, Absent())
        import pyarrow as pa
        from pathlib import Path
        from wincli.windowing.expressions.binding import bind
        from wincli.windowing.expressions.pruning import Bounds, never_true
        from wincli.windowing.expressions.syntax import parse_expression
        bound, rows = pickle.loads(Path(sys.argv[1]).read_bytes())
        assert bound.evaluate(rows).values.to_pylist()[0] == "7:2"
        rows = pa.table({"t": pa.array([0, 1, 2], pa.timestamp("ns"))})
        text = "t IN (TIMESTAMP '1970-01-01 00:00:00.000000001', TIMESTAMP '1970-01-01 00:00:00') AND t - t < 5ns"
        bound = bind(parse_expression(text), rows.schema)
        assert bound.evaluate(rows).values.to_pylist() == [True, True, False]
        bound = bind(parse_expression("t > DATE '2026-01-01'"), rows.schema)
        assert never_true(bound, {"t": Bounds(rows["t"][0], rows["t"][2], False)})
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "bound")], check=True)


def test_long_lists_that_differ_in_the_middle_are_two() -> None:
    one, other = (", ".join(str(n) for n in range(100) if n != left_out) for left_out in (50, 100))
    rows = pa.table({"i": list(range(100))})
    bound = bind(parse_expression(f"i IN ({other}) AND i NOT IN ({one})"), rows.schema)
    assert sum(bound.evaluate(rows).values.to_pylist()) == 1
    assert len({bound, bind(parse_expression("i > 1"), rows.schema)}) == 2


def test_lags_become_columns() -> None:
    rest, lags = split_lags(parse_expression("i > lag(i) AND lag(i, 1) = 2 OR lag(lag(f), 3) IS NULL"))
    assert str(rest) == 'i > "lag(i, 1)" AND "lag(i, 1)" = 2 OR "lag(""lag(f, 1)"", 3)" IS NULL'
    assert [(lag.name, str(lag.argument), lag.n) for lag in lags] == [
        ("lag(i, 1)", "i", 1), ("lag(f, 1)", "f", 1), ('lag("lag(f, 1)", 3)', '"lag(f, 1)"', 3),
    ]  # fmt: skip


@pytest.mark.parametrize("is_coded", [False, True])
def test_text_that_grows_without_end_fails_its_row_before_it_takes_memory(is_coded: bool) -> None:
    """Sixteen thousand letters become 16 MiB, which is allowed, and one more is not."""
    texts = pa.array(["a", "a" * (16 << 10), "a" * (16 << 10) + "a", None])
    rows = pa.table({"t": texts.dictionary_encode() if is_coded else texts})
    grown = evaluate("replace(t, 'a', '" + "b" * 1024 + "')", rows)
    assert pc.binary_length(grown.values).to_pylist() == [1024, 16 << 20, None, None]
    assert grown.details.to_pylist() == ["16778240 bytes of text, more than 16,777,216"]
    big = "replace(t, 'a', '" + "b" * 1024 + "')"
    joined = evaluate(f"{big} || 'c'", rows)
    assert joined.details.to_pylist() == [
        "16777217 bytes of text, more than 16,777,216", "16778240 bytes of text, more than 16,777,216"
    ]  # fmt: skip
    assert evaluate(f"concat({big}, t)", rows).failures.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "is_coded"),
    [("replace(t, 'a', 'bb')", True), ("t || t", False), ("CASE WHEN t = '' THEN t ELSE concat(t, t) END", False)],
)
def test_many_rows_of_long_texts_are_refused_before_they_take_memory(text: str, is_coded: bool) -> None:
    rows, letters = (pa.array([0] * 110), pa.array(["a" * (6 << 20)]))
    texts = pa.DictionaryArray.from_arrays(rows, letters) if is_coded else letters.take(rows)
    with pytest.raises(DataError, match=r"an expression makes .* bytes of text of .* rows, more than 536,870,912"):
        evaluate(text, pa.table({"t": texts}))
