"""Ranges, lives, lots and groups against the plainest thing there is: for each pane, the list of its rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.emit.aggregate_rows import grouped
from wincli.windowing.rows.membership import (
    Membership,
    Memberships,
    Ranges,
    as_ranges,
    batches,
    contiguous,
    edge_rows,
    entered_rows,
    gathered,
    left_rows,
    memberships_of,
    part,
    shown,
    sizes,
    take,
)

Panes = list[list[int]]


def ints(values: object) -> np.ndarray:
    return np.array(values, np.int64)


def plain(contents: Membership) -> Panes:
    """The rows of each pane, written down."""
    if isinstance(contents, Ranges):
        spans = [range(a, b) for a, b in zip(contents.lo.tolist(), contents.hi.tolist(), strict=True)]
        return [[i if contents.row is None else int(contents.row[i]) for i in span] for span in spans]
    lives = list(zip(contents.row.tolist(), contents.enter.tolist(), contents.leave.tolist(), strict=True))
    return [[row for row, enter, leave in lives if enter <= p < leave] for p in range(len(contents))]


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Ranges, list[range], int]:
    """Panes whose bounds never fall, of several sequences; the panes of each sequence; how many entries there are."""
    lo, hi, base, sequences, start = [], [], [], [], 0
    for _ in range(draw(st.integers(0, 4))):
        size, count = draw(st.integers(1, 8)), draw(st.integers(0, 6))
        places = st.lists(st.integers(start, start + size), min_size=count, max_size=count)
        a, b = sorted(draw(places)), sorted(draw(places))
        b = [max(x, y) for x, y in zip(a, b, strict=True)]
        sequences.append(range(len(lo), len(lo) + count))
        lo, hi, base = lo + a, hi + b, base + [start] * count
        start += size
    row = draw(st.none() | st.permutations(range(start)))
    return Ranges(ints(lo), ints(hi), ints(base), False, None if row is None else ints(row)), sequences, start


@st.composite
def lives(draw: st.DrawFn) -> tuple[Memberships, list[range], int]:
    """Entries that come and go anywhere; now and then two of one row, one after the other."""
    row, enter, leave, first_entry, first_pane, count = [], [], [], [0], [0], 0
    for _ in range(draw(st.integers(0, 4))):
        panes = draw(st.integers(1, 7))
        for _ in range(draw(st.integers(0, 7))):
            edges = sorted(draw(st.lists(st.integers(0, panes), min_size=2, max_size=4, unique=True)))
            runs = [(a, b) for a, b in [edges[:2], edges[2:]] if a < b] if len(edges) == 4 else [tuple(edges[:2])]
            for a, b in runs:
                if a < b:
                    row.append(count)
                    enter.append(first_pane[-1] + a)
                    leave.append(first_pane[-1] + b)
            count += 1
        first_entry.append(len(row))
        first_pane.append(first_pane[-1] + panes)
    found = Memberships(*map(ints, (row, enter, leave, first_entry, first_pane)))
    return found, [range(a, b) for a, b in pairwise(first_pane)], count


@st.composite
def apart(draw: st.DrawFn) -> tuple[Ranges, list[range], int]:
    """Panes that share no row."""
    bounds = np.cumsum([0, *draw(st.lists(st.integers(0, 4), max_size=6))])
    panes = [range(p, p + 1) for p in range(len(bounds) - 1)]
    return Ranges(bounds[:-1], bounds[1:], bounds[:-1], True), panes, int(bounds[-1])


Drawn = tuple[Membership, list[range], int]
CONTENTS = st.one_of(ranges(), lives(), apart())


@given(CONTENTS, st.data())
def test_each_form_has_the_rows_that_are_written_down(drawn: Drawn, data: st.DataObject) -> None:
    """Counted, at the edges, in the other form, cut into batches, and of some panes."""
    contents, _, rows = drawn
    panes = plain(contents)
    assert sizes(contents).tolist() == [len(pane) for pane in panes]
    assert np.flatnonzero(shown(contents, rows)).tolist() == sorted({row for pane in panes for row in pane})
    first, last = edge_rows(contents)
    assert first.tolist() == [pane[0] if pane else -1 for pane in panes]
    assert last.tolist() == [pane[-1] if pane else -1 for pane in panes]
    lives = memberships_of(contents)
    assert plain(lives) == panes
    near, again = contiguous(lives), plain(as_ranges(lives))
    assert isinstance(contents, Memberships) or near.all()
    for sequence, (low, high) in enumerate(pairwise(lives.first_pane)):
        assert not near[sequence] or again[low:high] == panes[low:high]
    cuts = list(batches(contents, data.draw(st.integers(1, 9))))
    assert [p for low, high in cuts for p in range(low, high)] == list(range(len(panes)))
    for low, high in cuts:
        found, bounds = gathered(contents, low, high)
        assert [found[a:b].tolist() for a, b in pairwise(bounds)] == panes[low:high]
        assert plain(part(contents, low, high)) == panes[low:high]
    flags = data.draw(st.lists(st.booleans(), min_size=len(panes), max_size=len(panes)))
    taken = take(contents, np.flatnonzero(flags))
    assert plain(taken) == [pane for pane, flag in zip(panes, flags, strict=True) if flag]
    assert len(taken) == sum(flags)


@given(CONTENTS)
def test_lots_are_what_a_pane_shows_and_the_one_before_did_not(drawn: Drawn) -> None:
    contents, sequences, _ = drawn
    panes = plain(contents)
    came, went = plain(entered_rows(contents)), plain(left_rows(contents))
    for sequence in sequences:
        before: list[int] = []
        for p in sequence:
            assert came[p] == [row for row in panes[p] if row not in before]
            assert went[p] == [row for row in before if row not in panes[p]]
            before = panes[p]


@given(CONTENTS, st.data())
def test_groups_take_panes_apart_all_of_them_or_those_that_change(drawn: Drawn, data: st.DataObject) -> None:
    contents, sequences, rows = drawn
    codes = ints(data.draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows)))
    parts = [[[row for row in pane if codes[row] == group] for group in range(3)] for pane in plain(contents)]
    there = [(p, group, own) for p, groups in enumerate(parts) for group, own in enumerate(groups) if own]
    assert groups_of(contents, codes, False) == there
    if isinstance(contents, Ranges) and contents.disjoint:
        return  # no such window shows changes
    changed = []
    for sequence in sequences:
        for p in sequence:
            before = parts[p - 1] if p > sequence.start else [[], [], []]
            changed += [(p, group, parts[p][group]) for group in range(3) if parts[p][group] != before[group]]
    assert groups_of(contents, codes, True) == changed


def groups_of(contents: Membership, codes: np.ndarray, only_changed: bool) -> list[tuple[int, int, list[int]]]:
    pane, group, membership = grouped(contents, codes, only_changed)
    return sorted(zip(pane.tolist(), group.tolist(), plain(membership), strict=True))
