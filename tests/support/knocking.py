"""Knocking at the ports of a Spark as a process of another user would: without its secret."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import struct

import psutil

HOST = "127.0.0.1"
_SECONDS = 60

REFUSED = "Expected SaslMessage"
"""What Spark's authentication says to who does not begin with it."""

GATEWAY = "Authentication error"
"""What the gateway of Java says to who does not begin with its secret."""


def answer(port: int) -> str:
    """What a port of Java's says to a stranger: a refusal, in one word, or what it answered."""
    status = page(port)
    if status is not None:
        return f"page {status}"
    told = message(port) if GATEWAY not in (called := call(port)) else called
    return next((refusal for refusal in (REFUSED, GATEWAY) if refusal in told), told)


def listening(process: psutil.Process) -> list[tuple[str, int]]:
    """Address and port of all that a process listens to."""
    return [tuple(each.laddr) for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address, which may be an IPv4 one written as IPv6."""
    found = ipaddress.ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def message(port: int) -> str:
    """What Spark answers to a message for an endpoint of its RPC: a Java object, read where it takes such messages."""
    endpoint = _text("endpoint-verifier")  # every RPC has it
    body = b"\0" + b"\1" + _text(HOST) + struct.pack(">i", port) + endpoint + b"\xac\xed\0\5t" + _text("hello")
    return _answer_to(port, _frame(b"\3" + struct.pack(">qi", 7, len(body)) + body))


def call(port: int) -> str:
    """What the gateway of Java answers to a call of a static method."""
    return _answer_to(port, b"c\nz:java.lang.System\ngetProperty\nsuser.name\ne\n")


def work(port: int) -> bytes:
    """What the daemon of Python answers, behind the number of a worker, to one who guesses its secret."""
    with socket.create_connection((HOST, port), timeout=_SECONDS) as line:
        line.sendall(struct.pack(">i", 5) + b"guess")
        return b"".join(iter(lambda: line.recv(64), b""))[4:]


def page(port: int) -> int | None:
    """The status with which a page is given or refused; None where there are no pages."""
    line = http.client.HTTPConnection(HOST, port, timeout=_SECONDS)
    try:
        line.request("GET", "/")
        return line.getresponse().status
    except (http.client.HTTPException, OSError):
        return None
    finally:
        line.close()


def _text(text: str) -> bytes:
    """A text as Java writes it."""
    return struct.pack(">H", len(text)) + text.encode()


def _frame(content: bytes) -> bytes:
    return struct.pack(">q", 8 + len(content)) + content


def _answer_to(port: int, sent: bytes) -> str:
    with socket.create_connection((HOST, port), timeout=_SECONDS) as line:
        line.sendall(sent)
        try:
            return line.recv(1 << 16).decode("latin-1")
        except TimeoutError:
            return "no answer"
