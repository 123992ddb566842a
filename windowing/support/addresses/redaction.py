"""Redaction: the one rule for what is secret, and texts without secrets for messages and files.

Values of settings and of URL parameters are secret if their names say so; the user info of a URL is secret, too. Code
that opens files or starts Spark uses the real values. All that is printed or written passes through this module.
Records are compared in their redacted form, so a changed secret makes no other job and no other file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

MASK = "***"
"""The text that replaces a secret."""

_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential|signature|key|(?:^|[^a-z])(?:sig|pwd|pass)$", re.IGNORECASE
)
_NAMES_IN_FRONT = ("hdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs", "ssh", "sftp")
# In these schemes ``NAME@`` without a password is a user or container, without which the path would be ambiguous.

_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>`]*")
_ENDS = ";,.:)]"  # at the end of a URL these belong to the sentence around it
_SETTING = re.compile(  # in running text only a name with dots, or in capitals, is surely that of a setting
    r"""(?<![\w./-])((?:-[DP])?(?:[\w-]+(?:\.[\w-]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+))=("[^"]*"|'[^']*'|[^\s,;'"]+)"""
)
_IN_TEXTS = re.compile(_SECRET.pattern.replace("|key|", r"|key$|[._]key[._]|"), re.IGNORECASE)
# ``key.column`` is masked where it is set; its value, a word such as ``user_id``, is not searched for in texts.
_SHORTEST = 6  # letters of a value that is searched for in texts: shorter values occur in too many words


def is_secret(name: str) -> bool:
    """Whether the name of a setting or parameter says that its value is secret."""
    return _SECRET.search(name) is not None


def redacted(text: str) -> str:
    """Return a text without the secrets in its URLs and settings ``NAME=VALUE``."""
    if "://" in text:
        text = _URL.sub(_in_text, text)
    return _SETTING.sub(_setting, text) if "=" in text else text


def redacted_path(path: str) -> str:
    """Return a path or URI without its secrets; a local path is returned as it is."""
    return _url(path) if "://" in path else path


def redacted_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with secret ones masked, and with the values of the others redacted."""
    return {name: MASK if is_secret(name) else redacted(str(value)) for name, value in settings.items()}


def secret_values(settings: Mapping[str, str], paths: Iterable[str]) -> tuple[str, ...]:
    """Return the values that no text of a job with these settings and paths may contain, the longest first.

    Short values and numbers are left out, because they occur in unrelated texts.
    """
    found = [value for name, value in settings.items() if _IN_TEXTS.search(name)]
    found += [
        pair[2].strip("\"'") for text in settings.values() for pair in _SETTING.finditer(text) if is_secret(pair[1])
    ]
    found += [part for path in paths if "://" in path for part in _secret_parts(path)]
    kept = {form for value in found for form in (value, unquote(value)) if _is_distinctive(form)}
    return tuple(sorted(kept, key=lambda value: (-len(value), value)))


def without(text: str, values: Iterable[str]) -> str:
    """Return a text as `redacted` does, and with all occurrences of these values masked."""
    text = redacted(text)
    for value in values:
        text = text.replace(value, MASK)
    return text


def with_secrets_of(path: str, other: str) -> str | None:
    """Return a redacted path with its secrets, taken from another URI of the same place; None if one is missing."""
    if "://" not in other:
        return None
    scheme, authority, rest = _split(path)
    its_scheme, its_authority, its_rest = _split(other)
    if (its_scheme, _authority(scheme, its_authority)) != (scheme, authority):
        return None
    whole = f"{scheme}://{its_authority}{_with_parameters(rest, its_rest)}"
    return None if MASK in whole else whole


def _is_distinctive(value: str) -> bool:
    return len(value) >= _SHORTEST and not re.fullmatch(r"[\d.]+|false|true|" + re.escape(MASK), value, re.IGNORECASE)


def _in_text(found: re.Match[str]) -> str:
    url = found[0].rstrip(_ENDS)
    return _url(url) + found[0][len(url) :] if "://" in url else found[0]


def _url(url: str) -> str:
    scheme, authority, rest = _split(url)
    return f"{scheme}://{_authority(scheme, authority)}{_parameters(rest)}"


def _split(url: str) -> tuple[str, str, str]:
    """Split a URL into scheme, authority and the rest. An unquoted ``/`` in a password belongs to the password."""
    scheme, _, after = url.partition("://")
    end = re.search(r"[/?#]|$", after)
    assert end is not None
    at = end.start()
    if "@" not in after[:at] and _has_password(after[:at]) and "@" in after:
        behind = re.search(r"[/?#]|$", after[after.rindex("@") :])
        assert behind is not None
        at = after.rindex("@") + behind.start()
    return scheme, after[:at], after[at:]


def _has_password(host: str) -> bool:
    """Whether the text after a colon is no port, as in ``KEY:SEC``, the begin of a password with a slash."""
    hosts = re.sub(r"\[[^][]*\]|\{[^{}]*\}", "", host).split(",")
    return any(":" in each and not each.rpartition(":")[2].isdigit() and not each.endswith(":") for each in hosts)


def _authority(scheme: str, authority: str) -> str:
    user, sign, host = authority.rpartition("@")
    if not sign:
        return f"{authority.partition(':')[0]}:{MASK}" if _has_password(authority) else authority
    name, colon, _ = user.partition(":")
    if scheme.lower() in _NAMES_IN_FRONT:
        return f"{name}:{MASK}@{host}" if colon else authority
    return f"{MASK}@{host}"


def _parameters(rest: str) -> str:
    head, sign, query = rest.partition("?")
    return head + sign + "&".join(map(_parameter, query.split("&"))) if sign else rest


def _parameter(text: str) -> str:
    name, sign, _ = text.partition("=")
    return f"{name}={MASK}" if sign and is_secret(unquote(name)) else text


def _with_parameters(rest: str, other: str) -> str:
    """Replace masked parameters by their values in another URL."""
    head, sign, query = rest.partition("?")
    known = dict(text.partition("=")[::2] for text in other.partition("?")[2].split("&"))
    given = [
        f"{name}={known[name]}" if value == MASK and name in known else f"{name}={value}" if value else name
        for name, _, value in (text.partition("=") for text in query.split("&"))
    ]
    return head + sign + "&".join(given) if sign else rest


def _setting(found: re.Match[str]) -> str:
    return f"{found[1]}={MASK}" if is_secret(found[1]) else found[0]


def _secret_parts(url: str) -> list[str]:
    """The user info of a URL, with and without its colon, and its secret parameters."""
    scheme, authority, rest = _split(url)
    user, sign, _ = authority.rpartition("@")
    if not sign and _has_password(authority):
        user = authority
    name, colon, password = user.partition(":")
    found = [] if scheme.lower() in _NAMES_IN_FRONT and not colon else [user, password]
    found += [] if scheme.lower() in _NAMES_IN_FRONT else [name]
    pairs = (text.partition("=") for text in rest.partition("?")[2].split("&"))
    return [*found, *(value for key, _, value in pairs if is_secret(unquote(key)))]
