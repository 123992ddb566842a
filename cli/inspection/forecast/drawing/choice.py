"""What of an input a plan draws, from the options of the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....windowing.errors import ConfigError

_MOST_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Choice:
    """What of the input is drawn.

    ``only``: pairs of a key column and a value, as text; several of one column are several values.
    ``rows``: how many rows; 0: nothing is drawn.
    """

    only: tuple[tuple[str, str], ...]
    rows: int

    @staticmethod
    def of(only: Sequence[str], rows: int) -> Choice:
        """Read ``COL=VALUE`` texts. Raises `ConfigError` for another form, or a number of rows that is none."""
        pairs = [text.partition("=") for text in only]
        for text, (name, sign, _) in zip(only, pairs, strict=True):
            if not name or not sign:
                raise ConfigError(f"--only {text!r} is not COL=VALUE", "for example --only user=u7")
        if not 0 <= rows <= _MOST_ROWS:
            raise ConfigError(f"--rows {rows} is not from 0 to {_MOST_ROWS:,}", "0 draws nothing")
        return Choice(tuple((name, value) for name, _, value in pairs), rows)
