"""``wincli status``: units, row counts and damage of a state, of the outputs of a range, or of one result."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...conf.ranges.units import compact
from ...windowing.errors import shown
from ...windowing.support.addresses.redaction import redacted, redacted_path
from ..console.amounts import WORDS, RowAccount, count_of, equation, reason_counts
from ..console.messages import Messages
from ..console.streams import json_text, say
from .results.folder_status import Status, UnitStatus, read_status


def print_status(path: str, as_json: bool, messages: Messages) -> None:
    """Print the status of ``path``, a state or an output, to stdout: a table, or one JSON object.

    Raises `ConfigError` or `InputError` where the path is neither of them, or is damaged.
    """
    status = read_status(path, socket.gethostname())
    messages.detail(f"{path} is {_WHAT[status.what]}", path=path, what=status.what)
    say(_json_text(_as_json(status)) if as_json else "\n".join(map(redacted, map(shown, _lines(status)))))


_WHAT = {"state": "a state", "range": "a folder of results", "result": "a result"}


def _json_text(fields: dict[str, Any]) -> str:
    """Return indented JSON, with all letters beyond ASCII escaped where the encoding of stdout lacks one of them."""
    text = json_text(fields, 2, is_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json_text(fields, 2)
    return text


def _as_json(status: Status) -> dict[str, Any]:
    units = [
        {
            "label": unit.label,
            "finished": unit.finished,
            "rows_in": unit.rows_in,
            _OUT[status.what]: unit.out,
            "rejected": unit.rejected,
            "held": unit.held,
            **({"expectations": [dict(each) for each in unit.expectations]} if unit.expectations else {}),
            "stages": [{"name": stage.name, **_account_as_json(stage.account)} for stage in unit.stages],
        }
        for unit in status.units
    ]
    return {
        "path": redacted_path(status.path),
        "what": status.what,
        "units": units,
        "gaps": [unit.label for unit in status.gaps],
        "mostly_late": [unit.label for unit in units_mostly_late(status)],
        "open": [{"stage": stage.name, **asdict(stage.open)} for stage in status.last_stages if stage.open],
        "accounts": [{"stage": name, **_account_as_json(account)} for name, account in status.accounts.items()],
        "at_work": asdict(status.at_work) if status.at_work else None,
        "to_complete": status.to_complete,
        "killed": status.killed,
        "last_error": {key: redacted(text) for key, text in status.last_error.items()} if status.last_error else None,
        "lost": [{"unit": label, "what": what} for label, what in status.lost],
        "damage": list(status.damage),
    }


_OUT = {"state": "windows_out", "range": "rows_out", "result": "rows_out"}


def _account_as_json(account: RowAccount) -> dict[str, Any]:
    fields = asdict(account)
    del fields["joined"]
    return {**fields, "balanced": account.balanced}


def _lines(status: Status) -> list[str]:
    units = status.units
    span = f", {units[0].label}" + (f"..{units[-1].label}" if len(units) > 1 else "") if units else ""
    lines = [f"{status.path}: {count_of(len(units), 'unit')}{span}"] if status.what != "result" else []
    head = ("unit", WORDS["rows_in"], _OUT[status.what].replace("_", " "), WORDS["held"], WORDS["rejected"])
    lines += _table([head, *map(_cells, units)]) if units else []
    lines += [f"gaps: {compact(status.gaps)}"] if status.gaps else []
    several = len(status.last_stages) > 1
    for stage in status.last_stages:
        if stage.open and stage.open.windows:
            oldest = f", the oldest from {stage.open.oldest}" if stage.open.oldest else ""
            words = f"{count_of(stage.open.windows, 'window')} of {count_of(stage.open.keys, 'key')}{oldest}"
            lines.append(f"open{f' in stage {stage.name}' if several else ''}: {words}")
    for name, account in status.accounts.items():
        which = f"row accounting of stage {name}" if len(status.accounts) > 1 else "row accounting"
        lines.append(f"{which}: {equation(account)}" + ("" if account.balanced else "; this does not balance"))
    return lines + _late(status) + _expectations(status) + _events(status) + _damage(status)


def units_mostly_late(status: Status) -> list[UnitStatus]:
    """Return the units of which most rows came late."""
    return [unit for unit in status.units if unit.is_mostly_late]


def _late(status: Status) -> list[str]:
    """Return a line on the units of which most rows came late."""
    labels = [unit.label for unit in units_mostly_late(status)]
    if not labels:
        return []
    which = "" if status.what == "result" else f" of {_few(labels)}"
    what = f"late: more than half of the rows{which} came late, as behind one row from the future"
    return [f"{what}; a run that rejects them names that row in a note"]


def _expectations(status: Status) -> list[str]:
    """Return a line for each expectation: in how many units it holds, or where it does not."""
    told: dict[str, list[tuple[str, bool]]] = {}
    for unit in status.units:
        for each in unit.expectations:
            told.setdefault(each["expect"], []).append((unit.label, each["holds"]))
    lines = []
    for text, found in told.items():
        broken = [label for label, holds in found if not holds]
        words = f"does not hold in {_few(broken)}" if broken else f"holds in {count_of(len(found), 'unit')}"
        lines.append(f"expected: {text} {words}")
    return lines


def _damage(status: Status) -> list[str]:
    """Return lines on outputs that are lost or replaced, equal losses in one line, then on damaged files of a state."""
    lots: dict[str, list[str]] = {}
    for label, what in status.lost:
        lots.setdefault(what if not what.endswith(" is gone") else "its output is gone", []).append(label)
    lost = [f"lost: {_few(labels)}: {what}; run it again with --redo" for what, labels in lots.items()]
    return [*lost, *(f"damaged: {text}" for text in status.damage)]


def _few(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - 3:,} more" if len(labels) > 4 else ""
    return ", ".join(labels[:3] if more else labels) + more


def _cells(unit: UnitStatus) -> tuple[str, ...]:
    return unit.label, f"{unit.rows_in:,}", f"{unit.out:,}", f"{unit.held:,}", reason_counts(unit.rejected) or "0"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return aligned lines: the first and the last column to the left, the numbers between them to the right."""
    rows = [tuple(map(shown, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = (
        [cell.rjust(width) if 0 < at < len(widths) - 1 else cell.ljust(width) for at, (cell, width) in enumerate(cells)]
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    )
    return ["  ".join(cells).rstrip() for cells in aligned]


def _events(status: Status) -> list[str]:
    lines = []
    if status.at_work:
        who = status.at_work
        lines.append(f"at work: process {who.pid} on {who.host}, started {who.started}")
    if status.to_complete:
        todo = "is being put in place" if status.at_work else "was killed while it was put in place; run again"
        lines.append(f"commit: {status.to_complete} {todo}")
    elif status.killed:
        lines.append(f"killed: {status.killed} was not finished, and nothing of it was written; run it again")
    if error := status.last_error:
        lines.append(f"last error: {error['unit']} at {error['when']}: {error['message']}")
    return lines
