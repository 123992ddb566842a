"""The kinds of place where a state may be. The next one is a module with a `StateStorage`, and a line here."""

from __future__ import annotations

from pathlib import Path

from ....windowing.errors import ConfigError, printable
from ....windowing.support.addresses.file_systems import StoreAddress, scheme_of
from ....windowing.support.addresses.redaction import redacted_path
from ...folders.place import resolve
from .contract import StateStorage
from .local_folder import LocalFolder


def storage_of(path: str) -> StateStorage:
    """Return the place of a state, with symbolic links followed. Raises `ConfigError` for an unsuitable path."""
    if not path:
        raise ConfigError("the path of the state is empty", "name a folder for it")
    if "://" in path and scheme_of(path) != "file":
        return _in_store(path)
    root = resolve(path)[1]
    if root != printable(root):
        what = f"the state {printable(path)} is in a folder whose name is no UTF-8: {printable(root)}"
        raise ConfigError(what, "rename that folder, or name another one for the state")
    return LocalFolder(Path(root), path)


def _in_store(path: str) -> StateStorage:
    from .store_folder import StoreFolder  # noqa: PLC0415 - runs without a store need none of it

    address = StoreAddress.parse(path)
    if address is None:
        what = f"states are kept in local folders and on s3://, gs:// and abfs:// only, not on {redacted_path(path)}"
        raise ConfigError(what, "name another folder")
    if not address.bucket or not address.path:
        raise ConfigError(f"the state {redacted_path(path)} is the root of a store", "name a folder inside it")
    return StoreFolder.at(path)
