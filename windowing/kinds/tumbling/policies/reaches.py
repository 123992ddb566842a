"""``reaches(AGG(x), v)``: until an aggregate over the window's rows so far is at least a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from ....columns.arrays import is_measurable
from ....errors import ConfigError
from ....language.conditions import operand_column
from ....language.spec import Reaches
from ....rows.sequence import Sequences
from ...contract import Explain
from ..rule_policy import RulePolicy
from ..rules.gather import Gathered, reach_rule


@dataclass(frozen=True, slots=True)
class ReachesPolicy(RulePolicy):
    """``reaches(AGG(x), v)``.

    ``value``: as in the spec.
    """

    value: Reaches

    why: ClassVar[str] = "reaches"

    @property
    def attributes(self) -> tuple[str, ...]:
        """What is aggregated."""
        return () if self.value.argument is None else (operand_column(self.value.argument),)

    @property
    def required(self) -> tuple[str, ...]:
        """None: aggregates skip nulls."""
        return ()

    @property
    def measured(self) -> tuple[str, ...]:
        """What is added or compared: it must fit 64 bit."""
        return () if self.value.function == "count" else self.attributes

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        """Raise `ConfigError` for values that cannot be added or compared with a number."""
        if self.value.function == "count" or name not in self.attributes:
            return
        is_number = not pa.types.is_temporal(dtype) or pa.types.is_duration(dtype)
        if is_measurable(dtype) and (is_number or self.value.function == "range"):
            return
        because = explain(name)
        raise ConfigError(
            f"{self.value} needs a number, and {name!r} is {dtype}" + (f": {because}" if because else ""),
            "name another column, or cast it",
        )

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say what is aggregated, and how large it must be."""
        value = self.value
        rules.sums.append(reach_rule(rule, value.function, value.argument, value.amount, sequences))
