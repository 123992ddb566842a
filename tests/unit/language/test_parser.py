"""The window language read from text, whatever kind of window: empty texts, huge numbers, the cases of conformance."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import CASES
from support.spec_errors import message
from wincli.windowing.language.parser import parse_aggregate, parse_duration, parse_window


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
