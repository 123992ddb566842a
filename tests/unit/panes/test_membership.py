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


CONTENTS = st.one_of(ranges(), lives())


@given(CONTENTS)
def test_rows_sizes_and_edges_of_each_membership(drawn: tuple[Membership, list[range], int]) -> None:
    contents, _, rows = drawn
    panes = plain(contents)
    assert sizes(contents).tolist() == [len(pane) for pane in panes]
    assert np.flatnonzero(shown(contents, rows)).tolist() == sorted({row for pane in panes for row in pane})
    first, last = edge_rows(contents)
    assert first.tolist() == [pane[0] if pane else -1 for pane in panes]
    assert last.tolist() == [pane[-1] if pane else -1 for pane in panes]
    assert plain(memberships_of(contents)) == panes


@given(CONTENTS, st.data())
def test_panes_are_cut_into_batches_and_gathered(
    drawn: tuple[Membership, list[range], int], data: st.DataObject
) -> None:
    contents = drawn[0]
    panes = plain(contents)
    cuts = list(batches(contents, data.draw(st.integers(1, 9))))
    assert [p for first, stop in cuts for p in range(first, stop)] == list(range(len(panes)))
    for first, stop in cuts:
        rows, bounds = gathered(contents, first, stop)
        assert [rows[a:b].tolist() for a, b in pairwise(bounds)] == panes[first:stop]
        assert plain(part(contents, first, stop)) == panes[first:stop]


@given(CONTENTS, st.data())
def test_some_panes_are_taken(drawn: tuple[Membership, list[range], int], data: st.DataObject) -> None:
    contents = drawn[0]
    panes = plain(contents)
    flags = data.draw(st.lists(st.booleans(), min_size=len(panes), max_size=len(panes)))
    picks = np.flatnonzero(flags)
    taken = take(contents, picks)
    assert plain(taken) == [panes[p] for p in picks]
    assert len(taken) == len(picks)


@given(CONTENTS)
def test_lots_are_what_a_pane_shows_and_the_one_before_did_not(drawn: tuple[Membership, list[range], int]) -> None:
    contents, sequences, _ = drawn
    panes = plain(contents)
    came, went = plain(entered_rows(contents)), plain(left_rows(contents))
    for sequence in sequences:
        before: list[int] = []
        for p in sequence:
            assert came[p] == [row for row in panes[p] if row not in before]
            assert went[p] == [row for row in before if row not in panes[p]]
            before = panes[p]


@given(CONTENTS)
def test_lives_that_do_not_fall_are_ranges(drawn: tuple[Membership, list[range], int]) -> None:
    found = memberships_of(drawn[0])
    panes, again = plain(found), plain(as_ranges(found))
    near = contiguous(found)
    assert isinstance(drawn[0], Memberships) or near.all()
    for s, (first, stop) in enumerate(pairwise(found.first_pane)):
        if near[s]:
            assert again[first:stop] == panes[first:stop]


@given(CONTENTS, st.data())
def test_groups_take_panes_apart(drawn: tuple[Membership, list[range], int], data: st.DataObject) -> None:
    contents, _, rows = drawn
    codes = ints(data.draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows)))
    found = grouped(contents, codes, False)
    got = sorted(zip(found.pane.tolist(), found.group.tolist(), plain(found.membership), strict=True))
    parts = [
        (p, g, [row for row in pane if codes[row] == g]) for p, pane in enumerate(plain(contents)) for g in range(3)
    ]
    assert got == [part for part in parts if part[2]]


@given(CONTENTS, st.data())
def test_touched_groups_are_those_that_change(drawn: tuple[Membership, list[range], int], data: st.DataObject) -> None:
    contents, sequences, rows = drawn
    codes = ints(data.draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows)))
    found = grouped(contents, codes, True)
    got = sorted(zip(found.pane.tolist(), found.group.tolist(), plain(found.membership), strict=True))
    panes, wanted = plain(contents), []
    for sequence in sequences:
        before: list[list[int]] = [[], [], []]
        for p in sequence:
            now = [[row for row in panes[p] if codes[row] == g] for g in range(3)]
            wanted += [(p, g, now[g]) for g in range(3) if now[g] != before[g]]
            before = now
    assert got == wanted


@given(st.lists(st.integers(0, 4), max_size=6), st.data())
def test_groups_of_panes_that_share_no_row(counts: list[int], data: st.DataObject) -> None:
    bounds = np.cumsum([0, *counts])
    codes = ints(data.draw(st.lists(st.integers(0, 2), min_size=int(bounds[-1]), max_size=int(bounds[-1]))))
    contents = Ranges(bounds[:-1], bounds[1:], bounds[:-1], True)
    found = grouped(contents, codes, False)
    got = list(zip(found.pane.tolist(), found.group.tolist(), plain(found.membership), strict=True))
    parts = [
        (p, g, [i for i in range(a, b) if codes[i] == g]) for p, (a, b) in enumerate(pairwise(bounds)) for g in range(3)
    ]
    assert got == [part for part in parts if part[2]]
