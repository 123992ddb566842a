"""Conditions and amounts over new columns that use ``lag``: they are read as if its expression stood there.

A kind of window computes its operands with ``lag`` itself, so an operand may not be a column that something else
computes of rows in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from ..expressions.nodes import Node, transform
from ..expressions.syntax import Expression, column_expression, expression_of, parse_expression
from ..language.calls import Policy
from ..language.conditions.operands import Operand
from ..language.options import Lets
from ..language.spec import Tumbling, WindowSpec


def with_lets(spec: WindowSpec, lets: Lets) -> WindowSpec:
    """Return a tumbling window whose operands have the expressions of new columns with ``lag`` in place of these."""
    late: dict[str, Expression] = {}
    for name, expression in lets:
        if expression.uses_lag or late.keys() & set(expression.columns):
            late[name] = _expanded(expression, late)
    if not late or not isinstance(spec, Tumbling):
        return spec
    return replace(spec, policy=_changed(spec.policy, lambda operand: _operand(operand, late)))


def _operand(operand: Operand, late: Mapping[str, Expression]) -> Operand:
    columns = (operand,) if isinstance(operand, str) else operand.columns
    if not late.keys() & set(columns):
        return operand
    return _expanded(column_expression(operand) if isinstance(operand, str) else operand, late)


def _expanded(expression: Expression, late: Mapping[str, Expression]) -> Expression:
    def change(node: Node) -> Node | None:
        return late[node.value[0]].root if node.kind == "column" and node.value[0] in late else None

    root = transform(expression.root, change)
    return parse_expression(str(expression_of(root, expression.source)))  # its own text, so that spans are places in it


def _changed(policy: Any, change: Callable[[Operand], Operand]) -> Any:
    """Return a policy, or several joined ones, with other operands."""
    new = {each.name: _changed_value(str(each.type), getattr(policy, each.name), change) for each in fields(policy)}
    return replace(policy, **new)


def _changed_value(kind: str, value: Any, change: Callable[[Operand], Operand]) -> Any:
    if isinstance(value, tuple):
        return tuple(_changed_value(kind, each, change) for each in value)
    if isinstance(value, Policy):
        return _changed(value, change)
    return change(value) if "Operand" in kind and value is not None else value
