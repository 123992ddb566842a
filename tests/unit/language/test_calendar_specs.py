"""Calendar windows read from text: units, weekdays, time zones, times of day."""

import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.spec_errors import message, mistakes
from support.spec_texts import CALENDAR
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Calendar, Tumbling, WindowSpec

# Each is what a user sees, whole: the message, then the text as typed, then the caret.
MISTAKES = """\
calendar takes 1 to 3 arguments, found 0; write it as calendar(day, "Europe/Paris", 23:59)
  calendar()
  ^^^^^^^^^^

unknown calendar unit 'dya'; did you mean 'day'?
  calendar(dya)
           ^^^

unknown time zone 'Europe/Pari'; did you mean 'Europe/Paris'?
  calendar(day, "Europe/Pari")
                ^^^^^^^^^^^^^

expected ',' or ')', found '/'; write it as calendar(day, "Europe/Paris", 23:59), and put a name with other characters in double quotes
  calendar(day, Europe/Paris)
                      ^

expected a time of day, found '25:00'; write it like 07:00 or 23:59:30
  calendar(day, "Europe/Paris", 25:00)
                                ^^^^^

expected a time of day, found '7:00'; write it like 07:00 or 23:59:30
  calendar(day, at=7:00)
                   ^^^^

a day does not begin on a weekday; write day
  calendar(day@mon)
           ^^^^^^^

unknown weekday in 'week@monday'; did you mean 'mon'?
  calendar(week@monday)
           ^^^^^^^^^^^

there is no argument called 'zone'; known: unit, tz, at
  calendar(day, zone="UTC")
                ^^^^

calendar needs a unit; write it as calendar(day, "Europe/Paris", 23:59)
  calendar(tz="UTC")
              ^^^^^

the argument 'tz' is given twice; write it as calendar(day, "Europe/Paris", 23:59)
  calendar(day, "UTC", tz="UTC")
                       ^^

unknown time zone 'Europe'; did you mean 'Europe/Rome'?
  calendar(day,"Europe")
               ^^^^^^^^

unknown time zone ''; write it like "Europe/Paris"
  calendar(day, "")
                ^^

expected a time zone, found '7'; write it like "Europe/Paris"
  calendar(day, 7)
                ^

unknown calendar unit 'hour'; known: day, week, month, year
  calendar(hour)
           ^^^^

unknown calendar unit '"day"'; did you mean 'day'?
  calendar("day")
           ^^^^^
"""  # noqa: E501


@pytest.mark.parametrize(("text", "spec"), CALENDAR, ids=[text for text, _ in CALENDAR])
def test_window_text_reads_as_its_spec_and_back(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(("text", "printed"), mistakes(MISTAKES))
def test_mistake_in_window_text_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_window, text) == printed


@given(zone=st.sampled_from(sorted(zoneinfo.available_timezones())))
def test_every_zone_reads(zone: str) -> None:
    assert parse_window(f'calendar(day, "{zone}")') == Tumbling(Calendar("day", zone))
