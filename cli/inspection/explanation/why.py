"""``wincli why``: why a window of a result is as it is."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from textwrap import wrap
from typing import Any

import numpy as np
import pyarrow as pa

from ....windowing.columns.arrays import Ints
from ....windowing.errors import ConfigError
from ....windowing.errors import shown as shown_text
from ....windowing.kinds.facts import Fact, KeyPanes
from ....windowing.language.joins import SIDE
from ....windowing.language.sentences import window_text
from ....windowing.planning.plan import Plan
from ....windowing.planning.sides import side_names
from ....windowing.ports import Source, Split
from ....windowing.rows.panes import reason, rows_shown
from ....windowing.rows.projection import Project
from ....windowing.spark.fork_server import block_pandas
from ....windowing.support.amounts import count_of
from ....windowing.support.redaction import redacted
from ...console.messages import Messages
from ...console.row_account import WORDS
from ...console.streams import bold, json_text, print_lines, terminal_width
from ...console.table import head_line, lay_out, row_lines, texts_of
from ..results.result import ResultFolder
from ..results.shown_rows import results_at, split_only
from .panes_of_key import (
    ALL,
    KeyCondition,
    Sought,
    compute_window,
    count_windows,
    find_window,
    is_of_key,
    only_panes,
    panes_of,
    parts_with,
    read_key,
    rows_at,
    scalar_text,
    sought_window,
)
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
    at: Ints


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a window is as it is.

    ``key``: value of each key column, as text.
    ``pane``: what the result says of it, by column, as texts.
    ``others``: the rows that facts name and that are not among ``rows``.
    ``also``: the numbers of other windows that hold the time of ``--at``.
    """

    result: str
    spec: str
    key: Mapping[str, str]
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
    ``missing``: the window that it does not have, in words: ``window 7``, ``window at 10:00``.
    ``rows``: how many rows of the key were read.
    ``counts``: how many of the rows were filtered, rejected (by reason), in windows, dropped at the end, or held.
    """

    result: str
    spec: str
    key: Mapping[str, str]
    missing: str
    rows: int
    windows: int
    counts: Mapping[str, int]
    facts: tuple[Fact, ...]


# An explanation as text for people, and as JSON.


_TITLES = {"opened": "opened", "closed": "closed", "near": "close by", "late": "outputs", "other": "also"}
_PLACE = "where"
_INDENT = " " * 11


def answer_lines(answer: Explanation | MissingWindow, width: int | None) -> Iterator[str]:
    """Yield the lines of an answer. ``width``: characters of a line; None: as many as there are."""
    what = f"window {answer.window}" if isinstance(answer, Explanation) else f"there is no {answer.missing}"
    of = ", ".join(f"{name}={text}" for name, text in answer.key.items())
    yield bold(shown_text(f"{what} of {of}" if of else what))
    yield from _folded("spec", answer.spec, width)
    if isinstance(answer, MissingWindow):
        yield f"  rows     {count_of(answer.rows, 'row')} of this key in the input"
        for word, count in answer.counts.items():
            yield f"           {count:,} {word}"
        yield f"  windows  {count_of(answer.windows, 'window')} came out"
        yield from _fact_lines(answer.facts, width)
        return
    says = ", ".join(f"{name} {text}" for name, text in answer.pane.items() if name not in answer.key)
    yield from _folded("result", says, width)
    yield from _fact_lines(answer.facts, width)
    yield ""
    yield bold(f"its {count_of(len(answer.rows.pos), 'row')}")
    yield from _row_lines(answer.rows, width)
    if len(answer.others.pos):
        yield ""
        yield bold("rows named above that are not in it")
        yield from _row_lines(answer.others, width)


def _fact_lines(facts: Sequence[Fact], width: int | None) -> Iterator[str]:
    for fact in facts:
        rule = f" ({fact.rule})" if fact.kind == "closed" and fact.rule is not None else ""
        yield from _folded(_TITLES[fact.kind], f"{fact.text}{rule}", width)


def _folded(title: str, text: str, width: int | None) -> Iterator[str]:
    text = shown_text(text)
    room = len(text) + 1 if width is None else max(width - len(_INDENT), 20)
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {title:<8} {lines[0]}"
    yield from (f"{_INDENT}{line}" for line in lines[1:])


def answer_json(answer: Explanation | MissingWindow) -> dict[str, Any]:
    """Return an answer as plain JSON values; of the rows of a window those that are read."""
    if isinstance(answer, MissingWindow):
        return {**asdict(answer), "result": redacted(answer.result)}
    return {
        "result": redacted(answer.result),
        "spec": answer.spec,
        "key": answer.key,
        "window": answer.window,
        "pane": answer.pane,
        "facts": list(map(asdict, answer.facts)),
        "rows": len(answer.rows.pos),
        "shown": _json_rows(answer.rows),
        "others": _json_rows(answer.others),
    }


def _row_lines(rows: InputRows, width: int | None) -> Iterator[str]:
    table = rows.table.add_column(0, _PLACE, pa.array(rows.places, pa.string()))
    layout = lay_out(table, None if width is None else width - 2)
    yield f"  {head_line(layout)}"
    gap = next((at for at in range(1, len(rows.at)) if rows.at[at] != rows.at[at - 1] + 1), None)
    for at, line in enumerate(row_lines(layout, table)):
        if at == gap:
            yield f"  ... {count_of(len(rows.pos) - len(rows.at), 'more row')}; --rows says how many to show"
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


def with_sides(panes: KeyPanes, rows: InputRows) -> InputRows:
    """Return rows of a join, which are among those of a key, with the name of the side that each is on."""
    if panes.panes.pairs is None:
        return rows
    order = np.argsort(panes.sequences.pos)
    at = order[np.searchsorted(panes.sequences.pos, rows.pos[rows.at], sorter=order)]
    names = side_names(panes.column(SIDE).take(pa.array(at)))
    table = rows.table.select([name for name in rows.table.column_names if name != SIDE])
    return replace(rows, table=table.add_column(0, SIDE, names))


def read_at(source: Source, pos: Ints) -> tuple[pa.Table, list[str]]:
    """Return the rows at arrival positions, in that order, and file and line of each."""
    names = list(source.schema.names)
    found: dict[int, tuple[pa.Table, str]] = {}
    of_splits = _shared(source.splits, np.unique(pos))
    for part, wanted in chain.from_iterable(_shared(source.parts_of(split), within) for split, within in of_splits):
        batch = source.read(part, names)
        places = np.searchsorted(batch.pos, wanted)
        lines = source.line_numbers(part, wanted)
        file = source.file_name(part)
        alike = {split.file for split in source.splits if source.file_name(split) == file}
        file = file if len(alike) < 2 else source.files[part.file].path
        for at, place, line in zip(wanted.tolist(), places.tolist(), lines.tolist(), strict=True):
            found[at] = (batch.rows.slice(place, 1), f"{file}:{line}")
    rows = [found[each] for each in pos.tolist()]
    empty = pa.schema([source.schema.field(name) for name in names]).empty_table()
    return pa.concat_tables([empty, *(row for row, _ in rows)]), [place for _, place in rows]


def _shared(splits: Sequence[Split], pos: Ints) -> Iterator[tuple[Split, Ints]]:
    """Yield the splits that hold rows, each with the positions of these. ``pos``: ascending."""
    bases = [split.base for split in splits]
    at = np.array([bisect_right(bases, each) - 1 for each in pos.tolist()], np.int64)
    for each in np.unique(at).tolist():
        yield splits[each], pos[at == each]


# Where the rows of a key went that has no such window: filtered, rejected, in other windows, dropped, or held.


_MOST_TOLD = 5
"""Of so many rows at the time that is asked for it is told why they are in no window."""


def missing_window(result: ResultFolder, recorded: RecordedStage, sought: Sought) -> MissingWindow:
    """Say where the rows of a key went. All of its rows are read."""
    plan = only_panes(recorded.stage.plan)
    read = read_key(plan, recorded.source, recorded.stage.marks, sought.key, ALL)
    panes = panes_of(plan, read)
    every, rows = panes.panes, len(panes.sequences)
    # all but those of the end of the data, where that does not flush
    is_out = (every.closed_by != reason("end")) | (plan.options.at_end == "flush")
    came = np.flatnonzero(is_out)
    total, rejected = _count(plan, recorded.source, sought.key), Counter(read.rejected)
    if recorded.late is not None:
        late = read_key(plan, recorded.late, recorded.stage.marks, sought.key, ALL)
        rejected.update({**late.rejected, "late": late.rejected.get("late", 0) + len(late.sequences)})
        total += _count(plan, recorded.late, sought.key)
    scanned = 0 if every.rejects is None else len(every.rejects)
    if every.rejects is not None:
        rejected.update(every.rejects.by_reason)
    out = int(np.count_nonzero(rows_shown(every.take(came), rows)))
    placed = int(np.count_nonzero(rows_shown(every, rows)))
    counts = {
        WORDS["windowed"]: out,
        WORDS["dropped_at_end" if plan.options.at_end == "drop" else "held"]: placed - out,
        "in no window": rows - placed - scanned,
        "left out by --where": total - rows - read.duplicates - (sum(rejected.values()) - scanned),
        "left out by --distinct": read.duplicates,
        **{f"rejected, {reason}": count for reason, count in sorted(rejected.items())},
    }
    facts = []  # which windows the key has, and whether the result hides some
    if not rows:
        facts.append("no row of this key reached a window")
    else:
        if len(came):
            numbers, head = every.number[came], panes.head.take(pa.array(came))
            ends = [scalar_text(head.column(name)[at]) for name, at in (("window_start", 0), ("window_end", -1))]
            span = f"{int(numbers.min())} to {int(numbers.max())}, from {ends[0]} to {ends[1]}"
            facts.append(f"its windows have the numbers {span}")
        if (there := count_windows(result.rows, sought.key)) < len(came):
            on_state = result.manifest["job"].get("state") is not None
            hides = "--having, or --partition-by, leaves out the others"
            why = "the others came out in other units" if on_state else hides
            facts.append(f"the result has {there:,} of them: {why}")
        if held := len(every) - len(came):
            facts.append(f"{held:,} more of its windows were open at the end, and --at-end did not flush them")
    told = [Fact("other", text) for text in facts]
    if sought.at is not None and rows:
        at = rows_at(panes, sought.at)[:_MOST_TOLD]
        told += plan.kind.explain_rows(panes, at) if len(at) else ()
    return MissingWindow(
        result.shown,
        window_text(plan.spec, plan.options),
        {name: scalar_text(value) for name, value in sought.key.items()},
        sought.words,
        total,
        len(came),
        {what: count for what, count in counts.items() if count},
        tuple(told),
    )


def _count(plan: Plan, source: Source, key: Mapping[str, pa.Scalar]) -> int:
    if not key:
        return sum(split.rows for split in source.splits)
    condition = KeyCondition(key, None, ALL, source.schema)
    reading = source
    if not plan.projection.is_trivial:
        reading = source.with_steps([*source.steps, Project(plan.projection, tuple(key))])
    parts = (part for split in source.splits for part in parts_with(source, split, condition))
    return sum(int(np.count_nonzero(is_of_key(reading.read(part, list(key)).rows, key))) for part in parts)


def print_why(
    path: str,
    messages: Messages,
    only: Sequence[str] = (),
    window: int | None = None,
    at: str | None = None,
    unit: str | None = None,
    rows: int = 10,
    as_json: bool = False,
) -> None:
    """Print to stdout why a window is as it is; for a key without it, where its rows went.

    ``path``: the result, or the outputs of a range. ``only``: the key, ``NAME=VALUE`` for each of its columns.
    ``window``, ``at``: its number, or a time in it. Raises `ConfigError` where the request does not fit the result,
    `InputError` where the result or its input is not there, or not as it was.
    """
    block_pandas()
    results = results_at(path, unit)
    if len(results) > 1:
        do = f"say --unit, such as --unit {results[0].label}"
        raise ConfigError(f"{path} holds {len(results)} results", do)
    answer, width = explain(results[0], only, window, at, rows), terminal_width()
    if isinstance(answer, Explanation) and answer.also:
        also = ", ".join(map(str, answer.also[:5]))
        messages.note(f"that time is in several windows: besides {answer.window} in {also}; --window says which")
    if as_json:
        print_lines(iter([json_text(answer_json(answer), 2)]))
    else:
        print_lines(answer_lines(answer, width))


def explain(
    result: ResultFolder, only: Sequence[str], window: int | None, at: str | None = None, rows: int = 10
) -> Explanation | MissingWindow:
    """Explain a window of a result, or say where the rows of its key went. Takes and raises as `print_why` does."""
    with recorded_stage(result) as recorded:
        plan = recorded.stage.plan
        sought = sought_window(plan, result.schema, dict(split_only(only)), window, at)
        found = find_window(result.rows, sought)
        if found is None:
            return missing_window(result, recorded, sought)
        pane = compute_window(recorded, sought.key, found)
        facts = [*plan.kind.explain(pane)] + ([] if recorded.note is None else [Fact("other", recorded.note)])
        if sought.at is not None and pane.panes.pairs is not None:  # windows of both sides are long, and show few rows
            rows_there, told = rows_at(pane, sought.at), [fact.row for fact in facts if fact.row is not None]
            rows_there = rows_there[~np.isin(pane.sequences.pos[rows_there], told)][:_MOST_TOLD]
            facts += plan.kind.explain_rows(pane, rows_there) if len(rows_there) else ()
        pos = pane.sequences.pos[pane.rows]
        named = dict.fromkeys(fact.row for fact in facts if fact.row is not None)
        others = np.array([each for each in named if not (pos == each).any()], np.int64)
        return Explanation(
            result.shown,
            window_text(plan.spec, plan.options),
            {name: scalar_text(value) for name, value in sought.key.items()},
            found.number,
            {name: scalar_text(value) for name, value in found.row.items() if not name.startswith("_")},
            tuple(facts),
            with_sides(pane, read_ends(recorded.source, pos, rows)),
            with_sides(pane, read_ends(recorded.source, others, len(others))),
            found.also,
        )
