"""Names in messages: the nearest known one, the "did you mean" of every message; the first few of many."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


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


def few(names: Sequence[str], most: int = 3) -> str:
    """Return names in one line, of many the first ``most`` and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
