"""``when(E)``, ``while(E)`` and ``from(E, until=U)``: windows that begin at rows for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...columns.arrays import Mask, Measures, amounts_in, combined, is_amount, is_measurable, measures, truth
from ...errors import ConfigError
from ...language.conditions import Operand, Previous, Step, Value, operand_column, operands_of, steps_of
from ...language.spec import Changing, From, Gap, Reaches, When, While
from ...rows.sequence import Sequences, rises
from ...support.jit import kernel
from ..contract import Explain, check_measured
from ..rules.gather import Gathered, delta_rule, is_previous_number, reach_rule
from .policy import ConditionPolicy, RulePolicy


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
        return (self.value.condition, self.value.until)

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        rules.opens = truth(sequences.rows, operand_column(self.value.condition))
        rules.ends_with(rule, truth(sequences.rows, operand_column(self.value.until)))


# ``reaches(AGG(x), v)``: until an aggregate over the window's rows so far is at least a value.


@dataclass(frozen=True, slots=True)
class ReachesPolicy(RulePolicy):
    """``reaches(AGG(x), v)``.

    ``value``: as in the spec.
    """

    value: Reaches

    why: ClassVar[str] = "reaches"

    @property
    def attributes(self) -> tuple[str, ...]:
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
        value = self.value
        rules.sums.append(reach_rule(rule, value.function, value.argument, value.amount, sequences))


# ``delta(a, E)``, ``gap(a, E)`` and ``count(E)``: amounts that rows say (semantics section 13).


_MOST_ROWS = np.uint64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class ChangingPolicy(RulePolicy):
    """``delta(a, E)``, ``gap(a, E)`` or ``count(E)``.

    ``value``: as in the spec.
    """

    value: Changing

    @property
    def why(self) -> str:  # type: ignore[override]
        """The close reason: the name of the policy."""
        return self.value.word

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.measured, *self.amounts]))

    @property
    def measured(self) -> tuple[str, ...]:
        return () if self.value.attribute is None else (self.value.attribute,)

    @property
    def amounts(self) -> tuple[str, ...]:
        return (operand_column(self.value.amount),)

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        if name in self.measured:
            check_measured(Gap(name, 0), name, dtype, explain)  # type: ignore[arg-type]
        if name in self.amounts and not is_amount(dtype):
            raise ConfigError(f"{self.value} needs a number as amount, and {self.value.amount} is {dtype}", "cast it")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        amounts = combined(sequences.rows.column(self.amounts[0]))
        if self.value.attribute is None:
            rules.counts.append((rule, np.minimum(amounts_in(pa.int64(), amounts), _MOST_ROWS).astype(np.int64)))
            return
        attribute = combined(sequences.rows.column(self.value.attribute))
        values, amount = self._compared(attribute, amounts)
        if self.value.word == "delta":
            rules.deltas.append(delta_rule(rule, values, amount))
        elif rules.has_holes:
            rules.rises_from_last_row(rule, values, amount, sequences)
        else:
            wide = amount.astype(values.dtype) if values.dtype.kind == "f" else amount
            rules.ends_before(rule, _gap_flags(values, wide))

    def _compared(self, attribute: pa.Array, amounts: pa.Array) -> tuple[Measures, Any]:
        values = measures(attribute)
        return values, amounts_in(attribute.type, amounts)


@dataclass(frozen=True, slots=True)
class PreviousPolicy(ChangingPolicy):
    """A `ChangingPolicy` whose amount asks for the window before, with ``previous``."""

    @property
    def looks_at_window_before(self) -> bool:
        return True

    @property
    def leaves_holes(self) -> bool:
        """Whether each row of a window has an amount of its own, so that it may be rejected."""
        return self.value.word == "gap"

    @property
    def _steps(self) -> tuple[Step, ...]:
        assert not isinstance(self.value.amount, str)
        return steps_of(self.value.amount)

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.measured, *map(operand_column, self.value.operands)]))

    @property
    def required(self) -> tuple[str, ...]:
        values = [operand_column(step.operand) for step in self._steps if isinstance(step, Value)]
        return tuple(dict.fromkeys([*self.measured, *values]))

    @property
    def amounts(self) -> tuple[str, ...]:
        """None: no single row says whether an amount is negative."""
        return ()

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        ChangingPolicy.check_attribute(self, name, dtype, explain)  # super() knows no dataclass with slots
        for operand in self._numbers:
            if operand_column(operand) == name and not is_previous_number(dtype):
                raise ConfigError(f"{self.value} needs integers or floats, and {operand} is {dtype}", "cast it")

    @property
    def _numbers(self) -> list[Operand]:
        """What must be a number: all but what is counted."""
        is_counted = [isinstance(step, Previous) and step.function == "count" for step in self._steps]
        return [*operands_of(tuple(step for step, out in zip(self._steps, is_counted, strict=True) if not out))]

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        attribute, moves = self.value.attribute, self.value.word == "gap"
        rules.amount_of_window_before(rule, self._steps, attribute, moves, sequences, str(self.value))


def changing_policy(value: Changing) -> ChangingPolicy:
    """Return the policy of an amount that rows say, or rows and the window before."""
    return PreviousPolicy(value) if value.looks_at_window_before else ChangingPolicy(value)


@kernel
def _gap_flags(values: Measures, amount: Any) -> Mask:
    flags = np.zeros(len(values), np.bool_)
    for i in range(1, len(values)):
        flags[i] = rises(values[i], values[i - 1], amount[i - 1])
    return flags
