"""Ranges of units over a model of a state, drawn as a line of days: which run, which are left, how far it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_records import FakeRecord
from wincli.cli.console.messages import INTERRUPTED, Stopped
from wincli.cli.run.range_run import BackfillOutcome, run_backfill
from wincli.cli.run.steps import StateChain, UnitRange, UnitStep
from wincli.cli.run.unit_paths import UnitInput
from wincli.conf.ranges import Unit, unit_at
from wincli.windowing.errors import ConfigError, DataError, InputError
from wincli.windowing.ports import InputFile

DAYS = 12


@dataclass
class Model:
    """Days whose input is a text; a day's output is its state before and its input, its state the end of that.

    ``memory``: how many letters a state holds: a correction dies out after as many days of new letters.
    """

    memory: int = 2
    keep: int = 99
    inputs: dict[int, str] = field(default_factory=dict)
    done: dict[int, FakeRecord] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    dies_at: int | None = None
    after_commit: bool = False
    has_state: bool = True
    forgotten: set[str] = field(default_factory=set)
    failing: dict[int, BaseException] = field(default_factory=dict)

    def find(self, unit: Unit) -> UnitInput | None:
        text = self.inputs.get(unit.ordinal)
        return None if text is None else UnitInput((f"in/{unit.label}",), (), (self.file(unit, text),))

    def file(self, unit: Unit, text: str) -> InputFile:
        return InputFile(f"in/{unit.label}/{text}", len(text), None)

    @property
    def chain(self) -> StateChain | None:
        return StateChain(self.has_data, self.same, lambda: self.forgotten) if self.has_state else None

    def note(self, text: str, **_: Any) -> None:
        self.notes.append(text)

    def run(self, step: UnitStep) -> Iterator[FakeRecord]:
        unit, previous = step.unit, step.previous
        if unit.ordinal in self.failing:
            raise self.failing[unit.ordinal]
        self.ran.append(unit.ordinal)
        dies = self.dies_at == len(self.ran)
        if dies and not self.after_commit:
            raise KeyboardInterrupt
        before = {record.label: record for record in self.done.values()}
        began = before[previous].state if previous else ""
        seen = began + self.inputs[unit.ordinal]
        state = seen[-self.memory :]
        record = FakeRecord(unit.label, unit.ordinal, step.files, previous, began, state, seen)
        self.done[unit.ordinal] = record
        if dies:
            raise KeyboardInterrupt
        yield record

    def same(self, label: str | None, record: FakeRecord) -> bool:
        state = next((each.state for each in self.done.values() if each.label == label), "")
        return record.began == state

    def has_data(self, label: str) -> bool:
        return label in [record.label for _, record in sorted(self.done.items())][-self.keep :]

    def backfill(self, first: int = 0, stop: int = DAYS, redo: bool = False) -> BackfillOutcome:
        self.notes.clear()
        self.ran.clear()
        records = [record for _, record in sorted(self.done.items())]
        units = [unit_at(n, "day") for n in range(first, stop)]
        steps = UnitRange(units, "day", records, self.find, chain=self.chain, redo=redo)
        return run_backfill(steps, self.run, self.note)

    def outputs(self) -> dict[int, str]:
        return {ordinal: record.output for ordinal, record in sorted(self.done.items())}

    def wanted(self) -> dict[int, str]:
        """The outputs of a run over all inputs from nothing."""
        fresh = Model(self.memory, inputs=self.inputs, has_state=self.has_state)
        fresh.backfill()
        return fresh.outputs()


def days(text: str, **more: Any) -> Model:
    """Days from a line of letters: one letter is a day's input, a point a day without any."""
    return Model(inputs={n: letter for n, letter in enumerate(text) if letter != "."}, **more)


def ordinals(units: Sequence[Unit]) -> list[int]:
    return [unit.ordinal for unit in units]


# What a range does to days that were done before
#
#   memory 2:   a b c d e f      day 1 becomes x:   a x c d e f
#                 |___ab  bc                          ax xc cd       from day 3 on all is as it was


@dataclass
class Case:
    """Days that were run; what arrives then; the range that is run over it; and what is to come of that.

    ``ran``: the days that run, all of which are days that had been done but for those in ``new``. ``reached``: the last
    of them, where it is a correction. ``unaffected``: the days behind it. ``skipped``: days of the range that are done.
    """

    line: str
    arrives: dict[int, str] = field(default_factory=dict)
    range: tuple[int, int] = (0, DAYS)
    ran: list[int] = field(default_factory=list)
    reached: int | None = None
    unaffected: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    memory: int = 2
    redo: bool = False
    done: tuple[int, int] = (0, DAYS)
    has_state: bool = True


X = {1: "x"}
CASES = {
    "a second time": Case("ab.d", range=(0, 4), skipped=[0, 1, 3]),
    "a change before the range": Case("abcde", X, (3, 5), skipped=[3, 4]),
    "a change, and the days that it reaches": Case(
        "abcdef", X, ran=[1, 2, 3], reached=3, unaffected=[4, 5], skipped=[0, 4, 5]
    ),
    "a change that reaches past the range": Case("abcdef", X, (1, 2), ran=[1, 2, 3], reached=3, unaffected=[4, 5]),
    "a redo of what has not changed": Case(
        "abcdef", {}, (1, 3), ran=[1, 2], reached=2, unaffected=[3, 4, 5], redo=True
    ),
    "a change that reaches the last day": Case(
        "abcdef", {0: "x"}, (0, 1), ran=[0, 1, 2, 3, 4, 5], reached=5, memory=99
    ),
    "a day that comes late, and the days after it": Case(
        "ab.def", {2: "c"}, (2, 3), ran=[2, 3, 4], reached=4, unaffected=[5], new=[2]
    ),
    "days before the first that come late": Case(
        "..cdef", {0: "a", 1: "b"}, (0, 2), ran=[0, 1, 2, 3], reached=3, unaffected=[4, 5], new=[0, 1]
    ),
    "new days, which are no correction": Case("abcdef", {}, (3, 6), ran=[3, 4, 5], new=[3, 4, 5], done=(0, 3)),
    "two changes that each die out": Case(
        "abcdefghij", {1: "x", 7: "y"}, ran=[1, 2, 3, 7, 8, 9], reached=9, skipped=[0, 4, 5, 6]
    ),
    "a change without a state": Case(
        "abcdef", X, ran=[1], reached=1, unaffected=[2, 3, 4, 5], skipped=[0, 2, 3, 4, 5], has_state=False
    ),
    "a redo without a state": Case(
        "abcdef", {}, (2, 4), ran=[2, 3], reached=3, unaffected=[4, 5], redo=True, has_state=False
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_days_that_a_range_runs_and_leaves(name: str) -> None:
    case = CASES[name]
    model = days(case.line, memory=case.memory, has_state=case.has_state)
    model.backfill(*case.done)
    model.inputs |= case.arrives
    outcome = model.backfill(*case.range, redo=case.redo)
    assert model.ran == case.ran
    assert outcome.reached == (None if case.reached is None else unit_at(case.reached, "day"))
    assert ordinals(outcome.rerun) == [n for n in case.ran if n not in case.new]
    assert (ordinals(outcome.unaffected), ordinals(outcome.skipped)) == (case.unaffected, case.skipped)
    assert ordinals(outcome.gaps) == [n for n in range(*case.range) if n not in model.inputs]
    assert not case.ran or model.outputs() == model.wanted()


def test_why_a_day_is_run_again_is_noted() -> None:
    model = days("abcdef")
    model.backfill()
    model.inputs[1] = "x"
    model.backfill()
    assert model.notes == [
        "1970-01-02 is run again: its input is not what it was",
        "1970-01-03 is run again: the state before it is not the one that it began from",
        "1970-01-04 is run again: the state before it is not the one that it began from",
    ]
    model.backfill(1, 3, redo=True)
    assert model.notes == [f"1970-01-0{n} is run again: redo was requested" for n in (2, 3)]


# Units that were taken out of the state


def test_units_after_a_forgotten_one_are_run_again_also_where_its_input_is_gone_or_the_range_is_a_later_one() -> None:
    for is_gone, ranges in ((False, [(6, 7, [3, 4]), (0, DAYS, [2, 3, 4])]), (True, [(0, DAYS, [3, 4])])):
        model = days("abcdef")
        model.backfill()
        model.forgotten = {model.done.pop(2).label}
        if is_gone:
            del model.inputs[2]
        for first, stop, ran in ranges:
            model.backfill(first, stop)
            assert model.ran == ran
        assert model.outputs() == model.wanted()


# What cannot be


def test_a_day_that_has_to_be_run_again_from_a_state_that_is_not_kept_or_without_its_input_changes_nothing() -> None:
    model = days("abcdef", keep=2)
    model.backfill()
    before = model.outputs()
    with pytest.raises(ConfigError, match="1970-01-03 begins from the state of 1970-01-02, which is no longer kept"):
        model.backfill(2, 3, redo=True)
    del model.inputs[5]
    with pytest.raises(InputError, match=r"1970-01-06 has to be run again \(redo was requested\), and its input is go"):
        model.backfill(5, 6, redo=True)
    assert model.outputs() == before
    model.inputs[5] = "f"
    model.backfill(5, 6, redo=True)
    assert model.ran == [5]


@pytest.mark.parametrize("error", [DataError("the sum of x overflows", "use a float"), Stopped(INTERRUPTED)])
def test_a_unit_that_fails_ends_the_range_and_is_named_and_so_are_those_before_it(error: BaseException) -> None:
    model = days("abcd")
    model.failing[2] = error
    with pytest.raises(type(error)) as caught:
        model.backfill()
    assert model.outputs() == {0: "a", 1: "ab"}
    kept = "1970-01-01..1970-01-02"
    if isinstance(caught.value, Stopped):
        assert (caught.value.kept, model.notes) == (kept, [])
    else:
        assert str(caught.value) == "1970-01-03: the sum of x overflows; use a float"
        assert model.notes == [f"done before that, and kept: {kept}"]


# Laws

LETTERS = st.dictionaries(st.integers(0, DAYS - 1), st.text("ab", max_size=2), max_size=DAYS)
NIGHTS = st.lists(st.tuples(LETTERS, st.integers(0, DAYS), st.integers(0, DAYS), st.booleans()), max_size=4)


@given(LETTERS, NIGHTS, st.integers(0, 3), st.booleans())
def test_whatever_arrives_whenever_the_end_is_that_of_one_run_over_all(
    first: dict[int, str], nights: list[tuple[dict[int, str], int, int, bool]], memory: int, has_state: bool
) -> None:
    model = Model(memory + 1, inputs=dict(first), has_state=has_state)
    model.backfill()
    for arrived, start, many, redo in nights:
        model.inputs |= arrived
        model.backfill(start, min(start + many, DAYS), redo=redo)
    model.backfill()
    assert model.outputs() == model.wanted()
    assert model.backfill().done == ()


@given(LETTERS, LETTERS, st.integers(1, 3), st.integers(1, 6), st.booleans(), st.integers(0, DAYS))
def test_killed_anywhere_and_run_again_over_any_range(
    first: dict[int, str], arrived: dict[int, str], memory: int, dies_at: int, after_commit: bool, start: int
) -> None:
    """A correction that was cut short is completed by whatever is run next, though that looks at later days alone."""
    model = Model(memory, inputs=dict(first))
    model.backfill()
    model.inputs |= arrived
    model.dies_at, model.after_commit = dies_at, after_commit
    try:
        model.backfill()
    except KeyboardInterrupt:
        reached = model.ran[-1]
        model.dies_at = None
        model.backfill(max(start, reached))
        for ordinal, record in sorted(model.done.items())[1:]:
            before = max(n for n in model.done if n < ordinal)
            assert record.began == model.done[before].state
        model.backfill()
    assert model.outputs() == model.wanted()


@given(LETTERS, LETTERS, st.integers(1, 3), st.integers(0, DAYS - 1))
def test_no_day_is_run_that_need_not_be(
    first: dict[int, str], arrived: dict[int, str], memory: int, start: int
) -> None:
    model = Model(memory, inputs=dict(first))
    model.backfill()
    before = dict(model.done)
    model.inputs |= arrived
    model.backfill(start, start + 1)
    for ordinal in model.ran:
        is_new = ordinal not in before or before[ordinal].inputs != model.done[ordinal].inputs
        assert (is_new and ordinal == start) or before[ordinal].began != model.done[ordinal].began
    assert all(model.done[ordinal] is before[ordinal] for ordinal in before.keys() - set(model.ran))
