"""The docs are part of the product: nothing that can be asked for is missing, and what they show is so."""

from __future__ import annotations

import datetime as dt
import inspect
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from support.docs_pages import DOCS, PAGES, README, ROOT, fences, missing_from, place_of, rows_of, text_of
from support.in_process import wincli_here
from wincli.cli import main
from wincli.cli.arguments import OPTIONS
from wincli.cli.console import messages
from wincli.conf.job import defaults
from wincli.readers.files.file import COMPRESSIONS
from wincli.readers.options import TYPE_NAMES
from wincli.readers.values import time_formats
from wincli.windowing.aggregates.table import TABLE
from wincli.windowing.clock import watermark
from wincli.windowing.enrichment.window_table import PASSED, PLACE, GivenTable
from wincli.windowing.language import clock_policies, parser, pattern_parser, tokens
from wincli.windowing.language.enrichment import parse_windows
from wincli.windowing.language.joins import parse_join
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning import plan, result_schema
from wincli.windowing.ports import REJECT_FIELDS, Counts, InputFile, Part
from wincli.windowing.rows.panes import CLOSED_BY, TIMING
from wincli.windowing.scan import row_validation
from wincli.windowing.state import state_tables
from wincli.windowing.support.formats import FORMATS
from wincli.writers.output.manifest import build_manifest
from wincli.writers.state.unit_record import OpenWindows, StageRecord, UnitRecord

TOP = ("cli", "conf", "readers", "windowing", "writers")
RUN: Any = typer.main.get_command(main.app).commands["run"]  # type: ignore[attr-defined]


# The language


def words_of_the_language() -> list[str]:
    calls = {**parser.POLICIES, **parser.EVICTIONS}
    named = [rule.form.name for rule in calls.values()]
    kinds = ["tumbling", "sliding", "timeInterval", "within", "retain", "partition by", "table"]
    kinds += ["around", "at", "match", "funnel"]
    assert tuple(kinds) == parser._WINDOWS
    clauses = ["every", "with unique", "retain all", "join", "prevailing"]
    return list(dict.fromkeys([*named, *kinds, *parser._OPTIONS, *parser.SETTINGS, *pattern_parser._OPTIONS, *clauses]))


def test_every_word_of_the_language_is_in_its_table() -> None:
    assert {row[0] for row in rows_of("windows/language", "All words")} == set(words_of_the_language())


@pytest.mark.parametrize("row", rows_of("windows/language", "All words"), ids=lambda row: row[0])
def test_word(row: list[str]) -> None:
    word, example, meaning = row
    assert re.search(rf"\b{word}\b", example)
    assert meaning, "says nothing"
    schema = pa.schema({"ts": pa.timestamp("us"), "user": pa.string(), "last": pa.bool_()})
    shifts = pa.schema({"start": pa.timestamp("us"), "end": pa.timestamp("us")})
    tables = [GivenTable(parse_windows("shifts from start to end", has_path=False), shifts)]
    options = Options(join=parse_join("q on user") if word in ("around", "at", "join", "prevailing") else None)
    plan.make_plan(parse_window(example), schema, ["user"], options=options, tables=tables)


def test_units_and_weekdays_are_named() -> None:
    names = [*filter(None, tokens.SECONDS), *clock_policies.UNITS, *clock_policies._WEEKDAYS]
    assert missing_from("windows/language", names) == []


# Aggregates


SAMPLES = (pa.int32(), pa.float32(), pa.bool_(), pa.string(), pa.decimal128(9, 2), pa.date32(), pa.timestamp("ms"))


def result_words(name: str) -> str:
    """The result column as the table says it."""
    columns = {name: kind for name, kind in TABLE[name].parameters.items() if not kind.literal}
    if not columns:
        return str(TABLE[name].result())
    first, kind = next(iter(columns.items()))
    fitting = [dtype for dtype in SAMPLES if kind.fits(dtype)]
    results = [TABLE[name].result(*[dtype] * len(columns)) for dtype in fitting]
    if results == fitting and len(fitting) != 1:  # of an aggregate, that of it
        return f"type of {first}"
    if results == [pa.list_(dtype) for dtype in fitting]:
        return f"list of {first}"
    if len(set(results)) == 1:
        return {"bool": "boolean", "string": "text"}.get(str(results[0]), str(results[0]).replace("double", "float64"))
    return "depends"


def test_every_aggregate_is_in_its_table_with_its_types() -> None:
    rows = rows_of("aggregates", "All aggregates")
    assert [row[0] for row in rows] == [
        "count(x), count()" if name == "count" else aggregate.signature for name, aggregate in TABLE.items()
    ]
    for name, (_, types, result, meaning) in zip(TABLE, rows, strict=True):
        assert types == "; ".join(kind.words for kind in TABLE[name].parameters.values())
        assert result == result_words(name)
        assert meaning, f"{name}: says nothing"


def test_types_that_depend() -> None:
    rows = rows_of("aggregates", "Result types that depend")
    names = {"int32": pa.int32(), "float32": pa.float32(), "float64": pa.float64(), "boolean": pa.bool_()}
    names |= {"decimal(9, 2)": pa.decimal128(9, 2), "date": pa.date32(), "timestamp in µs": pa.timestamp("us")}
    names |= {"duration in µs": pa.duration("us")}
    shown = {"int64": pa.int64(), "decimal(38, 2)": pa.decimal128(38, 2), "duration in s": pa.duration("s"), **names}
    assert [row[0] for row in rows] == list(names)
    assert {name for name in TABLE if result_words(name) == "depends"} == {"sum", "product", "range"}
    for kind, *cells in rows:
        for name, cell in zip(("sum", "product", "range"), cells, strict=True):
            (kind_of_x,) = TABLE[name].parameters.values()
            fits = kind_of_x.fits(names[kind])
            assert (cell != "no") == fits, (name, kind)
            assert not fits or TABLE[name].result(names[kind]) == shown[cell], (name, kind)


# Options, defaults, exit codes


def option_rows() -> dict[str, list[str]]:
    return {row[0].split(",")[0].split(" ")[0]: row for row in rows_of("options", "All options")}


def test_every_option_is_in_the_table_with_its_flags_and_variable() -> None:
    options = [p for p in RUN.params if p.param_type_name == "option"]
    flags = {max(p.opts, key=len): p for p in options}
    variables = {each.flag: each.variable for each in OPTIONS}
    assert set(flags) == set(option_rows())
    assert {opt for opts in main.app_options() for opt in opts if opt.startswith("-")} == {
        opt for p in options for opt in (*p.opts, *p.secondary_opts)
    }
    for name, row in option_rows().items():
        parameter = flags[name]
        assert {*parameter.opts, *parameter.secondary_opts} == set(re.findall(r"(?<!\S)--?[a-z-]+", row[0])), name
        wanted = (parameter.metavar or "").strip()
        assert wanted in row[0], f"{name}: {wanted}"
        told = None if name in ("--var", "--quiet", "--verbose") else "WINCLI_" + name[2:].replace("-", "_").upper()
        assert variables.get(name) == told, name


def shown(name: str, value: Any) -> str:
    """A default as docs and help write it."""
    if value == []:
        return "count()"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("name", defaults())
def test_default_in_the_docs_and_in_the_help_is_the_real_one(name: str) -> None:
    assert option_rows()["--" + name.replace("_", "-")][1] == shown(name, defaults()[name])
    text = next(p.help for p in RUN.params if p.name == name)
    words = {"input_format": "by file name", "delimiter": "a comma"}
    value = defaults()[name]
    if isinstance(value, bool):
        assert value is False
        assert "Default" not in text
    else:
        assert f"Default: {words.get(name, shown(name, value))}" in text


def test_words_for_defaults_match_the_defaults() -> None:
    assert (defaults()["input_format"], defaults()["delimiter"]) == ("auto", ",")
    assert [name for name, value in defaults().items() if value == []] == ["agg"]
    made = plan.make_plan(parse_window("count(1)"), pa.schema({"x": pa.int64()}))
    assert [bound.call.function for bound in made.aggregates] == ["count"]


def test_every_exit_code_and_command_is_documented() -> None:
    codes = {value for name, value in vars(messages).items() if name.isupper() and isinstance(value, int)}
    assert {int(row[0]) for row in rows_of("options", "Exit codes")} == codes
    commands: Any = typer.main.get_command(main.app)
    assert [name for name in commands.commands if f"`wincli {name}" not in text_of("options")] == []


# What goes in and comes out


def test_every_type_and_directive_of_a_schema_is_documented() -> None:
    directives = [f"%{letter}" for letter in (*time_formats.DIRECTIVES, *time_formats.SHORTHANDS)]
    assert missing_from("formats", [*TYPE_NAMES, *directives, *COMPRESSIONS]) == []


def test_every_format_is_on_its_pages_with_its_suffixes_and_in_the_readme() -> None:
    for name, form in FORMATS.items():
        (line,) = [line for line in text_of("formats").splitlines() if line.startswith(f"| `{name}` |")]
        assert [word for word in line.split("|")[2].split("`") if word.startswith(".")] == list(form.suffixes)
        assert f"- **{form.title}**: " in text_of("results")
        assert form.title in README.read_text(encoding="utf-8")


def test_every_reject_reason_is_documented() -> None:
    source = inspect.getsource(row_validation) + (ROOT / "readers" / "formats" / "split_rows.py").read_text()
    words = "type_overflow|expression_error|unparsable|late|ahead|inverted_interval"
    pattern = rf'"(null_\w+|nan_\w+|negative_\w+|{words})"'
    reasons = set(re.findall(pattern, source))
    assert {"null_order", "unparsable", "late"} < reasons
    assert {row[0] for row in rows_of("results", "Rejected rows")} == reasons


def test_every_column_of_a_result_and_of_the_rejects_is_documented() -> None:
    fixed = [*result_schema.FIXED, *result_schema.OUTPUTS]
    stream = ["_at", "_at_2", result_schema.TURN, result_schema.POS, "_tie", result_schema.ROW, result_schema.MARK]
    assert missing_from("results", [*fixed, *stream, *TIMING]) == []
    assert missing_from("results", [column.name for column in REJECT_FIELDS]) == []
    assert [row[0] for row in rows_of("results", "Why a pane was emitted")] == list(CLOSED_BY)


def test_every_key_of_the_manifest_is_documented() -> None:
    made = build_manifest(
        job={}, spec="", schema=pa.schema([]), order=[], order_why="", inputs=[InputFile("a", 1, None)],
        counts=Counts(), parts=[Part("p", 1, 1)], rejects=[], seconds={}, stream=None, ahead={}, windows_late=0,
    )  # fmt: skip
    assert [row[0] for row in rows_of("results", "The manifest")] == [*made, "place", "run", "checksum"]
    assert missing_from("results", [f.name for kind in (Counts, InputFile) for f in fields(kind)]) == []
    assert missing_from("results", list(made["parts"][0])) == []


# What a state keeps


def told_of_a_state() -> dict[str, list[str]]:
    """The columns of each table, but for those that an input gives it its own names for."""
    told: dict[str, list[str]] = {}
    for table, column, meaning in rows_of("state", "What is in a state"):
        assert meaning, "says nothing"
        told.setdefault(table, []).extend([column] if column.startswith("__") else [])
    return told


def test_every_column_of_a_state_is_documented() -> None:
    tables = state_tables
    assert told_of_a_state() == {
        "rows": [tables.POS, tables.RANK, tables.SHOWN, tables.LAST],
        "keys": [tables.ROWS, tables.BEGIN, tables.WINDOWS, tables.FULL, tables.BASELINE],
        "position": [],
        "advances": [watermark.POS, watermark.LEVEL],
        "windows": [PLACE, PASSED],
    }


LOG = "ts,user,amount\n2026-11-01T23:50:00,ann,1\n2026-11-01T23:55:00,bob,2\n2026-11-01T23:58:00,ann,4\n"


def test_tables_of_a_state_are_as_documented(tmp_path: Path) -> None:
    """The job of the page and an event-time window leave these tables and columns, and DuckDB reads them as shown."""
    (tmp_path / "events" / "dt=2026-11-01").mkdir(parents=True)
    (tmp_path / "events" / "dt=2026-11-01" / "a.csv").write_text(LOG)
    (_, job), *_ = fences(DOCS["backfill"], "yaml")
    (tmp_path / "nightly.yaml").write_text("\n".join(job))
    day = ("--start", "2026-11-01", "--end", "2026-11-02", "--progress", "none")
    panes = ["-w", "timeInterval, intervalDuration(60)", "--event-time", "ts", "--state", "state/panes"]
    for asked in (["nightly.yaml"], [*panes, "events", "panes"]):
        assert wincli_here("run", *asked, *day, cwd=tmp_path).code == 0
    found = {
        f"{path.parts[-4]} {path.stem.partition('-')[0]}": pq.read_schema(path).names
        for path in sorted((tmp_path / "state").glob("*/2026-11-01/window/*.parquet"))
    }
    told = told_of_a_state()
    assert found == {
        "panes advances": told["advances"],
        "panes keys": told["keys"],
        "panes rows": ["ts", *told["rows"]],
        "sessions keys": ["user", *told["keys"]],
        "sessions position": ["ts"],
        "sessions rows": ["user", "ts", "amount", *told["rows"]],
    }
    ((_, query),) = fences(DOCS["state"], "sql")
    rows = duckdb.connect().execute("\n".join(query).replace("state/", f"{tmp_path}/state/")).fetchall()
    assert rows == [(user, n, dt.datetime(2026, 11, 1, 23, at)) for user, n, at in (("ann", 2, 50), ("bob", 1, 55))]


def test_every_key_of_the_record_is_documented() -> None:
    below = text_of("state").partition("`unit.json` is the record")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*) \|", below, re.MULTILINE)))
    assert named == [*(field.name for field in fields(UnitRecord)), "checksum"]
    stages = next(line for line in below.splitlines() if line.startswith("| `stages`"))
    kinds = (StageRecord, OpenWindows)
    assert [field.name for kind in kinds for field in fields(kind) if f"`{field.name}`" not in stages] == []


# Installing


def test_one_name_installs_wincli_in_docs_and_messages() -> None:
    """There is no such package on an index: it is installed from its folder, with ``.`` as its name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    pages = [path for path in PAGES if path.name != "CHANGELOG.md"]
    modules = [path for top in TOP for path in (ROOT / top).rglob("*.py")]
    found = {path: path.read_text(encoding="utf-8") for path in (*pages, *modules, *(ROOT / "scripts").glob("*.sh"))}
    by_name = r"wincli\[[a-z]|(?:pip|pipx|tool) install (?:-\S+ )*['\"]?wincli\b"
    assert [place_of(path) for path, text in found.items() if re.search(by_name, text)] == []
    lists = [each for text in found.values() for each in re.findall(r"'\.\[([a-z,]+)\]'", text)]
    named = {name for each in lists for name in each.split(",")}
    asked = {name for text in found.values() for name in re.findall(r"install_extra\(\"(\w+)\"\)", text)}
    assert asked == {"cloud", "dataframes", "delta", "iceberg", "java", "lineage", "sketch"}
    assert {*asked, *named} <= extras.keys()
    in_readme = README.read_text(encoding="utf-8").partition("## Install")[2].partition("\n## ")[0]
    assert [name for name in asked if f"`{name}`" not in in_readme] == []
