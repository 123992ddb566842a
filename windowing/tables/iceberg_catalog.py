"""Catalogs as the configuration of pyiceberg names them, and their errors as one line for the user."""

from __future__ import annotations

import re
import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyarrow import fs

from ..errors import ConfigError, WincliError, did_you_mean, install_extra
from ..support.address import Address
from ..support.file_systems import endpoint, file_system_of, region
from ..support.redaction import redacted
from .address import Values, folder_name, leads_elsewhere, partition_path

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table


# The address of an Iceberg table, or of one partition of it: ``iceberg://CATALOG/NAMESPACE.TABLE/NAME=VALUE``.


SCHEME = "iceberg://"
_OF_URIS = frozenset("/\\?#%")  # a name becomes a part of the location of a new table, where these mean something else
_FORM = "write iceberg://CATALOG/NAMESPACE.TABLE, and after it a partition, if any, as /day=2026-11-02"


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table, or the rows of it in which some columns have one value each.

    ``catalog``: the name of the catalog in the configuration of pyiceberg.
    ``table``: the levels of the namespace, and the name of the table; at least two.
    ``where``: column and value of each ``NAME=VALUE``; None for null. Empty for the whole table.
    """

    catalog: str
    table: tuple[str, ...]
    where: Values = ()

    def __str__(self) -> str:
        return "/".join([f"{SCHEME}{self.catalog}", ".".join(self.table), *self.folders])

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(folder_name(*each) for each in self.where)

    @property
    def where_text(self) -> str:
        """The partition as snapshots name it."""
        return "/".join(self.folders)

    @property
    def whole(self) -> TableAddress:
        return replace(self, where=())


def is_address(path: str) -> bool:
    """Whether a path names an Iceberg table."""
    return path.startswith(SCHEME)


def parse_address(path: str) -> TableAddress:
    """Return the address that a text names. Raises `ConfigError` where it is of another form."""
    found = partition_path(path)
    catalog, _, name = found.root.removeprefix(SCHEME).partition("/")
    table = tuple(name.split("."))
    if re.search(r"[?#@]", found.root):
        what = f"{path} has more than a catalog and a table, and an address of an Iceberg table has no parameters"
        raise ConfigError(what, "write users, tokens and properties to the catalog in ~/.pyiceberg.yaml")
    are_names = all(
        name.strip() and name == name.strip() and not leads_elsewhere(name) and not _OF_URIS & {*name}
        for name in (catalog, *table)
    )
    if not is_address(path) or len(table) < 2 or not are_names:
        raise ConfigError(f"{path} is no address of an Iceberg table", _FORM)
    return TableAddress(catalog, table, found.values)


_SECONDS = 5.0  # to connect to the service of a catalog, which pyiceberg would wait for without end
_LONGEST = 300  # characters of a reason
_FIXED = {
    "py-io-impl": f"{__package__}.iceberg_file_io.CheckedFileIO",  # tasks read and write through Arrow
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
        name, do = type(cause).__name__, f"check the configuration of catalog {address.catalog!r} (~/.pyiceberg.yaml)"
        if "Unauthorized" in name or "Forbidden" in name or "Credential" in name:
            do = f"check the credentials of catalog {address.catalog!r}"
        raise error(f"{address}: {reason(cause)}", do) from cause


def reason(error: BaseException) -> str:
    """Return the first line of an error without secrets, or its type."""
    lines, name = [line for line in str(error).splitlines() if line.strip()], type(error).__name__
    text = redacted(lines[0].strip().rstrip(".")[:_LONGEST]) if lines else name
    is_of_content = isinstance(error, LookupError | ValueError | zlib.error) and type(error) is not ValueError
    return f"its metadata cannot be read ({name}: {text})" if is_of_content else text


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
        "s3.endpoint": endpoint(),
        "s3.region": region(),
    }
    return {name: value for name, value in found.items() if value}


def _check_service(uri: str) -> None:
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


# Where the files of a table are: the file system, opened as the catalog says, and the folder of its data.


_DATA = "write.data.path"
_KNOWN: dict[tuple[int, tuple[str, ...]], tuple[FileIO, str, str]] = {}
"""By catalog and table, what `storage_of` has found: a table stays where it is, and to load it takes long after many
snapshots."""
_KEYS = ("s3.access", "s3.secret", "s3.session", "s3.endpoint", "s3.role", "gcs.", "adls.", "client.")


def file_system(io: FileIO, location: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a location in a table, and the path in it, without a slash at its end."""
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 - heavy

    assert isinstance(io, PyArrowFileIO)
    scheme, netloc, path = PyArrowFileIO.parse_location(location, io.properties)
    if scheme == "file":
        return fs.LocalFileSystem(), path.rstrip("/")
    if Address.of(location).is_in_store and not has_keys(io):
        return file_system_of(location)
    return io.fs_by_scheme(scheme, netloc), path.rstrip("/")


def has_keys(io: FileIO) -> bool:
    """Whether the catalog, or its configuration, has keys for the store of a table, or another endpoint of it."""
    known = from_environment()
    return any(name.startswith(_KEYS) and known.get(name) != value for name, value in io.properties.items())


def data_folder(table: Table) -> str:
    """Return the location below which files of a table are written."""
    return str(table.properties.get(_DATA) or f"{table.location().rstrip('/')}/data").rstrip("/")


def storage_of(catalog: Catalog, address: TableAddress) -> tuple[FileIO, str, str]:
    """Return the access to a table, its location, and that of its data, whether it is there or not.

    Raises `ConfigError` as `new_location` does.
    """
    if (known := _KNOWN.get((id(catalog), address.table))) is not None:
        return known
    table = find_table(catalog, address)
    if table is None:
        io, location = new_location(catalog, address)
        return io, location, f"{location.rstrip('/')}/data"
    found = table.io, table.location(), data_folder(table)
    if not has_keys(table.io):  # keys of a catalog may expire while the program runs
        _KNOWN[id(catalog), address.table] = found
    return found


def new_location(catalog: Catalog, address: TableAddress) -> tuple[FileIO, str]:
    """Return where a catalog would make a table that is not there, and the access to it; nothing is made.

    Raises `ConfigError` where there is no such namespace.
    """
    from pyiceberg.exceptions import NoSuchNamespaceError  # noqa: PLC0415 - heavy
    from pyiceberg.io import load_file_io  # noqa: PLC0415
    from pyiceberg.schema import Schema  # noqa: PLC0415

    try:
        location = catalog.create_table_transaction(address.table, Schema()).table_metadata.location
    except NoSuchNamespaceError as error:
        name = ".".join(address.table[:-1])
        do = f"make it: pyiceberg --catalog {address.catalog} create namespace {name}"
        raise ConfigError(f"catalog {address.catalog!r} has no namespace {name}", do) from error
    return load_file_io(catalog.properties, location), location
