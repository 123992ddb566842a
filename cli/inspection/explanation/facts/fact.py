"""One thing that is known of a window, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["opened", "closed", "near", "late", "other"]
"""What a fact says: which row opened the window; what brought it out; what came close; what came late; all else."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known of a window.

    ``kind``: what it says.
    ``text``: the same in words.
    ``row``: the arrival position of the row that it is about; None: about none.
    ``rule``: the word of the rule, as ``closed_by`` has it; None: there is none.
    ``numbers``: its numbers by name, as texts that are exact.
    """

    kind: Kind
    text: str
    row: int | None = None
    rule: str | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)
