"""The window language read from text: windows of every kind, durations, empty texts, huge numbers, and mistakes.

Each mistake is what a user sees, whole: the message, then the text as typed, then the caret.
"""

import json
import subprocess
import sys
import zoneinfo
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import CASES
from support.spec_errors import message, mistakes
from support.spec_texts import WINDOWS
from wincli.windowing.language.parser import parse_aggregate, parse_duration, parse_window
from wincli.windowing.language.spec import Batched, Calendar, Count, Tumbling, WindowSpec

WINDOW_MISTAKES = "\n".join(p.read_text(encoding="utf-8") for p in sorted((CASES / "window_mistakes").glob("*.txt")))
DURATIONS = [
    ("60", Fraction(60)),
    ("0", Fraction(0)),
    (" 1.5s ", Fraction(3, 2)),
    ("250ms", Fraction(1, 4)),
    ("100us", Fraction(1, 10_000)),
    ("5ns", Fraction(5, 10**9)),
    ("5m", Fraction(300)),
    ("2h", Fraction(7200)),
    ("1d", Fraction(86400)),
    ("1e3", Fraction(1000)),
    ("1.5e-3s", Fraction(3, 2000)),
    (".1", Fraction(1, 10)),
]

DURATION_MISTAKES = """\
unknown unit 'x' in '5x'; the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes
  5x
  ^^

expected a duration of 0 or more, found '-5'; write it like 60, 1.5s, 250ms, 5m, 2h or 1d
  -5
  ^^

expected the end, found 'x'; write it like 60, 1.5s, 250ms, 5m, 2h or 1d
  1 x
    ^

unknown unit 'u' in '5u'; the units are ns, us, ms, s, m, h, d and w, or words such as 5 minutes
  5u
  ^^

expected a number, found 'abc'; write it like 60, 1.5s, 250ms, 5m, 2h or 1d
  abc
  ^^^

a number has more than 400 digits on one side of its point
  1e999
  ^^^^^

expected a number, found '"5"'; write it like 60, 1.5s, 250ms, 5m, 2h or 1d
  "5"
  ^^^
"""


@pytest.mark.parametrize(("text", "spec"), WINDOWS, ids=[text for text, _ in WINDOWS])
def test_window_text_reads_as_its_spec_and_back(text: str, spec: WindowSpec) -> None:
    assert parse_window(text) == spec
    assert parse_window(str(spec)) == spec


@pytest.mark.parametrize(("text", "printed"), mistakes(WINDOW_MISTAKES))
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


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_a_duration_is_exact_seconds(text: str, seconds: Fraction) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(("text", "printed"), mistakes(DURATION_MISTAKES))
def test_mistake_in_duration_is_shown_with_a_caret_and_a_remedy(text: str, printed: str) -> None:
    assert message(parse_duration, text) == printed


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text(text: str) -> None:
    shown = "  " + text.replace("\n", " ")
    assert message(parse_window, text) == f"the window spec is empty; write for example delta(ts, 60)\n{shown}\n  ^"
    assert message(parse_aggregate, text) == f"the aggregate is empty; write for example sum(amount)\n{shown}\n  ^"
    assert message(parse_duration, text).startswith("expected a number, found the end; write it like 60, 1.5s, ")


def test_a_spec_over_several_lines_is_shown_on_one_so_that_the_caret_is_right() -> None:
    assert message(parse_window, "sliding,\n\tcount(x)") == (
        "expected a number, found 'x'; write it as count(n)\n  sliding,  count(x)\n                  ^"
    )


@pytest.mark.parametrize("number", ["1e401", "1e-401", "9" * 500, "1e99999999999", "9" * 5000, "1e-400ns"])
def test_a_number_that_would_not_fit_is_refused_at_once(number: str) -> None:
    assert message(parse_window, f"delta(a, {number})").startswith("a number has more than 400 digits on one side")


def windows_of(path: Path) -> list[str]:
    return [case["window"] for case in json.loads(path.read_text()) if "window" in case]


REFUSED = {
    "partition by symbol, floor(volume)/100 retain 1": "partition by takes columns, not expressions",
    "partition by x retain 2 group by x": "group by is no part of a window; use the option --group-by x",
    "retain 3 group by x": "group by is no part of a window; use the option --group-by x",
    "within 10.0 every 10.0 group by x": "group by is no part of a window; use the option --group-by x",
}


@pytest.mark.parametrize("text", sorted({*windows_of(CASES / "spl_windows.json")}))
def test_every_window_of_the_spl_cases_reads(text: str) -> None:
    spec = parse_window(text)
    assert parse_window(str(spec)) == spec
    assert str(spec) == text.replace(".0)", ")").replace("2u", "2")


@pytest.mark.parametrize("text", sorted({*windows_of(CASES / "batched_windows.json")}))
def test_every_window_of_the_batched_cases_reads_or_has_its_error(text: str) -> None:
    if text in REFUSED:
        assert message(parse_window, text).startswith(REFUSED[text])
    else:
        assert str(parse_window(text)) == text.replace(".0", "")


def test_parsing_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; before = {*sys.modules}; import wincli.windowing.language.parser; print(*{*sys.modules} - before)"
    )
    root = CASES.parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    packages = {name.partition(".")[0] for name in done.stdout.split() if not name.startswith("_")}
    assert packages - sys.stdlib_module_names == {"wincli"}
