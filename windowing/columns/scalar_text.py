"""Scalars of Arrow as texts, also those that have no value in Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain_text(value: Any) -> str:
    """Return a scalar of Arrow as text; bytes as hexadecimal digits."""
    try:
        found = value.as_py()
    except (ValueError, OverflowError, pa.ArrowException):  # nanoseconds without pandas, years beyond 9999
        return str(value)
    return found.hex() if isinstance(found, bytes) else str(found)
