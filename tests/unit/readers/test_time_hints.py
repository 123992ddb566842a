"""What an error says of columns that look like times: a value, and flags that read it as they stand."""

from __future__ import annotations

import datetime as dt
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import TESTS
from support.readers import column, read_all, source
from wincli.cli.run.request import parse_job
from wincli.cli.run.stage_plans import plan_stages
from wincli.readers.options import parse_schema
from wincli.readers.time_hints import advise, layouts_of
from wincli.windowing.errors import ConfigError, InputError
from wincli.windowing.expressions.binding import bind
from wincli.windowing.expressions.syntax import parse_expression

UTC = dt.UTC
_FLAG = re.compile(r"""--schema ('(?:[^']|'"'"')*'|"[^"]*")""")


def put(folder: Path, *values: Any, name: str = "Time") -> Path:
    path = folder / "in.csv"
    quoted = name.replace('"', '""')
    path.write_text(f'id,"{quoted}"\n' + "".join(f'{at},"{value}"\n' for at, value in enumerate(values)))
    return path


def flags(text: str | None) -> list[str]:
    """The schema texts of the flags in a message, as a shell hands them on."""
    return [shlex.split(flag)[0] for flag in _FLAG.findall(text or "")]


def first_read(path: Path, schema: str) -> tuple[Any, int]:
    """The first value of the column that a flag names last, and how many rows it rejects."""
    name = parse_schema(schema)[-1][0]
    every = read_all(source(path, schema=schema), [name])
    return every.rows[0][name], len(every.rejects)


DAY, MORNING = dt.datetime(2026, 11, 22), dt.datetime(2026, 11, 22, 10, 0, 5)


HINTS = (TESTS / "cases/time_hints.txt").read_text(encoding="utf-8").splitlines()
"""Texts, the type that a hint names, and what it reads them as."""


@pytest.mark.parametrize("line", HINTS)
def test_one_flag_reads_what_can_mean_one_thing(tmp_path: Path, line: str) -> None:
    text, kind, value = line.split("|")
    path = put(tmp_path, text, text)
    what = "date" if kind.startswith("date") else "time"
    assert advise(source(path), None, ()) == (
        f"column 'Time' looks like a {what}, as {text!r}: read it with --schema \"Time:{kind}\""
    )
    first, rejected = first_read(path, f"Time:{kind}")
    assert (str(first), rejected) == (value, 0)


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        (("01/02/2026 10:00",), ["timestamp(%d/%m/%Y %H:%M)", "timestamp(%m/%d/%Y %H:%M)"]),
        (("01/02/2026 10:00", "13/02/2026 10:00"), ["timestamp(%d/%m/%Y %H:%M)"]),
        (("01/02/03",), ["date(%d/%m/%y)", "date(%m/%d/%y)", "date(%y/%m/%d)"]),
        (("17/06/09", "99/06/09"), ["date(%y/%m/%d)"]),
        (("1795341605.1234567",), ["timestamp_ns(unix)"]),
        (("1795341605123456789",), ["timestamp(unix_ns)"]),
        (("2026/11/22 10:00:05.123456789",), ["timestamp_ns(%Y/%m/%d %H:%M:%S.%f)"]),
        (("2026-11-22 10:00:05", "-", "2026-11-22 10:00:06"), ["timestamp"]),
        (("2026-11-22T10:00:05Z", "-", "2026-11-22T10:00:06Z"), ["timestamptz"]),
        (("1795341605", "-", "1795341606"), ["timestamp(unix)"]),
    ],
)
def test_every_meaning_is_named_and_each_flag_reads_most_rows(
    tmp_path: Path, texts: tuple[str, ...], kinds: list[str]
) -> None:
    path = put(tmp_path, *texts)
    text = advise(source(path), "Time", ())
    assert flags(text) == [f"Time:{kind}" for kind in kinds]
    assert (text or "").endswith(", whichever it means") == (len(kinds) > 1)
    for flag in flags(text):
        assert first_read(path, flag)[1] == sum(each == "-" for each in texts)


NO_TIMES = ["hello", "12.5", "192.168.1.1", "v1.2.3", "May", "123456789", "12345678", "R02-M1-N0", "-"]


def test_what_is_no_time_is_not_taken_for_one_nor_what_no_row_has(tmp_path: Path) -> None:
    for texts in ([], *([text, text] for text in NO_TIMES)):
        assert advise(source(put(tmp_path, *texts)), None, ()) is None
    pq.write_table(pa.table({"a": pa.array([b"\xff"], pa.binary()).view(pa.string())}), tmp_path / "a.parquet")
    assert advise(source(tmp_path / "a.parquet"), "a", ()) is None


@pytest.mark.parametrize(
    ("lacks", "texts"),
    [("date", ["10:00:05", "10:00", "1:05 PM"]), ("year", ["Nov 22 10:00:05", "03-17 16:13:38.811"])],
)
def test_a_time_without_a_date_or_a_year_has_no_flag(tmp_path: Path, lacks: str, texts: list[str]) -> None:
    for text in texts:
        path = put(tmp_path, text)
        words = f"column 'Time' has times without a {lacks}, as {text!r}: put the {lacks} into the column"
        assert advise(source(path), "Time", ()) == words == advise(source(path), None, ())


def test_a_date_beside_a_time_of_day_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("Date,Time\n99/06/30,20:10:40\n")
    both = (
        "column 'Time' has times without a date, as '20:10:40': "
        "put it and 'Date' into one column, as '99/06/30 20:10:40'"
    )
    assert advise(source(tmp_path / "in.csv"), "Time", ()) == both
    alone = "column 'Date' looks like a date, as '99/06/30': read it with --schema \"Date:date(%y/%m/%d)\""
    assert advise(source(tmp_path / "in.csv"), None, ()) == f"{alone}; {both}"


MIXED = ["2026-11-22T10:00:05", "2026-11-22T10:00:06Z", "2026-11-22 12:00:07+02:00", "2026-11-22"]


@pytest.mark.parametrize("name", ["Time", "at", "my time", "from"])
def test_times_of_which_only_some_have_a_zone_get_a_column_that_takes_them_all(tmp_path: Path, name: str) -> None:
    text = advise(source(put(tmp_path, *MIXED, name=name)), None, ()) or ""
    assert text.startswith(f"column {name!r} has times with a zone and times without one, as '2026-11-22T10:00:05'")
    let, at = re.search(r"--let (.*), and name the column (\w+)$", text).groups()  # type: ignore[union-attr]
    target, _, expression = shlex.split(let)[0].partition("=")
    assert target == at != name
    bound = bind(parse_expression(expression), pa.schema([(name, pa.string())]))
    found = bound.evaluate(pa.table({name: MIXED}))
    assert found.failures is None
    second = [5, 6, 7]
    assert found.values.to_pylist() == [MORNING.replace(tzinfo=UTC, second=each) for each in second] + [
        DAY.replace(tzinfo=UTC)
    ]


def test_files_of_which_only_some_have_zones_get_a_column_that_takes_them_all(tmp_path: Path) -> None:
    for at, value in enumerate(MIXED[:2]):
        (tmp_path / f"{at}.csv").write_text(f"at\n{value}\n")
    with pytest.raises(InputError) as caught:
        source(tmp_path)
    assert caught.value.do == (
        "read it with --schema 'at:string' and --let \"at_utc=CAST(at AS TIMESTAMPTZ)\", "
        "by which times without a zone are UTC"
    )


def test_the_value_that_made_a_column_of_times_text_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, "2026-11-22T10:00:05", "2026-06-30T23:59:60")
    assert advise(source(path), None, ()) == (
        "column 'Time' looks like a time, as '2026-11-22T10:00:05', "
        f"though {path} has '2026-06-30T23:59:60' at line 3: "
        'read it with --schema "Time:timestamp"'
    )


@pytest.mark.parametrize("name", ["Event Time", "a,b", "a:b", 'a "b"', "it's", "$HOME", " x "])
def test_flags_can_be_pasted_whatever_the_column_is_called(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, "1795341605", name=name)
    (flag,) = flags(advise(source(path), name, (("id", "string"),)))
    assert parse_schema(flag) == (("id", "string"), (name, "timestamp(unix)"))
    assert first_read(path, flag) == (MORNING.replace(tzinfo=UTC), 0)


@given(
    st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2068, 12, 31)),
    st.sampled_from(
        [
            "%d/%m/%Y %H:%M:%S", "%m/%d/%y %H:%M", "%y/%m/%d %H:%M:%S", "%d.%m.%Y", "%b %d %H:%M:%S %Y", "%Y%m%d%H%M%S",
            "%a, %d %b %Y %H:%M:%S GMT", "%Y/%m/%dT%H:%M:%S.%f", "%d-%b-%y %I:%M %p", "%Y.%m.%d %H:%M:%S,%f",
            "%H:%M:%S",
        ]
    ),
)  # fmt: skip
def test_the_layout_that_wrote_a_time_is_among_those_found(moment: dt.datetime, layout: str) -> None:
    assert layout in layouts_of(moment.strftime(layout))


PIECES = ["1", "22", "05", "2026", "1795341605", "Nov", "Sun", "T", "Z", "PM", "UTC", "+01:00", "%", "%b", "%d", "é"]


@given(
    st.lists(st.lists(st.sampled_from([*PIECES, *"/-:.,_ ()[]'\"$!"]), max_size=9).map("".join), min_size=1, max_size=3)
)
def test_whatever_texts_there_are_a_flag_that_is_named_reads_most_of_them(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.parquet"
    pq.write_table(pa.table({"a": texts}), path)
    for flag in flags(advise(source(path), "a", ())):
        read = column(source(path, schema=flag), "a")
        assert 2 * len(read) >= sum(bool(text.strip()) for text in texts) > 0


@pytest.mark.parametrize(
    ("window", "options", "error"),
    [
        ("time(60)", {}, "the window tumbling, time(60) {needs}, and the input has no timestamp or date column"),
        ("time(60)", {"order_by": ("Time",)}, "column 'Time' is string, which is no clock"),
        ("sliding, time(60)", {}, "the window sliding, time(60), count(1) {needs}, and the input has no"),
        ("within 60", {}, "the window within 60 {needs}, and the input has no timestamp or date column"),
        ("timeInterval, intervalDuration(60)", {"event_time": "Time"}, "column 'Time' is string, which is no clock"),
        ("timeInterval, intervalDuration(60)", {}, "the window timeInterval, "),
        ("delta(Time, 60)", {}, "delta(Time, 60) {measures}"),
        ("gap(Time, 60)", {}, "gap(Time, 60) {measures}"),
    ],
)
def test_every_window_that_needs_a_time_column_has_a_hint(
    tmp_path: Path, window: str, options: dict[str, Any], error: str
) -> None:
    measures = "needs a number, a timestamp or a date, and column 'Time' is string"
    error = error.format(needs="needs a clock", measures=measures)
    path = put(tmp_path, "22/11/2026 10:00")
    asked = parse_job({"window": window, **options, "paths": [str(path), "out"]})
    with pytest.raises(ConfigError) as caught:
        plan_stages(asked, source(path))
    assert caught.value.what.startswith(error)
    assert caught.value.do == (
        "column 'Time' looks like a time, as '22/11/2026 10:00': "
        'read it with --schema "Time:timestamp(%d/%m/%Y %H:%M)"'
    )


def test_parquet_is_looked_at_too(tmp_path: Path) -> None:
    columns = {"id": [1, 2], "at": [1795341605250, None], "on": pa.array(["22.11.2026", "23.11.2026"])}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert flags(advise(source(tmp_path / "a.parquet"), None, ())) == ["at:timestamp(unix_ms)", "on:date(%d.%m.%Y)"]


def test_nothing_is_looked_at_where_no_error_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = parse_job({"window": "time(60)", "paths": [str(put(tmp_path, "2026-11-22 10:00:05")), "out"]})
    monkeypatch.delitem(sys.modules, "wincli.readers.time_hints")
    plan_stages(asked, source(Path(asked.input[0])))
    assert "wincli.readers.time_hints" not in sys.modules
