"""Cases of jobs: what is given runs as `run` would run it, and what is expected is compared cell by cell."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from textwrap import indent
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support.docs_pages import DOCS, fences
from support.in_process import wincli_here
from support.places import ROOT, mistakes, table_of
from support.processes import Ran
from support.strategies import examples
from wincli.cli.inspection.cases.case import Scalar, csv_rows
from wincli.cli.inspection.cases.command import difference
from wincli.cli.inspection.cases.compare import Mismatch, RowPair, compare, is_same, text_of_found

EXAMPLES = ROOT / "conf" / "examples"
JOB = "window: delta(ts, 60)\nkey: user\ninput: log\noutput: out\nagg: {n: count(), spent: sum(x)}\n"


def checked(folder: Path, cases: str, job: str = JOB, *more: str) -> Ran:
    (folder / "job.yaml").write_text(job)
    (folder / "job.test.yaml").write_text(cases)
    return wincli_here("test", "job.yaml", *more, cwd=folder)


def without_times(text: str) -> str:
    return re.sub(r" +\([\d,]+ ms\)", "", text)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.test.yaml")))
def test_examples_pass_their_cases(name: str) -> None:
    ran = wincli_here("test", name.replace(".test", ""), cwd=EXAMPLES)
    assert (ran.code, ran.err) == (0, ""), ran.out
    assert "all as expected" in ran.out


def test_every_example_has_cases() -> None:
    jobs = {path.stem for path in EXAMPLES.glob("*.yaml") if path.suffixes == [".yaml"]}
    assert jobs == {path.name.removesuffix(".test.yaml") for path in EXAMPLES.glob("*.test.yaml")}


def shown_files() -> dict[str, str]:
    """The jobs and the cases that the docs show, by their names."""
    shown = {lines[0].removeprefix("# "): "\n".join(lines) for _, lines in fences(DOCS["check"], "yaml")}
    return {name: text for name, text in shown.items() if name.endswith(".yaml")}


def test_cases_of_the_docs_pass(tmp_path: Path) -> None:
    shown = shown_files()
    shown["nightly.yaml"] = (EXAMPLES / "nightly_sessions.yaml").read_text()
    for name, text in shown.items():
        (tmp_path / name).write_text(text)
    for job in ("sessions.yaml", "nightly.yaml"):
        ran = wincli_here("test", job, cwd=tmp_path)
        assert (ran.code, ran.err) == (0, ""), ran.out


def test_the_failure_that_the_docs_show_is_what_is_printed(tmp_path: Path) -> None:
    shown = shown_files()
    cases = shown["sessions.test.yaml"].replace("events: 2, spent: 3", "events: 3, spent: 7")
    for name, text in (("sessions.yaml", shown["sessions.yaml"]), ("sessions.test.yaml", cases)):
        (tmp_path / name).write_text(text)
    (printed,) = [lines for _, lines in fences(DOCS["check"], "console") if "wincli test" in lines[0]]
    ran = wincli_here("test", "sessions.yaml", cwd=tmp_path)
    assert without_times("\n".join(printed)) == without_times(
        "\n".join(["$ wincli test sessions.yaml", ran.out.rstrip()])
    )


# What differs

LATE = """
cases:
  - name: a minute
    given: |
      ts,user,x
      2026-11-01T10:00:00,ann,1
      2026-11-01T10:00:20,bob,1
      2026-11-01T10:00:50,ann,2
      2026-11-01T10:01:01,ann,4
    expect:
      - {user: ann, n: 3, spent: 7}
      - {user: bob, n: 1}
"""


def test_a_case_that_fails_shows_what_differs_and_draws_the_windows(tmp_path: Path) -> None:
    ran = checked(tmp_path, LATE)
    assert (ran.code, ran.err) == (1, "")
    assert (
        without_times(ran.out)
        == """\
FAIL  a minute
      windows: 1 differs, 1 not expected, 1 as expected
        user  n  spent
      - ann   3  7
      + ann   2  3
              ^  ^^^^^
      + ann   1  4

      window:         tumbling, delta(ts, 60)
                      key user; order ts; 4 rows, 2 keys, 3 panes

      ts, 2026-11-01:  10:00:00                                            10:00:50    10:01:01
      rows ann:        a                                                   b           c
              pane 0: [a                                                   b]              delta  2 rows
              pane 1:                                                                 [c>  end    1 row
      ... 1 more key with 1 row and 1 pane

job.test.yaml: 1 case, 1 of them not as expected
"""
    )


def test_wide_letters_take_two_cells_of_the_table() -> None:
    pair = RowPair(("日本", "1"), ("a", "1"), (True, False))
    lines = difference(Mismatch("windows", ("user", "n"), (pair,), 0), False)
    assert lines == ["  user  n", "- 日本  1", "+ a     1", "  ^^^^"]


def test_the_stage_that_differs_is_drawn_over_the_rows_of_the_stage_before(tmp_path: Path) -> None:
    cases = (EXAMPLES / "rollup.test.yaml").read_text().replace("kwh: 7, best", "kwh: 8, best")
    out = checked(tmp_path, cases, (EXAMPLES / "rollup.yaml").read_text()).out
    assert "windows of stage regions: 1 differs, 2 as expected" in out
    assert "      window:  tumbling, punct()\n               order arrival; 4 rows, 2 panes\n" in out


def test_on_a_state_the_rows_of_the_units_before_are_drawn_too(tmp_path: Path) -> None:
    cases = (EXAMPLES / "nightly_sessions.test.yaml").read_text().replace("00:05:00,2,6,/b", "00:05:00,2,7,/b")
    out = checked(tmp_path, cases, (EXAMPLES / "nightly_sessions.yaml").read_text(), "--only", "midnight").out
    assert "windows of 2026-11-02: 1 differs, 1 as expected" in out
    assert (
        "        pane 1:                                                                 [b  c]     delta  2 rows\n"
        in out
    )


def test_variables_of_the_environment_are_no_options_of_a_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINCLI_WINDOW", "nonsense")
    case = "cases:\n - name: a\n   given: [{ts: 1, user: a, x: 1}]\n   expect: [{n: 1}]\n"
    assert checked(tmp_path, case).code == 0


def test_the_report_in_xml_says_the_same(tmp_path: Path) -> None:
    good = LATE.replace("n: 3, spent: 7}", "n: 2, spent: 3}\n      - {user: ann, n: 1}").replace("a minute", "two")
    ran = checked(tmp_path, LATE + good.partition("cases:\n")[2], JOB, "--junit", "report.xml")
    assert ran.code == 1
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2", "failures": "1", "errors": "0",
    }  # fmt: skip
    bad, fine = suite
    assert (bad.get("name"), fine.get("name"), len(fine)) == ("a minute", "two", 0)
    assert bad[0].get("message") == "windows: 1 differs, 1 not expected, 1 as expected"
    assert "+ ann   2  3" in str(bad[0].text)


OUTCOMES = table_of("outcomes_of_cases")


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_case_passes_or_says_why_not(name: str, tmp_path: Path) -> None:
    outcome = OUTCOMES[name]
    more = outcome.get("job", "")
    job = JOB if "agg:" not in more else JOB.partition("agg:")[0]
    ran = checked(tmp_path, "cases:\n - name: a\n" + indent(outcome["case"], "   "), job + more)
    assert (ran.code, ran.err) == (1 if "says" in outcome else 0, ""), ran.out
    assert all(words in ran.out for words in outcome.get("says", ()))
    assert {path.name for path in tmp_path.iterdir()} == {"job.yaml", "job.test.yaml"}


def test_rows_come_from_files_and_for_several_inputs(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("ts,user,x\n1,a,1\n2,a,2\n")
    job = JOB.replace("input: log", "input: [web, app/*.csv]").replace("delta(ts, 60)", "punct()")
    case = "cases:\n - name: a\n   given: {web: rows.csv, app/*.csv: {}}\n"
    assert "app/*.csv must be rows, not a mapping" in checked(tmp_path, case, job).err
    case = case.replace("{}}", "'ts,user,x\n\n    5,a,9'}") + "   expect: [{n: 2, spent: 3}, {n: 1, spent: 9}]\n"
    ran = checked(tmp_path, case, job)
    assert (ran.code, ran.err) == (0, ""), ran.out


# Laws

EVENTS = st.lists(st.tuples(st.integers(0, 300), st.sampled_from("ab"), st.integers(-9, 9)), min_size=1, max_size=12)


def delta_windows(events: Sequence[tuple[int, str, int]]) -> list[dict[str, Any]]:
    """Semantics section 2, a row at a time: a row more than 60 after the first of its window opens the next."""
    found = []
    for user in sorted({user for _, user, _ in events}):
        windows: list[list[tuple[int, int]]] = []
        for ts, _, x in sorted((e for e in events if e[1] == user), key=lambda e: e[0]):
            if windows and ts - windows[-1][0][0] <= 60:
                windows[-1].append((ts, x))
            else:
                windows.append([(ts, x)])
        found += [
            {"user": user, "window": at, "n": len(rows), "spent": sum(x for _, x in rows)}
            for at, rows in enumerate(windows)
        ]
    return found


@examples(10, deadline=None)
@given(EVENTS, st.randoms(use_true_random=False))
def test_a_case_passes_iff_its_windows_are_those_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[int, str, int]], random: Any
) -> None:
    folder = tmp_path_factory.mktemp("law")
    rows = [dict(zip(("ts", "user", "x"), event, strict=True)) for event in events]
    windows = delta_windows(events)
    random.shuffle(windows)
    wrong = [dict(row) for row in windows]
    wrong[0]["spent"] += 1
    cases = [
        {"name": "right", "given": rows, "expect": windows},
        {"name": "wrong", "given": rows, "expect": wrong},
        {"name": "less", "given": rows, "expect": windows[1:]},
        {"name": "more", "given": rows, "expect": [*windows, windows[0]]},
    ]
    ran = checked(folder, yaml.safe_dump({"cases": cases}), JOB + "order_by: ts\n")
    found = re.findall(r"^(ok|FAIL) +(\w+)", ran.out, re.MULTILINE)
    assert found == [("ok", "right"), ("FAIL", "wrong"), ("FAIL", "less"), ("FAIL", "more")], ran.out
    assert f"windows: 1 differs, {len(windows) - 1} as expected" in ran.out


ROWS = st.lists(st.fixed_dictionaries({}, optional={"a": st.integers(0, 2), "b": st.integers(0, 2)}), max_size=5)


@given(ROWS, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=5))
def test_rows_fit_iff_some_pairing_of_all_of_them_does(
    rows: list[dict[str, int]], found: list[tuple[int, int]]
) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in found], pa.int64()), "b": pa.array([b for _, b in found], pa.int64())}
    )
    expected = [{name: Scalar("integer", str(value)) for name, value in row.items()} for row in rows]
    fits = len(rows) == len(found) and any(
        all(dict(zip("ab", cell, strict=True)).items() >= row.items() for row, cell in zip(rows, order, strict=True))
        for order in permutations(found)
    )
    assert (compare("rows", expected, table, is_ordered=False, tolerance=0) is None) == fits


VALUES = [
    pa.scalar(dt.datetime(2026, 11, 1, 10, 0, 0, 120_000), pa.timestamp("us")),
    pa.scalar(dt.datetime(2026, 11, 1, 10), pa.timestamp("ns", "Europe/Paris")),
    pa.scalar(dt.datetime(2026, 11, 1, 10, 0, 0, 100), pa.timestamp("us", "Asia/Tokyo")),
    pa.scalar(dt.datetime(2026, 11, 1, 10), pa.timestamp("us", "UTC")),
    pa.scalar(dt.datetime(2026, 11, 1, 10, 20, 30), pa.timestamp("ns", "+09:00")),
    pa.scalar(dt.datetime(2026, 11, 1), pa.timestamp("s")),
    pa.scalar(dt.date(2026, 11, 1)),
    pa.scalar(dt.time(10, 5)),
    pa.scalar(dt.timedelta(seconds=90, milliseconds=500)),
    pa.scalar(2**63 - 1),
    pa.scalar(0.1),
    pa.scalar(float("nan")),
    pa.scalar(float("-inf")),
    pa.scalar(1.5, pa.float32()),
    pa.scalar(Decimal("1.50")),
    pa.scalar(True),
    pa.scalar("a b"),
    pa.scalar(""),
    pa.scalar(b"\x00\xff"),
    pa.scalar(None, pa.int64()),
]


def test_times_are_shown_without_zeros_that_say_nothing() -> None:
    moment = dt.datetime(2026, 11, 1, 10, 20, 30, 120_000)
    shown = [
        text_of_found(pa.scalar(moment, pa.timestamp(unit, zone))) for unit in ("ms", "ns") for zone in (None, "UTC")
    ]
    assert shown == ["2026-11-01 10:20:30.12", "2026-11-01 10:20:30.12Z"] * 2
    assert text_of_found(pa.scalar(moment.replace(microsecond=0), pa.timestamp("us"))) == "2026-11-01 10:20:30"


@pytest.mark.parametrize("value", VALUES, ids=lambda value: str(value.type))
def test_a_value_that_is_found_may_be_expected_as_it_is_shown(value: pa.Scalar) -> None:
    text = text_of_found(value)
    expected = None if text == "null" else Scalar("string", "" if text == "''" else text)
    assert is_same(expected, value, 0)
    assert not is_same(Scalar("string", "x"), value, 0)


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [
        ("2026-11-01", pa.scalar(dt.datetime(2026, 11, 1), pa.timestamp("ms")), True),
        ("2026-11-01 10:00:00+01:00", pa.scalar(dt.datetime(2026, 11, 1, 9), pa.timestamp("s", "UTC")), True),
        ("90s", pa.scalar(dt.timedelta(seconds=90)), True),
        ("1m", pa.scalar(dt.timedelta(seconds=90)), False),
        ("1.50", pa.scalar(Decimal("1.5")), True),
        ("9223372036854775806", pa.scalar(2**63 - 1), False),
        ("0.3", pa.scalar(0.1 + 0.2), True),
        ("0.31", pa.scalar(0.1 + 0.2), False),
        ("7", pa.scalar("7"), True),
        ("[1, 2]", pa.scalar([1, 2]), True),
        ("[1, 3]", pa.scalar([1, 2]), False),
        ('{"a": "x"}', pa.scalar({"a": "x", "b": 1}), True),
        ("yes", pa.scalar(True), True),
    ],
)
def test_values_are_compared_in_the_type_of_the_column(text: str, value: pa.Scalar, same: bool) -> None:
    assert is_same(Scalar("string", text), value, 1e-9) == same


def test_an_empty_cell_of_csv_is_null_or_an_empty_text() -> None:
    ((name, cell),) = csv_rows('a\n""\n', ",")[0].items()
    assert name == "a"
    assert is_same(cell, pa.scalar(""), 0)
    assert is_same(cell, pa.scalar(None, pa.string()), 0)
    assert not is_same(cell, pa.scalar("x"), 0)


MISTAKES = mistakes("cases")


@pytest.mark.parametrize("case", MISTAKES["file"], ids=lambda case: case["says"])
def test_a_mistake_in_the_cases_is_reported_with_its_line(case: dict[str, str], tmp_path: Path) -> None:
    ran = checked(tmp_path, case["text"])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"wincli: error: {case['says']}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_expected_rows_in_a_file_have_a_line_of_names(text: str, tmp_path: Path) -> None:
    (tmp_path / "want.csv").write_text(text)
    ran = checked(tmp_path, "cases:\n - name: a\n   given: []\n   expect: want.csv")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("wincli: error: job.test.yaml:4: expect: want.csv is empty; ")


def test_a_mark_of_the_byte_order_is_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "want.csv").write_text("user,n\na,1\n", encoding="utf-8-sig")
    ran = checked(tmp_path, "cases:\n - name: a\n   given: [{ts: 1, user: a, x: 1}]\n   expect: want.csv")
    assert (ran.code, ran.err) == (0, ""), ran.out


TOO_LONG = {
    "text": f"given: {{{'n' * 300}: [{{ts: 1}}]}}",
    "says": "cannot be written to a temporary file: File name too long",
}


@pytest.mark.parametrize("case", [*MISTAKES["case"], TOO_LONG], ids=lambda case: case["says"])
def test_a_case_that_does_not_fit_its_job_fails_alone(case: dict[str, str], tmp_path: Path) -> None:
    good = " - name: good\n   given: [{ts: 1, user: a, x: 1}]\n"
    ran = checked(tmp_path, f"cases:\n - name: bad\n   {case['text']}\n{good}")
    assert (ran.code, ran.err) == (1, "")
    assert re.findall(r"^(ok|FAIL) +(\w+)", ran.out, re.MULTILINE) == [("FAIL", "bad"), ("ok", "good")]
    assert case["says"] in ran.out


@pytest.mark.parametrize("job", MISTAKES["job"], ids=lambda job: job["says"])
def test_a_mistake_in_the_job_is_reported_by_the_command_or_by_each_case(job: dict[str, Any], tmp_path: Path) -> None:
    case = "cases:\n - name: a\n   units: {2026-11-01: {given: {a.csv: [{ts: 1, user: a, x: 1}]}}}\n"
    ran = checked(tmp_path, case, job["text"])
    assert ran.code == job["code"], ran
    assert job["says"] in ran.out + ran.err
    assert "unexpected" not in ran.err


def test_texts_of_cases_and_data_do_not_control_the_terminal(tmp_path: Path) -> None:
    case = 'cases:\n - name: "a\\e[31m"\n   given: [{ts: 1, user: "\\e[2J", x: 1}]\n   expect: [{user: "\\a"}]\n'
    ran = checked(tmp_path, case)
    assert ran.code == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", ran.out)


def test_a_job_without_cases_says_where_they_would_be(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    ran = wincli_here("test", "job.yaml", cwd=tmp_path)
    assert ran.code == 2
    assert "job.yaml has no cases: there is no job.test.yaml" in ran.err
