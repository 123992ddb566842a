"""What kinds of window need of their input: the columns that a spec names, and whether it needs a clock."""

import pytest

from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.parser import parse_window

NEEDS: dict[str, tuple[tuple[str, ...], bool]] = {
    "count(5)": ((), False),
    "delta(ts, 2)": (("ts",), False),
    "gap(ts, 2)": (("ts",), False),
    "time(2)": ((), True),
    "punct()": ((), False),
    "punct(done)": (("done",), False),
    "calendar(day)": ((), True),
    "time(2) every 1": ((), True),
    "count(5), partitioned, partitionAge(2)": ((), True),
    "count(5), partitioned, tupleCount(2)": ((), False),
    "sliding, delta(a, 2), delta(b, 2)": (("a", "b"), False),
    "sliding, delta(a, 2), delta(a, 0.5)": (("a",), False),
    "sliding, count(3), delta(b, 2)": (("b",), False),
    "sliding, time(2), count(1)": ((), True),
    "sliding, count(3), time(2)": ((), True),
    "sliding, count(3), count(1), partitioned, partitionAge(2)": ((), True),
    "timeInterval, intervalDuration(2)": ((), False),
    "within 2": ((), True),
    "retain 2 every 3": ((), False),
    "retain all": ((), False),
    "partition by p, q retain 2 with unique u": (("p", "q", "u"), False),
}


@pytest.mark.parametrize("window", NEEDS)
def test_what_a_window_reads(window: str) -> None:
    needs = kind_of(parse_window(window)).needs
    assert (needs.attributes, needs.clock) == NEEDS[window]
