"""Redaction: the one rule for what of an address or a setting may be shown, and texts without the rest.

The rule lists what is harmless, not what is secret. Of an address that is the scheme, the host or bucket, the path, and
parameters with known names; of a setting the name, and a value that has the form of a number, a size, a switch or a
class, or whose name is known. In running text, where settings cannot be told from other words, names that say that they
are secret are masked in whatever notation.

Code that opens files or starts Spark uses the real values. All that is printed or written passes through this module.
Records are compared in their redacted form, so a changed secret makes no other job and no other file.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

MASK = "***"
"""The text that replaces a secret."""

_SECRET = (
    r"secret|passw|passphrase|token|credential|signature|key|authorization|cookie|connection_?string"
    r"|(?:^|[^a-z])(?:sig|pwd|pass|sas)(?:$|[.])"
)
_IS_SECRET = re.compile(_SECRET, re.IGNORECASE)
_SURE = re.compile(  # in a text ``key`` and ``tokens`` are words, and names of columns
    r"passw(?:or)?d|passphrase|secret|connection_?string|^(?:.*[._-])?(?:pwd|sig|token|authorization)$|signature"
    r"|(?:access|account|api|auth|encryption|master|private|refresh|sas|security|session|shared|signing|storage)"
    r"[._-]?(?:key|token)",
    re.IGNORECASE,
)
SPARK_REDACTION = f"(?i){_SECRET}|executorEnv|appMasterEnv"
"""The names of settings whose values Spark leaves out of its pages and event logs: ``spark.redaction.regex``."""

_PARAMETERS = re.compile(  # what pyarrow reads in an address besides credentials, and what others call a version
    "region|scheme|endpoint_override|allow_bucket_(?:creation|deletion)|allow_delayed_open|smart_defaults|"
    "check_directory_existence_before_creation|force_virtual_addressing|tls_ca_(?:file|dir)_path|"
    "tls_verify_certificates|retry_limit_seconds|project_id|(?:blob|dfs)_storage_(?:authority|scheme)|enable_tls|"
    "replication|buffer_size|default_block_size|version|versionid|snapshot|snapshot_id|branch|tag|ref|format|"
    "date|day|hour|partition"
)
_PLAIN_SETTING = re.compile(  # whose values are words, paths or addresses, which have no room for a secret of their own
    r"spark\.(?:app\.name|submit\.deployMode|scheduler\.mode|shuffle\.manager|serializer|local\.dir|eventLog\.dir|"
    r"driver\.host|driver\.bindAddress|io\.compression\.codec|eventLog\.compression\.codec|yarn\.queue|"
    r"kubernetes\.namespace|kubernetes\.(?:driver\.|executor\.)?container\.image|pyspark\.(?:driver\.)?python|"
    r"python\.(?:daemon|worker)\.module|jars(?:\.packages)?|files|archives|submit\.pyFiles|redaction\.regex|"
    r"sql\.(?:session\.timeZone|extensions|warehouse\.dir|catalogImplementation|defaultCatalog)|"
    r"sql\.(?:parquet|orc)\.compression\.codec|hadoop\.fs\.s3a\.endpoint(?:\.region)?|hadoop\.fs\.defaultFS|"
    r"(?:driver|executor)\.extra(?:ClassPath|LibraryPath)|"
    r"executorEnv\.(?:ARROW_DEFAULT_MEMORY_POOL|LANG|LC_ALL|TZ|PYTHONPATH))"
    r"|[A-Z_]+_HOME|TMPDIR|TZ|LANG|LC_ALL|PYTHONPATH|PYTHONIOENCODING|(?:SPARK|HADOOP|YARN)_CONF_DIR|SPARK_LOCAL_DIRS|"
    r"SPARK_LOCAL_IP|PYSPARK_(?:DRIVER_)?PYTHON|NUMBA_\w+|WINCLI_(?!SPARK_CONF)\w+"
)
_PLAIN_VALUE = re.compile(
    r"|[+-]?\d{1,15}(?:\.\d{1,9})?(?i: ?(?:%|[kmgtp]i?b?|b|us|ms|s|sec|seconds?|min|minutes?|h|hours?|d|days?))?"
    r"|(?i:true|false|yes|no|on|off|none|null|auto|default|is set)"
    r"|(?:[a-z][a-z0-9_]{0,30}\.){2,}[A-Z][A-Za-z0-9]{0,60}(?:\$[A-Za-z0-9]{1,60})?"  # a class
)
_OPTIONS = re.compile(r"(?:Options|OPTIONS|OPTS|ARGS|[._]opts)$")  # settings that hold a command line
_WORD = re.compile(r"""(?:[^\s'"]|"[^"]*"|'[^']*')+""")
_BARE_WORD = re.compile(r"-{1,2}[A-Za-z][\w:+.-]*|[\w./-]+\.(?:jar|py|properties|xml|conf)|pyspark-shell")

_NAMES_IN_FRONT = ("hdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs", "ssh", "sftp")
# In these schemes ``NAME@`` without a password is a user or container, without which the path would be ambiguous.
_BUCKETS = ("s3", "s3a", "s3n", "gs", "gcs")
_SCHEMES = (
    "s3|s3a|s3n|gs|gcs|abfs|abfss|wasb|wasbs|adl|hdfs|viewfs|https?|ftps?|sftp|ssh|iceberg|delta|jdbc|postgres(?:ql)?|"
    "mysql|mongodb|redis|amqps?|spark|k8s|thrift"
)
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>`]*")
_BROKEN = re.compile(  # ``s3:/KEY:SECRET@bucket``, ``s3:KEY:SECRET@bucket``, ``//KEY:SECRET@bucket``
    rf"(?<![\w+.-])((?:[a-z]+\+)?(?:{_SCHEMES}):(?:/|\\{{1,2}})?(?!/)|(?<![:/])//(?!/))"
    r"(?![A-Za-z][A-Za-z0-9+.-]*://)([^\s'\"<>`/@:]*[:@][^\s'\"<>`]*)",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(?<![^\s/'\"(<>=,;\[{&?|#])([^\s/:@'\"(<>=,;\[{&?|#]{1,128}:[^\s/'\"<>]{1,512})@(?=[\w\[{*])")
_NO_PASSWORD = re.compile(rf"(?:.*:)?(?:\d{{0,2}}|{re.escape(MASK)})", re.DOTALL)  # 10:30@host is a time
_PIECES = re.compile(r"([?&#]|;(?=[\w.%-]+=))")
_PARAMETER_NAME = re.compile(r"[\w.%~+\[\]-]+")
_TAIL = re.compile(r"[^=]{0,3}|.*[/*].*|\d{1,6}|.*\.[a-z0-9]{1,8}", re.DOTALL)  # of a glob, or of a name with ? or #
_SIGNS = re.compile("[@:?#;%]")
_ENDS = ";,.:)]"  # at the end of a URL these belong to the sentence around it

_VALUE = r"""("[^"\n]*"|'[^'\n]*'|[^\s,;'"]+)"""
_SETTING = re.compile(  # only a name with dots, or in capitals, is surely that of a setting
    rf"(?<![\w./-])((?:-[DP])?(?:[\w-]+(?:\.[\w-]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*))={_VALUE}"
)
_NAMED = re.compile(  # ``password=..``, ``'fs.s3a.secret.key': '..'``, ``api_key -> ..``, ``('token', '..')``
    r"""(?<![\w./-])(\\?['"]?([A-Za-z][\w.-]*)\\?['"]?\s{0,3}(?:=>|:=|->|[=:]|(?<=['"]),)\s{0,3})(?!\w+\()"""
    rf"(\\?\"[^\"\n]*\"|{_VALUE[1:]}"
)
_TAG = re.compile(r"<([\w.:-]+)>[^<\n]+(?=<)")
_QUERY = re.compile(r"(?<=[?&])([\w.%~-]+)=[^\s&'\"<>`#]+|(?<![\w-])(--?[\w-]+)(?:=|\s)[^\s'\"-][^\s'\"]*")
_HEADER = re.compile(
    r"(?i:((?:authorization|cookie)['\"]?\s{0,3}[:=]\s{0,3}['\"]?)[^'\"\n]+|(\bbearer\s+)[\w.~+/=-]{6,})"
    r"|((?i:\bbasic)\s+)(?=[a-z]*[A-Z0-9=])[\w+/=-]{6,}"
)
_FORM = re.compile(  # a JWT, a PEM, and tokens that services begin with a name of theirs
    r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[^\n]*"
    r"|\b(?:gh[opsu]_|github_pat_|xox[abpr]-|sk_live_|glpat-|hf_|ya29\.|AIza)[\w-]{16,}"
)
_TOKEN = re.compile(r"[^\s'\"<>`]+")
_IN_TEXTS = re.compile(_SECRET.replace("|key|", r"|key$|[._]key[._]|"), re.IGNORECASE)
# ``key.column`` is masked where it is set; its value, a word such as ``user_id``, is not searched for in texts.
_RANDOM = re.compile(r"(?=.*[A-Za-z])(?=.*\d)[^\s/]{8,}")
_ORDINARY = re.compile(r"[\d.]+|false|true|" + re.escape(MASK), re.IGNORECASE)
_SHORTEST = 6  # letters of a value that is searched for in texts: shorter values occur in too many words


def is_secret(name: str) -> bool:
    """Whether the name of a setting or parameter says that its value is secret."""
    return _IS_SECRET.search(name) is not None


def redacted(text: str) -> str:
    """Return a text without what of its addresses and settings may not be shown.

    The function does not change a text that it has returned before.
    """
    if "://" in text:
        text = _URL.sub(_in_text, text)
    if "@" in text or "//" in text or ":" in text:
        text = _BROKEN.sub(_broken, text)
    if "@" in text:
        text = _USER_INFO.sub(lambda found: found[0] if _NO_PASSWORD.fullmatch(found[1]) else f"{MASK}@", text)
    if "%3a%2f" in (lower := text.lower()):
        text = _TOKEN.sub(_encoded, text)
    if "authorization" in lower or "bearer" in lower or "basic" in lower or "cookie" in lower:
        text = _HEADER.sub(lambda found: f"{found[1] or found[2] or found[3]}{MASK}", text)
    text = _FORM.sub(MASK, text)
    if "</" in text:
        text = _TAG.sub(lambda found: f"<{found[1]}>{MASK}" if _SURE.search(found[1]) else found[0], text)
    text = _NAMED.sub(_named, _SETTING.sub(_setting, text) if "=" in text else text)
    return _QUERY.sub(_parameter, text) if "?" in text or "&" in text or "-" in text else text


def redacted_path(path: str) -> str:
    """Return a path or URI without its secrets; a local path is returned as it is, unless it is a broken URI."""
    if "://" in path:
        return _url(path)
    return _BROKEN.sub(_broken, path) if ":" in path or "@" in path else path


def redacted_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with all values masked but those that may be shown."""
    return {name: _shown_value(name, str(value)) for name, value in settings.items()}


def secret_values(
    settings: Mapping[str, str], paths: Iterable[str], environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return the values that no text of a job with these settings and paths may contain, the longest first.

    ``environ``: variables of which only those count whose names say that they are secret.

    Each stands there as it is, without and with percent signs, and in base64, also as a part of ``USER:PASSWORD``.
    Short values, numbers and paths are left out, because they occur in unrelated texts.
    """
    named = [*settings.items(), *(environ or {}).items()]
    found = [value for name, value in named if _IN_TEXTS.search(name) and not value.startswith(("/", "~"))]
    masked = [value for name, value in settings.items() if _shown_value(name, value) == MASK]
    found += [value for value in masked if _RANDOM.fullmatch(value)]
    found += [
        pair[2].strip("\"'") for text in settings.values() for pair in _SETTING.finditer(text) if is_secret(pair[1])
    ]
    whole = (*paths, *(url[0] for text in settings.values() for url in _URL.finditer(text)), *settings.values())
    found += (part for text in whole for part in _secret_parts(text))
    forms = {form for value in found for form in _forms(value) if len(form) >= _SHORTEST}
    kept = [form for form in forms if not _ORDINARY.fullmatch(form)]
    return tuple(sorted(kept, key=lambda value: (-len(value), value)))


def without(text: str, values: Iterable[str]) -> str:
    """Return a text as `redacted` does, and with all occurrences of these values masked."""
    text = redacted(text)
    for value in values:
        text = text.replace(value, MASK)
    return text


def with_secrets_of(path: str, other: str) -> str | None:
    """Return a redacted URI with its secrets, taken from another URI of the same place; None if one is missing."""
    if "://" not in other:
        return None
    scheme, authority, rest = _split(path)
    its_scheme, its_authority, its_rest = _split(other)
    if (its_scheme, _authority(scheme, its_authority)) != (scheme, authority):
        return None
    whole = f"{scheme}://{its_authority}{_with_parts(rest, its_rest)}"
    return None if MASK in whole else whole


def _shown_value(name: str, value: str) -> str:
    if is_secret(name):
        return MASK
    if _OPTIONS.search(name):
        return _WORD.sub(lambda word: _option(word[0]), value)
    return redacted(value) if _PLAIN_VALUE.fullmatch(value) or _PLAIN_SETTING.fullmatch(name) else MASK


def _option(word: str) -> str:
    name, sign, value = word.partition("=")
    if not sign:
        return word if _BARE_WORD.fullmatch(word) or _PLAIN_VALUE.fullmatch(word) else MASK
    bare = re.sub(r"^-[DP]|^-{1,2}", "", name)
    return f"{name}={MASK}" if _shown_value(bare, value.strip("\"'")) == MASK else f"{name}={value}"


def _forms(value: str) -> Iterator[str]:
    plain = unquote(value)
    yield from (value, plain, quote(plain, safe=""), quote(plain, safe="").lower())
    if len(plain) >= _SHORTEST:
        yield b64encode(plain.encode("utf-8", "replace")).decode().rstrip("=")


def _in_text(found: re.Match[str]) -> str:
    url = found[0].rstrip(_ENDS)
    return _url(url) + found[0][len(url) :] if "://" in url else found[0]


def _broken(found: re.Match[str]) -> str:
    head, rest = found[1], found[2]
    if "@" in rest:
        return f"{head}{MASK}{rest[rest.rindex('@') :]}"
    name, _, after = rest.partition(":")
    password, slash, below = after.partition("/")
    return found[0] if _NO_PASSWORD.fullmatch(password) or password.isdigit() else f"{head}{name}:{MASK}{slash}{below}"


def _encoded(found: re.Match[str]) -> str:
    plain = unquote(unquote(found[0]))
    return found[0] if "://" not in plain or _URL.sub(_in_text, plain) == plain else MASK


def _url(url: str) -> str:
    if not _SIGNS.search(url, url.index("://") + 3):  # as of nearly all of a million files
        return url
    scheme, authority, rest = _split(url)
    pieces = _PIECES.split(rest)
    path = "/".join(map(_segment, pieces[0].split("/")))
    return f"{scheme}://{_authority(scheme, authority)}{path}" + "".join(map(_piece, pieces[1:]))


def _split(url: str) -> tuple[str, str, str]:
    scheme, _, after = url.partition("://")
    end = re.search(r"[/?#]|$", after)
    assert end is not None
    at = end.start()
    if "@" not in after[:at] and _has_password(scheme, after[:at]) and "@" in after:
        behind = re.search(r"[/?#]|$", after[after.rindex("@") :])
        assert behind is not None
        at = after.rindex("@") + behind.start()
    return scheme, after[:at], after[at:]


def _has_password(scheme: str, host: str) -> bool:
    """Whether the text after a colon is no port, as in ``KEY:SEC``, the begin of a password with a slash.

    A bucket has no port.
    """
    if scheme.lower() in _BUCKETS and re.match(r"[\w.-]+:.", host):
        return True
    hosts = re.sub(r"\[[^][]*\]|\{[^{}]*\}", "", host).split(",")
    return any(":" in each and not each.rpartition(":")[2].isdigit() and not each.endswith(":") for each in hosts)


def _authority(scheme: str, authority: str) -> str:
    user, sign, host = authority.rpartition("@")
    if not sign:
        return f"{authority.partition(':')[0]}:{MASK}" if _has_password(scheme, authority) else authority
    name, colon, _ = user.partition(":")
    if scheme.lower() in _NAMES_IN_FRONT:
        return f"{name}:{MASK}@{host}" if colon else authority
    return f"{MASK}@{host}"


def _segment(name: str) -> str:
    user, sign, host = name.rpartition("@")
    if sign and ":" in user and not _NO_PASSWORD.fullmatch(user):
        return f"{MASK}@{host}"
    if "%" in name and "=" not in name and (plain := unquote(unquote(name))) != name:
        pieces = _PIECES.split(plain)
        if _segment(pieces[0]) != pieces[0] or any(_piece(each) != each for each in pieces[1:]):
            return MASK
    return name


def _piece(text: str) -> str:
    name, sign, value = text.partition("=")
    if not sign or not _PARAMETER_NAME.fullmatch(name):
        return text if _TAIL.fullmatch(text) and _segment(text) == text else MASK
    name_, value_ = unquote(name).lower(), unquote(value)
    is_known = _PARAMETERS.fullmatch(name_) and re.fullmatch(r"[\w.:/{}%+*-]{0,200}", value_)
    return text if not is_secret(name_) and (is_known or _PLAIN_VALUE.fullmatch(value_)) else f"{name}={MASK}"


def _with_parts(rest: str, other: str) -> str:
    """Replace masked names and parameters by those of another URL: names at the same place, parameters by name."""
    pieces, its_pieces = _PIECES.split(rest), _PIECES.split(other)
    names, its_names = pieces[0].split("/"), its_pieces[0].split("/")
    for at, (name, its_name) in enumerate(zip(names, its_names, strict=False)):
        if MASK in name and _segment(its_name) == name:
            names[at] = its_name
    known = {text.partition("=")[0]: text for text in its_pieces[1:] if "=" in text}
    for at, text in enumerate(pieces[1:], 1):
        name, sign, value = text.partition("=")
        if sign and value == MASK:
            pieces[at] = known.get(name, text)
        elif text == MASK and at < len(its_pieces):
            pieces[at] = its_pieces[at]
    return "/".join(names) + "".join(pieces[1:])


def _setting(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    bare = re.sub(r"^-[DP]", "", name)
    if bare.isalnum() and not _SURE.search(bare):  # one word in capitals
        return found[0]
    if not bare.startswith(("spark.", "fs.", "hadoop.", "dfs.")):
        return f"{name}={MASK}" if is_secret(bare) else found[0]
    plain = value.strip("\"'")
    shown = _shown_value(bare, plain)
    return found[0] if shown == plain else f"{name}={shown}"


def _parameter(found: re.Match[str]) -> str:
    if found[1] is not None:
        is_open = is_secret(unquote(found[1])) and not found[0].startswith(f"{found[1]}={MASK}")
        return f"{found[1]}={MASK}" if is_open else found[0]
    name = found[2].lstrip("-")
    return f"{found[2]}{found[0][len(found[2])]}{MASK}" if len(name) > 1 and _SURE.search(name) else found[0]


def _named(found: re.Match[str]) -> str:
    value = found[3]
    if not _SURE.search(found[2]):
        return found[0]
    mark = value[: len(value) - len(value.lstrip("\\\"'"))]
    return f"{found[1]}{mark}{MASK}{mark or value[len(value.rstrip(')}]')) :]}"


def _secret_parts(address: str) -> Iterator[str]:
    """Yield what of an address may not be shown: user info, with and without its colon, and parameters."""
    if "://" not in address:
        for found in _BROKEN.finditer(address):
            yield from _user_parts(found[2])
        return
    scheme, authority, rest = _split(address)
    user, sign, _ = authority.rpartition("@")
    if not sign and _has_password(scheme, authority):
        user = authority
    name, _, password = user.partition(":")
    yield from [password] if scheme.lower() in _NAMES_IN_FRONT else [user, name, password]
    pieces = _PIECES.split(rest)
    yield from (each.partition("=")[2] or each for each in pieces[1:] if _piece(each) != each)
    for each in pieces[0].split("/"):
        if "@" in each and _segment(each) != each:
            yield from _user_parts(each)


def _user_parts(text: str) -> Iterator[str]:
    user = text.rpartition("@")[0]
    yield from (user, *user.split(":", 1))
