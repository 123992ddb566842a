"""One thing that was checked, and how: what a user did wrong or a machine lacks is an answer, and no error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ....windowing.errors import WincliError

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one thing.

    ``name``: the thing.
    ``level``: ``ok``; ``warn``: runs work, but not well, or not all; ``fail``: runs do not work.
    ``what``: what was found, in words.
    ``do``: what to do about it; empty where it is ok.
    """

    name: str
    level: Level
    what: str
    do: str = ""


def warn_of(name: str, note: str, do: str = "") -> Check:
    """Return a note, ``what; do``, as a check that warns. ``do``: what to do where the note does not say it."""
    what, _, advice = note.partition("; ")
    return Check(name, "warn", what, advice or do)


def run_check(name: str, look: Callable[[], Check | Iterator[Check]]) -> Iterator[Check]:
    """Yield what ``look`` finds, as it is found; where it cannot look, that is a fail."""
    try:
        found = look()
        if isinstance(found, Check):
            yield found
        else:
            yield from found
    except WincliError as error:
        yield Check(name, "fail", error.what, error.do or "")
    except Exception as error:  # whatever a broken machine raises is an answer, and other checks go on
        text = (str(error).splitlines() or [""])[0]
        yield Check(
            name, "fail", f"{type(error).__name__}: {text}", "mend it, or report what wincli doctor --json prints"
        )
