"""Operators of the user's own: what no aggregate can say (``--operator module:Class``).

    class Rises(Operator):  # in moves.py
        output = {"before": float, "now": float}

        def trigger(self, rows, pane):
            for before, now in zip(rows, rows[1:]):
                if now["price"] > before["price"]:
                    yield {"before": before["price"], "now": now["price"]}

An operator is told what its window does, one call at a time, and each call may give rows to write. In which order the
calls come is told in `windowing.emit.operator_calls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from .errors import ConfigError
from .support.user_modules import import_own

Row: TypeAlias = Mapping[str, Any]
Given: TypeAlias = Iterable[Row] | None

_TYPES: dict[type, pa.DataType] = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


@dataclass(frozen=True, slots=True)
class PaneInfo:
    """What a result says of a pane, as Python values.

    ``window``: its number, from 0 for each key. ``start``, ``end``: ``window_start`` and ``window_end``; None where the
    result has null. ``closed_by``: why it came out. ``timing`` and ``index``: of event-time panes, else None.
    """

    window: int
    start: Any
    end: Any
    closed_by: str
    timing: str | None = None
    index: int | None = None


class Operator:
    """Base of all operators. Each key has one, made with ``Class()``; without keys there is one.

    ``output``: name and type of each column that it writes, the type as ``int``, ``float``, ``str`` or ``bool``, as a
    word like ``"timestamp[us]"``, or as a ``pyarrow.DataType``. ``key``: the values of the key columns, empty without
    keys; it is set after the operator was made and before the first call.

    Every method may return rows, or yield them: mappings from names of ``output`` to values, None for no row. A column
    that is left out is null. The rows that a method gets hold all columns of the input, they cannot be changed, and a
    row is one and the same object in every call.
    """

    output: ClassVar[Mapping[str, Any]] = {}
    key: Row

    def insert(self, row: Row) -> Given:  # noqa: ARG002 - for others to override
        """Take a row that comes into the window."""
        return None

    def evict(self, rows: Sequence[Row]) -> Given:  # noqa: ARG002
        """Let go of rows that are no longer in the window, the oldest first; each was inserted before."""
        return None

    def trigger(self, rows: Sequence[Row], pane: PaneInfo) -> Given:  # noqa: ARG002
        """Look at the rows of a pane, the oldest first. What this gives is the pane in the result."""
        return None


def load(name: str) -> type[Operator]:
    """Import ``module:Class``. Raises `ConfigError` where that fails, or is no operator that says what it writes."""
    module_name, _, class_name = name.partition(":")
    if not module_name or not class_name:
        raise ConfigError(f"--operator {name!r} is no class", "say MODULE:CLASS")
    try:
        module = import_own(module_name)
    except Exception as error:  # the module's own code runs here and can raise anything
        raise ConfigError(
            f"--operator {name}: cannot import module {module_name!r}: {reason_of(error)}",
            "it is looked for in the working folder and on PYTHONPATH",
        ) from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise ConfigError(f"--operator {name}: module {module_name!r} has no class {class_name!r}", "say MODULE:CLASS")
    if not issubclass(found, Operator):
        raise ConfigError(f"--operator {name}: {class_name} is no operator", "derive it from wincli.Operator")
    output_fields(found)
    return found


def output_fields(operator: type[Operator]) -> list[pa.Field]:
    """Return the columns that an operator writes. Raises `ConfigError` where ``output`` does not say."""
    name = operator.__name__
    if not isinstance(operator.output, Mapping) or not operator.output:
        raise ConfigError(f"operator {name} does not say what it writes", 'say output = {"NAME": "TYPE", ...}')
    return [_field(name, column, told) for column, told in operator.output.items()]


def reason_of(error: Exception) -> str:
    """Return what an exception says, in one line."""
    words = str(error).splitlines()
    return f"{type(error).__name__}: {words[0]}" if words else type(error).__name__


def _field(operator: str, column: Any, told: Any) -> pa.Field:
    if not isinstance(column, str):
        raise ConfigError(f"operator {operator} writes a column {column!r}, and names are texts")
    if isinstance(told, pa.DataType):
        return pa.field(column, told)
    if isinstance(told, type) and told in _TYPES:
        return pa.field(column, _TYPES[told])
    try:
        return pa.field(column, pa.type_for_alias(told))
    except (ValueError, TypeError, AttributeError):
        what = f"operator {operator}: column {column!r} is of type {told!r}, which is none"
        raise ConfigError(what, 'say "int64", "float64", "string", "timestamp[us]", ... or a pyarrow type') from None
