"""Where events go: a file, a URL, or what OpenLineage's own variables and its configuration file say."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...windowing.errors import ConfigError, install_extra, shown
from ...windowing.support.amounts import count_of
from ...windowing.support.redaction import redacted
from ...writers.places.os_errors import reason
from ..console.side_file import SideFile

PRODUCER = "https://pypi.org/project/wincli/"
"""How the producer of all events begins; the version comes behind it."""
FROM_ENVIRONMENT = "env"
_LOUD = ("openlineage", "urllib3")
_CONFIGURED = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE_DISABLED")
_TIMEOUT = 5.0
_ERRNO = re.compile(r"\[Errno -?\d+\] ([^'\")>]+)")
_PATIENCE = 10.0
_SOON = 0.5
_RETRIES = {"total": 2, "read": 1, "connect": 1}


def event_file(target: str) -> SideFile | None:
    """Return the file that events go to; None where they go elsewhere.

    Raises `ConfigError` where events cannot be sent to ``target``: before the run, and without a network.
    """
    if find_spec("openlineage") is None or find_spec("openlineage.client") is None:
        raise ConfigError("--lineage needs openlineage-python, which is not installed", install_extra("lineage"))
    if target == FROM_ENVIRONMENT:
        is_given = any(
            name.startswith("OPENLINEAGE__TRANSPORT") or name in _CONFIGURED for name in os.environ if os.environ[name]
        )
        places = (Path("openlineage.yml"), Path("~/.openlineage/openlineage.yml").expanduser())
        if not is_given and not any(place.is_file() for place in places):
            do = "set OPENLINEAGE_URL, or name a file or a URL"
            raise ConfigError("--lineage env: there is no OPENLINEAGE_URL and no openlineage.yml", do)
    elif "://" in target:
        if not _is_http(target):
            what = f"--lineage {redacted(target)}: events go to a file, or to a URL http:// or https://"
            raise ConfigError(what, "name one, or say env for what OPENLINEAGE_* variables say")
    else:
        return SideFile("--lineage", target, "an event log", "lineage.jsonl", _is_event, grows=True)
    return None


def _is_http(target: str) -> bool:
    try:
        parts = urlsplit(target)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that are no address, a port that is no number
        return False


def _is_event(line: bytes) -> bool:
    try:
        return str(json.loads(line)["producer"]).startswith(PRODUCER)
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


@dataclass(slots=True)
class _Emitter:
    """Sends events through a client of OpenLineage, which may hang or try for long: so it has a patience.

    ``left``: the seconds that the command still waits in all; what answers soon takes nothing from them.
    """

    client: Any
    left: float

    def send(self, event: Any) -> None:
        """Send an event. Raises whatever goes wrong, `TimeoutError` where the patience is at an end."""
        self._wait(lambda: self.client.emit(event))

    def close(self) -> None:
        """Wait for events that the client sends in the background. Raises as `send` does."""
        if self._wait(lambda: self.client.close(max(self.left, _SOON))) is False:
            raise TimeoutError("timed out")

    def _wait(self, work: Callable[[], Any]) -> Any:
        if self.left <= 0:
            raise TimeoutError("it answers too slowly")
        came: list[Any] = []
        failed: list[Exception] = []

        def run() -> None:
            try:
                came.append(work())
            except Exception as error:
                failed.append(error)

        began = time.monotonic()
        thread = threading.Thread(target=run, daemon=True)  # nobody waits for what hangs, not even the end
        thread.start()
        thread.join(self.left)
        self.left -= max(0.0, time.monotonic() - began - _SOON)
        if failed:
            raise failed[0]
        if not came:
            self.left = 0.0
            raise TimeoutError("timed out")
        return came[0]


class Outbox:
    """The events of a command on their way. Those that cannot be sent are kept in a file: none is lost in silence.

    ``target``: where they go, as the job names it.
    ``send``: sends an event, and raises whatever goes wrong.
    ``finish``: waits for what is still under way, and raises whatever goes wrong.
    """

    def __init__(self, target: str, send: Callable[[Any], None], finish: Callable[[], None] = lambda: None) -> None:
        self._target, self._send, self._finish = target, send, finish
        self._events = self._unsent = self._kept = 0
        self._is_down = False
        self._why = self._not_kept = ""
        self._file: Path | None = None

    def put(self, make: Callable[[], Any]) -> None:
        """Make an event and send it. After the first that could not be sent no more are tried."""
        self._events += 1
        try:
            event = make()
        except Exception as error:  # such as for a column without a lineage
            self._unsent += 1
            self._why = self._why or _reason(error)
            return
        if not self._is_down:
            try:
                self._send(event)
                return
            except Exception as error:  # whatever a server, a proxy or a disk has
                self._is_down = True
                self._why = self._why or _reason(error)
        self._unsent += 1
        try:
            if self._file is None:
                fd, name = tempfile.mkstemp(".jsonl", "wincli-lineage-")
                os.close(fd)
                self._file = Path(name)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{_text_of(event)}\n")
            self._kept += 1
        except OSError as error:
            self._not_kept = f"; not all of them could be kept: {reason(error)}"

    def close(self) -> Iterator[str]:
        """Wait for events that are under way, and yield in words what has become of those that were not sent."""
        try:
            if not self._is_down:
                self._finish()
        except Exception as error:
            yield f"OpenLineage events may not have come to {redacted(self._target)}: {_reason(error)}"
        if self._unsent:
            what = f"{self._unsent} of {count_of(self._events, 'OpenLineage event')} were not sent"
            kept = f"; {'they are' if self._kept == self._unsent else f'{self._kept} are'} kept in {self._file}"
            yield f"{what} to {redacted(self._target)}: {self._why}{kept if self._file else ''}{self._not_kept}"


def _reason(error: Exception) -> str:
    """Return in few words why an event was not sent: clients of HTTP wrap the reason in many."""
    text = redacted(str(error).split("\n")[0]) or type(error).__name__
    found = _ERRNO.search(text)
    return found[1] if found else "it gives no answer" if "timed out" in text else text


@dataclass(frozen=True, slots=True)
class _EventLog:
    """A transport of OpenLineage: a file with an event in each line."""

    file: SideFile
    kind = "event log"

    def emit(self, event: Any) -> None:
        self.file.append(_text_of(event))

    def close(self, _: float = -1) -> bool:
        return True


def _text_of(event: Any) -> str:
    from openlineage.client.serde import Serde  # noqa: PLC0415 - only for runs with lineage

    return str(Serde.to_json(event))


def outbox_to(target: str) -> Outbox:
    """Return what sends events to ``target``. Raises `ConfigError`."""
    for name in _LOUD:  # what goes wrong is said in one note, and not for each try
        logging.getLogger(name).setLevel(logging.CRITICAL)
    from openlineage.client import OpenLineageClient  # noqa: PLC0415 - only for runs with lineage
    from openlineage.client.transport import get_default_factory  # noqa: PLC0415

    try:
        if (file := event_file(target)) is not None:
            transport: Any = _EventLog(file)
            return Outbox(target, OpenLineageClient(transport=transport).emit)
        if target == FROM_ENVIRONMENT:
            client = OpenLineageClient()
        else:
            parts = urlsplit(target)
            path = parts.path.strip("/")
            config: dict[str, Any] = {
                "type": "http",
                "url": f"{parts.scheme}://{parts.netloc}",
                "timeout": _TIMEOUT,
                "retry": _RETRIES,
                **({"endpoint": path + (f"?{parts.query}" if parts.query else "")} if path else {}),
            }
            if key := os.environ.get("OPENLINEAGE_API_KEY"):
                config["auth"] = {"type": "api_key", "apiKey": key}
            client = OpenLineageClient(transport=get_default_factory().create(config))
        emitter = _Emitter(_guarded(client), _PATIENCE)
        return Outbox(target, emitter.send, emitter.close)
    except ConfigError:
        raise
    except Exception as error:
        do = "see the configuration of OpenLineage: OPENLINEAGE_* and openlineage.yml"
        raise ConfigError(f"--lineage {redacted(target)}: {shown(redacted(str(error)))}", do) from error


def _guarded(client: Any) -> Any:
    if (session := getattr(client.transport, "session", None)) is not None:
        session.hooks["response"].append(_refuse_redirect)
    transport: Any = client.transport
    if transport.kind == "file" and transport.config.append and "://" not in transport.config.log_file_path:
        file = event_file(transport.config.log_file_path)
        assert file is not None
        file.check()
        client.transport = _EventLog(file)
    return client


def _refuse_redirect(response: Any, **_: Any) -> None:
    """Raise `OSError` for an answer that is no answer: a POST that is redirected arrives nowhere, as a GET.

    307 and 308 are followed, for they keep it a POST.
    """
    code, to = response.status_code, response.headers.get("Location")
    if 300 <= code < 400 and not (code in (307, 308) and to):
        response.close()
        raise OSError(f"{code}: it redirects to {to or 'another address'}; name the address that takes events")
