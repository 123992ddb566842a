"""Schema texts: names and types, layouts of times, and where a text that does not read is wrong."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from wincli.readers.options import parse_schema
from wincli.readers.values.types import column_type
from wincli.windowing.errors import SpecError
from wincli.windowing.support.column_types import schema_entry


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            'ts:timestamp(%d/%m/%y %H:%M), amount : Decimal(10,2),"a:b, ""c""":LONG,n:double,z:timestamp[tz]',
            {
                "ts": "timestamp(%d/%m/%y %H:%M)",
                "amount": "decimal(10,2)",
                'a:b, "c"': "int64",
                "n": "float64",
                "z": "timestamptz",
            },
        ),
        ("t:timestamp(%a, %d (%b) %Y %H:%M),n:int", {"t": "timestamp(%a, %d (%b) %Y %H:%M)", "n": "int64"}),
        (
            "a:timestamp( Unix ),b:timestamptz(UNIX_MS),c:timestamp_ns(unix)",
            {"a": "timestamp(unix)", "b": "timestamptz(unix_ms)", "c": "timestamp_ns(unix)"},
        ),
        *(
            (f"t:timestamp({layout})", {"t": f"timestamp({layout})"})
            for layout in ("%Y", "%Y-%m", "%y%j", "%F %T", "%s", "%d.%m.%y", "%D %R", "%Y %b %e %H")
        ),
    ],
)
def test_names_and_types_of_a_schema_text(text: str, found: dict[str, str]) -> None:
    assert dict(parse_schema(text)) == found
    assert [name for name, _ in parse_schema(text)] == list(found)


@pytest.mark.parametrize("name", ["n", " n", "a:b", 'say "n"'])
def test_the_entry_of_a_schema_names_the_column(name: str) -> None:
    entry = schema_entry(name, "string").removeprefix("--schema '").removesuffix("'")
    assert parse_schema(entry) == ((name, "string"),)


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        ("n:intt", "unknown type 'intt'; did you mean 'int'?", "intt"),
        ("a:int,n", "this is not name:type", "n"),
        ("a:int,", "a column is missing here", ""),
        ("a:int,a:int", "column 'a' is given twice", "a:int"),
        ("t:timestamp(%H", "this ( is never closed", "("),
        ("t:timestamp(%Q)", "unknown directive '%Q'", "%Q"),
        ("t:timestamp()", "an empty format", "()"),
        ("d:decimal(2,3)", "this decimal has no right precision and scale", "decimal(2,3)"),
        ("d:decimal", "this decimal has no right precision and scale", "decimal"),
        ("n:int(5)", "int takes nothing in ( )", "(5)"),
        ("", "a column is missing here", ""),
        ("d:date(unix)", "this format reads no date", "unix"),
        ("x:timestamp(%%I %I)", "'%p' is missing, which gives the half of the day of '%I'", "%I"),
    ],
)
def test_a_schema_text_that_does_not_read_shows_where(text: str, message: str, caret: str) -> None:
    check_error(text, message, caret)


def check_error(text: str, message: str, caret: str) -> None:
    """``caret``: the last of these in the text is what the message points at."""
    with pytest.raises(SpecError) as caught:
        parse_schema(text)
    first, *shown = str(caught.value).split("\n")
    assert first.startswith(message)
    assert shown == [f"  {text}", "  " + " " * text.rindex(caret) + "^" * max(1, len(caret))]


@pytest.mark.parametrize(
    ("layout", "what", "do"),
    [
        ("%H:%M:%S", "a time of day without a date", "put date and time into one column"),
        ("%I:%M %p", "a time of day without a date", "put date and time into one column"),
        ("%b %d %H:%M:%S", "a time of day without a year", "the year is known from nowhere else"),
        ("%d/%m", "a day without a year", "the year is known from nowhere else"),
        ("%j %H", "a time of day without a year", "the year is known from nowhere else"),
        ("%Y %H:%M", "a time of day without a month", "for example timestamp(%d/%m/%y %H:%M)"),
        ("%m/%Y %H:%M", "a time of day without a day", "for example timestamp(%d/%m/%y %H:%M)"),
        ("unixs", "no date", "for example timestamp(%d/%m/%y %H:%M), or timestamp(unix)"),
        ("%a %z", "no date", "for example timestamp(%d/%m/%y %H:%M), or timestamp(unix)"),
    ],
)
def test_a_layout_without_a_date_is_refused(layout: str, what: str, do: str) -> None:
    check_error(f"n:int, ts:timestamp({layout})", f"this format reads {what}; {do}", layout)


def test_type_names_map_to_arrow_types() -> None:
    assert column_type("timestamp").type == pa.timestamp("us")
    assert column_type("timestamp(%H %z)").type == pa.timestamp("us", "UTC")
    assert column_type("decimal(10,2)").type == pa.decimal128(10, 2)
    assert column_type("date(%d)").format == "%d"


def test_options_load_neither_pyarrow_nor_numpy() -> None:
    code = "import sys, wincli.readers.options; print(sorted({'pyarrow', 'numpy', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
