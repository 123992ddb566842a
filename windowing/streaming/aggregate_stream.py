"""Windows over a stream of Arrow batches, without Spark: `wincli.aggregate` for what is larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import pyarrow as pa

from ..arguments import Rows, WindowArguments, as_reader, as_table, clock_measure, plan_of_call, refuse_others, takes
from ..errors import ConfigError
from ..language.spec import WindowSpec
from ..planning.row_order import OrderBy
from ..planning.validation import check_marks, check_units, look_at
from .batch_rows import GivenSignals, gather
from .batch_scan import BatchScan
from .kept_state import PriorState, form_of, kept_before, with_known_columns
from .row_rejects import Rejected


@takes(WindowArguments)
def aggregate_stream(
    rows: Rows,
    window: str | WindowSpec,
    *,
    order_by: OrderBy = None,
    marks: str | None = None,
    rejected: Rejected = "error",
    state: PriorState | None = None,
    **options: Unpack[WindowArguments],
) -> Any:
    """Apply a window to rows that come in batches; return the rows of `aggregate`, each when its window is complete.

    ``rows``: a `pa.RecordBatchReader`, or any object with ``__arrow_c_stream__``. They are read once, as far as the
    result is read, about 64 MiB at a time. Memory: what is read at a time, and the rows of open windows of all keys.

    Rows must come in the order of the window: one that sorts before a row of an earlier batch is late, and rejected.
    The result comes by batch, within one by key and window. Errors are as in `aggregate`; errors of rows are
    raised where the result is read. With ``state`` also return a reader of the state, to be read after the result.

    >>> log = pa.table({"a": [0, 1, 2, 3, -50, 5, 6]})
    >>> aggregate_stream(log.to_reader(2), "delta(a, 2)", aggregates=["a=collect(a)"]).read_all()["a"].to_pylist()
    [[0, 1, 2], [3, -50, 5], [6]]
    """
    refuse_others(aggregate_stream, options)
    reader = as_reader(with_known_columns(as_reader(rows), state))
    schema = as_table(reader.schema.empty_table()).schema
    plan = plan_of_call(schema, {**options, "window": window, "order_by": order_by, "state": state})
    clock, since = options.get("clock"), options.get("since")
    check_marks(plan.projection, marks)
    before = kept_before(plan, state, clock, since)
    now = clock_measure(plan, clock)
    signals, goes_on = GivenSignals(marks), state is not None
    windows = BatchScan(schema, plan, signals, rejected, now, before, is_continued=goes_on)
    reading = _Reading(windows)
    result = pa.RecordBatchReader.from_batches(windows.result, reading.results(reader))
    if state is None:
        return result
    return result, pa.RecordBatchReader.from_batches(form_of(plan).schema, reading.state())


@dataclass(slots=True)
class _Reading:
    """What is read of a stream: its result first, then the state after it."""

    windows: BatchScan
    has_ended: bool = False

    def results(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for at, table in enumerate(gather(reader)):
            if at == 0:  # the plan was made before there was a value to look at
                plan = self.windows.plan
                check_units(plan.spec, plan.projection.schema, plan.clock, plan.options, look_at(table))
            yield from _batches(self.windows, self.windows.scan(as_table(table)))
        yield from _batches(self.windows, self.windows.end())
        self.has_ended = True

    def state(self) -> Iterator[pa.RecordBatch]:
        if not self.has_ended:
            raise ConfigError("the state is known when the result has been read", "read the result first, to its end")
        yield from form_of(self.windows.plan).table(self.windows.carry).to_batches()


def _batches(windows: BatchScan, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.cast(windows.result).to_batches()
