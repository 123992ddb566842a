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


@pytest.mark.parametrize("name", sorted({path.name.partition(".")[0] for path in EXAMPLES.glob("*.yaml")}))
def test_every_example_has_cases_and_passes_them(name: str) -> None:
    ran = wincli_here("test", f"{name}.yaml", cwd=EXAMPLES)
    assert (ran.code, ran.err) == (0, ""), ran.out
    assert "all as expected" in ran.out


def test_cases_of_the_docs_pass_and_the_failure_that_they_show_is_what_is_printed(tmp_path: Path) -> None:
    shown = {lines[0].removeprefix("# "): "\n".join(lines) for _, lines in fences(DOCS["check"], "yaml")}
    shown = {name: text for name, text in shown.items() if name.endswith(".yaml")}
    shown["nightly.yaml"] = (EXAMPLES / "nightly_sessions.yaml").read_text()
    for name, text in shown.items():
        (tmp_path / name).write_text(text)
    for job in ("sessions.yaml", "nightly.yaml"):
        ran = wincli_here("test", job, cwd=tmp_path)
        assert (ran.code, ran.err) == (0, ""), ran.out
    wrong = shown["sessions.test.yaml"].replace("events: 2, spent: 3", "events: 3, spent: 7")
    (tmp_path / "sessions.test.yaml").write_text(wrong)
    (printed,) = [lines for _, lines in fences(DOCS["check"], "console") if "wincli test" in lines[0]]
    out = wincli_here("test", "sessions.yaml", cwd=tmp_path).out
    assert without_times("\n".join(printed)) == without_times(f"$ wincli test sessions.yaml\n{out.rstrip()}")


# What differs


def test_wide_letters_take_two_cells_of_the_table() -> None:
    pair = RowPair(("日本", "1"), ("a", "1"), (True, False))
    lines = difference(Mismatch("windows", ("user", "n"), (pair,), 0), False)
    assert lines == ["  user  n", "- 日本  1", "+ a     1", "  ^^^^"]


@pytest.mark.parametrize(
    ("job", "right", "wrong", "says"),
    [
        ("rollup", "kwh: 7, best", "kwh: 8, best", (  # drawn over the rows of the stage before
            "windows of stage regions: 1 differs, 2 as expected",
            "      window:  tumbling, punct()\n               order arrival; 4 rows, 2 panes\n",
        )),
        ("nightly_sessions", "00:05:00,2,6,/b", "00:05:00,2,7,/b", (  # on a state: with the rows of units before
            "windows of 2026-11-02: 1 differs, 1 as expected",
            f"        pane 1:{' ' * 65}[b  c]     delta  2 rows\n",
        )),
    ],
)  # fmt: skip
def test_what_differs_is_drawn_over_all_rows_that_it_is_of(
    job: str, right: str, wrong: str, says: tuple[str, ...], tmp_path: Path
) -> None:
    cases = (EXAMPLES / f"{job}.test.yaml").read_text().replace(right, wrong)
    out = checked(tmp_path, cases, (EXAMPLES / f"{job}.yaml").read_text()).out
    assert all(words in out for words in says)


def test_the_report_in_xml_says_the_same(tmp_path: Path) -> None:
    rows = [{"ts": ts, "user": "ann", "x": x} for ts, x in ((0, 1), (50, 2), (61, 4))]
    windows = [{"n": 2, "spent": 3}, {"n": 1, "spent": 4}]
    expected = {"a minute": [{"user": "ann", "n": 3, "spent": 7}], "two": windows}
    cases = [{"name": name, "given": rows, "expect": each} for name, each in expected.items()]
    ran = checked(tmp_path, yaml.safe_dump({"cases": cases}), JOB + "order_by: ts\n", "--junit", "report.xml")
    assert ran.code == 1
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2", "failures": "1", "errors": "0",
    }  # fmt: skip
    failed, fine = suite
    assert (failed.get("name"), fine.get("name"), len(fine)) == ("a minute", "two", 0)
    assert failed[0].get("message") == "windows: 1 differs, 1 not expected, 0 as expected"
    assert "+ 2  3      ann" in str(failed[0].text)


OUTCOMES = table_of("outcomes_of_cases")


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_case_passes_or_says_why_not(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINCLI_WINDOW", "nonsense")  # variables of the environment are no options of a case
    outcome = OUTCOMES[name]
    more = outcome.get("job", "")
    job = JOB if "agg:" not in more else JOB.partition("agg:")[0]
    ran = checked(tmp_path, "cases:\n - name: a\n" + indent(outcome["case"], "   "), job + more)
    assert (ran.code, ran.err) == (1 if "says" in outcome else 0, ""), ran.out
    assert all(words in ran.out for words in outcome.get("says", ()))
    assert without_times(ran.out) == outcome.get("prints", without_times(ran.out))
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


AT_TEN = dt.datetime(2026, 11, 1, 10)
VALUES: list[tuple[pa.Scalar, str, tuple[str, ...], tuple[str, ...]]] = [
    (pa.scalar(AT_TEN.replace(microsecond=120_000), pa.timestamp("us")), "2026-11-01 10:00:00.12", (), ()),
    (pa.scalar(AT_TEN.replace(microsecond=120_000), pa.timestamp("ns", "UTC")), "2026-11-01 10:00:00.12Z", (), ()),
    (pa.scalar(AT_TEN, pa.timestamp("ns", "Europe/Paris")), "2026-11-01 11:00:00+0100", ("2026-11-01 11:00",), ()),
    (pa.scalar(AT_TEN.replace(microsecond=100), pa.timestamp("us", "Asia/Tokyo")),
     "2026-11-01 19:00:00.0001+0900", (), ()),
    (pa.scalar(AT_TEN, pa.timestamp("s", "UTC")), "2026-11-01 10:00:00Z", ("2026-11-01 11:00:00+01:00",), ()),
    (pa.scalar(AT_TEN, pa.timestamp("ns", "+09:00")), "2026-11-01 19:00:00+0900", (), ()),
    (pa.scalar(dt.datetime(2026, 11, 1), pa.timestamp("s")), "2026-11-01 00:00:00", ("2026-11-01",), ("2026-11-02",)),
    (pa.scalar(dt.date(2026, 11, 1)), "2026-11-01", (), ()),
    (pa.scalar(dt.time(10, 5)), "10:05:00", ("10:05",), ()),
    (pa.scalar(dt.timedelta(seconds=90, milliseconds=500)), "90.5s", ("90500ms",), ("1m",)),
    (pa.scalar(dt.timedelta(seconds=90), pa.duration("s")), "90s", ("90000ms",), ("45s",)),
    (pa.scalar(2**63 - 1), "9223372036854775807", ("9_223_372_036_854_775_807",), ("9223372036854775806",)),
    (pa.scalar(0.1 + 0.2), "0.30000000000000004", ("0.3",), ("0.31",)),
    (pa.scalar(float("nan")), "nan", (".nan",), ("1",)),
    (pa.scalar(float("-inf")), "-inf", ("-.inf",), (".inf",)),
    (pa.scalar(1.1, pa.float32()), "1.100000023841858", ("1.1",), ("1.10001",)),
    (pa.scalar(Decimal("1.50")), "1.50", ("1.5",), ("1.51",)),
    (pa.scalar(True), "true", ("yes", "on"), ("false",)),
    (pa.scalar("a b"), "a b", (), ("a  b",)),
    (pa.scalar("7"), "7", (), ("7.0",)),
    (pa.scalar(""), "''", ("",), ()),
    (pa.scalar(b"\x00\xff"), "00ff", (), ()),
    (pa.scalar([1, 2]), "[1, 2]", ("[1,2]",), ("[1, 3]", "[1]", "[1, 2, 3]")),
    (pa.scalar({"a": "x", "b": 1}), "{a: x, b: 1}", ('{"a": "x"}',), ('{"a": "y"}', '{"c": "x"}')),
    (pa.scalar(None, pa.int64()), "null", ("",), ()),
]  # fmt: skip
"""Values, how they are shown, what else says the same, and what does not."""


@pytest.mark.parametrize(("value", "shown", "same", "others"), VALUES, ids=lambda each: str(each)[:20])
def test_a_value_is_shown_as_it_may_be_expected_and_compared_in_its_type(
    value: pa.Scalar, shown: str, same: tuple[str, ...], others: tuple[str, ...]
) -> None:
    assert text_of_found(value) == shown
    as_shown = () if shown in ("''", "{a: x, b: 1}") else (None,) if shown == "null" else (shown,)
    for text in (*as_shown, *same):
        assert is_same(None if text is None else Scalar("string", text), value, 1e-9), text
    for text in (*others, "x"):
        assert not is_same(Scalar("string", text), value, 1e-9), text


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


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeffuser,n\na,1\n"])
def test_expected_rows_in_a_file_have_a_line_of_names_without_a_mark_of_the_byte_order(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / "want.csv").write_text(text, encoding="utf-8")
    ran = checked(tmp_path, "cases:\n - name: a\n   given: [{ts: 1, user: a, x: 1}]\n   expect: want.csv")
    says = "" if "user" in text else "wincli: error: job.test.yaml:4: expect: want.csv is empty; "
    assert (ran.code, ran.err.startswith(says)) == (2 if says else 0, True), ran


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
    assert (ran.code, "unexpected" in ran.err) == (job["code"], False), ran
    assert job["says"] in ran.out + ran.err


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
