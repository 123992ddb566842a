"""Sums of floats over panes of any form: of each the float nearest to the true sum (semantics section 9)."""

from __future__ import annotations

import numpy as np

from ...panes.membership import Membership, batches, part, take
from ..folds.exact_sums import nearest_sums, whole_sums
from ..folds.fold_states import SUM
from ..folds.folds import fold, one_nan
from ..folds.inputs import Ranked, is_disjoint
from ..folds.values import frozen, halves
from ..kernels.loops import Floats


def float_sums(values: Floats, membership: Membership, ranked: Ranked) -> Floats:
    """Return the float nearest to the true sum of each pane, 0.0 for an empty one.

    NaN where a pane holds one, or both infinities; inf where it holds one of these, or its sum is beyond all floats.
    ``contents``: over ``values``; ``ranked``: the same panes, nulls included.
    """
    return sums_and_lacks(values, membership, ranked)[0]


def sums_and_lacks(values: Floats, membership: Membership, ranked: Ranked) -> tuple[Floats, Floats]:
    """Return `float_sums`, and what each lacks of the true sum, as `exact_sums.nearest_of` has it."""
    if is_disjoint(membership):
        nearest, lacks = nearest_sums(values, membership.lo, membership.hi)
        return one_nan(nearest), lacks
    nearest, lacks = fold(SUM, *halves(values), ranked)
    picks = np.flatnonzero(np.isnan(lacks))
    if len(picks) and not _may_overflow(values):
        picks = picks[np.isfinite(nearest[picks])]
    if len(picks):
        nearest[picks] = _whole(values, take(membership, picks))
    return one_nan(nearest), lacks


def _may_overflow(values: Floats) -> bool:
    """Whether a sum of some of the finite values may be beyond all floats on the way."""
    finite = np.abs(values[np.isfinite(values)])
    return bool(finite.max(initial=0.0) > np.finfo(np.float64).max / max(1, len(finite)))


def _whole(values: Floats, membership: Membership) -> Floats:
    """Sums of panes whose floats do not say for sure what they are, some rows at a time."""
    sums = [np.empty(0)]
    for run in batches(membership):
        panes = part(membership, *run)
        entries = values if panes.row is None else frozen(values[panes.row])
        sums.append(whole_sums(entries, frozen(panes.lo), frozen(panes.hi)))
    return np.concatenate(sums)
