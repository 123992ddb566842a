"""What a path or URI says of where it leads, asked in one place; whether there is a table, only its place can say."""

from __future__ import annotations

from dataclasses import dataclass

STORES = ("s3", "gs", "abfs")
"""The schemes of object stores, without their aliases."""
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_LOCAL = ("", "file", "local")  # those with a scheme are what pyarrow takes for local files


@dataclass(frozen=True, slots=True)
class Address:
    """A path or URI.

    ``text``: as the user wrote it.
    ``scheme``: that of a URI in lower case, its alias resolved; empty for a path.
    ``rest``: what follows the ``://`` of a URI; empty for a path.
    """

    text: str
    scheme: str
    rest: str

    @classmethod
    def of(cls, text: str) -> Address:
        """Return what a text says; every text is an address."""
        scheme, sign, rest = text.partition("://")
        return cls(text, _ALIASES.get(scheme.lower(), scheme.lower()), rest) if sign else cls(text, "", "")

    @property
    def is_path(self) -> bool:
        """Whether it is a path of this machine, not a URI: only such a text may be a glob, and relative."""
        return "://" not in self.text

    @property
    def is_local(self) -> bool:
        """Whether it leads to a file or folder of this machine, be it a path or a URI."""
        return self.scheme in _LOCAL

    @property
    def is_in_store(self) -> bool:
        """Whether it leads to an object store whose client wincli knows."""
        return self.scheme in STORES

    @property
    def plain(self) -> str:
        """The text with the alias of its scheme resolved, such as ``s3://`` for ``s3a://``; a path as it is."""
        return self.text if self.is_path else f"{self.scheme}://{self.rest}"
