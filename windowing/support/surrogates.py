"""Bytes that should be UTF-8 text and may not be."""

from __future__ import annotations


def readable(data: bytes) -> str:
    r"""Return bytes as text, without loss even if they are not UTF-8.

    If so, each invalid byte is written as ``\xNN``, and each backslash as two, so that the bytes can be recovered.

    >>> readable("é\\".encode()), readable(b"caf\xe9\\")
    ('é\\', 'caf\\xe9\\\\')
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.replace(b"\\", b"\\\\").decode(errors="backslashreplace")
