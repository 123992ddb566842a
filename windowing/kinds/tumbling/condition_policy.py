"""Policies that ask of each row whether a condition is true (semantics section 12)."""

from __future__ import annotations

from abc import abstractmethod

import pyarrow as pa

from ...language.conditions import Operand, operand_column
from ..conditions import check_condition
from ..contract import Explain
from .policy import TumblingPolicy


class ConditionPolicy(TumblingPolicy):
    """A policy over boolean columns or expressions, in which null is not true."""

    __slots__ = ()

    @property
    def word(self) -> str:
        """The name of the policy in the language."""
        return self.why

    @property
    @abstractmethod
    def operands(self) -> tuple[Operand, ...]:
        """The conditions."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of the conditions."""
        return tuple(dict.fromkeys(map(operand_column, self.operands)))

    @property
    def required(self) -> tuple[str, ...]:
        """None: null is not true."""
        return ()

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: ARG002
        """Raise `ConfigError` for a condition that is not boolean."""
        for operand in self.operands:
            if operand_column(operand) == name:
                check_condition(self.word, operand, dtype)
