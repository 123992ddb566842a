"""Operators: classes of the user that compute what no aggregate can (``--operator module:Class``).

    class Rises(Operator):  # in moves.py
        output = {"before": float, "now": float}

        def trigger(self, rows, pane):
            for before, now in zip(rows, rows[1:]):
                if now["price"] > before["price"]:
                    yield {"before": before["price"], "now": now["price"]}

An operator has one method for each event of its window, and each call may return rows to write. The module
`windowing.emit.operator_calls` defines the order of the calls.
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
    """The columns that describe a pane in the result, as Python values.

    ``window``: the number of the window, from 0 for each key.
    ``start``: ``window_start``; None where the result has null.
    ``end``: ``window_end``; None where the result has null.
    ``closed_by``: the close reason.
    ``timing``: ``on_time`` or ``late`` for event-time panes, else None.
    ``index``: the number of the output of an event-time pane, from 0; else None.
    """

    window: int
    start: Any
    end: Any
    closed_by: str
    timing: str | None = None
    index: int | None = None


class Operator:
    """Base class of all operators. ``Class()`` makes one instance for each key; without keys there is one instance.

    ``output``: name and type of each column that the operator writes; the type is ``int``, ``float``, ``str`` or
        ``bool``, a word like ``"timestamp[us]"``, or a ``pyarrow.DataType``.
    ``key``: the values of the key columns, empty without keys; set after the constructor and before the first call.

    Every method may return or yield rows, which are mappings from names of ``output`` to values; None means no row.
    Missing columns become null. The rows that a method receives hold all columns of the input and are read-only, and
    the same row is the same object in every call.
    """

    output: ClassVar[Mapping[str, Any]] = {}
    key: Row

    def insert(self, row: Row) -> Given:  # noqa: ARG002 - for others to override
        """Process a row that enters the window."""
        return None

    def evict(self, rows: Sequence[Row]) -> Given:  # noqa: ARG002
        """Process rows that leave the window, the oldest first; `insert` has received each of them before."""
        return None

    def trigger(self, rows: Sequence[Row], pane: PaneInfo) -> Given:  # noqa: ARG002
        """Process the rows of a pane, the oldest first. The returned rows are the pane in the result."""
        return None


def load(name: str) -> type[Operator]:
    """Import ``module:Class``. Raises `ConfigError` where the import fails, or for a class that is no operator."""
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
    """Return the columns that an operator writes. Raises `ConfigError` where ``output`` is missing or wrong."""
    name = operator.__name__
    if not isinstance(operator.output, Mapping) or not operator.output:
        raise ConfigError(f"operator {name} does not say what it writes", 'say output = {"NAME": "TYPE", ...}')
    return [_field(name, column, dtype) for column, dtype in operator.output.items()]


def reason_of(error: Exception) -> str:
    """Return type and first line of an exception."""
    words = str(error).splitlines()
    return f"{type(error).__name__}: {words[0]}" if words else type(error).__name__


def _field(operator: str, column: Any, dtype: Any) -> pa.Field:
    """Return one column of ``output`` as a field. Raises `ConfigError` for a name or type that is none."""
    if not isinstance(column, str):
        raise ConfigError(f"operator {operator} writes a column {column!r}, and names are texts")
    if isinstance(dtype, pa.DataType):
        return pa.field(column, dtype)
    if isinstance(dtype, type) and dtype in _TYPES:
        return pa.field(column, _TYPES[dtype])
    try:
        return pa.field(column, pa.type_for_alias(dtype))
    except (ValueError, TypeError, AttributeError):
        what = f"operator {operator}: column {column!r} is of type {dtype!r}, which is none"
        raise ConfigError(what, 'say "int64", "float64", "string", "timestamp[us]", ... or a pyarrow type') from None
