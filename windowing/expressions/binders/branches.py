"""The types of what has several values to choose from: CASE, COALESCE, NULLIF, IN and BETWEEN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as t

from ..nodes import Node
from ..operations import logic
from ..steps import Program, as_array
from ..types import BOOL, type_text
from .operators import compare, condition, meeting_type, mixes_text
from .scope import Scope, Value

Bind = Callable[[Scope, Node], Value]


def case(scope: Scope, node: Node, bind: Bind) -> Value:
    """Bind CASE. Conditions and values are programs of their own, so that a row is failed only by what it takes."""
    rest = list(node.operands)
    first = rest.pop(0) if node.value[0] else None
    default = rest.pop() if node.value[1] else None
    conditions = [_when(scope.branch(), each, first, bind) for each in rest[::2]]
    nodes = [*([] if default is None else [default]), *rest[1::2]]  # as in DuckDB, types meet from ELSE on
    values = same_type(scope, nodes, bind, "the branches of CASE")
    programs = tuple(program for _, program in values)
    last = None if default is None else programs[0]
    options = (tuple(conditions), programs[-len(conditions) :], last)
    return _of_branches(scope, node, values[0][0], logic.case, options)


def coalesce(scope: Scope, node: Node, bind: Bind) -> Value:
    """Bind COALESCE."""
    values = same_type(scope, list(node.operands), bind, "the values of COALESCE")
    options = (tuple(program for _, program in values),)
    return _of_branches(scope, node, values[0][0], logic.coalesce, options)


def nullif(scope: Scope, node: Node, left: Value, right: Value) -> Value:
    """Bind NULLIF: the left value, or null where it equals the right one."""
    equal = compare(scope, node, "=", left, right)
    if t.is_null(left.type):
        return left
    return scope.emit(node, left.type, logic.null_where, [left, equal], ())


def extreme(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    """Bind GREATEST or LEAST."""
    name = node.value[0]
    kind = _branch_type(scope, values, f"the values of {name.upper()}")
    if t.is_null(kind):
        return scope.nothing(node, kind, values)
    if t.is_nested(kind) or t.is_interval(kind):
        raise scope.error(f"{type_text(kind)} has no order", node)
    same = [scope.cast(value, kind) for value in values]
    return scope.emit(node, kind, logic.greatest if name == "greatest" else logic.least, same)


def is_in(scope: Scope, node: Node, values: Sequence[Value]) -> Value:
    """Bind IN: over literals one look-up in a set, else comparisons."""
    kind = values[0].type
    literal = values[0].is_literal
    for value in values[1:]:
        both = [Value(0, kind, values[0].node, values[0].constant if literal else None, literal), value]
        found = meeting_type(*both)
        if found is None:
            raise scope.error(
                f"{type_text(kind)} and {value.shown} cannot be compared", value.node, "convert one with CAST"
            )
        literal = literal and value.is_literal and found == kind
        kind = found
    same = [scope.cast(value, kind) for value in values]
    if all(each.constant is not None for each in same[1:]) and not t.is_null(kind) and not t.is_floating(kind):
        known = [each.constant for each in same[1:] if each.constant is not None]
        valid = pa.concat_arrays([pa.array([], kind), *(as_array(each, 1) for each in known if each.is_valid)])
        found_in = scope.emit(node, BOOL, logic.is_in, [same[0]], (valid, len(valid) < len(known)), "plain")
    else:
        found_in = scope.emit(node, BOOL, logic.either, [compare(scope, node, "=", same[0], each) for each in same[1:]])
    return _negated(scope, node, found_in)


def between(scope: Scope, node: Node, value: Value, low: Value, high: Value) -> Value:
    """Bind BETWEEN, both bounds included."""
    bounds = [compare(scope, node, ">=", value, low), compare(scope, node, "<=", value, high)]
    return _negated(scope, node, scope.emit(node, BOOL, logic.both, bounds))


def same_type(scope: Scope, nodes: Sequence[Node], bind: Bind, what: str) -> list[tuple[pa.DataType, Program]]:
    """Bind each node to a program of its own, all of one type. Raises `SpecError` where there is none."""
    scopes = [scope.branch() for _ in nodes]
    values = [bind(each, node) for each, node in zip(scopes, nodes, strict=True)]
    kind = _branch_type(scope, values, what)
    stored = pa.int32() if t.is_null(kind) else kind
    return [(kind, each.program(each.cast(value, stored))) for each, value in zip(scopes, values, strict=True)]


def _of_branches(scope: Scope, node: Node, kind: pa.DataType, compute: Callable[..., Any], options: Any) -> Value:
    """The value of programs that run for some rows; where all are null it has the type of null, as in DuckDB."""
    found = scope.emit(node, pa.int32() if t.is_null(kind) else kind, compute, [], options, "lazy")
    return scope.nothing(node, kind, [found]) if t.is_null(kind) else found


def _branch_type(scope: Scope, values: Sequence[Value], what: str) -> pa.DataType:
    kept = values[0]
    kind = kept.type
    for value in values[1:]:
        found = meeting_type(kept, value)
        if found is None or mixes_text(kept, value):
            what = f"{what} are {type_text(kind)} and {value.shown}"
            raise scope.error(what, value.node, "convert one of them with CAST")
        literal = kept.is_literal and value.is_literal
        is_wider = t.is_integer(found) and literal and found == value.type
        kept = (
            value
            if is_wider or t.is_null(kind)
            else Value(0, found, kept.node, kept.constant, literal and found == kind)
        )
        kind = found
    return kind


def _when(scope: Scope, node: Node, first: Node | None, bind: Bind) -> Program:
    value = bind(scope, node)
    if first is None:
        return scope.program(condition(scope, value))
    return scope.program(compare(scope, node, "=", bind(scope, first), value))


def _negated(scope: Scope, node: Node, value: Value) -> Value:
    return scope.emit(node, BOOL, logic.opposite, [value], (), "each") if node.value[0] else value
