"""The sections of the account, of the phases, and of the job in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ....console.amounts import WORDS, RowAccount, count_of
from ..report import Report
from .elements import Element, add
from .quantities import seconds_text, share_text
from .tables import add_bars, add_table

_MOST = 20
_REASONS = 12


def add_accounts(parent: Element, report: Report) -> None:
    """Add the account of each stage: what became of every row."""
    for name, account in list(report.accounts.items())[:_MOST]:
        figure = add(parent, "figure")
        if len(report.accounts) > 1:
            add(figure, "h3", text=f"Stage {name}")
        whole = account.rows_in + account.carried
        parts = _parts(account)
        most = max((n for _, n, _ in parts), default=0) or 1
        rows = [(what, f"{n:,}", share_text(n, whole), n / most, classes) for what, n, classes in parts]
        add_bars(figure, _equation(account), rows)
    if len(report.accounts) > _MOST:
        add(parent, "p", "faint", f"{len(report.accounts) - _MOST:,} further stages are not shown.")


def _equation(account: RowAccount) -> str:
    came = f"{count_of(account.rows_in, 'row')} in"
    came += f" + {account.carried:,} {WORDS['carried']}" if account.carried else ""
    balance = "every row is accounted for" if account.balanced else "this does not balance"
    return f"{came}: {balance}"


def _parts(account: RowAccount) -> list[tuple[str, int, str]]:
    rejected = sorted(account.rejected.items(), key=lambda each: -each[1])[:_REASONS]
    parts = [
        (WORDS["windowed"], account.windowed, "counts"),
        (WORDS["filtered"], account.filtered, "counts"),
        *((f"{WORDS['rejected']}: {reason}", n, "trouble") for reason, n in rejected),
        (WORDS["dropped_at_end"], account.dropped_at_end, "trouble"),
        (WORDS["held"], account.held, "held"),
    ]
    return [part for part in parts if part[1] or part[0] == WORDS["windowed"]]


def add_phases(parent: Element, report: Report) -> None:
    """Add the seconds of each phase."""
    phases = dict(report.phases)
    total = phases.get("total", 0.0)
    longest = max(phases.values()) or 1
    rows = [
        (name, seconds_text(spent), share_text(spent, total), spent / longest, "held" if name == "total" else "counts")
        for name, spent in report.phases
    ]
    add_bars(parent, "Seconds by phase; phases may run side by side", rows)


def add_job(parent: Element, report: Report) -> None:
    """Add the job in words, its further options, and what it was computed with."""
    words = add(parent, "dl")
    for name, clauses in groupby(report.clauses[:200], lambda clause: clause.about):
        add(words, "dt", text=name)
        for clause in clauses:
            add(words, "dd", text=clause.text)
    for text, outcome in report.expectations[:_MOST]:
        add(words, "dt", text="expected")
        add(words, "dd", "" if outcome.startswith("holds") else "trouble", f"{text}: {outcome}")
    _add_pairs(parent, "Further options", ["option", "value"], report.settings[:100])
    _add_pairs(parent, "Computed with", ["package", "version"], report.made_with)


def _add_pairs(parent: Element, name: str, head: Sequence[str], pairs: Sequence[tuple[str, str]]) -> None:
    if pairs:
        details = add(parent, "details")
        add(details, "summary", text=name)
        add_table(details, name, head, pairs).set("class", "words")
