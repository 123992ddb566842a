"""The docs are part of the product: nothing that can be asked for is missing, and what they show is so."""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer

import windowing
from cli import main, messages
from conf.job import defaults, make_job, origin_seconds, pairs, size
from readers import formats
from readers.files import COMPRESSIONS
from readers.options import TYPE_NAMES, parse_schema
from windowing import calls, local, parse, plan, policy_calls, tokens
from windowing.aggregates.table import TABLE
from windowing.engine.ports import REJECT_FIELDS, Counts, InputFile, Part
from windowing.errors import ConfigError
from windowing.panes import CLOSED_BY
from windowing.parse import parse_aggregate, parse_window
from windowing.screen import screen
from windowing.sequence import one_batch
from windowing.spec import Count, Delta, Gap, Punct, Time, Tumbling
from writers.manifest import build_manifest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}
PAGES = [README, ROOT / "CHANGELOG.md", ROOT / "ARCHITECTURE.md", *DOCS.values()]
RUN: Any = typer.main.get_command(main.app).commands["run"]  # type: ignore[attr-defined]


def text_of(page: str) -> str:
    return DOCS[page].read_text(encoding="utf-8")


def fences(path: Path, language: str) -> Iterator[tuple[int, list[str]]]:
    """Blocks of code of one language: the number of the first line, and the lines."""
    block: list[str] | None = None
    wanted = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if block is not None and wanted:
                yield number - len(block), block
            block, wanted = (None, False) if block is not None else ([], line.removeprefix("```").strip() == language)
        elif block is not None:
            block.append(line)


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Rows of the first table under a heading, without its head; backquotes are left out."""
    below = text_of(page).split(f"\n## {heading}\n", 1)
    assert len(below) == 2, f"docs/{page}.md has no section {heading!r}"
    found = re.search(r"(?:^\|.*\n)+", below[1], re.MULTILINE)
    assert found is not None
    lines = found[0].splitlines()[2:]
    split = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
    return [[cell.strip().replace("`", "").replace("\\|", "|") for cell in row] for row in split]


def missing_from(page: str, words: Iterator[str] | list[str]) -> list[str]:
    text = text_of(page)
    return [word for word in words if f"`{word}`" not in text]


# Drawings


@dataclass(slots=True)
class Drawing:
    """A fenced block ``window``: rows on a line, and below them the panes that they fall into.

    A letter is a row, a number above it in the same column is its value, ``-`` is null; ``|`` is a mark. Rows arrive
    from left to right, over all keys. A pane is what stands between ``[`` and ``]``.
    """

    place: str
    spec: str = ""
    options: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[int, Any]] = field(default_factory=dict)
    rows: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    marks: list[int] = field(default_factory=list)
    panes: dict[str | None, list[str]] = field(default_factory=dict)
    closed: dict[str | None, list[str]] = field(default_factory=dict)
    bounds: dict[str | None, list[str]] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    lone: int = 0

    def __str__(self) -> str:
        return f"{self.place} {self.spec}"


def drawings() -> list[Any]:
    """The place and the lines of each drawing in the docs."""
    found = [(f"{path.name}:{at}", lines) for path in PAGES for at, lines in fences(path, "window")]
    return [pytest.param(place, lines, id=f"{place} {lines[0].partition(':')[2].strip()}") for place, lines in found]


def read(place: str, lines: list[str]) -> Drawing:
    drawing = Drawing(place)
    for line in sorted(lines, key=lambda line: line.startswith("panes")):  # rows first
        label, _, rest = line.partition(":")
        word, _, key = label.strip().partition(" ")
        read_line(drawing, word, key or None, rest, " " * (len(label) + 1) + rest)
    return drawing


def read_line(drawing: Drawing, word: str, key: str | None, rest: str, line: str) -> None:
    cells = {found.start(): found[0] for found in re.finditer(r"\S+", line)}
    match word:
        case "window":
            drawing.spec = rest.strip()
        case "with":
            drawing.options = dict(pair.split("=") for pair in rest.split())
        case "rows":
            drawing.rows |= {at: (letter, key) for at, letter in cells.items()}
        case "marks":
            drawing.marks = list(cells)
        case "panes":
            drawing.panes[key] = read_panes(drawing, line)
        case "closed":
            drawing.closed[key] = rest.split()
        case "bounds":
            drawing.bounds[key] = rest.split()
        case "rejected":
            drawing.rejected = dict(entry.split() for entry in rest.split(","))
        case "lone":
            drawing.lone = int(rest)
        case _:
            drawing.values[word] = {at: value_of(cell) for at, cell in cells.items()}


def read_panes(drawing: Drawing, line: str) -> list[str]:
    for found in re.finditer(r"\w", line):
        letter, _ = drawing.rows.get(found.start(), ("nothing", None))
        assert letter == found[0], f"{drawing}: {found[0]} stands under {letter}"
    panes = re.findall(r"\[([^\]]*)\]", line)
    return ["".join(pane.split()) for pane in panes]


def value_of(cell: str) -> Any:
    words = {"-": None, "T": True, "F": False, "nan": float("nan")}
    return words[cell] if cell in words else float(cell) if "." in cell else int(cell)


def table_of(drawing: Drawing) -> pa.Table:
    at = sorted(drawing.rows)
    columns = {name: pa.array([values[i] for i in at]) for name, values in drawing.values.items()}
    letters, keys = zip(*(drawing.rows[i] for i in at), strict=True)
    return pa.table({"letter": letters, "key": pa.array(keys, pa.string()), **columns})


@pytest.mark.parametrize(("place", "lines"), drawings())
def test_drawing(place: str, lines: list[str]) -> None:
    drawing = read(place, lines)
    table = table_of(drawing)
    options = drawing.options
    result = windowing.aggregate(
        table,
        drawing.spec,
        key=["key"] if None not in drawing.panes else [],
        order_by=[options["order"]] if "order" in options else None,
        aggregates=["letters=collect(letter)"],
        at_end=options.get("end", "flush"),  # type: ignore[arg-type]
        empty=options.get("empty", "skip"),  # type: ignore[arg-type]
        origin=options.get("origin"),
        marks=[sum(row < mark for row in drawing.rows) for mark in drawing.marks] or None,
        rejected="drop",
    )
    out = result.to_pylist()
    panes = [row for row in out if row["window"] is not None]
    assert len(out) - len(panes) == drawing.lone
    for key, expected in drawing.panes.items():
        mine = [row for row in panes if key is None or row["key"] == key]
        assert ["".join(row["letters"] or []) for row in mine] == expected
        assert [row["closed_by"] for row in mine] == drawing.closed[key]
        bounds = [f"{row['window_start']}..{row['window_end']}" for row in mine]
        assert drawing.bounds.get(key, bounds) == bounds
    assert rejects(drawing, table) == drawing.rejected


def rejects(drawing: Drawing, table: pa.Table) -> dict[str, str]:
    order = [drawing.options["order"]] if "order" in drawing.options else None
    key = ["key"] if None not in drawing.panes else []
    made = plan.make_plan(parse_window(drawing.spec), table.schema, key, order)
    reasons = screen(made, one_batch(table.select(list(made.columns))))
    if reasons is None:
        return {}
    letters = table["letter"].to_pylist()
    return {letters[i]: reasons[i] for i in np.flatnonzero(reasons != None)}  # noqa: E711


def test_every_computed_kind_is_drawn() -> None:
    specs = [parse_window(read(*drawing.values).spec) for drawing in drawings()]
    drawn = {type(spec.policy) for spec in specs if isinstance(spec, Tumbling)}
    assert drawn == {Count, Delta, Time, Punct, Gap} == set(plan._COMPUTED)


def test_a_wrong_drawing_is_noticed() -> None:
    right = ["window:  count(2)", "rows:    a  b  c", "panes:  [a  b][c]", "closed:  count end"]
    test_drawing("here", right)
    with pytest.raises(AssertionError):
        test_drawing("here", [*right[:2], "panes:  [a]  [b  c]", right[3]])
    with pytest.raises(AssertionError, match="b stands under a"):
        test_drawing("here", [*right[:2], "panes:  [b  a][c]", right[3]])
    with pytest.raises(AssertionError):
        test_drawing("here", [*right[:3], "closed:  count count"])


# The language


def words_of_the_language() -> list[str]:
    named = [form.text.partition("(")[0] for form in calls._FORMS.values()]
    kinds = ["tumbling", "sliding", "timeInterval", "within", "retain", "partition by"]
    assert tuple(kinds) == parse._WINDOWS
    clauses = ["every", "with unique", "retain all"]
    return list(dict.fromkeys([*named, *kinds, *parse._OPTIONS, *parse._SETTINGS, *clauses]))


def test_every_word_of_the_language_stands_in_its_table() -> None:
    assert {row[0] for row in rows_of("windows", "All words")} == set(words_of_the_language())


@pytest.mark.parametrize("row", rows_of("windows", "All words") if "windows" in DOCS else [], ids=lambda row: row[0])
def test_word(row: list[str]) -> None:
    word, example, computed, _ = row
    spec = parse_window(example)
    assert re.search(rf"\b{word}\b", example)
    schema = pa.schema({"ts": pa.timestamp("us"), "user": pa.string(), "last": pa.bool_()})
    if computed == "yes":
        plan.make_plan(spec, schema, ["user"])
    else:
        assert computed == "not yet"
        with pytest.raises(ConfigError, match="does not compute it yet"):
            plan.make_plan(spec, schema, ["user"])


def test_units_and_weekdays_are_named() -> None:
    assert missing_from("windows", [*filter(None, tokens.SECONDS), *policy_calls._UNITS, *policy_calls._WEEKDAYS]) == []


# Aggregates


def test_every_aggregate_stands_in_its_table() -> None:
    assert [row[0] for row in rows_of("aggregates", "All aggregates")] == [
        "count(x), count()" if name == "count" else aggregate.signature for name, aggregate in TABLE.items()
    ]


SAMPLES = (pa.int32(), pa.float32(), pa.bool_(), pa.string(), pa.decimal128(9, 2), pa.date32(), pa.timestamp("ms"))


def result_words(name: str) -> str:
    """The result column as the table says it."""
    columns = [p for p in TABLE[name].parameters if not p.kind.literal]
    fitting = [dtype for dtype in SAMPLES if columns[0].kind.fits(dtype)]
    results = [TABLE[name].result(*[dtype] * len(columns)) for dtype in fitting]
    if len(fitting) > 1 and results == fitting:
        return f"type of {columns[0].name}"
    if results == [pa.list_(dtype) for dtype in fitting]:
        return f"list of {columns[0].name}"
    if len(set(results)) == 1:
        return {"bool": "boolean", "string": "text"}.get(str(results[0]), str(results[0]).replace("double", "float64"))
    return "depends"


@pytest.mark.parametrize("name", TABLE)
def test_types_of_aggregate(name: str) -> None:
    row = next(row for row in rows_of("aggregates", "All aggregates") if row[0].startswith(f"{name}("))
    kinds = [parameter.kind.words for parameter in TABLE[name].parameters]
    assert row[1] == "; ".join(kinds)
    assert row[2] == result_words(name)
    assert row[3], "says nothing"


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
            (parameter,) = TABLE[name].parameters
            fits = parameter.kind.fits(names[kind])
            assert (cell != "no") == fits, (name, kind)
            assert not fits or TABLE[name].result(names[kind]) == shown[cell], (name, kind)


# Options, defaults, exit codes


def option_rows() -> dict[str, list[str]]:
    return {row[0].split(",")[0].split(" ")[0]: row for row in rows_of("options", "All options")}


def test_every_option_stands_in_the_table_with_its_flags_and_variable() -> None:
    options = [p for p in RUN.params if p.param_type_name == "option"]
    flags = {max(p.opts, key=len): p for p in options}
    assert set(flags) == set(option_rows())
    assert {opt for opts in main.app_options() for opt in opts if opt.startswith("-")} == {
        opt for p in options for opt in p.opts
    }
    for name, row in option_rows().items():
        parameter = flags[name]
        assert set(parameter.opts) == set(re.findall(r"(?<!\S)--?[a-z-]+", row[0])), name
        wanted = (parameter.metavar or "").strip()
        assert wanted in row[0], f"{name}: {wanted}"
        assert row[2] == (parameter.envvar or "none"), name


def shown(name: str, value: Any) -> str:
    """A default as docs and help write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


@pytest.mark.parametrize("name", defaults())
def test_default_in_the_docs_is_the_real_one(name: str) -> None:
    assert option_rows()["--" + name.replace("_", "-")][1] == shown(name, defaults()[name])


@pytest.mark.parametrize("name", defaults())
def test_default_in_the_help_is_the_real_one(name: str) -> None:
    text = next(p.help for p in RUN.params if p.name == name)
    words = {"input_format": "by file name", "delimiter": "a comma"}
    value = defaults()[name]
    if isinstance(value, bool):
        assert value is False
        assert "Default" not in text
    else:
        assert f"Default: {words.get(name, shown(name, value))}" in text


def test_the_words_for_defaults_stand_for_them() -> None:
    assert (defaults()["input_format"], defaults()["delimiter"]) == ("auto", ",")


def test_every_exit_code_is_told() -> None:
    codes = {value for name, value in vars(messages).items() if name.isupper() and isinstance(value, int)}
    assert {int(row[0]) for row in rows_of("options", "Exit codes")} == codes


def test_every_command_is_told() -> None:
    commands: Any = typer.main.get_command(main.app)
    assert [name for name in commands.commands if f"`wincli {name}" not in text_of("options")] == []


# What goes in and comes out


def test_every_type_and_directive_of_a_schema_is_told() -> None:
    assert missing_from("formats", list(TYPE_NAMES)) == []
    assert missing_from("formats", [f"%{letter}" for letter in (*formats.DIRECTIVES, *formats.SHORTHANDS)]) == []
    assert missing_from("formats", list(COMPRESSIONS)) == []


def test_every_reject_reason_is_told() -> None:
    source = inspect.getsource(inspect.getmodule(screen)) + (ROOT / "readers" / "portions.py").read_text()  # type: ignore[arg-type]
    reasons = set(re.findall(r'"(null_\w+|nan_\w+|type_overflow|unparsable)"', source))
    assert {"null_order", "unparsable"} < reasons
    assert {row[0] for row in rows_of("results", "Rejected rows")} == reasons


def test_every_column_of_a_result_and_of_the_rejects_is_told() -> None:
    assert missing_from("results", [*plan._FIXED, "_at", "_at_2", plan.POS, plan.MARK]) == []
    assert missing_from("results", [column.name for column in REJECT_FIELDS]) == []
    told = {row[0]: row[1] for row in rows_of("results", "Why a pane came out")}
    assert list(told) == list(CLOSED_BY)


def test_every_key_of_the_manifest_is_told() -> None:
    made = build_manifest(
        job={}, spec="", schema=pa.schema([]), order=[], order_why="", inputs=[InputFile("a", 1, None)],
        counts=Counts(), parts=[Part("p", 1, 1)], rejects=[], seconds={}, stream=None,
    )  # fmt: skip
    assert [row[0] for row in rows_of("results", "The manifest")] == list(made)
    assert missing_from("results", [f.name for kind in (Counts, InputFile) for f in fields(kind)]) == []
    assert missing_from("results", list(made["parts"][0])) == []


# Examples


def commands() -> list[Any]:
    """Every ``wincli run`` of the docs, in one line each, and those of the help."""
    found = []
    for path in PAGES:
        for language in ("sh", "console", "python"):
            for at, lines in fences(path, language):
                whole = "\n".join(lines).replace("\\\n", " ")
                found += [(f"{path.name}:{at}", line) for line in re.findall(r"^.*\bwincli run (?!-h).*$", whole, re.M)]
    found += [("help", line) for line in re.findall(r"^ +wincli run .*$", main._EXAMPLES, re.MULTILINE)]
    return [pytest.param(line.strip().removeprefix("$ "), id=place) for place, line in found]


@pytest.mark.parametrize("line", commands())
def test_command_parses(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(line, comments=True)
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        monkeypatch.setenv(name, value)
    assert words[:2] == ["wincli", "run"]
    given = RUN.make_context("run", words[2:], max_content_width=100).params
    check_job(given)


def check_job(given: Mapping[str, Any]) -> None:
    """What ``wincli run`` checks before it opens an input."""
    asked = {name: value for name, value in given.items() if name not in ("quiet", "verbose")}
    job = make_job({**asked, "input": (asked["input"],), "spark_conf": pairs(asked["spark_conf"] or [])})
    spec = parse_window(job.window)
    assert isinstance(spec, Tumbling)
    assert isinstance(spec.policy, plan._COMPUTED)
    assert parse_window(str(spec)) == spec
    origin_seconds(job.origin)
    if job.column_types:
        parse_schema(job.column_types)
    for text in job.agg:
        call = parse_aggregate(text)
        assert ":" in call.function or call.function in TABLE


def test_there_are_commands_and_drawings() -> None:
    assert len(commands()) > 15
    assert len(drawings()) > 8
    assert size("96MiB") == 96 << 20


def test_python_of_the_library_page_runs() -> None:
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.testfile(str(DOCS["library"]), module_relative=False, optionflags=flags).failed == 0


def test_doctest_of_aggregate_runs() -> None:
    assert doctest.testmod(local).attempted > 0
    assert doctest.testmod(local).failed == 0


def test_user_functions_of_the_docs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ``# NAME.py`` block is a module, and each call of its functions in the page runs."""
    for _, lines in fences(DOCS["user-functions"], "python"):
        (tmp_path / lines[0].removeprefix("# ").strip()).write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    log = pa.table({"ts": [0, 1, 100], "latency": [1.0, 4.0, 2.0], "page": ["a", "b", "a"], "amount": [1, 2, 3]})
    asked = sorted(set(re.findall(r"(?<!\w)(?:\w+=)?docstats:\w+\([^)]*\)", text_of("user-functions"))))
    assert asked
    result = windowing.aggregate(log, "delta(ts, 60)", aggregates=asked)
    assert result.num_rows == 2


# Links


def anchors(path: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_resolve(path: Path) -> None:
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        page = (path.parent / name).resolve() if name else path
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_page_is_linked(path: Path) -> None:
    assert path == README or re.search(rf"\]\([^)]*{path.name}", README.read_text(encoding="utf-8"))
