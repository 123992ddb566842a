"""The policies of tumbling windows in words: their names, their close reasons and the columns that they compare."""

from __future__ import annotations

from typing import TypeAlias

from .....windowing.language.calls import Policy
from .....windowing.language.policies import POLICIES
from .....windowing.language.row_policies import Changing, Delta, Gap

Distance: TypeAlias = Delta | Gap | Changing
"""A policy that compares how far values of a column are apart."""


def name_of(policy: Policy) -> str:
    """Return the name of a policy, also where its amount is one that rows say."""
    return policy.word if isinstance(policy, Changing) else type(policy).__name__.lower()


def reason_of(policy: Policy) -> str:
    """Return the close reason of a policy."""
    return POLICIES[name_of(policy)].reason


def attribute_of(policy: Distance) -> str:
    """Return the column that a policy compares."""
    assert policy.attribute is not None  # it is None for ``count`` alone
    return policy.attribute
