"""Open a folder of an object store for conditional puts; the one place that loads the client, an extra."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...windowing.errors import ConfigError, install_extra
from ...windowing.support.file_systems import StoreAddress, endpoint
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


# Uploads in parts that a killed process has left: no reader sees them, but S3 keeps and charges for what has arrived.
#
# Google's store and Azure drop such uploads after a week by themselves.


_WAIT = 3  # seconds


def abort_uploads(address: StoreAddress, beginnings: Iterable[str], may_abort: Callable[[str], bool]) -> int:
    """Abort uploads that have begun and not ended; return how many.

    ``beginnings``: begins of names in the bucket. ``may_abort``: whether the upload of a name is to be aborted. What
    the credentials do not allow is left alone: a rule of the bucket may abort such uploads as well.
    """
    if address.scheme != "s3":
        return 0
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load, and seldom needed

    try:
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

        host = address.option("endpoint_override")
        secure = address.option("scheme") or "https"
        given = {"aws_access_key_id": address.user, "aws_secret_access_key": address.password} if address.user else {}
        client = boto3.client(
            "s3",
            endpoint_url=(host if "://" in host else f"{secure}://{host}") if host else endpoint(),
            region_name=address.option("region"),
            config=Config(connect_timeout=_WAIT, read_timeout=_WAIT * 10, retries={"max_attempts": 2}),
            **given,
        )
        listed = client.get_paginator("list_multipart_uploads")
        pages = (page for begin in beginnings for page in listed.paginate(Bucket=address.bucket, Prefix=begin))
        left = [upload for page in pages for upload in page.get("Uploads", ()) if may_abort(upload["Key"])]
        for upload in left:
            client.abort_multipart_upload(Bucket=address.bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    except (BotoCoreError, ClientError):
        return 0
    return len(left)
