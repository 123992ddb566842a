"""Panes in batches: what is made a few panes at a time is what is made at once, whatever the window."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.strategies import examples
from support.table_equality import difference, same
from wincli.windowing.emit import result_tables

WINDOWS: list[tuple[str, dict[str, Any]]] = [
    ("delta(ts, 3)", {"order_by": "ts"}),
    ("count(2)", {}),
    ("gap(ts, 2) or count(3)", {"order_by": "ts", "having": "n > 1"}),
    ("time(2)", {"order_by": "ts", "empty": "mark"}),
    ("punct()", {"marks": "flag"}),
    ("punct()", {"marks": "flag", "emit": "rows", "sort_by": "v"}),
    ("count(2), partitioned, partitionAge(4)", {"order_by": "ts"}),
    ("count(3)", {"emit": "rows"}),
    ("count(3)", {"group_by": "flag"}),
    ("sliding, count(3), count(2)", {}),
    ("timeInterval, intervalDuration(3)", {"event_time": "ts", "rejected": "drop"}),
]
AGGREGATES = ["n=count(v)", "s=sum(v)", "f=first(v)", "m=max(v)", "d=stddev(v)", "a=collect(v)", "t=arg_max(ts, v)"]


@given(data=st.data(), size=st.integers(1, 3))
@examples(60)
def test_batches_of_panes_say_what_all_panes_say(data: st.DataObject, size: int) -> None:
    window, options = data.draw(st.sampled_from(WINDOWS))
    rows = data.draw(st.integers(0, 24))
    many = {"min_size": rows, "max_size": rows}
    table = pa.table(
        {
            "ts": pa.array(data.draw(st.lists(st.integers(0, 20), **many)), pa.timestamp("s")),
            "user": pa.array(data.draw(st.lists(st.sampled_from("abc"), **many)), pa.string()),
            "flag": pa.array(data.draw(st.lists(st.booleans(), **many)), pa.bool_()),
            "v": pa.array(data.draw(st.lists(st.none() | st.floats(-1e9, 1e9), **many)), pa.float64()),
        }
    )
    wants = {"aggregates": AGGREGATES} if options.get("emit") != "rows" else {}
    key = data.draw(st.sampled_from([[], ["user"]])) if "partitioned" not in window else ["user"]

    def result() -> pa.Table:
        return wincli.aggregate(table, window, key=key, **options, **wants)

    whole = result()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_tables, "_PANES", size)
        batched = result()
    assert same(batched, whole), difference(batched, whole)
