"""Text of paths and data as it may be shown: it begins no line, steers no terminal, changes no order of letters."""

from __future__ import annotations

import re

_UNSAFE = (
    r"\x00-\x1f\x7f-\x9f"  # control characters: C0, DEL and C1
    r"\u2028\u2029"  # ends of lines and paragraphs
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of the text around it
    r"\ud800-\udfff"  # halves of pairs, which no encoding takes
)
_HALF = re.compile("[\ud800-\udfff]")
_ONE = re.compile(f"[{_UNSAFE}]")
_WORDS = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_BYTES = range(0xDC80, 0xDD00)  # bytes of a file name that is no text, as Python keeps them


def shown(text: str) -> str:
    """Return a text with all that is not to be shown escaped as in Python, bytes of file names as such: ``\\xff``.

    A text that is shown already stays as it is.
    """
    return _ONE.sub(_escape, text)


def printable(path: str) -> str:
    r"""Return the name of a file with bytes that are no UTF-8 as ``\xe9``; any other name as it is."""
    return path if path.isascii() else _HALF.sub(_escape, path)


def shown_lines(text: str) -> str:
    """Return several lines, each as `shown` shows it."""
    return "\n".join(map(shown, text.split("\n")))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in _WORDS:
        return _WORDS[found[0]]
    if code in _BYTES:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
