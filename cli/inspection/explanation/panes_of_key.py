"""The panes of one key, computed once more by the plan of the job, and one of them with its rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.clock.interval_grid import clock_values
from ....windowing.columns.arrays import ClockValue, Ints, Mask, combined
from ....windowing.columns.sort_keys import sort_keys
from ....windowing.emit.result_columns import stream_values
from ....windowing.emit.result_tables import emitted_panes, pane_columns
from ....windowing.engine.blocks import ShuffleBlock
from ....windowing.engine.map_side import no_sequences, read_rows, sequences_of
from ....windowing.engine.slice_scan import run_global_pass, signals_of
from ....windowing.engine.task import TaskContext, pack, row_width, with_projection
from ....windowing.errors import ConfigError, InputError, did_you_mean
from ....windowing.expressions.pruning import bounds_of
from ....windowing.kinds.context import Signals
from ....windowing.kinds.facts import KeyPane, KeyPanes
from ....windowing.kinds.table import with_table_keys
from ....windowing.kinds.tumbling.clock_policies import ClockPolicy
from ....windowing.kinds.tumbling.kind import TumblingKind
from ....windowing.language.clock_policies import Time
from ....windowing.language.conditions import When
from ....windowing.language.row_policies import Count
from ....windowing.language.spec import Batched, Growing, Sliding, Tumbling
from ....windowing.local_executor import LocalExecutor
from ....windowing.planning.plan import Plan, panes_only
from ....windowing.planning.result_schema import POS
from ....windowing.ports import ColumnRange, Source, Split
from ....windowing.rows.merge import merge
from ....windowing.rows.sequence import Sequences, take_rows
from ....windowing.scan.lag_rows import with_lag_columns
from ....windowing.scan.row_validation import split_by_reason
from ....windowing.scan.scan import latest
from ...console.table import texts_of
from ..comparison.compare import without_marks
from ..results.result import StoredRows
from ..results.shown_rows import value_of
from .recorded import RecordedStage

# The rows of one key, read from the files and row groups that may hold them, as the run would have read them.


_CHUNK = 1 << 20
"""Bytes that are read at once, or one row group that is larger: only rows of one key are kept of them."""


class Span(NamedTuple):
    """A range of values of the first order column, or of arrival positions, both inclusive; None: open."""

    low: Any = None
    high: Any = None


ALL = Span()


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """A `windowing.ports.Condition`: rows that have the values of a key, and an order value in a range.

    ``key``: value by column.
    ``order``: the first order column; None: rows are in arrival order.
    """

    key: Mapping[str, pa.Scalar]
    order: str | None
    span: Span
    schema: pa.Schema

    @property
    def columns(self) -> Sequence[str]:
        of_key = [name for name, value in self.key.items() if value.is_valid]  # no range says where null is
        own = (*of_key, *([self.order] if self.order is not None else []))
        return [name for name in dict.fromkeys(own) if name in self.schema.names]

    def is_never_true(self, ranges: Mapping[str, ColumnRange]) -> bool:
        for name in self.columns:
            if name not in ranges:
                continue
            found, value = ranges[name], self.key.get(name)
            low, high = (self.span.low, self.span.high) if value is None else (value, value)
            bounds = bounds_of(found.low, found.high, found.nulls, found.rows, self.schema.field(name).type)
            if not bounds.may_be_value:
                return True
            # Of floats only lower bounds count: NaN is above.
            is_above = high is not None and bounds.low is not None and pc.greater(bounds.low, high).as_py()
            is_below = low is not None and bounds.high is not None and pc.less(bounds.high, low).as_py()
            if is_above or is_below:
                return True
        return False


class KeyRows(NamedTuple):
    """The rows of a key as its windows see them.

    ``sequences``: the rows, at most one sequence.
    ``signals``: marks, watermark advances, evictions.
    ``clock``: the largest clock of all rows that were read, in measures; None: the window uses no clock.
    ``rejected``: reason to how many rows of the key are rejected.
    ``duplicates``: how many of them ``--distinct`` leaves out.
    """

    sequences: Sequences
    signals: Signals
    clock: ClockValue | None
    rejected: Mapping[str, int]
    duplicates: int


def read_key(plan: Plan, source: Source, marks: str, key: Mapping[str, pa.Scalar], span: Span) -> KeyRows:
    """Read the rows of a key that may have an order value in ``span``, in their total order.

    ``plan``: as `only_panes` returns it. ``marks``: where marks come from, as `StagePlan.marks`. Parts of files are
    left out where no other key and no row before matters. Memory grows with the rows of the key.
    """
    nowhere: Any = None  # nothing is written
    work = with_projection(TaskContext(plan, source, nowhere, marks))
    parts = parts_of_key(plan, source, key, span)
    chunks = pack(parts, row_width(work.source.schema, parts, work.columns), _CHUNK)
    work, assigned = run_global_pass(work, chunks, LocalExecutor())
    rejected: Counter[str] = Counter()
    mapped = []
    for chunk in assigned:  # of its rows those of the key are kept
        read = read_rows(work, chunk)
        mine = np.flatnonzero(is_of_key(read.rows, key)) if key else np.arange(len(read.pos))
        reasons = None if read.reasons is None else read.reasons[mine]
        rejected.update(each for each in (() if reasons is None else reasons) if each is not None)
        own = sequences_of(work, take_rows(read.rows, mine), read.pos[mine], reasons)
        marks_of = read.marks.take(np.arange(len(read.marks)))  # a copy: a slice of no rows keeps all rows in memory
        kept = read.rows if read.reasons is None else read.rows.take(pa.array(split_by_reason(read.reasons)[0]))
        mapped.append(ShuffleBlock(chunk.index, own, marks_of, read.level, latest(plan, kept), None))
    sequences = merge([no_sequences(work), *(each.sequences for each in mapped)])
    signals = signals_of(work, mapped)
    ordered = with_lag_columns(plan, sequences)
    rejected.update(ordered.rejects.by_reason)
    clock = max((each.clock for each in mapped if each.clock is not None), default=None)
    found = ordered.sequences
    if plan.windows is not None:  # a key of the table may have no rows
        found = with_table_keys(plan.windows, found, lambda keys: keys.filter(pa.array(is_of_key(keys, key))))
    return KeyRows(found, signals, clock, rejected, ordered.duplicates or 0)


def only_panes(plan: Plan) -> Plan:
    """Return the plan of the panes of a window: their rows, and the columns that describe them."""
    found = panes_only(plan)
    if plan.options.operator is not None or plan.options.emit not in ("entered", "left"):
        return found
    return replace(found, options=replace(found.options, emit=plan.options.emit))


def parts_of_key(plan: Plan, source: Source, key: Mapping[str, pa.Scalar], span: Span) -> list[Split]:
    """Return the smallest parts of files that may hold rows that matter for a key, in order."""
    if plan.takes_marks or (plan.kind.needs.watermark and not plan.order.columns):
        return [part for split in source.splits for part in source.parts_of(split)]
    kind = plan.kind
    # Rows of other keys decide when windows of a key end: by a watermark, evictions, or the one clock.
    is_of_all = kind.needs.watermark or kind.needs.eviction is not None or (kind.needs.clock and span == ALL)
    own = {} if is_of_all else key
    order = next(iter(plan.sort), None)
    condition = KeyCondition(own, order, span, source.schema)
    parts = [part for split in source.splits for part in parts_with(source, split, condition)]
    if order is not None:
        return parts
    low, high = (None if each is None else each.as_py() for each in (span.low, span.high))
    parts = [part for part in parts if high is None or part.base <= high]
    return [part for part in parts if low is None or part.base + part.rows > low]


def parts_with(source: Source, split: Split, condition: KeyCondition) -> Iterator[Split]:
    """Yield the smallest parts of a split that may have rows for which a condition is true."""
    found = source.parts_with(split, condition) if condition.columns else [split]
    for part in found:
        yield from source.parts_of(part)


def is_of_key(rows: pa.RecordBatch | pa.Table, key: Mapping[str, pa.Scalar]) -> Mask:
    """Return which rows have the values of a key, bool (n,). The two float zeros are one value; so is NaN, and null."""
    mask = np.ones(rows.num_rows, np.bool_)
    for name, value in key.items():
        column = combined(rows.column(name))
        if not value.is_valid:
            found = column.is_null()
        elif pa.types.is_dictionary(column.type):
            found = pc.equal(column.dictionary, value.cast(column.type.value_type)).take(column.indices)
        elif pa.types.is_floating(value.type) and math.isnan(value.as_py()):
            found = pc.is_nan(column)
        else:
            found = pc.equal(column, value.cast(column.type))
        mask &= found.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def scalar_text(value: Any) -> str:
    """Return a scalar as text."""
    if pa.types.is_dictionary(value.type):
        value = value.value
    is_instant = pa.types.is_timestamp(value.type)  # its text is not that of a value of Python
    return str(texts_of(pa.repeat(value, 1) if is_instant else pa.array([value.as_py()], value.type))[0])


def panes_of(plan: Plan, rows: KeyRows, clock: ClockValue | None = None) -> KeyPanes:
    """Compute the panes of a key. ``clock``: the clock at the end; None: that of all rows that were read."""
    sequences = rows.sequences
    context = replace(plan.context, clock=rows.clock if clock is None else clock)
    panes, marks = plan.kind.panes(sequences, rows.signals, context)
    panes = emitted_panes(plan, sequences, panes)
    head = pane_columns(plan, stream_values(plan, sequences, marks), sequences, panes)
    return KeyPanes(sequences, panes, marks, head, context, texts_of)


def rows_at(panes: KeyPanes, at: pa.Scalar) -> Ints:
    """Return the rows of a key with an order value, int64; none where no column orders them."""
    names = panes.sequences.order
    if not names:
        return np.empty(0, np.int64)
    column = panes.column(names[0])
    found = pc.equal(column.cast(at.type), at).fill_null(False)
    return np.flatnonzero(found.to_numpy(zero_copy_only=False))


def matching(head: pa.Table, pane: Mapping[str, pa.Scalar], but: frozenset[str] = frozenset()) -> Ints:
    """Return the panes that are as a result describes one, int64: equal in all columns of both, except ``but``."""
    mask = np.ones(head.num_rows, np.bool_)
    for name in head.column_names:
        if name not in pane or name in but:
            continue
        column, value = combined(head.column(name)), pane[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not value.is_valid:
            found = column.is_null()
        elif pa.types.is_floating(value.type) and math.isnan(value.as_py()):
            found = pc.is_nan(column)
        else:  # the two float zeros are one
            found = pc.equal(column.cast(value.type), value)
        mask &= np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False))
    return np.flatnonzero(mask)


# The window that a user names, found in the result: what the result says of it and of those next to it.


WINDOW = "window"
Row = Mapping[str, pa.Scalar]


class Sought(NamedTuple):
    """The window that a user names.

    ``key``: value by key column, in the types of the result; empty without a key.
    ``window``: its number; None: ``at`` says which.
    ``at``: an order value in it; None: ``window`` says which.
    """

    key: Mapping[str, pa.Scalar]
    window: int | None
    at: pa.Scalar | None = None

    @property
    def words(self) -> str:
        """The window in words: ``window 7``, ``window at 2026-11-01 10:00:00``."""
        return f"window {self.window}" if self.at is None else f"window at {scalar_text(self.at)}"


class FoundWindow(NamedTuple):
    """What a result says of a window.

    ``row``: its row by column, or the first of its rows.
    ``before``, ``after``: the rows of the windows with the numbers before and after it; None: the result has none.
    ``also``: the numbers of other windows that hold the order value that the user named.
    """

    number: int
    row: Row
    before: Row | None = None
    after: Row | None = None
    also: tuple[int, ...] = ()


def sought_window(plan: Plan, schema: pa.Schema, only: Mapping[str, str], window: int | None, at: str | None) -> Sought:
    """Return the window that a user names. ``only``: texts by column.

    Raises `ConfigError` where they are not exactly the key columns, values of other types, or not one of window and at.
    """
    for name in only:
        if name not in plan.key:
            hint = did_you_mean(name, plan.key) if plan.key else "leave --only out"
            raise ConfigError(f"--only: {name!r} is no key column of this result", hint)
    if missing := [name for name in plan.key if name not in only]:
        says = " ".join(f"--only {name}=.." for name in missing)
        raise ConfigError(f"windows of this result have a key: {', '.join(plan.key)}", f"say whose window, {says}")
    if (window is None) == (at is None):
        raise ConfigError("why needs one window", "say --window NUMBER, or --at TIME")
    key = {name: _key_value(plan, only[name], schema.field(name).type, name) for name in plan.key}
    if at is None:
        return Sought(key, window)
    kind = schema.field("window_start").type
    if not plan.order.columns and plan.options.event_time is None:
        what = "--at is a value of the order column, and this result has none: its rows are in arrival order"
        raise ConfigError(what, "say --window NUMBER, or run the job with --order-by")
    return Sought(key, None, value_of(at, kind, "--at"))


def _key_value(plan: Plan, text: str, kind: pa.DataType, name: str) -> pa.Scalar:
    if plan.pairs is not None and not text:  # rows of a join whose key is null come out
        return pa.scalar(None, kind)
    return value_of(text, kind, f"--only {name}")


def find_window(rows: StoredRows, sought: Sought) -> FoundWindow | None:
    """Return what a result says of a window; None where it has no such window."""
    number, also = sought.window, list[int]()
    if number is None:  # the windows whose bounds hold the value; both bounds count
        holding: set[int] = set()
        names = [*sought.key, WINDOW, "window_start", "window_end"]
        for table in _rows_of(rows, sought.key, None, None, names):
            start, end = table["window_start"], table["window_end"]
            holds = pc.and_(pc.less_equal(start, sought.at), pc.greater_equal(end, sought.at)).fill_null(False)
            holding.update(table.filter(holds)[WINDOW].to_pylist())
        if not holding:
            return None
        number, *also = sorted(holding)
    near = pa.concat_tables(_rows_of(rows, sought.key, number - 1, number + 1))
    found: list[Row | None] = []
    for each in (number, number - 1, number + 1):
        mine = near.filter(pc.equal(near[WINDOW], each))
        found.append({name: combined(mine[name])[0] for name in mine.column_names} if mine.num_rows else None)
    return None if found[0] is None else FoundWindow(number, found[0], found[1], found[2], tuple(also))


def count_windows(rows: StoredRows, key: Mapping[str, pa.Scalar]) -> int:
    """Return how many windows of a key a result has."""
    numbers = (table[WINDOW].unique() for table in _rows_of(rows, key, None, None, [*key, WINDOW]))
    return len(pa.chunked_array(list(numbers), pa.int64()).unique())


def _rows_of(
    rows: StoredRows,
    key: Mapping[str, pa.Scalar],
    low: int | None,
    high: int | None,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of a key whose window has a number in a range, inclusive, of row groups that may have any."""
    names = list(columns or rows.schema.names)
    yield pa.schema([rows.schema.field(name) for name in names]).empty_table()
    bounds = (None if each is None else pa.scalar(each, pa.int64()) for each in (low, high))
    condition = KeyCondition(key, WINDOW, Span(*bounds), rows.schema)
    for split in rows.source.splits:
        for part in rows.source.parts_with(split, condition):
            table = without_marks(rows.source.read(part, names).rows)
            numbers = combined(table[WINDOW])
            mask = is_of_key(table, key) & numbers.is_valid().to_numpy(zero_copy_only=False)
            values = numbers.fill_null(-1).to_numpy(zero_copy_only=False)
            mask &= (True if low is None else values >= low) & (True if high is None else values <= high)
            yield table.filter(pa.array(mask))


_AT = "_at"
_NUMBER = frozenset({"window"})


def compute_window(recorded: RecordedStage, key: Mapping[str, pa.Scalar], found: FoundWindow) -> KeyPane:
    """Compute a window that a result has once more.

    Where windows follow one another, only the rows between the window before and the window after are read; where a
    pane depends on no row before its oldest, and that of the pane before, the rows from there on. The outcome must be
    what the result says, else all rows of the key are read. Raises `InputError` where the input does not give this
    window.
    """
    plan = only_panes(recorded.stage.plan)
    if (quick := _from_few_rows(recorded, plan, key, found)) is not None:
        return quick
    panes = panes_of(plan, read_key(plan, recorded.source, recorded.stage.marks, key, ALL))
    numbers = panes.panes.number
    alike = matching(panes.head, found.row)
    if not len(alike):  # a later unit keeps its numbers where an earlier one was corrected
        others = matching(panes.head, found.row, _NUMBER)
        alike = others if len(others) == 1 else alike
    if not len(alike):
        what = f"the files of the manifest do not give window {found.number} of this key any more"
        raise InputError(what, "the result may be older than they are; run the job again")
    at = int(alike[0])
    before = np.flatnonzero(numbers == numbers[at] - 1)
    return panes.pane(at, panes.pane(int(before[0])).closed_by if len(before) else None)


def _from_few_rows(
    recorded: RecordedStage, plan: Plan, key: Mapping[str, pa.Scalar], found: FoundWindow
) -> KeyPane | None:
    """Compute a window from the rows that it depends on; None where that does not give what the result says.

    The end of a tumbling window leaves nothing behind that the next one depends on, unless its amounts or expressions
    look at rows before. A growing window depends on its own rows alone. What a sliding or batched policy evicts depends
    on the rows behind alone, and so does whether a pane comes out, where each row or the clock triggers; whether the
    window has been full does not, but both panes have come out: the pane before is computed, too, for what has changed.
    """
    before, is_tumbling = found.before, isinstance(plan.kind, TumblingKind)
    span = _behind_window_before(plan, found) if is_tumbling else _from_oldest_row(plan, found)
    if span is None:
        return None
    is_sliding = isinstance(plan.spec, Sliding)
    ready = replace(plan, options=replace(plan.options, partial=True)) if is_sliding else plan
    rows = read_key(ready, recorded.source, recorded.stage.marks, key, span)
    sequences = rows.sequences
    if is_tumbling and before is not None and len(sequences):
        first = _first_behind(plan, sequences, before)
        bounds, own, pos = np.array([0, len(sequences) - first], np.int64), sequences.rows, sequences.pos
        rows = rows._replace(sequences=replace(sequences, bounds=bounds, rows=own.slice(first), pos=pos[first:]))
    panes = panes_of(ready, rows, _clock(plan, rows, found.row))
    alike = matching(panes.head, found.row, _NUMBER)
    if not is_tumbling and before is not None:
        alike = np.intersect1d(alike, matching(panes.head, before, _NUMBER) + 1)
    why = None if before is None else str(before["closed_by"])
    return next((panes.pane(int(at), why) for at in alike), None)


def _from_oldest_row(plan: Plan, found: FoundWindow) -> Span | None:
    """Return the order values from the oldest row of a pane and of the one before it on; None: all rows matter."""
    before, row, forgets = found.before, found.row, False
    match plan.spec:
        case Sliding(trigger=trigger, eviction=None):
            forgets = trigger == Count(1) or isinstance(trigger, Time | When)
        case Batched(every=None, retain_all=False, partition_by=()) | Tumbling(policy=Growing()):
            forgets = True
    if len(plan.sort) != 1 or not plan.order.columns or plan.looks_back or plan.options.emit != "aggregates":
        forgets = False
    if before is None or not forgets or _AT not in row or str(row["closed_by"]) == "end":
        return None
    starts = [each["window_start"] for each in (before, row)]
    if not all(each.is_valid for each in (*starts, row[_AT], before[_AT])):
        return None
    return Span(pc.min(_array(starts)), row[_AT])


def _behind_window_before(plan: Plan, found: FoundWindow) -> Span | None:
    """Return the order values, or arrival positions, between the windows next to a window; None: all rows matter."""
    spec = plan.spec
    assert isinstance(spec, Tumbling)
    stands_alone = (
        spec.eviction is None
        and not spec.policy.looks_at_window_before
        and not plan.takes_marks
        and not plan.looks_back
        and plan.options.empty == "skip"
        and len(plan.sort) <= 1
    )
    if not stands_alone or _AT not in found.row or (found.number and found.before is None):
        return None
    if found.before is not None and not found.before[_AT].is_valid:
        return None
    name = _AT if plan.sort else POS
    low = found.before[name] if found.before is not None else found.row["window_start"] if plan.sort else None
    ends = [found.row[name], *([found.row["window_end"]] if plan.sort else [])]
    ends += [found.after["window_start" if plan.sort else POS]] if found.after is not None else []
    known = [each for each in ends if each.is_valid]
    return Span(low, None if str(found.row["closed_by"]) == "end" or not known else pc.max(_array(known)))


def _array(values: list[pa.Scalar]) -> pa.Array:
    return pa.concat_arrays([pa.repeat(each.cast(values[0].type), 1) for each in values])


def _first_behind(plan: Plan, sequences: Sequences, before: Row) -> int:
    """Return the first row that is not in the window before.

    A tick ends a window before the rows of its instant, or behind them where the right side is closed; a row ends the
    window that it is in, or the one before it.
    """
    assert isinstance(plan.kind, TumblingKind)
    pos, why = before[POS].as_py(), str(before["closed_by"])
    ending = next((each for each in plan.kind.policies if each.why == why), None)
    is_after = ending is not None and ending.ends_with
    column = sequences.rows.column(plan.sort[0]) if plan.sort else None
    if column is None:
        return int(np.searchsorted(sequences.pos, pos, side="right" if is_after else "left"))
    at = before[_AT].cast(column.type)
    words = sort_keys(pa.concat_arrays([column, pa.repeat(at, 1)]))
    own, bound = words[:-1], words[-1]
    if pos == -1 or isinstance(ending, ClockPolicy):
        return int(np.searchsorted(own, bound, side="right" if plan.options.closed == "right" else "left"))
    is_behind = (own > bound) | ((own == bound) & (sequences.pos > pos if is_after else sequences.pos >= pos))
    return int(np.argmax(is_behind)) if is_behind.any() else len(sequences)


def _clock(plan: Plan, rows: KeyRows, row: Row) -> ClockValue | None:
    if not plan.kind.needs.clock or not plan.sort or not row[_AT].is_valid:
        return rows.clock
    kind = rows.sequences.rows.schema.field(plan.sort[0]).type
    found = clock_values(pa.repeat(row[_AT].cast(kind, safe=False), 1), plan.sort[0])[0].item()
    return found if rows.clock is None else max(found, rows.clock)
