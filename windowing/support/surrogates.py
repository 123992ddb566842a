"""Bytes that should be text and are not."""

from __future__ import annotations


def readable(data: bytes) -> str:
    r"""Return bytes as text, none of them lost where they are not UTF-8.

    Then each byte at fault is written as ``\xNN``, and each backslash as two, so that the bytes can be had back.

    >>> readable("é\\".encode()), readable(b"caf\xe9\\")
    ('é\\', 'caf\\xe9\\\\')
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.replace(b"\\", b"\\\\").decode(errors="backslashreplace")
