"""Catalogs as the configuration of pyiceberg names them, and their errors as one line for the user."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...errors import ConfigError, WincliError, install_extra
from ...support.addresses.redaction import redacted
from ...support.suggest import did_you_mean
from .address import TableAddress

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_SECONDS = 5.0  # to connect to the service of a catalog, which pyiceberg would wait for without end
_LONGEST = 300  # characters of a reason
_FIXED = {
    "py-io-impl": f"{__package__}.file_io.CheckedFileIO",  # tasks read and write through Arrow
}
_PATIENCE = {"s3.connect-timeout": "5", "s3.request-timeout": "60"}  # seconds, where the configuration has none


@contextmanager
def catalog_errors(address: TableAddress, error: type[WincliError]) -> Iterator[None]:
    """Turn what pyiceberg and its catalogs raise into ``error``, which names the table; ours pass."""
    try:
        yield
    except WincliError:
        raise
    except Exception as cause:  # a catalog may raise what its driver does, as of SQLite, boto3 or requests
        raise error(f"{address}: {reason(cause)}", _remedy(cause, address)) from cause


def reason(error: BaseException) -> str:
    """Return the first line of an error without secrets, or its type."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return redacted(lines[0].strip().rstrip(".")[:_LONGEST]) if lines else type(error).__name__


def _remedy(error: BaseException, address: TableAddress) -> str:
    name = type(error).__name__
    if "Unauthorized" in name or "Forbidden" in name or "Credential" in name:
        return f"check the credentials of catalog {address.catalog!r}"
    return f"check the configuration of catalog {address.catalog!r} (~/.pyiceberg.yaml)"


def open_catalog(name: str) -> Catalog:
    """Return a catalog of the configuration: ``.pyiceberg.yaml``, or ``PYICEBERG_CATALOG__NAME__..`` variables.

    Raises `ConfigError` where pyiceberg is not installed or knows no such catalog, and what a catalog raises that
    cannot be reached.
    """
    try:
        from pyiceberg.utils.config import Config  # noqa: PLC0415 - heavy
    except ImportError as error:
        raise ConfigError("Iceberg tables need pyiceberg, which is not installed", install_extra("iceberg")) from error
    config = Config()  # read anew: pyiceberg keeps what it was when it was imported
    known = config.get_catalog_config(name)
    if known is None:
        do = did_you_mean(name, config.get_known_catalogs()) or "write it to ~/.pyiceberg.yaml, below catalog:"
        raise ConfigError(f"the configuration of pyiceberg has no catalog {name!r}", do)
    texts = {key: str(value) for key, value in known.items()}
    _check_service(texts.get("uri", ""))
    return _load(name, tuple({**_PATIENCE, **from_environment(), **texts, **_FIXED}.items()))


@lru_cache(maxsize=8)
def _load(name: str, settings: tuple[tuple[str, str], ...]) -> Catalog:
    """Return a catalog, the same for the same settings: its connections are used again."""
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - heavy

    return load_catalog(name, **dict(settings))


def from_environment() -> dict[str, str]:
    """Return what the tools of the cloud find in the environment, and pyiceberg only in its own configuration."""
    found = {
        "s3.endpoint": os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"),
        "s3.region": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
    }
    return {name: value for name, value in found.items() if value}


def _check_service(uri: str) -> None:
    """Raise `OSError` where nothing answers at the address of a service."""
    parts = urlsplit(uri)
    if parts.scheme in ("http", "https", "thrift") and parts.hostname:
        port = parts.port or {"https": 443, "thrift": 9083}.get(parts.scheme, 80)
        try:
            socket.create_connection((parts.hostname, port), _SECONDS).close()
        except OSError as error:
            raise ConnectionError(f"no answer from {parts.hostname}:{port} ({error.strerror or error})") from error


def find_table(catalog: Catalog, address: TableAddress) -> Table | None:
    """Return a table as its catalog has it now; None where there is none. Raises what the catalog does."""
    from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415

    try:
        return catalog.load_table(address.table)
    except NoSuchTableError:
        return None
