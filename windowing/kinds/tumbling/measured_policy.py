"""Tumbling policies that compare one attribute by an amount: ``delta`` and ``gap``."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from ...language.spec import Delta, Gap
from ..contract import Explain
from ..measured import check_measured
from .policy import TumblingPolicy


class MeasuredPolicy(TumblingPolicy):
    """A policy under which a window ends before a row that rises by more than an amount.

    ``value``: as in the spec.
    """

    __slots__ = ()

    value: Delta | Gap
    ends_before: ClassVar[bool] = True

    @property
    def attributes(self) -> tuple[str, ...]:
        """The column that is compared."""
        return (self.value.attribute,)

    @property
    def measured(self) -> tuple[str, ...]:
        """The column that is compared."""
        return (self.value.attribute,)

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        """Raise `ConfigError` where an attribute cannot have this type."""
        check_measured(self.value, name, dtype, explain)
