"""Row patterns as windows, night after night, against the reference: panes, the account of rows, and the state."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references.matches import Pane, PatternJob
from support.incremental_runs import IncrementalRuns
from support.random_patterns import NAMES, patterns
from support.strategies import examples
from wincli.windowing.errors import DataError
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate
from wincli.windowing.planning.plan import make_plan

Rows = list[dict[str, Any]]
CONDITIONS = {name: (lambda rows, row, _, name=name: rows[row][f"is_{name}"] is True) for name in NAMES}


@st.composite
def logs(draw: st.DrawFn) -> Rows:
    """Rows of a few keys, in any order of time."""
    truth = st.sampled_from([True, True, False, None])
    times, rows = st.sampled_from([0, 0, 1, 1, 1, 2, 3, 7]), []
    clock = 0
    for id in range(draw(st.integers(0, 14))):
        clock += draw(times)
        rows.append({"k": draw(st.sampled_from("xyz")), "t": clock, "id": id} | {f"is_{n}": draw(truth) for n in NAMES})
    return draw(st.permutations(rows)) if draw(st.booleans()) else rows


def table_of(rows: Rows) -> pa.Table:
    types = {"k": pa.string(), "t": pa.int64(), "id": pa.int64()} | {f"is_{name}": pa.bool_() for name in NAMES}
    return pa.Table.from_pylist(rows, pa.schema(types.items()))


def told(row: dict[str, Any]) -> tuple[Any, ...]:
    return row.get("k"), row["window"], tuple(row["ids"]), row["closed_by"], row["_at"], row["_pos"]


def wanted(pane: Pane, rows: dict[int, dict[str, Any]]) -> tuple[Any, ...]:
    key, at = next(iter(pane.key), None), None if pane.at is None else pane.at[0]
    return key, pane.window, tuple(rows[pos]["id"] for pos in pane.rows), pane.closed_by, at, pane.pos


@examples(400)
@given(
    st.data(), patterns(), logs(), st.booleans(), st.lists(st.integers(0, 14), max_size=3).map(sorted),
    st.sampled_from(["flush", "hold", "drop"]),
)  # fmt: skip
def test_nights_are_those_of_the_reference(
    data: st.DataObject, pattern: Any, rows: Rows, keyed: bool, cuts: list[int],
    at_end: Literal["flush", "hold", "drop"],
) -> None:  # fmt: skip
    """Whatever a night has, also rows of the instant at which the night before ended."""
    key = ["k"] if keyed else []
    edges = [0, *(min(cut, len(rows)) for cut in cuts), len(rows)]
    if len(edges) > 2:  # rows of later nights are not before those of earlier ones
        rows = sorted(rows, key=lambda row: row["t"])
    nights = [dict(list(enumerate(rows))[low:high]) for low, high in pairwise(edges)]
    found = PatternJob(pattern, CONDITIONS, key=key, order=["t"]).nights(nights, at_end)
    plan = make_plan(pattern, table_of(rows).schema, key, ["t"], [parse_aggregate("ids=collect(id)")], Options())
    runs, table = IncrementalRuns(plan, "none"), table_of(rows)
    for number, (low, high) in enumerate(pairwise(edges)):
        runs.run([table.slice(low, high - low)], [[]], at_end if number == len(nights) - 1 else "hold", [], None)
    panes = [wanted(pane, dict(enumerate(rows))) for night in found for pane in night.panes]
    assert sorted(map(told, runs.table.to_pylist()), key=str) == sorted(panes, key=str)
    before = {"windowed": 0, "filtered": 0}
    for night, result in zip(found, runs.results, strict=True):
        counts = {name: getattr(result.counts, name) for name in night.account}
        assert counts == {name: count - before.get(name, 0) for name, count in night.account.items()}
        before = {name: night.account[name] for name in before}


WAITS = "match(a -> c | b d, a = e = 'a', b = e = 'b', c = e = 'c', d = e = 'd') within 100"


def test_a_state_is_the_same_whatever_came_before() -> None:
    """Late rows stop at the first unit that leaves the state that it left before."""
    _, short = night(events("abd", 6), "new")
    _, long = night(events("zazbzzabd", 0), "new")
    assert rows_of(long) == [{"t": t, "e": e} for t, e in zip((1, 2, 3, 4, 6, 7, 8), "azbzabd", strict=True)]
    _, later = night(events("z", 103), long)
    _, other = night(events("z", 103), short)
    assert rows_of(later) == rows_of(other) == [{"t": t, "e": e} for t, e in zip((6, 7, 8, 103), "abdz", strict=True)]
    assert later["_state"].to_pylist() == other["_state"].to_pylist()


def test_rows_that_no_symbol_takes_keep_others_apart_and_only_the_first_of_them_is_kept() -> None:
    """The a waits for a c; once it has waited too long, a match may begin with the b behind it."""
    for text, found in (("axbyyd", []), ("axxbd", [["b", "d"]])):
        first, state = night(events(text, 0), "new")
        assert "".join(row["e"] for row in rows_of(state)) == text.replace("yy", "y").replace("xx", "x")
        second, _ = night(events("z", 200), state)
        assert (len(first), second["collect_e"].to_pylist()) == (0, found)


def night(rows: pa.Table, state: Any) -> tuple[pa.Table, pa.Table]:
    return wincli.aggregate(rows, WAITS, order_by="t", at_end="hold", state=state, aggregates="collect(e)")


def rows_of(state: pa.Table) -> Rows:
    kept = [row for part in state.to_pylist() for row in part["_rows"] or ()]
    return [{name: row[name] for name in ("t", "e")} for row in kept]


def test_too_many_open_rows_of_a_key_are_an_error_that_names_it() -> None:
    log = events("zaaaa").append_column("k", pa.array(["p"] * 5))
    options: dict[str, Any] = {"key": "k", "order_by": "t", "state": "new", "at_end": "hold"}
    with pytest.raises(DataError) as error:
        wincli.aggregate(log, "match(a+, a = e = 'a')", max_open_rows=3, **options)
    what = "4 rows of key k='p' may still be in a match, from the one at arrival position 1 on, and 3 are allowed"
    assert what in str(error.value)
    assert "within" in str(error.value)
    wincli.aggregate(log, "match(a+, a = e = 'a')", max_open_rows=4, **options)


def events(text: str, at: int = 0) -> pa.Table:
    """One row for each letter, a second apart, from ``at`` on."""
    return pa.table({"e": list(text), "t": list(range(at, at + len(text)))})
