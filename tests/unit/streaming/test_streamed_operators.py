"""Operators over a stream of batches, or over buckets of keys, get the calls that they get over the whole table."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import logs
from support.keeping_operators import ASKING, KEEPER
from support.strategies import examples
from support.table_equality import difference, same
from wincli.windowing.errors import ConfigError

WINDOWS = [
    "count(3)",
    "delta(t, 3)",
    "time(4)",
    "sliding, count(2)",
    "sliding, time(5), time(2)",
    "gap(t, 2) or count(4)",
]
WINDOWS += ["within 3", "punct(flag)", "retain 2"]


def stamped(table: pa.Table) -> pa.Table:
    """Rows in the order of what brought them out, over all batches of a stream."""
    names = [name for name in ("k", "_at", "_turn", "_pos", "_step", "window", "_row") if name in table.column_names]
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()


@examples(40)
@given(st.data(), logs(), st.sampled_from(WINDOWS), st.sampled_from([KEEPER, ASKING]), st.booleans())
def test_batches_give_the_calls_of_the_table(
    data: st.DataObject, table: pa.Table, window: str, operator: str, keyed: bool
) -> None:
    table = table.sort_by("t")
    options: dict[str, Any] = {"key": "k" if keyed else (), "order_by": "t", "operator": operator, "rejected": "drop"}
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=3)))
    parts = [table.slice(low, high - low) for low, high in pairwise([0, *cuts, len(table)])]
    batches = [batch for part in parts for batch in part.to_batches()]
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    found = stamped(wincli.aggregate_stream(reader, window, **options).read_all())
    whole = stamped(wincli.aggregate(table, window, **options))
    assert same(found, whole), difference(found, whole)


def test_a_class_that_is_not_there_is_named() -> None:
    log = pa.table({"t": [1]})
    with pytest.raises(ConfigError, match="cannot import module 'no_such_module': ModuleNotFoundError"):
        wincli.aggregate_stream(log.to_reader(), "count(2)", operator="no_such_module:Op")
