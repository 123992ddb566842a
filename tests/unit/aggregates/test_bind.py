"""What `bind` refuses, with whole messages, and the types it gives."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pyarrow as pa
import pytest

from wincli.windowing.aggregates.table import TABLE, bind, columns_of
from wincli.windowing.errors import ConfigError
from wincli.windowing.language.spec import AggregateCall, Column

SCHEMA = pa.schema(
    {
        "amount": pa.float64(),
        "small": pa.float32(),
        "n": pa.int32(),
        "big": pa.uint64(),
        "price": pa.decimal128(12, 2),
        "kind": pa.string(),
        "label": pa.dictionary(pa.int8(), pa.string()),
        "ok": pa.bool_(),
        "ts": pa.timestamp("ms", "UTC"),
        "day": pa.date32(),
        "took": pa.duration("ns"),
        "tags": pa.list_(pa.string()),
        "total cost": pa.int64(),
    }
)


def call(function: str, *arguments: str | Fraction | int, text: str | None = None) -> AggregateCall:
    """Texts are columns, numbers literals; ``text`` is a last text literal."""
    given: list[Column | Fraction | str] = [Column(a) if isinstance(a, str) else Fraction(a) for a in arguments]
    return AggregateCall("out", function, (*given, text) if text is not None else tuple(given))


def refusal(call: AggregateCall) -> str:
    with pytest.raises(ConfigError) as caught:
        bind(call, SCHEMA)
    return str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (call("sum", "kind"), "sum(kind): column kind is text; sum needs a number"),
        (call("sum", "label"), "sum(label): column label is text; sum needs a number"),
        (call("sum", "ts"), "sum(ts): column ts is timestamp[ms, tz=UTC]; sum needs a number"),
        (call("var", "ok"), "var(ok): column ok is boolean; var needs a number"),
        (call("mean", "took"), "mean(took): column took is duration[ns]; mean needs a number"),
        (call("max", "tags"), "max(tags): column tags is list<item: string>; max needs values that sort"),
        (call("mode", "tags"), "mode(tags): column tags is list<item: string>; mode needs values that sort"),
        (call("range", "kind"), "range(kind): column kind is text; range needs a number, a date or a time"),
        (call("bool_and", "n"), "bool_and(n): column n is int32; bool_and needs a boolean"),
        (call("string_join", "n", text=","), "string_join(n, ','): column n is int32; string_join needs text"),
        (call("wavg", "amount", "kind"), "wavg(amount, kind): column kind is text; wavg needs a number"),
        (call("arg_max", "n", "n", "n"), "arg_max(n, n, n): arg_max takes 2 arguments and got 3; write arg_max(y, x)"),
        (call("summ", "n"), "summ(n): there is no aggregate summ; did you mean 'sum'?"),
        (call("sum", "amout"), "sum(amout): there is no column amout; did you mean 'amount'?"),
        (call("sum", "total c"), "sum(\"total c\"): there is no column total c; did you mean 'total cost'?"),
        (call("sum"), "sum(): sum takes 1 argument and got 0; write sum(x)"),
        (call("sum", "n", "n"), "sum(n, n): sum takes 1 argument and got 2; write sum(x)"),
        (call("count", "n", "n"), "count(n, n): count takes at most 1 argument and got 2; write count(x)"),
        (
            call("quantile", "n"),
            "quantile(n): quantile takes at least 2 arguments and got 1; write quantile(x, q, method)",
        ),
        (
            call("rank", "n", text="first"),
            "rank(n, 'first'): ties is 'first'; ties must be one of 'average', 'min', 'max'",
        ),
        (call("sum", 3), "sum(3): 3 is not a column; write sum(x)"),
        (call("sum", text="n"), "sum('n'): 'n' is not a column; write sum(x)"),
        (call("quantile", "n", 95), "quantile(n, 95): q is 95; q must be a number from 0 to 1"),
        (call("quantile", "n", "price"), "quantile(n, price): q is the column price; q must be a number from 0 to 1"),
        (call("quantile", "n", text="0.5"), "quantile(n, '0.5'): q is '0.5'; q must be a number from 0 to 1"),
        (call("nth", "n", Fraction("1.5")), "nth(n, 1.5): i is 1.5; i must be a whole number"),
        (call("string_join", "kind", 1), "string_join(kind, 1): sep is 1; sep must be a text in quotes"),
    ],
    ids=str,
)  # fmt: skip
def test_refusals(wrong: AggregateCall, message: str) -> None:
    assert refusal(wrong) == message


def test_what_has_no_near_name_lists_all() -> None:
    message = refusal(call("xyzzy", "n"))
    assert message.startswith("xyzzy(n): there is no aggregate xyzzy; known: count, count_distinct, sum, mean, ")


@pytest.mark.parametrize(
    ("good", "dtype"),
    [
        (call("count"), pa.int64()),
        (call("count", "tags"), pa.int64()),
        (call("count_distinct", "kind"), pa.int64()),
        (call("sum", "n"), pa.int64()),
        (call("sum", "big"), pa.int64()),
        (call("sum", "ok"), pa.int64()),
        (call("sum", "small"), pa.float64()),
        (call("sum", "price"), pa.decimal128(38, 2)),
        (call("sum", "took"), pa.duration("ns")),
        (call("mean", "n"), pa.float64()),
        (call("mean", "price"), pa.float64()),
        (call("min", "small"), pa.float32()),
        (call("max", "ts"), pa.timestamp("ms", "UTC")),
        (call("mode", "label"), pa.string()),
        (call("first", "tags"), pa.list_(pa.string())),
        (call("nth", "n", -1), pa.int32()),
        (call("median", "price"), pa.float64()),
        (call("arg_max", "kind", "amount"), pa.string()),
        (call("collect", "n"), pa.list_(pa.int32())),
        (call("collect_distinct", "label"), pa.list_(pa.string())),
        (call("product", "n"), pa.int64()),
        (call("product", "price"), pa.float64()),
        (call("range", "n"), pa.int64()),
        (call("range", "small"), pa.float32()),
        (call("range", "ts"), pa.duration("ms")),
        (call("range", "day"), pa.duration("s")),
        (call("range", "price"), pa.decimal128(38, 2)),
        (call("bool_or", "ok"), pa.bool_()),
        (call("string_join", "kind", text=", "), pa.string()),
        (call("max_count", "day"), pa.int64()),
    ],
    ids=str,
)
def test_result_types(good: AggregateCall, dtype: pa.DataType) -> None:
    bound = bind(good, SCHEMA)
    assert (bound.name, bound.type, bound.columns) == ("out", dtype, columns_of(good))
    assert pickle.loads(pickle.dumps(bound)) == bound


def test_columns_are_named_once_each() -> None:
    assert columns_of(call("wavg", "n", "n")) == ("n",)
    assert columns_of(call("arg_min", "kind", "n")) == ("kind", "n")
    assert columns_of(call("count")) == ()


def test_table_lists_all_aggregates() -> None:
    assert [name for name in TABLE if TABLE[name].name != name] == []
    assert TABLE["quantile"].signature == "quantile(x, q, method)"
    assert all(aggregate.doc for aggregate in TABLE.values())
