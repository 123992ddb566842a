"""Outputs in an object store with conditional puts, against an S3 server."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import pyarrow as pa
import pytest

from support.s3_server import S3Bucket, S3Server
from wincli.windowing.errors import OutputError
from wincli.writers.commit.tables import StoreTable, table_of
from wincli.writers.output.output import Output, open_output
from wincli.writers.output.partitioning import bind_partitions
from wincli.writers.places.conditional import ConditionFailedError, Holder
from wincli.writers.places.lock import Owner
from wincli.writers.places.open import open_store
from wincli.writers.places.place import MANIFEST

ONE, TWO = Owner(1, "one", "2026-11-01T00:00:00"), Owner(2, "two", "2026-11-01T00:00:01")
SCHEMA = pa.schema([("n", pa.int64())])
LOST = r"lost s3://.*/out to another one \(process 2 on two, started .*\); nothing was written"
ALL = ["out/_SUCCESS", "out/_wincli/manifest.json"]


def write_parts(output: Output, count: int, value: int = 0) -> dict[str, Any]:
    """Begin, write parts as tasks do, and return the manifest."""
    output.begin()
    sink = pickle.loads(pickle.dumps(output.sink("csv", SCHEMA, SCHEMA)))
    parts = [sink.write_part(i, [pa.table({"n": [value]})]) for i in range(count)]
    return {"parts": [{"name": part.name, "bytes": part.nbytes} for part in parts], "rejects": [], "value": value}


def put(s3: S3Bucket, count: int, value: int = 0, owner: Owner = ONE) -> None:
    with open_output(f"{s3.uri}/out", "overwrite", [], owner) as output:
        output.commit(write_parts(output, count, value))


def names(s3: S3Bucket) -> list[str]:
    """The objects of a bucket, without the ids of attempts and runs."""
    return [re.sub("-[0-9a-f]{12}", "", name) for name in s3.names()]


def expire(s3: S3Bucket) -> None:
    """Time passes, and the run that holds the lease does not renew it."""
    store = open_store(s3.uri)
    found = store.get(".out.wincli-lock")
    assert found is not None
    holder = Holder.parse(found.content)
    assert holder is not None
    store.put(".out.wincli-lock", Holder(holder.owner, holder.token, 0.0).to_json())


def manifest(s3: S3Bucket) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        s3.client.get_object(Bucket=s3.name, Key="out/_wincli/manifest.json")["Body"].read()
    )
    return content


def test_result_is_replaced_and_nothing_else_is_left(s3: S3Bucket) -> None:
    put(s3, 3)
    assert names(s3) == [*ALL, *(f"out/part-0000{i}.csv" for i in range(3))]
    put(s3, 1, 5)
    assert names(s3) == [*ALL, "out/part-00000.csv"]
    assert manifest(s3)["value"] == 5
    assert table_of(f"{s3.uri}/out").missing(manifest(s3)) is None


def test_part_costs_one_request_and_a_thousand_former_parts_one_more(s3: S3Bucket, s3_server: S3Server) -> None:
    def cost(count: int) -> int:
        s3_server.requests.clear()
        put(s3, count)
        return len(s3_server.requests)

    cost(1)  # the probe, once for each bucket
    few, many = cost(2), cost(22)
    assert many - few == 20
    assert cost(2) == few
    assert few <= 40


def test_files_of_a_partition_with_any_name_are_deleted(s3: S3Bucket) -> None:
    """Names of folders hold percent signs, spaces and letters of any script, and they come back from listings."""
    schema = pa.schema([("n", pa.int64()), ("user", pa.string())])
    users = ["a b", "ä/ö", "100%", "x=y", "q?#[]", "~{}", "+&", "日本"]
    for value in (1, 2):
        with open_output(f"{s3.uri}/a b=ü/out", "overwrite", [], ONE) as output:
            output.begin()
            sink = output.sink("csv", schema, schema, bind_partitions([("user", None)], schema, 4))
            parts = sink.write_parts(0, [pa.table({"n": [value] * len(users), "user": users})])
            told = [{"name": part.name, "bytes": part.nbytes} for part in parts]
            output.commit({"parts": told, "rejects": [], "value": value})
        assert len(s3.names()) == len(users) + 2
        table = table_of(f"{s3.uri}/a b=ü/out")
        found = table.manifest()
        assert found is not None
        assert table.missing(found) is None


def test_run_that_has_lost_its_lease_does_not_publish_and_says_to_whom(s3: S3Bucket) -> None:
    put(s3, 2, 1)
    with open_output(f"{s3.uri}/out", "overwrite", [], ONE) as first:
        told = write_parts(first, 2, 2)
        expire(s3)
        with open_output(f"{s3.uri}/out", "overwrite", [], TWO) as second:
            with pytest.raises(OutputError, match=LOST):
                first.commit(told)
            second.commit(write_parts(second, 1, 3))
    assert manifest(s3)["value"] == 3
    assert names(s3) == [*ALL, "out/part-00000.csv"]


def test_run_that_is_paused_before_its_put_does_not_publish(s3: S3Bucket) -> None:
    with open_output(f"{s3.uri}/out", "overwrite", [], ONE) as first:
        first.prepare(write_parts(first, 2, 2))
        expire(s3)
        with open_output(f"{s3.uri}/out", "overwrite", [], TWO) as second:
            with pytest.raises(OutputError, match=LOST):
                first.publish()
            second.commit(write_parts(second, 1, 3))
    assert manifest(s3)["value"] == 3
    assert names(s3) == [*ALL, "out/part-00000.csv"]


def test_put_that_arrives_late_finds_another_version(s3: S3Bucket) -> None:
    """The request of a run that was killed is still under way while the next run cleans up."""
    put(s3, 1, 1)
    table = table_of(f"{s3.uri}/out")
    assert isinstance(table, StoreTable)
    with open_output(f"{s3.uri}/out", "overwrite", [], ONE) as first:
        first.prepare(write_parts(first, 2, 2))
        late = table.objects.manifest.read()
        assert late is not None
        expire(s3)
        with open_output(f"{s3.uri}/out", "overwrite", [], TWO), pytest.raises(ConditionFailedError):
            table.objects.store.put_if(table.objects.of_output(MANIFEST), b"{}", late.version)
    assert manifest(s3)["value"] == 1
    assert names(s3) == [*ALL, "out/part-00000.csv"]


def test_run_that_wakes_up_deletes_nothing_of_the_run_that_took_over(s3: S3Bucket) -> None:
    with open_output(f"{s3.uri}/out", "overwrite", [], ONE) as first:
        first.begin()
        expire(s3)
        with open_output(f"{s3.uri}/out", "overwrite", [], TWO) as second:
            told = write_parts(second, 2, 3)
            first.table.remove_leftovers()
            second.commit(told)
    assert manifest(s3)["value"] == 3
    assert names(s3) == [*ALL, *(f"out/part-0000{i}.csv" for i in range(2))]


def test_upload_that_a_killed_run_has_left_is_aborted(s3: S3Bucket) -> None:
    own = "out/part-00000-0123456789ab-0123456789ab.csv"
    for name in (own, "out/notes.txt", "out2/part-00000-0123456789ab-0123456789ab.csv"):
        s3.client.create_multipart_upload(Bucket=s3.name, Key=name)
    put(s3, 1)
    assert own in uploads(s3)  # nothing tells of a killed run: the list would cost each run two requests
    dead = Holder(Owner(3, "three", "2026-11-01T00:00:00"), "0123456789ab", 0.0)
    open_store(s3.uri).put(".out.wincli-lock", dead.to_json())
    put(s3, 1)
    assert uploads(s3) == ["out/notes.txt", "out2/part-00000-0123456789ab-0123456789ab.csv"]


def uploads(s3: S3Bucket) -> list[str]:
    return [each["Key"] for each in s3.client.list_multipart_uploads(Bucket=s3.name).get("Uploads", ())]
