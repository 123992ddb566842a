"""Plain values go into a text and come back, by type and value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.support.plain_values import NotPlainError, from_text, to_text

ZONES = st.sampled_from([None, dt.UTC, dt.timezone(dt.timedelta(hours=-3, minutes=-30)), ZoneInfo("Europe/Paris")])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.binary(),
    st.dates(),
    st.times(timezones=st.sampled_from([None, dt.UTC])),
    st.datetimes(timezones=ZONES),
    st.timedeltas(),
    st.decimals(),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text() | st.integers() | st.dates(), inner)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back(value: Any) -> None:
    text = to_text(value)
    assert repr(from_text(text)) == repr(value)
    assert to_text(from_text(text)) == text
    assert text.isascii()


def test_a_row_comes_back_as_a_row() -> None:
    row = from_text(to_text([MappingProxyType({"a": 1.0})]))[0]
    assert (type(row), dict(row)) == (MappingProxyType, {"a": 1.0})


class Own(dict[str, int]):
    pass


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "place", "kind"),
    [
        ({1}, "", "set"),
        ([1, {"x": (2, object())}], "[1]['x'][1]", "object"),
        (Own(), "", "Own"),
        (LOOP, "", "a value that holds itself, or nests too deeply"),
        (Decimal, "", "type"),
    ],
)
def test_what_is_not_plain(value: Any, place: str, kind: str) -> None:
    with pytest.raises(NotPlainError) as caught:
        to_text(value)
    assert (caught.value.place, caught.value.kind) == (place, kind)


@pytest.mark.parametrize(
    "text", ["", "{", '{"set": []}', '{"a": 1, "b": 2}', '{"date": 3}', '{"bytes": "x"}', "[[{}]]"]
)
def test_a_text_that_is_damaged(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_text(text)
