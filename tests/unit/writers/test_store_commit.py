"""Outputs in an object store with conditional puts: against an S3 server, and over a folder that stands in for one."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.numbered_units import DEAD, ME, OTHER, SCHEMA
from support.quick_store import QuickStore
from support.s3_server import S3Bucket, S3Server
from wincli.windowing.errors import ConfigError, OutputError
from wincli.windowing.support.file_systems import file_system_of
from wincli.writers.commit.contract import Content
from wincli.writers.commit.store_objects import run_of
from wincli.writers.commit.tables import table_of
from wincli.writers.output.output import Output, open_output
from wincli.writers.output.partitioning import bind_partitions
from wincli.writers.output.sink import FileSink
from wincli.writers.places import conditional
from wincli.writers.places.conditional import Holder
from wincli.writers.places.open import open_store
from wincli.writers.places.place import locate

OUT = "s://store/out"
ALL = ["out/_SUCCESS", "out/_wincli/manifest.json"]


def write_parts(output: Output, count: int, value: int = 0) -> dict[str, Any]:
    """Begin, write parts as tasks do, and return the manifest."""
    output.begin()
    sink = pickle.loads(pickle.dumps(output.sink("csv", SCHEMA, SCHEMA)))
    parts = [sink.write_part(i, [pa.table({"n": [value]})]) for i in range(count)]
    return {"parts": [{"name": part.name, "bytes": part.nbytes} for part in parts], "rejects": [], "value": value}


def put(path: str, count: int, value: int = 0, mode: Any = "overwrite") -> None:
    with open_output(path, mode, [], ME) as output:
        output.commit(write_parts(output, count, value))


def names(s3: S3Bucket) -> list[str]:
    """The objects of a bucket, without the ids of attempts and runs."""
    return [re.sub("-[0-9a-f]{12}", "", name) for name in s3.names()]


def files(store: Path) -> list[str]:
    found = (str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())
    return sorted(re.sub("-[0-9a-f]{12}", "", name) for name in found)


def expire(s3: S3Bucket) -> None:
    """Time passes, and the run that holds the lease does not renew it."""
    store = open_store(s3.uri)
    found = store.get(".out.wincli-lock")
    assert found is not None
    holder = Holder.parse(found.content)
    assert holder is not None
    store.put(".out.wincli-lock", Holder(holder.owner, holder.token, 0.0).to_json())


def manifest(s3: S3Bucket) -> dict[str, Any]:
    return dict(json.loads(s3.client.get_object(Bucket=s3.name, Key="out/_wincli/manifest.json")["Body"].read()))


# Against a server


def test_result_is_replaced_and_nothing_else_is_left(s3: S3Bucket) -> None:
    put(f"{s3.uri}/out", 3)
    assert names(s3) == [*ALL, *(f"out/part-0000{i}.csv" for i in range(3))]
    put(f"{s3.uri}/out", 1, 5)
    assert names(s3) == [*ALL, "out/part-00000.csv"]
    assert manifest(s3)["value"] == 5
    assert table_of(f"{s3.uri}/out").missing(manifest(s3)) is None
    with pytest.raises(ConfigError, match="already holds a result"):
        put(f"{s3.uri}/out", 1, mode="error")


def test_part_costs_one_request_and_a_thousand_former_parts_one_more(s3: S3Bucket, s3_server: S3Server) -> None:
    def cost(count: int) -> int:
        s3_server.requests.clear()
        put(f"{s3.uri}/out", count)
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
        with open_output(f"{s3.uri}/a b=ü/out", "overwrite", [], ME) as output:
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
    with open_output(f"{s3.uri}/out", "overwrite", [], ME) as first:
        told = write_parts(first, 2, 2)
        expire(s3)
        with open_output(f"{s3.uri}/out", "overwrite", [], OTHER) as second:
            lost = r"lost s3://.*/out to another one \(process \d+ on here, started .*\); nothing was written"
            with pytest.raises(OutputError, match=lost):
                first.commit(told)
            told = write_parts(second, 1, 3)
            first.table.remove_leftovers()  # which deletes nothing of the run that took over
            second.commit(told)
    assert manifest(s3)["value"] == 3
    assert names(s3) == [*ALL, "out/part-00000.csv"]


def test_upload_that_a_killed_run_has_left_is_aborted(s3: S3Bucket) -> None:
    def uploads() -> list[str]:
        return [each["Key"] for each in s3.client.list_multipart_uploads(Bucket=s3.name).get("Uploads", ())]

    own = "out/part-00000-0123456789ab-0123456789ab.csv"
    others = ["out/notes.txt", "out2/part-00000-0123456789ab-0123456789ab.csv"]
    for name in (own, *others):
        s3.client.create_multipart_upload(Bucket=s3.name, Key=name)
    put(f"{s3.uri}/out", 1)
    assert own in uploads()  # nothing tells of a killed run: the list would cost each run two requests
    open_store(s3.uri).put(".out.wincli-lock", Holder(DEAD, "0123456789ab", 0.0).to_json())
    put(f"{s3.uri}/out", 1)
    assert uploads() == others


def test_an_attempt_that_ends_half_way_leaves_the_file_of_the_other_as_it_is(s3: S3Bucket) -> None:
    """Spark speculates with two attempts at a task."""
    store, path = file_system_of(f"{s3.uri}/out")
    sink = FileSink(store, f"{path}-staging", "out", "parquet", SCHEMA, SCHEMA, data=path, suffix="-0123456789ab")
    rows = pa.table({"n": range(1000)}, SCHEMA)

    def half() -> Iterator[pa.Table]:
        yield rows[:10]
        raise KeyboardInterrupt

    part = sink.write_part(7, [rows])
    with pytest.raises(KeyboardInterrupt):
        sink.write_part(7, half())
    second = sink.write_part(7, [rows])
    assert part.name != second.name
    for each in (part, second):
        assert re.fullmatch(r"part-00007-[0-9a-f]{12}-0123456789ab\.parquet", each.name)
        with store.open_input_file(f"{path}/{each.name}") as file:
            assert pq.read_table(file) == rows
            assert file.size() == each.nbytes
    rejects = {sink.write_rejects(3, rows[:1]).name for _ in range(2)}
    assert len(rejects) == 2
    assert all(name.startswith("_rejected/rejects-00003-") for name in rejects)


# Over a folder


def test_what_an_attempt_left_is_known_as_a_file_of_its_run() -> None:
    assert run_of("part-00007-aaaaaaaaaaaa-0123456789ab.parquet") == "0123456789ab"
    assert run_of("_rejected/rejects-00007-aaaaaaaaaaaa-0123456789ab.ndjson") == "0123456789ab"
    assert run_of("part-00007-0123456789ab.parquet") == "0123456789ab"
    assert run_of("part-00007-mine.parquet") is None


def test_former_result_goes_after_the_manifest_of_the_new_one_is_put(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(OUT, 2)
    seen: list[tuple[int, int]] = []
    put_if = QuickStore.put_if

    def spy(self: QuickStore, name: str, content: bytes, version: Any) -> Any:
        if version is not None:
            seen.append((len(list((store / "out").glob("part-*"))), content.count(b"part-")))
        return put_if(self, name, content, version)

    monkeypatch.setattr(QuickStore, "put_if", spy)
    put(OUT, 1)
    assert seen == [(3, 1)]
    assert len(list((store / "out").glob("part-*"))) == 1


def test_leftovers_and_lease_of_a_dead_run_go_and_files_that_no_run_writes_stay(store: Path) -> None:
    (store / ".out.wincli-lock").write_bytes(Holder(DEAD, "0123456789ab", 1e12).to_json())
    for name in (".out.wincli-new-0123456789ab", "out/day=1", "out/_rejected"):
        (store / name).mkdir(parents=True)
        (store / name / "part-00000-0123456789ab.csv").write_text("")
    put(OUT, 1)
    assert files(store) == [*ALL, "out/part-00000.csv"]
    (store / "out/notes.txt").write_text("mine")
    put(OUT, 1)
    assert files(store) == [*ALL, "out/notes.txt", "out/part-00000.csv"]


def test_result_of_an_older_wincli_is_replaced(store: Path) -> None:
    (store / "out/_wincli").mkdir(parents=True)
    (store / "out/part-00000.jsonl").write_text("")
    told = {"parts": [{"name": "part-00000.jsonl"}], "rejects": []}
    (store / "out/_wincli/manifest.json").write_text(json.dumps(told))
    put(OUT, 1)
    assert files(store) == [*ALL, "out/part-00000.csv"]


def test_live_run_is_respected(store: Path) -> None:
    refused = pytest.raises(OutputError, match="another run is writing to s://store/out")
    with open_output(OUT, "error", [], ME), refused:
        put(OUT, 1)


def test_first_run_that_fails_leaves_a_manifest_that_says_so(store: Path) -> None:
    with open_output(OUT, "error", [], ME) as output:
        output.sink("csv", SCHEMA, SCHEMA).write_part(0, [pa.table({"n": [1]})])
    assert list(store.iterdir()) == [], "it has not begun"
    with open_output(OUT, "error", [], ME) as output:
        write_parts(output, 1)
    assert files(store) == ["out/_wincli/manifest.json"]
    table = table_of(OUT)
    assert table.content() is Content.VACANT
    assert table.manifest() is None
    put(OUT, 1, mode="error")
    assert files(store) == [*ALL, "out/part-00000.csv"]


def test_part_of_another_size_than_its_task_has_written_is_refused(store: Path) -> None:
    with open_output(OUT, "error", [], ME) as output:
        told = write_parts(output, 1)
        (part,) = told["parts"]
        part["bytes"] += 1
        with pytest.raises(OutputError, match=rf"{part['name']} was written by a task and has 6 bytes, not 7"):
            output.commit(told)


def test_store_without_conditions_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuickStore, "put_if", lambda store, name, content, _: store.put(name, content))
    monkeypatch.setattr(conditional, "_PROBED", {})
    refused = pytest.raises(ConfigError, match="s://store/out is in a store that does not compare versions")
    with refused, open_output(OUT, "error", [], ME):
        pass
    assert list(store.iterdir()) == []


def test_whole_bucket_is_not_an_output() -> None:
    with pytest.raises(ConfigError, match="is the root of a store; name a folder inside it"):
        locate("s3://bucket?region=eu-west-1&endpoint_override=127.0.0.1:1")
