"""Sums of floats over panes of any form: for each pane the float nearest to the true sum (semantics section 9)."""

from __future__ import annotations

import numpy as np

from ...panes.membership import Membership, Memberships, batches, part, take
from ..folds.exact_sums import nearest_sums, whole_sums
from ..folds.fold_states import SUM
from ..folds.folds import fold, one_nan
from ..folds.inputs import Ranked, is_disjoint
from ..folds.live_trees import live_sums
from ..folds.values import frozen, halves
from ..kernels.loops import Floats


def float_sums(values: Floats, membership: Membership) -> Floats:
    """Return the float nearest to the true sum of each pane, 0.0 for an empty one.

    NaN where a pane holds a NaN, or both infinities; infinite where it holds one infinity, or where its sum exceeds the
    largest float. ``membership``: panes over ``values``.
    """
    return sums_and_residuals(values, membership)[0]


def sums_and_residuals(values: Floats, membership: Membership) -> tuple[Floats, Floats]:
    """Return `float_sums`, and the residual of each (true sum less float), as `exact_sums.nearest_of` defines it."""
    if is_disjoint(membership):
        nearest, residuals = nearest_sums(values, membership.lo, membership.hi)
        return one_nan(nearest), residuals
    nearest, residuals = sums_of_shared(*halves(values), membership)
    picks = np.flatnonzero(np.isnan(residuals))
    if len(picks) and not _may_overflow(values):
        picks = picks[np.isfinite(nearest[picks])]
    if len(picks):
        nearest[picks] = _whole(values, take(membership, picks))
    return one_nan(nearest), residuals


def sums_of_shared(high: Floats, low: Floats, membership: Membership) -> tuple[Floats, Floats]:
    """Return what `fold` returns for `SUM`, of panes that share entries."""
    if isinstance(membership, Memberships):
        return live_sums(high, low, membership)
    return fold(SUM, high, low, Ranked(membership))


def _may_overflow(values: Floats) -> bool:
    """Whether an intermediate sum of finite values might exceed the largest float."""
    finite = np.abs(values[np.isfinite(values)])
    return bool(finite.max(initial=0.0) > np.finfo(np.float64).max / max(1, len(finite)))


def _whole(values: Floats, membership: Membership) -> Floats:
    """Sums in limbs, for panes whose two floats do not prove the nearest float; in batches of rows."""
    sums = [np.empty(0)]
    for run in batches(membership):
        panes = part(membership, *run)
        entries = values if panes.row is None else frozen(values[panes.row])
        sums.append(whole_sums(entries, frozen(panes.lo), frozen(panes.hi)))
    return np.concatenate(sums)
