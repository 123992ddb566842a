"""Names as messages and records tell them: the nearest known one, the "did you mean"; those of files as UTF-8."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_SURROGATE = re.compile("[\ud800-\udfff]")


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that ``word`` was most likely meant to be, or None where nothing is near.

    Case does not count: ``nearest("Amout", ["amount", "ts"]) == "amount"``.
    """
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the nearest choice, else a list of the choices."""
    known = list(choices)
    near = nearest(word, known)
    if near is not None:
        return f"did you mean {near!r}?"
    return "known: " + ", ".join(known) if known else "there are none"


def short(text: str, most: int = 60) -> str:
    """Return a text as a message shows it: of a longer one its beginning."""
    return text if len(text) <= most else text[: most - 3] + "..."


def printable(path: str) -> str:
    r"""Return the name of a file with bytes that are no UTF-8 as ``\xe9``; any other name as it is."""
    return path if path.isascii() else _SURROGATE.sub(_escaped, path)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code & 0xFF:02x}" if code >= 0xDC00 else f"\\u{code:04x}"
