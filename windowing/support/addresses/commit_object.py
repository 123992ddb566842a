"""The one object of a result in a store whose replacement is the commit: its manifest, or that there is none yet.

Whoever replaces this object says which version it replaces. A *fence* is a replacement that changes no more than the
version: runs that have read the version before can no longer commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

FENCE = "fence"
"""The key of a fence in an object; it is no part of the content that a checksum is of."""
LONGEST_BEGUN = 400
"""Bytes that an object has at most where there is no result yet; a manifest has more."""
_BEGUN = "begun"


def begun(token: str) -> bytes:
    """Return the object for an output without a result, of a run whose staging has the id ``token``."""
    return _text({_BEGUN: token, "note": "wincli has begun to write here, and there is no result yet"})


def is_begun(content: Mapping[str, Any]) -> bool:
    """Whether an object says that there is no result yet."""
    return _BEGUN in content and "parts" not in content


def with_fence(content: Mapping[str, Any], token: str) -> bytes:
    """Return the object with another fence; ``token``: an id that is used only once."""
    return _text({**content, FENCE: token})


def _text(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"
