"""The keys that a user names for a report: ``--only user=u7 --only user=u8``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.errors import ConfigError
from ....windowing.support.suggest import nearest
from ..results.key_values import value_of

Choice = Mapping[str, Sequence[pa.Scalar]]
"""Column of the key to the values of which one must be there."""


def parse_choice(texts: Sequence[str], keys: Sequence[str], schema: pa.Schema) -> Choice:
    """Parse texts ``COLUMN=VALUE``; values of one column are alternatives, and all columns must fit.

    Raises `ConfigError` for a text of another form, a column that is no key, and a value that is not of its type.
    """
    found: dict[str, list[pa.Scalar]] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise ConfigError(f"--only {text}: this names no value", "say it as NAME=VALUE, such as user=u7")
        if name not in keys:
            raise ConfigError(f"--only {text}: {name} is no column of the key", _keys(name, keys))
        found.setdefault(name, []).append(value_of(value, schema.field(name).type, f"--only {name}"))
    return found


def is_chosen(keys: pa.Table, choice: Choice) -> np.ndarray:
    """Whether each key fits, bool of shape (n,)."""
    found = np.ones(keys.num_rows, np.bool_)
    for name, values in choice.items():
        among = pa.array([value.as_py() for value in values], keys[name].type)
        found &= pc.is_in(keys[name], value_set=among).to_numpy()
    return found


def _keys(name: str, keys: Sequence[str]) -> str:
    if not keys:
        return "the windows of this result have no key"
    near = nearest(name, keys)
    return f"did you mean {near}?" if near else f"the key is {', '.join(keys)}"
