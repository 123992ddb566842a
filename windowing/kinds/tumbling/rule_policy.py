"""Policies that are only rules: `any_of.AnyOfPolicy` makes their windows, also where one stands alone."""

from __future__ import annotations

from typing import ClassVar

from ...rows.marks import Marks
from ...rows.panes import Panes
from ...rows.sequence import Sequences
from ..context import WindowContext
from .policy import TumblingPolicy


class RulePolicy(TumblingPolicy):
    """A policy without a way of its own to find windows."""

    __slots__ = ()

    opens: ClassVar[bool] = False
    """Whether the policy says at which rows windows may begin."""

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:
        """Not asked: the rules of a spec find its windows together."""
        raise NotImplementedError
