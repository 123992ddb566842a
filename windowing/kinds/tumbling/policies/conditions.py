"""``when(E)``, ``while(E)`` and ``from(E, until=U)``: windows that begin at rows for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....columns.arrays import truth
from ....language.conditions import Operand, operand_column
from ....language.spec import From, When, While
from ....rows.sequence import Sequences
from ..condition_policy import ConditionPolicy
from ..rule_policy import RulePolicy
from ..rules.gather import Gathered


@dataclass(frozen=True, slots=True)
class OpenerPolicy(ConditionPolicy, RulePolicy):
    """``when(E)`` and ``while(E)``.

    ``value``: as in the spec.
    """

    value: When | While

    ends_before: ClassVar[bool] = True
    opens: ClassVar[bool] = True

    @property
    def why(self) -> str:  # type: ignore[override]
        """The close reason: the name of the policy."""
        return "when" if isinstance(self.value, When) else "while"

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The condition."""
        return (self.value.condition,)

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say which rows may begin a window, and which end one: the same under ``when``, the others under ``while``."""
        rules.opens = truth(sequences.rows, operand_column(self.value.condition))
        rules.ends_before(rule, rules.opens if isinstance(self.value, When) else ~rules.opens)


@dataclass(frozen=True, slots=True)
class FromPolicy(ConditionPolicy, RulePolicy):
    """``from(E, until=U)``.

    ``value``: as in the spec.
    """

    value: From

    why: ClassVar[str] = "until"
    opens: ClassVar[bool] = True

    @property
    def word(self) -> str:
        """The name of the policy: its windows end by the other condition."""
        return "from"

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The two conditions."""
        return (self.value.condition, self.value.until)

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say which rows may begin a window, and which end the one that they are in."""
        rules.opens = truth(sequences.rows, operand_column(self.value.condition))
        rules.ends_with(rule, truth(sequences.rows, operand_column(self.value.until)))
