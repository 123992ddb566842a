"""Emulators of other stores than S3, which `scripts/nightly` installs: Azurite from npm, and one of Google's from PyPI.

That of Google's compares no versions and answers puts without an etag, so it can only be read from.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.store import AzureStore
from pyarrow import fs

from support.places import ROOT

AZURITE = ROOT / ".venv-nightly" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
GOOGLE = ROOT / ".venv-nightly" / "gcs" / "bin" / "gcp-storage-emulator"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key of the account that each emulator has: no secret."""
_NUMBERS = itertools.count(1)
_PATIENCE = 60.0


def azurite() -> AbstractContextManager[str]:
    """Start an emulator of Azure's store on the loopback, which keeps all in memory; the value is its address."""
    options = ("--blobHost", "127.0.0.1", "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--blobPort")
    return _serving(AZURITE, *options)


def google_store() -> AbstractContextManager[str]:
    """Start an emulator of Google's store on the loopback, with a bucket ``lake``; the value is its address."""
    return _serving(GOOGLE, "start", "--host=127.0.0.1", "--in-memory", "--default-bucket=lake", "--port")


@contextlib.contextmanager
def _serving(program: Path, *options: str) -> Iterator[str]:
    """Start an emulator, whose last option is that for its port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
    with subprocess.Popen([str(program), *options, str(port)], stdout=-3, stderr=-3) as process:
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()  # it keeps nothing, and would wait for its clients


def azure_environment(endpoint: str) -> dict[str, str]:
    """The environment with which clients reach it."""
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
        "AZURE_ENDPOINT": f"{endpoint}/{_ACCOUNT}",
    }


def azure_lake(endpoint: str) -> Container:
    """A container that is new."""
    host = urlsplit(endpoint).netloc
    ends: dict[str, Any] = dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), host)
    schemes = dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http")
    files = fs.AzureFileSystem(_ACCOUNT, account_key=_KEY, **ends, **schemes)
    name = f"lake-{next(_NUMBERS)}"
    files.create_dir(name)
    where = {"endpoint": f"{endpoint}/{_ACCOUNT}", "client_options": {"allow_http": True}}
    return Container(name, AzureStore(name, account_name=_ACCOUNT, account_key=_KEY, **where))


@dataclass(frozen=True, slots=True)
class Container:
    """A container of Azure's store. ``store``: of obstore, which reads an object by one request; pyarrow takes two."""

    name: str
    store: Any

    @property
    def uri(self) -> str:
        return f"abfs://{self.name}"

    def objects(self) -> dict[str, bytes]:
        names = [each["path"] for page in obstore.list(self.store) for each in page]
        read = {name: self.get(name) for name in names}
        return {name: content for name, content in read.items() if content is not None}

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(obstore.get(self.store, name).bytes())
        except FileNotFoundError:
            return None

    def open_uploads(self) -> list[str]:
        """None: what is not committed is gone after a week, and cannot be listed here."""
        return []

    def put(self, name: str, content: bytes) -> None:
        obstore.put(self.store, name, content)

    def delete(self, name: str) -> None:
        obstore.delete(self.store, name)

    def abort_uploads(self) -> None: ...


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port}")


def is_installed(path: Path) -> bool:
    """Whether an emulator is there to be started."""
    return os.access(path, os.X_OK)
