"""Values as columns are the same values, in the same order, whatever they hold."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.support.value_table import Texts, share, text_column, value_table


@dataclass(frozen=True, slots=True)
class _Inner:
    name: str
    word: str | None
    size: int | None
    owner: object


@dataclass(frozen=True, slots=True)
class _Outer:
    at: int
    inner: _Inner
    is_last: bool
    place: tuple[int, ...]
    other: tuple[int, ...] | None


_INTS = st.integers(-(2**63), 2**63 - 1)
_TEXTS = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF), max_size=6)  # lone surrogates among them
_OWNERS = st.one_of(st.none(), st.text(max_size=2), st.just(frozenset({1})))
_INNER = st.builds(_Inner, _TEXTS, st.none() | _TEXTS, st.none() | _INTS, _OWNERS)
_PLACES = st.lists(_INTS, max_size=3).map(tuple)
_VALUES = st.lists(st.builds(_Outer, _INTS, _INNER, st.booleans(), _PLACES, st.none() | _PLACES), max_size=12)


@given(_VALUES, st.data())
def test_a_table_and_its_parts_have_the_values_that_it_was_made_of_also_after_a_pickle(
    values: list[_Outer], data: st.DataObject
) -> None:
    table = value_table(_Outer, iter(values))
    again = pickle.loads(pickle.dumps(table))
    assert again == table
    low, high = (data.draw(st.integers(-2, len(values) + 2)) for _ in range(2))
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=5) if values else st.just([]))
    for made in (table, again):
        assert len(made) == len(values)
        assert list(made) == values
        assert [made[at] for at in range(-len(values), len(values))] == [*values, *values]
        assert made.column("inner").texts("name")[:] == [value.inner.name for value in values]
        assert list(made[low:high]) == values[low:high]
        assert list(made[::-1]) == values[::-1]
        assert list(made.take(np.array(places, np.int64))) == [values[at] for at in places]
    with pytest.raises(IndexError):
        table[len(values)]


def test_a_table_of_more_values_than_are_made_at_a_time_is_whole() -> None:
    values = [_Outer(at, _Inner(f"n{at}", None, at, at % 3), at % 2 == 0, (at,) * (at % 3), None) for at in range(9001)]
    table = value_table(_Outer, (value for value in values))
    assert list(table) == values
    assert table.numbers("at").tolist() == list(range(9001))
    assert list(table.column("inner").texts("name")) == [f"n{at}" for at in range(9001)]
    assert table[8999:] == value_table(_Outer, values[8999:])
    assert table[8999:] != value_table(_Outer, values[8998:9000])


def test_a_task_gets_a_part_of_a_table_without_the_rest() -> None:
    values = [_Outer(at, _Inner(f"a long name {at}", None, at, None), False, (at, at), None) for at in range(5000)]
    table = value_table(_Outer, values)
    assert len(pickle.dumps(table[10:12])) < len(pickle.dumps(table)) // 50


def test_each_object_is_held_once_and_equal_objects_stay_apart() -> None:
    one, two = ({"a": 1}, {"a": 1})
    shared = share([None, one, None, two, one])
    assert list(shared) == [None, one, None, two, one]
    assert (len(shared), len(shared.distinct), shared[1:3]) == (5, 3, [one, None])
    assert shared[1] is one
    assert shared[3] is two


def test_texts_are_a_sequence() -> None:
    known = ["b", "\udcff", ""]
    texts = Texts(text_column(known))
    assert (list(texts), texts[1], texts[1:], len(texts), "b" in texts) == (known, known[1], known[1:], 3, True)
