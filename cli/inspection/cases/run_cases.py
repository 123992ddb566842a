"""Run cases in this process, by the very steps of `run`, and compare what they leave with what is expected."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....conf.job import BESIDE, Job
from ....conf.job_builder import ONLY, make_job
from ....conf.job_file import JobFile
from ....conf.ranges import STEPS, Kind, Unit, before_date, fill, has_date, unit_at, unit_of
from ....readers.open import open_source
from ....readers.options import parse_schema
from ....readers.values.kinds import kind_of_texts, type_of
from ....windowing.drawings.draw import draw
from ....windowing.errors import ConfigError, WincliError, did_you_mean
from ....windowing.language.enrichment import with_path
from ....windowing.language.joins import parse_join
from ....windowing.local_executor import LocalExecutor
from ...console.messages import Messages
from ...run.context import local_context
from ...run.request import read_options
from ...run.run_modes import run_request
from ..comparison.compare import without_marks
from ..results.result import StoredRows, open_result_folder, rejects_of
from .case import Case, Part, Row, Rows, csv_rows, write_rows
from .compare import CaseOutcome, Mismatch, compare

# The job of a case: the job that `run` would make of the job file, with every path in the folder of the case.


_LAST_DATE = re.compile(r".*\{date(?::[^{}]+)?\}[^/]*", re.DOTALL)
_SHAPE = {"output_format": "parquet"}
_BETWEEN = {"output_format": "parquet", "plain": False}
"""A stage before the last leaves what the next stage reads, whatever form it is published in."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a case, and where its results are.

    ``outputs``: for each part, the folder of each stage by name, in their order; that of the job comes last.
    ``inputs``: for each part, the paths of its rows.
    """

    job: Job
    parts: tuple[Part, ...]
    outputs: tuple[Mapping[str, str], ...]
    inputs: tuple[tuple[str, ...], ...]


def runs_of(file: JobFile, case: Case, folder: Path) -> list[Run]:
    """Write the rows of a case below ``folder``, and return its runs, to be done one after the other.

    Raises `ConfigError` or `SpecError` where the case does not fit the job, or the job is wrong.
    """
    if case.is_range:
        return [_run(file, case, folder, case.parts)]
    if len(case.parts) > 1 and "state" not in {**file.values, **case.options}:
        what = f"case {case.name!r} lists units, and each would be a job by itself: there is no state"
        raise ConfigError(what, "name them by their dates, or write a case for each")
    return [_run(file, case, folder / f"run-{at + 1}", (part,), folder) for at, part in enumerate(case.parts)]


def _run(file: JobFile, case: Case, folder: Path, parts: Sequence[Part], shared: Path | None = None) -> Run:
    """Return one run. ``shared``: the folder of the state that later runs go on from."""
    values = {**file.values, **case.options}
    kind = values.get("unit", "day")
    units = [_unit(case, part, kind) for part in parts] if case.is_range else [None]
    delimiter = str(values.get("delimiter", ","))
    delimiter = delimiter if len(delimiter) == 1 else ","  # the job itself refuses one that is wrong
    inputs = _texts(values.get("input", "input"))
    # A path of the case for each input of the job; in a range with the part of it that names the unit.
    own = [f"{folder}/input-{at}" + (_below(path) if case.is_range else "") for at, path in enumerate(inputs)]
    beside = {key: list(map(parse, _texts(values.get(key, [])))) for key, parse in BESIDE.items()}
    paths = {each.name: each.path for of_key in beside.values() for each in of_key}
    joins = (parse_join(str(each["join"])) for each in (values, *values.get("stages", ())) if each.get("join"))
    tables = _tables(case, folder, paths | {each.name: each.path for each in joins if each.path is not None})
    placed = []
    for part, unit in zip(parts, units, strict=True):
        folders = list(own)
        if unit is not None:
            folders = [fill(path, unit) if has_date(path) else f"{path}/dt={unit.label}" for path in own]
        for name, rows in part.given.items():
            at, below = _place(case, name, inputs)
            write_rows(rows, Path(folders[at]), below, delimiter)
        placed.append(tuple(folders))
    for part, unit in zip(parts, units, strict=True):
        for name, rows in {**case.tables, **part.tables}.items():
            write_rows(rows, Path(fill(tables[name], unit) if unit else tables[name]), "rows", delimiter)
    stages = [str(stage.get("name", f"stage-{at + 1}")) for at, stage in enumerate(values.get("stages", ()))] or [ONLY]
    places = [str(folder / f"output-{at}") + ("/{date}" if case.is_range else "") for at in range(len(stages))]
    flags = {**case.options, "input": own, "output": places[-1], **_SHAPE}
    for key, requests in beside.items() if tables else ():
        flags[key] = [str(with_path(each, tables.get(each.name, each.path))) for each in requests]
    if values.get("join"):
        flags["join"] = _joined(str(values["join"]), tables)
    if "state" in values:
        flags["state"] = str((shared or folder) / "state")
    if case.is_range:
        found = [unit for unit in units if unit is not None]
        flags |= {"start": found[0].label, "end": unit_at(found[-1].ordinal + 1, kind).label}
    left_out = {"start", "end", "mode", "partition_by", "redo", "input", "output"}
    left_out |= set() if case.checks_expectations else {"expect", "max_rejects"}
    kept: dict[str, Any] = {key: value for key, value in file.values.items() if key not in left_out}
    if "stages" in kept:
        named = ((stage, stage.get("join")) for stage in kept["stages"])
        kept["stages"] = [stage if join is None else {**stage, "join": _joined(join, tables)} for stage, join in named]
        *before, last = [{k: v for k, v in stage.items() if k != "partition_by"} for stage in kept["stages"]]
        between = [{**stage, **_BETWEEN, "output": place} for stage, place in zip(before, places, strict=False)]
        kept["stages"] = [*between, {**last, **(_SHAPE if "output_format" in last else {})}]
    job = make_job(flags, replace(file, values=kept), parse_schema)
    filled = [[fill(place, unit) if unit else place for place in places] for unit in units]
    return Run(job, tuple(parts), tuple(dict(zip(stages, each, strict=True)) for each in filled), tuple(placed))


def _unit(case: Case, part: Part, kind: Kind) -> Unit:
    if kind not in STEPS:
        raise ConfigError(f"unit cannot be {kind!r}", did_you_mean(kind, STEPS))
    unit = unit_of(str(part.label), kind)
    if unit is None:
        raise ConfigError(f"case {case.name!r}: {part.label} is no {kind}", f"write it as {_LABELS[kind]}")
    return unit


_LABELS: Mapping[Kind, str] = {"hour": "2026-11-01T05", "day": "2026-11-01", "week": "2026-11-02 (a Monday)"}


def _joined(text: str, tables: Mapping[str, str]) -> str:
    """Return the text of a join with the place of the rows that the case has of its right side, where it has any."""
    join = parse_join(text)
    return str(with_path(join, tables[join.name])) if join.name in tables else text


# Inputs


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _below(path: str) -> str:
    """Return the part of a template that differs from unit to unit, without wildcards; none where there is none."""
    if not has_date(path):
        return ""
    folder = before_date(path)
    rest = path if folder == "." else path[len(folder) :]
    found = _LAST_DATE.match(rest)
    assert found is not None
    return "/" + re.sub(r"[*?\[\]]", "x", found[0]).lstrip("/")


def _place(case: Case, name: str, inputs: Sequence[str]) -> tuple[int, str]:
    if name in inputs:
        return inputs.index(name), "rows"
    for at, path in enumerate(inputs):
        if name.startswith(f"{path.rstrip('/')}/"):
            return at, str(PurePosixPath(name).relative_to(PurePosixPath(path)))
    if len(inputs) == 1:
        return 0, name or "rows"
    what = f"case {case.name!r}: {name or 'given'} names no input of the job"
    raise ConfigError(what, did_you_mean(name, inputs) if name else f"name one of {', '.join(inputs)}")


# Enrich tables


def _tables(case: Case, folder: Path, paths: Mapping[str, str]) -> dict[str, str]:
    """Return, by name, where the case has the rows of enrich tables; a table without rows is that of the job.

    ``paths``: where the job has each of its tables.
    """
    given = sorted({*case.tables, *(name for part in case.parts for name in part.tables)})
    for name in given:
        if name not in paths:
            what = f"case {case.name!r}: the job has no enrich table {name!r}, and no join with it"
            raise ConfigError(what, did_you_mean(name, paths) if paths else "leave it out")
    below = [_below(paths[name]) if case.is_range else "" for name in given]
    return {name: f"{folder}/table-{at}{part}" for at, (name, part) in enumerate(zip(given, below, strict=True))}


# The windows over the rows of a case, drawn as in notebooks, for the first window that is not as expected.


_MOST_ROWS = 24
_AS_THEY_ARE = (
    "at_end", "empty", "closed", "ends", "partial", "event_time", "lag", "min_gap", "max_ahead", "max_open_rows",
    "emit_evicted",
)  # fmt: skip
_AS_TEXTS = ("let", "where", "distinct", "having")


def draw_mismatch(run: Run, found: Sequence[tuple[Part, str, Mismatch]]) -> str | None:
    """Return the windows of the stage that has the first window which is not as expected, over the key of that window.

    None where no window differs, or where it cannot be drawn: over columns of an enrich table, for example.
    """
    first = next(((part, stage, each) for part, stage, each in found if stage), None)
    if first is None:
        return None
    part, stage, mismatch = first
    number = run.parts.index(part)
    places = list(run.outputs[number])
    own, marks = run.job.stages[at := places.index(stage)], None
    options = own.options
    given: dict[str, Any] = {name: getattr(options, name) for name in _AS_THEY_ARE}
    given |= {name: getattr(own, name) for name in _AS_TEXTS} | {"limit": _MOST_ROWS, "limit_keys": 5, "key": own.key}
    given["order_by"] = "arrival" if own.order_by == ("arrival",) else own.order_by
    given["at_end"] = "flush" if options.at_end == "hold" else options.at_end  # what is open is drawn as such
    if options.origin:
        given["origin"] = options.origin
    try:
        if at == 0:
            rows, marks = _input_rows(run, number)
        else:
            rows = _table(open_result_folder(run.outputs[number][places[at - 1]]).rows)
        given["marks"] = marks if own.marks in ("auto", "files") else None if own.marks == "none" else own.marks
        # The key of the first row that differs, where its texts fit the types of the key.
        if own.key and mismatch.pairs and set(own.key) <= {*mismatch.columns} & {*rows.column_names}:
            texts = dict(
                zip(mismatch.columns, mismatch.pairs[0].found or mismatch.pairs[0].expected or (), strict=True)
            )
            with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                types = {name: rows.schema.field(name).type for name in own.key}
                only = {name: pa.scalar(texts[name]).cast(kind).as_py() for name, kind in types.items()}
                given |= {"only": only, "limit_keys": 1}
        return str(draw(rows, own.spec, **given))
    except WincliError:
        return None  # the drawing is an extra: the rows that differ are listed without it


def _input_rows(run: Run, number: int) -> tuple[pa.Table, list[int] | None]:
    """Return the rows that are given to a part, and where its files end: after how many rows.

    With a state they are the rows of all parts up to it, as the windows of a part may begin in one before.
    """
    first = 0 if run.job.state is not None else number
    sources = [open_source(paths, read_options(run.job), LocalExecutor()) for paths in run.inputs[first : number + 1]]
    tables, ends, rows = [], list[int](), 0
    for source in sources:
        names = source.schema.names
        tables += [source.schema.empty_table(), *(source.read(split, names).rows for split in source.splits)]
        files = [sum(s.rows for s in source.splits if s.file == at) for at in range(len(source.files))]
        for count in files:
            rows += count
            ends.append(rows)
    is_stream = any(source.stream is not None for source in sources)
    return pa.concat_tables(tables, promote_options="permissive"), None if is_stream else ends


PREFIX = "wincli-test-"
_REASONS = ("reason", "file", "line", "detail", "text")
_IN_FOLDER = f"^.*/{PREFIX}[^/]*/(run-[0-9]+/)?"


def run_case(file: JobFile, case: Case) -> CaseOutcome:
    """Run one case in a temporary folder, which is gone afterwards. Raises nothing that a user can cause."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        error, mismatches, drawing = None, [], None
        try:
            runs = runs_of(file, case, folder)
            failure: WincliError | None = None
            try:
                for run in runs:
                    run_request(run.job, local_context(Messages(-1)))
            except WincliError as raised:
                if case.error is None:
                    raise
                failure = raised
            if failure is not None and str(case.error) not in str(failure):
                error = f"it fails with another error than {case.error!r}: {failure}"
            elif failure is None and case.error is not None:
                error = f"it does not fail, and the error {case.error!r} is expected"
            for run in runs if case.error is None else ():
                found = list(_mismatches(run, case))
                drawing = drawing or draw_mismatch(run, found)
                mismatches += [mismatch for _, _, mismatch in found]
        except WincliError as wrong:
            error = str(wrong)
        seconds = time.perf_counter() - began
        error = None if error is None else error.replace(f"{folder}/", "")  # the user knows no temporary folder
        return CaseOutcome(case, seconds, tuple(mismatches), error, drawing)


def _mismatches(run: Run, case: Case) -> Iterator[tuple[Part, str, Mismatch]]:
    """Yield what is not as expected of a run: the part, the stage, empty for rejects, and the rows."""

    def listed(rows: Rows) -> Sequence[Row]:
        return csv_rows(rows, run.job.delimiter) if isinstance(rows, str) else rows

    for part, outputs in zip(run.parts, run.outputs, strict=True):
        unit = f" of {part.label}" if part.label else ""
        last = list(outputs)[-1]
        for name, rows in (part.expect or {}).items():
            stage = name or last
            if stage not in outputs:
                raise ConfigError(f"expect: the job has no stage {stage!r}", did_you_mean(stage, outputs))
            what = f"windows{f' of stage {stage}' if len(outputs) > 1 else ''}{unit}"
            windows = pa.table({})  # nothing was written
            if Path(outputs[stage]).exists():
                windows = without_marks(_table(open_result_folder(outputs[stage]).rows))
            found = compare(what, listed(rows), windows, case.is_ordered, case.tolerance)
            if found is not None:
                yield part, stage, found
        rejected = compare(f"rejects{unit}", listed(part.rejects), _rejects(outputs), False, case.tolerance)
        if rejected is not None:
            yield part, "", rejected


def _rejects(outputs: Mapping[str, str]) -> pa.Table:
    """Return the rejects of all stages: the columns of their rows, and why they were rejected."""
    found = []
    for folder in outputs.values():
        stored = rejects_of(open_result_folder(folder)) if Path(folder).exists() else None
        if stored is not None:
            # Rejects with the columns of the row beside the reason; a column of the row wins over one of ours.
            rejects = _table(stored)
            row = rejects.column("row").combine_chunks()
            columns = {name: rejects.column(name) for name in _REASONS}
            columns["file"] = pc.replace_substring_regex(columns["file"], _IN_FOLDER, "")
            if pa.types.is_struct(row.type):
                names = [field.name for field in row.type if field.name != "reason"]
                columns |= {name: pc.struct_field(row, name) for name in names}
                for name in names:
                    if pa.types.is_string(columns[name].type):  # rejects are stored as JSON, which has no times
                        kind = type_of(kind_of_texts(pa.chunked_array([columns[name]])))
                        columns[name] = columns[name].cast(kind) if pa.types.is_temporal(kind) else columns[name]
            found.append(pa.table(columns))
    return pa.concat_tables(found, promote_options="permissive") if found else pa.table({})


def _table(stored: StoredRows) -> pa.Table:
    return pa.concat_tables([stored.schema.empty_table(), *stored.tables()])
