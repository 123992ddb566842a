"""The proxy that disturbs requests: each fault is what its name says, and a seed draws the same faults again."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support import fault_proxy
from support.fault_proxy import CHANGES, FAULTS, Fault, FaultProxy, Request, Side


class Store(BaseHTTPRequestHandler):
    """Keeps what is put, and counts how often."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    puts: list[bytes]

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
def puts() -> list[bytes]:
    return []


@pytest.fixture
def proxy(puts: list[bytes]) -> Iterator[FaultProxy]:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Kept", (Store,), {"puts": puts})) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        with fault_proxy.serve(f"http://127.0.0.1:{server.server_address[1]}") as proxy:
            yield proxy
        server.shutdown()
        thread.join()


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


def disturb(proxy: FaultProxy, *kinds: Fault) -> None:
    proxy.begin(seed=1, rate=1.0)
    proxy.kinds = kinds


def test_a_proxy_that_is_told_nothing_lets_all_through(proxy: FaultProxy, puts: list[bytes]) -> None:
    assert ask(proxy) == (200, b"")
    assert ask(proxy, "GET", None) == (200, b"0123456789")
    assert (puts, proxy.count, dict(proxy.happened)) == ([b"x"], 2, {})


@pytest.mark.parametrize(
    ("fault", "status", "times"),
    [
        ("drop", None, 0),
        ("busy", 503, 0),
        ("failed", 500, 0),
        ("failed late", 500, 1),
        ("lost answer", None, 1),
        ("delay", 200, 1),
        ("repeat", 200, 2),
    ],
)
def test_a_fault_is_what_its_name_says(
    proxy: FaultProxy, puts: list[bytes], fault: Fault, status: int | None, times: int
) -> None:
    disturb(proxy, fault)
    answer = ask(proxy)
    assert (None if answer is None else answer[0]) == status
    assert puts == [b"x"] * times
    assert proxy.happened == {fault: 1}


def test_a_cut_answer_ends_before_its_length(proxy: FaultProxy) -> None:
    disturb(proxy, "cut answer")
    assert ask(proxy, "GET", None) is None


def test_a_body_in_chunks_goes_on_in_one_piece(proxy: FaultProxy, puts: list[bytes]) -> None:
    line = http.client.HTTPConnection(*proxy.address, timeout=60)
    line.request("PUT", "/bucket/key", iter([b"ab", b"c"]), encode_chunked=True)
    assert line.getresponse().status == 200
    line.close()
    assert puts == [b"abc"]


def test_a_seed_draws_the_same_faults_again(proxy: FaultProxy) -> None:
    drawn = []
    for _ in range(2):
        proxy.begin(seed=3, rate=0.5)
        drawn.append([proxy.number(lambda n: Request(n, "PUT", "/", {}, b"", 0))[1] for _ in range(60)])
    assert drawn[0] == drawn[1]
    assert {*drawn[0]} == {None, *FAULTS}


def test_a_watcher_sees_each_request_before_and_after(proxy: FaultProxy, puts: list[bytes]) -> None:
    seen: list[tuple[int, str, Side, int]] = []
    proxy.begin(watch=lambda job, side: seen.append((job.number, job.method, side, len(puts))))
    ask(proxy)
    assert seen == [(1, "PUT", "before", 0), (1, "PUT", "after", 1)]
    assert "PUT" in CHANGES


def test_puts_of_one_key_follow_each_other(proxy: FaultProxy) -> None:
    """A server for tests compares and writes in two steps: a store does so in one."""
    assert proxy.lock_of("/bucket/key?x=1") is proxy.lock_of("/bucket/key")
    assert proxy.lock_of("/bucket/key") is not proxy.lock_of("/bucket/other")
