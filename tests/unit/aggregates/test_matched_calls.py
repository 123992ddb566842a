"""Aggregates over the rows of a match: symbols become filters by ``matched_as`` (semantics section 15)."""

import pytest

from wincli.windowing.errors import SpecError, WincliError
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.language.patterns import RowPattern
from wincli.windowing.language.spec import AggregateExpression
from wincli.windowing.planning.matched_calls import check_symbols, gives_steps, matched_calls, steps_of

SPEC = parse_window('match(a "my b"+, a = x > 1, "my b" = y)')
KNOWN = ("x", "y", "ctx", "t")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("sum(x)", "sum_x=sum(x)"),
        ("count()", "count=count()"),
        ("last(a.x)", "last_a.x=last(x) where matched_as = 'a'"),
        ("n=last(a.ctx.pid)", "n=last(ctx.pid) where matched_as = 'a'"),
        ("count(a)", "count_a=count() where matched_as = 'a'"),
        ('count("my b")', "\"count_my b\"=count() where matched_as = 'my b'"),
        ('n=sum("my b".x * 2)', "n=sum(x * 2) where matched_as = 'my b'"),
        ("n=sum(a.x + a.y) where y > 1 and x > 2", "n=sum(x + y) where matched_as = 'a' AND y > 1 AND x > 2"),
        ("n=sum(a.x) where y > 1 or x > 2", "n=sum(x) where matched_as = 'a' AND (y > 1 OR x > 2)"),
        ("n=arg_max(a.x, a.y)", "n=arg_max(x, y) where matched_as = 'a'"),
        ("n=nth(a.x, -2)", "n=nth(x, -2) where matched_as = 'a'"),
        ("n=string_join(a.x, ' ')", "n=string_join(x, ' ') where matched_as = 'a'"),
        ("n=locf(last(a.x))", "n=locf(last(x) where matched_as = 'a')"),
        ("n=mine:f(a.x, 3)", "n=mine:f(x, 3) where matched_as = 'a'"),
        ("n=string_join(matched_as, ' ')", "n=string_join(matched_as, ' ')"),
        ("n=count(ctx.pid)", "n=count(ctx.pid)"),
    ],
)
def test_a_symbol_is_a_filter(text: str, read: str) -> None:
    (found,) = matched_calls([parse_aggregate(text)], SPEC)
    assert str(found) == read
    check_symbols(SPEC, [found], KNOWN)


def test_arithmetic_keeps_the_names_of_its_calls() -> None:
    item = parse_aggregate("n=last(a.x) - first(x) / count(a)")
    assert isinstance(item, AggregateExpression)
    (found,) = matched_calls([item], SPEC)
    assert isinstance(found, AggregateExpression)
    assert (found.name, found.expression) == (item.name, item.expression)
    assert [(each.name, each.text) for each in found.calls] == [
        ("=last(a.x)", "last(x) where matched_as = 'a'"),
        ("=first(x)", "first(x)"),
        ("=count(a)", "count() where matched_as = 'a'"),
    ]


def test_other_windows_have_no_symbols() -> None:
    item = parse_aggregate("last(a.x)")
    assert matched_calls([item], parse_window("count(3)")) == (item,)
    check_symbols(parse_window("count(3)"), [item], KNOWN)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("sum(a)", "'a' is a symbol, and no column; write sum(a.COLUMN)\n  sum(a)\n      ^"),
        (
            "arg_max(a.x, y)",
            "an aggregate reads rows of one symbol, or of all; take all its columns from rows of one symbol\n"
            "  arg_max(a.x, y)\n               ^",
        ),
        (
            "sum(a.x + y)",
            "an aggregate reads rows of one symbol, or of all, and this one reads a.x and y; write two aggregates\n"
            "  sum(a.x + y)\n            ^",
        ),
        (
            "sum(x) where a.x > 1",
            "a.x does not say of which of the rows matched as a; a filter sees one row at a time: name its column "
            "alone, and say matched_as = 'a' for its symbol\n  sum(x) where a.x > 1\n               ^^^",
        ),
        (
            'sum(x) where "my b".x > 1',
            '"my b".x does not say of which of the rows matched as my b; a filter sees one row at a time: name its '
            "column alone, and say matched_as = 'my b' for its symbol\n"
            '  sum(x) where "my b".x > 1\n               ^^^^^^^^',
        ),
        ("last(aa.x)", "the pattern has no symbol 'aa'; did you mean 'a'?\n  last(aa.x)\n       ^^^^"),
        ("m=locf(last(aa.x))", "the pattern has no symbol 'aa'; did you mean 'a'?\n  last(aa.x)\n       ^^^^"),
        (
            "arg_max(x, aa.y)",
            "the pattern has no symbol 'aa'; did you mean 'a'?\n  arg_max(x, aa.y)\n             ^^^^",
        ),
        ("count(aa)", "there is no symbol and no column 'aa'; did you mean 'a'?\n  count(aa)\n        ^^"),
        (
            "sum(aa.x + 1)",
            "the pattern has no symbol 'aa', and the input no such column; did you mean 'a'?\n"
            "  sum(aa.x + 1)\n      ^^",
        ),
    ],
)
def test_mistakes_say_what_to_write(text: str, printed: str) -> None:
    with pytest.raises(WincliError) as raised:
        check_symbols(SPEC, matched_calls([parse_aggregate(text)], SPEC), KNOWN)
    assert str(raised.value) == printed


def test_a_symbol_has_no_name_of_a_column_and_conditions_name_columns() -> None:
    with pytest.raises(SpecError, match="'a' is a column, and a symbol of the pattern") as clash:
        check_symbols(parse_window("funnel(b = x > 1, a = y = 1) within 5"), [], ("a", *KNOWN))
    assert str(clash.value).endswith("\n  funnel(b = x > 1, a = y = 1) within 5\n                    ^")
    with pytest.raises(SpecError, match="there is no symbol and no column 'bb'; did you mean 'b'") as missing:
        check_symbols(parse_window("match(b, b = x > 1 and count(bb) > 1)"), [], KNOWN)
    assert str(missing.value).endswith("\n  x > 1 and count(bb) > 1\n                  ^^")
    with pytest.raises(WincliError, match="the pattern has no symbol 'bb', and the input no such column") as raised:
        check_symbols(parse_window("match(b, b = x > 1 and count(bb.x) > 1)"), [], KNOWN)
    assert str(raised.value).endswith("did you mean 'b'?\n  x > 1 and count(bb.x) > 1\n                  ^^")


def test_a_funnel_gives_its_steps_where_nothing_else_is_asked() -> None:
    spec = parse_window('funnel(see = x = 1, "my b" = x = 2) within 5')
    assert isinstance(spec, RowPattern)
    assert [str(each) for each in steps_of(spec, "t")] == [
        "steps=count()",
        "see=first(t) where matched_as = 'see'",
        "\"my b\"=first(t) where matched_as = 'my b'",
    ]
    asked = [Options(), Options(emit="rows"), Options(operator="a:B")]
    assert [gives_steps(spec, options) for options in asked] == [True, False, False]
    assert not gives_steps(SPEC, Options())
