"""Conditional puts over a line on which requests go wrong: what was acknowledged has happened, once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import fault_proxy
from support.fault_proxy import FAULTS, Fault, FaultProxy
from support.s3_server import S3Bucket
from wincli.writers.places.conditional import ConditionalStore, ConditionFailedError, version_of
from wincli.writers.places.open import open_store

NAME = "words"


@pytest.fixture
def proxy(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    with fault_proxy.serve(s3.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def store(s3: S3Bucket, proxy: FaultProxy) -> ConditionalStore:
    return open_store(f"{s3.uri}/folder")


def add(store: ConditionalStore, word: str) -> bool:
    """Add a word to those of an object, as all writers do; whether the store says that it was added."""
    found = store.get(NAME)
    try:
        store.put_if(NAME, b" ".join([*([found.content] if found else []), word.encode()]), version_of(found))
    except ConditionFailedError:
        return False
    return True


def words(store: ConditionalStore) -> list[str]:
    found = store.get(NAME)
    return [] if found is None else found.content.decode().split()


@pytest.mark.parametrize("fault", FAULTS)
def test_one_writer_is_told_what_happened(store: ConditionalStore, proxy: FaultProxy, fault: Fault) -> None:
    proxy.begin(seed=len(fault), rate=0.3)
    proxy.kinds = (fault,)
    added = [add(store, f"w{n}") for n in range(6)]
    assert proxy.happened.total() > 0
    proxy.begin()
    assert added == [True] * 6
    assert words(store) == [f"w{n}" for n in range(6)]


def test_what_writers_that_race_were_told_is_there_once(store: ConditionalStore, proxy: FaultProxy) -> None:
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
