"""Conditional puts, leases and the probe, against an S3 server; also over a line on which requests go wrong."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import obstore
import pytest
from obstore.exceptions import BaseError
from pyarrow import fs

from support import fault_proxy
from support.fault_proxy import FAULTS, Fault, FaultProxy
from support.s3_server import S3Bucket, serving_with
from wincli.windowing.errors import OutputError
from wincli.windowing.support import file_systems
from wincli.windowing.support.address import Address
from wincli.windowing.support.file_systems import StoreAddress, file_system_of, reach
from wincli.writers.places import conditional
from wincli.writers.places.conditional import (
    CommitObject,
    ConditionalStore,
    ConditionFailedError,
    Version,
    hold_lease,
    holder_of,
    refuses_stale_puts,
    version_of,
)
from wincli.writers.places.lock import Owner
from wincli.writers.places.objects import Objects
from wincli.writers.places.open import open_store

ONE, TWO = Owner(1, "a", "2026-01-01T00:00:00"), Owner(2, "b", "2026-01-01T00:00:01")


@pytest.fixture
def store(s3: S3Bucket) -> ConditionalStore:
    return open_store(f"{s3.uri}/out")


def held(store: ConditionalStore, owner: Owner) -> AbstractContextManager[Owner | None]:
    return hold_lease(store, "lease", owner, "s3://b/out", "choose another output")


def test_a_put_takes_effect_only_on_the_version_that_was_read(store: ConditionalStore) -> None:
    first = store.put_if("m", b"1", None)
    second = store.put_if("m", b"2", first)
    with pytest.raises(ConditionFailedError):
        store.put_if("m", b"3", first)
    with pytest.raises(ConditionFailedError):
        store.put_if("m", b"4", None)
    with pytest.raises(ConditionFailedError):
        store.put_if("none", b"5", second)
    found = store.get("m")
    assert found is not None
    assert (found.content, found.version) == (b"2", second)


def test_a_put_whose_answer_was_lost_counts(store: ConditionalStore) -> None:
    first = store.put_if("m", b"1", None)
    second = store.put_if("m", b"2", first)
    assert store.put_if("m", b"2", first) == second
    assert store.put_if("m", b"2", None) == second


def test_objects_are_listed_and_deleted_by_name(store: ConditionalStore, s3: S3Bucket) -> None:
    for name in ("a", "b/c", "b/d"):
        store.put(name, b"12")
    assert store.list() == {"a": 2, "b/c": 2, "b/d": 2}
    assert store.list("b") == {"b/c": 2, "b/d": 2}
    store.delete(["a", "b/c", "gone"])
    assert s3.names() == ["out/b/d"]
    assert store.get("a") is None


def test_of_sixteen_runs_that_replace_one_version_one_succeeds(store: ConditionalStore) -> None:
    first = store.put_if("m", b"first", None)  # an ETag is of the content
    together = threading.Barrier(16)

    def wins(number: int) -> bool:
        together.wait()
        try:
            store.put_if("m", b"%d" % number, first)
        except ConditionFailedError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        won = [number for number, has_won in enumerate(pool.map(wins, range(16))) if has_won]
    found = store.get("m")
    assert found is not None
    assert [found.content] == [b"%d" % number for number in won]


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


def test_one_run_holds_a_lease_and_says_who(store: ConditionalStore) -> None:
    with held(store, ONE) as former:
        assert former is None
        refused = pytest.raises(OutputError, match=r"another run is writing to s3://b/out \(process 1 on a")
        with refused as error, held(store, TWO):
            pass
        assert "expires after 60 s" in str(error.value.do)
    assert holder_of(store, "lease") is None
    with held(store, TWO) as former:
        assert former is None


def test_an_expired_lease_is_taken_over_and_its_run_does_not_take_it_back(
    store: ConditionalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditional, "SECONDS", -1.0)
    with held(store, ONE):
        with held(store, TWO) as former:
            assert former == ONE
            error = CommitObject(store, "m", "lease", "s3://b/out", ONE).lost()
            assert "lost s3://b/out to another one (process 2 on b" in error.what
        store.put("lease", conditional._content(TWO))  # which the end of the first run leaves alone
    holder = holder_of(store, "lease")
    assert holder is not None
    assert holder.owner == TWO


def test_a_lease_is_renewed_as_long_as_it_is_held(store: ConditionalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional, "_BEAT", 0.01)
    with held(store, ONE):
        first = holder_of(store, "lease")
        assert first is not None
        while (now := holder_of(store, "lease")) is not None and now.token == first.token:
            pass
        assert now is not None
        assert now.expires > first.expires


def test_a_damaged_lease_is_taken(store: ConditionalStore) -> None:
    store.put("lease", b"what")
    with held(store, ONE) as former:
        assert former is None


class IgnoresConditions(Objects):
    """A store whose gateway ignores conditions."""

    def put_if(self, name: str, content: bytes, version: Version | None) -> Version:
        return self.put(name, content)


def test_the_probe_finds_a_store_that_ignores_conditions(store: ConditionalStore, s3: S3Bucket) -> None:
    assert refuses_stale_puts(store, "probe")
    assert isinstance(store, Objects)
    assert not refuses_stale_puts(IgnoresConditions(store.store), "probe")
    assert s3.names() == []


def test_an_error_of_the_store_has_no_secret(store: ConditionalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses that Azure is asked at may carry a signature."""

    def refuse(*_: object) -> None:
        raise BaseError("no answer from https://a.blob.core.windows.net/c/x?sv=2024&sig=abcDEF123456")

    monkeypatch.setattr(obstore, "get", refuse)
    with pytest.raises(OSError, match="no answer from https") as error:
        store.get("x")
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


def test_both_clients_see_the_same_objects(store: ConditionalStore, s3: S3Bucket) -> None:
    system, path = file_system_of(f"s3a://{s3.name}/out/")
    assert path == f"{s3.name}/out"
    with system.open_output_stream(f"{path}/part") as file:
        file.write(b"abc")
    found = store.get("part")
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
