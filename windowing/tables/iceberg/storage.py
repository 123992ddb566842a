"""Where the files of a table are: the file system, opened as the catalog says, and the folder of its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyarrow import fs

from ...errors import ConfigError
from ...support.addresses.file_systems import STORES, file_system_of, scheme_of
from .address import TableAddress
from .catalog import find_table, from_environment

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

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
    if scheme_of(location) in STORES and not has_keys(io):
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
