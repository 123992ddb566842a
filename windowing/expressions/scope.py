"""The steps of a program while it is made, and the values that they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.types as t

from ..errors import SpecError, did_you_mean, nearest
from .casts import cast, is_castable
from .logic import nulls
from .nodes import Node
from .steps import Failures, Program, Step, as_array, program_of
from .syntax import Expression
from .types import is_text, plain_type, type_text

_HIDDEN: Final = "="  # what the names of columns begin with that nobody has named


@dataclass(frozen=True, slots=True)
class Value:
    """What a node gives, while it is bound.

    ``place``: the step that gives it.
    ``type``: its type.
    ``node``: the node, for messages.
    ``constant``: its value, where it is the same for all rows.
    ``is_literal``: whether it was written as a number or a text, so that it takes the type of what it meets.
    """

    place: int
    type: pa.DataType
    node: Node
    constant: pa.Scalar | None = None
    is_literal: bool = False

    @property
    def is_null(self) -> bool:
        return self.constant is not None and not self.constant.is_valid

    @property
    def has_no_type(self) -> bool:
        """Whether it comes of a column without any value: null in all rows, and of any type that is wanted of it."""
        return t.is_null(self.type) and self.constant is None

    @property
    def shown(self) -> str:
        return type_text(self.type)


class Scope:
    """The steps of one program. Equal steps are one step.

    ``expression``: the expression that is bound.
    ``schema``: the columns that it may read.
    """

    def __init__(self, expression: Expression, schema: pa.Schema) -> None:
        self.expression = expression
        self.schema = schema
        self._steps: list[Step] = []
        self._places: dict[tuple[Any, ...], int] = {}

    def branch(self) -> Scope:
        """Return the scope of a program that runs only for some rows."""
        return Scope(self.expression, self.schema)

    def program(self, value: Value) -> Program:
        """Return the program that gives a value."""
        return program_of(self._steps, value.place)

    def error(self, what: str, node: Node, do: str | None = None) -> SpecError:
        """Return (not raise) an error about a node."""
        return self.expression.error(what, node.span, do)

    def column(self, node: Node) -> Value:
        """Return the value of a column. Raises `SpecError` where there is none of this name."""
        name = node.value[0]
        if self.schema.get_field_index(name) < 0:
            few = "is there twice" if name in self.schema.names else "is not there"
            names = [each for each in self.schema.names if not each.startswith(_HIDDEN)]
            is_quoted = self.expression.source[node.span.start : node.span.stop].startswith('"')
            may_be_text = is_quoted and nearest(name, names) is None
            do = f"a text stands in single quotes: '{name}'" if may_be_text else did_you_mean(name, names)
            raise self.error(f"the column {name!r} {few}", node, do)
        kind = plain_type(self.schema.field(name).type)
        return Value(self._add(Step(kind, "column", (), (name,))), kind, node)

    def constant(self, value: Any, kind: pa.DataType, node: Node, is_literal: bool = False) -> Value:
        """Return a value that is the same for all rows. ``value``: of Python, or a scalar of Arrow of this type."""
        scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, kind)
        return Value(self._add(Step(kind, "constant", (), (scalar,))), kind, node, scalar, is_literal)

    def emit(
        self,
        node: Node,
        kind: pa.DataType,
        compute: Callable[..., Any],
        operands: Sequence[Value],
        options: tuple[Any, ...] = (),
        form: Literal["plain", "each", "lazy"] = "plain",
    ) -> Value:
        """Return the value of a step; where all its operands are constants it is one, unless it fails."""
        if operands and all(each.constant is not None for each in operands):
            failures = Failures(1)
            found = compute(failures, *(as_array(each.constant, 1) for each in operands), *options)
            if failures.mask is None:
                return self.constant(found[0], kind, node)
        return Value(self._add(Step(kind, compute, tuple(each.place for each in operands), options, form)), kind, node)

    def nothing(self, node: Node, kind: pa.DataType, values: Sequence[Value]) -> Value:
        """Return a value that is null in all rows, where rows may fail by others."""
        return self.emit(node, kind, nulls, values, (kind,))

    def cast(self, value: Value, kind: pa.DataType) -> Value:
        """Return a value in another type, where a type rule asks for it. Raises `SpecError` for a text that is none."""
        if value.type == kind:
            return value
        if value.is_null or t.is_null(value.type):
            return self.constant(None, kind, value.node)
        if not is_castable(value.type, kind):
            raise self.error(f"{value.shown} cannot become {type_text(kind)}", value.node)
        found = self.emit(value.node, kind, cast, [value], (kind, False), "each")
        if value.is_literal and is_text(value.type) and found.constant is None:
            raise self.error(f"{value.node.value[0]!r} is no {type_text(kind)}", value.node)
        return replace(found, is_literal=False)

    def _add(self, step: Step) -> int:
        key = (step.compute, step.operands, str(step.type), tuple(map(_key, step.options)))
        if key not in self._places:
            self._places[key] = len(self._steps)
            self._steps.append(step)
        return self._places[key]


def _key(option: Any) -> Any:
    """What tells options apart: ``1``, ``1.0`` and ``True`` are equal in Python, and nanoseconds need pandas there."""
    if isinstance(option, Program | pa.Array) or (
        isinstance(option, tuple) and option and isinstance(option[0], Program)
    ):
        return id(option)
    if isinstance(option, pa.Scalar):
        return str(option.type), option.is_valid, repr(option.value if hasattr(option, "value") else option.as_py())
    return type(option).__name__, repr(option)
