"""The objects of a store through obstore, which has conditional puts for S3, Google and Azure."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from ...windowing.support.file_systems import StoreAddress, azure_account, endpoint, google_emulator
from ...windowing.support.redaction import redacted
from .conditional import ConditionFailedError, Object, Version, version_of

_AT_ONCE = 1000  # objects that one request deletes
_NOT_AS_ASKED = (exceptions.AlreadyExistsError, exceptions.NotFoundError, exceptions.PreconditionError)
_NOT_ALLOWED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
_CLIENT = {"connect_timeout": timedelta(seconds=3), "timeout": timedelta(seconds=60), "allow_http": True}
_RETRIES = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=3), "base": 2},
}
_PAUSES = (0.1, 0.4, 1.6)  # seconds before an object is asked for again whose bytes broke off, as obstore does not


class BrokenAnswerError(OSError):
    """The answer of a store broke off before its end."""


@dataclass(frozen=True, slots=True)
class Objects:
    """A `ConditionalStore`.

    ``store``: the store of obstore, whose prefix is the folder.
    """

    store: Any = field(repr=False)

    def get(self, name: str) -> Object | None:
        for pause in _PAUSES:
            with suppress(BrokenAnswerError):
                return self._get(name)
            time.sleep(pause)
        return self._get(name)

    def put(self, name: str, content: bytes) -> Version:
        return self._put(name, content, "overwrite")

    def put_if(self, name: str, content: bytes, version: Version | None) -> Version:
        """A try may have succeeded, or been refused, although its answer got lost or broke off.

        So after any error the object says what has happened.
        """
        mode: Any = "create"
        if version is not None:
            told = {"e_tag": version.etag, "version": version.number}
            mode = {key: value for key, value in told.items() if value is not None}
        try:
            return self._put(name, content, mode)
        except (*_NOT_AS_ASKED, OSError) as error:
            now = self.get(name)
            if now is not None and now.content == content:
                return now.version
            if isinstance(error, OSError) and version_of(now) == version:
                raise
            raise ConditionFailedError(name) from error

    def list(self, beginning: str = "") -> dict[str, int]:
        with _os_errors():
            return {each["path"]: each["size"] for page in obstore.list(self.store, beginning or None) for each in page}

    def delete(self, names: Sequence[str]) -> None:
        for at in range(0, len(names), _AT_ONCE):
            try:
                with _os_errors():
                    obstore.delete(self.store, list(names[at : at + _AT_ONCE]))
            except FileNotFoundError:
                continue

    def _get(self, name: str) -> Object | None:
        try:
            with _os_errors():
                found = obstore.get(self.store, name)
        except FileNotFoundError:
            return None
        try:
            return Object(bytes(found.bytes()), _version(found.meta))
        except exceptions.BaseError as error:
            raise BrokenAnswerError(_first_line(error)) from error

    def _put(self, name: str, content: bytes, mode: Any) -> Version:
        with _os_errors():
            return _version(obstore.put(self.store, name, content, mode=mode, use_multipart=False))


def store_at(address: StoreAddress) -> Objects:
    """Return the objects below the folder at an address."""
    given: dict[str, Any] = {"client_options": _CLIENT, "retry_config": _RETRIES, "prefix": address.path or None}
    if address.scheme == "s3":
        return Objects(S3Store(address.bucket, **given, **_s3(address)))
    if address.scheme == "gs":
        # The settings of Google's store: none, but for an emulator, which takes all for its owner.
        host = google_emulator()
        key = {"gcs_base_url": host, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        return Objects(GCSStore(address.bucket, **given, **{"service_account_key": json.dumps(key)} if host else {}))
    # What the URI says; all other settings of Azure are in variables that obstore reads.
    named = {"account_name": azure_account(address), "account_key": address.password}
    return Objects(AzureStore(address.bucket, **given, **{name: value for name, value in named.items() if value}))


def _s3(address: StoreAddress) -> dict[str, Any]:
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    found: dict[str, Any] = {"region": address.option("region") or region}
    host, scheme = address.option("endpoint_override"), address.option("scheme") or "https"
    if url := endpoint() if host is None else host if "://" in host else f"{scheme}://{host}":
        found["endpoint"] = url
    if address.user:
        return {**found, "access_key_id": address.user, "secret_access_key": address.password}
    if "AWS_ACCESS_KEY_ID" in os.environ:
        return found
    from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415 - slow to load, and seldom needed

    return {**found, "credential_provider": Boto3CredentialProvider()}


def _version(meta: Any) -> Version:
    return Version(meta["e_tag"], meta["version"])


@contextmanager
def _os_errors() -> Iterator[None]:
    try:
        yield
    except _NOT_AS_ASKED:
        raise
    except _NOT_ALLOWED as error:
        raise PermissionError(_first_line(error)) from error
    except exceptions.BaseError as error:
        raise OSError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return redacted(str(error).splitlines()[0])[:300]
