"""Names in messages: suggestions for misspelt names ("did you mean"), and short lists of many names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to ``word``, or None if none is similar.

    Case is ignored: ``nearest("Amout", ["amount", "ts"]) == "amount"``.
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
    """Return a text for a message, cut to at most ``most`` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def few(names: Sequence[str], most: int = 3) -> str:
    """Return names in one line: the first ``most``, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
