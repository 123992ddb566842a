"""Rows that a scan rejects are written in full, each once, and counted, whichever task has found them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import cut_up, logs
from support.in_memory_engine import MemorySink, MemorySource
from support.strategies import examples
from wincli.windowing.engine.rejects import store_rejects, write_stored_rejects
from wincli.windowing.engine.task import Chunk, TaskContext
from wincli.windowing.language.parser import parse_window
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.rows.panes import NO_REJECTS, reject_rows


@examples(60)
@given(st.data(), logs(), st.integers(1, 4))
def test_rejects_of_all_tasks_are_written_in_full(data: st.DataObject, table: pa.Table, tasks: int) -> None:
    source, bounds, _ = data.draw(cut_up(table, False))
    plan = make_plan(parse_window("count(2)"), table.schema, [], "arrival")
    sink = MemorySink()
    work = TaskContext(plan, source, sink, "none")
    chunks = chunks_of(source, bounds)
    task_of = data.draw(st.lists(st.integers(0, tasks), min_size=len(table), max_size=len(table)))
    stored, wanted = [], {}
    for task in range(tasks):
        pos = np.flatnonzero(np.array(task_of, np.int64) == task)
        pos = np.array(data.draw(st.permutations(pos.tolist())), np.int64)
        wanted |= dict.fromkeys(pos.tolist(), (f"why-{task}", None if task else "because"))
        rejects = NO_REJECTS + reject_rows(pos, f"why-{task}", None if task else "because")
        assert rejects.by_reason == ({f"why-{task}": len(pos)} if len(pos) else {})
        stored.append(store_rejects(work, task, rejects))
    found = [each for each in stored if each is not None]
    parts = write_stored_rejects(work, chunks, found, LocalExecutor(2, pickles=True, seed=1))
    written = [row for index in sorted(sink.rejects) for row in sink.rejects[index].to_pylist()]
    assert sum(part.rows for part in parts) == len(written) == len(wanted)
    assert min(sink.rejects, default=len(chunks)) >= len(chunks)  # map tasks have the numbers before
    rows: dict[Any, Any] = dict(enumerate(pa.concat_tables(source.tables).to_pylist()))
    assert [str(row["row"]) for row in written] == [str(rows[at]) for at in sorted(wanted)]  # also NaN
    assert [(row["reason"], row["detail"]) for row in written] == [wanted[at] for at in sorted(wanted)]


def chunks_of(source: MemorySource, bounds: list[int]) -> list[Chunk]:
    edges = sorted({0, len(source.splits), *(at for at in bounds if at < len(source.splits))})
    groups = [source.splits[low:high] for low, high in pairwise(edges)]
    return [Chunk(i, group[0].base, tuple(group)) for i, group in enumerate(groups)]
