"""Row patterns as a kind: a window is a match, the rows of a key that a pattern takes (semantics section 15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...clock.interval_grid import clock_values, now_as_measure
from ...clock.tick_grid import Grid, make_grid
from ...columns.arrays import Ints, Mask, combined, measures, spread, truth
from ...errors import DataError
from ...language.operands import operand_column
from ...language.patterns import ANY, MATCHED_AS, RowPattern
from ...language.tokens import rows as row_count
from ...rows.marks import Marks
from ...rows.membership import Ranges, ranges
from ...rows.panes import AT_END, BY_TICK, Panes, reason
from ...rows.sequence import Sequences, key_text
from ..context import NEVER, RowSteps, Signals, WindowContext
from ..contract import WindowKind
from ..facts import Fact, KeyPane, KeyPanes, exact_text
from ..key_lifetimes import Lifetimes
from ..needs import Explain, Needs, PaneTimes, check_condition
from . import passes, threads
from .automaton import Automaton, automaton_of, possible
from .found import ANY_ROW, BY_LIMIT, Matches, Rows
from .matched import TRUE, Readers, compiled, readers_of, says, see_row

_TOLD: Final = 12
"""As what a match takes a row is told of so many rows."""
_NO_CLOCK: Final = (np.empty(0, np.int64), np.int64(0), np.int64(0))


@dataclass(frozen=True, slots=True, eq=False)
class PatternKind(WindowKind):
    """A row pattern. ``automaton``: its places."""

    spec: RowPattern
    needs: Needs
    automaton: Automaton

    @property
    def is_contiguous(self) -> bool:
        """Whether the rows of a match are neighbours, and no row is in two matches."""
        return not self.automaton.has_waits and not self.spec.is_overlapping

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        for (symbol, condition), column in zip(self.spec.conditions, self.spec.columns, strict=True):
            if column == name:
                check_condition(symbol, condition, dtype)

    def check_types(self, schema: pa.Schema) -> None:
        compiled(self.spec, lambda name: schema.field(name).type)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        if self.spec.within is None:
            return PaneTimes()
        grid = make_grid(clock, self.spec.within, Fraction(0))
        return PaneTimes(instants=grid.type, grid=grid)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the matches in the order of their starts, which is that of their numbers."""
        found = self._found(sequences, self._rows(sequences, context))
        names = pa.array([*self.spec.symbols, ANY])
        entries, symbols = ranges(found.bounds[:-1], found.bounds[1:]), found.symbol
        if self.is_contiguous:
            symbols = np.zeros(len(sequences), np.int16)
            symbols[found.row] = found.symbol
            entries = ranges(found.row[entries.lo], found.row[entries.hi - 1] + 1)
        else:
            entries = replace(entries, row=found.row)
        codes = np.where(symbols == ANY_ROW, np.int16(len(names) - 1), symbols)
        matched = pa.DictionaryArray.from_arrays(pa.array(codes), names, safe=False)
        closed_by = np.select(
            [found.decided == BY_LIMIT, found.decided == AT_END],
            [np.int8(reason("within")), np.int8(reason("end"))],
            np.int8(reason("match")),
        )
        at = None if self.spec.within is None else self._grid(sequences).to_arrow(found.limit)
        number = np.arange(len(found.key)) - np.searchsorted(found.key, found.key)
        cause = np.where(found.decided == BY_LIMIT, BY_TICK, found.decided)
        return Panes(found.key, number, entries, cause, closed_by, at=at, matched=matched), signals.marks

    def _grid(self, sequences: Sequences) -> Grid:
        grid = self.times(sequences.rows.schema.field(sequences.order[0]).type, Fraction(0)).grid
        assert grid is not None
        return grid

    def _found(self, sequences: Sequences, rows: Rows, to_the_end: bool = True) -> Matches:
        """Return the matches; with ``to_the_end`` also those that the end of the data would bring out."""
        readers, overlapping = readers_of(self.spec, sequences), self.spec.is_overlapping
        if readers is None:
            return passes.find_matches(self.automaton, rows, overlapping)

        def name_of(row: int) -> str:
            return f"the row at arrival position {sequences.pos[row]}"

        return threads.find_matches(self.automaton, rows, readers, overlapping, name_of, to_the_end)

    def _rows(self, sequences: Sequences, context: WindowContext) -> Rows:
        """Return rows as the lanes take them."""
        return Rows(sequences.bounds, self._symbols(sequences), *self._clock(sequences, context))

    def _symbols(self, sequences: Sequences) -> npt.NDArray[np.uint64]:
        symbols = np.zeros(len(sequences), np.uint64)
        for bit, column in enumerate(self.spec.columns):
            if column is None:
                symbols |= np.uint64(1 << bit)
            else:
                symbols |= truth(sequences.rows, column).astype(np.uint64) << np.uint64(bit)
        return symbols

    def _clock(self, sequences: Sequences, context: WindowContext) -> tuple[Any, Any, Any]:
        """Return the instants of rows, the limit and the clock behind them; none and zeros without a limit."""
        if self.spec.within is None:
            return _NO_CLOCK
        grid, name = self._grid(sequences), sequences.order[0]
        values = clock_values(combined(sequences.rows.column(name)), name)
        clock = grid.instants(values)
        if not grid.exact:  # floats may be too far from one another
            grid.later(clock, self.spec.within)
        limit = grid.later(np.zeros(1, clock.dtype), self.spec.within)[0]
        return clock, limit, grid.instants(now_as_measure(values, context.clock))[0]

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        """Return that rows enter with the match that shows them, and leave after it: matches share no row here."""
        n, place = len(sequences), np.where(panes.cause == AT_END, sequences.bounds[panes.key + 1], panes.cause + 1)
        if panes.at is not None:  # a limit comes before the rows of its instant
            clock = measures(self._grid(sequences).to_arrow(self._clock(sequences, context)[0]))
            limits = measures(panes.at)
            for at in np.flatnonzero(panes.cause == BY_TICK).tolist():
                low, high = sequences.bounds[panes.key[at]], sequences.bounds[panes.key[at] + 1]
                place[at] = low + np.searchsorted(clock[low:high], limits[at])
        contents, never = panes.membership, np.full(n, NEVER)
        assert isinstance(contents, Ranges)
        entries, pane = spread(contents.lo, contents.hi - contents.lo), np.arange(len(panes))
        row = entries if contents.row is None else contents.row[entries]
        entering, leaving = never.copy(), never.copy()
        entering[row] = np.repeat(pane, contents.hi - contents.lo)
        leaving[row] = np.repeat(np.where(panes.cause == AT_END, NEVER, pane), contents.hi - contents.lo)
        return RowSteps(place, np.zeros(n, np.bool_), never, entering, leaving)

    # --- from run to run

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the possible rows from the first undecided start on, and of those between them the first of each run.

        Raises `DataError` for more than ``max_open_rows`` of a key from that start on.
        """
        rows = self._rows(sequences, context)
        undecided = self._found(sequences, rows, to_the_end=False).undecided
        open_rows, counts = rows.bounds[1:] - undecided, np.diff(rows.bounds)
        over, most = np.flatnonzero(open_rows > context.max_open_rows), f"{context.max_open_rows:,}"
        if len(over):
            key = int(over[0])
            what = (
                f"{self.spec}: {int(open_rows[key]):,} rows{key_text(sequences, key)} may still be in a match, from the"
            )
            what += f" one at arrival position {sequences.pos[undecided[key]]} on, and {most} are allowed"
            raise DataError(what, "give the pattern a limit, as in within 1h, or allow more with --max-open-rows")
        may_be_taken = possible(self.automaton, rows)
        before = np.append(False, may_be_taken[:-1])[: len(may_be_taken)]
        return (may_be_taken | before) & (np.arange(len(before)) >= np.repeat(undecided, counts))

    def settled_rows(self, sequences: Sequences, panes: Panes | None, retained: Mask) -> Mask:
        """Return the rows that no symbol takes: they keep apart the rows before and behind them."""
        return retained & ~possible(self.automaton, Rows(sequences.bounds, self._symbols(sequences), *_NO_CLOCK))

    # --- why a match is as it is

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        """Yield with which row it begins, what decided it, and as what it takes each row."""
        assert isinstance(pane.panes.membership, Ranges)
        assert pane.panes.matched is not None
        low, high = (int(edges[pane.at]) for edges in (pane.panes.membership.lo, pane.panes.membership.hi))
        symbols = pane.panes.matched[low:high].to_pylist()
        first, last = int(pane.rows[0]), int(pane.rows[-1])
        yield Fact("opened", f"it begins with {pane.name(first)}, as {symbols[0]}", pane.pos(first))
        yield self._decided(pane, last)
        taken = [f"{pane.name(row)} as {name}" for row, name in zip(pane.rows[:_TOLD].tolist(), symbols, strict=False)]
        if len(symbols) > _TOLD:
            taken.append(f"{row_count(len(symbols) - _TOLD)} more")
        yield Fact("other", f"it takes {', '.join(taken)}")
        if passed := last - first + 1 - len(symbols):
            yield Fact("other", f"{row_count(passed)} between them {'is' if passed == 1 else 'are'} passed over")

    def _decided(self, pane: KeyPane, last: int) -> Fact:
        rule, row = pane.closed_by, pane.cause_row
        if rule == "within":
            within = exact_text(self.spec.within or 0)
            text = (
                f"at {pane.head_text('_at')} the limit of {within} s passed that decides it, its own or that of a start"
            )
            return Fact("closed", f"{text} before it", None, rule, {"limit": within})
        if row is None:
            return Fact("closed", "the end of the data brought it out: rows to come might have changed it", None, rule)
        text = "which ends it: nothing is preferred to it"
        if row != last:
            text = "by which no match can go on that is preferred to it, or begins before it"
        return Fact("closed", f"{pane.name(row)} decided it, {text}", pane.pos(row), rule)

    def explain_rows(self, panes: KeyPanes, rows: Ints) -> Iterator[Fact]:
        """Yield in which match rows are, or how far a match comes that would begin with them."""
        sequences, found = panes.sequences, panes.panes.membership
        assert isinstance(found, Ranges)
        assert panes.panes.matched is not None
        taken, readers = self._rows(sequences, panes.context), readers_of(self.spec, sequences)
        first, last = (each if found.row is None else found.row[each] for each in (found.lo, found.hi - 1))
        for row in rows.tolist():
            in_match = np.flatnonzero(first == row if self.spec.is_overlapping else (first <= row) & (row <= last))
            if not len(in_match):
                yield self._no_match(panes, taken, readers, row)
                continue
            at = int(in_match[0])
            place, of = np.flatnonzero(panes.rows_of(at) == row), f"the match that begins with {panes.name(first[at])}"
            text = f"is passed over by {of}"
            if len(place):
                text = f"is in {of}, as {panes.panes.matched[int(found.lo[at] + place[0])]}"
            yield Fact("other", f"{panes.name(row)} {text}", panes.pos(row))

    def _no_match(self, panes: KeyPanes, rows: Rows, readers: Readers | None, start: int) -> Fact:
        stop, is_over, name = len(panes.sequences), False, panes.name(start)
        if self.spec.within is not None:
            limit = rows.clock[start] + rows.limit
            stop, is_over = int(np.searchsorted(rows.clock, limit)), bool(rows.now >= limit)
        found = attempt(self.automaton, rows, readers, start, stop)
        wanted = " or ".join("any row" if each == ANY_ROW else self.spec.symbols[each] for each in found.symbols)
        text = f"{name} begins no match: at the end of the data it still waits for {wanted}"
        if found.row == start:
            text = f"{name} begins no match: it is not {wanted}"
        elif not found.is_open:
            text = f"{name} begins no match: all ways end with {panes.name(found.row)}, which is not {wanted}"
        elif is_over:
            limit = exact_text(self.spec.within or 0)
            text = f"{name} begins no match: up to its limit of {limit} s it waits for {wanted}"
        return Fact("other", text, panes.pos(start), None, {"rows": str(found.row - start)})


def pattern_kind(spec: RowPattern) -> PatternKind:
    """Return a row pattern as a kind."""
    automaton = automaton_of(spec)
    needs = Needs(
        go_on=False,
        attributes=tuple(map(operand_column, spec.operands)),
        operands=spec.operands,
        clock=spec.within is not None,
        causes="rows" if spec.within is None else "both",
        partitioned=spec.partitioned,
        pane_columns={MATCHED_AS: pa.string()},
    )
    return PatternKind(spec, needs, automaton)


# A start without a match: how far it comes, and what would have had to come there.


class Attempt(NamedTuple):
    """The last row that the ways from a start meet.

    ``row``: the row that none of them takes; where some are open behind all rows, or at the limit, the row there.
    ``is_open``: whether some are.
    ``symbols``: the symbols of which one would have had to come there, by number, `ANY_ROW` among them, in the order of
        the pattern.
    """

    row: int
    is_open: bool
    symbols: list[int]


_Way = tuple[int, bytes]
"""A node, and the words that conditions read of the rows so far."""


def attempt(automaton: Automaton, rows: Rows, readers: Readers | None, start: int, stop: int) -> Attempt:
    """Follow all ways from a start that has no match, over the rows before ``stop``.

    ``stop``: the end of the rows of the key, or the first row behind the limit of the start. ``readers``: of conditions
    that read matched rows; None: there are none. Takes steps for each row and way.
    """
    words = 0 if readers is None else int(readers.offset[-1])
    ways: Iterable[_Way] = [(automaton.end, np.zeros(words, np.int64).tobytes())]
    for row in range(start, stop):
        taken = dict.fromkeys(each for way in ways for each in _behind(automaton, rows, readers, way, row))
        if not taken:
            return Attempt(row, False, _awaited(automaton, ways))
        ways = taken
    return Attempt(stop, True, _awaited(automaton, ways))


def _behind(automaton: Automaton, rows: Rows, readers: Readers | None, way: _Way, row: int) -> Iterator[_Way]:
    """Yield the ways behind a row of one that meets it."""
    for node in _next(automaton, way[0]):
        places = _places(automaton, node)
        met = [(place, _with_row(automaton, rows, readers, way, place, row)) for place in places]
        taken = [(place, words) for place, words in met if words is not None]
        if taken or node < automaton.places:
            yield from taken
        else:
            yield node, way[1]


def _next(automaton: Automaton, node: int) -> list[int]:
    """Return the places and waits that meet the row that comes."""
    if automaton.places <= node < automaton.end:
        return [node]
    return [each for each in automaton.behind(node) if each != automaton.end]


def _places(automaton: Automaton, node: int) -> list[int]:
    return [node] if node < automaton.places else automaton.behind(node)


def _with_row(
    automaton: Automaton, rows: Rows, readers: Readers | None, way: _Way, place: int, row: int
) -> bytes | None:
    """Return the words of a way with a row that it takes at a place; None: it does not take it."""
    symbol, words = int(automaton.symbol[place]), np.frombuffer(way[1], np.int64).copy()
    if symbol >= 0 and not int(rows.symbols[row]) >> symbol & 1:
        return None
    if readers is not None:
        see_row(readers, words, symbol, row)
        if symbol >= 0 and readers.program[symbol] >= 0 and says(readers, symbol, words, row) != TRUE:
            return None
    return words.tobytes()


def _awaited(automaton: Automaton, ways: Iterable[_Way]) -> list[int]:
    nodes = {node for way in ways for node in _next(automaton, way[0])}
    places = {place for node in nodes for place in _places(automaton, node)}
    return list(dict.fromkeys(int(automaton.symbol[place]) for place in sorted(places)))
