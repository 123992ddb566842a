"""Published facts about row patterns, asked of the reference: so it is right where the product is compared with it."""

from __future__ import annotations

from typing import Any

import pytest

from references.matched_rows import condition, of_match, reads_matches
from references.matches import PatternJob
from support.pattern_cases import ANSWERED, Case, is_answer, nights, options
from support.pattern_texts import read_window


def job(case: Case) -> PatternJob:
    pattern = read_window(options(case, "--window")[0])
    texts = {name: str(text) for name, text in pattern.conditions}
    conditions = {name: condition(text, list(texts)) for name, text in texts.items()}
    key = [name for names in options(case, "--key") for name in names.split(",")]
    order = [name for name in options(case, "--order-by") if name != "arrival"]
    reads = frozenset(name for name, text in texts.items() if reads_matches(text))
    return PatternJob(pattern, conditions, reads, key, order)


def answers(case: Case) -> tuple[list[list[Any]], dict[str, int]]:
    """Rows of the selected columns, and the account of all nights."""
    asked = job(case)
    symbols = [name for name, _ in asked.pattern.conditions]
    rows = [dict(zip(case["cols"], row, strict=True)) for row in case["rows"]]
    at, places = 0, []
    for night in nights(case):
        places.append({pos: rows[pos] for pos in range(at, at + len(night))})
        at += len(night)
    found, account = [], dict[str, int]()
    aggregates = dict(text.split("=", 1) for text in options(case, "--agg"))
    for number, night in enumerate(asked.nights(places, (options(case, "--at-end") or ["flush"])[0])):
        account = night.account
        for pane in night.panes:
            taken = tuple(zip(pane.rows, pane.symbols, strict=True))
            ends = [rows[pos][asked.order[0]] if asked.order else pos for pos in (pane.rows[0], pane.rows[-1])]
            told = {
                **dict(zip(asked.key, pane.key, strict=True)), "_night": number, "window": pane.window,
                "window_start": ends[0], "window_end": ends[1], "closed_by": pane.closed_by,
                "_at": pane.at[0] if pane.at else None, "steps": len(taken),
                **dict.fromkeys(symbols), **{name: rows[pos][asked.order[0]] for pos, name in taken if asked.order},
                **{name: of_match(text, rows, taken, symbols) for name, text in aggregates.items()},
            }  # fmt: skip
            shown = [told]
            if options(case, "--emit") == ["rows"]:
                shown = [{**told, **rows[pos], "matched_as": name} for pos, name in taken]
            found += [[each[name] for name in case["select"]] for each in shown]
    return found, account


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case["id"])
def test_the_reference_finds_what_is_published(case: Case) -> None:
    found, account = answers(case)
    assert is_answer(case, found), (found, case["expect"])
    for name, count in case.get("account", {}).items():
        assert account[name] == count, name
