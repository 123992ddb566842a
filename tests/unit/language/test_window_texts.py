"""Windows of every kind read from text, and what a user sees of a mistake in one."""

import zoneinfo
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import CASES
from support.spec_errors import message, mistakes
from support.spec_texts import WINDOWS
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched, Calendar, Count, Tumbling, WindowSpec

# Each is what a user sees, whole: the message, then the text as typed, then the caret.
MISTAKES = "\n".join(path.read_text(encoding="utf-8") for path in sorted((CASES / "window_mistakes").glob("*.txt")))


@pytest.mark.parametrize(("text", "spec"), WINDOWS, ids=[text for text, _ in WINDOWS])
def test_window_text_reads_as_its_spec_and_back(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(("text", "printed"), mistakes(MISTAKES))
def test_mistake_in_window_text_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_window, text) == printed


@given(zone=st.sampled_from(sorted(zoneinfo.available_timezones())))
def test_every_zone_reads(zone: str) -> None:
    assert parse_window(f'calendar(day, "{zone}")') == Tumbling(Calendar("day", zone))


def test_a_count_has_64_bits() -> None:
    assert parse_window(f"count({2**63 - 1})") == Tumbling(Count(2**63 - 1))
    assert message(parse_window, f"count({2**63})").startswith("expected a whole number, 1 or more, found")


def test_every_is_seconds_next_to_within_and_rows_next_to_retain() -> None:
    within, retain = parse_window("within 5 every 2"), parse_window("retain 5 every 2")
    assert isinstance(within, Batched)
    assert isinstance(retain, Batched)
    assert (type(within.every), type(retain.every)) == (Fraction, int)
