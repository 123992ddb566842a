"""Shares of an input by order: each row in one of them, where it stands; and what is asked before any is taken."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.readers import put, source
from support.strategies import examples
from wincli.cli.run.late_rows import has_current_late_rows
from wincli.readers.order_ranges import OrderRange, SourceRange, count_before, merge
from wincli.windowing.engine.task import pack
from wincli.windowing.errors import InputError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.rows.projection import RowExpressions, with_columns
from wincli.writers.state.unit_record import BorrowedRows, UnitRecord

PLAIN = RowExpressions()
TIMES = st.integers(0, 6) | st.none()
ROWS = st.lists(st.tuples(TIMES, st.sampled_from("abc") | st.none()), min_size=1, max_size=20)


def bound(*values: Any, names: Sequence[str] = ("t", "s")) -> pa.Table:
    """One row of order columns."""
    return pa.table({name: [value] for name, value in zip(names, values, strict=False)})


def read(opened: Any, *columns: str) -> list[tuple[Any, ...]]:
    """Positions and values of all rows of a source, split by split."""
    rows = []
    for split in opened.splits:
        batch = opened.read(split, columns)
        rows += list(zip(batch.pos.tolist(), *(batch.rows[name].to_pylist() for name in columns), strict=True))
    return rows


def is_behind(row: tuple[int | None, str | None], other: tuple[int, str]) -> bool:
    """Whether a row sorts before a place; a null is before nothing."""
    for value, limit in zip(row, other, strict=True):
        if value is None or value > limit:  # type: ignore[operator]
            return False
        if value < limit:  # type: ignore[operator]
            return True
    return False


@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abc")), max_size=4), st.integers(1, 5))
def test_shares_that_follow_each_other_hold_each_row_once(
    tmp_path: Path, rows: list[tuple[int | None, str | None]], at: list[tuple[int, str]], group: int
) -> None:
    bounds = sorted(at)
    log = {"t": pa.array([t for t, _ in rows], pa.int64()), "s": pa.array([s for _, s in rows], pa.string())}
    opened = source(put(tmp_path / "a.parquet", log, row_group_size=group))
    edges: list[pa.Table | None] = [None, *(bound(*each) for each in bounds), None]
    ranges = [OrderRange(after, before) for after, before in pairwise(edges)]
    found = [read(merge([SourceRange(opened, 0, each)], PLAIN), "t", "s") for each in ranges]
    places = [sum(not is_behind(row, each) for each in bounds) for row in rows]
    numbered = [(i, *row) for i, row in enumerate(rows)]
    assert found == [
        [row for row, place in zip(numbered, places, strict=True) if place == n] for n in range(len(found))
    ]
    if bounds:
        told = [count_before(opened, edges[1:-1], split) for split in opened.splits]  # type: ignore[arg-type]
        assert [sum(each) for each in zip(*told, strict=True)] == [
            sum(is_behind(row, b) for row in rows) for b in bounds
        ]


@pytest.mark.parametrize("let", [(), (("at", parse_expression("t + 0")),)])
def test_a_row_that_the_condition_leaves_out_stays_where_it_was_read(tmp_path: Path, let: Any) -> None:
    log = {"t": [1, 2, 3, 4, None], "x": [1.0, None, 2.0, 1.0, 1.0]}
    opened = source(put(tmp_path / "a.parquet", log))
    expressions = RowExpressions(let, parse_expression("x = 1"))
    at = bound(4, names=["at" if let else "t"])
    borrowed, own = (
        [t for _, t in read(merge([SourceRange(opened, 0, each)], expressions), "t")]
        for each in (OrderRange(None, at), OrderRange(at))
    )
    assert borrowed == [1]
    assert own == [2, 3, 4, None]
    assert count_before(with_columns(opened, expressions, at.column_names), [at], opened.splits[0]) == [1]


def test_shares_of_two_inputs_are_one_source(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("t,u\n1,x\n5,y\n")
    (tmp_path / "a.csv").write_text("t,u,v\n4,z,0.5\n9,z,1.5\nodd,z,2.5\n", "utf-8")
    own, late = source(tmp_path / "b.csv"), source(tmp_path / "a.csv", schema="t:int64")
    between = OrderRange(bound(1, names="t"), bound(5, names="t"))
    joint = merge([SourceRange(own), SourceRange(late, 1000, between)], PLAIN)
    assert [Path(file.path).name for file in joint.files] == ["b.csv", "a.csv"]
    assert joint.schema.names == ["t", "u", "v"]
    assert read(joint, "u", "v") == [(0, "x", None), (1, "y", None), (1000, "z", 0.5)]
    lent, kept = joint.splits[-1], merge([SourceRange(late, 0, OrderRange(bound(5, names="t")))], PLAIN)
    assert joint.read(lent, ["u"]).rejects is None
    unread = kept.read(kept.splits[0], ["u"]).rejects
    assert unread is not None
    assert unread.column("_row").to_pylist() == [4]
    assert joint.line_numbers(lent, np.array([1000])).tolist() == [2]
    assert [[split.base for split in chunk.splits] for chunk in pack(joint.splits, 8, 1 << 20)] == [[0], [1000]]


def test_keys_come_as_dictionaries_also_where_they_order_the_rows(tmp_path: Path) -> None:
    opened = source(put(tmp_path / "a.parquet", {"s": ["a", "b", "c"]}))
    share = merge([SourceRange(opened, 0, OrderRange(bound("b", names="s")))], PLAIN)
    rows = share.read(share.splits[0], ["s"], ["s"]).rows
    assert (rows.schema.field("s").type, rows["s"].to_pylist()) == (pa.dictionary(pa.int32(), pa.string()), ["b", "c"])


def test_inputs_that_do_not_fit_together_are_an_error(tmp_path: Path) -> None:
    own, late = (source(put(tmp_path / f"{i}.parquet", {"s": [value]})) for i, value in enumerate(("a", True)))
    with pytest.raises(InputError, match="column 's' is"):
        merge([SourceRange(own), SourceRange(late)], PLAIN)


def test_a_unit_is_settled_while_those_that_took_its_rows_are_those_that_it_names() -> None:
    class Fake:
        records: tuple[UnitRecord, ...] = ()

    def unit(n: int, lent: tuple[str, ...] = (), *lenders: str) -> UnitRecord:
        loans = tuple(BorrowedRows(label, ()) for label in lenders)
        texts = ("", "", "")
        return UnitRecord(f"d{n}", n, None, None, None, (), (), (), *texts, {}, {}, "", None, {}, lent, loans)

    state: Any = Fake()
    for records, settled in (
        ((unit(1, (), "d3"), unit(2), unit(3, ("d1",))), [True, True, True]),
        ((unit(1), unit(2, (), "d3"), unit(3, ("d1",))), [True, True, False]),
        ((unit(1, (), "d3"), unit(2), unit(3)), [True, True, False]),
    ):
        state.records = records
        assert [has_current_late_rows(state, record) for record in records] == settled
