"""Two attempts at a task, as Spark speculates with: on a store one that ends half way cannot spoil the other's file."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.s3_server import S3Bucket
from wincli.windowing.support.file_systems import file_system_of
from wincli.writers.commit.store_objects import run_of
from wincli.writers.output.sink import FileSink

SCHEMA = pa.schema([("n", pa.int64())])
ROWS = pa.table({"n": range(1000)}, SCHEMA)


class EndedError(Exception):
    """What a task meets whose attempt is not needed any more."""


def test_an_attempt_that_ends_half_way_leaves_the_file_of_the_other_as_it_is(s3: S3Bucket) -> None:
    store, path = file_system_of(f"{s3.uri}/out")
    sink = FileSink(store, f"{path}-staging", "out", "parquet", SCHEMA, SCHEMA, data=path, suffix="-0123456789ab")

    def half() -> Iterator[pa.Table]:
        yield ROWS[:10]
        raise EndedError

    part = sink.write_part(7, [ROWS])
    with pytest.raises(EndedError):
        sink.write_part(7, half())
    second = sink.write_part(7, [ROWS])
    assert part.name != second.name
    assert part.name.startswith("part-00007-")
    assert part.name.endswith("-0123456789ab.parquet")
    for each in (part, second):
        with store.open_input_file(f"{path}/{each.name}") as file:
            assert pq.read_table(file) == ROWS
            assert file.size() == each.nbytes


def test_rejects_of_attempts_have_names_of_their_own(s3: S3Bucket) -> None:
    store, path = file_system_of(f"{s3.uri}/out")
    sink = FileSink(store, f"{path}-staging", "out", "parquet", SCHEMA, SCHEMA, data=path, suffix="-0123456789ab")
    names = {sink.write_rejects(3, ROWS[:1]).name for _ in range(2)}
    assert len(names) == 2
    assert all(name.startswith("_rejected/rejects-00003-") for name in names)


def test_what_an_attempt_left_is_known_as_a_file_of_its_run() -> None:
    assert run_of("part-00007-aaaaaaaaaaaa-0123456789ab.parquet") == "0123456789ab"
    assert run_of("_rejected/rejects-00007-aaaaaaaaaaaa-0123456789ab.ndjson") == "0123456789ab"
    assert run_of("part-00007-0123456789ab.parquet") == "0123456789ab"
    assert run_of("part-00007-mine.parquet") is None
