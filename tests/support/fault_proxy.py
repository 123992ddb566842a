"""A proxy in front of a store that does to requests what networks and busy stores do to them.

It drops, delays and repeats requests, loses and cuts answers, and says that the store is busy or has failed: as the
numbers of a seed say, so that most of a course can be had again. It listens on the loopback alone.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

Fault: TypeAlias = Literal["drop", "lost answer", "cut answer", "delay", "repeat", "failed", "failed late", "busy"]
Side: TypeAlias = Literal["before", "after"]
FAULTS: tuple[Fault, ...] = ("drop", "lost answer", "cut answer", "delay", "repeat", "failed", "failed late", "busy")
CHANGES = ("PUT", "POST", "DELETE", "PATCH")
METHODS = ("GET", "HEAD", *CHANGES)
_LONGEST_DELAY = 0.2
_PATIENCE = 60.0
_OF_A_LINE = ("connection", "keep-alive", "transfer-encoding", "content-length", "expect")
"""Headers that are of one connection, or that say how a body is sent over it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request on its way. ``number``: counted from 1, since the last `FaultProxy.begin`; ``target``: path and query.

    ``source``: the port of the client's connection.
    """

    number: int
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    source: int

    @property
    def is_change(self) -> bool:
        """Whether it asks for a change in the store."""
        return self.method in CHANGES


@dataclass(frozen=True, slots=True)
class Answer:
    """What the store, or the proxy in its place, says to a request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class UnsentError(Exception):
    """Raised by a watcher before a request: it is not sent on, and the client hears nothing."""


Watch: TypeAlias = Callable[[Request, Side], None]
"""What is called before a request is sent on, and after it was answered; the client waits for it."""


@dataclass
class FaultProxy:
    """A proxy; `serve` starts and ends one.

    ``store``: host and port that it stands before. ``rate``: the share of requests that go wrong. ``kinds``: how they
    do. ``count``: the requests since `begin`. ``happened``: the faults since then. ``log``: the requests, if kept.
    """

    store: tuple[str, int]
    chance: random.Random
    rate: float = 0.0
    kinds: tuple[Fault, ...] = FAULTS
    watch: Watch = lambda request, side: None
    count: int = 0
    happened: Counter[Fault] = field(default_factory=Counter)
    log: list[Request] | None = None
    address: tuple[str, int] = ("", 0)
    _under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _of_keys: dict[str, threading.Lock] = field(default_factory=dict)

    @property
    def endpoint(self) -> str:
        """The address for those who shall go through the proxy."""
        return f"http://{self.address[0]}:{self.address[1]}"

    def begin(self, seed: int = 0, rate: float = 0.0, watch: Watch = lambda request, side: None) -> None:
        """Count from 1 again, with other chances, and with another watcher."""
        with self._lock:
            self.chance, self.rate, self.watch, self.count = random.Random(seed), rate, watch, 0
            self.happened = Counter()
            self.log = None if self.log is None else []

    def number(self, request: Callable[[int], Request]) -> tuple[Request, Fault | None]:
        """Number a request, and draw what goes wrong with it."""
        with self._lock:
            self.count += 1
            fault = self.chance.choice(self.kinds) if self.chance.random() < self.rate else None
            made = request(self.count)
            if fault:
                self.happened[fault] += 1
            if self.log is not None:
                self.log.append(made)
            return made, fault

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """A request is under way."""
        with self._lock:
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def settle(self) -> None:
        """Wait until no request is under way, those of killed clients among them."""
        deadline = time.monotonic() + _PATIENCE
        while self._under_way and time.monotonic() < deadline:
            time.sleep(0.005)

    def lock_of(self, target: str) -> threading.Lock:
        """The lock of a key: stores compare and write in one step, and servers for tests do not always."""
        with self._lock:
            return self._of_keys.setdefault(urlsplit(target).path, threading.Lock())

    def pause(self) -> None:
        """Wait for as long as a delay takes."""
        with self._lock:
            seconds = self.chance.uniform(0, _LONGEST_DELAY)
        time.sleep(seconds)


@contextlib.contextmanager
def serve(store: str) -> Iterator[FaultProxy]:
    """Start a proxy before the store at an address, which lets all through until `FaultProxy.begin` says otherwise."""
    parts = urlsplit(store)
    assert parts.hostname
    assert parts.port
    proxy = FaultProxy((parts.hostname, parts.port), random.Random(0))
    with _Server(("127.0.0.1", 0), _handler(proxy)) as server:
        proxy.address = ("127.0.0.1", server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


def _handler(proxy: FaultProxy) -> type[_Handler]:
    return type("Handler", (_Handler,), {"proxy": proxy, **{f"do_{method}": _Handler.serve for method in METHODS}})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that are killed close their connections."""


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = _PATIENCE
    proxy: FaultProxy

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def handle_expect_100(self) -> bool:
        """Ask for the body of a request whose head came first, at once, or the client would wait a second."""
        answered = super().handle_expect_100()
        self.wfile.flush()
        return answered

    def serve(self) -> None:
        body = self._body()
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_A_LINE}
        source = self.client_address[1]
        request, fault = self.proxy.number(lambda n: Request(n, self.command, self.path, headers, body, source))
        with self.proxy.under_way():
            try:
                self.proxy.watch(request, "before")
                answer = self._fate(request, fault)
            except UnsentError:
                answer = None
            self.proxy.watch(request, "after")
        if answer is None:
            self._hang_up()
        else:
            self._write(answer, fault == "cut answer")

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(chunks)

    def _fate(self, request: Request, fault: Fault | None) -> Answer | None:
        """What becomes of a request; None: no answer."""
        if fault == "delay":
            self.proxy.pause()
        answers = [self._forward(request) for _ in range(_TIMES.get(fault, 1))]
        return _INSTEAD[fault] if fault in _INSTEAD else answers[-1]

    def _forward(self, request: Request) -> Answer | None:
        """Send a request on; None where the store hangs up."""
        lock = self.proxy.lock_of(request.target) if request.is_change else contextlib.nullcontext()
        line = HTTPConnection(*self.proxy.store, timeout=_PATIENCE)
        try:
            with lock:
                line.request(request.method, request.target, request.body or None, _with_length(request))
                got = line.getresponse()
                kept = [(k, v) for k, v in got.getheaders() if k.lower() not in _OF_A_LINE or request.method == "HEAD"]
                return Answer(got.status, tuple(kept), got.read())
        except (OSError, HTTPException):
            return None
        finally:
            line.close()

    def _write(self, answer: Answer, is_cut: bool) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            if name.lower() not in ("connection", "keep-alive", "transfer-encoding"):
                self.send_header(name, value)
        if self.command != "HEAD" and answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[: len(answer.body) // 2] if is_cut else answer.body)
        self.wfile.flush()
        if is_cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _with_length(request: Request) -> dict[str, str]:
    """The headers to send on: a body that came in chunks goes on in one piece."""
    length = {"Content-Length": str(len(request.body))} if request.body or request.is_change else {}
    return {**request.headers, **length}


def _said(status: int, code: str) -> Answer:
    """What a store says that cannot do its work."""
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return Answer(status, (("Content-Type", "application/xml"),), text.encode())


_TIMES: Mapping[Fault | None, int] = {"drop": 0, "busy": 0, "failed": 0, "repeat": 2}
"""How often a request is sent on; else once."""
_INSTEAD: Mapping[Fault | None, Answer | None] = {
    "drop": None,
    "lost answer": None,
    "busy": _said(503, "SlowDown"),
    "failed": _said(500, "InternalError"),
    "failed late": _said(500, "InternalError"),
}
"""What is said in place of the store's answer; None: nothing."""
