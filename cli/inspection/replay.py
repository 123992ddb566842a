"""``wincli verify --replay``: units of a state run again from the state before them, and what they leave compared.

That the units of a span, each from what the one before it leaves, come out as their records say, shows two things: the
state before the span and the rows of the span give what all rows gave; and the files are what the runs left.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...conf.job import Job, read_job, with_later_keys, without_units
from ...conf.ranges import fill, has_date
from ...readers.options import ReadOptions
from ...windowing.columns.row_digest import RowDigest, digest_of_all
from ...windowing.errors import ConfigError, InputError, WincliError
from ...windowing.language.enrichment import at_unit
from ...windowing.ports import Counts, InputFile, Part
from ...windowing.support.amounts import count_of
from ...windowing.support.redaction import redacted, redacted_path
from ...writers.output.versions import version_of
from ...writers.state.layout import is_state
from ...writers.state.state import StateView, open_state, read_state
from ...writers.state.unit_record import StageRecord, UnitRecord
from ..console.messages import OK, Messages
from ..console.streams import clean, json_text, say
from ..launch import run_on_spark
from ..run.context import RunContext, owner
from ..run.fingerprint import absolute, job_id, same_inputs
from ..run.late_rows import LateBackfill, run_again, starts_from, unit_of
from ..run.request import read_options
from ..run.rerun import fixed_part
from ..run.steps import naming_unit
from ..run.unit_paths import list_inputs
from .comparison.compare import DiffRequest, UnitDiff, compare
from .comparison.text import DIFFERENT, renumbered
from .effect import copy_state, in_silence, result_at, with_outputs_in
from .results.result import results_at_path


@dataclass(frozen=True, slots=True)
class ReplayedUnit:
    """A unit that was run again.

    ``record``: what its run recorded. ``again``: what the replay recorded.
    ``differences``: in what the two are not the same, a line each.
    ``notes``: what could not be compared as a whole, and why.
    """

    record: UnitRecord
    again: UnitRecord
    differences: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.record.label


@dataclass(frozen=True, slots=True)
class Replay:
    """Units of the state ``path`` that were run again, oldest first, at least one."""

    path: str
    units: tuple[ReplayedUnit, ...]

    @property
    def differ(self) -> int:
        """How many units are not as they were recorded."""
        return sum(bool(unit.differences) for unit in self.units)

    @property
    def jobs(self) -> list[str]:
        return list(dict.fromkeys(job_id(unit.record.job) for unit in self.units))

    @property
    def rows_in(self) -> int:
        return sum(unit.again.rows_in for unit in self.units)

    @property
    def results(self) -> str | None:
        """The digest of all rows of all results."""
        return digest_of_all(digest for unit in self.units for digest in unit.again.digests)

    @property
    def state(self) -> str | None:
        """The digest of the window state behind the last unit."""
        return digest_of_all(stage.digest for stage in self.units[-1].again.stages)

    @property
    def line(self) -> str:
        """What was found, in one line."""
        first, last = self.units[0].label, self.units[-1].label
        span = first if first == last else f"{first}..{last}"
        words = [count_of(len(self.units), "unit"), f"{count_of(self.rows_in, 'row')} in"]
        words += [f"results {self.results or 'without a digest'}", f"state {self.state or 'without a digest'}"]
        of = f"job {', '.join(self.jobs)}, wincli {version_of('wincli')}"
        found = f"{self.differ:,} not as recorded" if self.differ else "as recorded"
        return f"replayed {span}: {', '.join(words)}: {found} ({of})"


_PUT_BACK = "put its files back as they were"

# The jobs of units, as their records have them, with their outputs in a scratch folder.


def span_of(records: Sequence[UnitRecord], span: str, path: str) -> tuple[UnitRecord, ...]:
    """Return the units of a span ``A..B``, both inclusive, or of one label. Raises `ConfigError` for another text."""
    labels = [record.label for record in records]
    ends = span.split("..") if ".." in span else [span, span]
    for label in ends:
        if label not in labels:
            hint = f"it has {labels[0]}..{labels[-1]}" if labels else "run a job first"
            raise ConfigError(f"--replay {span}: the state {path} has no unit {label!r}", hint)
    if len(ends) != 2 or labels.index(ends[0]) > labels.index(ends[1]):
        raise ConfigError(f"--replay {span!r} is no span of units", "write FIRST..LAST, both are replayed")
    return tuple(records[labels.index(ends[0]) : labels.index(ends[1]) + 1])


def job_of(record: UnitRecord) -> Job:
    """Return the job of a unit, with its folders of columns and its tables, but without what refuses a result."""
    job = read_job(without_units(with_later_keys(record.job)))
    job = job.model_copy(update={"expect": (), "max_rejects": None, "metrics_file": None, "lineage": None})
    unit = unit_of(record)
    tables = tuple(at_unit(each, fill(each.path, unit)) if has_date(each.path) else each for each in job.tables)
    return job.at(bases=_bases_of(record, job), tables=tables)


def _bases_of(record: UnitRecord, job: Job) -> tuple[str, ...]:
    """Return the folders of columns of a unit of a range; earlier versions recorded none, but for ``NAME=LABEL``."""
    if record.bases or record.start is None:
        return record.bases
    paths = ((path.rstrip("/"), *path.rstrip("/").rpartition("/")) for path in job.input)
    return tuple(dict.fromkeys(above if "=" in name else path for path, above, _, name in paths))


def read_again(record: UnitRecord, folder: Path, state: str) -> tuple[Job, Sequence[str]]:
    """Return the job that replays a unit in a scratch folder, and the paths that it reads.

    Raises `InputError` where a file that the unit has read, or one of its tables, is gone or has changed.
    """
    job = with_outputs_in(job_of(record), folder / record.label).model_copy(update={"state": state})
    if "-" in job.input or not record.inputs:
        was = "made of stdin" if record.inputs else "made from a table"
        raise _cannot(record, f"it was {was}", "keep the log in files")
    paths = {each.name: each.path for each in job.tables}
    for name, files in record.enrich.items():
        what = f"the table {name}"
        gone, more = _other_files(files, _list_now(record, what, [paths[name]], ReadOptions()))
        if gone or more:
            raise _cannot(record, f"{what} is not what it was: {gone or more}", _PUT_BACK)
    gone, more = _other_files(record.inputs, _list_now(record, "its input", job.input, read_options(job)))
    if gone:
        raise _cannot(record, gone, _PUT_BACK)
    if more and record.start is not None:
        raise _cannot(record, more, "run the range again: that corrects it")
    if not more:
        return job, job.input
    return job.at(bases=tuple(absolute(fixed_part(path)) for path in job.input)), [f.path for f in record.inputs]


def _list_now(record: UnitRecord, what: str, paths: Sequence[str], reading: ReadOptions) -> Sequence[InputFile]:
    try:
        return list_inputs(paths, reading)
    except InputError as error:
        raise _cannot(record, f"{what} is gone: {error.what}", "put its files back where they were") from error


def _other_files(was: Sequence[InputFile], now: Sequence[InputFile]) -> tuple[str | None, str | None]:
    """Return in words the first file that is not as a unit has read it, and the first that it has not read."""
    there, known = ({redacted_path(absolute(file.path)): file for file in files} for files in (now, was))
    others = (name for name, file in known.items() if name not in there or not same_inputs([file], [there[name]]))
    gone, more = next(others, None), next((name for name in there if name not in known), None)
    found = None if gone is None else f"{gone} {'has changed since' if gone in there else 'is gone'}"
    return found, None if more is None else f"{more} was not there when it ran"


def _cannot(record: UnitRecord, why: str, do: str) -> InputError:
    return InputError(f"{record.label} cannot be replayed: {why}", do)


def _check(view: StateView, records: Sequence[UnitRecord]) -> None:
    """Raise `InputError` where a unit has nothing to begin from, or what it began from is no longer there."""
    known, ran = {record.label: record for record in view.records}, set[str]()
    for record in records:
        before = None if record.previous is None else known.get(record.previous)
        if (
            record.previous is not None
            and record.previous not in ran
            and not (before and view.storage.has_data(before))
        ):
            what = f"the state of {record.previous}, from which it began, is no longer kept"
            raise _cannot(record, what, "begin with a later unit; a higher --keep keeps more states")
        if not starts_from(record, before):
            raise _cannot(record, "the state before it has changed since", "run the range again: that corrects it")
        if record.borrowed and not view.storage.has_data(record):
            what = "it has read late rows of later units, up to where its state says, and that is no longer kept"
            raise _cannot(record, what, "begin with a later unit; a higher --keep keeps more states")
        ran.add(record.label)


def replay(path: str, records: Sequence[UnitRecord], context: RunContext) -> Replay:
    """Run units of a state again in a scratch folder, and compare what they leave with what is recorded.

    ``records``: those of `span_of`. Changes nothing. Raises `InputError` where a unit cannot be replayed, and what its
    run raises, naming the unit.
    """
    view = read_state(path)
    _check(view, records)
    with tempfile.TemporaryDirectory(prefix="wincli-replay-") as folder:
        scratch = copy_state(path, Path(folder))
        job_in_scratch = partial(read_again, folder=Path(folder), state=scratch)
        for record in records:  # before the first one runs
            job_in_scratch(record)
            with naming_unit(unit_of(record)):
                for other in view.records:
                    if any(each.label == other.label for each in record.borrowed):
                        job_in_scratch(other)
        found = []
        with open_state(scratch, owner()) as state:
            late = LateBackfill(state, in_silence(context), sys.maxsize, job_in_scratch)
            for record in records:
                with _naming_state(path, scratch), naming_unit(unit_of(record)):
                    prior = None if record.previous is None else state.record(record.previous)
                    staged, again = run_again(late, record, prior, record.borrowed)
                _check_read(record, again)
                paths = [str(output.table.place.path) for output, _ in staged.outputs]
                differences = list(_of_account(record, again))
                notes = list[str]()
                is_kept = view.storage.has_data(record)
                recorded_before = next((each for each in view.records if each.label == record.previous), None)
                differences += _of_state(record, again, is_kept, recorded_before, notes)
                differences += _of_results(record, again, paths, notes)
                found.append(ReplayedUnit(record, again, tuple(differences), tuple(notes)))
    return Replay(path, tuple(found))


@contextmanager
def _naming_state(path: str, scratch: str) -> Iterator[None]:
    """Let errors of the body name the state in place of its copy."""
    try:
        yield
    except WincliError as error:
        error.what = error.what.replace(scratch, path)
        raise


def _check_read(record: UnitRecord, again: UnitRecord) -> None:
    """Raise `InputError` where what a replay has read is not what the unit has read."""
    pairs = [("its input", record.inputs, again.inputs)]
    pairs += [(f"the table {name}", files, again.enrich.get(name, ())) for name, files in record.enrich.items()]
    pairs += [
        (f"the input of {one.label}", one.files, other.files)
        for one, other in zip(record.borrowed, again.borrowed, strict=True)
    ]
    for what, was, now in pairs:
        gone, more = _other_files(was, now)
        if gone or more:
            raise _cannot(record, f"{what} is not what it was: {gone or more}", _PUT_BACK)


# What a unit has left, compared with its record: the row account, the window state, the results.


def _of_account(record: UnitRecord, again: UnitRecord) -> Iterator[str]:
    for was, now in zip(record.stages, again.stages, strict=True):
        one, other = (Counts.of(each.counts).recorded() | {"windows": each.windows} for each in (was, now))
        for name, number in other.items():
            if number != one[name]:
                yield f"{_stage(record, was)}row account: {name} is {number}, recorded {one[name]}"


def _of_state(
    record: UnitRecord, again: UnitRecord, is_kept: bool, prior: UnitRecord | None, notes: list[str]
) -> Iterator[str]:
    """Yield how the window state differs from the one that was recorded, or from its files where it has no digests.

    ``is_kept``: whether the recorded state is still there. ``prior``: the unit before, as recorded.
    """
    decides = is_kept and again.state == record.state  # as the commit of the replay has compared them
    for was, now in zip(record.stages, again.stages, strict=True):
        which = f"{_stage(record, was)}state"
        if was.registers != now.registers:
            yield f"{which}: clock and watermark are {dict(now.registers)}, recorded {dict(was.registers)}"
        if None in (was.digest, now.digest):
            if not is_kept:
                notes.append(f"{which}: its record has no digest, and it is no longer kept: not compared")
            elif decides:
                notes.append(f"{which}: its record has no digest: its rows were compared")
            else:
                yield f"{which}: its rows are not those that were recorded"
            continue
        if was.digest == now.digest:
            continue
        if decides:
            told = "arrival positions or numbers of windows and rows are others, as units before were corrected"
            notes.append(f"{which}: {told}; all that decides is as recorded")
            continue
        tables, others = _tables(was), _tables(now)
        for name in sorted({*tables, *others}):
            (rows, digest), (other_rows, other) = (each.get(name, (0, RowDigest())) for each in (tables, others))
            if digest != other:
                yield f"{which}, table {name}: {count_of(other_rows, 'row')}, {other}, recorded {rows:,}, {digest}"
    if prior is not None and not record.counts_on(prior):
        notes.append(f"its window numbers go on from those that {prior.label} left before that was corrected")


def _of_results(record: UnitRecord, again: UnitRecord, paths: Sequence[str], notes: list[str]) -> Iterator[str]:
    """Yield how the results differ from those that were recorded. ``paths``: where those of the replay are."""
    digests = record.digests or (None,) * len(record.outputs)
    for output, path, was, now in zip(record.outputs, paths, digests, again.digests, strict=True):
        if was is not None and was == now:
            continue
        there = result_at(output.path)
        if there is None or there.manifest.get("run") != record.run:
            if was is None:
                notes.append(f"result {output.shown}: its record has no digest, and it is not there: not compared")
            else:
                yield f"result {output.shown}: its digest is {now}, recorded {was}; that result is no longer there"
            continue
        pair = UnitDiff(record.label, there, result_at(path))
        tally = compare(DiffRequest("recorded", "replayed", head=0), [pair]).tally
        if pair.differs:
            counts = f"{tally.changed:,} changed, {tally.only_in_a:,} gone, {tally.only_in_b:,} new"
            yield f"result {output.shown}: {count_of(tally.total, 'window')} would differ: {counts}"
        elif tally.renumbered:
            notes.append(f"result {output.shown}: {renumbered(tally, 'would ')}")
        elif was is None and not pair.by_digest:
            notes.append(f"result {output.shown}: its record has no digest: its rows were compared")


def _tables(stage: StageRecord) -> Mapping[str, tuple[int, RowDigest]]:
    """Return rows and digest of each table of a window state, by name."""
    found = dict[str, tuple[int, RowDigest]]()
    for part in stage.parts:
        rows, digest = found.get(table_of_part(part), (0, RowDigest()))
        found[table_of_part(part)] = rows + part.rows, digest + (RowDigest.parse(part.digest) or RowDigest())
    return found


def table_of_part(part: Part) -> str:
    """Return the name of the table that a file of a window state is a part of."""
    return re.sub(r"-?(\d{5,})?\.parquet$", "", part.name)


def _stage(record: UnitRecord, stage: StageRecord) -> str:
    return f"stage {stage.name}: " if len(record.stages) > 1 else ""


# From the option to stdout and an exit code.


def print_replay(path: str, span: str, as_json: bool) -> int:
    """Run the units of a span again, print what was found, and return the exit code. Raises what `replay` raises."""
    if not is_state(path):
        if results_at_path(path)[0].manifest["job"].get("state"):
            raise ConfigError(f"--replay: {path} is no state", "name the folder of --state")
        what = f"{path} is no state, and its results are of runs without one"
        lacks = "none began from what another left, and none says what it left, so there is nothing to show of that"
        raise ConfigError(f"--replay: {what}: {lacks}", "run the job again elsewhere, then compare with wincli diff")
    records = span_of(read_state(path).records, span, path)
    job, started = job_of(records[0]), time.perf_counter()
    alone = job.model_copy(update={"start": None, "end": None})
    found = run_on_spark(alone, Messages(-1), started, lambda: partial(replay, path, records))
    if as_json:
        say(json_text(replay_json(found), 2))
    else:
        lines = [f"{unit.label}: {line}" for unit in found.units for line in (*unit.differences, *unit.notes)]
        say(*(clean(redacted(line)) for line in (*lines, found.line)))
    return DIFFERENT if found.differ else OK


def replay_json(found: Replay) -> dict[str, Any]:
    """Return what a replay has found as plain JSON values."""
    units = [
        {
            "unit": unit.label,
            "rows_in": unit.again.rows_in,
            "results": list(unit.again.digests),
            "recorded_results": list(unit.record.digests),
            "state": {stage.name: stage.digest for stage in unit.again.stages},
            "recorded_state": {stage.name: stage.digest for stage in unit.record.stages},
            "recorded_by": unit.record.versions.get("wincli"),
            "differences": list(map(redacted, unit.differences)),
            "notes": list(map(redacted, unit.notes)),
        }
        for unit in found.units
    ]
    return {
        "path": redacted_path(found.path),
        "as_recorded": not found.differ,
        "line": redacted(found.line),
        "rows_in": found.rows_in,
        "results": found.results,
        "state": found.state,
        "jobs": found.jobs,
        "wincli": version_of("wincli"),
        "units": units,
    }
