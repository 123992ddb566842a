"""What stores say when they refuse, in plain words. pyarrow and obstore give the answers of the clouds as texts."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreTrouble:
    """Why a store has refused.

    ``words``: the reason, as the rest of a sentence.
    ``do``: what the user can do.
    """

    words: str
    do: str


_CREDENTIALS = "check the credentials and what they may do there; wincli doctor --store tries them step by step"
_TROUBLES = (
    (
        r"NO_SUCH_BUCKET|NoSuchBucket|ContainerNotFound|bucket does not exist|there is no bucket",
        StoreTrouble("there is no such bucket", "check the name of the bucket, and the endpoint"),
    ),
    (
        r"Expired(Token|Credential)|EXPIRED_TOKEN|token (is|has) expired",
        StoreTrouble("the credentials have expired", "log in again, or get new ones"),
    ),
    (
        r"169\.254\.169\.254|metadata\.google\.internal|[Nn]o credentials|[Uu]nable to locate credentials|"
        r"NoCredentials|[Cc]ould not (find|load) .*credentials|MissingAuthenticationToken|AZURE_STORAGE_ACCOUNT_NAME",
        StoreTrouble("no credentials were found", _CREDENTIALS),
    ),
    (
        r"InvalidAccessKeyId|INVALID_ACCESS_KEY_ID|SignatureDoesNotMatch|SIGNATURE_DOES_NOT_MATCH|"
        r"InvalidClientTokenId|INVALID_CLIENT_TOKEN_ID|INVALID_SIGNATURE|AuthenticationFailed|UNAUTHENTICATED|"
        r"Unauthenticated|status(?: code:)? 401",
        StoreTrouble("the store does not accept these credentials", _CREDENTIALS),
    ),
    (
        r"ACCESS_DENIED|AccessDenied|PermissionDenied|PERMISSION_DENIED|Authorization(Permission)?(Failure|Mismatch)|"
        r"lacked the necessary privileges|status(?: code:)? 403",
        StoreTrouble("permission denied", _CREDENTIALS),
    ),
    (
        r"PermanentRedirect|AuthorizationHeaderMalformed|status(?: code:)? 301|wrong region",
        StoreTrouble("the bucket is in another region", "name its region in AWS_REGION"),
    ),
    (
        r"SLOW_DOWN|SlowDown|ServerBusy|TooManyRequests|THROTTLING|status(?: code:)? 429|status(?: code:)? 503",
        StoreTrouble("the store takes no more requests now", "run it again later"),
    ),
    (
        r"NETWORK_CONNECTION|curlCode|error sending request|[Cc]onnection (refused|reset|closed)|[Cc]onnect error|"
        r"[Cc]ould ?n.t (connect|resolve)|[Cc]ould not (connect|resolve)|[Cc]onnection error|dns error|"
        r"[Tt]imed out|timeout was reached|operation timeout",
        StoreTrouble("the store does not answer", "check the endpoint and the network"),
    ),
    (
        r"INTERNAL_FAILURE|InternalError|status(?: code:)? 5\d\d",
        StoreTrouble("the store has failed", "run it again later"),
    ),
)


def store_trouble(text: str) -> StoreTrouble | None:
    """Return the trouble that the text of an error tells of; None for an error that is not of a store."""
    return next((trouble for pattern, trouble in _TROUBLES if re.search(pattern, text)), None)


def first_line(error: BaseException) -> str:
    """Return the first line of a message, or the type of an error without one."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
