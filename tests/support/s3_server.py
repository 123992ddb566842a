"""An S3 server on the loopback, for tests: moto, started once a session, with a fresh bucket for each test."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest import mock

import boto3
import pytest
from werkzeug.serving import make_server

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class S3Bucket:
    """A bucket of the server whose URL is ``endpoint``."""

    name: str
    endpoint: str

    @property
    def uri(self) -> str:
        return f"s3://{self.name}"

    @property
    def env(self) -> Mapping[str, str]:
        """The environment with which clients reach it."""
        return environment(self.endpoint)

    @property
    def client(self) -> Any:
        """A client of another make than those under test, past any proxy."""
        return _client(self.endpoint)

    def names(self, beginning: str = "") -> list[str]:
        """The names of all objects, sorted."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=beginning)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    # What `support.places_to_write.Lake` asks for

    def objects(self) -> dict[str, bytes]:
        read = {name: self.get(name) for name in self.names()}
        return {name: content for name, content in read.items() if content is not None}

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self.client.get_object(Bucket=self.name, Key=name)["Body"].read())
        except self.client.exceptions.NoSuchKey:
            return None

    def open_uploads(self) -> list[str]:
        return [each["Key"] for each in self._uploads()]

    def put(self, name: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=name, Body=content)

    def delete(self, name: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=name)

    def abort_uploads(self) -> None:
        for each in self._uploads():
            self.client.abort_multipart_upload(Bucket=self.name, Key=each["Key"], UploadId=each["UploadId"])

    def _uploads(self) -> list[dict[str, Any]]:
        return list(self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", ()))


@dataclass
class S3Server:
    """A running server. ``requests``: method and path of all requests since the list was cleared."""

    endpoint: str
    requests: list[tuple[str, str]] = field(default_factory=list)

    def bucket(self) -> S3Bucket:
        """A bucket that is new."""
        bucket = S3Bucket(f"lake-{next(_NUMBERS)}", self.endpoint)
        bucket.client.create_bucket(Bucket=bucket.name)
        return bucket


_KEYS = {"aws_access_key_id": "a-test-key", "aws_secret_access_key": "a-test-word"}


@cache
def _client(endpoint: str) -> Any:
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **_KEYS)


def environment(endpoint: str) -> dict[str, str]:
    """The environment with which clients reach a server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": _KEYS["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": _KEYS["aws_secret_access_key"],
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def serving() -> Iterator[S3Server]:
    """Run a server until the context ends."""
    from moto.core import serialize
    from moto.moto_server.werkzeug_app import create_backend_app

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    seen: list[tuple[str, str]] = []
    application = create_backend_app("s3")  # what looks for the service of each request takes as long as its work
    # To list objects it reads the time of each from text, which is half of a listing.
    read_time = cache(serialize.parse_to_aware_datetime)

    def counted(environ: dict[str, Any], start_response: Any) -> Any:
        seen.append((environ["REQUEST_METHOD"], environ.get("RAW_URI") or environ["PATH_INFO"]))
        return application(environ, start_response)

    with mock.patch.object(serialize, "parse_to_aware_datetime", read_time), serving_with(counted) as endpoint:
        yield S3Server(endpoint, seen)


@contextmanager
def serving_with(application: Any) -> Iterator[str]:
    """Run a WSGI application on the loopback until the context ends; the value is its URL."""
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A server for all tests of a process."""
    with serving() as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Bucket:
    """A fresh bucket, with the environment in which this process reaches it."""
    bucket = s3_server.bucket()
    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    s3_server.requests.clear()
    return bucket
