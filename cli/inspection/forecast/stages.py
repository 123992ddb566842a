"""The input and the stages of a job as a run plans them: the same objects, over outputs that are not opened."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ....conf.job import PIPE, Job
from ....conf.spark import usable_cores
from ....readers.joined import is_right, sides_of
from ....readers.source import FileSource
from ....windowing.columns.arrays import is_instant
from ....windowing.enrichment.step import enrichments_of, without_enrichments
from ....windowing.language.joins import SIDE
from ....windowing.language.sentences import sentences_of
from ....windowing.language.spec import AggregateCall
from ....windowing.local_executor import LocalExecutor
from ....windowing.planning.matched_calls import shown_calls
from ....windowing.planning.plan import Plan
from ....windowing.planning.result_schema import FIXED, MARK, OUTPUTS
from ....windowing.ports import ColumnRange
from ....windowing.spark.boot import Progress
from ....windowing.spark.setup import is_local
from ....windowing.support.formats import FORMATS
from ....windowing.support.redaction import redacted_path
from ....writers.output.output import output_to_plan
from ...console.progress import Show
from ...run.incremental_run import IncrementalRun
from ...run.job_plan import JobPlan, plan_job
from ...run.open_input import NOTHING_KNOWN, Earlier, enriched_input, open_input, open_unit
from ...run.reports import place_of_marks
from ...run.request import read_options
from ...run.stage_plans import StagePlan

Values = Mapping[str, Any]
"""A part of a forecast as it is in the JSON object; the function that makes it says what its keys are."""

# Where the type of each input column comes from, and what each column of a result holds, in words.


_MOST_TEXT = 16 << 20  # bytes of a split that are read again to name the value which made a column text
_FIXED: Mapping[str, str] = {
    "window": "number of the window of its key",
    "window_start": "first bound of the window",
    "window_end": "last bound of the window",
    "closed_by": "what ended the window",
    "timing": "whether rows came too late for the window to be on time",
    "index": "number of the output of one window",
    MARK: "whether a window mark follows the row",
}


def input_columns(job: Job, source: FileSource, plan: Plan) -> Iterator[Values]:
    """Yield all columns of the input and of the expressions over it, and as ``origin`` where their types come from."""
    base = without_enrichments(source)
    tables = {
        field.name: f"enrich table {each.bound.enrichment.name}"
        for each in enrichments_of(source)
        for field in each.bound.fields
    }
    if (sides := sides_of(source)) is not None:
        of_right = {name: own for name, own in sides.of_right.items() if name not in sides.left.names}
        tables |= {name: f"{own} of the joined log {sides.join.name}" for name, own in of_right.items()}
        tables[SIDE] = "side of the row"
    kinds = [kind for kind in base.kinds if kind.stored is None]  # not those of the right side of a join
    module = type(kinds[0].reader).__module__
    form = next(name for name, each in FORMATS.items() if module.endswith(each.reader.rpartition(".")[2]))
    declared, lets = dict(read_options(job).schema), dict(plan.options.let)

    def origin_in_files(name: str) -> str:
        if name in declared:
            return f"--schema {declared[name]}"
        if name in base.constants:
            return "folder names"
        place = base.type_places.get(name, "")
        if job.state is not None and place.startswith(f"the state {job.state} at "):
            return place
        if not FORMATS[form].is_text:
            lacking = sum(name not in kind.names for kind in kinds)
            return form if not lacking else f"{form}; {lacking:,} of {len(kinds):,} files lack it"
        is_used = name in plan.columns and name in base.text_at
        if is_used and base.splits[base.text_at[name]].nbytes <= _MOST_TEXT:
            return f"{form}, by all values: {base.explain_type(name) or 'text'}"
        return f"{form}, by all values"

    for column in plan.projection.schema:
        name = column.name
        if name in plan.projection.hidden:
            continue
        if name in tables:
            origin = tables[name]
        elif name in base.schema.names:
            origin = origin_in_files(name)
        else:
            origin = f"--let {lets[name]}" if name in lets else "of every input"
        yield {"name": name, "type": str(column.type), "origin": origin}


def result_columns(stage: StagePlan) -> Iterator[Values]:
    """Yield the columns of a stage's result, and as ``origin`` what each holds."""
    plan = stage.plan
    known = dict.fromkeys(plan.place_names, "number of the row in its window")
    known |= dict.fromkeys(plan.stream_names, "when the window came out, for a next stage")
    known |= {each: _FIXED[each] for each in (*FIXED, *OUTPUTS, MARK)}
    holds = known | dict.fromkeys(plan.options.group_by, "group") | dict.fromkeys(plan.key, "key")
    if plan.windows is not None:
        bound = plan.windows.bound
        names = zip(bound.fields, bound.taken, strict=True)
        holds |= {each.name: f"{taken} of the table {bound.request.name}" for each, taken in names}
    own = {"count": "count()"}
    calls = shown_calls(stage.request.calls, plan.spec, plan.options, plan.sort[0] if plan.sort else "")
    if calls is not None:
        own = {each.name: each.text if isinstance(each, AggregateCall) else str(each.expression) for each in calls}
    other = "column of the row" if plan.options.operator is None else f"operator {plan.options.operator}"
    for field in stage.result:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        origin = holds.get(field.name) or own.get(field.name, other)
        yield {"name": field.name, "type": str(kind), "origin": origin}


# What a plan needs in place of Spark: an executor and a place for tables that leave no trace.


_MANY = 8  # splits of text: reading so many takes seconds
_MOST_TASKS = 1 << 16
"""Tasks at a time of the largest cluster: a larger number is a mistake, and slices for it would fill the memory."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class DriverExecutor:
    """An `Executor` that looks at samples in this process; it moves no rows, and makes no folder.

    ``parallelism``: how many tasks the run will have at a time.
    ``is_one_machine``: whether its tasks will share folders.
    ``is_known``: whether ``parallelism`` is known; only a cluster itself knows its own.
    ``show``: shows the progress of calls that take long; None: nobody looks.
    """

    parallelism: int
    is_one_machine: bool
    is_known: bool = True
    show: Show | None = None

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        found: list[R] = []
        lot = items if isinstance(items, Sequence) else list(items)
        for item in lot:
            if self.show is not None and len(lot) >= _MANY:
                self.show(Progress(label, len(found), len(lot), 1, 1))
            found.append(function(item))
        return found

    def shuffle(self, *_: Any) -> list[Any]:
        """Refuse: nothing that is planned moves rows."""
        raise AssertionError("a plan moves no rows")

    def broadcast(self, value: Any) -> Any:
        return LocalExecutor().broadcast(value)

    @contextlib.contextmanager
    def shared_folders(self) -> Iterator[tuple[str, ...]]:
        """Give a name where tasks will share folders; there is no such folder."""
        yield ("not made",) if self.is_one_machine else ()


def driver_of(master: str, settings: Mapping[str, str]) -> DriverExecutor:
    """Return the executor that stands for a master with the user's settings."""
    tasks = None  # how many tasks a master has at a time; None where it does not say
    if found := re.fullmatch(r"0*([1-9]\d{0,8})", settings.get("spark.default.parallelism", "")):
        tasks = int(found[1])
    elif found := re.fullmatch(r"local(?:\[\s*(\*|\d{1,9})\s*(?:,.*)?\])?", master):
        tasks = usable_cores() if found[1] == "*" else int(found[1] or 1)
    if tasks is None or not 1 <= tasks <= _MOST_TASKS:
        return DriverExecutor(1, is_local(master), is_known=False)
    return DriverExecutor(tasks, is_local(master))


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that is planned over its input.

    ``plan``: the plan, as a run makes it; its enrich tables are not read.
    ``mode``: how the run goes on from a state; None without one.
    """

    plan: JobPlan
    mode: IncrementalRun | None


def open_job(job: Job, mode: IncrementalRun | None, show: Show, earlier: Earlier | None = None) -> OpenJob:
    """Open the input of a job and plan its stages; write nothing. Raises what a run raises before it computes.

    ``mode``: the run on a state; None without one. ``show``: shows the progress of reading text files. ``earlier``: as
    `PlainRun` has it.
    """
    driver = replace(driver_of(job.master, job.spark_conf), show=show)
    known = NOTHING_KNOWN if mode is None else mode.known(job)
    if earlier is None:
        source = enriched_input(job, open_input(job, driver, known=known), driver, known)
    else:
        source = enriched_input(job, open_unit(job, driver, earlier), driver)
    outputs = [output_to_plan(path, job.mode, job.evolve_schema) if path else None for path in job.stage_outputs]
    plan = plan_job(job, source, outputs)
    if mode is not None:
        mode.check(plan.stages)
    return OpenJob(plan, mode)


def output_name(path: str) -> str:
    """Return an output as a plan shows it: without secrets."""
    return "stdout" if path == PIPE else redacted_path(path)


def input_of(plan: JobPlan) -> Values:
    """Return the input that the job, or the first unit that runs, reads."""
    source, files = plan.source, plan.source.files
    return {
        "paths": list(map(redacted_path, plan.job.input)),
        "files": len(files),
        "first": redacted_path(files[0].path),  # in arrival order
        "last": redacted_path(files[-1].path),
        "nbytes": sum(file.size for file in files),
        "rows": sum(split.rows for split in source.splits),  # those of a text format are counted
        "columns": list(input_columns(plan.job, source, plan.stages[0].plan)),
        "skipped": list(source.skipped),  # unreadable paths that are passed over, each with its reason
        "cut_at": plan.cut_at,
        **({} if sides_of(source) is None else {"ends": ends_of_sides(source)}),
    }


@dataclass(frozen=True, slots=True)
class _Highest:
    """A `windowing.ports.Condition` that is true for all rows, and keeps the ranges of a column that it is asked of."""

    columns: tuple[str]
    seen: list[ColumnRange]

    def is_never_true(self, ranges: Mapping[str, ColumnRange]) -> bool:
        self.seen.extend(ranges[name] for name in self.columns if name in ranges)
        return False


def ends_of_sides(source: FileSource) -> Values | None:
    """Return the last order value of both sides of a join, and how many rows at most of the later are behind the other.

    Only statistics of files are read; None where they do not say it, as those of text.
    """
    sides = sides_of(source)
    if sides is None or sides.join.name not in source.rights:
        return None
    pair, right = sides.orders[0], source.rights[sides.join.name]
    left = replace(source, steps=())
    splits = [split for split in left.splits if not is_right(left, split.file)]
    ends, every = list[Any](), list[list[tuple[Any, int]]]()
    for side, name, own in ((left, pair.left, splits), (right, pair.right, right.splits)):
        condition = _Highest((name,), [])
        for split in own:
            side.parts_with(split, condition)
        if sum(each.rows for each in condition.seen) != sum(split.rows for split in own):
            return None
        try:
            highs = [
                (pa.scalar(each.high).cast(pair.type), each.rows) for each in condition.seen if each.high is not None
            ]
        except pa.ArrowException:
            return None
        if not highs or pa.types.is_floating(pair.type):  # NaN is in no statistics
            return None
        every.append(highs)
        ends.append(pc.max(pa.array([high.as_py() for high, _ in highs], pair.type)))
    behind = [
        sum(rows for high, rows in highs if pc.greater(high, end).as_py())
        for highs, end in zip(every, reversed(ends), strict=True)
    ]
    return {"left": str(ends[0]), "right": str(ends[1]), "left_behind": behind[0], "right_behind": behind[1]}


def stage_of(plan: JobPlan, stage: StagePlan) -> Values:
    """Return a stage, its window in English and its columns, before it is known how it is computed."""
    bound, options = stage.plan, stage.request
    is_first, is_last = stage is plan.stages[0], stage is plan.stages[-1]
    times = frozenset(field.name for field in bound.projection.schema if is_instant(field.type))
    output = plan.job.shown_output if is_last else options.output
    order_why = bound.order.why
    if bound.pos is not None and not bound.order.columns:
        order_why = f"the order in which the {'result that is read' if is_first else 'stage before'} was emitted"
    return {
        "name": stage.name,
        "window": str(bound.spec),
        "sentences": list(sentences_of(bound.spec, bound.key, stage.request.calls, bound.options, times)),
        "key": list(bound.key),
        "order": list(bound.order.columns),  # none: arrival order
        "order_why": order_why,
        "clock": None if bound.clock is None or not bound.kind.needs.clock else bound.clock,
        "marks": place_of_marks(stage, is_first) if bound.takes_marks else None,
        "strategy": None,
        "output": None if output is None else output_name(output),  # None: only the next stage reads its rows
        "format": options.output_format,
        "columns": list(result_columns(stage)),
    }
