"""CAST and TRY_CAST over whole columns. A row whose value has no place in the type fails, or is null."""

from __future__ import annotations

import pyarrow as pa

from ..steps import Failures


def cast(failures: Failures, values: pa.Array, kind: pa.DataType, is_try: bool) -> pa.Array:
    """Return values in another type."""
    return values.cast(kind)
