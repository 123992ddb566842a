"""Nights without Spark: a log cut into runs, each going on from what the one before held, through the engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from support.event_logs import cut_up
from support.in_memory_engine import MemoryFiles, MemorySource, Result, run_in_memory
from support.table_equality import difference, same
from wincli.windowing.engine.snapshot import restore
from wincli.windowing.planning.plan import Plan, stream_of
from wincli.windowing.ports import StreamInfo

APART = 10**12
"""How far the arrival positions of nights are apart."""


@dataclass
class IncrementalRuns:
    """Run night after night. ``counts`` and ``starts``: the account, and the first row, of each."""

    plan: Plan
    marks: str
    results: list[Result] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    files: MemoryFiles | None = None
    registers: dict[str, Any] = field(default_factory=dict)

    def run(
        self,
        tables: Sequence[pa.Table],
        splits: Sequence[Sequence[int]],
        at_end: Any,
        chunks: Sequence[int],
        slices: pa.Table | None,
        stream: StreamInfo | None = None,
    ) -> None:
        """Run one night over some files, ``splits`` cutting each, ``chunks`` and ``slices`` as `run_in_memory` says."""
        plan = replace(self.plan, options=replace(self.plan.options, at_end=at_end))
        base = len(self.results) * APART
        source = MemorySource(tables, splits, stream, first=base)
        start = None if self.files is None else restore(self.files, self.registers)
        self.files = MemoryFiles()
        result = run_in_memory(plan, source, chunks, slices, self.marks, start, self.files)
        assert result.snapshot is not None
        assert result.counts.balanced
        assert min(result.counts.windowed, result.counts.filtered, result.counts.held) >= 0
        if self.results:
            assert result.counts.carried == self.results[-1].counts.held
        self.registers = json.loads(json.dumps(result.snapshot.registers.plain))
        self.results.append(result)
        self.starts.append(self.starts[-1] + sum(len(table) for table in tables))

    @property
    def table(self) -> pa.Table:
        """All that came out, with the arrival positions that one run over all nights would give."""
        return pa.concat_tables([self._as_one(result.table) for result in self.results])

    def _as_one(self, table: pa.Table) -> pa.Table:
        if "_pos" not in table.column_names:
            return table
        told = table["_pos"].to_pylist()
        # the mark of a file without rows stands before the first row of its night, if no row came before
        nights = [None if p is None or p < 0 else divmod(p + 1, APART) for p in told]
        pos = [p if at is None else self.starts[at[0]] + at[1] - 1 for p, at in zip(told, nights, strict=True)]
        return table.set_column(table.column_names.index("_pos"), "_pos", pa.array(pos, pa.int64()))


def in_emission_order(plan: Plan, table: pa.Table) -> pa.Table:
    """Sort a result as a later stage reads it."""
    return table.sort_by([(name, "ascending") for name in stream_of(plan).order]).combine_chunks()


def check_runs(
    data: st.DataObject, plan: Plan, table: pa.Table, keyed: bool, end: str
) -> tuple[IncrementalRuns, Result]:
    """Runs over parts, cut anywhere, give what one run gives, to the bit, and count the rows that it counts.

    ``end``: what the last run does with open windows.
    """
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=6).map(sorted))
    files, runs = [], IncrementalRuns(plan, "files")
    for i, (low, high) in enumerate(pairwise([0, *cuts, len(table)])):
        source, chunks, slices = data.draw(cut_up(table.slice(low, high - low), keyed))
        files += source.tables
        runs.run(source.tables, source.cuts, end if i == len(cuts) else "hold", chunks, slices)
    whole = run_in_memory(plan, MemorySource(files, [[] for _ in files]), [], None, "files")
    one, some = in_emission_order(plan, whole.table), in_emission_order(plan, runs.table)
    assert same(some, one), difference(some, one)
    counts = sum((result.counts for result in runs.results[1:]), runs.results[0].counts)
    assert (counts.rows_in, counts.windowed) == (whole.counts.rows_in, whole.counts.windowed)
    assert (counts.filtered, counts.dropped_at_end) == (whole.counts.filtered, whole.counts.dropped_at_end)
    assert counts.rejected == whole.counts.rejected
    return runs, whole


def check_cuts(data: st.DataObject, plan: Plan, table: pa.Table, keyed: bool) -> tuple[MemorySource, Result]:
    """Chunks and slices give what one scan over the same files gives, rejected rows in full; these files, and that."""
    source, chunks, slices = data.draw(cut_up(table, keyed))
    files = MemorySource(source.tables, [[] for _ in source.tables])
    whole, cut = run_in_memory(plan, files, [], None), run_in_memory(plan, source, chunks, slices)
    one, some = in_emission_order(plan, whole.table), in_emission_order(plan, cut.table)
    assert same(some, one), difference(some, one)
    assert cut.counts == whole.counts
    rejects = [sorted(result.rejects.to_pylist(), key=lambda row: str(row["row"])) for result in (cut, whole)]
    assert repr(rejects[0]) == repr(rejects[1])  # also NaN
    return files, whole
