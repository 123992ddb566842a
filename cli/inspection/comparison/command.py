"""``wincli diff`` and ``wincli verify``: from their options to stdout and an exit code."""

from __future__ import annotations

from ...console.messages import DATA, OK
from ...console.streams import json_text, say
from .compare import DiffRequest, compare
from .text import diff_json, diff_text
from .verification import verification_json, verification_text, verify

DIFFERENT = 1
"""The exit code for results that differ, as that of ``diff`` and ``cmp``."""


def print_diff(request: DiffRequest, as_json: bool) -> int:
    """Print how two results differ; return the exit code. Raises what `compare` raises."""
    found = compare(request)
    say(json_text(diff_json(found), 2) if as_json else diff_text(found))
    return DIFFERENT if found.differs else OK


def print_verification(path: str, as_json: bool) -> int:
    """Print what is damaged of a result or a state; return the exit code. Raises what `verify` raises."""
    found = verify(path)
    say(json_text(verification_json(found), 2) if as_json else verification_text(found))
    return DATA if found.damage else OK
