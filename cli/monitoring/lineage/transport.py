"""Where events go: a file, a URL, or what OpenLineage's own variables and its configuration file say."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ....windowing.errors import ConfigError, install_extra, shown
from ....windowing.support.addresses.redaction import redacted
from ..target_file import check_file

FROM_ENVIRONMENT = "env"
_LOUD = ("openlineage", "urllib3")
_CONFIGURED = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE_DISABLED")
_TIMEOUT = 5.0
_RETRIES = {"total": 2, "read": 1, "connect": 1}


def check_target(target: str) -> None:
    """Raise `ConfigError` where events cannot be sent to ``target``: before the run, and without a network."""
    if find_spec("openlineage") is None or find_spec("openlineage.client") is None:
        raise ConfigError("--lineage needs openlineage-python, which is not installed", install_extra("lineage"))
    if target == FROM_ENVIRONMENT:
        _check_environment(os.environ)
    elif "://" in target:
        try:
            parts = urlsplit(target)
        except ValueError:  # brackets that hold no IPv6 address
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            what = f"--lineage {redacted(target)}: events go to a file, or to a URL http:// or https://"
            raise ConfigError(what, "name one, or say env for what OPENLINEAGE_* variables say")
    else:
        check_file("--lineage", target, "lineage.jsonl", is_replaced=False)


def emitter(target: str) -> Callable[[Any], None]:
    """Return the function that sends an event. It raises whatever goes wrong. Raises `ConfigError`."""
    for name in _LOUD:  # what goes wrong is said in one note, and not for each try
        logging.getLogger(name).setLevel(logging.CRITICAL)
    from openlineage.client import OpenLineageClient  # noqa: PLC0415 - only for runs with lineage
    from openlineage.client.transport import get_default_factory  # noqa: PLC0415

    try:
        if target == FROM_ENVIRONMENT:
            return _emit(OpenLineageClient())
        config = _http(target, os.environ) if "://" in target else _file(target)
        return _emit(OpenLineageClient(transport=get_default_factory().create(config)))
    except Exception as error:
        do = "see the configuration of OpenLineage: OPENLINEAGE_* and openlineage.yml"
        raise ConfigError(f"--lineage {redacted(target)}: {shown(redacted(str(error)))}", do) from error


def _emit(client: Any) -> Callable[[Any], None]:
    emit: Callable[[Any], None] = client.emit
    return emit


def _file(target: str) -> dict[str, Any]:
    return {"type": "file", "log_file_path": target, "append": True}


def _http(target: str, environ: Mapping[str, str]) -> dict[str, Any]:
    parts = urlsplit(target)
    path = parts.path.strip("/")
    config: dict[str, Any] = {
        "type": "http",
        "url": f"{parts.scheme}://{parts.netloc}",
        "timeout": _TIMEOUT,
        "retry": _RETRIES,
        **({"endpoint": path + (f"?{parts.query}" if parts.query else "")} if path else {}),
    }
    if key := environ.get("OPENLINEAGE_API_KEY"):
        config["auth"] = {"type": "api_key", "apiKey": key}
    return config


def _check_environment(environ: Mapping[str, str]) -> None:
    is_given = any(
        name.startswith("OPENLINEAGE__TRANSPORT") or name in _CONFIGURED for name in environ if environ[name]
    )
    places = (Path("openlineage.yml"), Path("~/.openlineage/openlineage.yml").expanduser())
    if not is_given and not any(place.is_file() for place in places):
        do = "set OPENLINEAGE_URL, or name a file or a URL"
        raise ConfigError("--lineage env: there is no OPENLINEAGE_URL and no openlineage.yml", do)
