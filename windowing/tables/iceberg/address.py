"""The address of an Iceberg table, or of one partition of it: ``iceberg://CATALOG/NAMESPACE.TABLE/NAME=VALUE``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ...errors import ConfigError
from ..address import Values, folder_name, leads_elsewhere, partition_path

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
        """Each ``NAME=VALUE`` as the name of a folder."""
        return tuple(folder_name(*each) for each in self.where)

    @property
    def whole(self) -> TableAddress:
        """The address of the table itself."""
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
    if not is_address(path) or len(table) < 2 or not all(map(_is_name, (catalog, *table))):
        raise ConfigError(f"{path} is no address of an Iceberg table", _FORM)
    return TableAddress(catalog, table, found.values)


def _is_name(name: str) -> bool:
    return bool(name.strip()) and name == name.strip() and not leads_elsewhere(name) and not _OF_URIS & {*name}
