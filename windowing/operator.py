"""Operators: classes of the user that compute what no aggregate can (``--operator module:Class``).

    class Rises(Operator):  # in moves.py
        output = {"before": float, "now": float}

        def trigger(self, rows, pane):
            for before, now in zip(rows, rows[1:]):
                if now["price"] > before["price"]:
                    yield {"before": before["price"], "now": now["price"]}

An operator has one method for each event of its window, and each call may return rows to write. The module
`windowing.emit.operator_calls` defines the order of the calls. With a state, what an operator knows is saved at the
end of each run and restored in the next (decision 041).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from .errors import ConfigError
from .support.modules import import_own
from .support.plain_values import PLAIN, NotPlainError, to_text

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
    ``version``: of what `checkpoint` returns; a new one says that what earlier versions saved must be migrated.
    ``key``: the values of the key columns, empty without keys; set after the constructor and before the first call.
    ``saved_version``: the version of the class that saved what `restore` gets; None where nothing was saved.

    Every method but `checkpoint`, `restore` and `evict_partition` may return or yield rows, which are mappings from
    names of ``output`` to values; None means no row. Missing columns become null. The rows that a method receives hold
    all columns of the input and are read-only, and the same row is the same object in every call of a run.
    """

    output: ClassVar[Mapping[str, Any]] = {}
    version: ClassVar[int] = 1
    key: Row
    saved_version: int | None = None
    _asks_eviction: bool = False

    def insert(self, row: Row) -> Given:  # noqa: ARG002 - for others to override
        """Process a row that enters the window."""
        return None

    def evict(self, rows: Sequence[Row]) -> Given:  # noqa: ARG002
        """Process rows that leave the window, the oldest first; `insert` has received each of them before."""
        return None

    def trigger(self, rows: Sequence[Row], pane: PaneInfo) -> Given:  # noqa: ARG002
        """Process the rows of a pane, the oldest first. The returned rows are the pane in the result."""
        return None

    def initial_full(self) -> Given:
        """Process that a sliding window is full for the first time (semantics section 3)."""
        return None

    def partition_evicted(self, rows: Sequence[Row]) -> Given:  # noqa: ARG002
        """Process the eviction of the key, with the rows that its window holds: no call comes after this one."""
        return None

    def finish(self) -> Given:
        """Process the end of the data, after all panes, where it flushes windows. The rows are closed by ``end``."""
        return None

    def evict_partition(self) -> None:
        """Ask for the eviction of the key: its window is empty, and its operator goes, once this row or pane is done.

        The next row of the key begins a new window with a new operator; window numbers go on.
        """
        self._asks_eviction = True

    def checkpoint(self) -> dict[str, Any]:
        """Return what `restore` of a later run needs, as plain values: by default all attributes of the instance."""
        return {name: value for name, value in attributes_of(self).items() if name not in _OWN}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `checkpoint` returned; called after the constructor. By default attributes are set again."""
        for name, value in saved.items():
            setattr(self, name, value)


_OWN = frozenset({"key", "saved_version", "_asks_eviction"})
"""Attributes of an instance that are not its own: they are set anew in each run."""


def attributes_of(operator: Operator) -> dict[str, Any]:
    """Return the attributes of an instance, in the order in which they were set; those in slots come last."""
    declared = [kind.__dict__.get("__slots__", ()) for kind in type(operator).__mro__]
    slots = [name for names in declared for name in ((names,) if isinstance(names, str) else names)]
    own = {name: getattr(operator, name) for name in slots if name != "__dict__" and hasattr(operator, name)}
    return {**vars(operator), **own}


def check_saves(kind: type[Operator]) -> None:
    """Raise `ConfigError` where an operator cannot be saved: an attribute that is no plain value, or a bad version."""
    name = kind.__name__
    if type(kind.version) is not int:
        raise ConfigError(f"operator {name} has version {kind.version!r}, which is no int", "say version = 2")
    if kind.checkpoint is not Operator.checkpoint:
        return
    for attribute, value in attributes_of(made(kind)).items():
        if attribute in _OWN:
            continue
        try:
            to_text(value)
        except NotPlainError as error:
            what = f"operator {name} keeps {attribute}{error.place}, a {error.kind}, which a state cannot hold"
            raise ConfigError(what, f"define checkpoint and restore, or keep {PLAIN}") from None


def made(kind: type[Operator]) -> Operator:
    """Make an operator. Raises `ConfigError` where its constructor fails."""
    try:
        return kind()
    except Exception as error:  # a user's class can raise anything
        what = f"{kind.__name__}() failed: {reason_of(error)}"
        raise ConfigError(what, "an operator is made without arguments") from error


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
