"""``wincli why``: why a window of a result is as it is."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from textwrap import wrap
from typing import Any

import numpy as np
import pyarrow as pa

from ....windowing.columns.arrays import Ints
from ....windowing.errors import ConfigError
from ....windowing.errors import shown as shown_text
from ....windowing.planning.plan import Plan
from ....windowing.ports import Source, Split
from ....windowing.rows.membership import shown, take
from ....windowing.rows.projection import ProjectionSource
from ....windowing.spark.fork_server import block_pandas
from ....windowing.support.redaction import redacted
from ...console.amounts import WORDS, count_of
from ...console.messages import Messages
from ...console.streams import bold, json_text, print_lines, terminal_width
from ...console.table import head_line, lay_out, row_lines, texts_of
from ..results.result import ResultFolder
from ..results.shown_rows import results_at, split_only
from .closing import Fact
from .facts import facts_of
from .panes_of_key import (
    KeyCondition,
    KeyPanes,
    Span,
    is_of_key,
    only_panes,
    panes_of,
    parts_with,
    read_key,
    scalar_text,
)
from .recompute import Sought, compute_window, count_windows, find_window, sought_window
from .recorded import RecordedStage, recorded_stage

# An explanation of a window, as values: facts in words with their numbers, and rows with their places in files.


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows of the input, of which those at the ends are read.

    ``pos``: int64 (n,), the arrival positions of all of them, in the order of the window.
    ``table``: those that are read, as the input has them, from the first on.
    ``places``: where each of these is: file and line.
    ``at``: int64, which of ``pos`` these are, ascending.
    """

    pos: Ints
    table: pa.Table
    places: tuple[str, ...]
    at: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def left_out(self) -> int:
        return len(self.pos) - len(self.at)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a window is as it is.

    ``result``: the folder of the result.
    ``spec``: the window of the job.
    ``key``: name and value of each key column.
    ``window``: its number.
    ``pane``: what the result says of it, by column, as texts.
    ``facts``: what is known of it.
    ``rows``: its rows.
    ``others``: the rows that facts name and that are not among ``rows``.
    ``also``: the numbers of other windows that hold the time of ``--at``.
    """

    result: str
    spec: str
    key: tuple[tuple[str, str], ...]
    window: int
    pane: Mapping[str, Any]
    facts: tuple[Fact, ...]
    rows: InputRows
    others: InputRows
    also: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingWindow:
    """Where the rows of a key went that has no such window.

    ``result``, ``spec``, ``key``: as of `Explanation`.
    ``window``: the window that it does not have, in words: ``window 7``, ``window at 10:00``.
    ``rows``: how many rows of the key were read.
    ``windows``: how many windows the key has.
    ``counts``: how many of the rows were filtered, rejected (by reason), in windows, dropped at the end, or held.
    ``facts``: what else is known.
    """

    result: str
    spec: str
    key: tuple[tuple[str, str], ...]
    window: str
    rows: int
    windows: int
    counts: Mapping[str, int]
    facts: tuple[Fact, ...]


# An explanation as text for people, and as JSON.


_TITLES = {"opened": "opened", "closed": "closed", "near": "close by", "late": "outputs", "other": "also"}
_PLACE = "where"
_INDENT = " " * 11


def explanation_lines(explanation: Explanation, width: int | None) -> Iterator[str]:
    """Yield the lines that explain a window. ``width``: characters of a line; None: as many as there are."""
    yield bold(_title(explanation.key, f"window {explanation.window}"))
    yield from _folded("spec", shown_text(explanation.spec), width)
    key = dict(explanation.key)
    says = ", ".join(f"{name} {text}" for name, text in explanation.pane.items() if name not in key)
    yield from _folded("result", shown_text(says), width)
    for fact in explanation.facts:
        yield from _folded(_TITLES[fact.kind], _sentence(fact), width)
    yield ""
    yield bold(f"its {count_of(len(explanation.rows.pos), 'row')}")
    yield from _row_lines(explanation.rows, width)
    if len(explanation.others.pos):
        yield ""
        yield bold("rows named above that are not in it")
        yield from _row_lines(explanation.others, width)


def missing_lines(missing: MissingWindow, width: int | None) -> Iterator[str]:
    """Yield the lines that say where the rows of a key went. ``width``: as of `explanation_lines`."""
    yield bold(_title(missing.key, f"there is no {missing.window}"))
    yield from _folded("spec", shown_text(missing.spec), width)
    yield f"  rows     {count_of(missing.rows, 'row')} of this key in the input"
    for what, count in missing.counts.items():
        yield f"           {count:,} {what}"
    yield f"  windows  {count_of(missing.windows, 'window')} came out"
    for fact in missing.facts:
        yield from _folded(_TITLES[fact.kind], _sentence(fact), width)


def _folded(title: str, text: str, width: int | None) -> Iterator[str]:
    room = len(text) + 1 if width is None else max(width - len(_INDENT), 20)
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {title:<8} {lines[0]}"
    yield from (f"{_INDENT}{line}" for line in lines[1:])


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as plain JSON values; of the rows those that are explanation."""
    return {
        "result": redacted(explanation.result),
        "spec": explanation.spec,
        "key": dict(explanation.key),
        "window": explanation.window,
        "pane": dict(explanation.pane),
        "facts": [_fact(each) for each in explanation.facts],
        "rows": len(explanation.rows.pos),
        "shown": _json_rows(explanation.rows),
        "others": _json_rows(explanation.others),
    }


def missing_json(missing: MissingWindow) -> dict[str, Any]:
    """Return where the rows of a key went as plain JSON values."""
    return {
        "result": redacted(missing.result),
        "spec": missing.spec,
        "key": dict(missing.key),
        "missing": missing.window,
        "rows": missing.rows,
        "windows": missing.windows,
        "counts": dict(missing.counts),
        "facts": [_fact(each) for each in missing.facts],
    }


def _title(key: tuple[tuple[str, str], ...], what: str) -> str:
    of = ", ".join(f"{name}={text}" for name, text in key)
    return shown_text(f"{what} of {of}" if of else what)


def _sentence(fact: Fact) -> str:
    rule = f" ({fact.rule})" if fact.kind == "closed" and fact.rule is not None else ""
    return shown_text(f"{fact.text}{rule}")


def _fact(fact: Fact) -> dict[str, Any]:
    return {"kind": fact.kind, "text": fact.text, "row": fact.row, "rule": fact.rule, "numbers": dict(fact.numbers)}


def _row_lines(rows: InputRows, width: int | None) -> Iterator[str]:
    table = rows.table.add_column(0, _PLACE, pa.array(rows.places, pa.string()))
    layout = lay_out(table, None if width is None else width - 2)
    yield f"  {head_line(layout)}"
    gap = next((at for at in range(1, len(rows.at)) if rows.at[at] != rows.at[at - 1] + 1), None)
    for at, line in enumerate(row_lines(layout, table)):
        if at == gap:
            yield f"  ... {count_of(rows.left_out, 'more row')}; --rows says how many to show"
        yield f"  {line}"


def _json_rows(rows: InputRows) -> list[dict[str, Any]]:
    names = rows.table.column_names
    texts = [texts_of(rows.table.column(name)).to_pylist() for name in names]
    return [
        {"where": place, "arrival": int(rows.pos[at]), "row": dict(zip(names, values, strict=True))}
        for place, at, *values in zip(rows.places, rows.at.tolist(), *texts, strict=True)
    ]


# Rows by their arrival positions, as the input has them, with file and line.


def read_ends(source: Source, pos: Ints, most: int) -> InputRows:
    """Read the first and the last of some rows.

    ``pos``: int64 (n,), arrival positions in the order of the window. ``most``: how many rows are read.
    """
    count = len(pos)
    head = count if count <= most else most - most // 2
    at = np.concatenate([np.arange(head), np.arange(count - (0 if head == count else most // 2), count)])
    table, places = read_at(source, pos[at])
    return InputRows(pos, table, tuple(places), at)


def read_at(source: Source, pos: Ints) -> tuple[pa.Table, list[str]]:
    """Return the rows at arrival positions, in that order, and file and line of each."""
    names = list(source.schema.names)
    found: dict[int, tuple[pa.Table, str]] = {}
    of_splits = _shared(source.splits, np.unique(pos))
    for part, wanted in chain.from_iterable(_shared(source.parts_of(split), within) for split, within in of_splits):
        batch = source.read(part, names)
        places = np.searchsorted(batch.pos, wanted)
        lines = source.line_numbers(part, wanted)
        file = _name(source, part)
        for at, place, line in zip(wanted.tolist(), places.tolist(), lines.tolist(), strict=True):
            found[at] = (batch.rows.slice(place, 1), f"{file}:{line}")
    rows = [found[each] for each in pos.tolist()]
    empty = pa.schema([source.schema.field(name) for name in names]).empty_table()
    return pa.concat_tables([empty, *(row for row, _ in rows)]), [place for _, place in rows]


def _name(source: Source, part: Split) -> str:
    name = source.file_name(part)
    files = {split.file: split for split in source.splits}
    alike = sum(source.file_name(split) == name for split in files.values())
    return name if alike < 2 else source.files[part.file].path


def _shared(splits: Sequence[Split], pos: Ints) -> Iterator[tuple[Split, Ints]]:
    """Yield the splits that hold rows, each with the positions of these. ``pos``: ascending."""
    bases = [split.base for split in splits]
    at = np.array([bisect_right(bases, each) - 1 for each in pos.tolist()], np.int64)
    for each in np.unique(at).tolist():
        yield splits[each], pos[at == each]


# Where the rows of a key went that has no such window: filtered, rejected, in other windows, dropped, or held.


def missing_window(result: ResultFolder, recorded: RecordedStage, sought: Sought) -> MissingWindow:
    """Say where the rows of a key went. All of its rows are read."""
    plan = only_panes(recorded.stage.plan)
    rows = read_key(plan, recorded.source, recorded.stage.marks, sought.key, Span())
    panes = panes_of(rows)
    total = _count(plan, recorded.source, sought.key)
    rejected = Counter(rows.rejected)
    if recorded.late is not None:
        late = read_key(plan, recorded.late, recorded.stage.marks, sought.key, Span())
        rejected.update({**late.rejected, "late": late.rejected.get("late", 0) + len(late.sequences)})
        total += _count(plan, recorded.late, sought.key)
    if panes.panes.rejects is not None:
        rejected.update(panes.panes.rejects.by_reason)
    counts = _counts(panes, total, rejected)
    windows = len(panes.came_out)
    on_state = result.manifest["job"].get("state") is not None
    facts = tuple(_facts(panes, count_windows(result.rows, sought.key), on_state))
    key = tuple((name, scalar_text(value)) for name, value in sought.key.items())
    return MissingWindow(result.shown, str(plan.spec), key, sought.words, total, windows, counts, facts)


def _counts(panes: KeyPanes, total: int, rejected: Mapping[str, int]) -> dict[str, int]:
    every, rows = panes.panes, len(panes.sequences)
    out = int(np.count_nonzero(shown(take(every.membership, panes.came_out), rows)))
    placed = int(np.count_nonzero(shown(every.membership, rows)))
    end = WORDS["dropped_at_end" if panes.plan.options.at_end == "drop" else "held"]
    scanned = 0 if every.rejects is None else len(every.rejects)
    counts = {
        WORDS["windowed"]: out,
        end: placed - out,
        "in no window": rows - placed - scanned,
        "left out by --where": total - rows - (sum(rejected.values()) - scanned),
        **{f"rejected, {reason}": count for reason, count in sorted(rejected.items())},
    }
    return {what: count for what, count in counts.items() if count}


def _count(plan: Plan, source: Source, key: Mapping[str, pa.Scalar]) -> int:
    if not key:
        return sum(split.rows for split in source.splits)
    condition = KeyCondition(key, None, Span(), source.schema)
    reading = source if plan.projection.is_trivial else ProjectionSource(source, plan.projection, tuple(key))
    parts = (part for split in source.splits for part in parts_with(source, split, condition))
    return sum(int(np.count_nonzero(is_of_key(reading.read(part, list(key)).rows, key))) for part in parts)


def _facts(panes: KeyPanes, there: int, on_state: bool) -> Iterator[Fact]:
    """Say which windows the key has, and whether the result hides some; ``on_state``: it is of one unit of them all."""
    came = panes.came_out
    if len(panes.sequences) == 0:
        yield Fact("other", "no row of this key reached a window")
        return
    if len(came):
        numbers = panes.panes.number[came]
        head = panes.head.take(pa.array(came))
        ends = [scalar_text(head.column(name)[at]) for name, at in (("window_start", 0), ("window_end", -1))]
        text = f"its windows have the numbers {int(numbers.min())} to {int(numbers.max())}, from {ends[0]} to {ends[1]}"
        yield Fact("other", text)
    if there < len(came):
        why = "the others came out in other units" if on_state else "--having, or --partition-by, leaves out the others"
        yield Fact("other", f"the result has {there:,} of them: {why}")
    held = len(panes.panes) - len(came)
    if held:
        yield Fact("other", f"{held:,} more of its windows were open at the end, and --at-end did not flush them")


@dataclass(frozen=True, slots=True)
class WhyRequest:
    """What is requested.

    ``path``: the result, or the outputs of a range.
    ``only``: the key, ``NAME=VALUE`` for each of its columns.
    ``window``: the number of the window; None: ``at`` says which.
    ``at``: a time in the window; None: ``window`` says which.
    ``unit``: the unit of a range.
    ``rows``: how many rows of the window are shown.
    ``as_json``: whether the answer is JSON.
    """

    path: str
    only: tuple[str, ...] = ()
    window: int | None = None
    at: str | None = None
    unit: str | None = None
    rows: int = 10
    as_json: bool = False


def print_why(request: WhyRequest, messages: Messages) -> None:
    """Print to stdout why a window is as it is; for a key without it, where its rows went.

    Raises `ConfigError` where the request does not fit the result, `InputError` where the result or its input is not
    there, or not as it was.
    """
    block_pandas()
    results = results_at(request.path, request.unit)
    if len(results) > 1:
        do = f"say --unit, such as --unit {results[0][0]}"
        raise ConfigError(f"{request.path} holds {len(results)} results", do)
    result = results[0][1]
    answer = explain(result, request)
    if isinstance(answer, Explanation) and answer.also:
        also = ", ".join(map(str, answer.also[:5]))
        messages.note(f"that time is in several windows: besides {answer.window} in {also}; --window says which")
    if request.as_json:
        found = explanation_json(answer) if isinstance(answer, Explanation) else missing_json(answer)
        print_lines([json_text(found, 2)])
        return
    width = terminal_width()
    lines = explanation_lines(answer, width) if isinstance(answer, Explanation) else missing_lines(answer, width)
    print_lines(lines)


def explain(result: ResultFolder, request: WhyRequest) -> Explanation | MissingWindow:
    """Explain a window of a result, or say where the rows of its key went. Raises as `print_why` does."""
    with recorded_stage(result) as recorded:
        sought = sought_window(recorded.stage.plan, result.schema, split_only(request.only), request.window, request.at)
        found = find_window(result.rows, sought)
        if found is None:
            return missing_window(result, recorded, sought)
        pane = compute_window(recorded, sought.key, found)
        facts = facts_of(pane)
        if recorded.note is not None:
            facts = (*facts, Fact("other", recorded.note))
        pos = pane.panes.sequences.pos[pane.rows]
        named = dict.fromkeys(fact.row for fact in facts if fact.row is not None)
        others = np.array([each for each in named if not (pos == each).any()], np.int64)
        return Explanation(
            result.shown,
            str(recorded.stage.plan.spec),
            tuple((name, scalar_text(value)) for name, value in sought.key.items()),
            found.number,
            {name: scalar_text(value) for name, value in found.row.items() if not name.startswith("_")},
            facts,
            read_ends(recorded.source, pos, request.rows),
            read_ends(recorded.source, others, len(others)),
            found.also,
        )
