"""The file systems of URIs whose account or endpoint the environment says."""

from __future__ import annotations

import datetime as dt
import time

import pyarrow as pa
import pytest
from pyarrow import fs

from wincli.windowing.support import file_systems
from wincli.windowing.support.file_systems import file_system_of, reach

AZURE = {
    "AZURE_STORAGE_ACCOUNT_NAME": "ours",
    "AZURE_STORAGE_ACCOUNT_KEY": "a2V5",
    "AZURE_ENDPOINT": "http://127.0.0.1:10000/ours",
}


def test_an_account_of_azure_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AZURE.items():
        monkeypatch.setenv(name, value)
    host = "127.0.0.1:10000"
    ends = {"blob_storage_authority": host, "dfs_storage_authority": host}
    schemes = {"blob_storage_scheme": "http", "dfs_storage_scheme": "http"}
    wanted = fs.AzureFileSystem(account_name="ours", account_key="a2V5", **ends, **schemes)
    assert file_system_of("abfs://lake/a/out/") == (wanted, "lake/a/out")
    assert file_system_of("abfss://lake@ours.dfs.core.windows.net/out") == (wanted, "lake/out")


def test_the_account_in_a_uri_goes_before_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "ours")
    monkeypatch.delenv("AZURE_ENDPOINT", raising=False)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    found, path = file_system_of("abfs://lake@theirs.dfs.core.windows.net/out")
    assert (found, path) == (fs.AzureFileSystem(account_name="theirs", account_key="a2V5"), "lake/out")


@pytest.mark.parametrize("host", ["127.0.0.1:9023", "http://127.0.0.1:9023"])
def test_an_emulator_of_google_comes_from_the_environment(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
    end = dt.timedelta(seconds=20)
    wanted = fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override="127.0.0.1:9023", retry_time_limit=end)
    assert file_system_of("gs://lake/out") == (wanted, "lake/out")


@pytest.mark.parametrize("host", [None, "127.0.0.1:1"])
def test_a_store_of_google_that_does_not_answer_is_an_error_in_the_end(
    host: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its library tries for 15 minutes."""
    monkeypatch.setattr(file_systems, "_GOOGLE", 1)
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    if host is not None:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
    uri = "gs://lake/out" if host else "gs://anonymous@lake/out?scheme=http&endpoint_override=127.0.0.1:1"
    system, path = file_system_of(uri)
    began = time.monotonic()
    with pytest.raises(OSError, match="Retry policy exhausted"):
        system.get_file_info(path)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("uri", ["s3://user:secret@/x", "s3://user:se]cret@[b/x", "s3:///x"])
def test_uri_without_a_bucket_makes_no_sense_and_is_not_reached(uri: str) -> None:
    reach(uri)
    with pytest.raises(pa.ArrowInvalid):
        file_system_of(uri)
