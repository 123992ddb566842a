"""The calls of an operator by the library: what a recorder gives for each, read back from the result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from support.operator_logs import Log
from wincli.windowing.emit.operator_calls import operator_batches
from wincli.windowing.emit.operator_scenes import OperatorRun, no_outcome
from wincli.windowing.emit.result_columns import stream_columns, stream_values
from wincli.windowing.kinds.context import Signals, WindowContext, window_marks
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import WindowSpec
from wincli.windowing.operator import Operator, PaneInfo
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.rows.marks import NO_FILE, Marks, in_order
from wincli.windowing.rows.membership import edge_rows
from wincli.windowing.rows.panes import CLOSED_BY, TIMING, Panes, reason
from wincli.windowing.rows.sequence import Sequences, build, one_batch

PLAIN = WindowContext()


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the rows by ``id``, and how what it gave stands in the result: window and close reason, position."""

    what: str
    ids: tuple[int, ...]
    window: int | None
    closed_by: str | None
    pos: int | None


class Recorder(Operator):
    """Gives one row a call. Makes sure of what its base promises."""

    output: ClassVar = {"what": str, "ids": pa.list_(pa.int64()), "turn": int}

    def __init__(self) -> None:
        self.turn = 0
        self.rows: dict[int, Any] = {}

    def insert(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        assert row["id"] not in self.rows
        assert all(row[name] == value for name, value in self.key.items())
        self.rows[row["id"]] = row
        yield self.called("insert", [row])

    def evict(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        assert rows
        assert all(self.rows[row["id"]] is row for row in rows)
        given = [self.called("evict", rows)]
        for row in rows:
            del self.rows[row["id"]]
        return given

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> list[dict[str, Any]]:
        assert all(self.rows[row["id"]] is row for row in rows)
        return [self.called("trigger", rows), {"what": f"{pane.window} {pane.closed_by}", "turn": self.turn}]

    def called(self, what: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self.turn += 1
        return {"what": what, "ids": [row["id"] for row in rows], "turn": self.turn}


RECORDER = f"{__name__}:Recorder"


def replayed(
    log: Log,
    plan: Plan,
    sequences: Sequences,
    marks: Marks,
    panes: Panes,
    signals: Signals,
    context: WindowContext,
) -> pa.Table:
    if plan.options.at_end == "drop":
        panes = panes.take(np.flatnonzero(panes.closed_by != reason("end")))
    called = pane_columns(plan, sequences, marks, panes)
    run = OperatorRun(signals, context, partial(_described, plan), False, no_outcome(sequences))
    tables = list(operator_batches(plan, sequences, marks, panes, called, run))
    assert all(len(table) <= 100_000 for table in tables)
    return pa.concat_tables(tables) if tables else pa.table({})


def _described(plan: Plan, sequences: Sequences, marks: Marks, panes: Panes) -> tuple[Panes, pa.Table]:
    return panes, pane_columns(plan, sequences, marks, panes)


def pane_columns(plan: Plan, sequences: Sequences, marks: Marks, panes: Panes) -> pa.Table:
    """What the result says of panes."""
    keys = [] if sequences.keys is None else [column.take(pa.array(panes.key)) for column in sequences.keys.columns]
    start, end = panes.start, panes.end
    if start is None:
        order = sequences.rows.column(plan.at[0]) if plan.at else pa.nulls(len(sequences), pa.int64())
        start, end = (order.take(pa.array(edge, mask=edge < 0)) for edge in edge_rows(panes.membership))
    columns = [*keys, pa.array(panes.number), start, end, pa.array(CLOSED_BY).take(pa.array(panes.closed_by))]
    names = [*plan.key, "window", "window_start", "window_end", "closed_by"]
    if panes.outputs is not None:
        columns += [pa.array(TIMING).take(pa.array(panes.outputs.timing)), pa.array(panes.outputs.index)]
        names += ["timing", "index"]
    if not plan.options.plain:
        columns += stream_columns(plan, stream_values(plan, sequences, marks), panes.cause, panes.at)
        names += plan.stream_names
    return pa.table(columns, names=names)


def plan_of(log: Log, spec: WindowSpec, operator: str = RECORDER, **options: Any) -> Plan:
    order = list(log.order) or "arrival"
    return make_plan(spec, log.table.schema, log.key, order, options=Options(operator=operator, **options))


def sequences_of(log: Log, plan: Plan, rows: Sequence[int] | None = None) -> Sequences:
    pos = np.arange(len(log.table)) if rows is None else np.array(rows, np.int64)
    kept = one_batch(log.table).take(pa.array(pos))
    return build(kept, pos, plan.key, plan.sort, log.table.column_names)


def given_by(
    log: Log, window: str, marks: Sequence[int] = (), setting: WindowContext = PLAIN, **options: Any
) -> pa.Table:
    """What an operator gives for a window that takes no watermarks."""
    plan = plan_of(log, parse_window(window), **options)
    sequences = sequences_of(log, plan)
    after = np.array(marks, np.int64) - 1
    rows = one_batch(log.table).select(list(plan.sort))
    at = rows.take(pa.array(after, mask=after < 0)) if plan.sort else rows
    signals = window_marks(in_order(Marks(at, after, np.full(len(after), NO_FILE))))
    found, behind = kind_of(plan.spec).panes(sequences, signals, setting)
    return replayed(log, plan, sequences, behind, found, signals, replace(setting, at_end=plan.options.at_end))


def calls_in(table: pa.Table, key: Sequence[str]) -> dict[tuple[Any, ...], list[Call]]:
    """The calls of each key as they stand in a result. The second row of a pane repeats what the pane is."""
    out: dict[tuple[Any, ...], list[Call]] = defaultdict(list)
    for row in table.to_pylist():
        own = tuple(row[name] for name in key)
        if row["ids"] is not None:
            out[own].append(Call(row["what"], tuple(row["ids"]), row["window"], row["closed_by"], row["_pos"]))
            assert row["turn"] == len(out[own])
            assert row["_mark"] is None
        else:
            assert row["what"] == f"{row['window']} {row['closed_by']}"
            assert (row["_row"], row["_mark"]) == (1, "window")
    return dict(out)
