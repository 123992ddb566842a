"""Conditions of windows: columns or expressions that must be boolean, in tumbling and sliding windows."""

from __future__ import annotations

import pyarrow as pa

from ..errors import ConfigError
from ..language.conditions import Operand


def check_condition(word: str, operand: Operand, dtype: pa.DataType) -> None:
    """Raise `ConfigError` where an operand of the policy called ``word`` is no condition."""
    if pa.types.is_boolean(dtype):
        return
    if isinstance(operand, str):
        raise ConfigError(f"{word}({operand}) needs a boolean column, and {operand!r} is {dtype}", "use another column")
    raise ConfigError(f"{word} needs a condition, and {operand} is {dtype}", "compare it with something")
