"""`wincli why` has words for every tumbling policy, for two of a kind, and for several, whichever ends a window."""

from __future__ import annotations

from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import given

from support.event_logs import logs
from support.in_memory_engine import MemorySource
from support.strategies import examples
from wincli.cli.inspection.explanation.panes_of_key import ALL as EVERY_ROW
from wincli.cli.inspection.explanation.panes_of_key import only_panes, panes_of, read_key
from wincli.windowing.kinds.facts import Fact, KeyPane
from wincli.windowing.kinds.tumbling.policy import TumblingPolicy
from wincli.windowing.language.parser import POLICIES, parse_window
from wincli.windowing.planning.plan import make_plan

ONE_OF = {
    "count": "count(2)",
    "delta": "delta(t, 3)",
    "gap": "gap(t, 1)",
    "change": "change(u)",
    "punct": "punct(flag)",
    "when": "when(flag)",
    "while": "while(flag)",
    "from": "from(flag, until=a > 100)",
    "reaches": "reaches(sum(a), 300)",
    "time": "time(4)",
    "calendar": "calendar(day)",
    "cron": 'cron("* * * * *")',
}
MORE = ["punct()", "count(1 + a % 3)", "delta(t, a % 9)", "gap(t, 2 + a % 3)", "delta(t, previous(count(), 3))",
        "gap(t, previous(count(), 1))", "count(previous(count(), 1) + 1)", "reaches(range(t), 6)",
        "reaches(min(x), 0.5)", "reaches(count(x), 2)", "change(flag, x)"]  # fmt: skip
TWO = {
    "count": "count(3)", "delta": "delta(a, 1)", "gap": "gap(a, 1)", "change": "change(flag)", "punct": "punct(a > 99)",
    "reaches": "reaches(count(), 3)", "time": "time(3)",
}  # fmt: skip
OPENERS = ("when", "while", "from")
PAIRS = [f"{ONE_OF[name]} or {other}" for name, other in TWO.items()]
PAIRS += [f"{ONE_OF[one]} or {ONE_OF[two]}" for one, two in combinations(ONE_OF, 2) if not {one, two} <= {*OPENERS}]
ALL = [" or ".join(ONE_OF[name] for name in names) for names in
       (["gap", "delta", "count", "change"], ["reaches", "punct", "when", "time"])]  # fmt: skip


def test_each_policy_of_the_language_is_asked() -> None:
    assert set(ONE_OF) == set(POLICIES) - {"or"}


@pytest.mark.parametrize("window", [*ONE_OF.values(), *MORE, *PAIRS, *ALL])
@examples(12)
@given(table=logs())
def test_every_window_says_what_opened_it_and_what_closed_it(window: str, table: pa.Table) -> None:
    for pane, facts in explained(table, window):
        assert [fact.kind for fact in facts][:2] == ["opened", "closed"]
        assert facts[1].rule == pane.closed_by
        assert all(fact.text for fact in facts)
        if pane.cause_row is not None:
            assert facts[1].row == pane.pos(pane.cause_row)


def explained(table: pa.Table, window: str) -> list[tuple[KeyPane, tuple[Fact, ...]]]:
    """The panes of all rows, which have one key, each with its facts."""
    plan = only_panes(make_plan(parse_window(window), table.schema, [], ["t"]))
    found = panes_of(plan, read_key(plan, MemorySource([table], [[]]), "none", {}, EVERY_ROW))
    panes = [found.pane(at) for at in range(len(found.panes))]
    return [(pane, tuple(plan.kind.explain(pane))) for pane in panes]


class _New(TumblingPolicy):
    """A policy that a builder adds by the guide, before it has words."""

    __slots__ = ()
    why = "new"
    needs = None  # type: ignore[assignment]


def test_a_policy_without_words_is_named_by_its_close_reason() -> None:
    pane, _ = explained(pa.table({"t": [1, 2]}), "count(1)")[0]
    assert _New(None).explain(pane, 1).text == "the row at 2 ended it (new)"
