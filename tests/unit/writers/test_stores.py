"""Stores: conditional puts and leases over a line on which requests go wrong, and outputs, which one put commits."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.exceptions import BaseError
from pyarrow import fs

from support import fault_proxy
from support.fault_proxy import FAULTS, Fault, FaultProxy
from support.numbered_units import DEAD, ME, OTHER, SCHEMA
from support.quick_store import QuickStore, expire
from support.s3_server import S3Bucket, S3Server, serving_with
from wincli.windowing.errors import ConfigError, OutputError
from wincli.windowing.support import file_systems
from wincli.windowing.support.address import Address
from wincli.windowing.support.file_systems import StoreAddress, file_system_of, reach
from wincli.writers.commit.contract import Content
from wincli.writers.commit.tables import table_of
from wincli.writers.output.output import Output, open_output
from wincli.writers.output.partitioning import bind_partitions
from wincli.writers.output.sink import FileSink
from wincli.writers.places import conditional
from wincli.writers.places.conditional import (
    CommitObject,
    ConditionalStore,
    ConditionFailedError,
    Holder,
    Version,
    hold_lease,
    holder_of,
    refuses_stale_puts,
    version_of,
)
from wincli.writers.places.lock import Owner
from wincli.writers.places.objects import Objects
from wincli.writers.places.open import open_store
from wincli.writers.places.place import locate

ONE, TWO = Owner(1, "a", "2026-01-01T00:00:00"), Owner(2, "b", "2026-01-01T00:00:01")


@pytest.fixture
def objects(s3: S3Bucket) -> ConditionalStore:
    return open_store(f"{s3.uri}/out")


# Conditional puts


def test_a_put_takes_effect_only_on_the_version_that_was_read(objects: ConditionalStore) -> None:
    first = objects.put_if("m", b"1", None)
    second = objects.put_if("m", b"2", first)
    assert objects.put_if("m", b"2", first) == objects.put_if("m", b"2", None) == second, "its answer may be lost"
    for name, content, version in (("m", b"3", first), ("m", b"4", None), ("none", b"5", second)):
        with pytest.raises(ConditionFailedError):
            objects.put_if(name, content, version)
    found = objects.get("m")
    assert found is not None
    assert (found.content, found.version) == (b"2", second)


def test_objects_are_listed_and_deleted_by_name(objects: ConditionalStore, s3: S3Bucket) -> None:
    for name in ("a", "b/c", "b/d"):
        objects.put(name, b"12")
    assert objects.list() == {"a": 2, "b/c": 2, "b/d": 2}
    assert objects.list("b") == {"b/c": 2, "b/d": 2}
    objects.delete(["a", "b/c", "gone"])
    assert s3.names() == ["out/b/d"]
    assert objects.get("a") is None


@pytest.fixture
def proxy(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    with fault_proxy.serve(s3.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


def add(store: ConditionalStore, word: str) -> bool:
    """Add a word to those of an object, as all writers do; whether the store says that it was added."""
    found = store.get("words")
    try:
        store.put_if("words", b" ".join([*([found.content] if found else []), word.encode()]), version_of(found))
    except ConditionFailedError:
        return False
    return True


def words(store: ConditionalStore) -> list[str]:
    found = store.get("words")
    return [] if found is None else found.content.decode().split()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_writer_whose_requests_go_wrong_is_told_what_happened(s3: S3Bucket, proxy: FaultProxy, fault: Fault) -> None:
    store = open_store(f"{s3.uri}/out")
    proxy.begin(seed=len(fault), rate=0.3)
    proxy.kinds = (fault,)
    added = [add(store, f"w{n}") for n in range(6)]
    assert proxy.happened.total() > 0
    proxy.begin()
    assert added == [True] * 6
    assert words(store) == [f"w{n}" for n in range(6)]


def test_what_writers_that_race_were_told_is_there_once(s3: S3Bucket, proxy: FaultProxy) -> None:
    store = open_store(f"{s3.uri}/out")
    proxy.begin(seed=1, rate=0.1)
    names = [f"w{n}" for n in range(60)]
    with ThreadPoolExecutor(6) as pool:
        added = dict(zip(names, pool.map(lambda name: add(store, name), names), strict=True))
    assert proxy.happened.total() > 0
    proxy.begin()
    found = words(store)
    assert len(found) == len(set(found))
    assert {name for name in names if added[name]} <= set(found)
    assert not all(added.values())


class IgnoresConditions(Objects):
    """A store whose gateway ignores conditions."""

    def put_if(self, name: str, content: bytes, version: Version | None) -> Version:
        return self.put(name, content)


def test_the_probe_finds_a_store_that_ignores_conditions(objects: ConditionalStore, s3: S3Bucket) -> None:
    assert refuses_stale_puts(objects, "probe")
    assert isinstance(objects, Objects)
    assert not refuses_stale_puts(IgnoresConditions(objects.store), "probe")
    assert s3.names() == []


def test_an_error_of_the_store_has_no_secret(objects: ConditionalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses that Azure is asked at may carry a signature."""

    def refuse(*_: object) -> None:
        raise BaseError("no answer from https://a.blob.core.windows.net/c/x?sv=2024&sig=abcDEF123456")

    monkeypatch.setattr(obstore, "get", refuse)
    with pytest.raises(OSError, match="no answer from https") as error:
        objects.get("x")
    assert "abcDEF123456" not in str(error.value)


def test_a_uri_has_parts() -> None:
    assert StoreAddress.parse("s3a://user:pa%2Fss@lake/a%20b/c/?region=eu-west-1") == StoreAddress(
        "s3", "lake", "a b/c", "", "user", "pa/ss", (("region", "eu-west-1"),)
    )
    assert StoreAddress.parse("abfs://box@account.dfs.core.windows.net/x") == StoreAddress(
        "abfs", "box", "x", "account.dfs.core.windows.net"
    )
    assert StoreAddress.parse("hdfs://host/x") is None
    assert StoreAddress.parse("out") is None
    assert Address.of("s3a://lake/x").plain == "s3://lake/x"
    assert Address.of("out").plain == "out"


def test_both_clients_see_the_same_objects(objects: ConditionalStore, s3: S3Bucket) -> None:
    system, path = file_system_of(f"s3a://{s3.name}/out/")
    assert path == f"{s3.name}/out"
    with system.open_output_stream(f"{path}/part") as file:
        file.write(b"abc")
    found = objects.get("part")
    assert found is not None
    assert found.content == b"abc"
    assert isinstance(system, fs.S3FileSystem)


def test_a_bucket_that_is_not_there_is_an_error_at_once(s3: S3Bucket) -> None:
    with pytest.raises(FileNotFoundError, match="no bucket no-such-lake"):
        reach("s3://no-such-lake/x")
    reach(s3.uri)


def test_a_task_asks_a_store_that_fails_as_often_as_the_driver(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fail(environ: dict[str, str], start_response: Any) -> list[bytes]:
        asked.append(environ["PATH_INFO"])
        start_response("500 Internal Server Error", [("Content-Length", "0")])
        return []

    with serving_with(fail) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setattr(file_systems, "_TRIES", 4)
        system, path = pickle.loads(pickle.dumps(file_system_of(f"{s3.uri}/x")))
        with pytest.raises(OSError, match="500"):
            system.get_file_info(path)
    assert len(asked) == 4  # pyarrow's own number is 3


# Leases


@pytest.fixture
def leases(tmp_path: Path) -> ConditionalStore:
    return QuickStore(tmp_path)


def held(store: ConditionalStore, owner: Owner) -> AbstractContextManager[Owner | None]:
    return hold_lease(store, "lease", owner, "s3://b/out", "choose another output")


INFINITE = b'{"pid": Infinity, "host": "a", "started": "1", "token": "", "expires": 1e12}'


@pytest.mark.parametrize("damaged", [b"what", b"[" * 100_000, INFINITE], ids=["text", "deep", "infinite"])
def test_one_run_holds_a_lease_and_says_who(leases: ConditionalStore, damaged: bytes) -> None:
    leases.put("lease", damaged)  # a damaged lease is as none
    with held(leases, ONE) as former:
        assert former is None
        refused = pytest.raises(OutputError, match=r"another run is writing to s3://b/out \(process 1 on a")
        with refused as error, held(leases, TWO):
            pass
        assert "expires after 60 s" in str(error.value.do)
    assert holder_of(leases, "lease") is None
    with held(leases, TWO) as former:
        assert former is None


def test_an_expired_lease_is_taken_over_and_its_run_does_not_take_it_back(
    leases: ConditionalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditional, "SECONDS", -1.0)
    with held(leases, ONE):
        with held(leases, TWO) as former:
            assert former == ONE
            error = CommitObject(leases, "m", "lease", "s3://b/out", ONE).lost()
            assert "lost s3://b/out to another one (process 2 on b" in error.what
        leases.put("lease", conditional._content(TWO))  # which the end of the first run leaves alone
    holder = holder_of(leases, "lease")
    assert holder is not None
    assert holder.owner == TWO


def test_a_lease_is_renewed_as_long_as_it_is_held(leases: ConditionalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional, "_BEAT", 0.01)
    with held(leases, ONE):
        first = holder_of(leases, "lease")
        assert first is not None
        while (now := holder_of(leases, "lease")) is None or now.token == first.token:
            pass
        assert now.expires > first.expires


# Outputs


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


def names(place: S3Bucket | Path) -> list[str]:
    """The objects of a bucket, without the ids of attempts and runs."""
    if isinstance(place, S3Bucket):
        found = place.names()
    else:
        found = [str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()]
    return sorted(re.sub("-[0-9a-f]{12}", "", name) for name in found)


def manifest(store: Path) -> dict[str, Any]:
    return dict(json.loads((store / "out/_wincli/manifest.json").read_text()))


def test_result_is_replaced_and_nothing_else_is_left(s3: S3Bucket) -> None:
    put(f"{s3.uri}/out", 3)
    assert names(s3) == [*ALL, *(f"out/part-0000{i}.csv" for i in range(3))]
    put(f"{s3.uri}/out", 1, 5)
    assert names(s3) == [*ALL, "out/part-00000.csv"]
    table = table_of(f"{s3.uri}/out")
    found = table.manifest()
    assert found is not None
    assert found["value"] == 5
    assert table.missing(found) is None
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


def test_upload_that_a_killed_run_has_left_is_aborted(s3: S3Bucket) -> None:
    own = "out/part-00000-0123456789ab-0123456789ab.csv"
    others = ["out/notes.txt", "out2/part-00000-0123456789ab-0123456789ab.csv"]
    for name in (own, *others):
        s3.client.create_multipart_upload(Bucket=s3.name, Key=name)
    put(f"{s3.uri}/out", 1)
    assert own in s3.open_uploads()  # nothing tells of a killed run: the list would cost each run two requests
    open_store(s3.uri).put(".out.wincli-lock", Holder(DEAD, "0123456789ab", 0.0).to_json())
    put(f"{s3.uri}/out", 1)
    assert s3.open_uploads() == others


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


# Outputs over a folder that stands in for a bucket


def test_run_that_has_lost_its_lease_does_not_publish_and_says_to_whom(store: Path) -> None:
    refused = pytest.raises(OutputError, match="another run is writing to s://store/out")
    with open_output(OUT, "overwrite", [], ME) as first:
        with refused, open_output(OUT, "overwrite", [], OTHER):
            pass
        told = write_parts(first, 2, 2)
        expire(store / ".out.wincli-lock")
        with open_output(OUT, "overwrite", [], OTHER) as second:
            lost = r"lost s://store/out to another one \(process \d+ on here, started .*\); nothing was written"
            with pytest.raises(OutputError, match=lost):
                first.commit(told)
            told = write_parts(second, 1, 3)
            first.table.remove_leftovers()  # which deletes nothing of the run that took over
            second.commit(told)
    assert manifest(store)["value"] == 3
    assert names(store) == [*ALL, "out/part-00000.csv"]


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
    attempt = "aaaaaaaaaaaa-0123456789ab"
    for left in (
        *(f"{folder}/part-00000-0123456789ab.csv" for folder in (".out.wincli-new-0123456789ab", "out/day=1")),
        *(f"out/part-00007-{attempt}.parquet", f"out/_rejected/rejects-00007-{attempt}.ndjson"),
    ):
        (store / left).parent.mkdir(parents=True, exist_ok=True)
        (store / left).write_text("")
    put(OUT, 1)
    assert names(store) == [*ALL, "out/part-00000.csv"]
    for mine in ("notes.txt", "part-00007-mine.parquet"):
        (store / "out" / mine).write_text("mine")
    put(OUT, 1)
    assert names(store) == [*ALL, "out/notes.txt", "out/part-00000.csv", "out/part-00007-mine.parquet"]


def test_result_of_an_older_wincli_is_replaced(store: Path) -> None:
    (store / "out/_wincli").mkdir(parents=True)
    (store / "out/part-00000.jsonl").write_text("")
    told = {"parts": [{"name": "part-00000.jsonl"}], "rejects": []}
    (store / "out/_wincli/manifest.json").write_text(json.dumps(told))
    put(OUT, 1)
    assert names(store) == [*ALL, "out/part-00000.csv"]


def test_first_run_that_fails_leaves_a_manifest_that_says_so(store: Path) -> None:
    with open_output(OUT, "error", [], ME) as output:
        output.sink("csv", SCHEMA, SCHEMA).write_part(0, [pa.table({"n": [1]})])
    assert list(store.iterdir()) == [], "it has not begun"
    with open_output(OUT, "error", [], ME) as output:
        write_parts(output, 1)
    assert names(store) == ["out/_wincli/manifest.json"]
    table = table_of(OUT)
    assert table.content() is Content.VACANT
    assert table.manifest() is None
    put(OUT, 1, mode="error")
    assert names(store) == [*ALL, "out/part-00000.csv"]


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
