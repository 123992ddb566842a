"""Windows of history that go on live: Structured Streaming takes over where a run over history stopped.

    windows, state = wincli.windows(history, **job, state="new")      # what is complete, and what is open
    more = live_windows(stream, state, **job)                         # what the stream completes
    more.writeStream.option("checkpointLocation", "..").start("..")

Both together are the windows of one run over all rows, floats to the bit, with numbers that go on. It is an example to
start from, for windows whose keys do not depend on each other and that the clock does not end: ``delta``, ``gap``,
``count``, ``change``, conditions, and several with ``or``. Rows of a key must come in their order: a row that sorts
before rows of earlier micro-batches is late, and is dropped.

It needs Spark 4.0 or later, ``pandas`` and ``protobuf`` in Python, the time zone UTC (``spark.sql.session.timeZone``),
and a store of states in RocksDB (``spark.sql.streaming.stateStore.providerClass``: docs/python.md#on-to-live).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, functions
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from ...windowing.in_memory import aggregate

if TYPE_CHECKING:
    import pandas as pd

_OF_NO_KEY = -1  # the part of a state that holds what concerns all keys


def live_windows(stream: DataFrame, state: DataFrame, **job: Any) -> DataFrame:
    """Return the windows that the rows of a stream complete.

    ``state``: of the run over history, one row a key and part. ``job``: the arguments of that run, ``key`` as one or
    more names. What belongs to all keys is read here, which runs a job over the state; all else stays where it is.
    """
    key = [job["key"]] if isinstance(job["key"], str) else list(job["key"])
    common = state.where(functions.col("_part") == _OF_NO_KEY).toArrow()
    keys = state.where(functions.col("_part") > _OF_NO_KEY)
    columns = ", ".join(f"`{name}` {state.schema[name].dataType.simpleString()}" for name in key)
    first = keys.groupBy(*key).applyInArrow(packing(key, common), f"{columns}, state binary").groupBy(*key)
    rows = empty_table(stream)
    job = {**job, "plain": True, "rejected": "drop"}
    result = stream.sparkSession.createDataFrame(aggregate(rows, **job)).schema
    windows = KeyWindows(job, rows.schema, packed(common))
    return stream.groupBy(*key).transformWithStateInPandas(windows, result, "Append", "None", first)


class KeyWindows(StatefulProcessor):  # type: ignore[misc]  # pyspark is not followed
    """The windows of one key, from micro-batch to micro-batch.

    ``job``: the arguments of `wincli.aggregate`. ``schema``: of the rows. ``common``: the packed state of a new key.
    """

    def __init__(self, job: dict[str, Any], schema: pa.Schema, common: bytes) -> None:
        self.job = job
        self.schema = schema
        self.common = common

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the store, which holds one packed state a key."""
        self.kept = handle.getValueState("windows", "state binary")

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:  # noqa: N802, N803, ARG002
        """Take over what history has left of a key."""
        self.kept.update((initialState["state"].iloc[0],))

    def handleInputRows(  # noqa: N802
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803, ARG002
    ) -> Iterator[pd.DataFrame]:
        """Yield the windows that new rows complete."""
        table = pa.concat_tables(pa.Table.from_pandas(each, self.schema, preserve_index=False) for each in rows)
        before = self.kept.get()[0] if self.kept.exists() else self.common
        windows, after = aggregate(table, **self.job, state=unpacked(bytes(before)))
        self.kept.update((packed(after),))
        texts = [field.name for field in windows.schema if pa.types.is_string(field.type)]
        yield windows.to_pandas().astype(dict.fromkeys(texts, object))  # Spark cannot join texts of pandas 3

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def packing(key: list[str], common: pa.Table) -> Callable[[pa.Table], pa.Table]:
    """Return a function from the state of a key to one row: the key, and its state with what concerns all keys."""

    def pack(state: pa.Table) -> pa.Table:
        whole = pa.concat_tables([state.cast(common.schema), common])
        return state.select(key).slice(0, 1).append_column("state", pa.array([packed(whole)]))

    return pack


def packed(table: pa.Table) -> bytes:
    """Return a table as the bytes of an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()


def unpacked(data: bytes) -> pa.Table:
    """Return the table of such bytes."""
    return pa.ipc.open_stream(data).read_all()


def empty_table(stream: DataFrame) -> pa.Table:
    """Return a table without rows that has the columns of a stream."""
    return stream.sparkSession.createDataFrame([], stream.schema).toArrow()
