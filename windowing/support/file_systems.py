"""File systems of paths and URIs: the one place where a URI becomes a connection.

Credentials come from where the tools of the clouds look for them: the environment, profiles, the machine's own role. A
store that does not answer is an error within ten seconds; one that throttles or fails now and then is asked again.
"""

from __future__ import annotations

import copyreg
import datetime as dt
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from .address import Address

_CONNECT = 3  # seconds; a store that is there answers in a tenth of one
_REQUEST = 60  # seconds without a byte
_TRIES = 6  # with growing pauses, for throttling and for errors of the store
_GOOGLE = 20  # seconds for all tries of a request to Google's store; its library takes 15 minutes
_FIRST_REQUEST = 4  # seconds without a byte of the answer to the first request
_FIRST_TRIES = 2  # of the first request: an address that is wrong should say so at once


FILE = "a file"
FOLDER = "a folder"
_KINDS = (
    (stat.S_ISREG, FILE),
    (stat.S_ISDIR, FOLDER),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)


def kind_of_mode(mode: int) -> str:
    """Return what stands at a local path, in words, from the mode that the system gives it."""
    return next((kind for matches, kind in _KINDS if matches(mode)), "a device")


def check_file(path: str | os.PathLike[str], mode: int | None = None) -> None:
    """Raise `OSError` where a local path leads to anything but a file: to open a FIFO waits for a writer without end.

    ``mode``: as the system gives it, where it is known.
    """
    kind = kind_of_mode(os.stat(path).st_mode if mode is None else mode)  # noqa: PTH116 - a Path takes longer to make
    if kind != FILE:
        raise OSError(f"{kind} stands there, and no file")


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a local file. Raises `OSError`, also as `check_file` does, and never waits."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        check_file(path, os.fstat(file.fileno()).st_mode)
        return file.read()


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The parts of the URI of an object store.

    ``scheme``: ``s3``, ``gs`` or ``abfs``, its alias resolved.
    ``bucket``: the bucket or container.
    ``path``: the path below the bucket, without slashes at its ends.
    ``account``: the account behind ``@``, for ``abfs``; else empty.
    ``user``, ``password``: the credentials in the URI; empty where it has none.
    """

    scheme: str
    bucket: str
    path: str
    account: str = ""
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, uri: str) -> StoreAddress | None:
        """Return the parts of a URI, None for a local path and for other schemes. Raises `pyarrow.ArrowInvalid`."""
        named = Address.of(uri)
        if not named.is_in_store:
            return None
        scheme = named.scheme
        try:
            parts = urlsplit(named.plain)
        except ValueError as error:
            raise pa.ArrowInvalid(f"a {scheme} URI with a host that is none") from error
        options = tuple(parse_qsl(parts.query, keep_blank_values=True))
        front, _, host = parts.netloc.rpartition("@")
        if scheme == "abfs" and front:
            name, _, secret = front.partition(":")
            return cls(scheme, unquote(name), _path(parts.path), host, "", unquote(secret), options)
        user, _, password = front.partition(":")
        return cls(scheme, host, _path(parts.path), "", unquote(user), unquote(password), options)

    def option(self, name: str) -> str | None:
        """Return the value of a parameter of the URI, or None."""
        return dict(self.options).get(name)


def file_system_of(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or URI and the absolute path in it, links as they are, no slash at its end.

    Raises `pyarrow.ArrowInvalid` for a URI that makes no sense, `OSError` where it names a host that is not there.
    """
    if Address.of(uri).is_path:
        return fs.LocalFileSystem(), os.path.abspath(uri)  # noqa: PTH100 - Path.resolve would follow links
    address, system = StoreAddress.parse(uri), None
    if address is not None:
        if not address.bucket:
            raise pa.ArrowInvalid(f"{uri} names no bucket")
        if address.scheme == "s3":
            system = _s3(address, _TRIES)
        elif address.scheme == "gs":
            system = _gs()
        else:
            system = _abfs(address)
    if address is None or system is None:  # the URI alone says all that there is to say
        plain = Address.of(uri).plain
        if plain.startswith("gs://") and "retry_limit_seconds=" not in plain:
            plain += f"{'&' if '?' in plain else '?'}retry_limit_seconds={_GOOGLE}"
        system, path = fs.FileSystem.from_uri(plain)
        return system, path.rstrip("/") or path
    return system, f"{address.bucket}/{address.path}".rstrip("/")


def reach(uri: str) -> None:
    """Try the first connection to the bucket of a URI, with few tries; nothing else is done.

    Raises `OSError` where the store does not answer, has no such bucket or refuses; nothing for other file systems, and
    for a URI of which `file_system_of` says that it makes no sense.
    """
    try:
        address = StoreAddress.parse(uri)
    except pa.ArrowInvalid:
        return
    if address is not None and address.bucket and address.scheme == "s3":
        _reach_bucket(replace(address, path=""), endpoint())


@lru_cache(maxsize=256)
def _reach_bucket(address: StoreAddress, _endpoint: str | None) -> None:
    """Reach a bucket; only success is remembered."""
    if _s3(address, _FIRST_TRIES, _FIRST_REQUEST).get_file_info(address.bucket).type == fs.FileType.NotFound:
        raise FileNotFoundError(f"there is no bucket {address.bucket}")


def _s3(address: StoreAddress, tries: int, seconds: int = _REQUEST) -> fs.FileSystem:
    given = dict(address.options)
    known: dict[str, Any] = {
        "access_key": address.user or None,
        "secret_key": address.password or None,
        "scheme": given.get("scheme"),
        "endpoint_override": given.get("endpoint_override") or endpoint(),
        "region": given.get("region") or region(),
        "connect_timeout": _CONNECT,
        "request_timeout": seconds,
        "allow_delayed_open": True,  # a file under 5 MB is one request, and a kill leaves no part of an upload
    }
    settings = {name: value for name, value in known.items() if value is not None}
    if "region" not in settings and "endpoint_override" not in settings:
        settings["region"] = fs.resolve_s3_region(address.bucket)
    return _open_s3(tries, **settings)


@lru_cache(maxsize=32)
def _open_s3(tries: int, **settings: Any) -> fs.FileSystem:
    return fs.S3FileSystem(**settings, retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=tries))


def _abfs(address: StoreAddress) -> fs.FileSystem | None:
    account = azure_account(address)
    if account is None or address.options:
        return None
    key = address.password or os.environ.get("AZURE_STORAGE_ACCOUNT_KEY") or os.environ.get("AZURE_STORAGE_KEY")
    token = None if key else os.environ.get("AZURE_STORAGE_SAS_TOKEN")
    where = urlsplit(os.environ.get("AZURE_STORAGE_ENDPOINT") or os.environ.get("AZURE_ENDPOINT") or "")
    kinds = ("blob_storage", "dfs_storage") if where.netloc else ()
    parts = {"authority": where.netloc, "scheme": where.scheme}
    ends = {f"{kind}_{what}": text for kind in kinds for what, text in parts.items()}
    return _open_abfs(account_name=account, account_key=key, sas_token=token, **ends)


@lru_cache(maxsize=32)
def _open_abfs(**settings: Any) -> fs.FileSystem:
    return fs.AzureFileSystem(**settings)


def azure_account(address: StoreAddress) -> str | None:
    """Return the account of an ``abfs`` address, from its host or from the environment; None where neither says."""
    return address.account.partition(".")[0] or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")


def _gs() -> fs.FileSystem | None:
    """Return the file system of an emulator of Google's store, None where the environment names none."""
    host = google_emulator()
    if host is None:
        return None
    where = urlsplit(host)
    return fs.GcsFileSystem(
        anonymous=True,
        scheme=where.scheme,
        endpoint_override=where.netloc,
        retry_time_limit=dt.timedelta(seconds=_GOOGLE),
    )


def google_emulator() -> str | None:
    """Return the address of an emulator of Google's store, as the tools of Google read it; else None."""
    host = os.environ.get("STORAGE_EMULATOR_HOST")
    return host if not host or "://" in host else f"http://{host}"


def _reduce_s3(system: fs.FileSystem) -> tuple[Any, ...]:
    """Pickle a file system of S3 with its tries: pyarrow leaves them out, and tasks would give up before the driver."""
    _, (settings,) = system.__reduce__()
    return _open_again, (settings,)


def _open_again(settings: dict[str, Any]) -> fs.FileSystem:
    return fs.S3FileSystem(**settings, retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES))


if hasattr(fs, "S3FileSystem"):  # not every build of pyarrow has it
    copyreg.pickle(fs.S3FileSystem, _reduce_s3)


def endpoint() -> str | None:
    """Return the endpoint of S3 that the environment names, as the tools of AWS read it; else None."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def region() -> str | None:
    """Return the region of S3 that the environment names; else None."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")


def _path(text: str) -> str:
    return unquote(text).strip("/")


# The one object of a result in a store whose replacement is the commit: its manifest, or that there is none yet.
#
# Whoever replaces this object says which version it replaces. A *fence* is a replacement that changes no more than
# the version: runs that have read the version before can no longer commit.


FENCE = "fence"
"""The key of a fence in an object; it is no part of the content that a checksum is of."""
LONGEST_BEGUN = 400
"""Bytes that an object has at most where there is no result yet; a manifest has more."""
_BEGUN = "begun"


def begun(token: str) -> bytes:
    """Return the object for an output without a result, of a run whose staging has the id ``token``."""
    return _text({_BEGUN: token, "note": "wincli has begun to write here, and there is no result yet"})


def is_begun(content: Mapping[str, Any]) -> bool:
    """Whether an object says that there is no result yet."""
    return _BEGUN in content and "parts" not in content


def with_fence(content: Mapping[str, Any], token: str) -> bytes:
    """Return the object with another fence; ``token``: an id that is used only once."""
    return _text({**content, FENCE: token})


def _text(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"
