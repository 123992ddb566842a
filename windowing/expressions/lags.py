"""``lag(x[, n])``: the value of x in the key's n-th row before (section 11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ..errors import ConfigError
from .nodes import Node, transform
from .syntax import Expression, expression_of

_MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Lag:
    """One ``lag``.

    ``name``: the column that stands for it, its canonical text, such as ``lag(price, 1)``.
    ``argument``: what is taken, an expression that may itself hold generated columns of lags before it in the list.
    ``n``: how many rows before, at least 1.
    """

    name: str
    argument: Expression
    n: int


def split_lags(expression: Expression) -> tuple[Expression, tuple[Lag, ...]]:
    """Return an expression over generated columns instead of its lags, and these, without repeats, inner ones first.

    Raises `SpecError` where a lag has no argument, or a number of rows that is no literal from 1 to 1,000,000.
    """
    found: dict[str, Lag] = {}

    def change(node: Node) -> Node | None:
        if node.kind != "call" or node.value[0] != "lag":
            return None
        lag = _lag(expression, replace(node, operands=tuple(transform(each, change) for each in node.operands)))
        found.setdefault(lag.name, lag)
        return Node("column", (lag.name,), (), node.span)

    root = transform(expression.root, change)
    return expression_of(root, expression.source), tuple(found.values())


def check_no_lag(expression: Expression, label: str) -> None:
    """Raise `ConfigError` for an expression over results that has a lag; ``label``: where it stands."""
    if expression.uses_lag:
        raise ConfigError(f"{label}: lag() is about rows in order, and a result has no rows before", "leave it out")


def _lag(expression: Expression, node: Node) -> Lag:
    if len(node.operands) not in {1, 2}:
        raise expression.error(
            "lag takes a value and the number of rows", node.span, "write it like lag(price) or lag(price, 2)"
        )
    digits = "1"
    if len(node.operands) == 2:
        count = node.operands[1]
        digits = count.value[0] if count.kind == "number" else ""
        if not digits.isdecimal() or not 1 <= int(digits[:9]) <= _MOST or len(digits) > 9:
            raise expression.error(f"the rows of a lag are a whole number from 1 to {_MOST:,}", count.span)
    argument = expression_of(node.operands[0], expression.source)
    return Lag(f"lag({argument}, {int(digits)})", argument, int(digits))
