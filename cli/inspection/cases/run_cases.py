"""Run cases in this process, by the very steps of `run`, and compare what they leave with what is expected."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ....conf.job_files.parser import JobFile
from ....readers.schema.kinds import kind_of_texts, type_of
from ....windowing.errors import ConfigError, WincliError
from ....windowing.planning.result_schema import MARK
from ....windowing.support.suggest import did_you_mean
from ...console.messages import Messages
from ...run.run_modes import local_context, run_request
from ..results.result import StoredRows, open_result_folder, rejects_of
from .case import Case, CsvRows, Part, Rows, Value
from .case_job import Run, runs_of
from .compare import Mismatch, compare
from .drawn_case import draw_mismatch
from .given_files import csv_rows
from .outcome import CaseOutcome

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
            error = _run_all(runs, case)
            if error is None and case.error is None:
                for run in runs:
                    found = list(_mismatches(run, case))
                    drawing = drawing or draw_mismatch(run, found)
                    mismatches += [mismatch for _, _, mismatch in found]
        except WincliError as wrong:
            error = str(wrong)
        seconds = time.perf_counter() - began
        error = None if error is None else error.replace(f"{folder}/", "")  # the user knows no temporary folder
        return CaseOutcome(case, seconds, tuple(mismatches), error, drawing)


def windows_of(file: JobFile, case: Case) -> pa.Table:
    """Return the windows that the last stage of a job makes of the rows of a case. Raises what the run raises."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        runs = runs_of(file, case, Path(folder))
        for run in runs:
            run_request(run.request, local_context(Messages(-1)))
        return _windows(list(runs[-1].outputs[-1].values())[-1])


def _run_all(runs: Sequence[Run], case: Case) -> str | None:
    """Do the runs; return what is wrong with how they ended, in words, or None."""
    try:
        for run in runs:
            run_request(run.request, local_context(Messages(-1)))
    except WincliError as error:
        if case.error is None:
            raise
        return None if case.error in str(error) else f"it fails with another error than {case.error!r}: {error}"
    return None if case.error is None else f"it does not fail, and the error {case.error!r} is expected"


def _mismatches(run: Run, case: Case) -> Iterator[tuple[Part, str, Mismatch]]:
    """Yield what is not as expected of a run: the part, the stage, empty for rejects, and the rows."""
    for part, outputs in zip(run.parts, run.outputs, strict=True):
        unit = f" of {part.label}" if part.label else ""
        last = list(outputs)[-1]
        for name, rows in (part.expect or {}).items():
            stage = name or last
            if stage not in outputs:
                raise ConfigError(f"expect: the job has no stage {stage!r}", did_you_mean(stage, outputs))
            what = f"windows{f' of stage {stage}' if len(outputs) > 1 else ''}{unit}"
            wanted = _rows_of(rows, run)
            found = compare(what, wanted, _windows(outputs[stage]), case.is_ordered, case.tolerance)
            if found is not None:
                yield part, stage, found
        rejected = compare(
            f"rejects{unit}", _rows_of(part.rejects, run), _rejects(outputs), is_ordered=False, tolerance=case.tolerance
        )
        if rejected is not None:
            yield part, "", rejected


def _rows_of(rows: Rows, run: Run) -> Sequence[Mapping[str, Value]]:
    return csv_rows(rows, run.request.job.delimiter) if isinstance(rows, CsvRows) else rows.rows


def _windows(folder: str) -> pa.Table:
    """Return the rows of a result in their order, without those that are only marks; none where nothing was written."""
    if not Path(folder).exists():
        return pa.table({})
    table = _table(open_result_folder(folder).rows)
    if MARK in table.column_names:
        table = table.filter(pc.fill_null(pc.not_equal(table[MARK], "only"), True))
    return table


def _rejects(outputs: Mapping[str, str]) -> pa.Table:
    """Return the rejects of all stages: the columns of their rows, and why they were rejected."""
    found = []
    for folder in outputs.values():
        stored = rejects_of(open_result_folder(folder)) if Path(folder).exists() else None
        if stored is not None:
            found.append(_flat(_table(stored)))
    return pa.concat_tables(found, promote_options="permissive") if found else pa.table({})


def _table(stored: StoredRows) -> pa.Table:
    return pa.concat_tables([stored.schema.empty_table(), *stored.tables()])


def _flat(rejects: pa.Table) -> pa.Table:
    """Return rejects with the columns of the row beside the reason; a column of the row wins over one of ours."""
    row = rejects.column("row").combine_chunks()
    columns = {name: rejects.column(name) for name in _REASONS}
    columns["file"] = pc.replace_substring_regex(columns["file"], _IN_FOLDER, "")
    if pa.types.is_struct(row.type):
        names = [field.name for field in row.type if field.name != "reason"]
        columns |= {name: _as_times(pc.struct_field(row, name)) for name in names}
    return pa.table(columns)


def _as_times(column: pa.Array) -> pa.Array:
    """Return times for a column of texts that all are times: rejects are stored as JSON."""
    if not pa.types.is_string(column.type):
        return column
    kind = type_of(kind_of_texts(pa.chunked_array([column])))
    return column.cast(kind) if pa.types.is_temporal(kind) else column
