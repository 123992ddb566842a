"""``wincli init``: look at an input, propose a job, run its first case, and write both files or print the job."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ....conf.job import PIPE
from ....conf.job_file import read_job_file
from ....readers.open import open_source
from ....readers.options import ReadOptions
from ....windowing.errors import ConfigError, InputError, printable, shown
from ....windowing.local_executor import LocalExecutor
from ....windowing.support.redaction import redacted
from ...console.messages import OK
from ...console.side_file import SideFile, check_side_files, write_side_file
from ...console.streams import say, terminal_width
from ..cases.case import Case, CsvRows, Part
from ..cases.command import cases_beside, headline
from ..cases.compare import text_of_found
from ..cases.parser import read_cases
from ..cases.run_cases import run_case, windows_of
from .job_text import aggregates, comment, job_text, key_words, order_words, scalar, time_words, window_words
from .proposal import FILE, Proposal, key_codes, propose
from .sample import Sample, take_sample
from .times import type_word

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
    options: dict[str, Any] = {"schema": types} if (types := _types(proposal)) else {}
    if len(list(csv.reader(io.StringIO(given)))) != len(given.splitlines()):
        options["multiline"] = True
    name = _file_name(proposal, int(at[0]))
    case = Case("rows of the log", 1, (Part(None, 1, {name: CsvRows(given)}),), _as_flags(options))
    windows = windows_of(read_job_file(str(job)), case)
    key = [name for name in proposal.key if name != FILE]
    names = [name for name in (*key, *_SHOWN, *aggregates(proposal)) if name in windows.column_names]
    text = "\n".join(_lines(job_name, given, name, options, _as_csv(names, windows, proposal.sample))) + "\n"
    # Read the case back and run it: what is written must pass.
    path = Path(cases_beside(str(job)))
    path.write_text(text, encoding="utf-8")
    outcome = run_case(read_job_file(str(job)), read_cases(str(path)).cases[0])
    if not outcome.passes:
        why = outcome.error or "; ".join(map(headline, outcome.mismatches))
        raise InputError(f"the proposed job does not give the windows of its own case: {why}", "report this input")
    return text


def _rows_around_a_boundary(proposal: Proposal) -> np.ndarray:
    sample, times = proposal.sample, proposal.times
    if times is None:
        return np.arange(min(_BEFORE + _AFTER, sample.rows.num_rows))
    codes = key_codes(sample, proposal.key)
    usable = times.known & (codes >= 0)
    rows = np.flatnonzero(usable)
    if not len(rows):
        raise InputError("no row has both a time and a key", "name another key with --key")
    order = np.lexsort([times.micros[rows], codes[rows], sample.piece[rows], sample.file[rows]])
    rows = rows[order]
    micros, key, file = times.micros[rows], codes[rows], sample.file[rows]
    same = (np.diff(key) == 0) & (np.diff(file) == 0)
    ends = same & (_crosses(proposal, micros))
    cut = int(np.flatnonzero(ends)[0]) if ends.any() else int(np.flatnonzero(same)[0]) if same.any() else 0
    near = np.arange(max(0, cut - _BEFORE + 1), min(len(rows), cut + 1 + _AFTER))
    return np.sort(rows[near[(key[near] == key[cut]) & (file[near] == file[cut])]])


def _crosses(proposal: Proposal, micros: np.ndarray) -> np.ndarray:
    if proposal.session is not None:
        return np.asarray(np.diff(micros) > proposal.session.micros)
    return np.asarray(np.diff(micros // proposal.step) != 0)


def _as_csv(columns: Sequence[str], rows: pa.Table, sample: Sample) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=sample.options.delimiter, lineterminator="\n")
    writer.writerow(columns)
    for number in range(rows.num_rows):
        writer.writerow([_cell(rows[name][number]) for name in columns])
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


def _cell(value: pa.Scalar) -> str:
    """Return a value as a cell of CSV: null and an empty text are both empty."""
    return "" if not value.is_valid or value.as_py() == "" else text_of_found(value)


def _types(proposal: Proposal) -> dict[str, str]:
    if proposal.sample.is_text:
        return {}
    schema = proposal.sample.rows.schema
    return {name: type_word(schema.field(name).type) for name in proposal.columns}


def _as_flags(options: Mapping[str, Any]) -> dict[str, Any]:
    quoted = {'"' + name.replace('"', '""') + '"': text for name, text in options.get("schema", {}).items()}
    types = {"schema": ", ".join(f"{name}:{text}" for name, text in quoted.items())} if quoted else {}
    return {**options, **types}


def _file_name(proposal: Proposal, row: int) -> str:
    """Return the name under which the rows are given: their file, where its name is the key."""
    name = proposal.inputs[0] if len(proposal.inputs) > 1 else ""
    if FILE not in proposal.key:
        return name
    file = proposal.sample.names[int(proposal.sample.file[row])]
    return f"{name.rstrip('/')}/{file}" if name else file


def _lines(job: str, given: str, name: str, options: Mapping[str, Any], expected: str) -> list[str]:
    job = shown(job)
    lines = [*comment([f"Cases of {job}: rows that are given, and the windows that must come of them."]), "#"]
    lines += [f"#   wincli test {job}", "", "cases:", "  - name: rows of the log"]
    if options:
        lines += ["    options:"]
        lines += ["      multiline: true"] if "multiline" in options else []
        lines += ["      schema:"] if "schema" in options else []
        lines += [f"        {scalar(each)}: {scalar(text)}" for each, text in options.get("schema", {}).items()]
    if name:
        lines += ["    given:", *_block(f"      {scalar(name)}:", given, 8)]
    else:
        lines += _block("    given:", given, 6)
    return [*lines, *_block("    expect:", expected, 6)]


def _block(key: str, text: str, indent: int) -> list[str]:
    """Return a text below its key; one that would not be read back as it is stands in quotes."""
    if text[:1].isspace() or not all(letter.isprintable() or letter == "\n" for letter in text):
        return [f"{key} {json.dumps(text)}"]
    return [f"{key} |", *(" " * indent + line if line else "" for line in text.splitlines())]


_NAME = "job.yaml"
_WIDTH = 110


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
    files = () if target is None else _files(target, is_forced)
    check_side_files(files, [("the input", path) for path in paths])
    with tempfile.TemporaryDirectory(prefix="wincli-init-") as name:
        folder = Path(name)
        (folder / "heads").mkdir()
        proposal = propose(paths, take_sample(paths, options, folder / "heads"), time, key)
        job, cases = _texts(proposal, folder / _NAME, Path(target).name if target is not None else _NAME)
    if target is None:
        say(job.removesuffix("\n"))
        return OK
    for file, text in zip(files, (job, cases), strict=True):
        write_side_file(file, text)
    _print(proposal, target)
    return OK


def _texts(proposal: Proposal, draft: Path, name: str) -> tuple[str, str]:
    """Return the texts of a job and of its cases. ``draft``: where the job is written to be run; ``name``: its name."""
    job = job_text(proposal, name)
    draft.write_text(job, encoding="utf-8")
    return job, case_text(proposal, draft, name)


def _files(target: str, is_forced: bool) -> tuple[SideFile, SideFile]:
    """Return the file of the job and that of its cases; what is there is replaced only where the user says so."""
    job, cases = (SideFile("-o", name, "a job", _NAME, lambda _: is_forced) for name in (target, cases_beside(target)))
    for file in (job, cases):
        if not is_forced and os.path.lexists(file.name):
            raise ConfigError(f"{printable(file.name)} is there already", "name another file with -o, or say --force")
    if not target.lower().endswith((".yaml", ".yml")):
        raise ConfigError(f"-o {printable(target)}: a job file is known by its ending", f"name one such as {_NAME}")
    return job, cases


def _print(proposal: Proposal, target: str) -> None:
    width = min(terminal_width() or _WIDTH, _WIDTH)
    say(redacted(shown(f"{proposal.inputs[0]}: {proposal.sample.extent}")))
    for label, sentences in _sections(proposal):
        text = redacted(shown(" ".join(sentences)))
        if text:
            say(textwrap.fill(text, width, initial_indent=f"{label:8}", subsequent_indent=" " * 8))
    beside = cases_beside(target)
    say(shown(f"{target} and {beside} are written; next: wincli test {target}"))


def _sections(proposal: Proposal) -> Iterable[tuple[str, Iterable[str]]]:
    yield "time", time_words(proposal)
    yield "order", order_words(proposal)
    yield "key", key_words(proposal)
    yield "gaps", window_words(proposal)
    yield "window", [shown(proposal.window)]
