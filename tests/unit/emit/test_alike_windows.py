"""Windows of a hop that show the same rows: their aggregates are computed once, and are those of each by itself."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli import DataError, aggregate

MANY = examples(40, deadline=None)
LARGE = 2**62
HOP = "timeInterval, intervalDuration(10), creationPeriod(2)"
VALUES = st.none() | st.sampled_from([0.0, -0.0, 0.1, 0.2, 1e16, -1e16, math.nan])


def hop(ts: list[int], x: list[Any], kind: pa.DataType, call: str) -> pa.Table:
    table = pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array([t % 2 for t in ts]), "x": pa.array(x, kind)})
    calls = [f"value={call}", "rows=collect(x)"]
    return aggregate(table, HOP, aggregates=calls, key="k", order_by="ts", event_time="ts")


@MANY
@given(
    st.data(), st.lists(st.integers(0, 200), max_size=12).map(sorted), st.sampled_from(["sum", "mean", "min", "max"])
)
def test_each_window_has_the_value_of_its_own_rows(data: st.DataObject, ts: list[int], call: str) -> None:
    x = data.draw(st.lists(VALUES, min_size=len(ts), max_size=len(ts)))
    for row in hop(ts, x, pa.float64(), f"{call}(x)").to_pylist():
        if row["rows"] is None:
            continue
        alone = aggregate(
            pa.table({"x": pa.array(row["rows"], pa.float64())}), "count(99)", aggregates=[f"v={call}(x)"]
        )
        assert repr(alone["v"][0].as_py()) == repr(row["value"])


def test_an_overflow_names_the_first_window_with_these_rows() -> None:
    """The rows at 100 and 102 are in four windows together, the first of which is window 1 of its key.

    rows of key 0           100  102
    window 0           [92       102)
    window 1             [94       104)
    """
    with pytest.raises(DataError, match=r"^sum\(x\) does not fit int64 in window 1 of key k=0 "):
        hop([100, 102], [LARGE, LARGE], pa.int64(), "sum(x)")
