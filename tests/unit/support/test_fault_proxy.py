"""The proxy that disturbs requests: each fault is what its name says, and a seed draws the same faults again."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from support import fault_proxy
from support.fault_proxy import FAULTS, Fault, FaultProxy, Request, Side


class Store(BaseHTTPRequestHandler):
    """Keeps what is put, and counts how often."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    puts: ClassVar[list[bytes]] = []

    def log_message(self, format: str, *args: object) -> None: ...

    def do_PUT(self) -> None:
        self.puts.append(self.rfile.read(int(self.headers["Content-Length"])))
        self._say(b"")

    def do_GET(self) -> None:
        self._say(b"0123456789")

    def _say(self, text: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    Store.puts.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with fault_proxy.serve(f"http://127.0.0.1:{server.server_address[1]}") as proxy:
            yield proxy
        server.shutdown()


def ask(proxy: FaultProxy, method: str = "PUT", body: bytes | None = b"x") -> tuple[int, bytes] | None:
    """Status and body of the answer, None where the line is cut."""
    line = http.client.HTTPConnection(*proxy.address, timeout=60)
    try:
        line.request(method, "/bucket/key", body)
        got = line.getresponse()
        return got.status, got.read()
    except (http.client.HTTPException, ConnectionError):
        return None
    finally:
        line.close()


def test_a_proxy_that_is_told_nothing_lets_all_through(proxy: FaultProxy) -> None:
    assert ask(proxy) == (200, b"")
    assert ask(proxy, "GET", None) == (200, b"0123456789")
    assert (Store.puts, proxy.count, dict(proxy.happened)) == ([b"x"], 2, {})


OUTCOMES: dict[Fault, tuple[int | None, int]] = {
    **{"drop": (None, 0), "busy": (503, 0), "failed": (500, 0), "failed late": (500, 1)},
    **{"lost answer": (None, 1), "delay": (200, 1), "repeat": (200, 2), "cut answer": (200, 1)},
}
"""By fault, the status of the answer to a PUT, and how often the store gets it."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_what_its_name_says(proxy: FaultProxy, fault: Fault) -> None:
    proxy.begin(seed=1, rate=1.0)
    proxy.kinds = (fault,)
    answer = ask(proxy)
    status, times = OUTCOMES[fault]
    assert (None if answer is None else answer[0]) == status
    assert Store.puts == [b"x"] * times
    assert proxy.happened == {fault: 1}
    if fault == "cut answer":  # one with a body ends before its length
        assert ask(proxy, "GET", None) is None


def test_a_seed_draws_the_same_faults_again(proxy: FaultProxy) -> None:
    drawn = []
    for _ in range(2):
        proxy.begin(seed=3, rate=0.5)
        drawn.append([proxy.number(lambda n: Request(n, "PUT", "/", {}, b"", 0))[1] for _ in range(60)])
    assert drawn[0] == drawn[1]
    assert {*drawn[0]} == {None, *FAULTS}


def test_a_watcher_sees_each_request_before_and_after(proxy: FaultProxy) -> None:
    seen: list[tuple[int, str, Side, int]] = []
    proxy.begin(watch=lambda job, side: seen.append((job.number, job.method, side, len(Store.puts))))
    ask(proxy)
    assert seen == [(1, "PUT", "before", 0), (1, "PUT", "after", 1)]
