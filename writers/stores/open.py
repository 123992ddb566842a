"""Open a folder of an object store for conditional puts; the one place that loads the client, an extra."""

from __future__ import annotations

from ...windowing.errors import ConfigError, install_extra
from ...windowing.support.addresses.file_systems import StoreAddress
from .conditional import ConditionalStore

EXTRA = install_extra("cloud")


def open_store(uri: str) -> ConditionalStore:
    """Return the objects below the folder that a URI names. Nothing is requested yet.

    Raises `ConfigError` where the extra ``cloud`` is missing, or there are no credentials.
    """
    address = StoreAddress.parse(uri)
    assert address is not None, uri
    try:
        from .objects import store_at  # noqa: PLC0415 - an extra, which only runs with a store load
    except ImportError as error:
        raise ConfigError(f"a result or a state on {address.scheme}:// needs the package obstore", EXTRA) from error
    try:
        return store_at(address)
    except ImportError as error:
        raise ConfigError(f"to find credentials for {address.scheme}:// needs the package boto3", EXTRA) from error
    except ValueError as error:
        what = f"there are no credentials for {address.scheme}://{address.bucket}"
        raise ConfigError(what, "set them as the tools of the cloud read them, such as AWS_ACCESS_KEY_ID") from error
