"""The file systems of URIs whose account or endpoint the environment says."""

from __future__ import annotations

import datetime as dt
import time

import pyarrow as pa
import pytest
from pyarrow import fs

from wincli.windowing.support import file_systems
from wincli.windowing.support.file_systems import file_system_of, reach

OURS, KEY = {"AZURE_STORAGE_ACCOUNT_NAME": "ours"}, {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}
END = "127.0.0.1:10000"
EMULATOR = dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), END)
EMULATOR |= dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http")


@pytest.mark.parametrize(
    ("uri", "environ", "account", "more", "path"),
    [
        ("abfs://lake/a/out/", {"AZURE_ENDPOINT": f"http://{END}/ours"}, "ours", EMULATOR, "lake/a/out"),
        (
            "abfss://lake@ours.dfs.core.windows.net/out",
            {"AZURE_ENDPOINT": f"http://{END}"},
            "ours",
            EMULATOR,
            "lake/out",
        ),
        ("abfs://lake@theirs.dfs.core.windows.net/out", {}, "theirs", {}, "lake/out"),
    ],
)
def test_an_account_of_azure_is_that_of_the_uri_or_of_the_environment(
    uri: str, environ: dict[str, str], account: str, more: dict[str, str], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_ENDPOINT", raising=False)
    for name, value in {**OURS, **KEY, **environ}.items():
        monkeypatch.setenv(name, value)
    assert file_system_of(uri) == (fs.AzureFileSystem(account_name=account, account_key="a2V5", **more), path)


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
