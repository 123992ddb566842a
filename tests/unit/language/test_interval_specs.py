"""Windows of event time read from text."""

import pytest

from support.spec_errors import message, mistakes
from support.spec_texts import INTERVALS
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import WindowSpec

# Each is what a user sees, whole: the message, then the text as typed, then the caret.
MISTAKES = """\
unknown window 'timeIntervl'; did you mean 'timeInterval'?
  timeIntervl, intervalDuration(3)
  ^^^^^^^^^^^

expected ',', found the end; write for example timeInterval, intervalDuration(60), creationPeriod(10)
  timeInterval
              ^

expected a duration greater than 0, found '0'; write it as intervalDuration(duration)
  timeInterval, intervalDuration(0)
                                 ^

'intervalDuration' is given twice; leave this one out
  timeInterval, intervalDuration(3), intervalDuration(3)
                                     ^^^^^^^^^^^^^^^^

unknown setting 'intervalDuraton'; did you mean 'intervalDuration'?
  timeInterval, intervalDuraton(3)
                ^^^^^^^^^^^^^^^

timeInterval needs an intervalDuration; write for example timeInterval, intervalDuration(60), creationPeriod(10)
  timeInterval, creationPeriod(3)
  ^^^^^^^^^^^^

unknown setting 'tupleCount'; known: intervalDuration, creationPeriod, discardAge, intervalOffset, partitioned
  timeInterval, intervalDuration(3), tupleCount(3)
                                     ^^^^^^^^^^

expected ',', found 'intervalDuration'; write for example timeInterval, intervalDuration(60), creationPeriod(10)
  timeInterval intervalDuration(3)
               ^^^^^^^^^^^^^^^^

expected a duration of 0 or more, found '-1'; write it as discardAge(duration)
  timeInterval, intervalDuration(3), discardAge(-1)
                                                ^^

expected a setting, found '5'; known: intervalDuration, creationPeriod, discardAge, intervalOffset, partitioned
  timeInterval, intervalDuration(3), 5
                                     ^

expected a setting, found the end; known: intervalDuration, creationPeriod, discardAge, intervalOffset, partitioned
  timeInterval, intervalDuration(3),
                                    ^
"""


@pytest.mark.parametrize(("text", "spec"), INTERVALS, ids=[text for text, _ in INTERVALS])
def test_window_text_reads_as_its_spec_and_back(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(("text", "printed"), mistakes(MISTAKES))
def test_mistake_in_window_text_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_window, text) == printed
