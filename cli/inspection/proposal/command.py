"""``wincli init``: look at an input, propose a job, run its first case, and write both files or print the job."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import os
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from ....conf.job import PIPE
from ....conf.job_file import read_job_file
from ....readers.open import open_source
from ....readers.options import ReadOptions
from ....readers.time_hints import advise
from ....windowing.errors import ConfigError, InputError, printable, shown
from ....windowing.language.tokens import column_text
from ....windowing.local_executor import LocalExecutor
from ....windowing.support.redaction import redacted, redacted_path
from ...console.amounts import count_of
from ...console.messages import OK
from ...console.side_file import SideFile, check_side_files, write_side_file
from ...console.streams import say, terminal_width
from ..cases.case import Case, CsvRows, Part, read_cases
from ..cases.command import cases_beside, headline
from ..cases.compare import text_of_found
from ..cases.run_cases import run_case, windows_of
from .proposal import FILE, Proposal, key_codes, propose
from .times import Sample, in_words, spec_text, take_sample, type_word

# What was seen in an input, in sentences: for the comments of the job file and for the terminal.


_FEW = 4
_MOST_COLUMNS = 20


def time_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the time of the rows."""
    times, order = proposal.times, proposal.order
    if times is None or order is None:
        yield "No column is a time that can be read, so windows count rows as they arrive."
        advice = advise(proposal.sample.source, None, ())
        yield f"But {shown(advice)}." if advice else "If one is, say how to read it with schema, and order_by it."
        return
    whence = " and ".join(map(shown, times.inputs))
    yield f"The time of a row is {whence}, from {_instant(order.first)} to {_instant(order.last)}."
    if times.others:
        yield (
            f"Its values could also be read as {' or '.join(map(shown, times.others[:_FEW]))}: "
            "change it if that is meant."
        )
    if order.untimed:
        yield f"{count_of(order.untimed, 'row')} have no time that can be read; a run rejects them."
    if proposal.other_times:
        yield f"Other times: {', '.join(shown(each.column) for each in proposal.other_times[:_FEW])}."


def type_words(proposal: Proposal) -> Iterator[str]:
    """Yield a sentence on the types of the other columns: a run finds them again, over all rows."""
    fields = [field for field in proposal.sample.rows.schema if field.name not in proposal.types]
    named = []
    for field in fields:
        word, is_text = type_word(field.type), pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        named.append(f"{shown(field.name)} {field.type if word == 'string' and not is_text else word}")
    more = f" and {len(named) - _MOST_COLUMNS} more" if len(named) > _MOST_COLUMNS else ""
    if named:
        other = "other " if proposal.types else ""
        yield f"Types of the {other}columns, as they were found: {', '.join(named[:_MOST_COLUMNS])}{more}."


def order_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the order of the rows."""
    order = proposal.order
    if order is None:
        return
    if order.early:
        share = _percent(order.early / proposal.sample.rows.num_rows)
        yield (
            f"Rows are not in order: {count_of(order.early, 'row')} ({share}) are before one that arrived earlier, "
            f"by up to {in_words(order.latest)}. A run sorts them."
        )
    else:
        runs = "" if proposal.sample.is_whole else ", as far as they were looked at"
        yield f"Rows are in order as they arrive{runs}."
    if order.ties:
        yield f"{count_of(order.ties, 'row')} have the time of the row before; these stay in the order of the file."
    if order.repeats:
        yield f"{count_of(order.repeats, 'row')} are the same as one before in all columns."


def key_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the key."""
    if proposal.key:
        known = {each.name: each.values for each in proposal.keys}
        named = [f"{shown(name)} ({known[name]:,} values)" if name in known else shown(name) for name in proposal.key]
        if proposal.key == (FILE,):
            yield "Each file is a series of its own, so its name is the key: _file."
        else:
            yield f"Each {', '.join(named)} has windows of its own."
    else:
        yield "No column looks like a key, so all rows are one sequence."
    others = [f"{shown(each.name)} ({each.values:,} values)" for each in proposal.keys if each.name not in proposal.key]
    if others:
        yield f"Other columns that could be the key: {', '.join(others[:_FEW])}."


def window_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the window, and on holes."""
    gaps, session = proposal.gaps, proposal.session
    if gaps is None:
        return
    if session is not None:
        yield (
            f"A session ends where nothing comes for {in_words(session.micros)}: in the valley between the times "
            f"inside of sessions, most often about {in_words(session.short)}, and between them, about "
            f"{in_words(session.long)}."
        )
        yield (
            f"That makes {count_of(session.sessions, 'session')} of {count_of(gaps.rows, 'row')}. With 20 % more "
            f"({spec_text(int(session.micros * 1.2))}) {_percent(session.moved_longer)} of the rows would move to "
            f"another session, with 20 % less ({spec_text(int(session.micros * 0.8))}) "
            f"{_percent(session.moved_shorter)}."
        )
    elif gaps.usual is not None:
        yield (
            f"Rows come every {in_words(gaps.usual)} ({_percent(gaps.share)} of them), so windows lie on the clock, "
            "and their length is a guess."
        )
        if gaps.holes:
            where = f"the longest is {in_words(gaps.longest)}, from {_instant(gaps.longest_at)}"
            yield f"{count_of(gaps.holes, 'hole')}: nothing came for more than three times as long; {where}."
    else:
        yield (
            "The times between rows show no valley between short and long ones, so there are no sessions: windows lie "
            "on the clock, and their length is a guess."
        )
    if gaps.usual is None and len(gaps.between):
        of_a_key = " of a key" if proposal.key else ""
        yield f"The longest time without a row{of_a_key} is {in_words(gaps.longest)}, from {_instant(gaps.longest_at)}."


def _percent(share: float) -> str:
    percent = share * 100
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.2g} %"


def _instant(micros: int) -> str:
    try:
        return (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)).isoformat(" ")
    except OverflowError:
        return f"{micros} us since 1970"


_WIDTH = 110


def _job_lines(proposal: Proposal, name: str) -> Iterator[str]:
    what = "Sessions" if proposal.session is not None else "Windows"
    yield from comment([f"{what} over {shown(proposal.inputs[0])}, proposed from {proposal.sample.extent}."])
    yield from ("#", f"#   wincli test {name}", f"#   wincli run {name}", "#")
    yield from comment(["A proposal knows the rows and not what they mean: change what you know better."])
    yield ""
    options, times = proposal.sample.options, proposal.times
    inputs = list(map(redacted_path, proposal.inputs))
    if inputs != list(proposal.inputs):
        yield from comment(["Its secrets are left out: keep them in the environment, or write ${NAME} for each."])
    yield from _list_lines("input", inputs)
    yield f"output: {scalar(proposal.output)}"
    if options.format != "auto":
        yield f"input_format: {options.format}"
    if options.delimiter != ",":
        yield f"delimiter: {scalar(options.delimiter)}"
    yield ""
    yield from comment(time_words(proposal))
    yield from _mapping_lines("schema", proposal.types)
    yield from comment(type_words(proposal))
    if times is not None:
        yield from _mapping_lines("let", {} if times.let is None else {times.column: times.let})
        yield from comment(order_words(proposal))
        yield f"order_by: {scalar(column_text(times.column))}"
    yield ""
    yield from comment(key_words(proposal))
    if proposal.key:
        yield from _list_lines("key", [column_text(each) for each in proposal.key])
    yield ""
    yield from comment(window_words(proposal))
    yield f"window: {scalar(proposal.window)}"
    yield from _mapping_lines("agg", aggregates(proposal))


def aggregates(proposal: Proposal) -> dict[str, str]:
    """Return the aggregates of the job by name: a count, and the mean of each measure."""
    return {"rows": "count()"} | {f"mean_{name}": f"mean({column_text(name)})" for name in proposal.measures}


def comment(sentences: Iterable[str]) -> Iterator[str]:
    """Yield sentences as lines of a comment."""
    for line in textwrap.wrap(
        redacted(shown(" ".join(sentences))), _WIDTH, break_long_words=False, break_on_hyphens=False
    ):
        yield f"# {line}"


def scalar(text: str) -> str:
    """Return a text as a value of YAML, in quotes where it would be something else without."""
    try:
        is_plain = yaml.safe_load(f"- {text}") == [text] and yaml.safe_load(f"a: {text}") == {"a": text}
    except (yaml.YAMLError, ValueError):
        is_plain = False
    return text if is_plain and "\n" not in text and text.isprintable() else json.dumps(text)


def _list_lines(key: str, values: Iterable[str]) -> Iterator[str]:
    texts = [scalar(value) for value in values]
    if len(texts) == 1:
        yield f"{key}: {texts[0]}"
        return
    yield f"{key}:"
    yield from (f"  - {text}" for text in texts)


def _mapping_lines(key: str, values: Mapping[str, str]) -> Iterator[str]:
    if values:
        yield f"{key}:"
        yield from (f"  {scalar(name)}: {scalar(text)}" for name, text in values.items())


# A first case for a proposed job: some rows of its input as they are, and the windows that come of them.


_BEFORE, _AFTER = 4, 3
_SHOWN = ("window_start", "window_end", "closed_by")


def case_text(proposal: Proposal, job: Path, job_name: str) -> str:
    """Return a file of cases with one case for the job file ``job``, which is run to see which windows come out.

    Raises what a run of these rows raises, and `InputError` where the case does not pass when it is read back.
    """
    at = _rows_around_a_boundary(proposal)
    # Rows as CSV: from texts as they are in the file.
    sample = proposal.sample
    columns = proposal.columns or tuple(sample.rows.column_names[:1])
    taken = _raw(sample, columns, at) if sample.is_text else sample.rows.select(list(columns)).take(pa.array(at))
    given = _as_csv(columns, taken, sample)
    schema = sample.rows.schema
    types = {} if sample.is_text else {name: type_word(schema.field(name).type) for name in proposal.columns}
    options: dict[str, Any] = {"schema": types} if types else {}
    if len(list(csv.reader(io.StringIO(given)))) != len(given.splitlines()):
        options["multiline"] = True
    # The name under which the rows are given: their file, where its name is the key.
    name = proposal.inputs[0] if len(proposal.inputs) > 1 else ""
    if FILE in proposal.key:
        file = sample.names[int(sample.file[at[0]])]
        name = f"{name.rstrip('/')}/{file}" if name else file
    quoted = ['"' + column.replace('"', '""') + f'":{text}' for column, text in types.items()]
    flags = {**options, "schema": ", ".join(quoted)} if types else options
    case = Case("rows of the log", 1, (Part(None, 1, {name: CsvRows(given)}),), flags)
    windows = windows_of(read_job_file(str(job)), case)
    key = [each for each in proposal.key if each != FILE]
    names = [each for each in (*key, *_SHOWN, *aggregates(proposal)) if each in windows.column_names]
    says = f"Cases of {shown(job_name)}: rows that are given, and the windows that must come of them."
    lines = [*comment([says]), "#", f"#   wincli test {shown(job_name)}", "", "cases:", "  - name: rows of the log"]
    if options:
        lines += ["    options:", *(["      multiline: true"] if "multiline" in options else [])]
        lines += [f"      {line}" for line in _mapping_lines("schema", types)]
    lines += ["    given:", *_block(f"      {scalar(name)}:", given, 8)] if name else _block("    given:", given, 6)
    lines += _block("    expect:", _as_csv(names, windows, sample), 6)
    text = "\n".join(lines) + "\n"
    # Read the case back and run it: what is written must pass.
    path = Path(cases_beside(str(job)))
    path.write_text(text, encoding="utf-8")
    outcome = run_case(read_job_file(str(job)), read_cases(str(path))[0])
    if not outcome.passes:
        why = outcome.error or "; ".join(map(headline, outcome.mismatches))
        raise InputError(f"the proposed job does not give the windows of its own case: {why}", "report this input")
    return text


def _rows_around_a_boundary(proposal: Proposal) -> np.ndarray:
    sample, times = proposal.sample, proposal.times
    if times is None:
        return np.arange(min(_BEFORE + _AFTER, sample.rows.num_rows))
    codes = key_codes(sample, proposal.key)
    rows = np.flatnonzero(times.known & (codes >= 0))
    if not len(rows):
        raise InputError("no row has both a time and a key", "name another key with --key")
    rows = rows[np.lexsort([times.micros[rows], codes[rows], sample.piece[rows], sample.file[rows]])]
    micros, key, file = times.micros[rows], codes[rows], sample.file[rows]
    same = (np.diff(key) == 0) & (np.diff(file) == 0)
    if proposal.session is not None:
        ends = same & (np.diff(micros) > proposal.session.micros)
    else:
        ends = same & (np.diff(micros // proposal.step) != 0)
    cut = int(np.flatnonzero(ends)[0]) if ends.any() else int(np.flatnonzero(same)[0]) if same.any() else 0
    near = np.arange(max(0, cut - _BEFORE + 1), min(len(rows), cut + 1 + _AFTER))
    return np.sort(rows[near[(key[near] == key[cut]) & (file[near] == file[cut])]])


def _as_csv(columns: Sequence[str], rows: pa.Table, sample: Sample) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=sample.options.delimiter, lineterminator="\n")
    writer.writerow(columns)
    for number in range(rows.num_rows):
        cells = (rows[name][number] for name in columns)  # null and an empty text are both empty
        writer.writerow(["" if not each.is_valid or each.as_py() == "" else text_of_found(each) for each in cells])
    return out.getvalue()


def _raw(sample: Sample, columns: Sequence[str], at: np.ndarray) -> pa.Table:
    """Return columns of a few rows as the texts that the files hold: the rows are found by their arrival positions."""
    options = replace(sample.options, schema=tuple((name, "string") for name in columns))
    source, wanted = open_source(sample.paths, options, LocalExecutor()), sample.pos[at]
    found = [pa.schema([(name, pa.string()) for name in columns]).empty_table()]
    for split in source.splits:
        if ((wanted >= split.base) & (wanted < split.base + split.rows)).any():
            batch = source.read(split, columns)
            found.append(batch.rows.filter(pa.array(np.isin(batch.pos, wanted))))
    return pa.concat_tables(found)


def _block(key: str, text: str, indent: int) -> list[str]:
    """Return a text below its key; one that would not be read back as it is stands in quotes."""
    if text[:1].isspace() or not all(letter.isprintable() or letter == "\n" for letter in text):
        return [f"{key} {json.dumps(text)}"]
    return [f"{key} |", *(" " * indent + line if line else "" for line in text.splitlines())]


_NAME = "job.yaml"


def init_job(
    paths: Sequence[str],
    options: ReadOptions,
    target: str | None,
    time: str | None,
    key: Sequence[str] | None,
    is_forced: bool,
) -> int:
    """Propose a job for the input ``paths``, and write it to ``target`` with a case beside it; None: print it.

    Raises `ConfigError` where a file is there already and ``is_forced`` is not set, or an option does not fit;
    `InputError` where the input cannot be read; `OutputError` where a file cannot be written.
    """
    if PIPE in paths:
        raise ConfigError("init reads an input more than once, and stdin can be read once", "write it to a file first")
    names = () if target is None else (target, cases_beside(target))
    files = [SideFile("-o", name, "a job", _NAME, lambda _: is_forced) for name in names]
    for file in files:  # what is there is replaced only where the user says so
        if not is_forced and os.path.lexists(file.name):
            raise ConfigError(f"{printable(file.name)} is there already", "name another file with -o, or say --force")
    if target is not None and not target.lower().endswith((".yaml", ".yml")):
        raise ConfigError(f"-o {printable(target)}: a job file is known by its ending", f"name one such as {_NAME}")
    check_side_files(files, [("the input", path) for path in paths])
    with tempfile.TemporaryDirectory(prefix="wincli-init-") as name:
        folder = Path(name)
        (folder / "heads").mkdir()
        proposal = propose(paths, take_sample(paths, options, folder / "heads"), time, key)
        draft, job_name = folder / _NAME, Path(target).name if target is not None else _NAME
        job = "".join(f"{line.rstrip()}\n" for line in _job_lines(proposal, shown(job_name)))
        draft.write_text(job, encoding="utf-8")
        cases = case_text(proposal, draft, job_name)
    if target is None:
        say(job.removesuffix("\n"))
        return OK
    for file, text in zip(files, (job, cases), strict=True):
        write_side_file(file, text)
    width = min(terminal_width() or _WIDTH, _WIDTH)
    say(redacted(shown(f"{proposal.inputs[0]}: {proposal.sample.extent}")))
    sections = (
        ("time", time_words(proposal)),
        ("order", order_words(proposal)),
        ("key", key_words(proposal)),
        ("gaps", window_words(proposal)),
        ("window", [shown(proposal.window)]),
    )
    for label, sentences in sections:
        if text := redacted(shown(" ".join(sentences))):
            say(textwrap.fill(text, width, initial_indent=f"{label:8}", subsequent_indent=" " * 8))
    say(shown(f"{target} and {cases_beside(target)} are written; next: wincli test {target}"))
    return OK
